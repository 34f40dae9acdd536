"""`patra ingest …`: `group` has the group and the commands on plans, the others are loaded when they are called."""
