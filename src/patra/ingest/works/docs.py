"""Turns the packs of the distribution into the table of sources, for the documentation and the command line."""

from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import LoadedPack, offered_operations
from patra.ingest.packs.merge import merge
from patra.ingest.packs.schema import Sections
from patra.ingest.packs.sections import Field
from patra.ingest.packs.work import RELATIONS, Author, Citations, Funder, Link, Notice, Relation, Work
from patra.ingest.vocabulary.codes import MissingIds, Operation, PaginationType, Role
from patra.ingest.works.semantics_table import semantics_codes, semantics_lines

RECORDED: Mapping[str, tuple[str, ...]] = {
    "ads": ("search",),
    "arxiv": ("query", "oai", "getRecord"),
    "biorxiv": ("feed",),
    "clinicaltrials": ("studies", "study"),
    "core": ("search_v2",),
    "crossref": ("works", "work"),
    "datacite": ("dois", "doi"),
    "dblp": ("search",),
    "doaj": ("articles", "article"),
    "eric": ("search",),
    "europepmc": ("search",),
    "hal": ("search",),
    "inspire": ("literature",),
    "jstage": ("articles",),
    "oaipmh": ("records", "marc"),
    "openaire": ("products",),
    "openalex": ("works", "work"),
    "opencitations": ("work", "cited"),
    "orcid": ("people", "works", "work"),
    "osf": ("preprint",),
    "pmc": ("records", "convert"),
    "pubmed": ("search", "fetch"),
    "ror": ("organizations", "organization"),
    "semanticscholar": ("bulk", "batch"),
    "unpaywall": ("doi",),
    "zenodo": ("records", "record"),
}
"""Endpoints that are held to recorded answers of the real service; a test holds this to what is recorded."""
DECLARED = (
    "update time from",
    "meaning",
    "same time",
    "version",
    "deleted records",
    "re-read",
    "total",
    "bounds",
    "precision",
)
"""Columns of the table of what endpoints declare."""
UNPROVEN = "unproven against recordings"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A pack in one line."""

    source: str
    title: str
    version: str
    endpoints: str
    rate: str


def summaries() -> list[Summary]:
    out: list[Summary] = []
    for name in bundled.names():
        loaded = bundled.pack(name)
        pack = loaded.pack
        first = next(iter(pack.endpoints))
        out.append(
            Summary(
                source=pack.source,
                title=pack.title,
                version=pack.version,
                endpoints=", ".join(pack.endpoints),
                rate=_rate(_sections(loaded, first)),
            )
        )
    return out


def sources_page() -> str:
    """`docs/reference/sources.md`."""
    lines = [
        "# Sources",
        "",
        "Made from the packs, and held to them by a test; do not edit. Each pack is a YAML file of the distribution:",
        "`patra ingest packs NAME` prints it, `patra ingest pack load` takes it, and",
        "[how to add a source](../how-to/add-a-source.md) says how to write your own.",
        "",
        "The last column says what tests hold the endpoint to: `recorded`, recorded answers of the real service;",
        "`as …`, the same identity and mapping as an endpoint that is; otherwise only answers of our own making, in",
        "the form that the provider documents.",
        "",
        "| source | endpoint | operations | pagination | window | rate | deepest record | held to |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in bundled.names():
        loaded = bundled.pack(name)
        lines += [_row(loaded, endpoint) for endpoint in loaded.pack.endpoints]
    lines += [
        "",
        "## What the packs declare",
        "",
        "The meaning of the update time decides what a harvest can see. `REVISED`: two changes may share it;",
        "`PUBLISHED`: it does not move with the record; `NONE`: the source reports none. `CONTENT` under *same time*:",
        "other content is newer (ruling I14); `KEEP`: the stored record stays unless a higher version comes.",
        "*Re-read* names schedules that read the last months again, for records that appear late; they are off until",
        "you switch them on.",
        "",
        f"| source | endpoint | {' | '.join(DECLARED)} |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in bundled.names():
        loaded = bundled.pack(name)
        lines += [row for endpoint in loaded.pack.endpoints if (row := _semantics(loaded, endpoint))]
    lines += ["", *semantics_lines()]
    lines += ["", "## The shape of a work", "", "What a source does not have is absent; nothing is guessed.", ""]
    for part in (Work, Author, Funder, Relation, Link, Citations, Notice):
        lines += [*_shape(part), ""]
    lines += ["Relations: " + ", ".join(f"`{name}` ({text})" for name, text in RELATIONS.items()) + "."]
    for name in bundled.names():
        lines += ["", *pack_section(bundled.pack(name))]
    return "\n".join(lines) + "\n"


def _shape(part: type[msgspec.Struct]) -> Iterator[str]:
    """A struct of the shape as a table, from the notes at its fields."""
    yield f"| {part.__name__} | what it is |"
    yield "|---|---|"
    hints = get_type_hints(part, include_extras=True)
    for field in msgspec.structs.fields(part):
        notes: tuple[Any, ...] = getattr(hints[field.name], "__metadata__", ())
        about = next((note.description for note in notes if isinstance(note, msgspec.Meta)), None)
        yield f"| `{field.name}` | {_cell(about or '')} |"


def _row(loaded: LoadedPack, endpoint: str) -> str:
    pack = loaded.pack
    at = _sections(loaded, endpoint)
    detail = pack.endpoints[endpoint].role is Role.DETAIL
    operations = ", ".join(operation.value for operation in offered_operations(pack, endpoint))
    cells = [
        f"[{pack.source}](#{_anchor(pack.title)})",
        f"`{endpoint}`",
        "details by id" if detail else operations,
        f"ids, {at.batching.id_batch_size} a request" if detail else _paging(at),
        "" if detail else f"{at.window.watermark_key}, {at.window.min_window} to {at.window.max_window}",
        _rate(at),
        "" if detail else _depth(at),
        _proof(loaded, endpoint),
    ]
    return "| " + " | ".join(cells) + " |"


def _semantics(loaded: LoadedPack, endpoint: str) -> str | None:
    """What an endpoint that gives records declares of their times, versions and deletions."""
    at = _sections(loaded, endpoint)
    response = at.response
    if at.two_phase.enabled:
        return None
    gone = f"`{_cell(response.deleted_path)}`" if response.deleted_path else "not reported"
    if at.batching.missing_ids is MissingIds.DELETED:
        gone = "answered as gone" if not response.deleted_path else f"answered as gone, or {gone}"
    if response.deleted_path and response.deleted_values:
        gone += " is " + " or ".join(response.deleted_values)
    again = [
        f"`{name}`: {schedule.last}"
        for name, schedule in loaded.pack.schedules.items()
        if schedule.reread and schedule.endpoint == endpoint
    ]
    cells = [
        loaded.pack.source,
        f"`{endpoint}`",
        f"`{_cell(response.updated_at_path)}`" if response.updated_at_path else "",
        response.update_time.value,
        response.on_equal.value,
        f"`{_cell(response.version_path)}`" if response.version_path else "",
        gone,
        ", ".join(again),
        *semantics_codes(loaded, endpoint, at),
    ]
    return "| " + " | ".join(cells) + " |"


def _proof(loaded: LoadedPack, endpoint: str) -> str:
    recorded = RECORDED.get(loaded.pack.source, ())
    if endpoint in recorded:
        return "recorded"
    own = _sections(loaded, endpoint)
    for other in recorded:
        at = _sections(loaded, other)
        same = (at.response.id_path, at.response.updated_at_path) == (
            own.response.id_path,
            own.response.updated_at_path,
        )
        if same and at.output == own.output:
            return f"as `{other}`"
    return UNPROVEN


def pack_section(loaded: LoadedPack) -> Iterator[str]:
    """What the page of sources says of one pack."""
    pack = loaded.pack
    yield f"## {pack.title}"
    yield ""
    yield pack.description
    links = {"Provider": pack.homepage, "Reference of the provider": pack.documentation}
    for name, link in links.items():
        if link:
            yield ""
            yield f"{name}: <{link}>"
    titles = {name: endpoint.title for name, endpoint in pack.endpoints.items() if endpoint.title}
    if titles:
        yield ""
        yield "Endpoints: " + ", ".join(f"`{name}` ({_cell(title)})" for name, title in titles.items()) + "."
    params = {
        name: param
        for endpoint in pack.endpoints
        for name, param in _sections(loaded, endpoint).params.items()
        if param.description
    }
    if params:
        yield ""
        yield "| parameter | default | what it is |"
        yield "|---|---|---|"
        for name, param in params.items():
            default = "" if param.default in (None, "") else f"`{_cell(str(param.default))}`"
            yield f"| `{name}` | {'required' if param.required else default} | {_cell(param.description)} |"
    if pack.credentials:
        yield ""
        about = {ref: one.description for one in pack.credentials.values() for ref in one.secrets.values()}
        yield "Credentials: " + ", ".join(_secret(ref, text) for ref, text in sorted(about.items())) + "."
    for endpoint in pack.endpoints:
        fields = _sections(loaded, endpoint).output.fields
        shown = {name: field for name, field in fields.items() if not name.startswith("_")}
        if not shown:
            continue
        yield ""
        yield f"What `{endpoint}` maps to a work:"
        yield ""
        yield "| field | from |"
        yield "|---|---|"
        for name, field in shown.items():
            yield f"| {name} | {_from(field)} |"
        break


def _sections(loaded: LoadedPack, endpoint: str) -> Sections:
    operations = offered_operations(loaded.pack, endpoint)
    return merge(loaded.tree, endpoint, operations[0] if operations else Operation.HARVEST).sections


def _paging(at: Sections) -> str:
    kind = at.pagination.type
    if kind is None:
        return ""
    size = f", {at.pagination.page_size} a page" if at.pagination.page_size else ""
    words = {
        PaginationType.OFFSET: "offset",
        PaginationType.PAGE: "page number",
        PaginationType.TOKEN: "token",
        PaginationType.URL: "next URL",
        PaginationType.TIME: "time",
    }
    return words[kind] + size


def _rate(at: Sections) -> str:
    rate = at.rate_limit
    more = rate.authenticated.refill_rate_per_sec
    known = rate.identified
    named = f", with `{known.param}` {known.refill_rate_per_sec:g}/s" if known.refill_rate_per_sec else ""
    return f"{rate.refill_rate_per_sec:g}/s" + named + (f", with a key {more:g}/s" if more else "")


def _depth(at: Sections) -> str:
    deepest = at.limits.max_depth
    return f"{deepest:,}" if deepest else "no bound"


def _from(field: Field | str) -> str:
    if isinstance(field, str):
        return f"`{_cell(field)}`"
    parts: list[str] = []
    if field.path is not None:
        parts.append(f"`{_cell(field.path)}`")
    if field.each is not None:
        parts.append(f"each `{_cell(field.each)}`: {', '.join(name for name in field.fields if name[0] != '_')}")
    elif field.fields:
        parts += [f"{name}: {_from(inner)}" for name, inner in field.fields.items()]
    if field.expr is not None:
        parts.append("computed" if field.path is not None or field.each is not None else f"`{_cell(field.expr)}`")
    if field.apply:
        parts.append(", ".join(field.apply))
    if field.map:
        parts.append("translated")
    if field.default is not None:
        parts.append(f"else `{field.default}`" if parts else f"always `{field.default}`")
    return "; ".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _secret(reference: str, about: str) -> str:
    name = f"`{reference.removeprefix('env:')}`"
    return f"{name} ({_cell(about)})" if about else name


def _anchor(title: str) -> str:
    kept = "".join(char for char in title.lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")
