"""The bus: any module can publish and consume; nobody can break a contract, lose an event, or do an effect twice.

Read in the order in which an event passes. Everything down to `freeze` is pure: data and `now` in, decisions out.

| file | in | out |
|---|---|---|
| reasons | | every code, and when it is given |
| versions | `1.2`, `>=1,<2` | versions and ranges that compare |
| schema, shape | a JSON Schema | judges of payloads: one that explains, fast ones |
| catalogue | YAML contracts | event types: producer, versions, retries, order, retention |
| evolution | the released catalogue and the next | what the next may not change |
| envelope, cloudevents | bytes | an envelope, or a refusal with its place; the same as CloudEvents 1.0 |
| publish | envelopes, what the store knows | published, duplicate, or refused |
| delivery | events, groups, failures | who gets what, what is next in line, when it comes back |
| deadletter, replay, freeze | failures, operators' words | records, moves, frozen types |
| store/ | all of the above | rows |
| consumer | a function | a consumer of a group |
| bus | a catalogue, a transaction | published events, subscriptions |
| settlement | what became of events | lines, letters, freezes |
| solitude | steps, trials | steps together, a suspect's trial alone |
| dispatcher | a group's line | handlers run, each effect once, in order per key |
| worker | leased events | long handlers run and renewed, results fenced |
| operations | an operator's word | replay, discard, pause, freeze, each with who did it |
| timeline, tailing | a key; a place in the log | an event's story; events as they come |
| transports/ | published events | the same events in the lines of the groups, here or on another store |
| webhook | events | signed requests to endpoints of others |
| pages | a catalogue | AsyncAPI 3, pages for people |
| runtime | a store, settings | the bus with its duties |
"""
