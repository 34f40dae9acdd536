"""B8: a new major goes through shadow, dual and retiring, for a tenant or a share first, and back; nobody misses an event."""

import json

import pytest
from click.testing import CliRunner

from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.version_stages import Stage
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.publishing.envelope import rendition
from patra.bus.publishing.publish import Published
from patra.bus.store import groups, version_stages
from patra.cli.bus import group
from patra.kernel.clock import SECOND
from patra.kernel.errors import ConfigInvalid
from tests.contract.bus.site import Site
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

ONE = catalogue(event_type())
BOTH = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))
SECOND_ONLY = catalogue(event_type(versions=[version("1.0", status="retired"), version("2.0", THING_2)]))


@pytest.fixture
def site(database) -> Site:
    """A store on which 2.0 was adopted after 1.0, with a group that reads both and one that reads 2.0 only."""
    Site(database, ONE).db.run(Bus(ONE, Site(database, ONE).clock).adopt)
    made = Site(database, BOTH)
    made.effects_table()
    made.listen("both")
    made.listen("new_only", versions=">=2")
    return made


def publish(site: Site, tenant: str = "tenant") -> str:
    """The payload tells the version: `n` is 1 in the first, `number` is 2 in the second."""
    made = envelope(payload={"key": "k", "n": 1}, tenant_id=tenant)
    site.publish(made, rendition(made, "2.0", {"key": "k", "number": 2}))
    site.pump()
    return made.event_id


def versions(site: Site, group: str) -> list[int]:
    return [n for _, _, n in site.effects(group)]


def move(site: Site, to: Stage, **more):
    return site.run(operations.set_stage, "thing.happened", to, by="ann", **more)


def test_a_new_major_begins_as_a_shadow_that_only_its_own_groups_read(site):
    (staged,) = site.db.read(version_stages.find)
    assert (staged.event_type, staged.major, staged.stage) == ("thing.happened", 2, Stage.SHADOW)
    publish(site)
    assert (versions(site, "both"), versions(site, "new_only")) == ([1], [2])


def test_dual_is_for_the_named_tenants_first_and_can_be_taken_back(site):
    move(site, Stage.DUAL, tenants=["acme"])
    publish(site, "acme")
    publish(site, "other")
    assert (versions(site, "both"), versions(site, "new_only")) == ([2, 1], [2, 2])
    move(site, Stage.SHADOW)
    publish(site, "acme")
    assert versions(site, "both") == [2, 1, 1]


@pytest.mark.parametrize("kind", ["single", "long"])
def test_a_process_that_has_no_contract_of_the_new_major_leaves_its_events_to_one_that_has(site, kind):
    move(site, Stage.DUAL, share=100)
    old, new = Site(site.db, ONE, clock=site.clock), Site(site.db, BOTH, clock=site.clock)
    seen = {"old": [], "new": []}

    def handler(name):
        if kind == "long":
            return lambda event, hold: seen[name].append(event.envelope.event_version)
        return lambda tx, event: seen[name].append(event.envelope.event_version)

    for name, one in (("old", old), ("new", new)):
        declare = one.bus.long_consumer if kind == "long" else one.bus.consumer
        declare("thing.happened", group="mixed")(handler(name))  # any version from 1 on, as by default
        one.join()
    publish(site)
    for one in (old, new):
        one.pump("mixed")
        worker = LongWorker(one.db, one.bus, "mixed")
        worker.run_once()
        worker.run_once(20)
        worker.close()
        site.clock.advance(5 * SECOND)
    assert seen == {"old": [], "new": ["2.0"]}


def test_dual_is_for_a_share_of_the_events(site):
    move(site, Stage.DUAL, share=50)
    for _ in range(30):
        publish(site)
    got = versions(site, "both")
    assert (len(got), set(got)) == (30, {1, 2})
    move(site, Stage.DUAL, share=100)
    publish(site)
    assert versions(site, "both")[-1] == 2
    assert versions(site, "new_only") == [2] * 31


