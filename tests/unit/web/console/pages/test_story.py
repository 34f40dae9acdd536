"""The story page: entries by time, related keys as links, what is pending, candidates, and where nothing was found."""

import json
import re
from typing import Any

from patra.kernel.clock import HOUR, MINUTE, SECOND, format_instant
from patra.web.console.markup.story_axis import Scale, axis
from tests.unit.attribution import said
from tests.unit.web.console.test_application import page
from tests.unit.web.served import Client, served

LINK = re.compile(r'href="/console/story\?key=([^"&]+)')


def send(client: Client, envelope: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/events", body=json.dumps(envelope), headers=headers).status == 200


def test_a_closure_is_told_with_its_keys_and_its_deadline():
    with served() as client:
        now = format_instant(client.patra.clock.now())
        event = {**said.event("ad_filled", "e-1", responseReference="ref", renderAttemptId="ra"), "eventAt": now}
        send(client, said.envelope(event, batch="b-1", sentAt=now))
        told = page(client, "/console/story?key=ref%7Cra").data.decode()
        assert "data-pending" in told
        assert "1 thing is still to come" in told
        assert {"b-1", "ref%7Cra"} <= set(LINK.findall(told))
        for key in sorted(set(LINK.findall(told))):
            found = page(client, f"/console/story?key={key}").data.decode()
            assert "Nothing is known of this key" not in found, key


def test_an_unknown_key_says_where_was_looked():
    with served() as client:
        told = page(client, "/console/story?key=no-such-key").data.decode()
    assert "Nothing is known of this key." in told
    assert "batchId" in told
    assert "trace id" in told
    assert "Keys are compared exactly" in told


def test_an_ambiguous_key_offers_its_candidates():
    with served() as client:
        now = format_instant(client.patra.clock.now())
        for batch, name in (("twin", "e-1"), ("b-2", "twin")):
            event = {**said.event("ad_filled", name, responseReference=batch), "eventAt": now}
            send(client, said.envelope(event, batch=batch, sentAt=now))
        told = page(client, "/console/story?key=twin").data.decode()
        assert "Choose the one that you mean" in told
        kinds = re.findall(r'key=twin&amp;kind=([\w.]+)"', told)
        assert {"attribution.batchId", "attribution.eventId"} <= set(kinds)
        chosen = page(client, "/console/story?key=twin&kind=attribution.batchId").data.decode()
        assert 'id="story-entries"' in chosen


def test_the_axis_folds_what_is_quiet_and_keeps_the_order():
    instants = [0, SECOND, 2 * SECOND, 3 * SECOND, HOUR, HOUR + SECOND]
    scale = Scale(instants)
    places = [scale.place(at) for at in instants]
    assert places == sorted(places)
    assert (places[0], round(places[-1], 6)) == (0.0, 1.0)
    assert places[3] - places[0] > 0.5
    assert [span for _, _, span in scale.folds] == [HOUR - 3 * SECOND]


def test_the_axis_escapes_what_strangers_wrote():
    entry = {"at": MINUTE, "engine": "bus", "anchor": "e0", "text": "<script>", "tone": "bad", "shape": "in"}
    drawn = str(axis([entry, {**entry, "at": HOUR}], ["bus"], 0))
    assert "<script>" not in drawn
    assert drawn.count('href="#e0"') == 2
