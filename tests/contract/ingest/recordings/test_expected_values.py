"""Records of each pack against values that were read by hand from the raw answers: `expected/SOURCE.yaml`.

An entry names the endpoint, the recording, the record (its place on the page, or its id) and the values; null means
that the field must not be there. Authors are given by their names.

`expected_whole/SOURCE.yaml` has all fields of a record. An entry with `read: by hand` was chosen by chance and compared
by a person with the raw answer, field by field, before it was written down; its authors are given in full. `within`
leads to a record inside an answer of another kind, `around` is the envelope that a recorded resource lacks.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from patra.ingest.extraction.response import Identity
from patra.ingest.packs import bundled
from patra.ingest.packs.work import Origin, work_of
from tests.contract.ingest.recordings.shelf import Read, leg_of, needed, read, recording
from tests.contract.ingest.recordings.test_every_record_maps import ORGANISATIONS, PARTIAL, WHOLE
from tests.contract.ingest.recordings.test_fields_by_hand import CASES
from tests.contract.ingest.recordings.test_values_by_hand import VALUES

pytestmark = needed
FOLDER = Path(__file__).with_name("expected")
ENTRIES: list[tuple[str, dict[str, Any]]] = [
    (file.stem, entry)
    for file in sorted(FOLDER.glob("*.yaml"))
    for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
]
WHOLE_FOLDER = Path(__file__).with_name("expected_whole")
WHOLE_ENTRIES: list[tuple[str, dict[str, Any]]] = [
    (file.stem, entry)
    for file in sorted(WHOLE_FOLDER.glob("*.yaml"))
    for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
]
"""Every field of a record, held against the raw answer by a person: what is not listed must not be there."""
LEAST_RECORDS = 5


ORIGIN = {"source", "endpoint", "raw"}
FEW = {"dblp", "eric", "inspire", "jstage", "opencitations", "osf"}


def values_of(source: str, endpoint: str, one: Read, *, authors_in_full: bool = False) -> dict[str, Any]:
    """The fields of a record, as a work where the pack makes works."""
    assert isinstance(one.fields, dict), one.fields
    if leg_of(source, endpoint).mapping.output.shape != "work":
        return one.fields
    updated = one.identity.updated_at if isinstance(one.identity, Identity) else None
    origin = Origin(source=source, endpoint=endpoint, id=one.identity.id or "none", updated_at=updated)
    found: dict[str, Any] = msgspec.to_builtins(work_of(one.fields, origin))
    names = [author["name"] for author in found.get("authors", [])]
    return found if authors_in_full else {**found, "authors": names}


@pytest.mark.parametrize(
    ("source", "entry"), ENTRIES, ids=[f"{source}-{entry['recording']}-{entry['at']}" for source, entry in ENTRIES]
)
def test_a_record_has_the_values_that_a_person_reads_in_the_raw_answer(source: str, entry: dict[str, Any]) -> None:
    records, at = read(source, entry["endpoint"], entry["recording"]), entry["at"]
    one = records[at] if isinstance(at, int) else next(one for one in records if one.identity.id == at)
    found = values_of(source, entry["endpoint"], one)
    assert {name: found.get(name) for name in entry["values"]} == entry["values"]


def body_of(entry: dict[str, Any]) -> str | None:
    """What is read in place of the recorded body, if anything."""
    body = recording(entry["recording"]).body
    if "around" in entry:
        return entry["around"].format(body)
    if "within" not in entry:
        return None
    found = json.loads(body)
    for step in entry["within"]:
        found = found[step]
    return json.dumps(found)


def shown(value: Any, expected: Any) -> Any:
    """A long list by its ends and its length, a long abstract by how it begins and ends."""
    match expected:
        case {"first": _, "last": _, "count": _} if isinstance(value, list):
            items = cast("list[Any]", value)
            return {"first": items[0], "last": items[-1], "count": len(items)}
        case {"begins": begins, "ends": ends} if isinstance(value, str):
            return {"begins": value[: len(begins)], "ends": value[-len(ends) :]}
        case _:
            return value


@pytest.mark.parametrize(
    ("source", "entry"),
    WHOLE_ENTRIES,
    ids=[f"{source}-{entry['recording']}-{entry['at']}" for source, entry in WHOLE_ENTRIES],
)
def test_a_record_has_these_fields_and_no_others(source: str, entry: dict[str, Any]) -> None:
    at: int = entry["at"]
    one, expected = read(source, entry["endpoint"], entry["recording"], body_of(entry))[at], entry["values"]
    found = values_of(source, entry["endpoint"], one, authors_in_full=entry.get("read") == "by hand")
    there = {name: value for name, value in found.items() if value not in (None, [], {}) and name not in ORIGIN}
    assert {name: shown(value, expected.get(name)) for name, value in there.items()} == expected


def test_every_pack_is_compared_field_by_field_in_five_records_or_all_that_are_recorded() -> None:
    count = Counter(source for source, _ in WHOLE_ENTRIES)
    there = Counter[str]()
    for source, _, _, records in (*WHOLE, *PARTIAL, *ORGANISATIONS):
        there[source] += records
    unequal = {name for name in bundled.names() if count[name] < min(LEAST_RECORDS, there[name])}
    assert unequal == set()
    assert {name for name in bundled.names() if count[name] < LEAST_RECORDS} == FEW, "fewer of these are recorded"


def test_every_pack_has_five_records_read_by_hand_or_all_that_are_recorded() -> None:
    seen = {(case[0], case[2], case[3]) for case in (*CASES, *VALUES)}
    seen |= {(source, entry["recording"], entry["at"]) for source, entry in ENTRIES}
    count = Counter(source for source, _, _ in seen)
    there = Counter[str]()
    for source, _, _, records in (*WHOLE, *PARTIAL, *ORGANISATIONS):
        there[source] += records
    few = {
        name: (count[name], there[name]) for name in bundled.names() if count[name] < min(LEAST_RECORDS, there[name])
    }
    assert few == {}
