"""A chapter goes in, a film comes out, and every event tells (C§2, C§5, B6).

The order is that of the loop of C§2: each module consumes what stands before it and is the only producer of its events.

| file | in | out |
|---|---|---|
| `reasons` | | every code of the studio |
| `script/` | chapter text | scenes, shots, prompts |
| `voice/` | sentences | speech, word and phoneme times, mouth shapes |
| `paint/` | a picture in words | frames |
| `film/` | frames, sound, captions | clips, films |
| `artifacts`, `remote` | finished files | content-addressed artifacts with manifests, here or in object storage |
| `contracts` | | contexts, keys, publishing |
| `stages` | | the machines of runs, jobs, hub work and films |
| `store` | rows | structs |
| `profiles` | YAML | model profiles, and who is asked first |
| `gateway` | a chapter | `task.submitted` |
| `planner` | `run.stage.changed` | `plan.shot.generated`, `plan.prompt.generated` |
| `router` | `plan.prompt.generated` | `route.decision.made` |
| `orchestrator` | tasks, routes, results | `run.created`, `run.stage.changed`, `job.created` |
| `hub` | `job.created`, `worker.*.completed` | `job.claimed`, `job.succeeded`, `job.failed` |
| `workers/` | a leased job | files, `worker.*.completed` |
| `composer` | results | the film, `compose.completed`, `artifact.published` |
| `observer` | everything | the story, the costs, `error.recorded` |
| `views`, `pipeline` | all of it | lists for people; the whole studio, its loops |
"""
