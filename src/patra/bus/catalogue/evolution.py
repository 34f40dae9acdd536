"""Compares the last released catalogue with the next: what the next may not change (C§4, B4).

A new optional field of a closed object asks for a minor version; anything else asks for a new major version, which is
published along with the old one until every consumer has moved. The check is conservative: schemas are compared as
they are written, references followed, annotations and the order of sets aside, so a change that is not provably a new
optional field counts as breaking. Inside alternatives (`oneOf`, `anyOf`, `not`, `if` …) every change is breaking: there
a new field can decide which branch holds. It can do so beside them, too: a new field that an alternative of its object
or of an object around it names, or that a rule counts (`minProperties`, `uniqueItems` …), is breaking.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Contract, EventType, OnDeadLetter, Status
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.schema import ANNOTATIONS, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, Schema, resolve
from patra.bus.catalogue.versions import Version, VersionRange
from patra.kernel.canonical import canonical, fingerprint
from patra.kernel.errors import ConfigInvalid

_SETS = frozenset({"required", "enum", "type"})  # lists whose order means nothing
_EXACT_INSIDE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains", "propertyNames", "patternProperties"}
)
_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains"})
_VALUES = frozenset({"enum", "const", "required", "examples", "default"})
_COUNTING = frozenset({"minProperties", "maxProperties", "propertyNames", "uniqueItems"})
_ANY = "*"  # stands for every name

Names: TypeAlias = frozenset[str]
"""Fields that a rule around them looks at."""


class Change(msgspec.Struct, frozen=True):
    """One difference between two schemas; `added` is a new optional field, everything else breaks."""

    place: str
    added: bool
    detail: str
    since: str = ""  # what a new field says of the version that added it


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """Why the next catalogue cannot follow on the last."""

    code: Reason
    event_type: str
    place: str
    detail: str

    def __str__(self) -> str:
        return f"{self.event_type}{self.place}: {self.code}: {self.detail}"


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """One released version: what the check remembers of it."""

    version: str
    status: Status
    schema: dict[str, Any]


class ReleasedType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    producer: str
    ordering: list[str]
    versions: list[Released]
    on_dead_letter: OnDeadLetter | None = None  # nothing where nothing is ordered, or in a release before it was kept


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A catalogue as it was released, as data: the file `released.json` and the rows of the store."""

    types: dict[str, ReleasedType]

    @property
    def digest(self) -> str:
        return fingerprint(msgspec.to_builtins(self))


def release(catalogue: Catalogue) -> Release:
    """The memory of a catalogue that the next one is compared with."""
    return Release(types={name: _as_released(kind) for name, kind in sorted(catalogue.types.items())})


def encode_release(released: Release) -> bytes:
    """As a file: stable, so that a change of it is a change of a contract."""
    return msgspec.json.format(canonical(msgspec.to_builtins(released)), indent=1) + b"\n"


def decode_release(text: bytes) -> Release:
    """Raises ConfigInvalid where the text is not what `encode_release` wrote."""
    try:
        return msgspec.json.decode(text, type=Release)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        advice = "write it again with `patra bus catalogue release` from the contracts that were released"
        raise ConfigInvalid(Reason.CATALOGUE_INVALID, f"no released catalogue: {error}", advice=advice) from None


def _as_released(kind: EventType) -> ReleasedType:
    versions = [
        Released(version=str(c.version), status=c.status, schema=dict(cast("Mapping[str, Any]", c.schema)))
        for _, c in sorted(kind.contracts.items())
    ]
    policy = kind.ordering.on_dead_letter if kind.ordering else None
    return ReleasedType(producer=kind.producer, ordering=_ordering(kind), versions=versions, on_dead_letter=policy)


def _ordering(kind: EventType) -> list[str]:
    return [kind.ordering.scope, *kind.ordering.key] if kind.ordering else []


def changes(old: Schema, new: Schema) -> list[Change]:
    """Every difference between two schemas, each with its place."""
    return _Comparison(old, new).find(old, new, "", exact=False, judged=frozenset())


