"""Dice in; a random replay log out: few keys, ties, boundaries to the microsecond, retries, defects of every kind."""

from hypothesis import strategies as st

from tests.model.attribution import instants
from tests.model.attribution.instants import DAY, HOUR, MINUTE, SECOND
from tests.property.attribution.defects import BATCH_EXTENSIONS, ENUMS, ILLEGAL_IDS, spoil, spoil_batch
from tests.property.attribution.dice import DrawnDice, SeededDice

START = "2026-03-01T00:00:00Z"

# Weighted towards what meets on a closure.
TYPES = {
    "impression": 6,
    "click": 6,
    "ad_filled": 4,
    "terminal error": 4,
    "postback": 3,
    "interaction": 2,
    "error": 2,
    "opportunity_created": 1,
    "auction_started": 1,
}
KNOWN = {
    "auctionChannel": ["bidding", "waterfall", "house"],
    "interactionType": ["expand", "close", "video_complete"],
    "postbackStatus": ["success", "failed", "pending"],
    "errorStage": ["render", "fill", "postback"],
}
UUIDS = ["0189abcd-0000-7000-8000-00000000000a", "0189ABCD-0000-7000-8000-00000000000A"]
ULIDS = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"]
STEPS = [0, 1, SECOND, 30 * SECOND, MINUTE, 120 * SECOND - 1, 120 * SECOND, 120 * SECOND + 1]
JUMPS = [3 * DAY, 3 * DAY + 1, 14 * DAY, 14 * DAY + 1, HOUR, 20 * DAY]
WAITS = [120 * SECOND, 120 * SECOND - 1, 3 * DAY, 3 * DAY + 1, 14 * DAY, 14 * DAY + 1]
WOBBLES = [1, 3000, SECOND, MINUTE, 121 * SECOND]
AGES = [0, 0, 0, SECOND, 2 * SECOND, -SECOND, 119 * SECOND, HOUR]
STORY_TYPES = {"click": 4, "impression": 3, "ad_filled": 3, "terminal error": 1, "interaction": 1, "postback": 1}
STORY_STEPS = [0, 30 * SECOND, 60 * SECOND, 90 * SECOND, 120 * SECOND - 1, 120 * SECOND, 1]
EDGE_AGES = [3 * DAY, 3 * DAY + 1, 14 * DAY, 14 * DAY + 1, -24 * HOUR, -24 * HOUR - 1, 5 * DAY]


