"""`patra bus …` as people use it, on a real store."""

import json
import threading

import msgspec
import pytest
from click.testing import CliRunner

from patra.app.audit import audited
from patra.app.bus import bus_of
from patra.app.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.bus.cloudevents import structured
from patra.bus.dispatcher import Dispatcher
from patra.bus.envelope import encode
from patra.bus.tailing import Tail
from patra.cli.bus import group
from patra.cli.doctor import command as doctor
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock


@pytest.fixture
def patra(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'patra.db'}"
    monkeypatch.setenv("PATRA_STORE_URL", url)
    monkeypatch.chdir(tmp_path)
    made = build(Settings(store=StoreSettings(url=url)), ManualClock())
    yield made
    made.close(5)


def run(*args, expect=0, stdin=None):
    result = CliRunner().invoke(group, args, input=stdin)
    assert result.exit_code == expect, (result.output, result.exception)
    return result.output


def envelope(patra, key="k", **more):
    bus = bus_of(patra).bus
    payload = dict(bus.catalogue.types["task.submitted"].contracts[1].examples[0])
    return bus.envelope(
        "task.submitted",
        payload,
        tenant_id="t",
        project_id="p",
        trace_id="trace-1",
        correlation_id="c",
        idempotency_key=key,
        **more,
    )


def bury(patra, key="k"):
    bus = bus_of(patra).bus
    if not bus.consumers:

        @bus.consumer("task.submitted", group="orchestrator")
        def _(tx, event):
            raise ValueError("no luck")

        patra.db.run(bus.join)
    made = envelope(patra, key)
    patra.db.run(lambda tx: bus.publish(tx, made))
    for _ in range(6):
        Dispatcher(patra.db, bus, "orchestrator").run_once()
        patra.clock.advance(3_600_000_000)
    return made


def test_publish_takes_one_a_list_or_lines_and_cloudevents(patra, tmp_path):
    one, two, three, four = (envelope(patra, key) for key in "abcd")
    file = tmp_path / "event.json"
    file.write_bytes(encode(one))
    assert "published" in run("publish", str(file))
    assert "duplicate" in run("publish", str(file))
    lines = encode(two) + b"\n" + encode(three) + b"\n"
    assert run("publish", "-", stdin=lines).count("published") == 2
    assert "published" in run("publish", "-", stdin=msgspec.json.encode([structured(four)]))
    assert "b_producer_not_authoritative" in run(
        "publish", "-", stdin=encode(msgspec.structs.replace(one, producer="Nobody")), expect=5
    )
    assert "b_envelope_malformed" in run("publish", "-", stdin=b"nothing", expect=5)
    assert "b_envelope_malformed" in run("publish", "-", stdin=b'{"event_id": "\xff"}', expect=5)
    assert "b_envelope_missing" in run("publish", "-", stdin=encode(four).replace(b'"trace-1"', b'""'), expect=5)
    assert "b_envelope_missing" in run("timeline", four.event_id)  # A4: a row, found by its key


def test_tail_shows_the_last_and_filters(patra):
    bus = bus_of(patra).bus
    made = [envelope(patra, str(n)) for n in range(12)]
    patra.db.run(lambda tx: bus.publish_many(tx, made))
    text = run("tail", "--no-follow")
    assert text.count("task.submitted") == 10
    assert "task_id=task_01" in text
    assert run("tail", "--no-follow", "--type", "job.failed") == ""
    assert run("tail", "--no-follow", "--trace", "other") == ""
    typo = CliRunner().invoke(group, ["tail", "--no-follow", "--type", "job.faild"])
    assert (typo.exit_code, typo.stdout) == (0, "")
    assert "the catalogue has no job.faild" in typo.stderr
    whole = run("tail", "--no-follow", "--json", "-n", "1", "--tenant", "t")
    assert json.loads(whole)["event_id"] == made[-1].event_id


def test_tail_follows_what_is_published_and_leaves_nothing_out(database, database_url):
    from patra.bus.bus import Bus
    from patra.kernel.db import migrate, open_database
    from tests.contract.bus.conftest import TYPES
    from tests.unit.bus.making import envelope as thing

    migrate(database, ["patra.kernel", "patra.bus"])
    bus = Bus(TYPES, ManualClock())
    database.run(lambda tx: bus.publish(tx, thing()))
    tail = Tail(database)
    assert len(tail.begin(10)) == 1
    later = thing()
    other = open_database(database_url)
    thread = threading.Thread(target=lambda: other.run(lambda tx: bus.publish(tx, later)))
    thread.start()
    found = []
    while not found:
        found = tail.more(20.0)
    thread.join()
    assert later.event_id in found[0].body
    assert tail.more(0.0) == []
    tail.close()
    other.close()


