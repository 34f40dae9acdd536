"""The attribution step: what the SDKs of two apps send in a few minutes, with everything that goes wrong on the way.

The same numbers make the same events, but for their instants. Some batches are sent twice, some impressions come after
their click, and some events are invalid, as from an unknown client.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from patra.demo import Demo, Link
from patra.kernel.clock import DAY, MINUTE, SECOND, SystemClock, format_instant

APPS = ("shop", "kiosk")
OPPORTUNITIES = 226
BATCH_EVENTS = 25
SENT_TWICE_EVERY = 8
PAUSE_S = 1.5
YESTERDAY_OPPORTUNITIES = 40
PRICES_MICROS = {"billable_impression": 4_000, "billable_click": 250_000}
"""What a fact of the demonstration costs, in millionths of a euro."""
HOSTILE = "<script>alert(1)</script>"


def episode(app: str, number: int, at: int, draw: random.Random) -> list[dict[str, Any]]:
    """The events of one opportunity: most are filled and seen, one in five is clicked, some end in an error."""
    name = f"{app}-{number:05d}"
    keys = {
        "traceKey": f"trace-{name}",
        "requestKey": f"req-{name}",
        "attemptKey": f"att-{name}",
        "opportunityKey": f"opp-{name}",
        "eventVersion": "1",
    }
    link = {"responseReference": f"resp-{name}", "renderAttemptId": "ra-1"}
    luck = draw.random()
    kinds = ["opportunity_created", "auction_started"]
    if luck > 0.1:
        kinds.append("ad_filled")
    if luck > 0.25:
        kinds.append("impression")
    if luck > 0.8:
        kinds.append("click")
    if luck > 0.92:
        kinds.reverse()  # the click came first: it waits for its impression
    if 0.1 < luck < 0.15:
        kinds.append("error")
    fields: dict[str, dict[str, Any]] = {
        "opportunity_created": {"placementKey": draw.choice(("home", "search", "article"))},
        "auction_started": {"auctionChannel": "bidding"},
        "ad_filled": {**link, "creativeId": f"cr-{number % 12}"},
        "impression": {**link, "creativeId": f"cr-{number % 12}"},
        "click": {**link, "clickTarget": "landing"},
        "error": {**link, "errorStage": "render", "errorCode": "E-42", "errorClass": "terminal"},
    }
    return [
        {
            "eventId": f"{name}-{kind}",
            "eventType": kind,
            "eventAt": format_instant(at + place * SECOND // 4),
            **keys,
            **fields[kind],
        }
        for place, kind in enumerate(kinds)
    ]


def hostile(number: int, at: int) -> list[dict[str, Any]]:
    """Invalid events: markup, a missing field, an unknown type, a wrong value, a far instant."""
    good = episode(APPS[0], 90_000 + number, at, random.Random(0))[0]
    return [
        good | {"eventId": f"{HOSTILE}-{number}", "eventType": HOSTILE},
        {name: value for name, value in good.items() if name != "placementKey"} | {"eventId": f"hostile-{number}-a"},
        good | {"eventId": f"hostile-{number}-b", "eventType": "payday"},
        good | {"eventId": f"hostile-{number}-c", "placementKey": 7},
        good | {"eventId": f"hostile-{number}-d", "eventAt": "2031-01-01T00:00:00Z"},
    ]


def envelope(app: str, batch: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "batchId": batch,
        "appId": app,
        "sdkVersion": "4.3.0",
        "sentAt": format_instant(SystemClock().now()),
        "schemaVersion": "1",
        "events": events,
    }


class Sender:
    """Sends batches and counts what they were answered."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self.answers: Counter[str] = Counter()
        self.batches = 0
        self.late: list[dict[str, Any]] = []

    def send(self, app: str, batch: str, events: list[dict[str, Any]]) -> None:
        status, answer = self._demo.post("/events", envelope(app, batch, events))
        self.batches += 1
        if status != 200:
            self.answers[f"HTTP {status}"] += 1
            return
        for ack in answer["ackItems"]:
            self.answers[ack["ackStatus"]] += 1


