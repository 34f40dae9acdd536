"""Rows of the engine, and the indexes by dedup key, closure, placement, any key.

| module | for |
|---|---|
| `write`, `read`, `sql` | what a commit writes, rejected events too (F19, F25); what is read back; named statements |
| `decision_codec` | decisions on one item of the log as one row |
| `dedup_keys`, `recent_keys` | dedup keys in the ledger; the newest in memory (F9) |
| `closure_index`, `placement_index` | closures and placements by key |
| `key_index`, `key_index_merge`, `key_search`, `derived_keys` | decisions by any key of the specification |
| `billing_tree`, `record_key_check` | billing keys are unique; one payload per `recordKey` (§3.8.29) |
| `running_sums` | billable facts per hour, for settlement |
"""
