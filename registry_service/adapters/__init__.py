"""The registry's outside world: its ledger, the scheduler, the bus."""
