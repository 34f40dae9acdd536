"""Which names an expression may read, by the place where it stands (ch. 4.8: rendering order)."""

from collections.abc import Iterable

from patra.ingest.expressions.expression import Names

WINDOW = frozenset({"from", "to", "until"})
PAGE = frozenset({"no", "index", "size", "offset", "token", "url", "from", "to"})
KEY = frozenset({"from", "to"})
PLAN = frozenset({"source", "endpoint", "operation"})

MEANING: dict[str, str] = {
    "plan.source": "the source's code",
    "plan.endpoint": "the endpoint's name",
    "plan.operation": "HARVEST, BACKFILL or UPDATE",
    "window.from": "first instant of the slice; null where slices are not windows",
    "window.to": "first instant after the slice",
    "window.until": "the upper bound as `window.bounds` and `window.precision` declare it, or `window.to`",
    "page.no": "PAGE: the number of the page",
    "page.index": "how many pages of this slice came before; 0 for the first",
    "page.size": "the page size",
    "page.offset": "OFFSET: the offset",
    "page.token": "TOKEN: the token; null for the first page unless `initial.token` is given",
    "page.url": "URL: the URL of the page; null for the first",
    "page.from": "TIME: where this request starts; the window's start at first",
    "page.to": "TIME: the window's end",
    "key.from": (
        "first key of the range where a window is read in ranges (`planning.keyBounds`); HARVEST by ID: the first id "
        "that was not read yet, or the largest number that was read, which others may have too; else null"
    ),
    "key.to": "last key of that range",
    "ids": "DETAIL: the ids of this request, a list",
    "id": "DETAIL: the first of them",
    "params.NAME": "a parameter",
    "credential.NAME": "a secret of the endpoint's credential; only in headers, query and body",
    "expr.NAME": "a named expression of `expr.vars`",
    "value": "output: what the field's path has found",
    "record": "output: the record, walked by key: `record.a.b`",
    "item": "output, inside `each`: the item",
    "fields.NAME": "output: a field that stands above",
}


def request_names(params: Iterable[str], secrets: Iterable[str], variables: Iterable[str], *, detail: bool) -> Names:
    """Names for headers, query, path and body."""
    names: dict[str, frozenset[str] | None] = {
        "plan": PLAN,
        "window": WINDOW,
        "page": PAGE,
        "key": KEY,
        "params": frozenset(params),
        "credential": frozenset(secrets),
        "expr": frozenset(variables),
    }
    if detail:
        names |= {"ids": frozenset(), "id": frozenset()}
    return names


def base_url_names(params: Iterable[str]) -> Names:
    return {"params": frozenset(params)}


def output_names(params: Iterable[str], fields: Iterable[str], *, item: bool) -> Names:
    """Names for the output mapping."""
    names: dict[str, frozenset[str] | None] = {
        "plan": PLAN,
        "params": frozenset(params),
        "fields": frozenset(fields),
        "value": None,
        "record": None,
    }
    return names | {"item": None} if item else names
