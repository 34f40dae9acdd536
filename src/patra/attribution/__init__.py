"""The event and attribution processor: events that may arrive twice, late or never become billable facts.

Folders in the order in which data passes through them; a later one may import an earlier one.

| folder or module | for |
|---|---|
| `contract/` | event types, reason codes, derivation of keys |
| `intake/` | from the bytes of a request to checked events |
| `decision/` | the pure stages: dedup, closure, decide, output records, acknowledgement |
| `storage/` | rows: write, read, and the indexes by key |
| `delivery/` | output records to an archive outside the store |
| `history/` | rows past their retention as Parquet files: written, verified, asked, brought back |
| `commit`, `writer` | one transaction for a group of batches; the writer thread with its queue and timer |
| `replay`, `log_export` | everything that follows from a log; the log of a live store |
| `queries` | closures, rejects, timelines |
| `event_schema` | the input contract as JSON Schema and TypeScript |
| `checks/` | the log, the dedup ledger and dropped events, checked a page at a time |
| `verify`, `verify_slices` | the rows that money is settled on, checked against each other, at once or bit by bit |
| `settlement/` | counts of billable facts, prices, statements, reconciliation |
| `what_if` | a log under other rules, and the difference in facts and money |
| `turned_away` | batches that were refused before they were read |
| `app_keys`, `retention` | keys of apps; deletion of rows past their retention |
"""
