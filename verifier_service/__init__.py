"""Turns trajectories into verdicts, cheapest tier first."""
