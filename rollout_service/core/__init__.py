"""Pure decisions and records of the rollout service."""
