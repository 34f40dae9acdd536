"""Credentials of a pool stand in for each other by priority; one that is refused or missing is set aside."""

from typing import Any

import pytest
import structlog

from patra.ingest.fetching.resilience import Thresholds
from patra.ingest.packs.problems import Severity
from patra.ingest.packs.secret_grants import Grant, problems_of
from patra.ingest.ratelimit.token_bucket import Policy, Sign, Signal, State
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import HOUR
from patra.kernel.db import Database
from patra.kernel.safety.redact import redact
from tests.contract.ingest.running.test_draining import drained
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded
from tests.unit.ingest.packs.effects.stand_in import loaded_tree

SPREAD = crowded(30, T0, T1, crowd=False)


def pooled(w: World, keys: dict[str, tuple[int, str]]) -> dict[str, Any]:
    """A pack whose list wants one of several keys: name, priority, variable."""
    auth = {"type": "API_KEY", "location": "QUERY", "name": "key", "credentialRef": "keys"}
    tree = pack(w.url, "OFFSET", auth=auth, window={"maxWindow": "P2D"}, pagination={"pageSize": 10})
    tree["credentials"] = {
        name: {"type": "API_KEY", "pool": "keys", "priority": priority, "secrets": {"apiKey": f"env:{variable}"}}
        for name, (priority, variable) in keys.items()
    }
    return tree


def asked_keys(w: World, refused: set[str]) -> list[str]:
    """Which keys come; those that are refused are answered with 401."""
    came: list[str] = []
    serve = w.provider._served

    def answer(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        came.append(query.get("key", ""))
        if came[-1] in refused:
            return Reply(status=401, body=b'{"error": "key"}', kind="application/json")
        return serve(method, path, query, body)

    w.provider._served = answer  # type: ignore[method-assign]
    return came


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL_BAD", "bad-key")
    monkeypatch.setenv("POOL_GOOD", "good-key")
    monkeypatch.delenv("POOL_NONE", raising=False)


def test_the_preferred_credential_that_works_is_used(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pooled(w, {"a_good": (2, "POOL_GOOD"), "b_bad": (1, "POOL_BAD"), "c_none": (0, "POOL_NONE")}))
        refused = {"bad-key"}
        came = asked_keys(w, refused)
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert came[0] == "bad-key"
        assert set(came[1:]) == {"good-key"}, "the refused one is asked with once, the missing one not at all"
        first = len(came)
        refused.clear()
        w.clock.advance(2 * HOUR)
        w.trigger(since=T0, until=T1, params={}, sections={"cursor": {"revision": 2}})
        w.drain()
        assert set(came[first:]) == {"bad-key"}, "what was set aside is tried again after its rest"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_run_is_refused_only_where_no_credential_of_the_pool_is_there(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pooled(w, {"a_none": (1, "POOL_NONE"), "b_good": (2, "POOL_GOOD")}))
        with structlog.testing.capture_logs() as lines:
            assert (drained(w).refused, w.landed() == w.provider.truth) == (False, True)
        said = {redact(line)["name"] for line in lines if line["event"] == "credential_set_aside"}
        assert said == {"a_none"}, "the log says which one"
        w.load(pooled(w, {"a_none": (1, "POOL_NONE"), "b_none": (2, "POOL_NONE")}))
        assert drained(w).planned.outcome is Reason.SECRET_ABSENT


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_pool_may_be_loaded_when_one_of_its_secrets_is_allowed(database: Database) -> None:
    with world(database, SPREAD) as w:
        tree = pooled(w, {"a": (1, "POOL_BAD"), "b": (2, "POOL_GOOD")})
        loaded = loaded_tree(tree)
        grant = Grant(source="hostile", reference="env:POOL_GOOD")
        none, one = (
            [(problem.severity, "stand in" in problem.message) for problem in problems_of(loaded, grants)]
            for grants in ([], [grant])
        )
    assert (none, one) == ([(Severity.ERROR, False)] * 2, [(Severity.WARNING, True)])


def test_a_pool_whose_credentials_are_all_refused_halts_the_source(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pooled(w, {"a": (1, "POOL_BAD"), "b": (2, "POOL_GOOD")}))
        came = asked_keys(w, {"bad-key", "good-key"})
        w.trigger()
        w.drain()
        assert came == ["bad-key", "good-key"]
        assert w.rows("SELECT reason_code FROM ing_halt") == [("i_failed_fatal",)]
        assert w.landed() == {}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_permits_are_booked_on_the_credential_that_asked(database: Database) -> None:
    """Each credential of a pool has a quota of its own where limits hold per credential (4.10.2, 4.10.5)."""
    with world(database, SPREAD) as w:
        tree = pooled(w, {"a_bad": (1, "POOL_BAD"), "b_good": (2, "POOL_GOOD")})
        tree["defaults"]["rateLimit"] |= {"perCredential": True, "quotaDaily": 1000}
        w.load(tree)
        came = asked_keys(w, {"bad-key"})
        w.trigger()
        w.drain()
        assert (came.count("bad-key"), came.count("good-key")) == (1, 4)
        rows = w.rows("SELECT rate_key, consumed FROM ing_quota WHERE period_code = 'DAY'")
        assert dict(rows) == {"hostile|search": 5, "hostile|search|a_bad": 1, "hostile|search|b_good": 4}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_credential_that_asked_is_the_one_that_is_slowed_down(database: Database) -> None:
    """What the healing matrix says of a page is for the bucket that the page was asked under (12.2)."""
    with world(database, SPREAD) as w:
        tree = pooled(w, {"a_bad": (1, "POOL_BAD"), "b_good": (2, "POOL_GOOD")})
        tree["defaults"]["rateLimit"] |= {"perCredential": True, "quotaDaily": 1000}
        w.load(tree)
        asked_keys(w, {"bad-key"})
        told: list[str] = []
        tell = w.services.gate.tell

        def noted(key: str, policy: Policy, signal: Signal) -> State:
            if signal.sign is Sign.DOWNSHIFT:
                told.append(key)
            return tell(key, policy, signal)

        w.services.gate.tell = noted  # type: ignore[method-assign]
        w.services.thresholds = Thresholds(throttled=-1, fewest=1)
        w.trigger()
        w.drain()
        assert told
        assert set(told) == {"hostile|search|b_good"}
