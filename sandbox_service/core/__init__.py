"""Pure decisions of the sandbox service."""
