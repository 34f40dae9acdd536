"""A path of a pack cannot keep an executor busy for minutes."""

from typing import Any

import pytest

from patra.ingest.expressions import path_bounds
from patra.ingest.expressions.path_bounds import looks_beyond
from patra.ingest.expressions.paths import compile_path, json_path, parse_xml
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.errors import Invalid

WIDE: dict[str, Any] = {"items": [{"a": [{"b": n}], "c": "x"} for n in range(3000)]}


@pytest.mark.parametrize(
    "source",
    [
        "$..[?count($..*) > 0]",
        "$..[?count(@..[?count($..b) > 0]) > 0]",
        "$.items[?$.items[?@.c == 'y']]",
        "$.items[?length($.items) == 0 || $.items[?@.c == 'y']].a",
    ],
)
def test_a_path_that_looks_at_the_document_for_each_of_its_nodes_is_stopped(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_bounds, "MAX_STEPS", 200_000)
    with pytest.raises(Invalid) as caught:
        json_path(source).find(WIDE)
    assert caught.value.code == "path_too_costly"


def test_paths_that_look_once_are_not() -> None:
    assert len(json_path("$..b").find(WIDE)) == 3000
    assert len(json_path("$.items[?@.c == 'x'].a[?@.b >= 10].b").find(WIDE)) == 2990
    assert len(json_path("$.items[?count(@..b) == 1]").find(WIDE)) == 3000


def test_each_search_has_its_own_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_bounds, "MAX_STEPS", 25_000)
    for _ in range(3):
        assert len(json_path("$..b").find(WIDE)) == 3000


@pytest.mark.parametrize(
    ("source", "beyond"),
    [
        ("//record/id", 0),
        ("//record[@type = 'a//b']/id", 0),
        ("//record[header/id = '1']", 0),
        ("//*[count(//*) > 0]", 1),
        ("//*[count(//*[count(//*) > 0]) > 0]", 2),
        ("*[count(../*) > 0]", 2),
        ("record[following-sibling::record[ancestor::x]]", 2),
    ],
)
def test_what_predicates_look_at_beyond_their_node_is_counted(source: str, beyond: int) -> None:
    assert looks_beyond(source) == beyond


def test_an_xpath_that_looks_beyond_is_not_run_on_a_large_document() -> None:
    small, large = (parse_xml(b"<r>" + b"<a/>" * count + b"</r>") for count in (100, 20_000))
    path = compile_path("//a[count(//a) > 3]", ResponseFormat.XML)
    assert len(path.find(small)) == 100
    with pytest.raises(Invalid) as caught:
        path.find(large)
    assert caught.value.code == "path_too_costly"
    with pytest.raises(Invalid):
        path.find(large[0])  # it would look at the whole of it from any node
    assert len(compile_path("//a[not(@b)]", ResponseFormat.XML).find(large)) == 20_000
