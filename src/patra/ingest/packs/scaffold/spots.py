"""Turns records into every place in them, with its path, its names and what stands there."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from patra.ingest.expressions.paths import text_at
from patra.ingest.packs.scaffold.sample import Found, child, elements, local_name, qualify_tag
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.ingest.vocabulary.instants import read_instant

MAX_DEPTH = 6
MAX_OBJECT_MEMBERS = 60
"""An object with more members is data, not a form."""


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """A place in records: `values` has for each record what stands there first, None where nothing does."""

    path: str
    names: tuple[str, ...]
    values: Sequence[Any]
    many: bool = False

    @property
    def given_values(self) -> list[Any]:
        return [value for value in self.values if value not in (None, "")]

    @property
    def trail(self) -> str:
        return "/".join(self.names)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A list in records: `each` is the path to its items, `inner` what stands in them, `texts` items that are texts."""

    each: str
    names: tuple[str, ...]
    inner: Sequence[Spot] = ()
    texts: Sequence[str] = ()

    @property
    def trail(self) -> str:
        return "/".join(self.names)


class Places(msgspec.Struct, frozen=True):
    spots: list[Spot]
    groups: list[Group]


def places(found: Found) -> Places:
    """Everything that the records have."""
    out = Places([], [])
    if found.format is ResponseFormat.JSON:
        _json(list(found.records), "$", (), out, 0, listed=False)
    else:
        prefixes = {uri: prefix for prefix, uri in found.namespaces.items()}
        _xml([[record] for record in found.records], "", (), prefixes, out, 0)
    return out


def words(name: str) -> str:
    """A name in one form: `lastUpdatePostDate`, `last-update-post-date` and `Last_Update_Post_Date` are the same."""
    split = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3_\2\4", name)
    return re.sub(r"[^a-z0-9]+", "_", split.lower()).strip("_")


def _json(records: Sequence[Any], path: str, names: tuple[str, ...], out: Places, depth: int, *, listed: bool) -> None:
    """`records` has one node for each record, None where it has none there."""
    if depth > MAX_DEPTH:
        return
    keys = dict.fromkeys(key for one in records if isinstance(one, dict) for key in cast("dict[str, Any]", one))
    if len(keys) > MAX_OBJECT_MEMBERS:
        return
    for key in keys:
        values = [cast("dict[str, Any]", one).get(key) if isinstance(one, dict) else None for one in records]
        _json_place(values, child(path, key), (*names, words(key)), out, depth, listed=listed)


def _json_place(
    values: Sequence[Any], path: str, names: tuple[str, ...], out: Places, depth: int, *, listed: bool
) -> None:
    kinds = {_kind(value) for value in values} - {"none"}
    if kinds & {"object"}:
        whole: list[Any] = [value if isinstance(value, dict) else None for value in values]
        if any(_whole(value) for value in whole):
            out.spots.append(Spot(path=path, names=names, values=whole))
        _json(whole, path, names, out, depth + 1, listed=listed)
    if kinds & {"list"}:
        lists = [cast("list[Any]", value) if isinstance(value, list) else [] for value in values]
        if any(_whole(value) for value in lists):
            out.spots.append(Spot(path=path, names=names, values=lists))
        _json_list(lists, path, names, out, depth, listed=listed)
    if kinds & {"scalar"}:
        scalars = [value if _kind(value) == "scalar" else None for value in values]
        out.spots.append(Spot(path=path, names=names, values=scalars))


def _json_list(
    lists: Sequence[list[Any]], path: str, names: tuple[str, ...], out: Places, depth: int, *, listed: bool
) -> None:
    items = [item for one in lists for item in one]
    if any(isinstance(item, dict) for item in items):
        inside = Places([], [])
        objects: list[Any] = [item for item in items if isinstance(item, dict)]
        _json(objects[:200], "$", (), inside, depth + 1, listed=True)
        out.groups.append(Group(each=f"{path}[*]", names=names, inner=inside.spots))
        if not listed:
            firsts = [one[0] if one else None for one in lists]
            _json(firsts, f"{path}[0]", names, out, depth + 1, listed=True)
    elif any(_kind(item) == "scalar" for item in items):
        texts = [item for item in items if isinstance(item, str)]
        out.groups.append(Group(each=f"{path}[*]", names=names, texts=texts))
        firsts = [next((item for item in one if item is not None), None) for one in lists]
        out.spots.append(Spot(path=f"{path}[0]", names=names, values=firsts, many=any(len(one) > 1 for one in lists)))


def _kind(value: Any) -> str:
    if value is None:
        return "none"
    return "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"


def _whole(value: Any) -> bool:
    """Whether an object or a list is one value: a date in parts, an inverted abstract."""
    if not value:
        return False
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return all(map(_numbers, members.values())) or read_instant(members) is not None
    items = cast("list[Any]", value)
    return _numbers(items) and len(items) in {2, 3} and read_instant(items) is not None


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in cast("list[Any]", value))


