"""Runs handlers, in the transaction of their effect or under a lease, and records the result of each event."""
