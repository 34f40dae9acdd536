"""The literature ingestion platform (`ingest.zh.md`): packs become plans, plans become tasks, tasks become records.

Planning, from the pack to the queue; the planner never asks the network anything:

| file | in | out |
|---|---|---|
| reasons.py, codes.py | the specification | every reason, every code |
| bits/ | chapter 4 | the strategy bits, each field with its text, default and bounds |
| times.py, paths.py | text, documents | instants; JSONPath and XPath, compiled once |
| values.py, functions.py, expression.py, template.py, names.py | text | closures over declared names; templates |
| cleaners.py | a value | a cleaner one |
| problem.py, kinds.py, shapes.py, pack.py, document.py | YAML | a tree with the place of every part, every problem |
| merge.py | five levels | one tree with the origin of each value |
| checks/ | a draft | the problems of 3.3.3 and 4.17 |
| spec.py, compiler.py, origins.py | pack, endpoint, operation, trigger | the sealed snapshot, or every reason why not |
| registry.py, difference.py, shelf.py | a pack | rows of `reg_*`, and back; what changed |
| escaping.py, request.py | a leg of the snapshot, a place in a list | the request, or why none is sent |
| trigger.py, schedule.py, intent.py | a wish, a cron, the watermark | keys; the window to plan |
| slicing.py, slices.py, budget.py, cutting.py | a window, pages, ids; a quota | slices with keys, and when due |
| machines.py, store.py, plans.py, cutter.py, reslicing.py, planner.py | triggers | plans, slices, tasks |
| operations.py, views.py, reference.py | operators, readers | acts; lists and lineage; pages and JSON Schema |

Running, from the queue to the record; the planner and the executors meet only in the store:

| file | in | out |
|---|---|---|
| rategate.py, ratepolicy.py, gates.py, rategate_redis.py | a request for permits | allow, wait or reject |
| credentials.py, connections.py, transport.py, decoding.py | a request, a permit | an answer, or how it failed |
| splitting.py, classify.py, reading.py, paging.py | an answer | its class; items; the next place in the list |
| wants.py, items.py | an item as it stands in the body | the parts of it that the pack looks for |
| mapping.py, records.py, landing.py | items | records, quarantined ones; new, newer, equal, older |
| cursor.py, watermarks.py | finished windows | cursor events and the forward watermark |
| line.py, fetching.py | a place in a list | its answer, judged |
| course.py, steps.py, setbacks.py | an answer | where it leads: the next place, what is confirmed, a wait, an end |
| evidence.py, commits.py, bookkeeping.py, working.py | a task | batches, each one transaction; the run's end |
| runs.py, running_store.py, healing.py, services.py, measures.py | | states, statements, self-healing, metrics |
| drafting/ | a sample answer | a pack to start from |
| executor.py, trial.py | leases, a pack | finished tasks; one request, tried |
| progress.py, draining.py | a trigger | its own work, done; what is left of it and why |
| blackbox.py, rehearsal.py, replay.py | a run and a batch | its evidence; the same again, compared, nothing written |
| alerts.py, watch.py | the store | gauges; alerts, each told once |
| retention.py | the store | what is past its time goes, in bites |
| works*.py, export.py | records | the common shape, joined works, files |
"""
