"""Rollout service: plays task groups with the current policy."""
