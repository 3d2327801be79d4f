"""Pure decisions of the scheduler: no I/O, no clock, no async, no unseeded randomness."""
