"""Turns the table of endpoints into an OpenAPI 3.1 document; schemas are those of the msgspec types."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

import patra
from patra.web.endpoint import JSON, Endpoint
from patra.web.problem import MEDIA, ProblemBody

_REF = "#/components/schemas/{name}"
_TEXT = r"^[^\x00]*$"  # no parameter holds U+0000: see `dispatch`


def openapi(endpoints: Sequence[Endpoint], *, tokens: bool) -> dict[str, Any]:
    """The document; `tokens` says whether this server asks for them."""
    types = [ProblemBody, *_unique(t for e in endpoints for t in (e.request, e.response, e.query) if t is not None)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schema_of, components)
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = operation
    for body in (endpoint.request_schema for endpoint in endpoints):
        if body is not None:
            components |= {body.name: body.schema, **body.definitions}
    queries = {_name(schema_of[id(e.query)]) for e in endpoints if e.query is not None}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Patra", "version": patra.__version__, "summary": str(patra.__doc__).partition("\n")[0]},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of a role: viewer < operator < admin, or publisher, which only publishes",
                }
            },
        },
    }
    if not tokens:
        for operations in paths.values():
            for operation in operations.values():
                operation.pop("security", None)
    return document


def _operation(endpoint: Endpoint, schema_of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "responses": _responses(endpoint, schema_of),
    }
    if endpoint.description:
        operation["description"] = endpoint.description
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "pattern": _TEXT}}
        for name in endpoint.parameters
    ]
    if endpoint.query is not None:
        parameters += _query_parameters(components[_name(schema_of[id(endpoint.query)])])
    if parameters:
        operation["parameters"] = parameters
    if endpoint.request is not None:
        content = {JSON: {"schema": schema_of[id(endpoint.request)]}}
        operation["requestBody"] = {"required": not endpoint.body_optional, "content": content}
    if (body := endpoint.request_schema) is not None:
        content = {JSON: {"schema": {"$ref": _REF.format(name=body.name)}, "example": body.example}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.role is not None:
        operation["security"] = [{"token": []}]
        operation["x-role"] = endpoint.role.value
    return operation


def _responses(endpoint: Endpoint, schema_of: dict[int, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if endpoint.response is not None:
        good["content"] = {endpoint.media: {"schema": schema_of[id(endpoint.response)]}}
    elif endpoint.media != JSON:
        good["content"] = {endpoint.media: {"schema": {"type": "string"}}}
    responses = {str(endpoint.status): good}
    refusals: dict[int, str] = {500: "A bug; the log has it under `error_id`."}
    if endpoint.role is not None:
        refusals |= {401: "No token, or an unknown one.", 403: "The token's role does not suffice."}
    if endpoint.parameters:
        refusals |= {400: "A parameter holds U+0000."}
    if endpoint.query is not None:
        refusals |= {400: "A query parameter is wrong."}
    if endpoint.writes:
        refusals |= {400: "The body is not what it should be.", 413: "The body is too large."}
    if endpoint.request is not None:
        refusals |= {415: "The body is not JSON.", 422: "The body is not of the shape asked for."}
    refusals |= {421: "Addressed to a name that is not Patra's.", 503: "Not now.", 504: "It took too long."}
    for status, why in (refusals | dict(endpoint.problems)).items():
        problem = {"description": why, "content": {MEDIA: {"schema": schema_of[id(ProblemBody)]}}}
        responses.setdefault(str(status), problem)
    return responses | {str(status): good | {"description": why} for status, why in endpoint.also.items()}


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = set(schema.get("required", ()))
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": ({"pattern": _TEXT} if field.get("type") == "string" and "enum" not in field else {})
            | {key: value for key, value in field.items() if key != "description"},
            **({"description": field["description"]} if "description" in field else {}),
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _operation_id(endpoint: Endpoint) -> str:
    path = endpoint.template if endpoint.template != "/" else "/root"
    return re.sub(r"\W+", "_", f"{endpoint.method.lower()}{path}").strip("_")


def _name(schema: dict[str, Any]) -> str:
    return schema["$ref"].rpartition("/")[2]


def _unique(types: Iterable[Any]) -> list[Any]:
    return list({id(kind): kind for kind in types}.values())
