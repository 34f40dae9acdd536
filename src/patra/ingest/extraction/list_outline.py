"""Where the list of an answer stands, and how much around it has to be read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from patra.ingest.expressions.paths import json_path
from patra.ingest.extraction.projection import decoder, wants_of
from patra.ingest.extraction.xml_splitter import Split, split_of
from patra.ingest.packs.sections import Field
from patra.ingest.packs.spec import Leg
from patra.ingest.vocabulary.codes import ResponseFormat


def list_split(leg: Leg) -> Split | None:
    """How large answers of a leg in XML can be split."""
    response, pagination = leg.response, leg.pagination
    if response.format is not ResponseFormat.XML:
        return None
    own = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    outside = [path for path in [*own, *(rule.path for rule in leg.errors)] if path is not None]
    named = [response.id_path, response.updated_at_path, response.version_path, response.deleted_path]
    inside = [path for path in [*named, *_field_paths(leg.mapping.output.fields)] if path]
    return split_of(response.items_path, outside, inside, response.namespaces)


def _field_paths(fields: Mapping[str, Field | str]) -> Iterator[str]:
    for field in fields.values():
        if isinstance(field, str):
            yield field
            continue
        yield from (path for path in (field.path, field.each, field.expr) if path)
        yield from _field_paths(field.fields)


def list_place(leg: Leg) -> tuple[str, ...]:
    """The names that lead to the list of a leg's answers, if nothing but the list itself is looked for behind them."""
    response, pagination = leg.response, leg.pagination
    if response.format is ResponseFormat.XML:
        return ()
    steps = json_path(response.items_path).steps or ()
    place = tuple(step for step in steps if isinstance(step, str))
    if not place or steps not in {place, (*place, None)}:
        return ()
    others = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    for path in [*others, *(rule.path for rule in leg.errors)]:
        way = json_path(path).steps if path is not None else ()
        if way is None or None in way or (len(way) > len(place) and way[: len(place)] == place):
            return ()
    return place


def list_outline(leg: Leg) -> Callable[[Any], Any] | None:
    """A decoder of a leg's answers that reads what its paths lead to, in one go; None where they lead to everything."""
    place = list_place(leg)
    response, pagination = leg.response, leg.pagination
    others = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    paths = [path for path in [*others, *(rule.path for rule in leg.errors)] if path is not None]
    wants = wants_of([place, *(json_path(path).lead for path in paths)]) if place else None
    around = wants
    for name in place:
        around = None if around is None else around.get(name)
        if around is None and name != place[-1]:
            return None  # something above the list is wanted as a whole
    return None if wants is None else decoder(wants, place)
