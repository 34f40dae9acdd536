"""Formats, JSON and drawings: exact, escaped, with a label."""

import html
import re

import msgspec
import pytest
from markupsafe import Markup

from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, parse_instant
from patra.kernel.safety.known_secrets import know_secret
from patra.web.console.calls import Number
from patra.web.console.markup.drawings import Part, Window, bars, shares, spark, strip
from patra.web.console.markup.formats import (
    age_text,
    clock_text,
    link,
    number_text,
    plural,
    short_key,
    span_text,
    time_tag,
)
from patra.web.console.markup.json_view import difference, json_lines, json_markup, line_count
from patra.web.console.markup.masked_text import masked_text, remember_masked

NOW = parse_instant("2026-11-17T14:02:31Z") or 0
EVIL = "</script><b>\"'&"


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (19_000, "19 ms"),
        (2_700_000, "2.7 s"),
        (41 * SECOND, "41 s"),
        (41 * MINUTE, "41 min"),
        (81 * MINUTE, "1 h 21 min"),
        (3 * DAY + 14 * HOUR + MINUTE, "3 d 14 h"),
        (2 * DAY, "2 d"),
    ],
)
def test_a_span_has_at_most_two_units(us, text):
    assert span_text(us) == text


def test_an_instant_shows_its_date_when_it_is_not_today():
    assert clock_text("2026-11-17T14:02:30.982Z", NOW) == "14:02:30"
    assert clock_text("2026-11-17T14:02:30.082Z", NOW, fraction=True) == "14:02:30.082"
    assert clock_text("2026-11-16T22:10:05Z", NOW) == "16 Nov 22:10:05"
    assert clock_text("2025-01-02T03:04:05Z", NOW) == "2 Jan 2025 03:04:05"
    assert 'datetime="2026-11-17T14:02:30.982000Z"' in time_tag("2026-11-17T14:02:30.982Z", NOW)
    assert (age_text(NOW + 41 * SECOND, NOW), age_text(NOW - MINUTE, NOW)) == ("in 41 s", "1 min ago")


def test_numbers_keys_and_links():
    assert (number_text(1284), number_text(0.214), number_text(None)) == ("1,284", "0.21", "–")
    assert (plural(1, "letter"), plural(2, "letter"), plural(0, "entry", "entries")) == (
        "1 letter",
        "2 letters",
        "0 entries",
    )
    assert short_key("x" * 28) == "x" * 28
    assert len(short_key("x" * 64)) == 28
    assert link("/story", key="a|b/c d", empty="") == "/console/story?key=a%7Cb%2Fc+d"


def test_json_in_colours_has_the_lines_of_the_plain_text():
    document = {"a": [1, {}, [], [None, {"b": EVIL}]], "c": {"d": "x", "password": "hunter22"}, EVIL: True}
    coloured = str(json_markup(document))
    assert html.unescape(re.sub(r"<[^>]+>", "", coloured)) == "\n".join(json_lines(document))
    assert "<b>" not in coloured
    assert "hunter22" not in coloured
    for value in (document, {}, [], "x", [1, [2, {"a": {}}]]):
        assert line_count(value) == len(json_lines(value))


def test_a_text_is_looked_through_once_for_a_page_and_again_for_the_next():
    with remember_masked():
        assert masked_text("the word is quorum-lamp-7") == "the word is quorum-lamp-7"
        know_secret("quorum-lamp-7")
        assert "quorum-lamp-7" in masked_text("the word is quorum-lamp-7")
    assert "quorum-lamp-7" not in masked_text("the word is quorum-lamp-7")
    with remember_masked():
        assert "quorum-lamp-7" not in masked_text("the word is quorum-lamp-7")


def test_json_keeps_every_digit_and_escapes_everything():
    document = msgspec.json.Decoder(float_hook=Number).decode(b'{"n":1.10,"big":12345678901234567890,"s":"<b>"}')
    text = json_markup(document)
    assert isinstance(text, Markup)
    assert '<span class="m">1.10</span>' in text
    assert "12345678901234567890" in text
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert json_lines({"a": [1, {}], "b": None}) == ["{", '  "a": [', "    1,", "    {}", "  ],", '  "b": null', "}"]


def test_a_difference_folds_what_is_equal():
    left = {f"k{i}": i for i in range(20)}
    lines = difference(left, {**left, "k10": "other"})
    assert [line.kind for line in lines] == ["folded", "same", "same", "changed", "same", "same", "folded"]
    changed = lines[3]
    assert (changed.left_number, changed.left, changed.right) == (12, '  "k10": 10,', '  "k10": "other",')


def test_drawings_escape_their_labels_and_have_no_style():
    window = Window(begin=0, end=10, state="bad", label=EVIL, href=f"/console/x?{EVIL}")
    drawn = [
        strip([window], 0, 20, EVIL, frontier=10, frontier_label=EVIL, ticks=[(0, EVIL)]),
        spark([1, 2], EVIL),
        bars([1, 0, 3], EVIL),
        shares([Part(count=3, tone="done", label=EVIL), Part(count=0, tone="bad", label="none")]),
    ]
    for svg in drawn:
        assert "<b>" not in svg
        assert "style=" not in svg
        assert "aria-label=" in svg


def test_a_strip_places_windows_by_time():
    window = Window(begin=5, end=10, state="run", label="a", href="/console/")
    svg = strip([window], 0, 20, "windows", frontier=5)
    assert 'x="25%" y="8" width="25%"' in svg
    assert 'fill="url(#h-run)"' in svg
    assert '<line class="front" x1="25%"' in svg
