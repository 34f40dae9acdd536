"""Turns a catalogue into an AsyncAPI 3 document and pages for people, so that neither can differ from it."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Contract, EventType
from patra.bus.catalogue.schema import Schema, resolve
from patra.bus.publishing.envelope import REQUIRED
from patra.bus.publishing.publisher_tokens import module
from patra.kernel.citations import without_citations
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND

ADDRESS = "patra.bus"
MAX_SCHEMA_DEPTH = 8

_TEXT = {"type": "string", "minLength": 1, "maxLength": 256}


def envelope_schema(kind: EventType, contract: Contract) -> dict[str, Any]:
    """The whole envelope of one event type and version, as JSON Schema."""
    properties: dict[str, Any] = {
        "event_id": {"type": "string", "format": "uuid", "description": "UUID of version 7."},
        "event_type": {"type": "string", "const": kind.name},
        "event_version": {"type": "string", "pattern": rf"^{contract.version.major}\.\d+$"},
        "schema_version": {"type": "string", "pattern": r"^1(\.\d+){0,2}$"},
        "producer": {"type": "string", "const": kind.producer},
        "forwarded_by": {"type": "array", "items": _TEXT, "minItems": 1, "description": "Who passed it on, in order."},
        **dict.fromkeys(("tenant_id", "project_id", "trace_id", "correlation_id", "causation_id"), _TEXT),
        "idempotency_key": {**_TEXT, "description": "Unique within tenant and type."},
        "occurred_at": {"type": "string", "format": "date-time"},
        "payload": _inline_references(contract.schema, contract.schema, 0),
    }
    return {"type": "object", "additionalProperties": False, "required": list(REQUIRED), "properties": properties}


def asyncapi(catalogue: Catalogue, version: str) -> dict[str, Any]:
    """The catalogue as an AsyncAPI 3.0 document."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for name, kind in sorted(catalogue.types.items()):
        key = name.replace(".", "_")
        of_channel: dict[str, Any] = {}
        for _, contract in sorted(kind.contracts.items()):
            message = f"{key}_v{contract.version.major}"
            messages[message] = _message(kind, contract)
            of_channel[message] = {"$ref": f"#/components/messages/{message}"}
        channels[key] = {
            "address": f"{ADDRESS}.{name}",
            "title": kind.title,
            "description": kind.description,
            "messages": of_channel,
        }
        channel = {"$ref": f"#/channels/{key}"}
        sent = [{"$ref": f"#/channels/{key}/messages/{message}"} for message in of_channel]
        operations[f"{key}_by_{module(kind.producer).replace('-', '_')}"] = {
            "action": "send",
            "channel": channel,
            "title": f"{kind.producer} publishes {name}",
            "messages": sent,
        }
        for consumer in kind.consumers:
            operations[f"{key}_to_{consumer.group.replace('-', '_').replace('.', '_')}"] = {
                "action": "receive",
                "channel": channel,
                "title": f"{consumer.group} consumes {name} {consumer.versions.text}",
                "messages": sent,
            }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Patra bus", "version": version, "description": "Event contracts of the Patra bus."},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def _message(kind: EventType, contract: Contract) -> dict[str, Any]:
    return {
        "name": f"{kind.name}:{contract.version}",
        "title": f"{kind.title} ({contract.version}, {contract.status})",
        "contentType": "application/json",
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-07",
            "schema": envelope_schema(kind, contract),
        },
        "examples": [{"name": f"example{i + 1}", "payload": {"payload": e}} for i, e in enumerate(contract.examples)],
    }


