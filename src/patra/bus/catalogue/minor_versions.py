"""Which fields of a payload came with a later minor than the one it is labelled with (C§4, B4).

A contract holds the newest schema of a major; a field that a minor added says so: `since: "1.1"`.
"""

from collections.abc import Mapping
from typing import Any, cast

from patra.bus.catalogue.schema import Schema, resolve
from patra.bus.catalogue.versions import Version, parse_version


class LaterField(tuple[str, Version]):
    """The place of a field in the payload, and the version that added it."""

    __slots__ = ()


def later_fields(root: Schema, payload: Any, version: Version) -> list[LaterField]:
    """The fields of a payload that its version does not have yet."""
    return _later(root, root, payload, version, "/payload")


def _later(root: Schema, schema: Schema, value: Any, version: Version, place: str) -> list[LaterField]:
    if isinstance(schema, bool):
        return []
    if "$ref" in schema:
        target = resolve(root, schema["$ref"])
        return [] if target is None else _later(root, target, value, version, place)
    found: list[LaterField] = []
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(cast("list[Any]", value)):
            found += _later(root, schema["items"], item, version, f"{place}/{index}")
    if isinstance(value, Mapping):
        properties: Mapping[str, Schema] = schema.get("properties", {})
        for name, item in cast("Mapping[str, Any]", value).items():
            here = f"{place}/{name.replace('~', '~0').replace('/', '~1')}"
            part = properties.get(name, schema.get("additionalProperties", True))
            added = None if isinstance(part, bool) else parse_version(str(part.get("since", "")))
            if added is not None and added > version:
                found.append(LaterField((here, added)))
            else:
                found += _later(root, part, item, version, here)
    for part in schema.get("allOf", ()):
        found += _later(root, part, value, version, place)
    return found
