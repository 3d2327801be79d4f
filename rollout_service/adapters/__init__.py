"""The outside world of the rollout service."""
