"""`./dev check`: code of `src` that nothing in `src` uses, found by vulture. Tests do not count as a use.

What only tests call is removed or wired. Functions that a decorator registers (commands, cleaners, functions of
expressions) are used by their tables. The names below are used from outside, each with its user.
"""

import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[1]
KINDS = {"function", "class", "method", "property", "import"}
"""Fields of structs and members of enums are held by the guards of tests/unit/test_guards.py, not here."""

DECORATORS = ["@*.command", "@*.group", "@*_command", "@_cleaner", "@_function", "@*.pass_context"]

ALLOWED: dict[str, str] = {
    "__getattr__": "patra: names of the public API are loaded when they are used",
    "__init_subclass__": "Python calls it",
    "__dir__": "patra: what `dir(patra)` shows",
    "group_loops": "an engine's own consumers (docs/reference/bus.md)",
    "declare_file": "patra.Bus",
    "run_until_idle": "patra.Bus",
    "binary": "the CloudEvents binary mode, for programs that send it",
    "check_sql": "the CHECK of a state column, for the migrations of an engine",
    "serving": "patra.web: a server in a thread, for programs that embed it",
    "ErrorRetryFile": "named in an annotation",
    "Owner": "named in an annotation",
    "RequestResponseCycle": "named in a cast",
    "hmac_sha256": "patra.ingest.packs.extensions loads it by its name",
    "go_on": "patra.demo loads the parts of a demonstration by their names",
    "_describe_range": "click calls it",
    "format_commands": "click calls it",
    "pack_page": "writes docs/reference/pack.md",
    "expression_page": "writes docs/reference/pack-expressions.md",
    "planning_page": "writes docs/reference/ingest-planning.md",
    "sources_page": "writes docs/reference/sources.md",
    "do_GET": "http.server calls it",
    "do_POST": "http.server calls it",
    "log_message": "http.server calls it",
    "arg_types": "jsonpath-rfc9535 reads it",
    "return_type": "jsonpath-rfc9535 reads it",
    "_get_socket": "smtplib calls it",
    "_new_conn": "urllib3 calls it",
    "send_400_response": "uvicorn calls it",
    "capture_signals": "uvicorn calls it",
}


def unused() -> list[str]:
    """What nothing uses, one line each; and names of the list that are used after all."""
    judge = Vulture(ignore_decorators=DECORATORS)
    judge.scavenge([str(ROOT / "src")])
    found = [item for item in judge.get_unused_code(min_confidence=60) if item.typ in KINDS]
    lines = [
        f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: unused {item.typ} {item.name}"
        for item in found
        if item.name not in ALLOWED
    ]
    stale = sorted(ALLOWED.keys() - {item.name for item in found})
    return lines + [f"tests/dead_code.py: {name} is used now: take it off the list" for name in stale]


if __name__ == "__main__":
    wrong = unused()
    print("\n".join(wrong) or "dead code: none")
    sys.exit(bool(wrong))
