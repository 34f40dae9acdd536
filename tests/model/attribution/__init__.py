"""A second, deliberately simple reading of Module F (§3.8 and rulings A1-A4, F1-F23), without a line of `patra`.

It is slow, keeps everything in dicts and lists, takes one event at a time, and is meant to be read beside the
specification: every rule stands under the number of its paragraph. Where the text leaves a choice, the comment says
CHOICE and what was chosen.

| file | in | out |
|---|---|---|
| `log.py` | text of a replay log | its lines, strictly read |
| `instants.py` | RFC 3339 text | microseconds, and back |
| `envelope.py` | any JSON value | the code of its refusal, or nothing (F11) |
| `checks.py` | one event of a well-formed batch | a rejection code, or the event normalised (F2, steps 1-6) |
| `keys.py` | a normalised event | computed key, dedup key, the keys derived from it (F7) |
| `output.py` | decisions | facts, audits and records in the fields of §3.8.21 and §3.8.26 |
| `closures.py` | an event past the ledger | its closure moved, its facts and audits (F13-F18) |
| `module_f.py` | lines | what Module F answers and keeps |
"""

from tests.model.attribution.log import read_log
from tests.model.attribution.module_f import ModuleF, run
from tests.model.attribution.output import Output

__all__ = ["ModuleF", "Output", "read_log", "run"]
