"""Read models of the running side (ch. 14.7): nothing is written.

| module | for |
|---|---|
| `listing` | lists paged by key, each page by an index (ch. 13.6) |
| `read_models` | every list that can be asked for, over HTTP and on the command line |
| `views`, `drilldown` | plans, tasks, queues; one task with its runs, one run with its batches |
| `lineage` | rows of the chain trigger → plan → slice → task → run → batch → record |
| `rates` | rates allowed and used, quotas, cool-downs (ch. 14.12) |
| `quota_limits` | how much of a quota there is, and when it is used up |
| `blackbox` | the evidence of a batch (ch. 14.9.1) |
| `legible_rows` | instants as text, JSON as values; nothing secret or personal in what is handed on (ch. 14.10) |
"""
