"""The story page: entries by time, related keys as links, what is pending, candidates, and where nothing was found."""

import json
import re
from typing import Any

from patra.kernel.clock import HOUR, MINUTE, SECOND, format_instant
from patra.web.console.markup.story_axis import Scale, axis
from patra.web.console.markup.story_lanes import MAX_LANES_OF_ENGINE, lanes_of
from patra.web.console.pages.story import MAX_RAW_ENTRIES, rail_of
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
        assert "<h1>1 closure is open</h1>" in page(client, "/console/attribution/closures").data.decode()
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


def shown(at: int, what: str, anchor: str, **more: Any) -> dict[str, Any]:
    plain = {
        "engine": "attribution",
        "shape": "written",
        "text": what,
        "tone": "",
        "state": "",
        "detail": {},
        "related": [],
    }
    return {**plain, "at": at, "what": what, "anchor": anchor, **more}


def test_the_axis_escapes_what_strangers_wrote():
    entries = [
        shown(at, "event_handled", f"e{at}", engine="bus", text="<script>", tone="bad", detail={"group": "<b>"})
        for at in (MINUTE, HOUR)
    ]
    drawn = str(axis(lanes_of(entries), 0))
    assert "<script>" not in drawn
    assert f'href="#e{MINUTE}"' in drawn
    assert f'href="#e{HOUR}"' in drawn


def test_a_closure_is_a_lane_whose_bars_are_its_states():
    key = [{"relation": "closure", "kind": "attribution.closureKey", "key": "ref|ra"}]
    names = {"responseReferenceOrNA": "ref", "renderAttemptIdOrNA": "ra"}
    failed, late = ({"fact": {"eventType": name, **names}} for name in ("failure", "impression"))
    entries = [
        shown(0, "batch_received", "e0", shape="in"),
        shown(0, "closure_opened", "e1", state="closed_success", related=key),
        shown(120, "attribution_fact_recorded", "e2", detail=failed),
        shown(150, "attribution_fact_recorded", "e3", detail=late),
        shown(200, "dead_letter_replaying", "e4", engine="bus", shape="act", state="replaying"),
    ]
    lanes = {lane.name: lane for lane in lanes_of(entries)}
    assert list(lanes) == ["Intake", "Closure", "Facts", "People"]
    assert [(bar.begin, bar.end, bar.state, bar.anchor) for bar in lanes["Closure"].bars] == [
        (0, 120, "open", "e1"),
        (120, 150, "closed_failure", "e2"),
        (150, 200, "closed_success", "e3"),
    ]


def test_a_group_is_a_lane_whose_bar_is_the_time_of_its_dead_letter():
    of = {"engine": "bus", "detail": {"group": "mailer"}}
    entries = [
        shown(0, "event_published", "e0", engine="bus", shape="out"),
        shown(10, "dead_letter_written", "e1", state="replayed", **of),
        shown(40, "dead_letter_replaying", "e2", state="replaying", **of),
        shown(50, "dead_letter_replayed", "e3", state="replayed", **of),
        shown(60, "event_handled", "e4", state="done", **of),
    ]
    lanes = {lane.name: lane for lane in lanes_of(entries)}
    assert [(bar.begin, bar.end, bar.state) for bar in lanes["mailer"].bars] == [
        (10, 40, "open"),
        (40, 50, "replaying"),
    ]


def test_an_engine_with_many_things_has_one_lane():
    entries = [
        shown(at, "event_handled", f"e{at}", engine="bus", detail={"group": f"g{at}"})
        for at in range(MAX_LANES_OF_ENGINE + 1)
    ]
    assert [lane.name for lane in lanes_of(entries)] == ["Bus"]
    assert [lane.name for lane in lanes_of(entries[:2])] == ["g0", "g1"]


def test_marks_at_one_place_are_one():
    entries = [shown(at, "record_moved", f"e{number}") for number, at in enumerate((0, 0, 0, SECOND))]
    drawn = str(axis(lanes_of(entries), 0))
    assert re.findall(r'href="#(e\d)"', drawn) == ["e0", "e3"]
    assert "record_moved and 2 more" in drawn