class Writer:
    """Writes one log; remembers what it has sent so that it can send it again."""

    def __init__(self, dice, *, events):
        self.dice = dice
        self.events = events  # at most so many a batch
        self.now = instants.parse(START)
        self.generation = 0
        self.sent_events = []
        self.sent_batches = []
        self.received = []
        self.story = []  # types still to come, one a batch, on the closure of a generation of its own

    def line(self):
        if self.story:
            self.now += self.dice.pick(STORY_STEPS)
        else:
            self.pass_time()
            if self.dice.one_in(8):
                self.generation += 1
                self.story = [self.dice.weighted(STORY_TYPES) for _ in range(2 + self.dice.below(4))]
        if self.dice.one_in(7):
            # A tick into the past or the near future moves no clock: the next batch may be older than it.
            away = self.dice.pick([0, 0, -MINUTE, -DAY])
            return {"tick": self.written(self.now + away)}
        batch = self.batch()
        # Two writers make lines whose instants go back a little (F24).
        received = self.now - (self.dice.pick(WOBBLES) if self.dice.one_in(6) else 0)
        self.received.append(received)
        return {"receivedAt": self.written(received), "batch": batch}

    def pass_time(self):
        choice = self.dice.weighted({"step": 12, "to a boundary": 5, "jump": 2})
        if choice == "step":
            self.now += self.dice.pick(STEPS)
        elif choice == "to a boundary" and self.received:
            target = self.dice.pick(self.received[-4:][::-1]) + self.dice.pick(WAITS)
            self.now = max(self.now, target)
        elif choice == "jump":
            self.now += self.dice.pick(JUMPS)
            self.generation += self.dice.below(2)

    def written(self, instant):
        """The same instant in one of the ways RFC 3339 allows."""
        style = self.dice.weighted({"plain": 12, "offset": 1, "digits": 1, "nanoseconds": 1})
        text = instants.format(instant)
        if style == "offset":
            return instants.format(instant - 90 * MINUTE)[:-1] + "-01:30"
        if style == "digits" and "." not in text:
            return text[:-1] + ".000Z"
        if style == "nanoseconds":
            return text[:-1] + ("999Z" if "." in text else ".000000999Z")
        return text

    # ------------------------------------------------------------------------------------------------ batches

    def batch(self):
        dice = self.dice
        if self.sent_batches and dice.one_in(6):
            return dice.pick(self.sent_batches[-5:][::-1])  # a retry
        batch = {
            "batchId": dice.weighted({"b1": 3, "b2": 2, "b3": 2, "b4": 1, "global": 1}),
            "appId": dice.weighted({"app": 8, "other": 1}),
            "sdkVersion": "5.1",
            "sentAt": START,
            "schemaVersion": "1",
            "events": self.batch_events(),
        }
        if not dice.one_in(3):
            batch["extensions"] = {"eventIdUniqueness": "uuid"}
        elif dice.one_in(4):
            batch["extensions"] = dice.pick(BATCH_EXTENSIONS)
        self.sent_batches.append(batch)
        if dice.one_in(12):
            return spoil_batch(dice, batch)
        return batch

    # ------------------------------------------------------------------------------------------------ events

    def batch_events(self):
        if not self.story:
            return [self.event() for _ in range(1 + self.dice.below(self.events))]
        event = self.fresh(self.story.pop(0), (f"{self.generation}r", "a"))
        # Ids of its own most of the time, so that the ledger does not end the story.
        if not self.dice.one_in(8):
            event["eventId"] = f"s{len(self.sent_events)}"
            event.pop("eventIdScope", None)
            event.pop("idempotencyKey", None)
        if self.dice.one_in(6):
            event["idempotencyKey"] = self.dice.pick(ILLEGAL_IDS)
        self.sent_events.append(event)
        return [event, self.event()] if self.dice.one_in(6) else [event]

    def event(self):
        dice = self.dice
        if self.sent_events and dice.one_in(4):
            event = self.again(dict(dice.pick(self.sent_events[-12:][::-1])))
        else:
            event = self.fresh(dice.weighted(TYPES), self.closure())
        self.sent_events.append(event)
        if dice.one_in(7):
            return spoil(dice, event)
        return event

    def again(self, event):
        """Sent once more: as it was, at another time, under another id, or with another payload under its old key."""
        how = self.dice.weighted({"as it was": 3, "later": 4, "other id": 2, "other payload": 2, "other closure": 1})
        if how == "later":
            event["eventAt"] = self.event_at()
        elif how == "other id":
            event["eventId"] = self.event_id()
            event.pop("idempotencyKey", None)
            event["eventAt"] = self.event_at()
        elif how == "other payload":
            event["requestKey"] = self.dice.pick(["rq", "rq2"])
            event["eventAt"] = self.event_at()
        elif how == "other closure":
            event["responseReference"], event["renderAttemptId"] = self.closure()
            event["eventAt"] = self.event_at()
        return event

    def fresh(self, kind, closure):
        dice = self.dice
        response, render = closure
        event = {
            "eventId": self.event_id(),
            "eventType": "error" if kind == "terminal error" else kind,
            "eventAt": self.event_at(),
            "traceKey": dice.pick(["tr", "tr", "tr2"]),
            "requestKey": dice.pick(["rq", "rq", "rq", "rq2"]),
            "attemptKey": dice.pick(["at", "at", "at", "at2"]),
            "opportunityKey": dice.pick(["op", "op", "op", "op2"]),
            "responseReference": response,
            "renderAttemptId": render,
            "eventVersion": "1",
        }
        kind = event["eventType"] if kind != "terminal error" else kind
        if kind in {"ad_filled", "impression"}:
            event["creativeId"] = dice.pick(["c", "c", "c2"])
        elif kind == "click":
            event["clickTarget"] = dice.pick(["t", "t", "t2"])
        elif kind == "opportunity_created":
            event["placementKey"] = dice.pick(["p", "p2"])
        elif kind == "postback":
            event["postbackType"] = dice.pick(["install", "purchase"])
        elif kind in {"error", "terminal error"}:
            event["errorCode"] = dice.pick(["e1", "e1", "e2"])
            if kind == "terminal error":
                event["errorClass"] = "terminal"
        field = ENUMS.get(event["eventType"])
        if field:
            event[field] = "zz" if dice.one_in(12) else dice.pick(KNOWN[field])
        if event["eventType"] in {"opportunity_created", "auction_started"} and dice.one_in(2):
            del event["responseReference"], event["renderAttemptId"]
        elif event["eventType"] in {"ad_filled", "postback", "error"} and dice.one_in(5):
            del event["renderAttemptId"]
        if dice.one_in(5):
            event["idempotencyKey"] = dice.pick(["k1", "k2", "k3"])
        elif dice.one_in(20):
            event["idempotencyKey"] = dice.pick(ILLEGAL_IDS)
        if event["eventId"] in UUIDS + ULIDS and dice.one_in(2):
            event["eventIdScope"] = "global_unique"
        elif dice.one_in(20):
            event["eventIdScope"] = dice.pick(["batch_scoped", "global_unique"])
        return event

    def closure(self):
        """Three closures a generation; the third is one closure with two readings of its key."""
        generation = self.generation
        if generation and self.dice.one_in(6):
            generation -= 1
        pairs = {("r", "a"): 5, ("r", "b"): 2, ("r|x", "a"): 1, ("r", "x|a"): 1}
        response, render = self.dice.weighted(pairs)
        return f"{generation}{response}", render

    def event_id(self):
        choice = self.dice.weighted({"plain": 12, "uuid": 2, "ulid": 1})
        if choice == "uuid":
            return self.dice.pick(UUIDS)
        if choice == "ulid":
            return self.dice.pick(ULIDS)
        return self.dice.pick(["e1", "e2", "e3", "e4", "e5", "E1", "e10", "e:1"])

    def event_at(self):
        ages = EDGE_AGES if self.dice.one_in(10) else AGES
        return self.written(self.now - self.dice.pick(ages))


def seeded_log(seed, *, lines, events):
    """The same log for the same seed."""
    writer = Writer(SeededDice(seed), events=events)
    return [writer.line() for _ in range(lines)]


@st.composite
def logs(draw, *, lines=10, events=6):
    """Of 1 to `lines` lines with 1 to `events` events a batch."""
    dice = DrawnDice(draw)
    writer = Writer(dice, events=events)
    return [writer.line() for _ in range(1 + dice.below(lines))]
