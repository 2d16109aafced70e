"""The ledger: append-only entries, their hash chain, and the private state."""