def test_instants_of_one_second_are_told_apart_by_how_long_after_the_first_they_are():
    near = [shown(at, "record_moved", f"e{at}") for at in (0, 406 * SECOND // 1000)]
    far = [shown(at, "record_moved", f"e{at}") for at in (0, 20 * SECOND)]
    assert re.findall(r"[>](\+[^<]*|[\d:]+)<", str(axis(lanes_of(near), 0))) == ["00:00:00", "+406 ms"]
    assert re.findall(r"[>](\+[^<]*|[\d:]+)<", str(axis(lanes_of(far), 0))) == ["00:00:00", "00:00:20"]


def test_a_rule_is_linked_to_its_paragraph():
    with served() as client:
        now = format_instant(client.patra.clock.now())
        event = {**said.event("ad_filled", "e-1", responseReference="ref", renderAttemptId="ra"), "eventAt": now}
        send(client, said.envelope(event, batch="b-1", sentAt=now))
        told = page(client, "/console/story?key=ref%7Cra").data.decode()
        linked = set(re.findall(r'href="(/console/rule\?at=[\w-]+)"', told))
        assert "/console/rule?at=f-3-8-17" in linked
        for address in linked:
            assert page(client, address).status == 200, address
        paragraph = page(client, "/console/rule?at=f-3-8-17").data.decode()
        assert "3.8.17 Closure key" in paragraph
        assert "<code>closureKey" in paragraph
        assert client.get("/console/rule?at=nothing").status == 404


def test_a_long_story_shows_what_is_stored_of_one_entry_at_a_time():
    with served() as client:
        now = format_instant(client.patra.clock.now())
        events = [
            {**said.event("ad_filled", f"e-{n}", responseReference=f"ref-{n}"), "eventAt": now} for n in range(20)
        ]
        send(client, said.envelope(*events, batch="b-1", sentAt=now))
        told = page(client, "/console/story?key=b-1").data.decode()
        assert told.count('class="tl-r"') > MAX_RAW_ENTRIES
        assert 'class="json box"' not in told
        links = re.findall(r'href="([^"]+)">Its keys, and what is stored', told)
        decision = next(link for link in links if "attribution.decision" in link)
        opened = page(client, decision.replace("&amp;", "&").partition("#")[0]).data.decode()
        assert opened.count('class="json box"') == 1


def test_the_name_of_a_state_stands_where_no_mark_lies_over_it():
    entries = [
        shown(0, "task_moved", "e0", engine="ingest", state="EXECUTING"),
        shown(10, "batch_ended", "e1", engine="ingest"),
        shown(100, "task_moved", "e2", engine="ingest", state="SUCCEEDED"),
    ]
    assert re.findall(r'<text class="in-run" x="([\d.]+)%"', str(axis(lanes_of(entries), 0))) == ["10"]
    crowded = [
        *entries[:1],
        *(shown(at, "batch_ended", f"b{at}", engine="ingest") for at in range(5, 100, 5)),
        entries[2],
    ]
    assert "EXECUTING</text>" not in str(axis(lanes_of(crowded), 0))


def test_keys_whose_relation_says_no_more_than_their_kind_stand_under_one_heading():
    related = [
        {"relation": "came in with", "kind": "attribution.batchId", "key": "b-1"},
        {"relation": "event", "kind": "attribution.eventId", "key": "e-1"},
        {"relation": "same trace", "kind": "attribution.traceKey", "key": "t-1"},
        {"relation": "record", "kind": "attribution.recordKey", "key": "r-1"},
        {"relation": "same request", "kind": "attribution.requestKey", "key": "q-1"},
        {"relation": "caused by", "kind": "bus.event_id", "key": "v-1"},
        *({"relation": "event", "kind": "bus.event_id", "key": f"v-{n}"} for n in range(2, 16)),
    ]
    rail = rail_of(related)
    assert {heading: [kind["name"] for kind in kinds] for heading, kinds in rail.items()} == {
        "came in with": ["batchId"],
        "keys": ["eventId", "recordKey", "event_id"],
        "shared with others": ["traceKey", "requestKey"],
        "caused by": ["event_id"],
    }
    assert (len(rail["keys"][2]["keys"]), rail["keys"][2]["more"]) == (12, 2)