class _Comparison:
    def __init__(self, old_root: Schema, new_root: Schema) -> None:
        self._old_root = old_root
        self._new_root = new_root
        self._seen: set[tuple[int, int, bool]] = set()

    def find(self, old: Schema, new: Schema, place: str, *, exact: bool, judged: Names) -> list[Change]:
        old, new = _follow_reference(self._old_root, old), _follow_reference(self._new_root, new)
        if isinstance(old, bool) or isinstance(new, bool):
            return [] if old is new else [Change(place, False, "the schema was replaced")]
        pair = (id(old), id(new), exact)
        if pair in self._seen:  # a recursive schema: this pair is being compared already
            return []
        self._seen.add(pair)
        judged |= _judged_names(self._new_root, new)
        found: list[Change] = []
        for keyword in sorted((old.keys() | new.keys()) - ANNOTATIONS - {"$defs"}):
            here = f"{place}/{keyword}"
            if keyword == "properties":
                found += self._properties(old, new, place, exact=exact, judged=judged)
            elif keyword not in new:
                found.append(Change(here, False, "the rule was removed"))
            elif keyword not in old:
                found.append(Change(here, False, "a rule was added"))
            elif keyword in _EXACT_INSIDE:
                found += self._parts(keyword, old[keyword], new[keyword], here)
            elif keyword in {"items", "additionalProperties"}:
                found += self.find(old[keyword], new[keyword], here, exact=exact, judged=judged)
            elif _value(keyword, old[keyword]) != _value(keyword, new[keyword]):
                found.append(Change(here, False, f"was {_short(old[keyword])}, is {_short(new[keyword])}"))
        self._seen.discard(pair)
        return found

    def _properties(
        self, old: Mapping[str, Any], new: Mapping[str, Any], place: str, *, exact: bool, judged: Names
    ) -> list[Change]:
        before: Mapping[str, Schema] = old.get("properties", {})
        after: Mapping[str, Schema] = new.get("properties", {})
        found: list[Change] = []
        for name in sorted(before.keys() | after.keys()):
            here = f"{place}/properties/{name}"
            if name not in after:
                found.append(Change(here, False, "the field was removed or renamed"))
            elif name in before:
                found += self.find(before[name], after[name], here, exact=exact, judged=judged)
            elif name in new.get("required", ()):
                found.append(Change(here, False, "a required field was added"))
            elif exact:
                found.append(Change(here, False, "a field was added inside an alternative"))
            elif judged & {name, _ANY}:
                found.append(Change(here, False, "a rule around it counts fields, or an alternative names this one"))
            elif old.get("additionalProperties") is not False or "patternProperties" in old:
                found.append(Change(here, False, "the object was open: the name may have been in use with any value"))
            elif after[name] is False:
                found.append(Change(here, False, "a name was forbidden"))
            else:
                since = "" if isinstance(part := after[name], bool) else str(part.get("since", ""))
                found.append(Change(here, True, "an optional field was added", since))
        return found

    def _parts(self, keyword: str, old: Any, new: Any, place: str) -> list[Change]:
        if keyword in SUBSCHEMA_LISTS:
            if len(old) != len(new):
                return [Change(place, False, f"had {len(old)} alternatives, has {len(new)}")]
            pairs = [(b, a, f"{place}/{i}") for i, (b, a) in enumerate(zip(old, new, strict=True))]
        elif keyword in SUBSCHEMA_MAPS:
            if old.keys() != new.keys():
                return [Change(place, False, "the patterns of names changed")]
            pairs = [(old[pattern], new[pattern], f"{place}/{pattern}") for pattern in old]
        else:
            pairs = [(old, new, place)]
        none: Names = frozenset()
        return [change for b, a, here in pairs for change in self.find(b, a, here, exact=True, judged=none)]


def _judged_names(root: Schema, schema: Mapping[str, Any]) -> Names:
    """The names of fields that decide whether a value keeps the schema, beside the list of its fields itself."""
    found: set[str] = {_ANY} if _counts(schema) else set()
    for keyword in _ALTERNATIVES & schema.keys():
        part = schema[keyword]
        for one in cast("list[Schema]", part) if isinstance(part, list) else [cast("Schema", part)]:
            _gather(root, one, found, set())
    return frozenset(found)


def _gather(root: Schema, schema: Schema, found: set[str], seen: set[int]) -> None:
    schema = _follow_reference(root, schema)
    if isinstance(schema, bool) or id(schema) in seen:
        return
    seen.add(id(schema))
    found.update(schema.get("required", ()), schema.get("properties", {}))
    if _counts(schema) or "patternProperties" in schema or "additionalProperties" in schema:
        found.add(_ANY)
    for keyword, part in schema.items():
        if keyword in _VALUES:
            continue
        held: Any = part.values() if keyword in SUBSCHEMA_MAPS else part
        for one in cast("Iterable[Any]", held if keyword in SUBSCHEMA_MAPS | SUBSCHEMA_LISTS else [held]):
            if isinstance(one, Mapping):
                _gather(root, cast("Schema", one), found, seen)


def _counts(schema: Mapping[str, Any]) -> bool:
    return any(schema.get(keyword) not in {None, 0} for keyword in _COUNTING - {"propertyNames"}) or (
        "propertyNames" in schema
    )


def _follow_reference(root: Schema, schema: Schema) -> Schema:
    for _ in range(64):
        if isinstance(schema, bool) or "$ref" not in schema:
            return schema
        schema = resolve(root, schema["$ref"]) or False
    return False


def _value(keyword: str, value: Any) -> Any:
    if keyword in _SETS:
        return sorted(map(canonical, cast("list[Any]", value) if isinstance(value, list) else [value]))
    return canonical(value)


