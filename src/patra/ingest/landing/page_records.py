"""Turns the items of an answer into records to store, records for the quarantine and facts about the page.

Pure: no store, no clock. What an item is (`reading`), what becomes of it (`mapping`) and whether it belongs to the
window are decided here, item by item; one bad item never stops the others (ch. 4.13, 11.8).
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgspec

from patra.ingest.extraction.completeness import MAX_TRACKED_KEYS
from patra.ingest.extraction.key_ranges import MAX_KEY
from patra.ingest.extraction.mapping import Flaw, raw_of
from patra.ingest.extraction.page_moves import Page
from patra.ingest.extraction.response import Identity, Listed, Polluted, page_digest
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.landing.records import Bad, Draft, Incoming, alias, all_incoming, bad, gone_record
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import MissingIds
from patra.ingest.vocabulary.run_reasons import RunReason

STAGE_RECORDS = 50
"""Records that are read, then mapped, then packed together (decision 0082): each step finds its own in the processor's
caches. A whole large page would be too much to hold as values.
"""
MAX_KEY_TEXT = 40
"""Characters of a number that is looked at, leading zeros and all."""


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch brings. `ids` are those of the page in its order, those of bad items too where they have one.

    In the first of two phases they are those that are asked for: none that a harvest by key has read before.
    """

    records: list[Incoming]
    bad: list[Bad]
    ids: list[str]
    digest: str
    newest: int | None = None
    instants: tuple[int, ...] = ()
    """Update times in the order in which they came."""
    outside: int = 0
    keys: frozenset[int] | set[int] = frozenset()
    """A hash for each record of the list by id, update time and version: the same on two pages is one record."""
    without_id: int = 0
    nameless: tuple[int, ...] = ()
    """A hash for each item without an id, of the key under which it stands in the quarantine."""
    growing: tuple[int, ...] = ()
    """HARVEST by key: the keys in the order in which they came."""


class GrowingKey(msgspec.Struct, frozen=True, kw_only=True):
    """HARVEST by key: the number that only grows, and the largest one that was read before (4.4.3)."""

    field: str | None
    """The output field that holds it; None: the record's id."""
    after: int | None = None

    def of(self, identifier: str, fields: Mapping[str, Any]) -> int | None:
        value = identifier if self.field is None else fields.get(self.field)
        text = str(value) if isinstance(value, (int, str)) else ""
        if not (text.isascii() and text.isdecimal() and len(text) <= MAX_KEY_TEXT):
            return None
        return number if (number := int(text)) <= MAX_KEY else None

    def was_read(self, key: int) -> bool:
        """Whether all records with this key were read before; ids do not repeat, other numbers may."""
        if self.after is None:
            return False
        return key <= self.after if self.field is None else key < self.after

    @property
    def first(self) -> int | None:
        """The first key that may be new."""
        return None if self.after is None else self.after + (self.field is None)

    def missing(self, raw: Any, identifier: str) -> Bad:
        place = self.field or "id"
        detail = f"{place} is not a whole number from 0 to {MAX_KEY}, and the harvest goes by it"
        return bad(raw, identifier, RunReason.FIELD_INVALID, place, detail)


def ids_of(line: EndpointClient, items: Sequence[Any], growing: GrowingKey | None = None) -> Landing:
    """The first of two phases: ids only."""
    came: list[int] = []
    outside = 0
    ids: list[str] = []
    listed: list[str] = []
    seen: set[int] = set()
    wrong: list[Bad] = []
    newest: int | None = None
    for one in items:
        item = line.item(one)
        found = line.reader.identity(item, dated=False)
        if isinstance(found, Polluted) and found.id is None:
            wrong.append(bad(raw_of(one), None, found.code, found.path, found.detail))
            continue
        identifier = found.id or ""
        listed.append(identifier)
        if growing is not None:
            key = growing.of(identifier, {})
            if key is None:
                wrong.append(growing.missing(raw_of(one), identifier))
                continue
            came.append(key)
        seen.add(_stable_hash(identifier))
        if growing is not None and growing.was_read(came[-1]):  # it stands in the list and is not asked for
            outside += 1
            continue
        ids.append(identifier)
        if not isinstance(found, Polluted) and found.updated_at is not None:
            newest = found.updated_at if newest is None else max(newest, found.updated_at)
    return Landing(
        records=[],
        bad=wrong,
        ids=list(dict.fromkeys(ids)),
        digest=_digest(listed, wrong),
        newest=newest,
        keys=seen,
        without_id=len(wrong),
        nameless=_nameless(wrong),
        outside=outside,
        growing=tuple(came),
    )


