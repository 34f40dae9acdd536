"""`patra bus …` as people use it, on a real store."""

import contextlib
import itertools
import json
import os
import select
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner

from patra import Bus, Poison
from patra.app.access.audit import list_acts
from patra.app.components.bus import bus_of
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.bus.catalogue.catalogue import parse
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.publishing.cloudevents import structure_event
from patra.bus.publishing.envelope import encode
from patra.bus.store import events
from patra.bus.tail import Tail
from patra.cli.bus import group, shell_command
from patra.cli.bus.timeline_lines import detail_words
from patra.cli.installation.doctor import command as doctor
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db.queries import statement
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
    assert "published" in run("publish", "-", stdin=msgspec.json.encode([structure_event(four)]))
    assert "b_producer_not_authoritative" in run(
        "publish", "-", stdin=encode(msgspec.structs.replace(one, producer="Nobody")), expect=5
    )
    assert "b_envelope_malformed" in run("publish", "-", stdin=b"nothing", expect=5)
    assert "b_envelope_malformed" in run("publish", "-", stdin=b'{"event_id": "\xff"}', expect=5)
    assert "b_envelope_missing" in run(
        "publish", "-", stdin=encode(four).replace(b'"tenant_id":"t"', b'"tenant_id":""'), expect=5
    )
    assert "b_envelope_missing" in run("timeline", four.event_id)  # A4: a row, found by its key


def test_b7_publish_records_the_account_or_is_bound_as_the_named_publisher(patra, monkeypatch):
    bound = {"gate": {"producers": ["Gateway"], "tenants": ["t"]}, "plan": {"producers": ["Planner"], "tenants": ["*"]}}
    monkeypatch.setenv("PATRA_BUS_PUBLISHERS", json.dumps(bound))
    run("publish", "-", stdin=encode(envelope(patra, "a")))
    run("publish", "-", "--as", "gate", stdin=encode(envelope(patra, "b")))
    assert "b_forward_unmarked" in run("publish", "-", "--as", "plan", stdin=encode(envelope(patra, "c")), expect=5)
    run("publish", "-", "--as", "nobody", stdin=encode(envelope(patra, "d")), expect=2)
    by = [one.published_by for one in patra.db.read(lambda tx: events.after(tx, 0, limit=9))]
    assert [name.partition(":")[0] for name in by] == ["cli", "gate"]


@pytest.mark.parametrize("name", ["task.submitted", "job.failed", "ingest.record.changed"])
def test_a_sample_of_each_type_can_be_published_as_it_is(patra, name):
    assert "published" in run("publish", "-", stdin=run("publish", "--sample", name))
    assert "--sample" in run("publish", "--sample", "no.such_type", expect=2)
    assert "FILE" in run("publish", expect=2)


def test_a_sample_of_a_type_with_two_majors_in_use_is_one_event_in_both(patra, tmp_path, monkeypatch):
    (tmp_path / "thing.happened.yaml").write_text(
        """{type: thing.happened, title: T, description: D, producer: Maker, versions: [
        {version: "1.0", status: retiring, examples: [{}], schema: {type: object, additionalProperties: false}},
        {version: "2.0", status: current, examples: [{}], schema: {type: object, additionalProperties: true}}]}"""
    )
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", json.dumps([str(tmp_path)]))
    rows = json.loads(run("publish", "-", "--json", stdin=run("publish", "--sample", "thing.happened")))
    assert {row["result"] for row in rows} == {"published"}
    assert len({row["event_id"] for row in rows}) == 1


def test_consume_runs_a_command_for_each_event_and_keeps_its_place(patra, tmp_path):
    out, script = tmp_path / "out.jsonl", tmp_path / "handle.sh"
    script.write_text(f'cat >> {out}; echo >> {out}; test "$PATRA_EVENT_TYPE" = task.submitted\n')
    command = ["consume", "task.submitted", "--group", "shell", "--once", "--", "sh", str(script)]
    assert "0 handled" in run(*command)
    made = [envelope(patra, key) for key in "ab"]
    for one in made:
        run("publish", "-", stdin=encode(one))
    assert "2 handled, 0 later, 0 dead" in run(*command)
    assert "0 handled" in run(*command)
    assert {json.loads(line)["event_id"] for line in out.read_text().splitlines()} == {one.event_id for one in made}


