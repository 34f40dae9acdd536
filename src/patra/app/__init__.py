"""Where a Patra is configured, built and kept running.

| file | in | out |
|---|---|---|
| `references` | `env:NAME`, `file:PATH` | the secret that is referred to |
| `settings` | | every setting: name, type, default, description |
| `sources` | a settings file, variables, options | the settings, and where each value came from |
| `actor` | | who acts, and how far they may go |
| `audit` | an operator's act | one row in the transaction of the act |
| `loops` | `run_once` functions | supervised threads that say how they fare |
| `parts` | | what an engine hands over: loops, checks, how it stops |
| `attribution_events`, `ingest_events` | what an engine says of its work | events in the words of the bus |
| `ingest_alerts` | alerts that fire or are over | calls of a webhook, e-mails |
| `attribution`, `bus`, `ingest`, `studio` | the common ground | the engine, its loops and checks |
| `undelivered` | an operator's question | what the outbox could not deliver, and another try for it |
| `wiring` | settings | a whole `Patra` |
| `doctor` | settings | what is well, what is broken, what to do |
"""
