"""An endpoint compiled for use, the fetch of one page, and how it adapts to failures.

| module | for |
|---|---|
| `endpoint_client` | what is compiled once per leg of a snapshot |
| `fetch` | one page of a list, retried with back-off (ch. 4.11, 11.7), or what else is to be done |
| `sender` | sends with permits; reports the result to gate, circuit and health window |
| `resilience` | self-healing: circuit, health window, the matrix of ch. 12.2 |
| `credential_pool` | credentials that stand in for each other |
| `runtime`, `metrics` | what tasks of a process share; metrics by the names of ch. 14.4 |
"""