@pytest.mark.parametrize(("status", "said"), [(1, "0 handled, 1 later, 0 dead"), (65, "0 handled, 0 later, 1 dead")])
def test_a_command_that_fails_is_tried_again_and_one_that_refuses_the_data_is_not(patra, status, said):
    command = [
        "consume",
        "task.submitted",
        "--group",
        "shell",
        "--once",
        "--",
        "sh",
        "-c",
        f"echo no >&2; exit {status}",
    ]
    run(*command)
    run("publish", "-", stdin=encode(envelope(patra)))
    assert said in run(*command)


def test_a_command_that_hangs_is_ended_with_all_it_started_and_its_event_comes_back(patra, tmp_path, monkeypatch):
    script, fifo = tmp_path / "hang.sh", tmp_path / "fifo"
    os.mkfifo(fifo)
    alive = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    script.write_text(f"exec 9> {fifo}; echo hanging >&2; sleep 1000 & echo x >&9; wait\n")
    command = [
        "consume",
        "task.submitted",
        "--group",
        "shell",
        "--once",
        "--timeout",
        "PT0.3S",
        "--",
        "sh",
        str(script),
    ]

    looks = itertools.count()

    def seconds_once_it_hangs():
        return 1000.0 if next(looks) and select.select([alive], [], [], 0)[0] else 0.0

    run(*command[:-2], "true")
    run("publish", "-", stdin=encode(made := envelope(patra)))
    monkeypatch.setattr(shell_command, "time", SimpleNamespace(monotonic=seconds_once_it_hangs))
    monkeypatch.setattr(shell_command, "LISTEN_SECONDS", 60)
    assert "0 handled, 1 later, 0 dead" in run(*command)
    assert os.read(alive, 9) == b"x\n"
    assert select.select([alive], [], [], 60)[0]  # at its end: no process holds the other end open any more
    assert os.read(alive, 9) == b""
    os.close(alive)
    (hop,) = [one for one in json.loads(run("timeline", made.event_id, "--json")) if one["what"] == "waiting"]
    assert "ended after 0.3 s: hanging" in hop["detail"]["error_detail"]


def test_the_commands_of_a_consumer_that_is_ended_are_over_before_their_events_are_given_back(
    patra, tmp_path, monkeypatch
):
    fifo, at_close = tmp_path / "fifo", []
    os.mkfifo(fifo)
    alive = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    script = tmp_path / "slow_to_end.sh"
    script.write_text(f"exec 9> {fifo}; trap '' TERM; echo x >&9; sleep 1000 & wait\n")
    run("consume", "task.submitted", "--group", "shell", "--once", "--", "true")
    run("publish", "-", stdin=encode(envelope(patra)))
    monkeypatch.setattr(shell_command, "GRACE_SECONDS", 0.3)
    close = LongWorker.close

    def closed(worker):
        assert select.select([alive], [], [], 60)[0]  # at its end: no process holds the other end open
        at_close.append((worker.in_hand, os.read(alive, 9)))
        close(worker)

    monkeypatch.setattr(LongWorker, "close", closed)

    def end():
        assert select.select([alive], [], [], 60)[0]
        assert os.read(alive, 9) == b"x\n"
        os.kill(os.getpid(), signal.SIGTERM)

    ender = threading.Thread(target=end)
    ender.start()
    assert "0 handled, 0 later, 0 dead" in run("consume", "task.submitted", "--group", "shell", "--", "sh", str(script))
    ender.join(60)
    os.close(alive)
    assert at_close == [(1, b"")]
    monkeypatch.setattr(LongWorker, "close", close)
    assert "1 handled" in run("consume", "task.submitted", "--group", "shell", "--once", "--", "true")


