"""Closed lists that everything else uses.

| module | for |
|---|---|
| `codes` | the system dictionary: every closed list of codes (ch. 3.2) |
| `reasons`, `run_reasons` | reason codes of the planning side and of the running side |
| `instants` | instants as providers write them, with their precision (ch. 4.7, I7) |
| `identifiers` | identifiers of works, people and organisations in one form each |
"""
