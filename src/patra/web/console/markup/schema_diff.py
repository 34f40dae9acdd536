"""A payload compared with its schema, field by field: what the contract says, what the payload has, and the verdict."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

MAX_DEPTH = 5
MAX_SHOWN_CHARACTERS = 80
Json = dict[str, Any]


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One field; `verdict` is `keeps`, `missing`, `wrong`, `unknown` or `absent` (optional and not given)."""

    path: str
    says: str
    has: str
    verdict: str
    details: tuple[str, ...] = ()


def differences(schema: Json, payload: Any, violations: list[Json]) -> list[FieldDifference]:
    """Every field of the schema and of the payload, in the order of the schema, what breaks the contract marked."""
    broken: dict[str, list[str]] = {}
    for one in violations:
        broken.setdefault(str(one.get("place") or ""), []).append(f"{one.get('rule', '')}: {one.get('detail', '')}")
    return list(_walk_schema(schema, payload, "", broken, 0))


def _walk_schema(
    schema: Json, value: Any, path: str, broken: Mapping[str, list[str]], depth: int
) -> Iterator[FieldDifference]:
    fields = cast("Json", schema.get("properties", {}))
    given = cast("Json", value) if isinstance(value, dict) else {}
    required = set(schema.get("required", ()))
    for name, part in fields.items():
        place = f"{path}/{name}"
        if name not in given:
            verdict = "missing" if name in required else "absent"
            yield FieldDifference(path=place, says=_describe_part(part, name in required), has="", verdict=verdict)
            continue
        nested = isinstance(part, dict) and "properties" in part and isinstance(given[name], dict) and depth < MAX_DEPTH
        inside = any(one.startswith(f"{place}/") for one in broken)
        wrong = broken.get(place, []) + ([] if nested else _below(place, broken))
        yield FieldDifference(
            path=place,
            says=_describe_part(part, name in required),
            has="{…}" if nested else _short(given[name]),
            verdict="wrong" if wrong or (inside and not nested) else "keeps",
            details=tuple(wrong),
        )
        if nested:
            yield from _walk_schema(cast("Json", part), given[name], place, broken, depth + 1)
    if schema.get("additionalProperties") is False:
        for name in given:
            if name not in fields:
                yield FieldDifference(path=f"{path}/{name}", says="", has=_short(given[name]), verdict="unknown")


def _below(place: str, broken: Mapping[str, list[str]]) -> list[str]:
    return [f"{one} {text}" for one, texts in broken.items() if one.startswith(f"{place}/") for text in texts]


def _describe_part(part: Any, required: bool) -> str:
    """What a schema asks of a field, in a few words."""
    if not isinstance(part, dict):
        return "required" if required else "optional"
    rule = cast("Json", part)
    kind = rule.get("type", "")
    words = [" or ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)]
    if "enum" in rule:
        words = [" | ".join(str(one) for one in cast("list[Any]", rule["enum"]))]
    if "const" in rule:
        words = [str(rule["const"])]
    words += [
        f"{name} {rule[name]}" for name in ("format", "pattern", "minimum", "maximum", "minLength") if name in rule
    ]
    return ", ".join([*(word for word in words if word), "required" if required else "optional"])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