def test_a_signal_at_the_moment_a_command_begins_gives_its_event_back(patra, monkeypatch):
    run("consume", "task.submitted", "--group", "shell", "--once", "--", "true")
    run("publish", "-", stdin=encode(envelope(patra)))
    submit = ThreadPoolExecutor.submit

    def signalled(*args):
        begun = submit(*args)
        os.kill(os.getpid(), signal.SIGTERM)
        return begun

    with monkeypatch.context() as patched:
        patched.setattr(ThreadPoolExecutor, "submit", signalled)
        run("consume", "task.submitted", "--group", "shell", "--", "sleep", "1000")
    assert "1 handled" in run("consume", "task.submitted", "--group", "shell", "--once", "--", "true")


def test_a_command_that_is_not_there_costs_no_event_its_retries(patra):
    refused = run("consume", "task.submitted", "--group", "shell", "--once", "--", "no-such-command", expect=2)
    assert "no-such-command" in refused
    assert "--timeout" in run("consume", "task.submitted", "--group", "g", "--timeout", "soon", "--", "true", expect=2)


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


def test_on_a_narrow_terminal_an_event_of_the_tail_is_two_lines_with_its_id_whole(patra, capsys, monkeypatch):
    bus, made = bus_of(patra).bus, envelope(patra)
    patra.db.run(lambda tx: bus.publish_many(tx, [made]))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for columns, lines in (("80", 2), ("400", 1)):
        monkeypatch.setenv("COLUMNS", columns)
        with contextlib.suppress(SystemExit):
            group.main(["tail", "--no-follow"])
        shown = capsys.readouterr().out.splitlines()
        assert len(shown) == lines
        assert made.event_id in shown[-1].split()
        assert all(len(line) <= int(columns) for line in shown), "no value breaks in its midst"


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
        assert go.wait(60.0)

    thread = threading.Thread(target=lambda: other.run(slowly))
    thread.start()
    assert written.wait(60.0)
    database.run(lambda tx: bus.publish(tx, late))
    tail = Tail(database)
    shown = [one.body for one in tail.begin(10)]
    go.set()
    thread.join(60.0)
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
    assert "no group nobody; `patra bus groups` lists" in run("groups", "pause", "nobody", expect=5)
    assert "gets no more" in run("groups", "unsubscribe", "orchestrator", "task.submitted")
    assert "b_replay_unconfirmed" in run("groups", "forget", "orchestrator", "--confirm", "no", expect=5)
    assert "is removed" in run("groups", "forget", "orchestrator", stdin="orchestrator\n")


def test_groups_warn_of_absent_consumers_only_for_types_that_are_used_here(patra):
    assert "has never subscribed" not in run("groups")  # the studio's types are built in and nobody here uses them
    bus_of(patra).bus.consumer("job.failed", group="orchestrator")(lambda tx, event: None)
    patra.db.run(bus_of(patra).bus.join)
    assert "composer has never subscribed; the catalogue lists it for job.failed\n" in run("groups")


def test_dead_letters_are_listed_inspected_replayed_and_discarded(patra):
    one, two = bury(patra, "a"), bury(patra, "b")
    assert run("dead-letters").count("b_handler_failed") == 2
    assert {x["at"].rpartition(":")[0] for x in json.loads(run("dead-letters", "--json"))} == {"test_cli.py"}
    assert run("dead-letters", "--error-code", "nothing").startswith("nothing found in ")
    whole = json.loads(run("dead-letters", one.event_id))
    assert whole["envelope"]["payload"] == one.payload
    assert whole["violations"] == []
    run("dead-letters", "nothing", expect=1)
    assert "b_replay_unconfirmed" in run("replay", "orchestrator", one.event_id, stdin="yes\n", expect=5)
    assert "1 dead letter given to orchestrator again" in run(
        "replay", "orchestrator", one.event_id, stdin="orchestrator\n"
    )
    everything = ("--all", "--limit", "1", "--confirm", "orchestrator", "--by", "ann")
    told = run("replay", "orchestrator", *everything)
    assert (
        "1 dead letter given to orchestrator again, and to no other group; handled while a consumer of the group runs"
        in told
    )
    assert "there may be more" in told
    assert run("replay", "orchestrator", *everything) == "0 dead letters given to orchestrator again\n"
    assert "0 dead letters given to orchestrator again" in run(
        "replay", "orchestrator", two.event_id, "--confirm", "orchestrator", expect=5
    )
    run("replay", "orchestrator", expect=2)
    three = bury(patra, "c")
    assert "1 dead letter discarded" in run("discard", "orchestrator", three.event_id, "--reason", "test data")
    assert "discarded" in run("dead-letters", "--state", "discarded")
    assert json.loads(run("dead-letters", two.event_id))["replayed_at"].endswith("Z")  # A1
    assert json.loads(run("dead-letters", three.event_id))["closed_at"].endswith("Z")
    assert "replay" in run("timeline", two.event_id)