def records_of(
    line: EndpointClient,
    items: Sequence[Any],
    now: int,
    plan: Mapping[str, Any],
    window: Span | None = None,
    growing: GrowingKey | None = None,
) -> Landing:
    """Records of a page or of a group of details; `window` drops what lies outside (client filter), `growing` sets
    aside what has no key.

    A record without a time is kept: that it lies outside would be a guess in the losing direction (I11).
    """
    came: list[int] = []
    within = None if line.reader.timeless else window
    records: list[Incoming] = []
    wrong: list[Bad] = []
    ids: list[str] = []
    instants: list[int] = []
    outside = without_id = 0
    keys: set[int] = set()
    for begin in range(0, len(items), STAGE_RECORDS):
        some = items[begin : begin + STAGE_RECORDS]
        read = [line.item(one) for one in some]
        identities = [line.reader.identity(item) for item in read]
        kept: list[Kept | Bad] = []
        for one, item, found in zip(some, read, identities, strict=True):
            if isinstance(found, Polluted):
                kept.append(bad(raw_of(one), found.id, found.code, found.path, found.detail))
                if found.id is None:
                    without_id += 1
                else:
                    ids.append(found.id)
                    keys.add(_stable_hash(found.id))
                continue
            ids.append(found.id)
            keys.add(_stable_hash(f"{found.id}\0{found.updated_at}\0{found.version}"))
            updated_at = found.updated_at or 0
            instants.append(updated_at)
            if within is not None and not within.start <= updated_at < within.end:
                outside += 1
                continue
            kept.append((one, item, found))
        _pack(_map_items(line, kept, now, plan, growing, came), line.leg.response.items_path, records, wrong)
    return Landing(
        records=records,
        bad=wrong,
        ids=ids,
        digest=_digest(ids, wrong),
        newest=max(instants, default=None),
        instants=tuple(instants),
        outside=outside,
        keys=keys,
        without_id=without_id,
        nameless=_nameless(wrong),
        growing=tuple(came),
    )


Kept = tuple[Any, Any, Identity]
"""An item as it came and as it was read, and which record it is."""


def _map_items(
    line: EndpointClient,
    kept: Sequence[Kept | Bad],
    now: int,
    plan: Mapping[str, Any],
    growing: GrowingKey | None,
    came: list[int],
) -> list[Draft | Bad]:
    """The items with their fields, in their order; their keys are added to `came`."""
    keep_raw = line.leg.mapping.output.keep_raw
    items = [one[1] for one in kept if not isinstance(one, Bad) and not one[2].deleted]
    mapped = iter(line.mapper.all(items, now, plan))
    drafts: list[Draft | Bad] = []
    for one in kept:
        if isinstance(one, Bad):
            drafts.append(one)
            continue
        came_as, _, found = one
        fields = {} if found.deleted else next(mapped)
        if isinstance(fields, Flaw):
            drafts.append(bad(raw_of(came_as), found.id, fields.code, fields.place, fields.detail))
            continue
        if growing is not None and not (found.deleted and growing.field is not None):  # a tombstone has no other field
            key = growing.of(found.id, fields)
            if key is None:
                drafts.append(growing.missing(raw_of(came_as), found.id))
                continue
            came.append(key)  # one that was read before is compared: it may have come late, below larger ones
        raw = (came_as if type(came_as) is msgspec.Raw else raw_of(came_as)) if keep_raw else None
        drafts.append(Draft(found.id, found.updated_at or 0, found.version, fields, raw, found.deleted))
    return drafts


