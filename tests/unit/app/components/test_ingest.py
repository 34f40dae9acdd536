"""Every setting of ingest changes what is decided, and every metric of ingest moves with what it counts."""

import ast
from pathlib import Path

import msgspec
import pytest

from patra.ingest.operations.alerting.monitor import Watch
from patra.kernel.telemetry import REGISTRY
from tests.unit.app.components.ingest_cases import (
    CASES,
    GAUGES,
    METRIC_TESTS,
    METRICS,
    SECTIONS,
    TESTS,
    WATCHED,
    said,
)
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import as_json, site

ROOT = Path(__file__).parents[4]


def test_every_setting_has_a_case_or_a_test_that_sets_it() -> None:
    every = {f"{name}.{field.name}" for name, kind in SECTIONS.items() for field in msgspec.structs.fields(kind)}
    assert not CASES.keys() & TESTS.keys()
    assert CASES.keys() | TESTS.keys() == every


@pytest.mark.parametrize("key", CASES)
def test_a_setting_changes_what_is_decided(key: str) -> None:
    one, name = CASES[key], key.partition(".")[2]
    before, after = said(key, **one.given), said(key, **(dict(one.given) | {name: one.value}))
    assert before != after
    assert one.observe(before) == one.observe(before), "nothing else changes what is observed"
    assert one.observe(before) != one.observe(after)


def named_test(where: str) -> ast.FunctionDef:
    file, _, name = where.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)


@pytest.mark.parametrize("key", TESTS)
def test_the_test_of_a_setting_sets_it(key: str) -> None:
    given = {node.arg for node in ast.walk(named_test(TESTS[key])) if isinstance(node, ast.keyword)}
    assert key.partition(".")[2] in given


def _samples() -> dict[str, float]:
    found: dict[str, float] = {}
    for metric in REGISTRY.collect():
        for sample in metric.samples:
            if sample.name.startswith("patra_ingest_"):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_a_harvest_moves_its_metrics() -> None:
    before = _samples()
    with site(script=lambda number, _: as_json({}, 429) if number < 3 else None) as s:
        s.load(built({}))
        s.trigger()
        s.drain()
    after = _samples()
    assert {name for name in METRICS if after.get(name, 0.0) <= before.get(name, 0.0)} == set()


def test_gauges_say_what_is_now() -> None:
    labels = {"source": "s", "endpoint": "search", "op": "HARVEST"}
    busy: list[float | None] = []
    with site(script=lambda *_: busy.append(REGISTRY.get_sample_value(GAUGES[0], labels))) as s:
        s.load(built({"rateLimit": {"refillRatePerSec": 4}}))
        s.trigger()
        s.drain()
    assert set(busy) == {1.0}
    assert [REGISTRY.get_sample_value(name, labels) for name in GAUGES] == [0.0, 4.0]


def test_the_watch_says_what_waits_what_is_left_and_how_far_behind_it_is() -> None:
    labels = {"source": "s", "endpoint": "search", "op": "HARVEST"}
    queued, budget, lag = WATCHED
    with site() as s:
        s.load(built({"rateLimit": {"quotaDaily": 1000, "quotaReserve": 0.0}, "window.maxWindow": "P1D"}))
        s.trigger()
        watch = Watch(s.db, s.clock)
        watch.run_once()
        before = [REGISTRY.get_sample_value(name, labels) for name in (queued, budget)]
        s.drain()
        watch.run_once()
        after = [REGISTRY.get_sample_value(name, labels) for name in (queued, budget)]
        [(namespace, mark)] = s.rows("SELECT namespace_key, normalized_instant FROM ing_cursor")
        behind = REGISTRY.get_sample_value(lag, {**labels, "ns": namespace})
        assert (before[0], after[0]) == (2.0, 0.0)
        assert before[1] is not None
        assert after[1] is not None
        assert 0 < after[1] < before[1] < 1000
        assert behind == (s.clock.now() - mark) / 1_000_000


@pytest.mark.parametrize("name", METRIC_TESTS)
def test_the_test_of_a_metric_asserts_it(name: str) -> None:
    counts, where = METRIC_TESTS[name]
    test = named_test(where)
    reads = {node.id if isinstance(node, ast.Name) else node.attr for node in ast.walk(test)
             if isinstance(node, ast.Name | ast.Attribute)}  # fmt: skip
    assert counts in reads
    assert any(isinstance(node, ast.Assert) for node in ast.walk(test))


def test_every_metric_of_ingest_is_moved_or_read_by_a_test() -> None:
    moved = {name.removesuffix("_total").removesuffix("_count") for name in METRICS}
    every = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("patra_ingest_")}
    assert {*moved, *GAUGES, *WATCHED, *METRIC_TESTS} == every