def test_what_is_still_retried_is_said_where_a_dead_letter_is_looked_for(patra):
    bus = bus_of(patra).bus

    @bus.consumer("task.submitted", group="orchestrator")
    def _(tx, event):
        raise ValueError("no luck")

    patra.db.run(bus.join)
    made = envelope(patra)
    patra.db.run(lambda tx: bus.publish(tx, made))
    assert "still retried" not in run("dead-letters")
    Dispatcher(patra.db, bus, "orchestrator").run_once()
    assert "next attempt when a consumer runs, a dead letter about 2" in run("dead-letters")  # it was due in 2023
    due = 4_102_444_800 * SECOND  # and now in 2100
    patra.db.run(lambda tx: tx.execute(statement("test", "UPDATE bus_delivery SET due_at = :due"), {"due": due}))
    after = [format_instant(due + rest) for rest in (0, 30 * SECOND)]
    line = (
        f"  orchestrator {made.event_id} task.submitted: attempt 1 of 6 failed (ValueError: no luck); "
        f"next attempt {after[0]}, a dead letter about {after[1]} if all fail\n"
    )
    for args in (["dead-letters"], ["replay", "orchestrator", "--all", "--confirm", "orchestrator"]):
        told = CliRunner().invoke(group, args)
        assert told.exit_code == 0
        assert "not yet dead letters; an attempt needs a running consumer of the group:\n" + line in told.stderr
    assert "still retried" not in run("dead-letters", "--state", "all")
    assert "still retried" not in run("dead-letters", "--group", "composer")


def test_an_endpoint_that_fails_is_not_said_to_make_a_dead_letter_by_the_retries_of_the_type(patra):
    run("webhooks", "add", "shop", "https://shop.example/hook", "task.submitted")
    patra.db.run(lambda tx: bus_of(patra).bus.publish(tx, envelope(patra)))
    failed = "UPDATE bus_delivery SET attempts = 2, error_code = 'b_webhook_unreachable', error_detail = 'down'"
    patra.db.run(lambda tx: tx.execute(statement("test", failed)))
    told = CliRunner().invoke(group, ["dead-letters"]).stderr
    assert "task.submitted: failed 2 times (down); next attempt when a consumer runs\n" in told


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
    acts = [(act.act, act.detail) for act in patra.db.read(lambda tx: list_acts(tx, limit=10))]
    assert acts == [
        ("bus.discard", {"event_ids": [made.event_id], "reason": "over"}),
        ("bus.replay", {"type": "task.submitted"}),
    ]


def test_the_audit_says_of_every_act_what_it_was_about(patra):
    bury(patra)
    run("replay", "orchestrator", "--all", "--confirm", "orchestrator")
    run("freeze", "task.submitted", "--reason", "broken")
    run("webhooks", "add", "shop", "https://shop.example/?token=s3cret", "job.failed@>=1,<2")
    assert "token=***" in run("webhooks")
    run("groups", "unsubscribe", "webhook.shop", "job.failed")
    acts = {act.act: act.detail for act in patra.db.read(lambda tx: list_acts(tx, limit=10))}
    assert acts == {
        "bus.replay": {"all": True},
        "bus.freeze": {"reason": "broken"},
        "bus.webhook.add": {"types": {"job.failed": ">=1,<2"}},
        "bus.unsubscribe": {"type": "job.failed"},
    }


