"""Rows as people read them, and as they are handed on (ch. 14.7, 14.10)."""

import pytest

from patra.ingest.operations.reads.legible_rows import legible_row, redacted_row

INSTANT = 1_700_000_000_000_000


@pytest.mark.parametrize(
    "name", ["created_at", "event_time", "window_from", "window_to", "leased_until", "new_instant"]
)
def test_a_column_that_ends_like_an_instant_is_shown_as_one(name: str) -> None:
    assert legible_row({name: INSTANT, "count": INSTANT}) == {name: "2023-11-14T22:13:20Z", "count": INSTANT}


def test_an_instant_that_is_not_there_stays_empty() -> None:
    assert legible_row({"finished_at": None}) == {"finished_at": None}


def test_stored_json_is_shown_as_a_value_and_bytes_as_text() -> None:
    row = {"stats": '{"requests": 2}', "slice_spec": "", "error": '{"not": "ours"}', "sample": b"caf\xc3\xa9 \xff"}
    shown = legible_row(row)
    assert shown == {"stats": {"requests": 2}, "slice_spec": "", "error": '{"not": "ours"}', "sample": "café \ufffd"}


def test_only_what_others_wrote_is_redacted() -> None:
    row = {"error": "mail jane@example.org", "task_id": "jane@example.org"}
    redacted = redacted_row(row)
    assert "jane@example.org" not in redacted["error"]
    assert redacted["task_id"] == "jane@example.org"
