"""An act and its audit row are there together or not at all, on both databases."""

import pytest

from patra.app.access.actor import Actor, Role, command_line_actor
from patra.app.access.audit import audit, list_acts
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx, migrate

ALICE = Actor(name="alice", role=Role.OPERATOR)


@pytest.fixture
def store(database: Database) -> Database:
    migrate(database, ["patra.kernel", "patra.app"])
    return database


def test_an_act_is_kept_with_who_what_when_and_details(store: Database) -> None:
    store.run(lambda tx: audit(tx, ALICE, "letter.replay", "dl-1", {"why": "mended", "n": 2}, 5 * SECOND))
    (entry,) = store.read(lambda tx: list_acts(tx, limit=10))
    assert (entry.actor, entry.role, entry.act, entry.subject) == ("alice", "operator", "letter.replay", "dl-1")
    assert (entry.at, entry.detail) == ("1970-01-01T00:00:05Z", {"why": "mended", "n": 2})


def test_secrets_in_what_people_wrote_are_not_kept(store: Database) -> None:
    said = {"reason": "password=hunter2-planted of ann@example.org", "event_ids": ["e1"], "reference": "env:MY_API_KEY"}
    store.run(lambda tx: audit(tx, ALICE, "bus.freeze", "t", said, 0))
    (entry,) = store.read(lambda tx: list_acts(tx, limit=10))
    assert entry.detail == {**said, "reason": "password=*** of ***"}


def test_an_act_that_is_undone_leaves_no_row(store: Database) -> None:
    def fails(tx: Tx) -> None:
        audit(tx, ALICE, "letter.replay", "dl-1", {}, 0)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.run(fails)
    assert store.read(lambda tx: list_acts(tx, limit=10)) == []


def test_acts_are_paged_newest_first_and_found_by_name_and_subject(store: Database) -> None:
    for number in range(5):
        act, subject = ("even" if number % 2 == 0 else "odd"), f"s{number}"
        store.run(lambda tx, a=act, s=subject, n=number: audit(tx, ALICE, a, s, {}, n))

    def subjects(**kwargs) -> list[str]:
        return [entry.subject for entry in store.read(lambda tx: list_acts(tx, **{"limit": 10, **kwargs}))]

    assert subjects() == ["s4", "s3", "s2", "s1", "s0"]
    assert subjects(act="odd") == ["s3", "s1"]
    assert subjects(subject="s2") == ["s2"]
    first = store.read(lambda tx: list_acts(tx, limit=2))
    assert [entry.subject for entry in first] == ["s4", "s3"]
    assert subjects(limit=2, before=first[-1].id) == ["s2", "s1"]


def test_text_from_outside_is_kept_whatever_it_holds(store: Database) -> None:
    store.run(lambda tx: audit(tx, ALICE, "x", "a\x00b", {"text": "\x00 ' \" 事件 🦊"}, 0))
    (entry,) = store.read(lambda tx: list_acts(tx, limit=1))
    assert entry.subject == "a\ufffdb"
    assert entry.detail["text"].endswith("' \" 事件 🦊")


def test_roles_are_ordered() -> None:
    ordered = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    assert [role.allows(Role.OPERATOR) for role in ordered] == [False, True, True]
    assert [Role.VIEWER.allows(role) for role in ordered] == [True, False, False]


def test_publishing_is_a_role_beside_the_others() -> None:
    assert [role for role in Role if role.allows(Role.PUBLISHER)] == [Role.ADMIN, Role.PUBLISHER]
    assert [role for role in Role if Role.PUBLISHER.allows(role)] == [Role.PUBLISHER]


def test_the_command_line_acts_as_the_account_that_runs_it() -> None:
    actor = command_line_actor()
    assert actor.role is Role.ADMIN
    assert actor.name.startswith("cli:")
