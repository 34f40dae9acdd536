"""Decides from a sample how its list is walked: the kind of pages, the total, and the request with its blanks."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from patra.ingest.packs.scaffold.sample import OAI, Found, Sample
from patra.ingest.packs.scaffold.spots import Spot, outside, words

_FURTHER = (
    r"(.*/)?(next_(page_)?(cursor|token|cursor_mark)|cursor_next|next_page_token|continuation(_token)?|scroll_id|token)"
)
_NEXT = r"(.*/)?(next|next_page_url|next_url|next_link|odata_next_link)(/href)?|(.*/)?link/next"
_TOTALS = (
    r"(.*/)?(total|total_results|total_hits|total_count|num_found|hit_count|total_records|total_items)(/value)?",
    r"(.*/)?(complete_list_size|records_total|result_count|count|total_elements|found)",
)
_CURSOR_PARAM = r"cursor|cursor_mark|page_token|token|scroll_id|after|resumption_token|continuation|page_cursor"
_PAGE_PARAM = r"page|page_number|page_no|p|pg|current_page"
_OFFSET_PARAM = r"offset|start|skip|start_index|retstart|start_record|start_row|first"
_SIZE_PARAM = r"rows|size|per_page|perpage|page_size|pagesize|limit|max_results|maxresults|retmax|count|n"
_KEY_PARAM = r"api_?key|key|access_token|appid|app_key"
_DATE = re.compile(r"\d{4}([-/])\d{2}\1\d{2}(T\d{2}:\d{2}(:\d{2})?Z?)?")


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """How the list is asked for. `todo` are notes for the part of that name: paging, window, where."""

    base_url: str
    path: str
    query: Mapping[str, str]
    next_query: Mapping[str, str] = {}
    pagination: Mapping[str, Any] = {}
    total: str | None = None
    windowed: bool = False
    hours: bool = False
    hosts: Sequence[str] = ()
    key: str | None = None
    mailto: str | None = None
    todo: Mapping[str, Sequence[str]] = {}


class _Paging(msgspec.Struct, frozen=True, kw_only=True):
    fields: dict[str, Any]
    query: dict[str, str] = {}
    next_query: dict[str, str] = {}
    replaced: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()


def walk_of(sample: Sample, found: Found) -> Walk:
    """How the list of a sample is walked, as far as it shows."""
    around = list(outside(found))
    told = sample.url or _own_url(around)
    url = urlsplit(told or "https://api.example.org/records")
    asked = dict(parse_qsl(url.query, keep_blank_values=True))
    protocol = OAI in found.namespaces.values()
    paging = _oai() if protocol else _paging(sample, found, around, asked)
    kept = {name: value for name, value in asked.items() if name not in paging.replaced}
    key = next((name for name in kept if re.fullmatch(_KEY_PARAM, words(name))), None)
    mailto = next((name for name in kept if words(name) in {"mailto", "email"}), None)
    kept = {name: value for name, value in kept.items() if name not in {key, mailto}}
    if protocol:
        kept |= {"verb": "ListRecords", "from": _blank("from", "", days=True), "until": _blank("to", "", days=True)}
        kept = {"metadataPrefix": "oai_dc", **{name: value for name, value in kept.items() if name != "identifier"}}
        path, dated, hours = url.path, True, False
    else:
        path, kept, dated, hours = _window_request(url.path, kept)
    if mailto:
        kept[mailto] = "${params.mailto}"
    return Walk(
        base_url=f"{url.scheme}://{url.netloc}",
        path=path or "/",
        query={**kept, **paging.query},
        next_query=paging.next_query,
        pagination=paging.fields,
        total=_total(around, found, protocol=protocol),
        windowed=dated,
        hours=hours,
        hosts=[url.netloc],
        key=key,
        mailto=mailto,
        todo={
            "paging": paging.todo,
            "where": _where(sample.url, told),
            "window": () if dated else _unfiltered_words(),
        },
    )


def _where(given: str | None, told: str | None) -> tuple[str, ...]:
    if given is not None:
        return ()
    if told is not None:
        return ("read off the answer itself; compare it with the provider's reference",)
    return ("the sample does not say where it comes from: put the provider's address and path here",)


def _unfiltered_words() -> tuple[str, ...]:
    return (
        "nothing in the request names a date, so every harvest reads the whole list and drops what is outside its",
        "window. If the provider can filter by the time of change, put ${window.from} and ${window.until} into",
        "queryTemplate, say supportsUpdatedSince: true, and take clientFilter away.",
    )


def _own_url(around: Sequence[Spot]) -> str | None:
    """An address that the answer gives of itself: OAI's request element, a link to itself or to the next page."""
    for pattern in (r"request", r"(.*/)?(link/)?self(/href)?", _NEXT):
        for spot in around:
            value = next(iter(spot.given_values), None)
            if isinstance(value, str) and value.startswith("http") and re.fullmatch(pattern, spot.trail):
                return value
    return None


