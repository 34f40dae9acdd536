"""Pure rules of consuming: who gets an event, in which order, and what follows a failure.

| module | decides |
|---|---|
| `consumer` | what a handler is: group, event types, versions, how it is run (C§3) |
| `recipients` | which groups get an event, and in which version (C§4) |
| `delivery_order` | which events of a group are next, in order per key (C§3) |
| `retry_or_dead_letter` | when a failed event is retried; a dead letter, an endpoint suspended (C§6, B5, B9) |
| `dead_letter` | the record of a dead letter, and its states (C§6) |
| `shared_fields` | what the dead letters of one cause have in common and no handled event has |
| `replay` | whether dead letters may be replayed or discarded (C§6) |
| `freeze` | whether publishing of a type freezes by its backlog of dead letters (C§6) |
| `version_stages` | who reads a new major version while it is rolled out (C§4, B8) |
"""
