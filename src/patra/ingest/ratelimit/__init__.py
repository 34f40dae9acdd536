"""Permits for requests (ch. 4.10): one rate for all processes that share a rate key (I12).

| module | for |
|---|---|
| `token_bucket` | pure: allow, wait or reject, and the next state of a bucket |
| `policy` | the rate key and policy of a snapshot; what response headers change |
| `limiter`, `waiters` | the gate of one process; the line of tasks that wait |
| `database`, `redis` | the gate that processes share, in PostgreSQL or Redis |
| `permit_lots` | permits that a process fetched in advance |
| `quota_store` | quotas reserved and used, and providers that are left alone |
"""
