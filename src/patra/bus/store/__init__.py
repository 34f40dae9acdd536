"""What the bus keeps: the only modules of it that run SQL.

| file | holds |
|---|---|
| events | the log of events, who gets them, refusals |
| groups | consumer groups, subscriptions, webhooks, operators' acts, the released catalogue |
| deliveries | what each group has still to handle, and its inbox |
| dead_letters | dead letters and frozen types; the backlog that freezes, without that of endpoints (C§6, B9) |
| hops, rates | what happened to an event in a group; how many events of a type there were lately |
| version_stages | stages of new major versions |
| senders | how committed events leave: into the lines of the groups, or through a broker |
| held_messages, stream_control | messages that wait for a newer catalogue; freezes and catalogues of other stores |
"""
