"""A machine drawn from its table: every state and every way once, the way that was taken in words too."""

import re

from patra.attribution.decision.closure_state import CLOSURE
from patra.web.console.markup.machine_drawing import machine_drawing

EDGES = {(str(was), str(on)): str(to) for (was, on), to in CLOSURE.edges.items()}


def drawn(now: str, *taken: str) -> str:
    return machine_drawing("closure", EDGES, "open", now, taken)


def test_every_state_and_every_way_of_the_table_is_there():
    svg = drawn("open")
    assert [state for state in CLOSURE.states if f">{state}</text>" not in svg] == []
    assert svg.count("<line") == len({(was, to) for (was, _), to in EDGES.items()})
    assert "failure or timeout" in svg
    assert 'class="e on"' not in svg


def test_the_way_that_was_taken_stands_out_and_names_what_happened():
    svg = drawn("closed_success", "timeout", "late_impression")
    assert 'aria-label="It is closed_success, by timeout, late impression"' in svg
    assert svg.count('class="e on"') == 2
    assert ">timeout</text>" in svg
    assert "failure or timeout" not in svg


def test_no_word_is_cut_off_and_no_box_stands_on_another():
    svg = drawn("closed_failure", "failure")
    height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', svg)[1])  # type: ignore[index]
    words = [int(y) for y in re.findall(r'<text [^>]*y="(\d+)"', svg)]
    assert min(words) >= 12
    assert max(words) <= height - 2
    boxes = re.findall(r'<rect [^>]*x="(\d+)" y="(\d+)"', svg)
    assert len(set(boxes)) == len(CLOSURE.states)


def test_a_state_is_text_whatever_it_holds():
    assert "<script>" not in machine_drawing("closure", {("<script>", "a"): "b"}, "<script>", "b")