def test_tail_shows_an_event_that_was_on_its_way_when_it_began(postgres_url):
    from patra.bus.bus import Bus
    from patra.kernel.db import migrate, open_database
    from tests.contract.bus.conftest import TYPES
    from tests.unit.bus.making import envelope as thing

    database, other = open_database(postgres_url), open_database(postgres_url)
    migrate(database, ["patra.kernel", "patra.bus"])
    bus = Bus(TYPES, ManualClock())
    early, late = thing(), thing()
    written, go = threading.Event(), threading.Event()

    def slowly(tx):
        bus.publish(tx, early)
        written.set()
        assert go.wait(20.0)

    thread = threading.Thread(target=lambda: other.run(slowly))
    thread.start()
    assert written.wait(20.0)
    database.run(lambda tx: bus.publish(tx, late))
    tail = Tail(database)
    shown = [one.body for one in tail.begin(10)]
    go.set()
    thread.join(20.0)
    shown += [one.body for one in tail.more(0.0)]
    assert [late.event_id in shown[0], early.event_id in shown[1]] == [True, True]
    tail.close()
    database.close()
    other.close()


def test_groups_tell_how_they_fare_and_pause(patra):
    bury(patra)
    text = run("groups")
    assert "orchestrator\tactive\t0" in text
    assert "paused" in run("groups", "pause", "orchestrator", "--by", "ann")
    assert "already" in run("groups", "pause", "orchestrator")
    assert "active" in run("groups", "resume", "orchestrator")
    assert "b_group_unknown" in run("groups", "pause", "nobody", expect=5)
    assert "done" in run("groups", "unsubscribe", "orchestrator", "task.submitted")
    assert "b_replay_unconfirmed" in run("groups", "forget", "orchestrator", "--confirm", "no", expect=5)
    assert "forgotten" in run("groups", "forget", "orchestrator", stdin="orchestrator\n")


def test_dead_letters_are_listed_inspected_replayed_and_discarded(patra):
    one, two = bury(patra, "a"), bury(patra, "b")
    assert run("dead-letters").count("b_handler_failed") == 2
    assert run("dead-letters", "--error-code", "nothing").strip() == "nothing"
    whole = json.loads(run("dead-letters", one.event_id))
    assert whole["envelope"]["payload"] == one.payload
    assert whole["violations"] == []
    run("dead-letters", "nothing", expect=1)
    assert "b_replay_unconfirmed" in run("replay", "orchestrator", one.event_id, stdin="yes\n", expect=5)
    assert "1 replayed" in run("replay", "orchestrator", one.event_id, stdin="orchestrator\n")
    everything = ("--all", "--limit", "1", "--confirm", "orchestrator", "--by", "ann")
    told = run("replay", "orchestrator", *everything)
    assert "1 replayed to orchestrator only, past its inbox" in told
    assert "there may be more" in told
    assert run("replay", "orchestrator", *everything) == "0 replayed to orchestrator only, past its inbox\n"
    assert "0 replayed" in run("replay", "orchestrator", two.event_id, "--confirm", "orchestrator", expect=5)
    run("replay", "orchestrator", expect=2)
    three = bury(patra, "c")
    assert "1 discarded" in run("discard", "orchestrator", three.event_id, "--reason", "test data")
    assert "discarded" in run("dead-letters", "--state", "discarded")
    assert json.loads(run("dead-letters", two.event_id))["replayed_at"].endswith("Z")  # A1
    assert json.loads(run("dead-letters", three.event_id))["closed_at"].endswith("Z")
    assert "replay" in run("timeline", two.event_id)


def test_where_nobody_can_be_asked_the_command_says_how_to_confirm_and_the_question_is_no_output(patra):
    made = bury(patra)
    for args in (["replay", "orchestrator", made.event_id], ["groups", "forget", "orchestrator"]):
        asked = CliRunner().invoke(group, args, input="")
        assert (asked.exit_code, asked.stdout) == (2, "")
        assert "--confirm" in asked.stderr
    wrong = CliRunner().invoke(group, ["replay", "orchestrator", made.event_id], input="composer\n")
    assert (wrong.exit_code, wrong.stdout) == (5, "")


