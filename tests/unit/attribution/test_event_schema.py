"""The input contract has one source: what its schema takes, the intake takes; what it leaves out, the intake refuses."""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import patra.client
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.attribution.contract.event_fields import (
    FIELDS,
    Form,
    example_batch,
    example_event,
    optional_fields,
    required_fields,
    sample_events,
)
from patra.attribution.contract.event_types import COMMON, KINDS
from patra.attribution.event_schema import ack_schema, request_schema, type_name, typescript
from patra.attribution.intake.checked_event import Event
from patra.attribution.intake.envelope import Envelope
from patra.attribution.intake.envelope import envelope as read_envelope
from patra.attribution.intake.validate import check_event
from patra.cli.reference import PAGES
from patra.kernel.clock import format_instant
from patra.web.asgi import app
from patra.web.openapi import openapi
from tests.unit.attribution.said import T0, replayed

ROOT = Path(__file__).parents[3]
BATCH = jsonschema_rs.validator_for(request_schema())
RECEIVED = {"receivedAt": "2026-01-01T00:00:00Z"}
EVERY_REQUIRED = [(kind, name) for kind in KINDS.values() for name in required_fields(kind)]


def answers(*events: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    found = replayed({**RECEIVED, "batch": {**example_batch(), "events": list(events), **changes}})
    return found.acks[0]["ackItems"]


def test_the_example_of_every_type_is_valid_and_accepted():
    batch = example_batch()
    assert BATCH.is_valid(batch)
    found = replayed({**RECEIVED, "batch": batch})
    assert {item["ackReasonCode"] for item in found.acks[0]["ackItems"]} == {"f_accepted"}
    assert len(found.acks[0]["ackItems"]) == len(KINDS) == 8
    assert jsonschema_rs.validator_for(ack_schema()).is_valid(found.acks[0])
    assert sorted(fact["billableType"] for fact in found.billable) == ["billable_click", "billable_impression"]


def test_the_sample_of_every_run_bills_an_impression_and_a_click():
    found = replayed(
        *(
            {**RECEIVED, "batch": {**example_batch(batch_id=run), "events": sample_events(RECEIVED["receivedAt"], run)}}
            for run in ("one", "two")
        )
    )
    assert [ack["overallStatus"] for ack in found.acks] == ["accepted_all", "accepted_all"]
    assert len(found.billable) == 4


@pytest.mark.parametrize(("kind", "name"), EVERY_REQUIRED, ids=lambda it: getattr(it, "name", it))
def test_a_required_field_that_is_missing_is_invalid_and_rejected_by_its_name(kind: Any, name: str):
    event = {key: value for key, value in example_event(kind).items() if key != name}
    assert not BATCH.is_valid({**example_batch(), "events": [event]})
    (item,) = answers(event)
    assert (item["ackStatus"], item["extensions"]["fieldPath"]) == ("rejected", name)


def test_the_schemas_requirements_are_those_of_the_intake():
    for kind in KINDS.values():
        assert set(required_fields(kind)) == {"eventId", "eventType", "eventAt", "eventVersion", *kind.required}
        assert set(required_fields(kind)) >= set(COMMON)
        assert {*required_fields(kind), *optional_fields(kind)} - {"extensions"} == set(kind.known)
        if kind.enum:
            assert set(FIELDS[kind.enum].values) == set(kind.values)


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
ID = st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True)
FORMS: dict[Form, st.SearchStrategy[Any]] = {
    Form.ID: ID,
    Form.TEXT: TEXT,
    Form.OPEN_ENUM: TEXT,
    Form.VERSION: TEXT | st.integers(-(2**53), 2**53),
    Form.INSTANT: st.just("2026-01-01T00:00:00Z"),
    Form.OBJECT: st.dictionaries(TEXT, TEXT, max_size=2),
}


@given(st.data())
def test_a_batch_that_the_schema_takes_is_not_rejected_for_its_shape(data: st.DataObject):
    kind = data.draw(st.sampled_from(list(KINDS.values())))
    optional = data.draw(st.sets(st.sampled_from(optional_fields(kind))))
    values = {"eventType": st.just(kind.name), "eventIdScope": st.just("batch_scoped")}
    event = {
        name: data.draw(values[name] if name in values else FORMS[FIELDS[name].form])
        for name in (*required_fields(kind), *optional)
    }
    batch = {**example_batch(), "events": [event]}
    read = read_envelope(json.dumps(batch).encode())
    assert isinstance(read, Envelope)
    accepted = isinstance(check_event(read.events[0], 0, read, T0), Event)
    assert BATCH.is_valid(batch) is accepted


@pytest.mark.parametrize("field", ["batchId", "appId", "sdkVersion", "sentAt", "schemaVersion", "events"])
def test_an_envelope_without_a_required_field_is_invalid_and_refused(field: str):
    batch = {name: value for name, value in example_batch().items() if name != field}
    assert not BATCH.is_valid(batch)
    assert replayed({**RECEIVED, "batch": batch}).acks == [{"code": "f_batch_missing_required"}]


def test_the_openapi_document_has_the_body_of_post_events_and_its_example_is_valid_by_it():
    whole = build(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    try:
        document = json.loads(json.dumps(openapi(app(whole).endpoints, tokens=False)))
    finally:
        whole.close(0)
    body = document["paths"]["/events"]["post"]["requestBody"]
    content = body["content"]["application/json"]
    schema = {**content["schema"], "components": document["components"]}
    assert body["required"] is True
    assert jsonschema_rs.validator_for(schema).is_valid(content["example"])
    assert not jsonschema_rs.validator_for(schema).is_valid({**content["example"], "events": [{}]})
    for kind in KINDS.values():
        assert document["components"]["schemas"][type_name(kind)]["required"] == list(required_fields(kind))


def test_the_reference_page_has_every_type_field_and_value():
    page = PAGES["attribution_events"]()
    for kind in KINDS.values():
        section = page.partition(f"## {kind.name}\n")[2].partition("\n## ")[0]
        assert all(f"| `{name}` |" in section for name in required_fields(kind) if name != "eventType")
        assert all(f"`{value}`" in section for value in kind.values)
        assert json.loads(section.partition("```json\n")[2].partition("```")[0]) == example_event(kind)


def test_the_types_name_every_field_and_value():
    text = typescript()
    for kind in KINDS.values():
        body = text.partition(f"export interface {type_name(kind)} {{")[2].partition("\n}")[0]
        assert f'  eventType: "{kind.name}";' in body
        assert all(f"  {name}: " in body for name in required_fields(kind))
        assert all(f"  {name}?: " in body for name in optional_fields(kind))
        assert all(f'"{value}"' in body for value in kind.values)


@pytest.mark.skipif(shutil.which("tsc") is None, reason="tsc is not on this machine")
def test_the_types_compile(tmp_path: Path):
    (tmp_path / "events.d.ts").write_text(typescript())
    subprocess.run(["tsc", "--noEmit", "--strict", "events.d.ts"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("source", ["docstring", "page"])
def test_the_clients_own_example_is_accepted(source: str):
    text = (
        patra.client.Client.__doc__ or ""
        if source == "docstring"
        else (ROOT / "docs/reference/attribution.md").read_text("utf-8")
    )
    found = re.search(r"client\.add\(\s*({.*?})\s*\)", text, re.DOTALL)
    assert found is not None
    literal = found[1].replace("datetime.now(UTC).isoformat()", repr(format_instant(T0)))
    (item,) = answers(ast.literal_eval(literal))
    assert item["ackReasonCode"] == "f_accepted"
