"""With a credential it is the credential's bucket that is asked, cooled and slowed down; tokens wait too (4.10)."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched, fetch, gate_of
from patra.ingest.fetching.sender import Deferred
from patra.ingest.http.request import Position
from patra.ingest.packs.sections import Auth, Credential, OAuth2
from patra.ingest.packs.spec import decode_spec
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.ratelimit.quota_store import RateMemory
from patra.ingest.ratelimit.token_bucket import Sign, Signal
from patra.ingest.vocabulary.codes import AuthType, Operation
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Fenced
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

SPREAD = crowded(100, T0, T1, crowd=False)
AUTH = {"type": "API_KEY", "location": "QUERY", "name": "api_key", "credentialRef": "mine"}


def keyed(url: str, **sections: Any) -> dict[str, Any]:
    tree = pack(url, "OFFSET", auth=AUTH, **sections)
    tree["credentials"] = {"mine": {"type": "API_KEY", "secrets": {"apiKey": "env:HOSTILE_KEY"}}}
    return tree


def answering_first(w: World, reply: Reply) -> list[int]:
    """The first request gets this reply; when each was asked."""
    serve, asked = w.provider._served, list[int]()

    def served(*args: Any) -> Reply:
        asked.append(w.clock.now())
        return reply if len(asked) == 1 else serve(*args)

    w.provider._served = served  # type: ignore[method-assign]
    return asked


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_KEY", "s3cr3t-k3y-value")


def test_an_error_inside_a_200_cools_the_bucket_of_the_credential(database: Database) -> None:
    busy = {"path": "$.error", "equals": ["busy"], "outcome": "L1", "retryAfter": "PT20M"}
    with world(database, SPREAD) as w:
        w.load(keyed(w.url, rateLimit={"perCredential": True}, errors={"busy": busy}))
        asked = answering_first(w, Reply(status=200, body=b'{"error": "busy"}', kind="application/json"))
        w.trigger()
        assert w.executor.run_once().deferred == 1
        w.drain()
        assert w.landed() == w.provider.truth
        assert asked[1] - asked[0] >= 20 * MINUTE


def test_a_retry_after_that_is_no_429_slows_the_bucket_of_the_credential(database: Database) -> None:
    rate = {"perCredential": True, "coolDown": "PT12H", "authenticated": {"refillRatePerSec": 900}}
    with world(database, SPREAD) as w:
        w.load(
            keyed(
                w.url, rateLimit=rate, errors={"slow": {"status": [403], "outcome": "L1"}}, pagination={"pageSize": 5}
            )
        )
        answering_first(w, Reply(status=403, body=b"slower", kind="text/plain", headers={"Retry-After": "1"}))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        line = EndpointClient(*2 * (decode_spec(w.one("SELECT expr_proto_snapshot FROM ing_plan")),), Credential(
            type=AuthType.API_KEY, secrets={"apiKey": "env:HOSTILE_KEY"}
        ))  # fmt: skip
        key, policy = gate_of(w.services, line)
        assert key == "hostile|search|mine"
        assert w.services.gate.look(key, policy).rate == 450_000
        batches = [json.loads(text) for (text,) in w.rows("SELECT stats FROM ing_task_run_batch")]
        assert sum(one["selfHealing"]["qpsDownshift"] for one in batches) == 1


def test_a_quota_that_only_the_credential_has_is_booked(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(keyed(w.url, rateLimit={"authenticated": {"quotaDaily": 5000}}))
        w.trigger()
        w.drain()
        booked = w.one("SELECT sum(consumed) FROM ing_quota WHERE period_code = 'DAY'")
        assert booked == len(w.provider.asked) > 0


@pytest.mark.parametrize("apart", [False, True])
def test_a_quota_that_one_process_used_up_is_used_up_for_the_next(database: Database, apart: bool) -> None:
    with world(database, SPREAD) as w:
        rate = {"quotaDaily": 6, "quotaReserve": 0, "perCredential": apart}
        w.load(keyed(w.url, rateLimit=rate, pagination={"pageSize": 5}))
        w.trigger()
        today = w.clock.now() // DAY
        for _ in range(20):  # each turn a process of its own
            w.services.gate = LocalGate(w.clock, RateMemory(database))
            w.executor.run_once()
            assert w.clock.now() // DAY == today
        assert len(w.provider.asked) == 6
        w.drain()
        assert w.landed() == w.provider.truth


def line_with_tokens(w: World) -> EndpointClient:
    """A planned list whose requests carry a token of `/oauth`."""
    w.load(pack(w.url, "OFFSET"))
    w.trigger()
    spec = decode_spec(w.one("SELECT expr_proto_snapshot FROM ing_plan"))
    auth = Auth(type=AuthType.OAUTH2, credential_ref="mine", oauth2=OAuth2(token_url=f"{w.url}/oauth"))
    secrets = {"clientId": "env:HOSTILE_KEY", "clientSecret": "env:HOSTILE_KEY"}
    return EndpointClient(spec, replace(spec, auth=auth), Credential(type=AuthType.OAUTH2, secrets=secrets))


def test_the_retry_after_of_the_token_endpoint_is_kept(database: Database) -> None:
    with world(database, SPREAD) as w:
        line = line_with_tokens(w)
        serve, tokens = w.provider._served, list[int]()

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            if path != "/oauth":
                return serve(method, path, query, body)
            tokens.append(w.clock.now())
            if len(tokens) == 1:
                return Reply(status=503, body=b"", kind="text/plain", headers={"Retry-After": "3600"})
            return Reply(status=200, body=b'{"access_token": "t0k3n", "expires_in": 600}', kind="application/json")

        w.provider._served = served  # type: ignore[method-assign]

        def pause(microseconds: int, /) -> bool:
            w.clock.advance(microseconds)
            return True

        def fetched() -> Fetched | Deferred:
            at = Position(source="hostile", endpoint="search", operation=Operation.HARVEST, now=w.clock.now(),
                    window_from=T0, window_to=T1, page_size=25, offset=0)  # fmt: skip
            return fetch(w.services, line, at, pause, task="t", correlation="c", fragile=False)

        found = fetched()
        assert isinstance(found, Deferred)
        assert found.code is RunReason.PUT_BACK_RATE
        assert len(tokens) == 1
        w.clock.set(found.until)
        again = fetched()
        assert isinstance(again, Fetched)
        assert again.verdict.code is RunReason.OK
        assert tokens[1] - tokens[0] >= 3600 * SECOND


def test_a_retry_after_holds_for_the_next_process_too(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.services.gate = LocalGate(w.clock, RateMemory(database))
        w.load(keyed(w.url, pagination={"pageSize": 5}))
        asked = answering_first(w, Reply(status=429, body=b"", kind="text/plain", headers={"Retry-After": "3600"}))
        w.trigger()
        assert w.executor.run_once().deferred == 1
        told = w.clock.now()
        for _ in range(5):  # each turn a process of its own, and an operator who does not wait
            w.services.gate = LocalGate(w.clock, RateMemory(database))
            w.db.run(lambda tx: tx.execute(statement("now", "UPDATE ing_task SET scheduled_at = 0")))
            assert w.executor.run_once().deferred == 1
        assert len(asked) == 1
        w.drain()
        assert w.landed() == w.provider.truth
        assert asked[1] - told >= 3600 * SECOND - 1


def test_what_a_run_used_of_its_quota_is_booked_with_each_batch(database: Database) -> None:
    class Killed(BaseException):
        pass

    with world(database, SPREAD) as w:
        w.load(keyed(w.url, rateLimit={"quotaDaily": 5000}, pagination={"pageSize": 5}))
        w.trigger()
        kill = w.executor.wait

        def wait(*args: Any) -> bool:
            if len(w.provider.asked) >= 3:
                raise Killed
            return kill(*args)

        w.executor.wait = wait  # type: ignore[method-assign]
        with pytest.raises(Killed):
            w.executor.run_once()
        asked = len(w.provider.asked)
        assert w.one("SELECT max(consumed) FROM ing_quota WHERE period_code = 'DAY'") == asked == 3
        w.executor = w.new_executor()
        w.clock.advance(11 * MINUTE)
        w.drain()
        assert w.landed() == w.provider.truth
        booked = w.one("SELECT sum(consumed) FROM ing_quota WHERE period_code = 'DAY'")
        assert booked == len(w.provider.asked)


def test_requests_of_a_page_that_was_never_over_are_booked_when_the_lease_is_lost(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(keyed(w.url, rateLimit={"quotaDaily": 5000}))
        w.trigger()
        w.provider._served = lambda *_: Reply(status=503, body=b"", kind="text/plain")  # type: ignore[method-assign]
        wait = w.executor.wait

        def lost(*args: Any) -> bool:
            if len(w.provider.asked) >= 2:
                raise Fenced("lease_lost", "between two attempts")
            return wait(*args)

        w.executor.wait = lost  # type: ignore[method-assign]
        assert w.executor.run_once().fenced == 1
        assert w.one("SELECT max(consumed) FROM ing_quota WHERE period_code = 'DAY'") == len(w.provider.asked) == 2


def test_a_probe_that_the_gate_refuses_leaves_the_turn_to_the_next(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        spec = decode_spec(w.one("SELECT expr_proto_snapshot FROM ing_plan"))
        line = EndpointClient(spec, spec)
        circuits, now = w.services.circuits, w.clock.now()
        for _ in range(w.services.thresholds.failures):
            circuits.settle(line.circuit_key, failed=True, now=now, jitter=0.0, thresholds=w.services.thresholds)
        opened = circuits.admit(line.circuit_key, now)
        assert opened is not None
        w.clock.set(opened.until)
        key, policy = gate_of(w.services, line)
        w.services.gate.tell(key, policy, Signal(sign=Sign.HTTP_429, allowed_at=w.clock.now(), retry_after=DAY))

        def asked() -> Fetched | Deferred:
            at = Position(source="hostile", endpoint="search", operation=Operation.HARVEST, now=w.clock.now(),
                    window_from=T0, window_to=T1, page_size=25, offset=0)  # fmt: skip
            return fetch(w.services, line, at, lambda _: True, task="t", correlation="c", fragile=False)

        found = asked()
        assert isinstance(found, Deferred)
        assert found.code is RunReason.PUT_BACK_RATE
        again = asked()  # the gate's refusal, not the circuit's
        assert isinstance(again, Deferred)
        assert again.code is RunReason.PUT_BACK_RATE
        w.clock.set(found.until)
        landed = asked()
        assert isinstance(landed, Fetched)
        assert landed.verdict.code is RunReason.OK


def test_a_token_endpoint_that_is_down_opens_the_circuit(database: Database) -> None:
    with world(database, SPREAD) as w:
        line = line_with_tokens(w)
        tokens: list[str] = []

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            tokens.append(path)
            return Reply(status=500, body=b"", kind="text/plain", headers={})

        w.provider._served = served  # type: ignore[method-assign]

        def pause(microseconds: int, /) -> bool:
            w.clock.advance(microseconds)
            return True

        at = Position(source="hostile", endpoint="search", operation=Operation.HARVEST, now=w.clock.now(),
                window_from=T0, window_to=T1, page_size=25, offset=0)  # fmt: skip
        found = fetch(w.services, line, at, pause, task="t", correlation="c", fragile=False)
        assert isinstance(found, Deferred)
        assert found.code is RunReason.PUT_BACK_BREAKER
        assert tokens == ["/oauth"] * w.services.thresholds.failures
        assert found.tally.circuit_opened == 1