def test_a_replay_goes_by_ids_or_by_a_query_and_the_audit_says_which(patra):
    made = bury(patra)
    ids = ["replay", "orchestrator", made.event_id, "--confirm", "orchestrator"]
    run(*ids, "--all", expect=2)
    run(*ids, "--type", "task.submitted", expect=2)
    run("replay", "orchestrator", "--type", "task.submitted", "--confirm", "orchestrator")
    run("discard", "orchestrator", made.event_id, "--reason", "over", expect=5)
    acts = [(act.act, act.detail) for act in patra.db.read(lambda tx: audited(tx, limit=10))]
    assert acts == [
        ("bus.discard", {"event_ids": [made.event_id], "reason": "over"}),
        ("bus.replay", {"type": "task.submitted"}),
    ]


def test_the_audit_says_of_every_act_what_it_was_about(patra):
    bury(patra)
    run("replay", "orchestrator", "--all", "--confirm", "orchestrator")
    run("freeze", "task.submitted", "--reason", "broken")
    run("webhooks", "add", "shop", "http://127.0.0.1:1/?token=s3cret", "job.failed@>=1,<2")
    assert "token=***" in run("webhooks")
    run("groups", "unsubscribe", "webhook.shop", "job.failed")
    acts = {act.act: act.detail for act in patra.db.read(lambda tx: audited(tx, limit=10))}
    assert acts == {
        "bus.replay": {"all": True},
        "bus.freeze": {"reason": "broken"},
        "bus.webhook.add": {"types": {"job.failed": ">=1,<2"}},
        "bus.unsubscribe": {"type": "job.failed"},
    }


def test_types_are_frozen_and_thawed(patra):
    assert "frozen_by_hand" in run("freeze", "task.submitted", "--reason", "broken", "--by", "ann")
    assert "b_type_frozen" in run("publish", "-", stdin=encode(envelope(patra)), expect=5)
    assert "can be published" in run("thaw", "task.submitted")
    assert run("freeze").strip() == "nothing"
    assert "b_type_unknown" in run("freeze", "no.such_type", expect=5)


def test_b4_catalogue_check_refuses_a_breaking_change_and_docs_are_written(patra, tmp_path):
    import yaml

    from tests.unit.bus.making import THING, THING_2, version

    def write(*versions):
        text = {"type": "thing.happened", "title": "A", "description": "B", "producer": "C", "versions": list(versions)}
        (tmp_path / "contracts" / "thing.yaml").write_text(yaml.safe_dump(text))

    (tmp_path / "contracts").mkdir()
    folder = ["--folder", str(tmp_path / "contracts")]
    write(version("1.0", THING))
    assert "nothing was released" in run("catalogue", "check", *folder)
    assert "1 event types" in run("catalogue", "release", *folder)
    assert "follows on" in run("catalogue", "check", *folder)
    write(version("1.0", THING_2))
    assert "b_evolution_needs_major" in run("catalogue", "check", *folder, expect=1)
    run("catalogue", "release", *folder, expect=1)
    write(version("1.0", THING, "retiring"), version("2.0", THING_2))
    assert "follows on" in run("catalogue", "check", *folder)
    assert "follows on" in run("catalogue", "check")
    assert "follows on" in run("catalogue", "check", "--store")
    configured = tmp_path / "configured.toml"
    configured.write_text(f"[bus]\ncatalogue = ['{tmp_path / 'contracts'}']\n")
    assert "follows on" in run("catalogue", "check", "--config", str(configured))
    write(version("1.0", THING_2))
    assert "b_evolution_needs_major" in run("catalogue", "check", "--config", str(configured), expect=1)
    out = tmp_path / "docs"
    assert "20 event types" in run("catalogue", "docs", "--out", str(out))
    assert json.loads((out / "asyncapi.json").read_text())["asyncapi"] == "3.0.0"
    assert "`job.failed`" in (out / "job.failed.md").read_text()
    assert "task.submitted" in run("catalogue")