def show(demo: Demo) -> Iterator[str]:
    draw = random.Random(7)
    sender = Sender(demo)
    now = SystemClock().now()
    told = ""
    for app in APPS:
        late: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        for number in range(OPPORTUNITIES // len(APPS)):
            made = episode(app, number, now - 3 * MINUTE + number * SECOND, draw)
            if number % 20 == 7:
                late += [one for one in made if one["eventType"] == "impression"]
                made = [one for one in made if one["eventType"] != "impression"]
            events += made
        for place in range(0, len(events), BATCH_EVENTS):
            part = events[place : place + BATCH_EVENTS]
            batch = f"{app}-b{place // BATCH_EVENTS:03d}"
            sender.send(app, batch, part)
            if place // BATCH_EVENTS % SENT_TWICE_EVERY == 0:
                sender.send(app, batch, part)  # the answer was lost on the way
        if late:
            sender.send(app, f"{app}-late", late)
            told = told or str(late[0]["responseReference"])
    closed = _close_yesterday(demo, sender, now, draw)
    sender.send(APPS[0], "stranger-1", hostile(1, now))
    demo.post("/events", b'{"batchId": "stranger-2", "events": [')
    counted = sender.answers
    yield f"{counted.total()} events of two apps in {sender.batches} batches:"
    yield "  " + ", ".join(f"{count} {word}" for word, count in counted.most_common())
    yield "a batch that was sent again changed nothing; invalid events are named in the rejects"
    yield closed
    demo.walk.append(
        Link(path="/console/attribution/events", text="events as they come, each with the rule that answered it")
    )
    demo.walk.append(
        Link(
            path=f"/console/story?key={told}%7Cra-1", text="a late impression: what came in, was decided, billed, sent"
        )
    )


def _close_yesterday(demo: Demo, sender: Sender, now: int, draw: random.Random) -> str:
    """Events that one app kept since yesterday, prices, and the statement of that day."""
    app, noon = APPS[0], now // DAY * DAY - DAY // 2
    events = [
        event
        for number in range(YESTERDAY_OPPORTUNITIES)
        for event in episode(app, 80_000 + number, noon + number * SECOND, draw)
    ]
    for place in range(0, len(events), BATCH_EVENTS):
        sender.send(app, f"{app}-kept-{place // BATCH_EVENTS:03d}", events[place : place + BATCH_EVENTS])
    for kind, micros in PRICES_MICROS.items():
        rate = {"billableType": kind, "priceMicros": micros, "currency": "EUR", "validFrom": "2026-01-01T00:00:00Z"}
        demo.post("/attribution/rates", rate)
    day = format_instant(noon)[:10]
    status, answer = demo.post(f"/attribution/apps/{app}/periods/{day}/close", {})
    if status != 200:
        return f"the period {day} of {app} was not closed: {answer.get('detail') or answer.get('code')}"
    euros = answer["amounts"].get("EUR", 0) / 1_000_000
    return f"{app} kept some events since yesterday; that day is closed: {euros:.2f} EUR are on its statement"


def go_on(demo: Demo) -> None:
    """A batch every second or so; what is late comes two minutes and more after its opportunity."""
    draw = random.Random()
    sender = Sender(demo)
    number = 50_000
    late: list[tuple[int, str, dict[str, Any]]] = []
    while not demo.stop.wait(PAUSE_S):
        now = SystemClock().now()
        app = draw.choice(APPS)
        events: list[dict[str, Any]] = []
        for _ in range(draw.randint(1, 4)):
            number += 1
            made = episode(app, number, now - 2 * SECOND, draw)
            if draw.random() < 0.1:
                late += [(now, app, one) for one in made if one["eventType"] == "impression"]
                made = [one for one in made if one["eventType"] != "impression"]
            events += made
        sender.send(app, f"{app}-live-{number}", events)
        if number % 7 == 0:
            sender.send(app, f"{app}-live-{number}", events)
        if number % 40 == 0:
            sender.send(APPS[0], f"stranger-{number}", hostile(number, now))
        due = [one for one in late if now - one[0] > 130 * SECOND]
        late = [one for one in late if one not in due]
        for _, of, event in due:
            sender.send(of, f"{of}-late-{event['eventId']}", [event])
