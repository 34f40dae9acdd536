"""Batches as SDKs send them: prepared once, made unique by one replacement a batch, so that the sender costs little.

A batch is about twenty render attempts of one app with what happens on them: opportunity, auction, fill, impression,
interactions, clicks, postbacks, errors. A few of its events were sent before, in the batch that the same connection
sent last: SDKs retry.
"""

import random
import time
from datetime import UTC, datetime

import msgspec

EVENTS = 100
MARK = "@@now@@now@@"  # what makes a batch and its keys unique
BEFORE = "@@was@@was@@"  # the mark of the batch that the connection sent before
APPS = ("reader-ios", "reader-android", "news-web", "games-ios", "weather-android")
TEMPLATES = 64
AGAIN = 2  # events of a batch that were sent before

_INTERACTIONS = ("expand", "collapse", "dwell", "close", "scroll", "video_start", "video_complete")


def templates(
    app: str = APPS[0], count: int = TEMPLATES, again: int = AGAIN, seed: int = 1, at: float | None = None
) -> list[bytes]:
    """Bodies of batches of one app with two marks to fill in; template n sends some events of template n-1 again."""
    rng = random.Random(f"{app}{seed}")
    at = time.time() if at is None else at
    batches = [_events(rng, app, number, at) for number in range(count)]
    return [
        _body(app, number, batches[number][: EVENTS - again] + _sent_before(batches[number - 1][:again]), at)
        for number in range(count)
    ]


def filled(template: bytes, mark: str, before: str) -> bytes:
    return template.replace(MARK.encode(), mark.encode()).replace(BEFORE.encode(), before.encode())


def mark(sender: int, number: int) -> str:
    """Twelve characters that no other batch of any sender has."""
    return f"{sender:04x}{number:08x}"


def _events(rng: random.Random, app: str, number: int, at: float) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    attempt = 0
    while len(found) < EVENTS:
        found += _attempt(rng, app, number, attempt, at)
        attempt += 1
    return found[:EVENTS]


def _attempt(rng: random.Random, app: str, number: int, attempt: int, at: float) -> list[dict[str, object]]:
    keys = {
        "traceKey": f"tr-{MARK}-{attempt:03}",
        "requestKey": f"rq-{MARK}-{attempt:03}",
        "attemptKey": "at-1",
        "opportunityKey": f"op-{MARK}-{attempt:03}",
    }
    shown = {"responseReference": f"rr-{MARK}-{attempt:03}", "renderAttemptId": "ra-1"}
    creative = f"cr-{rng.randrange(500):05}"
    kinds: list[tuple[str, dict[str, str]]] = [
        ("opportunity_created", {"placementKey": f"pl-{rng.randrange(40):03}"}),
        ("auction_started", {"auctionChannel": rng.choice(("waterfall", "bidding", "hybrid"))}),
        ("ad_filled", {**shown, "creativeId": creative}),
    ]
    if rng.random() < 0.04:
        kinds.append(("error", {**shown, "errorStage": "render", "errorCode": "timeout", "errorClass": "terminal"}))
    else:
        kinds.append(("impression", {**shown, "creativeId": creative}))
    kinds += [
        ("interaction", {**shown, "interactionType": kind})
        for kind in rng.sample(_INTERACTIONS, rng.choice((0, 1, 1, 2)))
    ]
    if rng.random() < 0.3:
        kinds.append(("click", {**shown, "clickTarget": f"https://shop.example/{app}/{rng.randrange(900)}"}))
    if rng.random() < 0.15:
        kinds.append(("postback", {**shown, "postbackType": "install", "postbackStatus": "success"}))
    return [
        {
            "eventId": f"ev-{attempt:03}-{i}",
            "eventType": kind,
            "eventAt": _instant(at - 60 + attempt + i * 0.2),
            **keys,
            "eventVersion": "1",
            "idempotencyKey": f"{MARK}-{number:02}-{attempt:03}-{i}",
            **({"sdkSession": f"s-{rng.randrange(10**8):08}"} if rng.random() < 0.1 else {}),
            **fields,
        }
        for i, (kind, fields) in enumerate(kinds)
    ]


def _sent_before(events: list[dict[str, object]]) -> list[dict[str, object]]:
    text = msgspec.json.encode(events).replace(MARK.encode(), BEFORE.encode())
    return msgspec.json.decode(text)


def _body(app: str, number: int, events: list[dict[str, object]], at: float) -> bytes:
    return msgspec.json.encode(
        {
            "batchId": f"b-{MARK}-{number:02}",
            "appId": app,
            "sdkVersion": "4.2.0",
            "sentAt": _instant(at),
            "schemaVersion": "1.0",
            "events": events,
        }
    )


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
