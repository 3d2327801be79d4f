"""The scheduler's outside world: its ledger, the bus, the domain packs."""
