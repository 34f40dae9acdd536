"""A job in hand goes in; files and `worker.*.completed` come out. One module a kind of worker (C§2.5, C§5).

| file | in | out |
|---|---|---|
| `order` | a job, its prompt, its inputs | what every executor gets and gives |
| `server` | a request to a model server | its answer, or a code that says whether to ask again |
| `llm` | a shot's text and picture | the staging: the picture, perhaps better |
| `audio` | sentences | a WAV and its timing |
| `lipsync` | phonemes | mouth shapes |
| `video` | staging, timing, mouth shapes | a clip |
| `desk` | a kind of worker | claims, heartbeats, execution, the report |
"""
