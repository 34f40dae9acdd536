"""A byte that XML does not allow costs one letter, a record that nobody can read costs that record."""

import json

import pytest

from patra.ingest.extraction.body_parser import Document, Unreadable, parse
from patra.ingest.extraction.xml_repair import mended_xml
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Item, Provider, Reply, crowded, serving

SPOILT = "spoilt"


def test_control_characters_are_replaced_and_counted(database: Database) -> None:
    items = [*crowded(60, T0, T1), Item(T0 + 5, "ojs", "Fog \x17and lamps \x02")]
    with world(database, items) as w:
        w.load(pack(w.url, "TOKEN", xml=True))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.contents()["ojs"]["fields"] == {"title": "Fog \ufffdand lamps \ufffd"}
        told = [
            json.loads(row[0]).get("undecodable", 0) for row in w.rows("SELECT response_digest FROM ing_task_run_batch")
        ]
        assert sum(told) == 2


class _Spoiling(Provider):
    """Sends a record whose markup is broken wherever it is asked for."""

    def _sent(self, found: list[Item], more: dict[str, object], *, xml: bool, ids: bool) -> Reply:
        reply = super()._sent(found, more, xml=xml, ids=ids)
        if ids or SPOILT not in {item.id for item in found}:
            return reply
        return Reply(status=200, body=reply.body.replace(b"</title>", b"</titel>", 1), kind=reply.kind)


def test_of_a_group_of_details_only_the_one_that_cannot_be_read_is_set_aside(database: Database) -> None:
    provider = _Spoiling([*crowded(45, T0, T1), Item(T0 + 5, SPOILT, "x")])
    with serving(provider) as url:
        w = World(database, provider, url)
        try:
            w.load(pack(url, "TOKEN", xml=True, two_phase=True))
            w.trigger()
            w.drain()
            assert w.landed() == {key: at for key, at in provider.truth.items() if key != SPOILT}
            rows = w.rows("SELECT provider_id, reason_code FROM ing_quarantine")
            assert rows == [(SPOILT, "i_unreadable")]
            assert w.watermark() == T1
        finally:
            w.close()


@pytest.mark.parametrize(
    ("body", "text", "count"),
    [
        (b"<a>x\x17y</a>", "x\ufffdy", 1),
        (b"<a>x&#x17;y&#23;&#65;</a>", "x\ufffdy\ufffdA", 2),
        (b"<a>x\xffy</a>", "x\ufffdy", 1),
        (b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9\x01</a>", "é\ufffd", 1),
        (b"<?xml version='1.0' encoding='undefined'?><a>\xc3\xa9</a>", "é", 0),
        (b"<?xml version='1.0' encoding='undefined'?><a>\xe9</a>", "\ufffd", 1),
        (b"<?xml version='1.0' encoding='utf-16'?><a>\xc3\xa9</a>", "é", 0),
        (b"<?xml version='1.0' encoding='idna'?><a>\xe9</a>", "\ufffd", 1),
        ("<a>\ufffd\x01</a>".encode(), "\ufffd\ufffd", 1),  # one was there before
    ],
)
def test_what_xml_does_not_allow_is_replaced(body: bytes, text: str, count: int) -> None:
    found = parse(body, ResponseFormat.XML)
    assert isinstance(found, Document)
    assert (found.root.text, found.replaced) == (text, count)


def test_what_is_well_formed_is_left_alone() -> None:
    body = "<a>é</a>".encode()
    assert mended_xml(body) == (body, 0)
    found = parse(body, ResponseFormat.XML)
    assert isinstance(found, Document)
    assert found.replaced == 0


@pytest.mark.parametrize("body", [b"<a><b>x\x17</a>", b"<a>x\x17"])
def test_broken_markup_is_not_mended(body: bytes) -> None:
    assert isinstance(parse(body, ResponseFormat.XML), Unreadable)