def test_types_are_frozen_and_thawed(patra):
    assert "frozen_by_hand" in run("freeze", "task.submitted", "--reason", "broken", "--by", "ann")
    assert "b_type_frozen" in run("publish", "-", stdin=encode(envelope(patra)), expect=5)
    assert "task.submitted can be published again" in run("thaw", "task.submitted")
    assert "task.submitted was not frozen; it can be published" in run("thaw", "task.submitted")
    assert run("freeze").startswith("nothing found in ")
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
    unreleased = run("catalogue", "check", *folder)
    assert "nothing was released" in unreleased
    assert "the catalogue is valid; there is no release to compare it with" in unreleased
    assert ": 1 event type, " in run("catalogue", "release", *folder)
    assert "is compatible with" in run("catalogue", "check", *folder)
    write(version("1.0", THING_2))
    told = run("catalogue", "check", *folder, expect=1)
    assert "b_evolution_needs_major" in told
    assert "`status: retiring`" in told, "what to do instead is said once"
    assert told.count("Undo these changes") == 1
    run("catalogue", "release", *folder, expect=1)
    write(version("1.0", THING, "retiring"), version("2.0", THING_2))
    assert "is compatible with" in run("catalogue", "check", *folder)
    assert "only the built-in types were checked" in run("catalogue", "check")
    assert "is compatible with" in run("catalogue", "check", "--store")
    configured = tmp_path / "configured.toml"
    configured.write_text(f"[bus]\ncatalogue = ['{tmp_path / 'contracts'}']\n")
    (released := tmp_path / "contracts" / "released.json").rename(tmp_path / "kept.json")
    assert "the catalogue is valid; there is no release" in run("catalogue", "check", "--config", str(configured))
    (tmp_path / "kept.json").rename(released)
    assert "is compatible with" in run("catalogue", "check", "--config", str(configured))
    write(version("1.0", THING_2))
    assert "b_evolution_needs_major" in run("catalogue", "check", "--config", str(configured), expect=1)
    out = tmp_path / "docs"
    assert "21 event types" in run("catalogue", "docs", "--out", str(out))
    assert json.loads((out / "asyncapi.json").read_text())["asyncapi"] == "3.0.0"
    assert "`job.failed`" in (out / "job.failed.md").read_text()
    assert "task.submitted" in run("catalogue")


def test_the_catalogue_lists_what_a_program_declared_on_the_store(patra, tmp_path):
    class OrderPlaced(msgspec.Struct):
        order_id: str

    with contextlib.closing(Bus.open(f"sqlite:///{tmp_path / 'patra.db'}")) as program:
        program.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1"))
        program.publish("order.placed", OrderPlaced("o-1"), tenant="acme", key="o-1")
    listed = {one["type"]: one for one in json.loads(run("catalogue", "--json"))}
    assert "task.submitted" in listed
    assert (listed["order.placed"]["producer"], listed["order.placed"]["versions"]) == ("Shop", "1.0 current")


def test_a_dead_letter_of_a_contract_in_code_is_compared_with_that_contract(patra, tmp_path, monkeypatch):
    class OrderPlaced(msgspec.Struct):
        order_id: str
        cents: int

    def invoice(_tx, event):
        if event.payload["cents"] == 0:
            raise Poison("free_order", "no invoice over nothing")

    with contextlib.closing(Bus.open(f"sqlite:///{tmp_path / 'patra.db'}")) as program:
        program.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1", 5))
        program.consume("order.placed", group="invoices")(invoice)
        for cents in (5, 0):
            failed = program.publish("order.placed", OrderPlaced("o-1", cents), tenant="acme", key=f"o-{cents}")
        program.run_until_idle(raise_failures=False)
    assert json.loads(run("dead-letters", failed))["violations"] == [], "this process has no file of that contract"

    refused = run("webhooks", "add", "shop", "https://shop.example/", "order.placed", expect=5)
    assert "the contract of order.placed is in a program" in refused, "the catalogue lists it: it is not unknown"
    assert "patra bus new order.placed" in refused

    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    said = run("dead-letters", failed)
    assert "the payload of the dead letter keeps its contract" in said
    assert '{"order_id":"o-1","cents":5}' in said, "what was handled stands beside it"
    assert "\n  File " in said, "the traceback has lines"
    assert f"next: patra bus replay invoices {failed} --confirm invoices" in said


