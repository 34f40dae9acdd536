"""The packs of the distribution go in; the table of sources, for the documentation and the command line, comes out."""

from collections.abc import Iterator, Mapping

import msgspec

from patra.ingest import sources
from patra.ingest.bits import Field
from patra.ingest.codes import Operation, PaginationType, Role
from patra.ingest.compiler import LoadedPack, offered
from patra.ingest.merge import merge
from patra.ingest.pack import Sections

RECORDED: Mapping[str, tuple[str, ...]] = {
    "arxiv": ("query", "oai", "getRecord"),
    "biorxiv": ("feed",),
    "clinicaltrials": ("studies", "study"),
    "core": ("search_v2",),
    "crossref": ("works", "work"),
    "datacite": ("dois", "doi"),
    "doaj": ("articles", "article"),
    "europepmc": ("search",),
    "oaipmh": ("records", "marc"),
    "openalex": ("work",),
    "orcid": ("people", "works", "work"),
    "pubmed": ("search", "fetch"),
    "semanticscholar": ("bulk", "batch"),
    "zenodo": ("records", "record"),
}
"""Endpoints that are held to recorded answers of the real service; a test holds this to what is recorded."""
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
    for name in sources.names():
        loaded = sources.pack(name)
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
    for name in sources.names():
        loaded = sources.pack(name)
        lines += [_row(loaded, endpoint) for endpoint in loaded.pack.endpoints]
    for name in sources.names():
        lines += ["", *_section(sources.pack(name))]
    return "\n".join(lines) + "\n"


def _row(loaded: LoadedPack, endpoint: str) -> str:
    pack = loaded.pack
    at = _sections(loaded, endpoint)
    detail = pack.endpoints[endpoint].role is Role.DETAIL
    operations = ", ".join(operation.value for operation in offered(pack, endpoint))
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


def _section(loaded: LoadedPack) -> Iterator[str]:
    pack = loaded.pack
    yield f"## {pack.title}"
    yield ""
    yield pack.description
    if pack.documentation:
        yield ""
        yield f"Reference of the provider: <{pack.documentation}>"
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
        secrets = sorted({ref for one in pack.credentials.values() for ref in one.secrets.values()})
        yield "Credentials: " + ", ".join(f"`{secret.removeprefix('env:')}`" for secret in secrets) + "."
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
    operations = offered(loaded.pack, endpoint)
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
    return f"{rate.refill_rate_per_sec:g}/s" + (f", with a key {more:g}/s" if more else "")


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


def _anchor(title: str) -> str:
    kept = "".join(char for char in title.lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")
