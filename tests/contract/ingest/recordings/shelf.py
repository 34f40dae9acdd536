"""Recorded answers of real providers, taken from beside the checkout; nothing of them is copied into the repository."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.ingest import sources
from patra.ingest.codes import Operation
from patra.ingest.compiler import Overrides, compile_spec
from patra.ingest.items import item_reader
from patra.ingest.mapping import Flaw, Mapper
from patra.ingest.reading import Document, Identity, Polluted, Reader, list_outline, list_place, list_split, parse
from patra.ingest.spec import Leg
from patra.ingest.works import Origin, Work, work_of

FOLDER = Path(__file__).resolve().parents[5] / "shared" / "recordings"

RETIRED = Path(__file__).with_name("retired.yaml")

needed = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the recordings are not beside the checkout (../shared/recordings)"
)

PARAMS = {"oaipmh": {"baseUrl": "https://repository.example.org/oai"}}


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
    path = next(FOLDER.glob(f"{name}*.json"))
    found = json.loads(path.read_text(encoding="utf-8"))
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
        loaded = sources.parsed(RETIRED.read_text(encoding="utf-8"), RETIRED.name)
    else:
        loaded = sources.pack(source)
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


def read(source: str, endpoint: str, name: str) -> list[Read]:
    """Every record of a recording, read and mapped by the pack as the executor does it."""
    leg, found = leg_of(source, endpoint), recording(name)
    document = parse(
        found.body.encode(),
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
