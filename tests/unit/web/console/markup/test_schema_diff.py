"""A payload against its schema: each field once, with the verdict that the contract gives it."""

from patra.web.console.markup.schema_diff import differences

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "quality", "place"],
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "quality": {"type": "string", "enum": ["draft", "high"]},
        "note": {"type": "string"},
        "place": {"type": "object", "required": ["town"], "properties": {"town": {"type": "string"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


def found(payload, *violations):
    told = [{"place": place, "rule": rule, "detail": detail} for place, rule, detail in violations]
    return {one.path: one for one in differences(SCHEMA, payload, told)}


def test_every_field_has_its_verdict():
    rows = found(
        {"quality": "best", "place": {"town": 7}, "tags": ["a", 1], "colour": "red"},
        ("", "required", "id is missing"),
        ("/quality", "enum", "best is none of draft, high"),
        ("/place/town", "type", "7 is not a string"),
        ("/tags/1", "type", "1 is not a string"),
    )
    assert {path: row.verdict for path, row in rows.items()} == {
        "/id": "missing",
        "/quality": "wrong",
        "/note": "absent",
        "/place": "keeps",
        "/place/town": "wrong",
        "/tags": "wrong",
        "/colour": "unknown",
    }
    assert rows["/quality"].says == "draft | high, required"
    assert rows["/quality"].has == '"best"'
    assert rows["/tags"].details == ("/tags/1 type: 1 is not a string",)
    assert rows["/id"].says == "string, minLength 1, required"


def test_a_payload_that_keeps_its_contract_has_no_difference():
    rows = found({"id": "1", "quality": "high", "place": {"town": "Oslo"}})
    assert {row.verdict for row in rows.values()} == {"keeps", "absent"}


def test_a_payload_that_is_no_object_misses_everything_that_is_required():
    assert {path for path, row in found([1]).items() if row.verdict == "missing"} == {"/id", "/quality", "/place"}
