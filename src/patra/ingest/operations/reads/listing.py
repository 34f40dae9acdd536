"""Lists of rows for people: filtered, paged by key without a limit on depth, each page by an index (ch. 13.6, 14.7).

A `Listing` names the columns, the order and the ways in. A way is an index: the columns it begins with, whose values
are given by a filter or, where there are few (states, operations), tried one after the other; the rest of the filters
are looked at row by row. One page reads as many entries of each value as it shows. The place to go on from is the key
of the last row, so that page 10,000 costs what the first one does and rows that come meanwhile shift nothing.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from patra.kernel.db import Statement, Tx
from patra.kernel.db.queries import DIALECTS, Dialect
from patra.kernel.errors import Invalid

MAX_PAGE_ROWS = 1000
MAX_BRANCHES = 400
"""Values that are tried together: more than SQLite takes in one statement would be 500."""


class Domain(msgspec.Struct, frozen=True):
    """The values that a column may have; the filters it `answers` have narrowed them already."""

    values: Callable[[Tx, Mapping[str, Any]], Sequence[str]]
    answers: tuple[str, ...] = ()


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """An index. `needs`: filters that must be given; `tries`: columns whose values are tried."""

    needs: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    """Another order than that of the list."""
    always: str = ""
    """The condition of an index of some rows, in its own words."""
    unless: tuple[str, ...] = ()
    """Values of the first of `needs` whose rows that index does not have."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A table, its columns, its order (all rising or all falling, the last of it unique), filters and ways in."""

    name: str
    table: str
    also: tuple[str, ...] = ()
    """More tables of the same columns: a page reads as many rows of each as it shows, and merges them."""
    columns: tuple[str, ...]
    order: tuple[str, ...]
    falling: bool = False
    filters: Mapping[str, str]
    """Conditions by filter: `status_code = :status`."""
    ways: tuple[Way, ...]
    domains: Mapping[str, Domain] = {}
    expressions: Mapping[str, str] = {}
    """What is tried and is no column of the table: an expression that an index begins with."""
    always: str = ""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Rows, and where the next page begins; None where there is none."""

    rows: list[dict[str, Any]]
    next: str | None


def page(tx: Tx, listing: Listing, wanted: Mapping[str, Any], *, limit: int, after: str = "") -> Page:
    """A page of a list. Raises Invalid for a filter that the list does not have, or a place that is none."""
    given = {name: value for name, value in wanted.items() if value not in ("", None)}
    if unknown := sorted(set(given) - set(listing.filters)):
        raise Invalid("i_bad_filter", f"{listing.name} cannot be filtered by {', '.join(unknown)}")
    way = next((way for way in listing.ways if _leads(way, given)), None)
    if way is None:
        needs = " or ".join(" and ".join(one.needs) for one in listing.ways)
        raise Invalid("i_bad_filter", f"{listing.name} is read by {needs}", advice=f"name {needs}")
    order = way.order or listing.order
    place = _place(after, len(order), way)
    tried = [list(listing.domains[column].values(tx, given)) for column in way.tries]
    branches = list(product(*tried))
    if not branches:
        return Page(rows=[], next=None)
    if len(branches) > MAX_BRANCHES:
        raise Invalid("i_bad_filter", f"{listing.name} has too many parts: name a source or an endpoint")
    answered = {name for column in way.tries for name in listing.domains[column].answers}
    free = tuple(name for name in sorted(given) if name not in answered)
    stmt = _statement(_Shape(listing.name, way, free, len(branches), place is not None), listing)
    params: dict[str, Any] = {name: given[name] for name in free} | {"limit": limit + 1}
    for number, branch in enumerate(branches):
        params |= {f"{column}_{number}": value for column, value in zip(way.tries, branch, strict=True)}
    if place is not None:
        params |= {f"after_{n}": value for n, value in enumerate(place)}
    rows = tx.fetch_dicts(stmt, params)
    following = _token([rows[limit - 1][column] for column in order], way) if len(rows) > limit else None
    return Page(rows=rows[:limit], next=following)


def _leads(way: Way, given: Mapping[str, Any]) -> bool:
    return set(way.needs) <= set(given) and not (way.unless and given[way.needs[0]] in way.unless)


class _Shape(msgspec.Struct, frozen=True):
    """What the text of a statement depends on."""

    name: str
    way: Way
    free: tuple[str, ...]
    branches: int
    placed: bool


_STATEMENTS: dict[_Shape, Statement] = {}


def _statement(shape: _Shape, listing: Listing) -> Statement:
    if (known := _STATEMENTS.get(shape)) is None:
        known = _STATEMENTS[shape] = _build_statement(shape, listing)
    return known


def _build_statement(shape: _Shape, listing: Listing) -> Statement:
    return Statement(name=f"list:{shape.name}", text={one: _text(shape, listing, one) for one in DIALECTS})


def _text(shape: _Shape, listing: Listing, dialect: Dialect) -> str:
    turn = " DESC" if listing.falling else ""
    order = shape.way.order or listing.order
    ordered = ", ".join(f"{column}{turn}" for column in order)
    by_index = ordered
    if dialect == "postgres":
        by_index = ", ".join(f"{one}{turn}" for one in (*_way_columns(shape.way, listing), *order))
    columns = ", ".join(listing.columns)
    conditions = [listing.filters[name] for name in shape.free]
    conditions += [condition for condition in (listing.always, shape.way.always) if condition]
    parts: list[str] = []
    for table, number in product((listing.table, *listing.also), range(shape.branches)):
        own = _equal(shape, listing, number) if dialect == "sqlite" else _within(shape, listing, number)
        where = " AND ".join([*own, *conditions]) or "1 = 1"
        parts.append(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {by_index} LIMIT :limit")
    if len(parts) == 1:
        return parts[0]
    united = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part_{number}" for number, part in enumerate(parts))
    return f"SELECT * FROM ({united}) AS united ORDER BY {ordered} LIMIT :limit"


def _equal(shape: _Shape, listing: Listing, number: int) -> list[str]:
    """The values that a branch tries, and the place that the page begins after."""
    tried = zip(_way_columns(shape.way, listing), shape.way.tries, strict=True)
    own = [f"{expression} = :{column}_{number}" for expression, column in tried]
    return [*own, *_after(shape.way.order or listing.order, listing, ())] if shape.placed else own


def _within(shape: _Shape, listing: Listing, number: int) -> list[str]:
    """The same as a span of the way's index, for PostgreSQL.

    Were the values equal to something, their order would be known, and the planner might walk another index that has
    the rest of it, past all rows with other values: a million tasks that are done before the first that is queued.
    """
    tries = _way_columns(shape.way, listing)
    values = tuple(f":{column}_{number}" for column in shape.way.tries)
    span = [f"{_row(tries)} {sign} {_row(values)}" for sign in (">=", "<=")] if tries else []
    order = shape.way.order or listing.order
    return [*span, *_after((*tries, *order), listing, values)] if shape.placed else span


def _way_columns(way: Way, listing: Listing) -> tuple[str, ...]:
    """The columns of a way as SQL has them."""
    return tuple(listing.expressions.get(column, column) for column in way.tries)


def _after(columns: Sequence[str], listing: Listing, values: Sequence[str]) -> list[str]:
    places = [*values, *(f":after_{n}" for n in range(len(columns) - len(values)))]
    return [f"{_row(columns)} {'<' if listing.falling else '>'} {_row(places)}"]


def _row(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"


def _token(values: Sequence[Any], way: Way) -> str:
    return urlsafe_b64encode(msgspec.json.encode([*way.needs, values])).decode().rstrip("=")


def _place(after: str, length: int, way: Way) -> list[str | int] | None:
    if not after:
        return None
    wrong = Invalid(
        "i_bad_page",
        f"{after!r} is not a place in this list",
        advice="take `next` as it was given, with the same filters",
    )
    try:
        told = msgspec.json.decode(urlsafe_b64decode(after + "=" * (-len(after) % 4)), type=list[str | list[str | int]])
    except (ValueError, msgspec.DecodeError) as error:
        raise wrong from error
    values = told[-1] if told else ""
    if list(told[:-1]) != list(way.needs) or not isinstance(values, list) or len(values) != length:
        raise wrong
    return values