def test_publish_names_the_line_that_is_no_json_and_publishes_nothing(patra, tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(encode(envelope(patra, "a")) + b'\n\n{"event_id":\n' + encode(envelope(patra, "b")))
    assert "line 3: neither JSON nor JSON lines" in run("publish", str(file), expect=5)
    file.write_bytes(b"[" * 100_000)
    assert "b_envelope_malformed" in run("publish", str(file), expect=5)
    assert run("tail", "--no-follow") == ""


def refused(*args):
    result = CliRunner().invoke(group, args)
    assert isinstance(result.exception, ConfigInvalid), (result.output, result.exception)
    return str(result.exception)


def test_a_catalogue_that_cannot_be_read_is_refused_with_its_place(patra, tmp_path, monkeypatch):
    from tests.unit.bus.making import THING, version

    folder = tmp_path / "contracts"
    folder.mkdir()
    text = {"type": "thing.happened", "title": "A", "description": "B", "producer": "C"}
    good = json.dumps(text | {"versions": [version("1.0", THING)]})
    (folder / "thing.yaml").write_bytes(b"title: \xff")
    assert "thing.yaml: b_catalogue_invalid: no UTF-8" in refused("catalogue", "check", "--folder", str(folder))
    (folder / "thing.yaml").write_text("title: A\nversions: [\n")
    assert "thing.yaml:3: b_catalogue_invalid: no YAML" in refused("catalogue", "check", "--folder", str(folder))
    (folder / "thing.yaml").write_text("title: A\ntype: a\ntitle: B\n")
    assert "thing.yaml:3: b_catalogue_invalid: 'title' stands twice" in refused(
        "catalogue", "check", "--folder", str(folder)
    )
    (folder / "thing.yaml").write_text(good)
    (folder / "released.json").write_text('{"types":')
    assert "released.json: b_catalogue_invalid: no released catalogue" in refused(
        "catalogue", "release", "--folder", str(folder)
    )
    run("catalogue", "release", "--folder", str(folder), "--against", str(tmp_path / "nowhere" / "r.json"), expect=1)
    run("catalogue", "docs", "--folder", str(folder), "--out", str(folder / "thing.yaml" / "docs"), expect=1)
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", str(tmp_path / "nowhere"))
    assert "nowhere: b_catalogue_invalid: the folder cannot be read" in refused("catalogue")


def test_b4_nothing_is_published_by_a_contract_that_breaks_the_one_in_force(patra, tmp_path, monkeypatch):
    from tests.unit.bus.making import THING, THING_2, version

    folder, file = tmp_path / "contracts", tmp_path / "event.json"
    folder.mkdir()
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", str(folder))
    text = {"type": "thing.happened", "title": "A", "description": "B", "producer": "C"}

    def contract(schema):
        made = version("1.0", schema)
        (folder / "thing.yaml").write_text(json.dumps(text | {"versions": [made]}))
        wire = json.loads(encode(envelope(patra, f"k{len(schema['properties'])}")))
        wire |= {"event_type": "thing.happened", "producer": "C", "payload": made["examples"][0]}
        file.write_text(json.dumps(wire))

    contract(THING)
    assert "published" in run("publish", str(file))
    contract(THING_2)
    assert "catalogue: b_evolution_needs_major: thing.happened" in refused("publish", str(file))
    assert len(run("tail", "--no-follow").splitlines()) == 1
    (tmp_path / "task.json").write_bytes(encode(envelope(patra, "t")))
    assert "published" in run("publish", str(tmp_path / "task.json"))  # its contract is as it was
    found = json.loads(CliRunner().invoke(doctor, ["--json"]).stdout)
    assert [(c["health"], "b_evolution_needs_major" in c["found"]) for c in found if c["name"] == "bus"] == [
        ("broken", True)
    ]


def test_a_released_file_that_was_named_must_be_there(patra, tmp_path):
    assert "typo.json: b_catalogue_invalid" in refused("catalogue", "check", "--against", str(tmp_path / "typo.json"))


def test_webhooks_are_added_and_removed(patra):
    text = run("webhooks", "add", "shop", "http://127.0.0.1:1/", "artifact.published@>=1,<2", "job.failed")
    assert "whsec_" in text
    assert "webhook.shop" in run("webhooks")
    assert "b_webhook_exists" in run("webhooks", "add", "shop", "http://127.0.0.1:1/", "job.failed", expect=5)
    assert "b_webhook_name_invalid" in run("webhooks", "add", "My Shop", "http://127.0.0.1:1/", "job.failed", expect=5)
    assert "done" in run("webhooks", "remove", "shop")
    assert "b_group_unknown: there is no webhook shop" in run("webhooks", "remove", "shop", expect=5)


@pytest.mark.parametrize(
    ("types", "expect", "said"),
    [
        (["job.failed@wrong"], 2, "'wrong' is no range such as >=1,<2"),
        (["job.failed@>=1,<2", "job.failed@>=3"], 2, "each TYPE stands once"),
        (["job.failed@>=9"], 5, "b_type_unknown: no such type and version"),
        (["job.burned"], 5, "b_type_unknown"),
    ],
)
def test_a_wrong_range_is_a_wrong_command_line_and_one_that_takes_nothing_is_refused(patra, types, expect, said):
    assert said in run("webhooks", "add", "shop", "http://127.0.0.1:1/", *types, expect=expect)
    assert run("webhooks", "--json").strip() == "[]"
