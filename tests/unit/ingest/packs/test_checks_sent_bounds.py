"""The end of a window must be sent as finely as `window.precision` says: what it leaves out would be lost (I11)."""

import json

import pytest

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, check_pack, compile_spec
from patra.ingest.packs.problems import Problem, Severity
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from tests.unit.ingest.sample_packs import loaded_text

SECONDS = "${formatDateTime(window.until, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")}"
MILLIS = "${formatDateTime(window.until, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")}"
MINUTES = "${formatDateTime(window.until, 'yyyyMMddHHmm')}"
DATES = "${formatDateTime(window.until, 'yyyy-MM-dd')}"
MONTHS = "${formatDateTime(window.until, 'yyyy-MM')}"
EPOCH_S = "${formatDateTime(window.until, 'EPOCH_S')}"
EPOCH_MS = "${formatDateTime(window.until, 'EPOCH_MS')}"

PACK = """
pack: 1
source: sent
version: "1"
title: Sent
hosts: [sent.example.org]
endpoints:
  search:
    method: GET
    path: /search
    params:
      fine: {default: %(fine)s}
    http:
      baseUrl: https://sent.example.org
      queryTemplate:
        from: ${window.from}
        until: %(until)s
        page: ${page.no}
        size: ${page.size}
    %(expr)s
    pagination: {type: PAGE, base1: true, pageSize: 10}
    ordering: {orderBy: updated asc, stable: true}
    window: {supportsUpdatedSince: true, watermarkKey: updated, align: hour, minWindow: PT1H, maxWindow: P1D, initial: P1D%(window)s}
    rateLimit: {refillRatePerSec: 1, burstCapacity: 1}
    response: {itemsPath: $.items, idPath: $.id, updatedAtPath: $.updated, totalPath: $.total}
    output: {fields: {title: $.title}}
"""


def text(until: str, bounds: str | None, precision: str = "millisecond", *, fine: str = "", expr: str = "{}") -> str:
    declared = "" if bounds is None else f", bounds: {bounds}, precision: {precision}"
    given = {"until": json.dumps(until), "window": declared, "fine": fine or "x", "expr": f"expr: {expr}"}
    return PACK % given


def wrong(pack: str) -> list[Problem]:
    return [one for one in check_pack(loaded_text(pack)) if one.severity is Severity.ERROR]


@pytest.mark.parametrize("bounds", ["inclusive", "exclusive"])
@pytest.mark.parametrize(
    ("until", "precision", "unit"),
    [
        (SECONDS, "millisecond", "second"),
        (EPOCH_S, "millisecond", "second"),
        (MINUTES, "second", "minute"),
        (DATES, "millisecond", "day"),
        (DATES, "second", "day"),
        (MONTHS, "day", "month"),
        (SECONDS.replace("window.until", "window.to"), "millisecond", "second"),
    ],
)
def test_an_end_that_is_sent_more_coarsely_than_declared_is_refused_where_it_stands(
    until: str, precision: str, unit: str, bounds: str
) -> None:
    pack = text(until, bounds, precision)
    (problem,) = wrong(pack)
    assert (problem.code, problem.path) == (Reason.WINDOW_INVALID, "endpoints.search.http.queryTemplate.until")
    assert problem.line == pack[: pack.index("        until:")].count("\n") + 1
    assert f"sent in whole {unit}s" in problem.message
    assert f"says {precision}" in problem.message
    assert f"write it down to the {precision}" in problem.advice


@pytest.mark.parametrize(
    ("until", "bounds", "precision"),
    [
        (MILLIS, "inclusive", "millisecond"),
        (EPOCH_MS, "exclusive", "millisecond"),
        ("${window.until}", "inclusive", "millisecond"),
        (MILLIS, "inclusive", "second"),
        (SECONDS, "inclusive", "second"),
        (EPOCH_S, "exclusive", "second"),
        (DATES, "inclusive", "day"),
        (SECONDS, None, ""),
        (DATES, None, ""),
    ],
)
def test_an_end_that_is_sent_as_declared_or_not_declared_is_fine(
    until: str, bounds: str | None, precision: str
) -> None:
    assert wrong(text(until, bounds, precision)) == []


def test_a_named_expression_that_drops_the_milliseconds_is_found() -> None:
    expr = json.dumps({"vars": {"end": DATES}})
    (problem,) = wrong(text("${expr.end}", "inclusive", expr=expr))
    assert "sent in whole days" in problem.message


def test_what_a_parameter_decides_is_judged_with_its_value() -> None:
    until = "${params.fine == 'no' ? formatDateTime(window.until, 'yyyy-MM-dd') : window.until}"
    pack = loaded_text(text(until, "inclusive"))
    assert [one for one in check_pack(pack) if one.severity is Severity.ERROR] == []
    fine = compile_spec(pack, "search", Operation.HARVEST, Overrides(params={"fine": "yes"}))
    coarse = compile_spec(pack, "search", Operation.HARVEST, Overrides(params={"fine": "no"}))
    assert fine.spec is not None
    assert coarse.spec is None
    assert [one.code for one in coarse.problems if one.severity is Severity.ERROR] == [Reason.WINDOW_INVALID]


@pytest.mark.parametrize("name", bundled.names())
def test_every_shipped_pack_sends_what_it_declares(name: str) -> None:
    assert wrong(bundled.text(name)) == []
