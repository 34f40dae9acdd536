"""Tables for people: nothing is cut, whatever the width of the terminal."""

import json
import sys
from datetime import UTC, datetime

import click
import pytest

from patra.cli.terminal.options import escaped_echo, show, table
from patra.cli.terminal.tables import layout, relative

EVENT_ID = "01a1eb28-bf3c-758a-85c1-704d88d15aee"
NAMES = ["group", "event_id", "type", "state", "error", "note"]
ROWS = [
    ["invoices", EVENT_ID, "order.placed", "open", "there is no invoice over nothing at all, says the tax office", ""]
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_an_id_is_whole_at_every_width(width: int) -> None:
    text = [click.unstyle(line) for line in layout(NAMES, ROWS, width)]
    assert any(EVENT_ID in line for line in text)
    assert not any("…" in line for line in text)


def test_what_fits_is_a_table_and_what_does_not_is_a_card_for_each_row() -> None:
    assert click.unstyle(layout(NAMES, ROWS, 200)[0]).split() == ["group", "event_id", "type", "state", "error"]
    narrow = [click.unstyle(line) for line in layout(NAMES, [*ROWS, [cell and f"{cell}2" for cell in ROWS[0]]], 60)]
    assert narrow[1] == f"event_id  {EVENT_ID}"
    assert narrow.count("") == 1


def test_a_value_that_is_the_same_in_every_row_is_stated_once_where_room_is_scarce() -> None:
    names = ["endpoint", "since", "until", "landed", "missing"]
    rows = [
        ["search-of-everything", "31 d ago", "29 d ago", "2", "0"],
        ["search-of-everything", "29 d ago", "22 d ago", "8", "0"],
    ]
    assert [click.unstyle(line) for line in layout(names, rows, 30)] == [
        "in every row:",
        "endpoint: search-of-everything",
        "missing: 0",
        "",
        "since     until     landed",
        "────────  ────────  ──────",
        "31 d ago  29 d ago  2",
        "29 d ago  22 d ago  8",
    ]
    assert click.unstyle(layout(names, rows, 200)[0]).split() == names


def test_text_is_wrapped_at_blanks_before_cards_are_made() -> None:
    lines = [click.unstyle(line) for line in layout(NAMES, ROWS, 100)]
    assert lines[0].startswith("group")
    assert all(len(line) <= 100 for line in lines)
    assert len(lines) > 3


def test_an_empty_column_is_left_out_unless_all_are_wanted() -> None:
    assert "note" not in layout(NAMES, ROWS, 200)[0]
    assert "note" in layout(NAMES, ROWS, 200, keep_empty=True)[0]


def test_a_state_has_a_colour() -> None:
    assert click.style("open", fg="yellow") in "".join(layout(NAMES, ROWS, 200))


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("2026-01-02T00:00:00Z", "1 d ago"),
        ("2026-01-02T22:30:00.5Z", "1 h ago"),
        ("2026-01-02T23:58:00Z", "2 min ago"),
        ("2026-01-03T00:00:05Z", "in 5 s"),
        ("2026-01-03T00:00:00Z", "now"),
        ("2026-01-03", "2026-01-03"),
    ],
)
def test_an_instant_is_shown_by_its_distance(cell: str, shown: str) -> None:
    assert relative(cell, datetime(2026, 1, 3, tzinfo=UTC)) == shown


def test_a_short_column_stays_on_one_line_and_the_long_text_before_it_is_wrapped() -> None:
    rows = [
        ["export works to /a/folder/with/a/long/name/otters.duckdb, as it was, every night", "0 3 * * *", "in 10 h"]
    ]
    lines = [click.unstyle(line) for line in layout(["then", "cron", "next"], rows, 80)]
    assert lines[2].endswith("  0 3 * * *  in 10 h")


def test_an_exact_instant_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show([{"from": "2026-01-03T00:00:00Z", "to": None}], as_json=False, exact=True)
    out = capsys.readouterr().out
    assert "2026-01-03T00:00:00Z" in out
    assert "to" not in out, "an empty column is left out as ever"


def test_a_terminal_gets_colours_of_ours_and_no_escape_sequence_of_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with escaped_echo():
        table(["state", "error"], [["open", "a\x1b[2Jb"]])
    out = capsys.readouterr().out
    assert "\x1b[33mopen\x1b[0m" in out
    assert "\\u001b" not in out
    assert "a\\x1b[2Jb" in out


def test_a_long_value_of_a_card_goes_on_below_itself() -> None:
    text = "window 2026-10-19T18:00:00Z … 2026-11-18T18:00:00Z: up to the last whole hour before 2026-11-18T18:23:00Z"
    event = '{"eventId":"e4","eventType":"impression","note":"a, \\"quoted\\", text","keys":[1,2,3],"traceKey":"t1"}'
    row = ["crossref/lighthouses-and-much-more-of-them", text, event, ""]
    lines = [click.unstyle(line) for line in layout(["job", "detail", "raw", "note"], [row], 50)]
    assert all(len(line) <= 50 for line in lines)
    assert [line[:8].strip() for line in lines if line[:8].strip()] == ["job", "detail", "raw"], "the rest is indented"
    assert " ".join(line[8:] for line in lines).count(text) == 1, "broken at blanks only"
    assert json.loads("\n".join(line[8:] for line in lines if '"' in line)) == json.loads(event)


@pytest.mark.parametrize("text", ["{not JSON, \\", '{"a, \\', '["x", "unfinished, ' + "y" * 50, "{" + "," * 70])
def test_what_only_begins_like_json_is_whole_on_a_card(text: str) -> None:
    lines = [click.unstyle(line) for line in layout(["name", "other"], [["z" * 45, text]], 40)]
    assert "".join(line[7:] for line in lines[1:]) == text


def test_one_thing_is_a_card_with_its_values_below_each_other() -> None:
    rows = [["run_id", "run_1"], ["reason", ""], ["film_uri", "file:///" + "b" * 60]]
    assert layout(["", ""], rows, 60, header=False) == [f"run_id    {rows[0][1]}", f"film_uri  {rows[2][1]}"]
    assert len(layout(["", ""], rows, 200, header=False, keep_empty=True)) == 3
