"""When slices may run and what they cost.

| module | for |
|---|---|
| `quota`, `leg_quotas` | the budgeter: when each slice may run (ch. 4.12); quotas of list and details (ch. 4.10.5) |
| `rate_budget` | what the rate gate can still give a plan (ch. 4.10.6) |
| `back_pressure` | executors slow the planner down (ch. 5.7) |
| `cost` | what a plan will cost, before it is made (ch. 4.16) |
"""
