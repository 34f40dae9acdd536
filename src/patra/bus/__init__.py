"""The bus: any module can publish and consume; nobody can break a contract, lose an event, or do an effect twice.

Folders in the order in which an event passes; a later one may import an earlier one.

| folder or module | for |
|---|---|
| `contracts/` | the shipped contracts, `EVENT_TYPE.yaml` each: who may publish (C§5), payloads (C§2) |
| `catalogue/` | contracts of event types, schemas, versions, evolution, reason codes |
| `publishing/` | envelopes, CloudEvents, the decision to publish |
| `consuming/` | consumers, order and retries, dead letters, replay, freezes |
| `store/` | rows: the only modules that run SQL |
| `adopted_catalogue` | what a process may publish by the catalogue that its store has adopted (B8) |
| `bus` | publish and subscribe on one transaction |
| `dispatch/` | handlers run, each effect once and in order per key |
| `transports/` | outbox, NATS, webhooks, notification of waiting workers |
| `operations`, `bulk_acts` | what operators may do: one by one, and to all that a query finds |
| `timeline`, `tail` | the history of an event; events as they come |
| `last_handled` | a dead letter beside the last event of its type that its group handled |
| `asyncapi` | AsyncAPI 3 and pages for people |
| `runtime`, `embedded` | the bus with its loops; the bus in a program of your own |
"""