def _pack(drafts: Sequence[Draft | Bad], items_path: str, records: list[Incoming], wrong: list[Bad]) -> None:
    """Add what is stored and what is set aside, each in its order."""
    packed = all_incoming([one for one in drafts if isinstance(one, Draft)])
    stored = [record for record in packed if record is not None]
    if len(stored) == len(drafts):  # so it is with most pages
        records += stored
        return
    in_turn = iter(packed)
    for one in drafts:
        if isinstance(one, Bad):
            wrong.append(one)
        elif (record := next(in_turn)) is not None:
            records.append(record)
        else:
            wrong.append(bad("", one.id, RunReason.RECORD_TOO_LARGE, items_path, "the record is too large"))


def _nameless(wrong: Sequence[Bad]) -> tuple[int, ...]:
    return tuple(_stable_hash(one.key) for one in wrong if one.id is None)


def _stable_hash(text: str) -> int:
    """The same in every process: a run that goes on with a list compares with what the last one met."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def page_of(line: EndpointClient, listed: Listed, landing: Landing, items: int) -> Page:
    """What a page of so many items says about where its list goes on."""
    return Page(
        items=items + listed.null_items,
        null_items=listed.null_items,
        without_id=landing.without_id,
        has_more=listed.has_more,
        token=listed.token,
        url=line.without_secret(listed.url),
        total=listed.total,
        digest=landing.digest,
        newest=landing.newest,
        newest_but_one=landing.instants[-2] if len(landing.instants) > 1 else None,
        rising=all(a <= b for a, b in pairwise(landing.instants)),
    )


def _digest(ids: list[str], wrong: list[Bad]) -> str:
    """The identity of a page; where none of its records has an id, the records themselves."""
    return page_digest(ids or [one.key for one in wrong])


class ReadingTally:
    """`verify: TWICE`: hashes of the records that one reading of a list has brought, the same in every process.

    Of a very long list only the first are remembered: a record that comes twice counts twice behind them, so that two
    readings differ rather than agree.
    """

    def __init__(self) -> None:
        self._met: set[int] = set()

    def of(self, landing: Landing) -> int:
        """The sum over the records of a page that this reading has not met."""
        return sum(_hashes(landing) - self._met)

    def add(self, landing: Landing) -> None:
        if len(self._met) <= MAX_TRACKED_KEYS:
            self._met |= _hashes(landing)


def _hashes(landing: Landing) -> set[int]:
    names = (*landing.ids, *(one.key for one in landing.bad if one.id is None))
    return {int.from_bytes(blake2b(one.encode("utf-8", "surrogatepass"), digest_size=7).digest()) for one in names}


def with_missing(landing: Landing, asked: Sequence[str], policy: MissingIds, *, told_empty: bool = False) -> Landing:
    """Details: ids for which no record came back are kept with a reason, unless the pack does not care (ch. 11.6).

    `told_empty`: a rule of the pack knows the answer to mean that there is none.
    """
    came = set(landing.ids)
    if policy is MissingIds.IGNORE:
        return landing
    if policy is MissingIds.ALIAS and len(asked) == 1 and len(landing.records) == 1 and asked[0] not in came:
        [record] = landing.records
        found = alias(asked[0], record)
        more = [] if found is None else [found]
        return msgspec.structs.replace(landing, records=[record, *more], ids=[*landing.ids, asked[0]])
    if policy is MissingIds.DELETED and told_empty and not landing.ids:
        return msgspec.structs.replace(landing, records=[gone_record(one) for one in asked], ids=list(asked))
    return with_lost(landing, [one for one in asked if one not in came])


def with_lost(landing: Landing, ids: Sequence[str]) -> Landing:
    """Ids without a record, for the quarantine."""
    detail = "the detail endpoint gave no record for this id"
    lost = [bad({"id": one}, one, RunReason.ID_MISSING_DETAIL, "ids", detail) for one in ids]
    return msgspec.structs.replace(landing, bad=[*landing.bad, *lost])


def unreadable(asked: Sequence[str], detail: str) -> Landing:
    """Details that nobody can read, alone as they came: they are set aside, the others go on."""
    wrong = [bad({"id": one}, one, RunReason.UNREADABLE, "ids", detail) for one in asked]
    return Landing(records=[], bad=wrong, ids=[], digest=_digest([], wrong))


def nothing() -> Landing:
    return Landing(records=[], bad=[], ids=[], digest="")
