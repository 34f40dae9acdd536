"""For each reason code of ingest the test that asserts it, or a small case here that meets it."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from patra.ingest.http.client import Outgoing
from patra.ingest.operations.alerting.acknowledgements import silence_alert
from patra.ingest.operations.replay import replay
from patra.ingest.packs.compiler import check_pack
from patra.ingest.planning import operations, own_schedules
from patra.ingest.planning.schedule import Scheduled
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid
from patra.kernel.reason import ReasonCode
from tests.support.hostile_provider import Provider, Reply
from tests.unit.ingest.packs.effects import observe
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.pack import DAILY
from tests.unit.ingest.packs.effects.stand_in import DAY, MINUTE, NOW, Site, as_json, loaded_tree, site, spread

TESTS = Path(__file__).parents[3]
CODE = re.compile(r"i_[a-z][a-z0-9_]*")

Meet = Callable[[], set[str]]
"""Gives the codes that a case meets."""


@cache
def asserting_tests() -> dict[str, str]:
    """The first test that fails where a code, by `Reason.NAME` or by its text, does not come.

    The code stands in an assertion that something is there, in the values that a loop of the test asserts, or in its
    parameters; a test that only says a code in passing, or that it must not come, does not count.
    """
    texts = {f"{kind.__name__}.{one.name}": one.value for kind in (Reason, RunReason) for one in kind}
    known = set(texts.values())
    found: dict[str, str] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if not {"ingest", "app", "cli", "e2e"} & set(path.parts):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        tables = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                where = f"{path.relative_to(TESTS.parent)}::{node.name}"
                for part in _claims(node, tables):
                    for code in _codes(part, texts) & known:
                        found.setdefault(code, where)
    return found


def _claims(test: ast.FunctionDef, tables: dict[str, ast.expr]) -> Iterator[ast.AST]:
    """What a test asserts, its parameters, and what its loops go through where they assert."""
    for decorator in test.decorator_list:
        yield decorator
        yield from (tables[one.id] for one in ast.walk(decorator) if isinstance(one, ast.Name) and one.id in tables)
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            yield from _affirmed(node.test)
        elif isinstance(node, ast.For) and any(isinstance(one, ast.Assert) for one in ast.walk(node)):
            yield node.iter


def _affirmed(test: ast.expr) -> Iterator[ast.AST]:
    """The parts of an assertion that say that something is so, and not that it is not."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            pass
        case ast.Compare(ops=ops) if any(isinstance(one, ast.NotEq | ast.NotIn | ast.IsNot) for one in ops):
            pass
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _affirmed(value)
        case ast.BoolOp():
            pass
        case _:
            yield test


def _codes(node: ast.AST, texts: dict[str, str]) -> set[str]:
    found: set[str] = set()
    for one in ast.walk(node):
        match one:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                found.add(texts.get(f"{owner}.{name}", ""))
            case ast.Constant(value=str(text)):
                found |= set(CODE.findall(text))
            case _:
                pass
    return found


# --- cases


def seen(s: Site) -> set[str]:
    """Every code that stands in the store."""
    found: set[str] = set()
    tables = s.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in tables:
        for row in s.rows(f'SELECT * FROM "{table}"'):
            found |= {code for value in row if isinstance(value, str) for code in CODE.findall(value)}
    return found


def run(given: dict[str, Any] | None = None, *, act: Callable[[Site], None] | None = None, **how: Any) -> Meet:
    """A plan that is worked to its end, or an act of its own."""

    def meet() -> set[str]:
        trigger = how.get("trigger", {})
        provider = Provider(how.get("items") or spread(), how.get("habits"))
        with site(provider=provider, script=how.get("script", lambda *_: None)) as s:
            s.load(built(given or {}))
            made = s.trigger(**trigger) if how.get("plan", True) else None
            if act is not None:
                act(s)
            s.drain()
            return seen(s) | ({made.outcome.value} if made else set())

    return meet


def checked(given: dict[str, Any]) -> Meet:
    return lambda: {one.code.value for one in check_pack(loaded_tree(built(given)))}


def refused(act: Callable[[Site], object], given: dict[str, Any] | None = None) -> Meet:
    """An act that is refused with a code."""

    def meet() -> set[str]:
        with site() as s:
            s.load(built(given or {}))
            try:
                act(s)
            except Invalid as error:
                return {str(error.code)}
            return set()

    return meet


def expired(s: Site) -> None:
    """A task is taken by an executor that is never heard of again."""
    from patra.ingest.landing import store as landing_store

    s.db.run(lambda tx: landing_store.take(tx, "gone", NOW, MINUTE, 8))
    s.clock.advance(2 * MINUTE)


def replayed(s: Site) -> set[str]:
    """A batch whose stored request is not the one that its snapshot renders."""
    s.trigger()
    s.drain()
    change = 'UPDATE ing_task_run_batch SET request_digest = replace(request_digest, \'"hash":"\', \'"hash":"0\')'
    s.db.run(lambda tx: tx.execute(statement("test", change), {}))
    run_id = s.rows("SELECT run_id FROM ing_task_run")[0][0]
    report = replay(s.db, s.services, run_id, 1, lambda pause: bool(s.clock.advance(pause)) or True)
    assert report is not None
    return {report.conclusion.value}


def replay_case() -> set[str]:
    with site() as s:
        s.load(built({}))
        return replayed(s)


