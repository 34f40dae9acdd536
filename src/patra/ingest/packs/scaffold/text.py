"""Turns what was read off a sample into a pack in YAML that loads as it is, open questions marked TODO."""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from patra.ingest.packs.scaffold.fields import Authors, Choice, Fields, understand_places
from patra.ingest.packs.scaffold.listing import Walk, walk_of
from patra.ingest.packs.scaffold.sample import Found, Sample, read
from patra.ingest.packs.scaffold.spots import places
from patra.ingest.vocabulary.codes import ResponseFormat

_PLAIN = re.compile(r"[A-Za-z$][A-Za-z0-9_$./-]*")
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A pack, begun: `todo` counts the places where a person must decide."""

    text: str
    records: int
    fields: tuple[str, ...]
    todo: int


def start_pack(name: str, endpoint: str, sample: Sample, items_path: str | None = None) -> Started:
    """The pack of a sample. Raises Invalid where the sample holds no records."""
    found = read(sample, items_path)
    walk = walk_of(sample, found)
    fields = understand_places(places(found))
    lines = [*_head(name, walk), *_endpoint(name, endpoint, found, walk, fields)]
    text = "\n".join(lines) + "\n"
    mapped = tuple(choice.field for choice in fields.work) + (("authors",) if fields.authors else ())
    return Started(text=text, records=len(found.records), fields=mapped, todo=text.count("TODO"))


def _head(name: str, walk: Walk) -> Iterator[str]:
    yield f"# {name}: begun by `patra ingest pack new` from a sample answer."
    yield "# What the sample does not tell is marked TODO. The fields: `patra ingest pack schema`."
    yield "pack: 1"
    yield f"source: {name}"
    yield 'version: "0.1.0"'
    yield f"title: {name}  # TODO: the provider's name"
    yield f"hosts: {_flow(list(walk.hosts))}  # requests, redirects and next pages may go nowhere else"
    if walk.key:
        yield "credentials:"
        secret = f"env:{re.sub(r'[^A-Z0-9]', '_', name.upper())}_API_KEY"
        yield f"  {name}: {_flow({'type': 'API_KEY', 'secrets': {'apiKey': secret}})}"
    yield "defaults:"
    yield "  http:"
    for note in walk.todo.get("where", ()):
        yield f"    # TODO: {note}"
    yield f"    baseUrl: {_text(walk.base_url)}"
    if walk.base_url.startswith("http://"):
        yield "    allowHttp: true  # TODO: take it away if the provider has https"
    if walk.mailto:
        yield "    userAgent: \"${params.mailto == null ? 'patra' : concat('patra (mailto:', params.mailto, ')')}\""
        yield "  params:"
        yield '    mailto: {description: "Your address, so that the provider can reach you", selects: false}'
    if walk.key:
        auth = {"type": "API_KEY", "location": "QUERY", "name": walk.key, "credentialRef": name, "optional": True}
        yield f"  auth: {_flow(auth)}"
    yield "  # TODO: the rate that the provider documents; be slower than you may"
    yield "  rateLimit: {refillRatePerSec: 1, burstCapacity: 1, maxConcurrency: 1, scope: SOURCE}"
    yield "  limits: {maxRatePerSec: 1}"
    yield "  retry: {maxAttempts: 6, baseDelay: PT1S}"


def _endpoint(name: str, endpoint: str, found: Found, walk: Walk, fields: Fields) -> Iterator[str]:
    yield "endpoints:"
    yield f"  {endpoint}:"
    if found.single:
        yield "    # TODO: the sample is one record, taken for a list of one; give a sample of the list, or make this"
        yield "    # a DETAIL endpoint (role: DETAIL, ${id} in the path) that the list's endpoint links to by twoPhase"
    yield "    method: GET"
    yield f"    path: {_text(walk.path)}"
    yield f"    supports: {_flow(['HARVEST', 'BACKFILL'] if fields.updated else ['BACKFILL'])}"
    if walk.query:
        yield "    http:"
        yield "      queryTemplate:"
        yield from (f"        {_text(key)}: {_text(value)}" for key, value in walk.query.items())
        if walk.next_query:
            yield f"      nextQueryTemplate: {_flow(dict(walk.next_query))}"
    yield from _paging(walk, fields)
    yield from _response(found, walk, fields)
    yield from _output(name, fields)


def _paging(walk: Walk, fields: Fields) -> Iterator[str]:
    for note in walk.todo.get("paging", ()):
        yield f"    # TODO: {note}"
    yield f"    pagination: {_flow(dict(walk.pagination))}"
    key = _last(fields.updated.path) if fields.updated else "id"
    window: dict[str, Any] = {"supportsUpdatedSince": True} if walk.windowed else {"clientFilter": True}
    narrow = walk.windowed and walk.hours
    window |= {"watermarkKey": key, "align": "hour" if narrow else "day", "minWindow": "PT1H" if narrow else "P1D"}
    window |= {"maxWindow": "P7D", "safetyLag": "P1D", "initial": "P7D"}
    if walk.windowed:
        yield "    # TODO: does the list keep its order while it is read? Then say stable: true"
        yield f"    ordering: {{orderBy: as found{', monotonic: true' if not fields.updated else ''}}}"
        yield "    # TODO: is the upper bound inclusive? Then say window.bounds: inclusive and window.precision;"
        yield "    #   undeclared, a window reads a little too much, never too little"
    else:
        first, *rest = walk.todo.get("window", ("",))
        yield f"    # TODO: {first}"
        yield from (f"    #   {line}" for line in rest)
        yield "    ordering: {orderBy: as found, stable: true, monotonic: true}  # TODO: is it so?"
    yield f"    window: {_flow(window)}"


def _undated_words(found: Found, walk: Walk) -> Iterator[str]:
    """A list that is filtered here needs a date: a wrong path puts records in quarantine, none would drop them."""
    yield "      # TODO: no date was found, so a record cannot be compared with a newer one: only BACKFILL is offered"
    if walk.windowed:
        yield "      updateTime: NONE"
        yield "      onEqual: CONTENT"
    else:
        yield "      # TODO: the list is filtered by this time; say where it is, every record is refused until then"
        yield f"      updatedAtPath: {'$.updated' if found.format is ResponseFormat.JSON else 'updated'}"


def _response(found: Found, walk: Walk, fields: Fields) -> Iterator[str]:
    yield "    response:"
    used = _used_prefixes(found, walk, fields)
    if found.format is ResponseFormat.XML:
        yield "      format: XML"
        if used:
            yield "      namespaces:"
            yield from (f"        {prefix}: {_text(uri)}" for prefix, uri in used.items())
    yield f"      itemsPath: {_text(found.items_path)}"
    yield "      itemsMissing: FAIL  # an answer without it is not a page; EMPTY if the provider ends lists so"
    if fields.id is None:
        own = (
            f"in the sample, each record has its own {', '.join(fields.distinct[:3])}"
            if fields.distinct
            else "in the sample, no field is in every record with a value of its own"
        )
        yield f"      # TODO: say what identifies a record; nothing is called an id: {own}"
    guess = "$.id" if found.format is ResponseFormat.JSON else "id"
    yield f"      idPath: {_text(fields.id.path if fields.id else guess)}{_choice_comment(fields.id)}"
    if fields.updated is None:
        yield from _undated_words(found, walk)
    else:
        if not fields.changes:
            yield "      # TODO: this is some date of the record, not surely the time of its last change"
        yield f"      updatedAtPath: {_text(fields.updated.path)}{_choice_comment(fields.updated)}"
    if fields.deleted is not None:
        values = ["deleted"] if fields.deleted.path.endswith("@status") else ["true"]
        yield f"      deletedPath: {_text(fields.deleted.path)}"
        yield f"      deletedValues: {_flow(values)}"
    if walk.total:
        yield f"      totalPath: {_text(walk.total)}"
    else:
        yield "      # TODO: totalPath, if the answer says how many records there are"
    if found.format is ResponseFormat.XML and "o" in used and used["o"].endswith("/OAI/2.0/"):
        yield "    errors:"
        yield '      no_records: {path: "//o:error/@code", equals: [noRecordsMatch], outcome: EMPTY}'
        yield '      expired: {path: "//o:error/@code", equals: [badResumptionToken], outcome: RESTART}'
        yield "      other: {path: //o:error, outcome: L2}"
    else:
        yield "    # TODO: errors that come with a status 200, and 4xx that pass by themselves:"
        yield '    # errors: {busy: {status: [400], pattern: "(?i)timeout", outcome: L1}}'


def _output(name: str, fields: Fields) -> Iterator[str]:
    named = {choice.field for choice in fields.work} & {"doi", "pmid", "arxiv", "title"}
    yield "    output:"
    if not named and fields.id is None:
        yield "      # TODO: nothing was found that makes a work (an identifier or a title); records stay as they came"
        yield "      shape: raw"
        return
    yield "      shape: work"
    yield "      fields:"
    for choice in fields.work:
        yield f"        {choice.field}: {_choice(choice)}{_choice_comment(choice)}"
    if fields.authors is not None:
        yield from _authors(fields.authors)
    if fields.id is not None and not any(
        choice.path == fields.id.path and choice.field in named for choice in fields.work
    ):
        yield "        ids:"
        yield f"          fields: {_flow({name: {'path': fields.id.path, 'type': 'TEXT'}})}"


def _choice(choice: Choice, *, every: bool = False) -> str:
    parts: dict[str, Any] = {"path": choice.path.replace("[0]", "[*]"), "all": True} if every else {"path": choice.path}
    if choice.expr:
        parts["expr"] = choice.expr
    if choice.apply:
        parts["apply"] = list(choice.apply)
    if choice.type:
        parts["type"] = choice.type
    return _flow(parts)


def _authors(authors: Authors) -> Iterator[str]:
    if authors.path is not None:
        expr = f"${{split(value, '{authors.separator}')}}"
        yield f"        authors: {_flow({'path': authors.path, 'expr': expr, 'apply': ['text']})}"
        return
    if not authors.inner and not authors.turned:
        yield f"        authors: {_flow({'path': authors.each, 'all': True, 'apply': ['text']})}"
        return
    yield "        authors:"
    yield f"          each: {_text(authors.each or '')}"
    yield "          fields:"
    here = "$" if (authors.each or "").startswith("$") else "."
    if authors.turned:
        where = authors.inner["name"].path if authors.inner else here
        yield f"            _person: {_flow({'path': where, 'apply': ['person']})}"
        for part in ("name", "given", "family"):
            expr = f"${{jsonPath(fields._person, '$.{part}')}}"
            yield f"            {part}: {_text(expr)}"
    for field, choice in authors.inner.items():
        if not (authors.turned and field == "name"):
            yield f"            {field}: {_choice(choice, every=field == 'affiliation')}"
    if not authors.turned and "name" not in authors.inner:
        given = "fields.given, ' ', " if "given" in authors.inner else ""
        expr = f"${{trim(concat({given}fields.family))}}"
        yield f"            name: {_text(expr)}"


def _choice_comment(choice: Choice | None) -> str:
    """A comment with what stands there, and what else could be meant."""
    if choice is None:
        return ""
    value = next((one for one in choice.values if isinstance(one, str | int)), None)
    shown = re.sub(r"[^\x20-\x7e\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd]|\s+", " ", str(value)).replace("TODO", "todo")
    told = [f"{shown[:37]}…" if len(shown) > 40 else shown] if value is not None else []
    told += [f"or {', '.join(choice.others[:2])}"] if choice.others else []
    return f"  # {'; '.join(told)}" if told else ""


def _used_prefixes(found: Found, walk: Walk, fields: Fields) -> dict[str, str]:
    """The prefixes that the pack's paths use."""
    authors = fields.authors
    paths = [found.items_path, walk.total or "", str(walk.pagination.get("nextTokenPath", ""))]
    paths += [str(walk.pagination.get("nextUrlPath", ""))]
    paths += [choice.path for choice in (fields.id, fields.updated, fields.deleted, *fields.work) if choice]
    if authors is not None:
        paths += [authors.each or "", authors.path or "", *(choice.path for choice in authors.inner.values())]
    text = " ".join(paths)
    return {prefix: uri for prefix, uri in found.namespaces.items() if re.search(rf"(?<![\w-]){prefix}:", text)}


def _last(path: str) -> str:
    names = re.findall(r"[A-Za-z_][\w-]*", path)
    return str(names[-1]) if names else "updated"


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return "{" + ", ".join(f"{_text(key)}: {_flow(item)}" for key, item in members.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in cast("list[Any]", value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN and not value.endswith("-"):
        return value
    return msgspec.json.encode(value).decode()
