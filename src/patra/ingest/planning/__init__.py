"""From a trigger to queued tasks (ch. 5.3, 8); the planner sends no requests (I3).

| module | for |
|---|---|
| `trigger`, `schedule`, `own_schedules` | triggers (ch. 5.2.1); ticks that are due; schedules of operators |
| `schedule_run` | a schedule that is run by hand or by a timer, noted like a tick |
| `window_intent`, `earlier_watermark` | which window is planned (ch. 6); after a change of watermark |
| `update_candidates` | records that an UPDATE fetches again (ch. 4.14, 6.3.2) |
| `slicing/`, `slicer` | windows cut into slices, pure; slices and tasks written, until READY (ch. 8.2, 8.5, 5.3.6) |
| `limits/` | quota and budget, back-pressure, cost (ch. 4.12, 5.7, 4.16) |
| `planner`, `store` | all of it, once per key; its SQL |
| `plan_rows` | rows of plans, slices and tasks; remarks of a plan, its namespace too (ch. 7, 5.3.6, 14.3.5) |
| `snapshot_cache` | compiled snapshots kept for the next trigger (ch. 3.7) |
| `reslice` | online re-slicing (ch. 8.4) |
| `states` | state machines of plans, slices and tasks (ch. 7.9) |
| `operations` | what operators may do to plans, tasks and sources (ch. 5.9) |
"""
