"""Documents made from the catalogue: AsyncAPI 3, pages, and the page of the documentation."""

from pathlib import Path

from patra.bus.asyncapi import asyncapi, book, index, page
from patra.bus.catalogue.catalogue import load
from patra.bus.catalogue.schema import violations
from tests.unit.bus.making import ORDERED, catalogue, event_type

DOCS = Path(__file__).parents[3] / "docs" / "reference"


def test_the_page_of_the_documentation_is_the_catalogue():
    """After a change of a contract: `patra bus catalogue docs --out …`, and its `all.md` is the page."""
    assert (DOCS / "bus-events.md").read_text("utf-8") == book(load())


def test_asyncapi_has_a_channel_for_each_type_and_no_reference_that_leads_nowhere():
    document = asyncapi(load(), "1.2.3")
    assert document["asyncapi"] == "3.0.0"
    assert len(document["channels"]) == 21

    def references(node):
        if isinstance(node, dict):
            yield from ([node["$ref"]] if isinstance(node.get("$ref"), str) else [])
            for inner in node.values():
                yield from references(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from references(inner)

    for reference in set(references(document)):
        here = document
        for step in reference.removeprefix("#/").split("/"):
            here = here[step]


def test_asyncapi_says_who_sends_and_who_receives():
    operations = asyncapi(load(), "1")["operations"]
    assert operations["job_succeeded_by_worker_hub"]["action"] == "send"
    assert operations["job_succeeded_to_composer"]["action"] == "receive"


def test_the_schema_of_the_whole_envelope_accepts_the_examples():
    from patra.bus.asyncapi import envelope_schema
    from patra.bus.publishing.envelope import to_wire
    from tests.unit.bus.making import envelope

    for name, kind in load().types.items():
        for contract in kind.contracts.values():
            wire = to_wire(envelope(name, dict(contract.examples[0]), producer=kind.producer))
            assert violations(envelope_schema(kind, contract), wire) == []


def test_a_page_tells_order_retries_and_fields():
    text = page(
        event_type(**ORDERED, retry={"max_retries": 3, "base": "PT2S", "cap": "PT1H"}, consumers=[{"group": "reader"}])
    )
    assert "per `/payload/key`" in text
    assert "3, first after 2 seconds, at most 1 hour apart" in text
    assert "| `key` | string | required |" in text
    assert "`reader` (>=1)" in text
    assert "thing.happened" in index(catalogue())