def _total(around: Sequence[Spot], found: Found, *, protocol: bool) -> str | None:
    if protocol:
        return "//o:resumptionToken/@completeListSize"
    for pattern in _TOTALS:
        fits = [spot for spot in around if re.fullmatch(pattern, spot.trail) and _number(spot) >= len(found.records)]
        if fits:
            return min(fits, key=lambda spot: len(spot.names)).path
    return None


def _number(spot: Spot) -> int:
    value = next(iter(spot.given_values), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isdigit() else -1


def _oai() -> _Paging:
    return _Paging(
        fields={
            "type": "TOKEN",
            "nextTokenPath": "//o:resumptionToken[normalize-space()]",
            "emptyPage": "CONTINUE",
            "tokenTtl": "PT1H",
        },
        next_query={"verb": "ListRecords", "resumptionToken": "${page.token}"},
        replaced=("resumptionToken", "verb", "from", "until"),
    )


def _paging(sample: Sample, found: Found, around: Sequence[Spot], asked: Mapping[str, str]) -> _Paging:
    size_param = _param(asked, _SIZE_PARAM)
    size = int(asked[size_param]) if size_param and asked[size_param].isdigit() else max(len(found.records), 1)
    sized = {size_param: "${page.size}"} if size_param else {}
    dropped = (size_param,) if size_param else ()
    count: dict[str, Any] = {"pageSize": max(size, 1)}
    link = next((value for name, value in sample.headers.items() if name.lower() == "link"), "")
    if re.search(r"rel=\"?next\"?", link):
        return _Paging(fields={"type": "URL", "nextUrlLink": "next", **count}, query=sized, replaced=dropped)
    token = _first(around, _FURTHER, lambda value: not isinstance(value, bool)) or _first(
        around, r"(.*/)?next", lambda value: isinstance(value, int) and not isinstance(value, bool)
    )
    if token is not None:
        return _token(token, asked, count, sized, dropped)
    following = _first(around, _NEXT, lambda value: isinstance(value, str) and value.startswith(("http", "/")))
    if following is not None:
        fields = {"type": "URL", "nextUrlPath": following.path, **count}
        return _Paging(fields=fields, query=sized, replaced=dropped)
    return _numbered_paging(around, asked, count, sized, dropped)


def _token(
    token: Spot, asked: Mapping[str, str], count: dict[str, Any], sized: dict[str, str], dropped: tuple[str, ...]
) -> _Paging:
    value = next(iter(token.given_values), None)
    key = re.findall(r"[\w-]+", token.path)[-1]
    param = _param(asked, _CURSOR_PARAM)
    todo: tuple[str, ...] = ()
    if param is None:
        bare = re.sub(r"^next[-_]?", "", key, flags=re.IGNORECASE)
        param = (bare[:1].lower() + bare[1:]) or ("offset" if isinstance(value, int) else "cursor")
        todo = (f"the request's parameter for it is taken to be {param!r}: the sample's URL has none",)
    fields: dict[str, Any] = {"type": "TOKEN", "nextTokenPath": token.path, **count}
    starred = asked.get(param) in {"*", "%2A"} or (param not in asked and words(param) in {"cursor", "cursor_mark"})
    if starred:
        fields["initial"] = {"token": "*"}
    if words(param) == "cursor_mark":
        fields["repeatedToken"] = "END"
    elif value is not None and asked.get(param) == value:
        fields |= {"repeatedToken": "CONTINUE", "shortPage": "END"}
        todo = (*todo, "the cursor that was sent came back: the end of the list is a page that is not full")
    return _Paging(fields=fields, query={**sized, param: "${page.token}"}, replaced=(*dropped, param), todo=todo)


def _numbered_paging(
    around: Sequence[Spot],
    asked: Mapping[str, str],
    count: dict[str, Any],
    sized: dict[str, str],
    dropped: tuple[str, ...],
) -> _Paging:
    page, offset = _param(asked, _PAGE_PARAM), _param(asked, _OFFSET_PARAM)
    todo: tuple[str, ...] = ()
    if page is None and offset is None:
        said_page = _first(around, rf"(.*/)?({_PAGE_PARAM}|page_count|total_pages)", _counts)
        said_offset = _first(around, rf"(.*/)?({_OFFSET_PARAM}|items_offset)", _counts)
        offset = re.findall(r"[\w-]+", said_offset.path)[-1] if said_offset and not said_page else None
        page = "page" if offset is None else None
        known = said_page or said_offset
        todo = (
            f"{known.path} shows it; the request's parameter is taken to be {page or offset!r}"
            if known
            else "the sample does not show how the next page is requested; see the provider's reference",
        )
    if not sized:
        sized = {"size": "${page.size}"}
        todo = (*todo, "the parameter for the page size is taken to be 'size'")
    if page is not None:
        fields = {"type": "PAGE", "base1": asked.get(page, "1") != "0", **count}
        return _Paging(fields=fields, query={**sized, page: "${page.no}"}, replaced=(*dropped, page), todo=todo)
    name = offset or "offset"
    fields = {"type": "OFFSET", **count}
    if asked.get(name) == "1":
        fields["initial"] = {"offset": 1}
    return _Paging(fields=fields, query={**sized, name: "${page.offset}"}, replaced=(*dropped, name), todo=todo)


def _counts(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value.isdigit())


def _first(around: Sequence[Spot], pattern: str, fits: Callable[[Any], bool]) -> Spot | None:
    for spot in around:
        value = spot.values[0]
        if re.fullmatch(pattern, spot.trail) and (value is None or fits(value)):
            return spot
    return None


def _param(asked: Mapping[str, str], pattern: str) -> str | None:
    return next((name for name in asked if re.fullmatch(pattern, words(name))), None)


def _window_request(path: str, query: Mapping[str, str]) -> tuple[str, dict[str, str], bool, bool]:
    """The request with its dates as the edges of a window, the earlier one as its start."""
    found = [match[0] for text in (path, *query.values()) for match in _DATE.finditer(text)]
    edges = sorted(set(found))[:2] if len(set(found)) <= 2 else []
    start, end = (edges[0], edges[-1]) if edges else (None, None)
    later = {name for name in query if re.search(r"until|(^|_)to($|_)|before|max|end", words(name))}

    def blank_value(text: str, name: str = "") -> str:
        def blank(match: re.Match[str]) -> str:
            single = len(edges) == 1 and name in later
            return _blank("to" if single or (match[0] == end and end != start) else "from", match[0])

        return _DATE.sub(blank, text.replace("${", "$${"))

    if not edges:
        return (
            path.replace("${", "$${"),
            {name: value.replace("${", "$${") for name, value in query.items()},
            False,
            False,
        )
    filled = {name: blank_value(value, name) for name, value in query.items()}
    new_path = blank_value(path)
    dated = any("window.from" in text for text in (new_path, *filled.values()))
    return new_path, filled, dated, dated and all("T" in edge for edge in edges)


def _blank(edge: str, written: str, *, days: bool = False) -> str:
    """An edge of the window as the provider writes it; whether the upper bound is inclusive is for the pack to say."""
    if days or "T" not in written:
        fmt = "yyyy/MM/dd" if "/" in written else "yyyy-MM-dd"
    else:
        fmt = (
            "yyyy-MM-dd'T'HH:mm" + (":ss" if written.count(":") == 2 else "") + ("'Z'" if written.endswith("Z") else "")
        )
    at = "window.from" if edge == "from" else "window.until"
    quoted = f"'{fmt}'" if "'" not in fmt else f'"{fmt}"'
    return f"${{formatDateTime({at}, {quoted})}}"
