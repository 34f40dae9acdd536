"""The span of a list: what the address says, and the spans beside it."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest

from patra.kernel.clock import HOUR, MINUTE, format_instant, parse_instant
from tests.unit.web.served import served


@pytest.mark.parametrize("path", ["/console/attribution/events", "/console/bus/dead-letters"])
def test_a_span_is_shown_moved_and_dropped_and_belongs_to_every_filter(path: str) -> None:
    with served() as client:
        now = client.patra.clock.now()
        first, last = format_instant(now - 3 * HOUR), format_instant(now - 2 * HOUR)
        text = unescape(client.get(f"{path}?group=g&answer=rejected&from={first}&to={last}").data.decode())
    links = dict(re.findall(r'data-to="(earlier|later)" href="([^"]*)"', text))
    moved = {name: (re.search(r"from=([^&]*)", href), re.search(r"to=([^&]*)", href)) for name, href in links.items()}
    told = {name: tuple(one[1].replace("%3A", ":") for one in ends if one) for name, ends in moved.items()}
    assert told == {
        "earlier": (format_instant(now - 4 * HOUR), first),
        "later": (last, format_instant(now - HOUR)),
    }
    assert 'aria-label="Remove the filter time"' in text
    assert f'name="from" value="{first}"' in text


def test_the_latest_hour_is_a_link_whose_beginning_stays_where_it_is() -> None:
    with served() as client:
        before = client.patra.clock.now()
        text = client.get("/console/attribution/events?answer=rejected&before=9&at=3").data.decode()
    (href,) = re.findall(r'<a href="([^"]*)">1 h</a>', text)
    asked = dict(parse_qsl(urlsplit(unescape(href)).query))
    at = parse_instant(asked.pop("from")) or 0
    assert asked == {"answer": "rejected"}
    assert 0 <= at - (before - HOUR) // MINUTE * MINUTE <= MINUTE


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("from=yesterday", "instant_invalid"),
        ("to=2026-01-01", "instant_invalid"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "span_invalid"),
    ],
)
def test_what_is_no_span_is_refused_in_words(asked: str, code: str) -> None:
    with served() as client:
        answer = client.get(f"/console/attribution/events?{asked}")
    assert (answer.status, code in answer.data.decode()) == (400, True)


def test_a_span_that_is_open_to_now_has_nothing_later() -> None:
    with served() as client:
        first = format_instant(client.patra.clock.now() - HOUR)
        text = client.get(f"/console/bus/dead-letters?from={first}").data.decode()
    assert ('data-to="earlier"' in text, 'data-to="later"' in text) == (True, False)
