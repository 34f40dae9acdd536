"""Module F, the event and attribution processor: events that may arrive twice, late or never become facts to bill.

| file | in | out |
|---|---|---|
| `reasons` | | every code, and when it is given |
| `contract` | | the eight event types: fields, tiers, windows, versions |
| `intake` | bytes | an envelope with its events, or a refusal |
| `keys` | fields | dedup, closure, billing, attribution and record keys |
| `validate` | one event | a checked event, or the code of the first check that fails |
| `batch` | bytes and an instant | checked events in the order of decision |
| `dedup` | key and fingerprint | first, new cycle, duplicate, conflict |
| `subject` | an event | whom a decision is about |
| `closure` | a closure and an event | the ruling, and the closure after it |
| `facts` | a ruling | the decision; billable fact, attribution fact, audit |
| `records` | a decision | output records for the archive |
| `ack` | answers to events | the answer to the batch |
| `decide` | state, batches, ticks | answers and changes: the whole of it, without a store |
| `store` | changes | rows |
| `engine` | batches | answers, when they are durable |
| `replay` | a log | everything that follows from it |
"""
