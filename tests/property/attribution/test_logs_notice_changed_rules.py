"""A generator that never meets a rule proves nothing about it: each rule, changed in the model, must be noticed.

The model is copied, one expression of it replaced, and the seeded logs run through both until they differ.
"""

import importlib
from functools import cache
from pathlib import Path

import pytest

import tests.model.attribution
from tests.model.attribution import run
from tests.property.attribution.logs import seeded_log

SOURCE = Path(tests.model.attribution.__file__).parent
LOGS = 400

CHANGES = [
    ("checks.py", "at - received > 24 * HOUR", "at - received >= 24 * HOUR"),
    ("checks.py", "received - at > window_of", "received - at >= window_of"),
    ("checks.py", "1 <= len(value) <= 1024", "1 <= len(value) < 1024"),
    ("checks.py", "1 <= len(value) <= 1024", "1 <= len(value) <= 1025"),
    ("checks.py", 'BILLING = ("impression", "click", "postback")', 'BILLING = ("impression", "click")'),
    (
        "checks.py",
        'return not (event["eventType"] == "error" and event.get("renderAttemptId") is None)',
        'return event["eventType"] != "error"',
    ),
    ("checks.py", 'event.get("renderAttemptId") is None)', 'not is_text(event.get("renderAttemptId")))'),
    ("checks.py", "return at is None or (isinstance(at, str) and not is_text(at))", "return not is_text(at)"),
    ("checks.py", "if event_id is not None and not is_legal_id(event_id):", "if not is_legal_id(event_id):"),
    ("checks.py", "isinstance(value, int) and not isinstance(value, bool)", "isinstance(value, int)"),
    (
        "checks.py",
        '"isKeyIgnored": idempotency is not None and not is_legal_id(idempotency)',
        '"isKeyIgnored": bool(idempotency) and not is_legal_id(idempotency)',
    ),
    ("checks.py", 'event["eventId"] if isinstance(event["eventId"], str) else ""', 'str(event["eventId"])'),
    ("checks.py", "scope is not None and scope not in", "scope and scope not in"),
    ("checks.py", "[0-9A-Fa-f]{12}", "[0-9a-f]{12}"),
    (
        "checks.py",
        'event.get("errorClass") == "terminal" and closure_key is not None',
        'event.get("errorClass") == "terminal"',
    ),
    ("module_f.py", '<= row["window"]', '< row["window"]'),
    ("module_f.py", '<= row["window"]', '<= window_of(event["eventType"])'),
    ("module_f.py", 'row["line"] == self.line_number', 'row["first"] == event["received"]'),
    ("module_f.py", 'cycle = row["cycle"] + 1', "cycle = 2"),
    ("module_f.py", 'cycle = row["cycle"] + 1', "cycle = 1"),
    ("module_f.py", 'keys.in_cycle(base, row["cycle"])', "base"),
    ("module_f.py", 'waits = event["isTerminalError"] and event["closureKey"] in impressions', "waits = False"),
    (
        "module_f.py",
        'waits = event["isTerminalError"] and event["closureKey"] in impressions',
        'waits = event["isTerminalError"]',
    ),
    ("module_f.py", 'event["eventIdText"], index', "index"),
    ("module_f.py", 'event["at"], event["eventIdText"]', '0, event["eventIdText"]'),
    ("module_f.py", 'closure is not None and closure["appId"] != event["appId"]', "False"),
    ("module_f.py", '            self.closures.apply_deadlines(received, only=event["closureKey"])\n', ""),
    ("module_f.py", 'apply_deadlines(received, only=event["closureKey"])', "apply_deadlines(received)"),
    (
        "closures.py",
        'if closure["state"] == "open" and closure["deadline"] <= now',
        'if closure["state"] == "open" and closure["deadline"] < now',
    ),
    ("closures.py", 'closure["pending"]["deadline"] <= now', 'closure["pending"]["deadline"] < now'),
    ("closures.py", 'closure["hasBillableClick"] or closure["pending"] is not None', 'closure["hasBillableClick"]'),
    (
        "closures.py",
        'closure["hasBillableClick"] or closure["pending"] is not None',
        'closure["state"] != "closed_failure" and (closure["hasBillableClick"] or closure["pending"] is not None)',
    ),
    (
        "closures.py",
        '        closure["source"] = "system_timeout_synthesized"\n',
        '        closure["source"] = "system_timeout_synthesized"\n        closure["pending"] = None\n',
    ),
    (
        "closures.py",
        '        closure["source"] = "error"\n',
        '        closure["source"] = "error"\n        closure["pending"] = None\n',
    ),
    ("closures.py", '            closure["pending"] = None\n            self.bill', "            self.bill"),
    (
        "closures.py",
        'OPENERS = ("ad_filled", "interaction", "click", "error")',
        'OPENERS = ("ad_filled", "click", "error")',
    ),
    (
        "closures.py",
        'OPENERS = ("ad_filled", "interaction", "click", "error")',
        'OPENERS = ("ad_filled", "interaction", "click", "error", "auction_started")',
    ),
    ("closures.py", '"deadline": event["received"] + TERMINAL_WAIT, "code"', '"deadline": closure["deadline"], "code"'),
    ("closures.py", '"at": deadline,', '"at": opener["at"],'),
    (
        "closures.py",
        '(("success", "closed_failure"), ("failed", "closed_success"))',
        '(("success", "closed_failure"),)',
    ),
    ("closures.py", 'pending["code"], event["received"]', '"f_accepted", event["received"]'),
    ("closures.py", 'if event["isKeyIgnored"]:', 'if event["isKeyIgnored"] and not event["unknownValues"]:'),
    ("keys.py", '"impression": ["creativeId", "renderAttemptId"]', '"impression": ["renderAttemptId", "creativeId"]'),
    ("keys.py", '"global" if event["isGlobal"]', '"Global" if event["isGlobal"]'),
    ("keys.py", 'opener, "failure"', 'opener, "error"'),
    ("envelope.py", "1 <= len(events) <= 100", "1 <= len(events) <= 101"),
    ("envelope.py", 'name != "events" and ', ""),
    ("instants.py", 'if match[8] == "-":', 'if match[8] == "+":'),
]


@cache
def known(seed):
    lines = seeded_log(seed, lines=25, events=7)
    return lines, vars(run(lines))


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=lambda number: f"{CHANGES[number][0]}-{number}")
def test_the_logs_notice_a_changed_rule(number, tmp_path, monkeypatch):
    file, rule, changed = CHANGES[number]
    name = f"changed_model_{number}"
    (tmp_path / name).mkdir()
    for path in SOURCE.glob("*.py"):
        text = path.read_text()
        if path.name == file:
            assert text.count(rule) == 1, "the rule is not where the list of changes says"
            text = text.replace(rule, changed)
        (tmp_path / name / path.name).write_text(text.replace("tests.model.attribution", name))
    monkeypatch.syspath_prepend(tmp_path)
    other = importlib.import_module(name)
    for seed in range(LOGS):
        lines, expected = known(seed)
        try:
            found = vars(other.run(lines))
        except Exception:  # noqa: BLE001  falling over is being noticed
            return
        if found != expected:
            return
    pytest.fail(f"{LOGS} logs did not notice {changed!r} in place of {rule!r}")
