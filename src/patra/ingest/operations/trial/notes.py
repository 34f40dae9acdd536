"""Says what about the records of a trial would be lost or empty in a harvest: nulls, missing ids, empty fields."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from patra.ingest.extraction.mapping import Flaw
from patra.ingest.extraction.response import Polluted
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.operations.trial.pages import ListWalk, TriedPage
from patra.ingest.packs.work import Origin, work_of
from patra.ingest.vocabulary.codes import TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant

EMPTY: tuple[Any, ...] = (None, "", [], {})


def tried_record(line: EndpointClient, item: Any, now: int) -> dict[str, Any]:
    """A record as it would land; `wrong` says why it would not."""
    identity = line.reader.identity(item, dated=bool(line.leg.response.updated_at_path))
    if isinstance(identity, Polluted):
        return {"id": identity.id, "wrong": f"{identity.path}: {identity.detail}"}
    out: dict[str, Any] = {"id": identity.id}
    if identity.updated_at is not None:
        out["updated"] = format_instant(identity.updated_at)
    if identity.deleted:
        return {**out, "deleted": True}
    plan = {"source": line.source, "endpoint": line.endpoint, "operation": line.operation.value}
    fields = line.mapper(item, now, plan)
    if isinstance(fields, Flaw):
        return {**out, "wrong": f"{fields.place}: {fields.detail}"}
    misfit = _misfit(line, fields, identity.id)
    return {**out, **fields} if misfit is None else {**out, **fields, "wrong": f"no work: {misfit}"}


def _misfit(line: EndpointClient, fields: dict[str, Any], identifier: str) -> str | None:
    """Why the fields of an output of shape `work` are none: such a record lands, and is left out of `works`."""
    if line.leg.mapping.output.shape != "work":
        return None
    try:
        work_of(fields, Origin(source=line.source, endpoint=line.endpoint, id=identifier))
    except msgspec.ValidationError as error:
        return str(error)
    return None


def notes_of(
    listing: EndpointClient, walk: ListWalk, details: Sequence[TriedPage], giver: EndpointClient, items: Sequence[Any]
) -> list[str]:
    """What is null, missing or empty. `giver` is the endpoint whose `items` become records."""
    notes = [*_about_list(listing, walk)]
    asked = sum(page.asked_ids for page in details)
    lost = [one for page in details for one in page.missing_ids]
    if lost:
        named = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
        notes.append(
            f"{len(lost)} of {asked} ids have no record in the details ({named}): `batching.missingIds` says what "
            f"becomes of them, now {giver.leg.batching.missing_ids.value}"
        )
    without = sum(page.without_id for page in details)
    if without:
        notes.append(f"{without} records of the details have no id at `{giver.leg.response.id_path}`")
    if giver is listing and walk.landings and listing.leg.response.updated_at_path:
        undated = sum(1 for one in walk.landings for bad in one.bad if bad.code is RunReason.NO_UPDATED_AT)
        if undated:
            notes.append(f"{undated} of {len(items)} records have no time at `{listing.leg.response.updated_at_path}`")
    return [*notes, *_empty_fields(giver, items)]


def _about_list(line: EndpointClient, walk: ListWalk) -> Iterator[str]:
    nulls = sum(page.null_items for page in walk.pages)
    places = len(walk.items) + nulls
    if nulls:
        yield (
            f"{nulls} of {places} places of the list are null: they count as walked, and nothing lands for them; "
            f"check `response.itemsPath` ({line.leg.response.items_path}), or ask the provider what they stand for"
        )
    without = sum(one.without_id for one in walk.landings)
    if without:
        yield (
            f"{without} of {places} items have no id at `response.idPath` ({line.leg.response.id_path}): a harvest "
            "sets them aside in the quarantine"
        )
    path = line.leg.response.total_path
    if path is None or line.leg.pagination.total is not TotalMeaning.EXACT or not walk.items:
        return
    told = [(page.total, (page.items or 0) + page.null_items) for page in walk.pages]
    remedy = "a harvest of several pages ends as incomplete; correct the path, or declare `pagination.total: NONE`"
    if all(total is None for total, _ in told):
        yield f"no page has a number at `response.totalPath` ({path}): {remedy}"
    elif len(told) > 1 and all(total == places for total, places in told):
        yield f"the number at `response.totalPath` ({path}) is that of the records on each page: {remedy}"


def _empty_fields(line: EndpointClient, items: Sequence[Any]) -> Iterator[str]:
    """Fields that no record has: their paths are wrong, or the provider has none."""
    mapped: list[dict[str, Any]] = []
    for item in items:
        read = line.item(item)
        identity = line.reader.identity(read, dated=False)
        if isinstance(identity, Polluted) or identity.deleted:
            continue
        fields = line.mapper(read, 0, {"source": line.source, "endpoint": line.endpoint, "operation": ""})
        if not isinstance(fields, Flaw):
            mapped.append(fields)
    names = [name for name in line.leg.mapping.output.fields if not name.startswith("_")]
    empty = [f"`{name}`" for name in names if all(fields.get(name) in EMPTY for fields in mapped)] if mapped else []
    if empty:
        what = "field is" if len(empty) == 1 else "fields are"
        check = f"check the path{'s' if len(empty) > 1 else ''}, unless the provider has none"
        yield f"{len(empty)} {what} null in all {len(mapped)} records: {', '.join(empty)}; {check}"