def _short(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"


def objections(
    last: Release, following: Catalogue, in_use: Mapping[str, list[VersionRange]] | None = None
) -> list[Objection]:
    """Why the catalogue cannot follow on the last release; none when it can.

    `in_use` are the ranges of versions that groups of a store subscribe to, by event type: beside the consumers that
    the catalogue lists, they hold a major version until they have moved.
    """
    found: list[Objection] = []
    for name, old in last.types.items():
        new = following.types.get(name)
        if new is None:
            if any(v.status is not Status.RETIRED for v in old.versions):
                what = "the event type is gone; retire it first, or name the folder of its contract in `bus.catalogue`"
                found.append(_objection(Reason.EVOLUTION_REMOVED, name, "", what))
            continue
        found += _type_objections(name, old, new, (in_use or {}).get(name, []))
    return found


def _type_objections(name: str, old: ReleasedType, new: EventType, in_use: list[VersionRange]) -> list[Objection]:
    found: list[Objection] = []
    released = {_version(v).major: v for v in old.versions}
    newest = max(released)
    fresh = sorted(set(new.contracts) - set(released))
    if fresh and fresh != [newest + 1]:
        found.append(
            _objection(Reason.EVOLUTION_ORDER, name, "", f"after major {newest} comes {newest + 1}, and nothing else")
        )
    found += [
        _objection(Reason.EVOLUTION_ORDER, name, f" {major}", "a new major version begins at .0")
        for major in fresh
        if new.contracts[major].version.minor != 0
    ]
    if not fresh:  # what belongs to the type as a whole changes only with a new major
        if old.producer != new.producer:
            found.append(
                _objection(Reason.EVOLUTION_MAJOR, name, " producer", f"was {old.producer}, is {new.producer}")
            )
        if old.ordering != _ordering(new):
            found.append(
                _objection(Reason.EVOLUTION_MAJOR, name, " ordering", "consumers rely on the order they were promised")
            )
        elif new.ordering and old.on_dead_letter not in {None, new.ordering.on_dead_letter}:
            found.append(
                _objection(
                    Reason.EVOLUTION_MAJOR,
                    name,
                    " ordering.on_dead_letter",
                    f"was {old.on_dead_letter}, is {new.ordering.on_dead_letter}: whether later events of a key"
                    " overtake a dead letter is part of the order that was promised",
                )
            )
    for major, before in released.items():
        after = new.contracts.get(major)
        if after is None:
            if before.status is not Status.RETIRED:
                found.append(
                    _objection(
                        Reason.EVOLUTION_REMOVED,
                        name,
                        f" {major}",
                        "the major version is missing: keep it beside the new one, `status: retiring`, later `retired`",
                    )
                )
        else:
            found += _major_objections(name, major, before, after)
            if after.status is Status.RETIRED and before.status is not Status.RETIRED:
                found += _still_needed(name, major, new, in_use)
    return found


def _major_objections(name: str, major: int, before: Released, after: Contract) -> list[Objection]:
    place = f" {after.version}"
    was, now = _version(before), after.version
    if before.status is Status.RETIRED and after.status is not Status.RETIRED:
        return [
            _objection(Reason.EVOLUTION_REVIVED, name, place, "a retired version does not come back; make a new major")
        ]
    if now.minor not in {was.minor, was.minor + 1}:
        return [_objection(Reason.EVOLUTION_ORDER, name, place, f"after {was} comes {major}.{was.minor + 1}")]
    differences = changes(before.schema, after.schema)
    breaking = [c for c in differences if not c.added]
    if breaking:
        return [_objection(Reason.EVOLUTION_MAJOR, name, f" {now}{c.place}", c.detail) for c in breaking]
    if differences and now == was:
        minor = f"{now.major}.{now.minor + 1}"
        asked = f'make the version "{minor}" and mark the field with `since: "{minor}"`'
        return [
            _objection(Reason.EVOLUTION_MINOR, name, f" {now}{c.place}", f"{c.detail}: {asked}") for c in differences
        ]
    return [
        _objection(Reason.EVOLUTION_MINOR, name, f" {now}{c.place}", f'mark the new field with `since: "{now}"`')
        for c in differences
        if c.since != str(now)
    ]


def _still_needed(name: str, major: int, new: EventType, in_use: list[VersionRange]) -> list[Objection]:
    others = new.live
    needed = [(c.group, c.versions) for c in new.consumers] + [("a subscription", versions) for versions in in_use]
    return [
        _objection(
            Reason.EVOLUTION_IN_USE,
            name,
            f" {major}",
            f"{who} reads {versions.text} and no other version that is published",
        )
        for who, versions in needed
        if versions.majors({major}) and not versions.majors(others)
    ]


def _version(released: Released) -> Version:
    major, _, minor = released.version.partition(".")
    return Version(int(major), int(minor))


def _objection(code: Reason, event_type: str, place: str, detail: str) -> Objection:
    return Objection(code=code, event_type=event_type, place=place, detail=detail)
