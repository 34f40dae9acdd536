"""For operators: what can be asked, what raises an alert, replay, retention.

| module | for |
|---|---|
| `reads/` | read models of plans, tasks, runs and batches; the black box (ch. 14.7, 14.9.1) |
| `alerting/` | alerts and thresholds (ch. 14.8, 12.6) |
| `coverage`, `rereads` | windows read and whether they add up (I10); what re-reads found (I14) |
| `replay`, `replay_comparison`, `dry_run` | a batch done again, compared, nothing written (ch. 14.9.2) |
| `quarantine` | the isolation store (ch. 12.5): records set aside, and what is decided about them |
| `requeue` | failed tasks tried again together (ch. 5.9) |
| `retention`, `history`, `history_place` | rows past their retention deleted; history moved to files (ch. 14.11) |
| `try_source`, `trial/` | one polite request, pages and details, bounds |
| `live_checks`, `record_exchange` | checks by a person; a recorded exchange |
"""
