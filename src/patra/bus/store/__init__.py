"""What the bus keeps: the only modules of it that run SQL.

| file | holds |
|---|---|
| events | the log of events, who gets them, refusals |
| groups | consumer groups, subscriptions, webhooks, operators' acts, the released catalogue |
| deliveries | what each group has still to handle, and its inbox |
| letters | dead letters and frozen types |
"""
