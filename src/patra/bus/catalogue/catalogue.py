"""Turns YAML contracts, one file per event type, into a checked catalogue: who may publish what, in which form.

The authority table of C§5 is data here (B3), and so are versions (C§4), retries and thresholds (C§6, B5), retention and
order. Consumers are listed but never heard: a subscriber cannot change the publisher's contract.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from patra.bus.catalogue.retries import Retry, RetryFile, duration, refuse, retry_of
from patra.bus.catalogue.schema import Schema, Violation, compile_schema, defects, violations
from patra.bus.catalogue.versions import Version, VersionRange, parse_range, parse_version

BUILT_IN = "patra.bus"
MAX_YAML_NODES = 100_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where it is there
RELEASED = "released.json"
MAX_NAME_CHARS = 256  # characters of a producer's name, as in the envelope

_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")
_GROUP = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")
_POINTER = re.compile(r"/(tenant_id|project_id|correlation_id|trace_id|payload(/[^/~]+)+)\Z")


class Status(StrEnum):
    """The life of a major version: published, published along with a newer one, no longer published."""

    CURRENT = "current"
    RETIRING = "retiring"
    RETIRED = "retired"


class OnDeadLetter(StrEnum):
    """What happens to later events of a key when an earlier one of it becomes a dead letter."""

    CONTINUE = "continue"
    BLOCK = "block"


class Ordering(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Events with the same values at `key` are handled in the order of publishing, within a scope of types."""

    scope: str
    key: tuple[str, ...]
    on_dead_letter: OnDeadLetter = OnDeadLetter.CONTINUE

    @cached_property
    def paths(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The pointers as a field of the envelope and names to follow from there."""
        return tuple((first, tuple(rest)) for first, *rest in (pointer[1:].split("/") for pointer in self.key))


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A group that is known to listen, and the versions it reads: what B4 waits for before a major is retired."""

    group: str
    versions: VersionRange


class Contract(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """One version of an event type: its payload's schema and an example."""

    version: Version
    status: Status
    schema: Schema
    examples: tuple[dict[str, Any], ...]

    @cached_property
    def accepts(self) -> Callable[[Any], bool]:
        """Whether a payload keeps the schema; compiled when first asked."""
        return compile_schema(self.schema)

    def violations(self, payload: Any) -> list[Violation]:
        return violations(self.schema, payload, "/payload")


class EventType(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """Everything the bus knows of one event type. `contracts` holds one version a major, the newest minor of it."""

    name: str
    title: str
    description: str
    producer: str
    consumers: tuple[Consumer, ...]
    contracts: Mapping[int, Contract]
    retry: Retry
    dead_letter_threshold: int
    retention: int
    ordering: Ordering | None
    place: str

    @cached_property
    def live(self) -> set[int]:
        """The major versions that a publish must carry, all of them (B4)."""
        return {major for major, contract in self.contracts.items() if contract.status is not Status.RETIRED}


class Catalogue(msgspec.Struct, frozen=True, eq=False, dict=True):
    """All event types, by name."""

    types: Mapping[str, EventType]

    @cached_property
    def current(self) -> Mapping[tuple[str, str], tuple[EventType, Contract, Version]]:
        """What may be published, by type and version as the envelope writes them."""
        return {
            (name, str(version)): (kind, contract, version)
            for name, kind in self.types.items()
            for contract in kind.contracts.values()
            if contract.status is not Status.RETIRED
            for version in (Version(contract.version.major, m) for m in range(contract.version.minor + 1))
        }

    def contract(self, event_type: str, version: Version) -> Contract | None:
        """The contract that an event of this version keeps: that of its major, if the minor is known."""
        known = self.types.get(event_type)
        contract = known.contracts.get(version.major) if known else None
        return contract if contract and version.minor <= contract.version.minor else None


class _OrderingFile(msgspec.Struct, forbid_unknown_fields=True):
    key: list[str]
    scope: str = ""
    on_dead_letter: OnDeadLetter = OnDeadLetter.CONTINUE


class _ConsumerFile(msgspec.Struct, forbid_unknown_fields=True):
    group: str
    versions: str = ">=1"


class _VersionFile(msgspec.Struct, forbid_unknown_fields=True):
    version: str
    schema: dict[str, Any]
    examples: list[dict[str, Any]]
    status: Status = Status.CURRENT


class _TypeFile(msgspec.Struct, forbid_unknown_fields=True):
    """The format of a contract file, as people write it."""

    type: str
    title: str
    description: str
    producer: str
    versions: list[_VersionFile]
    consumers: list[_ConsumerFile] = []
    retry: RetryFile = msgspec.field(default_factory=RetryFile)
    dead_letter_threshold: int = 100
    retention: str = "P90D"
    ordering: _OrderingFile | None = None


def load(folders: Iterable[Path | Traversable] = (), *, built_in: bool = True) -> Catalogue:
    """Read every `*.yaml` of the folders, and of the built-in catalogue. Raises ConfigInvalid with the place."""
    types: dict[str, EventType] = {}
    for folder in [*([files(BUILT_IN) / "contracts"] if built_in else []), *folders]:
        for file in _files(folder):
            found = parse(_text(file), file.name)
            if found.name in types:
                refuse(file.name, f"{found.name} is declared in {types[found.name].place} too: one file a type")
            types[found.name] = found
    return Catalogue(types)


def _files(folder: Path | Traversable) -> "list[Path | Traversable]":
    try:
        return sorted((f for f in folder.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    except OSError as error:
        whole = folder.absolute() if isinstance(folder, Path) else folder
        refuse(str(whole), f"the folder cannot be read: {error.strerror}")


def _text(file: Path | Traversable) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        refuse(str(file), f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        refuse(file.name, f"no UTF-8: the byte {error.object[error.start]:#04x} at position {error.start}")


def parse(text: str, place: str) -> EventType:
    """One contract file. Raises ConfigInvalid that says where the file breaks which rule."""
    try:
        raw = _yaml(text, place)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        refuse(f"{place}:{mark.line + 1}" if mark else place, f"no YAML: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # such as a date that is none
        refuse(place, f"no YAML: {error}")
    try:
        return event_type(msgspec.convert(raw, _TypeFile), place)
    except msgspec.ValidationError as error:
        refuse(place, str(error))


def _yaml(text: str, place: str) -> Any:
    """What a text says; of a key that stands twice YAML would keep the last and drop the first without a word."""
    loader: Any = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_repeats(node, place, iter(range(MAX_YAML_NODES)))
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_repeats(node: Any, place: str, budget: Iterator[int]) -> None:
    """Refuse a key that stands twice, and aliases of aliases, which make a small file an endless one."""
    if next(budget, None) is None:
        refuse(place, f"more than {MAX_YAML_NODES} values, its aliases written out")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeats(item, place, budget)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    refuse(f"{place}:{key.start_mark.line + 1}", f"{key.value!r} stands twice in one mapping")
                seen.add(key.value)
            _refuse_repeats(value, place, budget)


def event_type(file: _TypeFile, place: str) -> EventType:
    if not _TYPE.match(file.type):
        refuse(place, f"{file.type!r} is not an event type: lower-case words joined by dots")
    if not file.producer.strip() or not file.title.strip() or not file.description.strip():
        refuse(place, "title, description and producer are texts")
    if len(file.producer) > MAX_NAME_CHARS or not file.producer.isprintable():
        refuse(place, f"a producer's name has at most {MAX_NAME_CHARS} printable characters")
    if file.dead_letter_threshold < 1:
        refuse(place, "dead_letter_threshold is at least 1")
    return EventType(
        name=file.type,
        title=file.title,
        description=file.description.strip(),
        producer=file.producer,
        consumers=tuple(_consumer(c, place) for c in file.consumers),
        contracts=_contracts(file.versions, place),
        retry=retry_of(file.retry, place),
        dead_letter_threshold=file.dead_letter_threshold,
        retention=duration(file.retention, f"{place}: retention"),
        ordering=_ordering(file, place),
        place=place,
    )


def _contracts(versions: list[_VersionFile], place: str) -> dict[int, Contract]:
    contracts: dict[int, Contract] = {}
    for entry in versions:
        here = f"{place}: version {entry.version}"
        version = parse_version(entry.version)
        if version is None or version.major < 1:
            refuse(here, "a version is `major.minor`, from 1.0")
        if version.major in contracts:
            refuse(here, "a major version stands once, with its newest minor")
        if entry.schema.get("type") != "object":
            refuse(f"{here}: schema", "a payload is an object: `type: object`")
        for defect in defects(entry.schema):
            refuse(f"{here}: schema{defect.place}", defect.detail)
        contract = Contract(version=version, status=entry.status, schema=entry.schema, examples=tuple(entry.examples))
        if not entry.examples:
            refuse(here, "give at least one example of the payload")
        for index, example in enumerate(entry.examples):
            for violation in violations(entry.schema, example):
                refuse(f"{here}: examples[{index}]{violation.place}", violation.detail)
        contracts[version.major] = contract
    statuses = [contracts[major].status for major in sorted(contracts)]
    if statuses.count(Status.CURRENT) != 1 and (not statuses or set(statuses) != {Status.RETIRED}):
        refuse(place, "exactly one major version is `current`, unless all are `retired`")
    if Status.CURRENT in statuses[:-1]:
        refuse(place, "the current version is the newest")
    return contracts


def _consumer(file: _ConsumerFile, place: str) -> Consumer:
    versions = parse_range(file.versions)
    if versions is None or not is_group(file.group):
        refuse(f"{place}: consumers", f"{file.group!r} {file.versions!r}: a group's name and a range such as `>=1,<2`")
    return Consumer(group=file.group, versions=versions)


def _ordering(file: _TypeFile, place: str) -> Ordering | None:
    if file.ordering is None:
        return None
    if not file.ordering.key or not all(_POINTER.match(pointer) for pointer in file.ordering.key):
        refuse(f"{place}: ordering.key", "JSON pointers such as `/tenant_id` or `/payload/run_id`")
    for entry in file.versions:
        for pointer in file.ordering.key:
            if pointer.startswith("/payload/") and not _always_there(entry.schema, pointer.split("/")[2:]):
                refuse(f"{place}: ordering.key", f"{pointer} is not a required field of version {entry.version}")
    return Ordering(
        scope=file.ordering.scope or file.type,
        key=tuple(file.ordering.key),
        on_dead_letter=file.ordering.on_dead_letter,
    )


def _always_there(schema: Mapping[str, Any], path: list[str]) -> bool:
    name, *rest = path
    if name not in schema.get("required", ()):
        return False
    inner = schema.get("properties", {}).get(name, {})
    return not rest or (isinstance(inner, Mapping) and _always_there(cast("Mapping[str, Any]", inner), rest))


def is_group(name: str) -> bool:
    """Whether a text may name a consumer group."""
    return _GROUP.match(name) is not None
