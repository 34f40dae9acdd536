"""Expr, Response, ErrorRule, Field, Output."""

from patra.ingest.http.client import Outgoing
from patra.ingest.vocabulary.codes import Operation
from tests.support.hostile_provider import Reply
from tests.unit.ingest.packs.effects.observe import (
    Case,
    case,
    checked,
    harvested,
    record,
    request,
    verdict,
    xml_record,
)
from tests.unit.ingest.packs.effects.stand_in import Site, as_json

RULE = "errors.wrong"
XML = {
    "response": {"format": "XML", "itemsPath": "/a:list/a:record", "idPath": "a:id", "updatedAtPath": "a:updated",
                 "namespaces": {"a": "urn:a"}},
    "output": {"fields": {"title": "a:title"}},
}  # fmt: skip
FEED = '<list xmlns="urn:a"><record><id>r1</id><updated>2026-03-01T10:00:00Z</updated><title>A</title></record></list>'
ITEM = '{"id": "r1", "updated": "2026-03-01T10:00:00Z"}'


def again(s: Site) -> None:
    """The same window once more, with another title at the same instant."""
    with_title(s, "New")
    s.trigger(Operation.BACKFILL, activity="again")


def with_title(s: Site, title: str) -> None:
    def script(_: int, sent: Outgoing) -> Reply | None:
        del sent
        return as_json({"total": 1, "items": [{"id": "r1", "updated": "2026-03-01T10:00:00Z", "title": title}]})

    s.transport._script = script


def one(number: int, sent: Outgoing) -> Reply | None:
    del number, sent
    return as_json({"total": 1, "items": [{"id": "r1", "updated": "2026-03-01T10:00:00Z", "title": "Old"}]})


def ruled(**rule: object) -> dict[str, object]:
    return {RULE: {"outcome": "L2", **rule}}


