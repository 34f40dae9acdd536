"""The flow of events as a drawing: a line for each edge, thicker with its rate, untrusted names as text."""

import re

from patra.web.console.markup.flow_drawing import ROW_PX, Stream, flow_drawing


def stream(name: str, rate: float, *readers: tuple[str, str], producer: str = "Gateway") -> Stream:
    return Stream(
        producer=producer, type=name, href=f"/t/{name}", per_minute=rate, rate_text=str(rate), tone="", readers=readers
    )


def test_each_edge_is_a_line_and_what_flows_more_is_thicker():
    drawn = flow_drawing([stream("a.b", 400.0, ("g", "done"), ("h", "bad")), stream("c.d", 2.0, ("g", "done"))])
    lines = re.findall(r'<path class="(\w+)" d="[^"]*" stroke-width="([\d.]+)"', drawn)
    assert [tone for tone, _ in lines] == ["done", "done", "bad", "done", "done"]
    assert float(lines[0][1]) > float(lines[3][1]) > 1
    assert "2 types from 1 producers to 2 groups; 2 of them flow now" in drawn


def test_no_two_names_of_a_column_stand_on_each_other():
    drawn = flow_drawing([stream(f"t.{n}", 1.0, ("g1", "done"), ("g2", "done"), ("g3", "done")) for n in range(2)])
    rows = [int(y) for y in re.findall(r'x="740" y="(\d+)"', drawn)][1:]
    assert len(set(rows)) == len(rows) == 3
    assert max(rows) < int(re.search(r'viewBox="0 0 1000 (\d+)"', drawn)[1]) + ROW_PX  # type: ignore[index]


def test_a_name_is_text_whatever_it_holds():
    drawn = flow_drawing([stream("<script>", 0.0, ("<img>", "done"))])
    assert "<script>" not in drawn
    assert "&lt;img&gt;" in drawn
    assert 'class="wait"' in drawn