def page(kind: EventType) -> str:
    """One event type in Markdown."""
    rows = [
        ("producer", kind.producer),
        ("consumers", ", ".join(f"`{c.group}` ({c.versions.text})" for c in kind.consumers) or "none listed"),
        ("order", _order(kind)),
        (
            "retries",
            f"{kind.retry.max_retries}, first after {_span(kind.retry.base)}, at most {_span(kind.retry.cap)} apart",
        ),
        ("freezes at", f"more than {kind.dead_letter_threshold} open dead letters"),
        ("body kept for", _span(kind.retention)),
    ]
    lines = [f"# `{kind.name}`", "", f"**{kind.title}.** {kind.description}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    for _, contract in sorted(kind.contracts.items(), reverse=True):
        lines += [
            "",
            f"## Version {contract.version} ({contract.status})",
            "",
            "| field | type | | meaning |",
            "|---|---|---|---|",
        ]
        lines += _fields(contract.schema, contract.schema, "")
        for example in contract.examples:
            text = msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
            lines += ["", "```json", text, "```"]
    return without_citations("\n".join(lines) + "\n")


def index(catalogue: Catalogue) -> str:
    """All event types in one table."""
    lines = ["# Event types", "", "| type | producer | consumers | version |", "|---|---|---|---|"]
    for name, kind in sorted(catalogue.types.items()):
        groups = ", ".join(c.group for c in kind.consumers)
        versions = ", ".join(f"{c.version} ({c.status})" for c in kind.contracts.values())
        lines.append(f"| [`{name}`]({name}.md) | {kind.producer} | {groups} | {versions} |")
    return "\n".join(lines) + "\n"


def book(catalogue: Catalogue) -> str:
    """All event types on one page, for the documentation; made by `patra bus catalogue docs`."""
    parts = ["# Event types\n\nEvery contract of the built-in catalogue; made from it, and a test compares.\n"]
    for _, kind in sorted(catalogue.types.items()):
        parts.append(page(kind).replace("\n## ", "\n### ").replace("# `", "## `", 1))
    return "\n".join(parts)


def _fields(root: Schema, schema: Schema, prefix: str, depth: int = 0) -> list[str]:
    node = _follow_reference(root, schema)
    if not isinstance(node, Mapping) or depth > 4:
        return []
    lines: list[str] = []
    required = node.get("required", ())
    for name, part in cast("Mapping[str, Schema]", node.get("properties", {})).items():
        inner = _follow_reference(root, part)
        if not isinstance(inner, Mapping):
            continue
        must = "required" if name in required else ""
        meaning = str(inner.get("description", "")).replace("|", "\\|")
        lines.append(f"| `{prefix}{name}` | {_type(root, inner)} | {must} | {meaning} |")
        lines += _fields(root, inner, f"{prefix}{name}.", depth + 1)
        if "items" in inner:
            lines += _fields(root, inner["items"], f"{prefix}{name}[].", depth + 1)
    return lines


def _inline_references(root: Schema, schema: Any, depth: int) -> Any:
    """The schema without references: in a larger document `#` is another place."""
    if isinstance(schema, list):
        return [_inline_references(root, part, depth) for part in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    node = cast("Mapping[str, Any]", schema)
    if "$ref" in node:
        return _inline_references(root, resolve(root, node["$ref"]), depth + 1) if depth < MAX_SCHEMA_DEPTH else {}
    return {name: _inline_references(root, part, depth) for name, part in node.items() if name != "$defs"}


def _follow_reference(root: Schema, schema: Schema) -> Schema:
    if isinstance(schema, Mapping) and "$ref" in schema:
        return resolve(root, schema["$ref"]) or False
    return schema


def _type(root: Schema, node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    kinds: Any = node.get("type", "any")
    text = kinds if isinstance(kinds, str) else " or ".join(cast("list[str]", kinds))
    if "format" in node:
        text = f"{text} ({node['format']})"
    if text == "array" and isinstance(items := _follow_reference(root, node.get("items", True)), Mapping):
        text = f"list of {_type(root, items)}"
    return text


def _order(kind: EventType) -> str:
    if kind.ordering is None:
        return "none"
    keys = " + ".join(f"`{pointer}`" for pointer in kind.ordering.key)
    shared = f", shared by all types of scope `{kind.ordering.scope}`" if kind.ordering.scope != kind.name else ""
    return f"per {keys}{shared}; a dead letter lets its key {kind.ordering.on_dead_letter}"


def _span(us: int) -> str:
    for size, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second")):
        if us >= size and us % size == 0:
            return f"{us // size} {name}{'s' if us != size else ''}"
    return f"{us} µs"