def test_stages_go_forward_one_by_one_back_at_will_and_never_back_from_retired(site):
    assert move(site, Stage.RETIRING).code is Reason.STAGE
    assert move(site, Stage.DUAL).code is Reason.STAGE  # for whom?
    move(site, Stage.DUAL, tenants=["acme"])
    assert move(site, Stage.RETIRING).stage is Stage.RETIRING
    publish(site)
    assert versions(site, "both") == [2]
    assert move(site, Stage.RETIRED).code is Reason.STAGE
    assert site.run(operations.set_stage, "no.such", Stage.DUAL, by="ann").code is Reason.STAGE
    assert [a.act for a in site.db.read(lambda tx: groups.acts(tx, subject="thing.happened"))] == ["stage", "stage"]
    last = Bus(SECOND_ONLY, site.clock)
    site.db.run(last.adopt)
    assert [one.stage for one in site.db.read(version_stages.find)] == [Stage.RETIRED]
    assert move(site, Stage.SHADOW).code is Reason.STAGE


def test_a_version_is_not_retired_while_the_next_is_a_shadow_for_somebody(site):
    with pytest.raises(ConfigInvalid, match="retiring`"):
        site.db.run(Bus(SECOND_ONLY, site.clock).adopt)


def test_a_publisher_with_a_translation_publishes_both_versions(site):
    site.bus.translations.add("thing.happened", 1, 2, lambda payload: {"key": payload["key"], "number": 7})
    made = envelope()
    assert site.publish(made) == [Published(event_id=made.event_id)]
    site.pump()
    assert (len(versions(site, "both")), versions(site, "new_only")) == (1, [7])
    assert site.publish(made) == [Published(event_id=made.event_id, duplicate=True)]
    site.bus.translations.add("thing.happened", 1, 2, lambda payload: {"wrong": True})
    (refused,) = site.publish(envelope())
    assert refused.code is Reason.DUAL_MISSING


def test_events_of_other_senders_get_the_version_that_everybody_reads(site, database_url, tmp_path, monkeypatch):
    """In a shadow, and while some tenants only get the new major, an event without a version is one of the old."""
    text = {"type": "thing.happened", "title": "A thing", "description": "It happened.", "producer": "Maker"}
    both = [version("1.0", status="retiring"), version("2.0", THING_2)]
    (tmp_path / "thing.yaml").write_text(json.dumps(text | {"versions": both}))
    monkeypatch.setenv("PATRA_STORE_URL", database_url)
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", str(tmp_path))
    bare = {"specversion": "1.0", "id": "7", "source": "https://shop.example", "type": "thing.happened"}
    sent = json.dumps({**bare, "tenantid": "acme", "data": {"key": "k"}})

    def told():
        done = CliRunner().invoke(group, ["publish", "-", "--json"], input=sent)
        (row,) = json.loads(done.output)
        return row["result"], row["detail"]

    missing = ("b_dual_publish_missing", "/event_version: 2.x of thing.happened is still in use: publish it along")
    assert told() == missing
    move(site, Stage.DUAL, tenants=["acme"])
    assert told() == missing
    move(site, Stage.RETIRING)
    assert told()[0] == "b_payload_invalid"  # of 2.0, which has to have a number


def test_an_operator_sees_and_moves_stages(site, database_url, monkeypatch):
    monkeypatch.setenv("PATRA_STORE_URL", database_url)

    def run(*words, expect=0):
        done = CliRunner().invoke(group, ["stage", *words])
        assert done.exit_code == expect, done.output
        return done.output

    assert "shadow" in run()
    assert "dual" in run("thing.happened", "dual", "--tenant", "acme", "--share", "5")
    (row,) = json.loads(run("thing.happened", "--json"))
    assert (row["major"], row["stage"], row["tenants"], row["share"]) == (2, "dual", "acme", 5)
    assert "b_stage_not_allowed" in run("thing.happened", "retired", expect=5)
    run("thing.happened", "nowhere", expect=2)
    run("--share", "5", expect=2)
