"""What needs a person, put together from the queries of all engines.

| module | what it knows |
|---|---|
| `need` | one such thing: what, why, since when, and what resolves it |
| `alert_places` | where an alert can be dealt with |
| `needs_now` | all of them now, each once |
"""
