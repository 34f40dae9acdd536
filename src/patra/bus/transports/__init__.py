"""How events get from a publish to the lines of the groups, and how waiting workers hear of it.

| | store (default) | NATS JetStream |
|---|---|---|
| way of an event | into the groups' lines, as it is published | outbox → stream → receiver → the groups' lines |
| consumers on another store | no | yes, each store reads the stream from its own position |
| duplicates on the way | none | possible; the stream, the position and the inbox each take them out |
| order per key | kept | kept: the outbox sends a key in order, the stream is a log, one receiver at a time moves on |
| effect | once, in the inbox's transaction | the same |
| retries, dead letters, replay, pause | in the store | the same rows, the same code |
| wake-up | at the commit, who has to act; of other processes `LISTEN`, SQLite's file | the same; the stream pushes |
| waits for the disk | the publisher's commit, the effect's | the same two: the rest can be done again |

| file | in | out |
|---|---|---|
| notifier | commits of other processes | a worker that wakes |
| sender | published events, the outbox | messages that a broker has confirmed |
| receiver | messages of a stream, a position | events and deliveries in this store |
| nats_connection | addresses of a cluster | a connection for threads |
| nats | bytes | a JetStream stream, written and read |
| webhook, webhook_secrets | events, a secret | signed HTTP requests |
"""
