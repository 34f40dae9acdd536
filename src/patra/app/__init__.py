"""Where a Patra is configured, built and kept running.

| folder or module | for |
|---|---|
| `configuration/` | every setting and where its value came from; secrets; what is open to whom; what may be called |
| `access/` | who acts and how far they may go: actors, tokens, sessions of the console, the audit |
| `loops`, `component` | supervised threads; what an engine hands over: loops, checks, how it stops |
| `bridges/` | what one engine reports, carried to the bus, to webhooks or to e-mail |
| `components/` | each engine built from the settings |
| `outbox_admin` | messages that the outbox could not deliver |
| `backup`, `integrity` | consistent copies of a SQLite store and the way back; what in a store is damaged |
| `wiring` | settings in, a whole `Patra` out |
| `postgres_backup` | consistent copies of a PostgreSQL store and the way back |
| `story/` | one timeline across the engines for any key |
| `doctor` | what is well, what is broken, what to do |
"""
