"""Pure decisions of the registry: no I/O, no clock, no randomness."""
