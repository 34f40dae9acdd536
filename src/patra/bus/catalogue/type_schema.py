"""The JSON Schema of a type of msgspec or pydantic, as a contract has it; payloads of such types as JSON."""

from typing import Any, cast

import msgspec

from patra.bus.catalogue.schema import FORMATS


def type_schema(payload: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a type as the catalogue takes it: closed objects, no defaults, the object itself in front."""
    model_schema = getattr(payload, "model_json_schema", None)  # a pydantic model; pydantic itself is not needed
    found = msgspec.json.schema(payload) if model_schema is None else _drop_titles(model_schema())
    defs: dict[str, Any] = {name: _close_objects(part) for name, part in found.get("$defs", {}).items()}
    if "$ref" not in found:
        return _close_objects(found)
    name = str(found["$ref"]).removeprefix("#/$defs/")
    root = defs.pop(name)
    return {**root, "$defs": defs} if defs else root


def plain_payload(payload: Any) -> Any:
    """A payload as JSON has it."""
    dump = getattr(payload, "model_dump", None)
    return msgspec.to_builtins(payload) if dump is None else dump(mode="json")


def _drop_titles(part: Any) -> Any:
    """Without the titles that pydantic gives to each field: they say no more than its name."""
    if isinstance(part, list):
        return [_drop_titles(one) for one in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", part).items():
        if name in {"properties", "$defs"}:
            made[name] = {field: _drop_titles(inner) for field, inner in cast("dict[str, Any]", one).items()}
        elif name != "title":
            made[name] = _drop_titles(one)
    return made


def _close_objects(part: Any) -> Any:
    if isinstance(part, list):
        return [_close_objects(one) for one in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", part).items():
        if name == "properties":  # names of fields, whatever they are
            made[name] = {field: _close_objects(inner) for field, inner in cast("dict[str, Any]", one).items()}
        elif name not in {"default", "contentEncoding"} and (name != "format" or one in FORMATS):
            made[name] = _close_objects(one)  # other formats, such as `decimal`, are no more than notes
    if made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made