CASES: dict[str, Case] = {
    "Expr.allowedFunctions": case(checked, "expr.allowedFunctions", ["coalesce"], given={"http.queryTemplate.q": "${lower('A')}"}),
    "Expr.nullPolicy": case(request, "expr.nullPolicy", "empty", given={"http.queryTemplate.q": "${params.term}", "params": {"term": {"maxLength": 9}}}),
    "Expr.timeFormat": case(request, "expr.timeFormat", "yyyy-MM-dd"),
    "Expr.timezone": case(request, "expr.timezone", "America/New_York", given={"expr.timeFormat": "yyyy-MM-dd HH"}),
    "Expr.vars": case(request, "expr.vars", {"q": "b"}, given={"http.queryTemplate.q": "${expr.q}", "expr.vars": {"q": "a"}}),
    "Expr.maxOutput": case(request, "expr.maxOutput", 2, given={"http.queryTemplate.q": "${concat('a', 'b', 'c')}"}),
    "Response.format": case(checked, "response.format", "XML"),
    "Response.itemsPath": case(verdict(body='{"items": [], "other": [' + ITEM + '], "total": 1}'), "response.itemsPath", "$.other"),
    "Response.idPath": case(record({"other": "r2"}), "response.idPath", "$.other"),
    "Response.idApply": case(record({"id": "R1"}), "response.idApply", ["lower"]),
    "Response.updatedAtPath": case(record({"other": "2025-01-01T00:00:00Z"}), "response.updatedAtPath", "$.other"),
    "Response.updatedAtFormat": case(record({"updated": "01/03/2026"}), "response.updatedAtFormat", ["dd/MM/yyyy"]),
    "Response.versionPath": case(record({"v": 3}), "response.versionPath", "$.v"),
    "Response.updateTime": case(checked, "response.updateTime", "PUBLISHED"),
    "Response.onEqual": case(harvested(script=one, then=again), "response.onEqual", "CONTENT"),
    "Response.deletedPath": case(record({"gone": "yes"}), "response.deletedPath", "$.gone"),
    "Response.deletedValues": case(record({"gone": "yes"}), "response.deletedValues", ["no"], given={"response.deletedPath": "$.gone"}),
    "Response.hasMorePath": case(verdict(body='{"items": [' + ITEM + '], "total": 1, "more": true}'), "response.hasMorePath", "$.more"),
    "Response.totalPath": case(verdict(body='{"items": [' + ITEM + '], "total": 1, "count": 7}'), "response.totalPath", "$.count"),
    "Response.itemsMissing": case(verdict(body='{"total": 0}'), "response.itemsMissing", "EMPTY"),
    "Response.namespaces": case(xml_record(FEED), "response.namespaces", {"a": "urn:b"}, given=XML),
    "Response.contentTypes": case(verdict(), "response.contentTypes", ["application/vnd.api+json"]),
    "ErrorRule.status": case(verdict(status=400), f"{RULE}.status", [404], given=ruled()),
    "ErrorRule.contentType": case(verdict(), f"{RULE}.contentType", "text/html", given=ruled()),
    "ErrorRule.header": case(verdict(), f"{RULE}.header", "X-Error", given=ruled()),
    "ErrorRule.path": case(verdict(body='{"error": "x", "items": []}'), f"{RULE}.path", "$.nothing", given=ruled(path="$.error")),
    "ErrorRule.equals": case(verdict(body='{"error": "x", "items": []}'), f"{RULE}.equals", ["y"], given=ruled(path="$.error")),
    "ErrorRule.pattern": case(verdict(), f"{RULE}.pattern", "Timeout", given=ruled()),
    "ErrorRule.retryAfter": case(verdict(), f"{RULE}.retryAfter", "PT5M", given=ruled(outcome="L1")),
    "ErrorRule.advice": case(verdict(), f"{RULE}.advice", "Check the key", given=ruled()),
    "Field.path": case(record({"other": "B"}), "output.fields.title.path", "$.other", given={"output.fields.title": {"path": "$.title"}}),
    "Field.expr": case(record({}), "output.fields.title.expr", "${lower(value)}", given={"output.fields.title": {"path": "$.title"}}),
    "Field.all": case(record({"names": ["a", "b"]}), "output.fields.n.all", True, given={"output.fields.n": {"path": "$.names[*]"}}),
    "Field.each": case(record({"a": [{"n": 1}], "b": [{"n": 2}]}), "output.fields.n.each", "$.b[*]", given={"output.fields.n": {"each": "$.a[*]", "fields": {"n": "$.n"}}}),
    "Field.fields": case(record({"a": [{"n": 1, "m": 2}]}), "output.fields.n.fields", {"n": "$.m"}, given={"output.fields.n": {"each": "$.a[*]", "fields": {"n": "$.n"}}}),
    "Field.apply": case(record({}), "output.fields.title.apply", ["upper"], given={"output.fields.title": {"path": "$.title"}}),
    "Field.type": case(record({"n": "12"}), "output.fields.n.type", "INT", given={"output.fields.n": {"path": "$.n"}}),
    "Field.format": case(record({"n": "01/03/2026"}), "output.fields.n.format", ["dd/MM/yyyy"], given={"output.fields.n": {"path": "$.n", "type": "DATE"}}),
    "Field.map": case(record({}), "output.fields.title.map", {"A title": "Another"}, given={"output.fields.title": {"path": "$.title"}}),
    "Field.enum": case(record({}), "output.fields.title.enum", ["none such"], given={"output.fields.title": {"path": "$.title"}}),
    "Field.default": case(record({}), "output.fields.n.default", "none", given={"output.fields.n": {"path": "$.nothing"}}),
    "Field.required": case(record({}), "output.fields.n.required", True, given={"output.fields.n": {"path": "$.nothing"}}),
    "Output.shape": case(checked, "output.shape", "work", given={"output.fields": {"mine": "$.title"}}),
    "Output.fields": case(record({}), "output.fields", {"id": "$.id"}),
    "Output.keepRaw": case(record({}), "output.keepRaw", False),
}  # fmt: skip