def _xml(
    records: Sequence[list[Any]],
    path: str,
    names: tuple[str, ...],
    prefixes: Mapping[str, str],
    out: Places,
    depth: int,
) -> None:
    """`records` has for each record the elements at this place."""
    if depth > MAX_DEPTH:
        return
    tags = dict.fromkeys(child.tag for one in records for element in one for child in elements(element))
    for tag in tags:
        here = [[child for element in one for child in elements(element) if child.tag == tag] for one in records]
        step = f"{path}/{qualify_tag(tag, prefixes)}".lstrip("/")
        below = (*names, words(local_name(tag)))
        _attributes(here, step, below, out)
        if any(len(elements(child)) for one in here for child in one):
            _xml(here, step, below, prefixes, out, depth + 1)
        _xml_date(here, step, below, out)
        if any(_textual(child) for one in here for child in one):
            many = any(len(one) > 1 for one in here)
            firsts = [text_at(one[0]) if one else None for one in here]
            out.spots.append(Spot(path=step, names=below, values=firsts, many=many))
        _xml_group(here, step, below, prefixes, out, depth)


def _textual(element: Any) -> bool:
    """Whether an element is read as a text: it has no parts, or text between them, as a title with markup has."""
    loose = "".join([element.text or "", *(part.tail or "" for part in element)])
    return bool(loose.strip())


def _xml_date(here: Sequence[list[Any]], step: str, names: tuple[str, ...], out: Places) -> None:
    """A date in parts, as PubMed has it: Year, Month and Day below one element."""
    parts = {local_name(part.tag): part.tag for one in here for element in one for part in elements(element)}
    used = [parts[name] for name in ("Year", "Month", "Day") if name in parts]
    if not used or "Year" not in parts or any("}" in tag for tag in used):
        return
    joined = ", ' ', ".join(f"{step}[1]/{tag}" for tag in used)
    path = f"translate(normalize-space(concat({joined}{', ' + repr('') if len(used) == 1 else ''})), ' ', '-')"
    values = ["-".join(text for tag in used if (text := one[0].findtext(tag))) or None if one else None for one in here]
    out.spots.append(Spot(path=path, names=names, values=values))


def _attributes(here: Sequence[list[Any]], step: str, names: tuple[str, ...], out: Places) -> None:
    found = dict.fromkeys(key for one in here for element in one for key in element.attrib if "}" not in key)
    for key in found:
        firsts = [next((e.get(key) for e in one if e.get(key)), None) for one in here]
        out.spots.append(Spot(path=f"{step}/@{key}", names=(*names, words(key)), values=firsts))
        several = dict.fromkeys(str(e.get(key)) for one in here for e in one if e.get(key))
        if not any(len(one) > 1 for one in here) or len(several) > 12:
            continue
        for value in several:
            if not re.fullmatch(r"[\w .:/-]{1,40}", value):
                continue
            told = f"{step}[@{key}='{value}']"
            marked = [[e for e in one if e.get(key) == value] for one in here]
            texts = [text_at(one[0]) if one else None for one in marked]
            if any(texts):
                out.spots.append(Spot(path=told, names=(*names, words(value)), values=texts))
            for other in found:
                if other != key:
                    of = [next((e.get(other) for e in one if e.get(other)), None) for one in marked]
                    names_of = (*names, words(value), words(other))
                    out.spots.append(Spot(path=f"{told}/@{other}", names=names_of, values=of))


def _xml_group(
    here: Sequence[list[Any]],
    step: str,
    names: tuple[str, ...],
    prefixes: Mapping[str, str],
    out: Places,
    depth: int,
) -> None:
    items = [element for one in here for element in one][:200]
    if any(len(elements(item)) for item in items):
        inside = Places([], [])
        _xml([[item] for item in items], "", (), prefixes, inside, depth + 1)
        out.groups.append(Group(each=step, names=names, inner=inside.spots))
    else:
        texts = [text for item in items if (text := text_at(item))]
        out.groups.append(Group(each=step, names=names, texts=texts))


def outside(found: Found) -> Iterator[Spot]:
    """Places of the answer that are not in a record, with absolute paths."""
    if found.format is ResponseFormat.JSON:
        yield from _json_outside(found.document, "$", (), 0, {id(record) for record in found.records})
        return
    prefixes = {uri: prefix for prefix, uri in found.namespaces.items()}
    inside = set(found.records)
    yield from _xml_outside(found.document, f"/{qualify_tag(found.document.tag, prefixes)}", (), prefixes, inside)


def _json_outside(node: Any, path: str, names: tuple[str, ...], depth: int, skip: set[int]) -> Iterator[Spot]:
    if not isinstance(node, dict) or depth > MAX_DEPTH or id(cast("Any", node)) in skip:
        return
    for key, value in cast("dict[str, Any]", node).items():
        below, place = (*names, words(key)), child(path, key)
        if _kind(value) in {"scalar", "none"}:
            yield Spot(path=place, names=below, values=[value])
        else:
            yield from _json_outside(value, place, below, depth + 1, skip)


def _xml_outside(
    node: Any, path: str, names: tuple[str, ...], prefixes: Mapping[str, str], skip: set[Any]
) -> Iterator[Spot]:
    for key, value in node.attrib.items():
        if "}" not in key:
            yield Spot(path=f"{path}/@{key}", names=(*names, words(key)), values=[value])
    for element in elements(node):
        if element in skip:
            continue
        step, below = f"{path}/{qualify_tag(element.tag, prefixes)}", (*names, words(local_name(element.tag)))
        rel = element.get("rel")
        if rel and element.get("href"):
            yield Spot(path=f"{step}[@rel='{rel}']/@href", names=(*below, words(rel)), values=[element.get("href")])
        if not len(elements(element)):
            yield Spot(path=step, names=below, values=[text_at(element)])
        yield from _xml_outside(element, step, below, prefixes, skip)
