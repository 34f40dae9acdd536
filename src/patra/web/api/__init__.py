"""The endpoints, one file an engine: each exports `routes(patra) -> list[Endpoint]`.

| file | in | out |
|---|---|---|
| `operations` | the process itself | health, readiness, metrics, loops, the audit |
"""
