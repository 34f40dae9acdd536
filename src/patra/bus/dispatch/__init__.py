"""Runs handlers, in the transaction of their effect or under a lease, and records the result of each event.

| module | for |
|---|---|
| `dispatcher` | handlers of a group run on due events: the inbox, each effect once, in order per key (C§3) |
| `long_worker`, `pull` | long handlers, and programs that pull: an event is held by a lease |
| `outcomes` | results written: handled, later, a dead letter, a suspended endpoint, a freeze (C§6, B5, B9) |
| `exclusive_lock` | a suspect is tried alone, so that nothing else can crash its process |
"""