def cancelled_on_the_way() -> set[str]:
    """A plan is cancelled while a page of it is fetched."""
    with site() as s:
        s.load(built({}))

        def script(number: int, _: Outgoing) -> Reply | None:
            if number == 2:
                plan = s.rows("SELECT plan_id FROM ing_plan")[0][0]
                s.db.run(lambda tx: operations.cancel_plan(tx, plan, why="enough", now=NOW))

        s.transport._script = script
        s.trigger()
        s.drain()
        return seen(s)


def unsigned() -> set[str]:
    """The hook that signs is not there any more when a run begins."""
    with site() as s:
        s.load(built({}))
        s.trigger()
        change = 'UPDATE ing_plan SET expr_proto_snapshot = replace(expr_proto_snapshot, \'"signingHook":null\', \'"signingHook":"gone"\')'
        s.db.run(lambda tx: tx.execute(statement("test", change), {}))
        s.drain()
        return seen(s)


def unreadable_pack(s: Site) -> None:
    s.db.run(lambda tx: tx.execute(statement("test", "UPDATE reg_provenance SET cfg = '{'"), {}))


def scheduled(given: dict[str, Any], act: Callable[[Site], None] = lambda _: None, hours: int = 96) -> Meet:
    """What a schedule's ticks come to."""

    def meet() -> set[str]:
        with site() as s:
            s.load(built(given))
            act(s)
            for _ in range(2):
                s.planner.run_once()
                s.clock.advance(hours * 60 * MINUTE)
            s.planner.run_once()
            return seen(s)

    return meet


def own() -> Scheduled:
    return own_schedules.schedule_of("s/own", {"endpoint": "search", "operation": "HARVEST", "cron": "0 3 * * *"}, None)


SMALL = {"window.maxWindow": "PT1H"}
UNREADABLE_SCHEDULE = {"/schedules": {"daily": DAILY["/schedules"]["daily"] | {"endpoint": "nothing"}}}
PARTITION_OF_TWO = SMALL | {"planning": {"inventoryLimit": 2}}

CASES: dict[ReasonCode, Meet] = {
    Reason.PACK_BAD_REFERENCE: checked(UNREADABLE_SCHEDULE),
    Reason.EXTENSION_UNKNOWN: checked({"auth": {"type": "CUSTOM", "signingHook": "nobody_has_it"}}),
    Reason.SCHEDULE_INVALID: checked({"/schedules": {"x": DAILY["/schedules"]["daily"] | {"timezone": "Mars"}}}),
    Reason.SCHEDULE_UNKNOWN: refused(lambda s: s.db.read(lambda tx: operations.known_schedule(tx, "no"))),
    Reason.ALERT_UNEXPLAINED: refused(
        lambda s: s.db.run(lambda tx: silence_alert(tx, "incomplete", "s", by="t", why=" ", until=NOW + DAY, now=NOW))
    ),
    Reason.SLICED: run(),
    Reason.RESUMED: run(PARTITION_OF_TWO),
    Reason.TICK_MISSED: scheduled({"/schedules": {"daily": DAILY["/schedules"]["daily"] | {"missed": "NONE"}}}),
    Reason.SCHEDULE_EXISTS: refused(
        lambda s: [s.db.run(lambda tx: own_schedules.add(tx, own(), by="t", now=NOW)) for _ in range(2)]
    ),
    Reason.RESLICED: run({"limits": {"maxDepth": 20}}),
    Reason.OPERATOR: run(act=lambda s: s.db.run(lambda tx: operations.pause(tx, "s", "", by="t", why="", now=NOW))),
    RunReason.PACK_RULE: run({"errors.odd": {"status": [400], "outcome": "L2"}}, script=lambda n, _: as_json({}, 400)),
    RunReason.SCHEMA_CHANGED: run(script=lambda *_: as_json({"other": []})),
    RunReason.RECORD_TOO_LARGE: lambda: {
        bad[1].value for bad in observe.record({"title": "x" * 17_000_000})(built({}))[1]
    },
    RunReason.NEXT: run(),
    RunReason.CANCELLED: cancelled_on_the_way,
    RunReason.SIGNING_FAILED: unsigned,
    Reason.TRIGGER_FAILED: scheduled(DAILY, unreadable_pack),
    RunReason.LEASED: run(),
    RunReason.STARTED: run(),
    RunReason.LEASE_EXPIRED: run(act=expired),
    RunReason.PUT_BACK_QUOTA: run({"rateLimit": {"quotaDaily": 2}}),
    RunReason.NOT_FORWARD: run(),
    RunReason.REPLAY_REQUEST: replay_case,
}
"""Codes that no test names elsewhere, and a case that meets each."""

RUNNING = "tests/contract/ingest/running"
NAMED: dict[ReasonCode, str] = {
    Reason.RESLICE_REFUSED: "tests/contract/ingest/test_planner.py::test_the_smallest_window_cannot_be_cut_and_becomes_a_hole",
    RunReason.DRIFTED: f"{RUNNING}/test_completeness.py::test_a_list_that_loses_its_next_link_before_the_total_is_incomplete",
    RunReason.PROBE: "tests/unit/ingest/extraction/test_pagination.py::test_the_last_page_is_probed_once_where_tokens_get_lost",
    RunReason.KEY_RANGES: f"{RUNNING}/test_key_ranges.py::test_a_window_that_is_too_deep_is_read_in_ranges_of_its_key",
    RunReason.END_ORDERED: f"{RUNNING}/test_page_slices.py::test_a_list_in_the_order_of_its_watermark_is_read_no_further_than_the_window",
}
"""Codes that are seen in what they lead to: the test that sees it."""
