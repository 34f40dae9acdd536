"""The pure stages: dedup, closure, decision, output records, acknowledgement. No I/O and no clock.

| module | for |
|---|---|
| `dedup` | first, new cycle, duplicate or conflict (§3.8.14, §3.8.15) |
| `closure_rules` | opening, terminal events, conflicts, mapping to facts, billing at most once (§3.8.17 to §3.8.24) |
| `closure_state` | the states of a closure, and the working copy of its row |
| `decide` | all checks that need state, in order; deadlines that an item touches, so that replay equals live (F24) |
| `decisions` | a ruling as it is stored: facts and audit (§3.8.21) |
| `output_records` | records for the archive, and their state machine (§3.8.26, §3.8.27) |
| `ack`, `answer_metrics` | the answer to a batch (§3.8.6, §3.8.7); its metrics |
"""