def test_on_a_terminal_the_timeline_has_lines_and_the_catalogue_ones_own_types(tmp_path, monkeypatch):
    monkeypatch.setenv("PATRA_STORE_URL", url := f"sqlite:///{tmp_path / 'patra.db'}")
    monkeypatch.chdir(tmp_path)

    class OrderPlaced(msgspec.Struct):
        order_id: str

    def invoice(tx, event):
        raise Poison("free_order", "there is no invoice over nothing")

    with contextlib.closing(Bus.open(url)) as program:
        program.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1"))
        program.consume("order.placed", group="invoices")(invoice)
        first, second = (
            program.publish("order.placed", OrderPlaced(f"o-{n}"), tenant="acme", key=f"o-{n}", correlation="both")
            for n in (1, 2)
        )
        program.run_until_idle(raise_failures=False)
    whole = run("catalogue")
    assert ("order.placed" in whole, "task.submitted" in whole) == (True, True)
    piped = run("timeline", first)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    own = run("catalogue")
    assert ("order.placed" in own, "task.submitted" in own) == (True, False)
    assert "types that come with Patra: --wide lists them" in own
    assert "task.submitted" in run("catalogue", "--wide")
    told = " ".join(run("timeline", first).split())
    assert told.startswith(f"event {first} when ")
    assert "published order.placed 1.0, producer Shop" in told
    assert "attempt failed group invoices, attempt 1, free_order: there is no invoice over nothing" in told
    assert '{"' not in told
    assert '{"' in piped
    assert '"letter_id"' in run("timeline", first, "--json")
    both = run("timeline", "both")
    assert f"event 1: {first}" in both
    assert f"event 2: {second}" in both


def test_on_a_terminal_the_timeline_of_a_refusal_says_the_place_and_the_fault() -> None:
    refusal = {"producer": "Shop", "event_type": "order.placed", "code": "b_payload_invalid", "place": "/payload/cents"}
    refusal |= {"detail": "the value is no integer", "count": 2, "event_id": "e-1", "tenant_id": "acme"}
    assert detail_words("refused", refusal) == (
        "producer Shop, order.placed, b_payload_invalid: /payload/cents: the value is no integer, count 2"
    )


def test_a_catalogue_without_types_of_ones_own_is_that_of_patra(patra, monkeypatch):
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    said = run("catalogue")
    assert "task.submitted" in said
    assert "--wide lists them" not in said


def test_the_catalogue_of_the_files_is_listed_also_without_a_store(patra, tmp_path, monkeypatch):
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    assert "task.submitted" in run("catalogue")
    assert not (tmp_path / "none.db").exists()


def test_release_writes_beside_the_contracts_of_the_settings_and_never_into_the_package(patra, tmp_path, monkeypatch):
    from importlib.resources import files

    import yaml

    from tests.unit.bus.making import THING, THING_2, version

    own = Path(str(files("patra.bus") / "contracts" / "released.json"))
    before = own.read_bytes(), own.stat().st_mtime_ns
    assert "bus.catalogue" in run("catalogue", "release", expect=2)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()

    def write(folder, name, schema):
        text = {"type": name, "title": "A", "description": "B", "producer": "C", "versions": [version("1.0", schema)]}
        (folder / "thing.yaml").write_text(yaml.safe_dump(text))

    write(folders[0], "one.happened", THING)
    write(folders[1], "two.happened", THING)
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", ",".join(map(str, folders)))
    run("catalogue", "release")
    released = [json.loads((folder / "released.json").read_bytes())["types"].keys() for folder in folders]
    assert released == [{"one.happened"}, {"two.happened"}]
    write(folders[0], "one.happened", THING_2)
    write(folders[1], "three.happened", THING)
    assert "b_evolution_needs_major" in run("catalogue", "release", expect=1)
    assert json.loads((folders[1] / "released.json").read_bytes())["types"].keys() == {"two.happened"}
    assert (own.read_bytes(), own.stat().st_mtime_ns) == before


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
    text = run("webhooks", "add", "shop", "https://shop.example/", "artifact.published@>=1,<2", "job.failed")
    assert "whsec_" in text
    assert "webhook.shop" in run("webhooks")
    assert "b_webhook_exists" in run("webhooks", "add", "shop", "https://shop.example/", "job.failed", expect=5)
    assert "b_webhook_name_invalid" in run(
        "webhooks", "add", "My Shop", "https://shop.example/", "job.failed", expect=5
    )
    assert "nothing more is sent to shop" in run("webhooks", "remove", "shop")
    assert "b_group_unknown: there is no webhook shop" in run("webhooks", "remove", "shop", expect=5)


