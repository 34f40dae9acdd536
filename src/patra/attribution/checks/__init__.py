"""What `verify` looks at beside the facts: each check reads one page in one transaction and gives what is wrong.

| module | for |
|---|---|
| `finding` | one thing that is not as it must be |
| `log_lines` | lines of the log against the decisions that were taken on their events |
| `dedup_ledger` | dedup keys against the events that were accepted, both ways |
| `placements` | placements, by which facts are priced, against the decisions that say them |
| `statements` | statements against their hashes, and the facts that are noted as stated |
| `dropped_events` | counts of drops, rejected and quarantined events against their rows |
"""
