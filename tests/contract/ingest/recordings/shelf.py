"""Recorded answers of real providers, taken from beside the checkout; nothing of them is copied into the repository."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.ingest.extraction.body_parser import Document, parse
from patra.ingest.extraction.items import item_reader
from patra.ingest.extraction.list_outline import list_outline, list_place, list_split
from patra.ingest.extraction.mapping import Flaw, Mapper
from patra.ingest.extraction.response import Identity, Polluted, Reader
from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.packs.spec import Leg
from patra.ingest.packs.work import Origin, Work, work_of
from patra.ingest.vocabulary.codes import Operation

COLLECTIONS = ("recordings", "recordings-2")


def _shared() -> Path:
    """`shared` beside the checkout, or beside a folder that the checkout lies in."""
    above = Path(__file__).resolve().parents[5:]
    return next((one / "shared" for one in above if (one / "shared" / COLLECTIONS[0]).is_dir()), above[0] / "shared")


FOLDERS = tuple(_shared() / name for name in COLLECTIONS)
FOLDER = FOLDERS[0]

RETIRED = Path(__file__).with_name("retired.yaml")

needed = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS),
    reason="the recordings are not beside the checkout (../shared/recordings and ../shared/recordings-2)",
)

PARAMS = {
    "oaipmh": {"baseUrl": "https://repository.example.org/oai"},
    "unpaywall": {"email": "someone@example.org"},
    "dblp": {"query": "attention"},
    "eric": {"search": "blockchain"},
}


class Recording(msgspec.Struct, frozen=True):
    name: str
    method: str
    url: str
    status: int
    headers: dict[str, Any]
    body: str


@cache
def recording(name: str) -> Recording:
    """By the beginning of its name: `crossref/012`."""
    path = next(path for folder in FOLDERS for path in folder.glob(f"{name}*.json"))
    return recording_of(name, json.loads(path.read_text(encoding="utf-8")))


def recording_of(name: str, found: dict[str, Any]) -> Recording:
    """A file of a collection, or one that `patra ingest record` wrote."""
    request, response = found["request"], found["response"]
    return Recording(
        name=name,
        method=request["method"],
        url=request["url"],
        status=response["status"],
        headers={key.lower(): value for key, value in (response.get("headers") or {}).items()},
        body=response["body"],
    )


@cache
def leg_of(source: str, endpoint: str) -> Leg:
    """An endpoint of a pack, compiled: of the distribution, or of `retired.yaml` beside this file."""
    if source == "retired":
        loaded = bundled.parse_pack(RETIRED.read_text(encoding="utf-8"), RETIRED.name)
    else:
        loaded = bundled.pack(source)
    for operation in Operation:
        spec = compile_spec(loaded, endpoint, operation, Overrides(params=PARAMS.get(source, {}))).spec
        if spec is not None:
            detail = operation is Operation.UPDATE and spec.detail is not None
            return spec.detail if detail and spec.detail is not None else spec
    raise AssertionError(f"{source} {endpoint} does not compile")


class Read(msgspec.Struct, frozen=True):
    """One recorded record: what identifies it, what it was mapped to."""

    identity: Identity | Polluted
    fields: dict[str, Any] | Flaw
    work: Work | None


def read(
    source: str, endpoint: str, name: str, body: str | None = None, *, found: Recording | None = None
) -> list[Read]:
    """Every record of a recording, read and mapped by the pack as the executor does it; `body` stands for its own."""
    leg, found = leg_of(source, endpoint), found or recording(name)
    document = parse(
        (found.body if body is None else body).encode(),
        leg.response.format,
        place=list_place(leg),
        apart=list_split(leg),
        outline=list_outline(leg),
    )
    assert isinstance(document, Document), document
    reader = Reader(leg)
    mapper = Mapper(leg.mapping.output, leg.response, leg.expr, leg.params)
    item_of = item_reader([*reader.needs, *mapper.needs])
    plan = {"source": source, "endpoint": endpoint, "operation": "HARVEST"}
    out: list[Read] = []
    for item in map(item_of, reader.page(document, {}, found.url).items or []):
        identity = reader.identity(item)
        fields = mapper(item, 0, plan)
        work = None
        if isinstance(identity, Identity) and not isinstance(fields, Flaw):
            origin = Origin(
                source=source,
                endpoint=endpoint,
                id=identity.id,
                updated_at=identity.updated_at,
                deleted=identity.deleted,
            )
            work = work_of(fields, origin)
        out.append(Read(identity, fields, work))
    return out