def test_a_webhooks_secret_is_rotated_and_its_tenants_are_shown(patra):
    run("webhooks", "add", "shop", "https://shop.example/", "job.failed", "--tenant", "acme")
    assert "whsec_" in run("webhooks", "rotate", "shop", "--overlap", "PT1H")
    (shown,) = json.loads(run("webhooks", "--json"))
    assert (shown["tenants"], shown["suspended"]) == ("acme", "")
    assert "b_group_unknown" in run("webhooks", "rotate", "nobody", expect=5)
    for act in ("rotate", "remove"):
        assert "there is no webhook shp (did you mean shop?)" in run("webhooks", act, "shp", expect=5)
    assert "--overlap" in run("webhooks", "rotate", "shop", "--overlap", "soon", expect=2)


@pytest.mark.parametrize(
    ("types", "expect", "said"),
    [
        (["job.failed@wrong"], 2, "'wrong' is not a range such as >=1,<2"),
        (["job.failed@>=1,<2", "job.failed@>=3"], 2, "each TYPE stands once"),
        (["job.failed@>=9"], 5, "b_type_unknown: there is no event type job.failed in these versions"),
        (["job.burned"], 5, "b_type_unknown: there is no event type job.burned in these versions"),
        (["job.fialed"], 5, "(did you mean job.failed?)"),
    ],
)
def test_a_wrong_range_is_a_wrong_command_line_and_one_that_takes_nothing_is_refused(patra, types, expect, said):
    assert said in run("webhooks", "add", "shop", "https://shop.example/", *types, expect=expect)
    assert run("webhooks", "--json").strip() == "[]"


def test_letters_are_counted_by_cause_and_dealt_with_by_a_query(patra):
    for n in range(3):
        bury(patra, f"k{n}")
    (cause,) = json.loads(run("dead-letters", "--by-error", "--json"))
    assert (cause["letters"], cause["error"]) == (3, "ValueError: no luck")
    run("discard-all", "orchestrator", "--reason", "test", "--confirm", "orchestrator")
    assert "discard" in run("acts")
    assert json.loads(run("dead-letters", "--json")) == []
    run("replay-all", expect=2)


def test_a_contract_is_drafted_from_an_example_and_can_be_published_at_a_time(patra, tmp_path, monkeypatch):
    example = tmp_path / "order.json"
    example.write_text('{"order_id": "o1", "cents": 500, "lines": [{"article": "book"}], "paid": true, "rate": 0.5}')
    drafted = run("new", "order.placed", "--producer", "Shop", "--example", str(example))
    (kind,) = [parse(drafted, "order.placed.yaml")]
    assert kind.contracts[1].violations({"order_id": "o2", "cents": 1, "lines": [], "paid": False, "rate": 1.5}) == []
    assert kind.contracts[1].violations({"order_id": 7})
    folder = str(tmp_path / "contracts")
    run("new", "order.placed", "--producer", "Shop", "--folder", folder)
    assert "there already" in run("new", "order.placed", "--producer", "Shop", "--folder", folder, expect=1)
    run("new", "order.placed", "--producer", "Shop", "--example", "-", stdin="[]", expect=2)
    monkeypatch.setenv("PATRA_BUS_CATALOGUE", folder)
    sample = run("publish", "--sample", "order.placed")
    assert "published" in run("publish", "-", "--deliver-at", "2999-01-31T08:00:00Z", stdin=sample)
    run("publish", "-", "--deliver-at", "tomorrow", stdin=sample, expect=2)
    (stored,) = patra.db.read(lambda tx: events.after(tx, 0, limit=5))
    assert json.loads(stored.body)["extensions"] == {"deliverat": "2999-01-31T08:00:00Z"}
    bad = json.dumps({**json.loads(sample), "extensions": {"deliverat": "tomorrow"}})
    assert "/extensions/deliverat" in run("publish", "-", stdin=bad, expect=5)
