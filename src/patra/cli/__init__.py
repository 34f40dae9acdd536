"""The command line, one file a command or group; every file but `main` is imported only when its command runs.

| file | in | out |
|---|---|---|
| `main` | the arguments | the command that they name, and its exit code |
| `options` | `--config`, `--json` | settings, a `Patra`, printed values |
| `process` | a `Patra` | a process that serves and works until a signal ends it |
| `up` `web` `work` | | everything, the HTTP interface alone, loops alone |
| `config` `migrate` `doctor` `token` `audit` `outbox` | | the installation, looked at and looked after |
| `demo` | | all of it on a temporary store |
| `reference` | declarations of the code | the reference pages of the documentation |
"""
