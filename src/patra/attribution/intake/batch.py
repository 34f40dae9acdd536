"""Turns the bytes of a batch and the instant of their arrival into its events, checked and in their order (F12).

Nothing here needs the store, so it is done before the transaction and once, however often that is tried.
"""

from typing import Any

import msgspec
from msgspec import Raw

from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.intake.checked_event import Event
from patra.attribution.intake.envelope import Envelope, Refused, as_read, envelope, plain_envelope
from patra.attribution.intake.validate import Rejected, check_event
from patra.attribution.intake.validate_fast import plain_reader
from patra.attribution.intake.zstd import compress_body


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that arrived: refused as a whole, or its events sorted into those to decide and those rejected."""

    received_at: int
    body: bytes
    envelope: Envelope | Refused
    events: list[Event] = []
    """In the order of decision."""
    rejected: list[Rejected] = []
    log: bytes
    """The body as the log has it."""
    tales: bytes = b""
    """What the store keeps of the events (`Told`), as it has it."""

    @property
    def closure_keys(self) -> list[bytes]:
        return [event.closure_key for event in self.events if event.closure_key is not None]

    def as_sent(self) -> list[Any]:
        """The events as they were sent, read or not (`intake.as_read`); what another process read is read again."""
        if isinstance(self.envelope, Refused):
            return []
        if not self.envelope.events:
            again = read_batch(self.body, self.received_at).envelope
            self.envelope.events.extend(again.events if isinstance(again, Envelope) else [])
        return self.envelope.events


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """An instant up to which deadlines are applied."""

    at: int


Item = Batch | Tick

BEFORE_ALL_INSTANTS = -(2**62)
"""Before every instant."""


def read_batch(body: bytes, received_at: int, rules: Rules = LIVE_RULES) -> Batch:
    """Check the envelope and every event, and put those that pass into the order of decision."""
    plain = plain_envelope(body)
    if plain is not None:
        try:
            return _check_body(body, received_at, plain, rules)
        except ValueError:  # an event that is not sound JSON: the batch is read again with care
            pass
    found = envelope(body)
    if isinstance(found, Refused):
        return Batch(received_at=received_at, body=body, envelope=found, log=compress_body(body))
    return _check_body(body, received_at, found, rules)


def _check_body(body: bytes, received_at: int, found: Envelope, rules: Rules) -> Batch:
    passed: list[Event] = []
    rejected: list[Rejected] = []
    plain_event = plain_reader(found, received_at)
    live = rules is LIVE_RULES  # the quick way knows no others
    for index, sent in enumerate(found.events):
        event = plain_event(sent, index) if live and type(sent) is Raw else None
        if event is None:
            event = check_event(as_read(sent), index, found, received_at, rules)
            if type(event) is Rejected:
                rejected.append(event)
                continue
        passed.append(event)  # pyright: ignore[reportArgumentType]  (narrowed by type, not isinstance: it is faster)
    return Batch(
        received_at=received_at,
        body=body,
        envelope=found,
        events=in_order(passed),
        rejected=rejected,
        log=compress_body(body),
        tales=compress_body(b"[%b]" % b",".join([event.told for event in passed])),
    )


def in_order(events: list[Event]) -> list[Event]:
    """By `eventAt`, `eventId`, position; a terminal error whose closure has an impression among them goes last."""
    ordered = sorted(events, key=_order)
    terminal = [event for event in ordered if event.terminal]
    if not terminal:
        return ordered
    seen = {event.closure_key for event in ordered if event.type == "impression"}
    waiting = [event for event in terminal if event.closure_key in seen]
    return [event for event in ordered if not (event.terminal and event.closure_key in seen)] + waiting


def _order(event: Event) -> tuple[int, str, int]:
    return event.at, event.sent_id if type(event.sent_id) is str else "", event.index


def instant(item: Item) -> int:
    """Up to when the item may apply deadlines; a refused batch brings no event (A1), so it applies none."""
    if isinstance(item, Tick):
        return item.at
    return BEFORE_ALL_INSTANTS if isinstance(item.envelope, Refused) else item.received_at


def time_of_item(item: Item) -> int:
    """When the item came."""
    return item.at if isinstance(item, Tick) else item.received_at
