"""The kernel: five primitives (canonical, machine, ledger, outbox, leases) and what they stand on.

Read in this order; a later file may import an earlier one, never the other way.

| file         | in                                   | out                                                      |
|--------------|--------------------------------------|----------------------------------------------------------|
| errors.py    | what went wrong                      | one exception tree, Transient apart from Permanent       |
| reason.py    | a code of the specification          | the code with one line on when it is given               |
| citations.py | a text that cites the specification  | the text for readers who do not need that                |
| canonical.py | a JSON value                         | its RFC 8785 bytes, its sha256                           |
| clock.py     | RFC 3339, ISO 8601                   | microseconds, and back                                   |
| ids.py       |                                      | a UUIDv7                                                 |
| files.py     | bytes                                | a file, there whole: in a folder or in object storage    |
| pattern.py   | a regular expression of others       | a matcher whose time grows only with the text            |
| retry.py     | an attempt's number, jitter          | how long to wait                                         |
| safety/      | URLs, addresses, untrusted texts     | strict URLs, allowed connections, texts without secrets  |
| telemetry/   | what happened                        | metrics, log lines, spans                                |
| db/          | a URL; named SQL, rows               | short transactions on SQLite or PostgreSQL               |
| machine.py   | a state and an event                 | the next state; rows moved by compare-and-set, journaled |
| ledger.py    | keys, fingerprints, now, windows     | first, duplicate, conflict or new cycle, for each        |
| outbox_messages.py | what a receiver answers       | when a message is sent again, or never                   |
| outbox.py    | messages in the caller's transaction | deliveries, in order within a group, at least once       |
| leases.py    | a holder, a number, now              | work of one holder, partitions taking turns; a fencing token |
| testing.py   | instants that a test sets            | a clock that stands still until it is moved              |
"""
