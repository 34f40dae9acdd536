"""Turns a leased job into files and `worker.*.completed`; one module per kind of worker (C§2.5, C§5).

| file | in | out |
|---|---|---|
| `job_request` | a job, its prompt, its inputs | what every executor gets and gives |
| `model_client` | a request to a model server | its answer, or a code that says whether to ask again |
| `llm` | a shot's text and picture | the staging: the picture, perhaps better |
| `audio` | sentences | a WAV and its timing |
| `lipsync` | phonemes | mouth shapes |
| `video` | staging, timing, mouth shapes | a clip |
| `worker_loop` | a kind of worker | claims, heartbeats, execution, the report |
"""
