"""Turns a pack's tree into rows of the `reg_*` tables, and the other way round without loss (ch. 3.2, I5).

The tables are the truth at run time; which part of a pack stands in which table is said here, once. An empty
`operation_code` stands for every operation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.packs.merge import Tree
from patra.ingest.vocabulary.codes import DICTIONARY, Access, ParamLocation, Role

Rows = dict[str, list[dict[str, Any]]]

PLACES: dict[str, tuple[str, ...]] = {
    "reg_prov_http_cfg": ("http", "auth"),
    "reg_prov_pagination_cfg": ("pagination", "ordering"),
    "reg_prov_window_offset_cfg": ("window", "cursor"),
    "reg_prov_retry_cfg": ("retry", "errors"),
    "reg_prov_rate_limit_cfg": ("rateLimit", "limits"),
    "reg_prov_batching_cfg": ("batching", "twoPhase", "planning", "update"),
}
"""Sections by table. `params`, `response`, `output` and `expr` have tables of their own."""

CAPABILITY = ("allowedFunctions", "maxOutput")
"""Fields of `expr` that say what expressions may do; the others say how they are rendered."""

TABLES = (
    "reg_provenance",
    "reg_prov_endpoint_def",
    "reg_prov_credential",
    "reg_prov_schedule",
    *PLACES,
    "reg_prov_expr_capability",
    "reg_prov_expr_render_rule",
    "reg_prov_api_param_map",
    "reg_expr_field_dict",
)
_OWN = ("title", "role", "access", "method", "path", "supports", "defaults", "operations")
_SOURCE = ("pack", "homepage", "documentation", "semantics", "hosts", "defaults")


def rows_of(tree: Tree, *, pack_hash: str, version_no: int, created_at: int, now: int) -> Rows:
    """The rows of one source."""
    code: str = tree["source"]
    rows: Rows = {table: [] for table in TABLES}
    rows["reg_provenance"].append(
        {
            "provenance_code": code,
            "provenance_name": tree["title"],
            "description": tree.get("description", ""),
            "enabled": int(tree.get("enabled", True)),
            "pack_version": tree["version"],
            "pack_hash": pack_hash,
            "version_no": version_no,
            "cfg": _json({k: tree[k] for k in tree if k in {*_SOURCE, "enabled", "description"}}),
            "created_at": created_at,
            "updated_at": now,
        }
    )
    for position, (name, credential) in enumerate(tree.get("credentials", {}).items()):
        rows["reg_prov_credential"].append(
            {
                "provenance_code": code,
                "credential_code": name,
                "position": position,
                "auth_type_code": credential["type"],
                "priority": credential.get("priority", 100),
                "cfg": _json(credential),
            }
        )
    for position, (name, schedule) in enumerate(tree.get("schedules", {}).items()):
        rows["reg_prov_schedule"].append(
            {
                "provenance_code": code,
                "schedule_name": name,
                "position": position,
                "endpoint_name": schedule["endpoint"],
                "operation_code": schedule["operation"],
                "cron": schedule["cron"],
                "enabled": int(schedule.get("enabled", True)),
                "cfg": _json(schedule),
            }
        )
    for position, (name, endpoint) in enumerate(tree["endpoints"].items()):
        own = {key: value for key, value in endpoint.items() if key in _OWN and key != "operations"}
        own["operationOrder"] = list(endpoint.get("operations", {}))
        rows["reg_prov_endpoint_def"].append(
            {
                "provenance_code": code,
                "endpoint_name": name,
                "position": position,
                "endpoint_role_code": endpoint.get("role", Role.SEARCH.value),
                "access_code": endpoint.get("access", Access.PUBLIC.value),
                "http_method_code": endpoint.get("method"),
                "path_template": endpoint.get("path"),
                "cfg": _json(own),
            }
        )
        _sections(rows, endpoint, {"provenance_code": code, "endpoint_name": name, "operation_code": ""})
        for operation, sections in endpoint.get("operations", {}).items():
            _sections(rows, sections, {"provenance_code": code, "endpoint_name": name, "operation_code": operation})
    return rows


def _sections(rows: Rows, tree: Tree, key: dict[str, str]) -> None:
    for table, names in PLACES.items():
        found = {name: tree[name] for name in names if name in tree}
        if found:
            rows[table].append({**key, "cfg": _json(found)})
    expr: Tree | None = tree.get("expr")
    if expr is not None:
        can = {name: value for name, value in expr.items() if name in CAPABILITY}
        rule = {name: value for name, value in expr.items() if name not in CAPABILITY}
        if can:
            rows["reg_prov_expr_capability"].append({**key, "cfg": _json(can)})
        if rule or not can:
            rows["reg_prov_expr_render_rule"].append({**key, "cfg": _json(rule)})
    for position, (name, param) in enumerate(tree.get("params", {}).items()):
        given: Tree = param or {}
        rows["reg_prov_api_param_map"].append(
            {
                **key,
                "param_name": name,
                "position": position,
                "location_code": given.get("location", ParamLocation.NONE.value),
                "required": int(given.get("required", False)),
                "cfg": _json(param),
            }
        )
    output: Tree = tree.get("output", {})
    kinds: list[tuple[str, Iterable[tuple[str, Any]]]] = [
        ("RESPONSE", tree.get("response", {}).items()),
        ("OUTPUT", output.get("fields", {}).items()),
        ("MAPPING", ((name, value) for name, value in output.items() if name != "fields")),
    ]
    for kind, fields in kinds:
        for position, (name, value) in enumerate(fields):
            rows["reg_expr_field_dict"].append(
                {**key, "field_kind": kind, "field_name": name, "position": position, "cfg": _json(value)}
            )


def tree_of(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Tree:
    """The tree of one source, from all its rows."""
    (source,) = rows["reg_provenance"]
    cfg: Tree = _value(source["cfg"])
    tree: Tree = {
        "pack": cfg["pack"],
        "source": source["provenance_code"],
        "version": source["pack_version"],
        "title": source["provenance_name"],
    }
    tree |= {name: value for name, value in cfg.items() if name != "pack"}
    for table, name, code in (
        ("reg_prov_credential", "credentials", "credential_code"),
        ("reg_prov_schedule", "schedules", "schedule_name"),
    ):
        found = {row[code]: _value(row["cfg"]) for row in _in_order(rows[table])}
        if found:
            tree[name] = found
    endpoints: Tree = {}
    for row in _in_order(rows["reg_prov_endpoint_def"]):
        name = row["endpoint_name"]
        own: Tree = _value(row["cfg"])
        order: list[str] = own.pop("operationOrder")
        endpoint: Tree = {**own, **_read_sections(rows, name, "")}
        if order:
            endpoint["operations"] = {operation: _read_sections(rows, name, operation) for operation in order}
        endpoints[name] = endpoint
    tree["endpoints"] = endpoints
    return tree


def _read_sections(rows: Mapping[str, Sequence[Mapping[str, Any]]], endpoint: str, operation: str) -> Tree:
    def mine(table: str) -> Iterator[Mapping[str, Any]]:
        return (r for r in rows[table] if r["endpoint_name"] == endpoint and r["operation_code"] == operation)

    tree: Tree = {}
    for table in PLACES:
        for row in mine(table):
            tree |= _value(row["cfg"])
    for table in ("reg_prov_expr_capability", "reg_prov_expr_render_rule"):
        for row in mine(table):
            tree["expr"] = {**tree.get("expr", {}), **_value(row["cfg"])}
    params = {row["param_name"]: _value(row["cfg"]) for row in _in_order(mine("reg_prov_api_param_map"))}
    if params:
        tree["params"] = params
    fields: dict[str, Tree] = {"RESPONSE": {}, "OUTPUT": {}, "MAPPING": {}}
    for row in _in_order(mine("reg_expr_field_dict")):
        fields[row["field_kind"]][row["field_name"]] = _value(row["cfg"])
    if fields["RESPONSE"]:
        tree["response"] = fields["RESPONSE"]
    if fields["OUTPUT"] or fields["MAPPING"]:
        tree["output"] = fields["MAPPING"] | ({"fields": fields["OUTPUT"]} if fields["OUTPUT"] else {})
    return tree


def dictionary_rows() -> Rows:
    """The built-in dictionary as rows of `sys_dict_*`."""
    rows: Rows = {"sys_dict_type": [], "sys_dict_item": [], "sys_dict_item_alias": []}
    for entry in DICTIONARY:
        rows["sys_dict_type"].append({"type_code": entry.code, "type_name": entry.items.__name__})
        for order, code in enumerate(entry.items):
            rows["sys_dict_item"].append(
                {
                    "type_code": entry.code,
                    "item_code": code.value,
                    "item_name": code.text,
                    "display_order": order,
                    "enabled": 1,
                }
            )
        rows["sys_dict_item_alias"] += [
            {"type_code": entry.code, "alias_code": alias, "item_code": code.value}
            for alias, code in entry.aliases.items()
        ]
    return rows


def _in_order(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: row["position"])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _value(text: str) -> Any:
    return msgspec.json.decode(text)
