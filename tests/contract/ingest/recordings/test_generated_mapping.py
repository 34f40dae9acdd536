"""The generated mappings give what the rules give, on recorded answers: the same bytes, the same flaws."""

import pytest

from patra.ingest.extraction.body_parser import Document, parse
from patra.ingest.extraction.items import item_reader
from patra.ingest.extraction.list_outline import list_outline, list_place, list_split
from patra.ingest.extraction.mapping import Mapper
from patra.ingest.extraction.response import Reader
from tests.contract.ingest.recordings.shelf import leg_of, needed, recording
from tests.contract.ingest.recordings.test_every_record_maps import ORGANISATIONS, WHOLE
from tests.property.ingest.interpreted_mapping import InterpretedMapping
from tests.property.ingest.test_mapping_code import same

pytestmark = needed
RECORDS = 10
"""Compared on each page; the first ones."""
LAST = {(source, endpoint): name for source, endpoint, name, records in (*WHOLE, *ORGANISATIONS) if records}
"""One page of each endpoint."""


@pytest.mark.parametrize(("source", "endpoint"), LAST)
def test_a_recorded_page_is_mapped_as_the_rules_say(source: str, endpoint: str) -> None:
    leg, found = leg_of(source, endpoint), recording(LAST[source, endpoint])
    document = parse(
        found.body.encode(),
        leg.response.format,
        place=list_place(leg),
        apart=list_split(leg),
        outline=list_outline(leg),
    )
    assert isinstance(document, Document), document
    reader = Reader(leg)
    mapper = Mapper(leg.mapping.output, leg.response, leg.expr, leg.params)
    model = InterpretedMapping(leg.mapping.output, leg.response, leg.expr, leg.params)
    items = reader.page(document, {}, found.url).items or []
    assert items
    for item in map(item_reader([*reader.needs, *mapper.needs]), items[:RECORDS]):
        same(mapper, model, item)
