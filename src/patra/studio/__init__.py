"""Turns a chapter into a film; every step is an event (C§2, C§5, B6).

The order is that of the loop of C§2: each module consumes what stands before it and is the only producer of its events.

| file | in | out |
|---|---|---|
| `vocabulary/` | | contexts, keys and publishing; the machines of runs, jobs and films; every code of the studio |
| `script/` | chapter text | scenes, shots, prompts |
| `voice/` | sentences | speech, word and phoneme times, mouth shapes |
| `paint/` | a picture in words | frames |
| `film/` | frames, sound, captions | clips, films |
| `storyboard` | a plan | an HTML page with a still of each shot |
| `storage/` | rows, files | structs; content-addressed artifacts with manifests, here or in object storage |
| `profiles` | YAML | model profiles, and who is asked first |
| `gateway` | a chapter | `task.submitted` |
| `planner` | `run.stage.changed` | `plan.shot.generated`, `plan.prompt.generated` |
| `router` | `plan.prompt.generated` | `route.decision.made` |
| `orchestrator`, `job_needs` | tasks, plans, routes, results | `run.created`, `run.stage.changed`, `job.created` |
| `hub` | `job.created`, `worker.*.completed` | `job.claimed`, `job.succeeded`, `job.failed` |
| `heartbeat` | a lease | the lease renewed while work goes on |
| `workers/` | a leased job | files, `worker.*.completed` |
| `film_parts`, `composer` | results | the film, `compose.completed`, `artifact.published`, or `compose.failed` |
| `observer` | everything | the story, the costs, `error.recorded`; also of dead letters |
| `supervisor` | `error.recorded` | ends the run whose events a module gave up |
| `views`, `pipeline` | all of it | lists for people; the whole studio, its loops |
"""
