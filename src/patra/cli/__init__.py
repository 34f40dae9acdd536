"""The command line, one module or package per command or group; all but `main` are imported when their command runs.

| module | for |
|---|---|
| `main` | the arguments, the command that they name, its exit code |
| `terminal/` | what commands share: options, settings, a `Patra`, tables, empty results, groups |
| `serving/` | `up`, `web`, `work`: processes that serve and work until a signal ends them |
| `installation/` | `config`, `migrate`, `doctor`, `token`, `audit`, `outbox`, `backup`: inspected and maintained |
| `attribution` `ingest/` `bus/` `studio` | the engines |
| `story` `completion` | the timeline of a key; completion of shells |
| `studio_edit` | shots of a run: listed, changed, rendered again |
| `studio_run`, `studio_view` | acts on runs and following them; the progress of a film on a terminal |
| `demo` | all of it on a temporary store |
| `reference` `citations` `machine_svg` | the reference pages of the documentation, from declarations in the code |
"""
