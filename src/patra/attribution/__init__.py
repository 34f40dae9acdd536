"""Module F, the event and attribution processor: events that may arrive twice, late or never become facts to bill.

| file | in | out |
|---|---|---|
| `reasons` | | every code, and when it is given |
| `contract` | | the eight event types: fields, tiers, windows, versions |
| `inflate` | a body as sent | its plain bytes, bounded |
| `intake` | bytes | an envelope with its events, or a refusal |
| `keys` | fields | dedup, closure, billing, attribution and record keys |
| `subject` | | whom a decision is about |
| `event` | | a checked event: what is looked at, and the rest as it is stored |
| `validate` | one event | a checked event, or the code of the first check that fails |
| `plain` | one event with nothing unusual about it | the same, much sooner |
| `batch` | bytes and an instant | checked events in the order of decision |
| `reader` | the same, in a process of its own | the same, where there are two cores |
| `dedup` | key and fingerprint | first, new cycle, duplicate, conflict |
| `closure` | a closure and an event | the ruling, and the closure after it |
| `facts` | a ruling | the decision; billable fact, attribution fact, audit |
| `records` | a decision | output records for the archive |
| `ack` | answers to events | the answer to the batch |
| `decide` | state, batches, ticks | answers and changes: the whole of it, without a store |
| `frame` | bytes | a compressed frame, and back |
| `pack` | decisions on one item | one compressed row, and back |
| `store` | changes | rows, and the order of locks |
| `recent`, `keystore` | dedup keys | their entries, in memory, appended, in the ledger's tree |
| `numbers` | keys of closures | the numbers of their rows, in memory, in a tree (SQLite) |
| `reading` | rows | decisions with the status of their records, closures |
| `locate` | a key | the decisions that carry it |
| `commit` | batches and ticks | answers, when they are durable |
| `engine` | batches from any thread | answers; one writer, its queue, its timer |
| `archive`, `http`, `parquet` | output records | written, to be tried again, or refused |
| `delivery` | decisions | records in an archive outside the store, in order |
| `replay` | a log | everything that follows from it |
| `export` | the log of a live store | lines that `replay` reads |
| `queries`, `settle` | questions | closures, rejects, timelines; counts of billable facts |
| `placements` | placements as the writer appended them | the tree that settlement looks them up in |
| `apps` | apps | keys, and whom a key speaks for |
| `retention` | what is past its time | nothing, in bounded bites |
"""
