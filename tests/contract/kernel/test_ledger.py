"""The ledger on both databases: who was first, who is a duplicate, who contradicts."""

import threading

import msgspec
import pytest

from patra.kernel import ledger
from patra.kernel.canonical import key16
from patra.kernel.clock import DAY, MINUTE
from patra.kernel.db import Database, Tx, open_database
from patra.kernel.errors import StoreBusy
from patra.kernel.ledger import Claim, Entry, Outcome, Verdict, judge

NOW = 1_700_000_000_000_000
FIRST, NEW_CYCLE = Outcome.FIRST, Outcome.NEW_CYCLE
IN_FLIGHT, COMMITTED, CONFLICT = Outcome.DUPLICATE_IN_FLIGHT, Outcome.DUPLICATE_COMMITTED, Outcome.CONFLICT


def one(key: str, fingerprint: str = "same", window: int = DAY) -> Claim:
    return Claim(key=key16(key), fingerprint=fingerprint.encode(), window=window)


def claim(store: Database, *claims: Claim, now: int = NOW, scope: str = "s", **hold) -> list[Verdict]:
    return store.run(lambda tx: ledger.claim(tx, scope, claims, now, **hold))


def outcomes(store: Database, *claims: Claim, **how) -> list[Outcome]:
    return [verdict.outcome for verdict in claim(store, *claims, **how)]


def entry(store: Database, key: str, scope: str = "s") -> Entry | None:
    return store.read(lambda tx: ledger.entries(tx, scope, [key16(key)])).get(key16(key))


def test_the_first_claim_wins_and_the_same_again_is_a_committed_duplicate(store: Database):
    assert claim(store, one("a")) == [Verdict(outcome=FIRST, cycle=1, first_at=NOW)]
    assert claim(store, one("a"), now=NOW + 5) == [Verdict(outcome=COMMITTED, cycle=1, first_at=NOW)]
    assert [v.has_won for v in claim(store, one("a"), one("b"), now=NOW + 5)] == [False, True]


def test_another_fingerprint_in_the_window_is_a_conflict(store: Database):
    claim(store, one("a"))
    assert claim(store, one("a", "other"), now=NOW + DAY) == [Verdict(outcome=CONFLICT, cycle=1, first_at=NOW)]
    assert outcomes(store, one("a"), now=NOW + DAY) == [COMMITTED]


def test_the_window_ends_after_its_last_microsecond(store: Database):
    claim(store, one("a", window=MINUTE))
    assert outcomes(store, one("a"), now=NOW + MINUTE) == [COMMITTED]
    assert claim(store, one("a", "other"), now=NOW + MINUTE + 1) == [
        Verdict(outcome=NEW_CYCLE, cycle=2, first_at=NOW + MINUTE + 1)
    ]
    assert outcomes(store, one("a"), now=NOW + MINUTE + 2) == [CONFLICT]
    assert claim(store, one("a"), now=NOW + 2 * DAY)[0].cycle == 3


def test_the_window_is_the_one_of_the_claim_that_won(store: Database):
    claim(store, one("a", window=MINUTE))
    assert outcomes(store, one("a", window=DAY), now=NOW + 1) == [COMMITTED]
    assert outcomes(store, one("a", window=1), now=NOW + MINUTE + 1) == [NEW_CYCLE]
    assert outcomes(store, one("a"), now=NOW + MINUTE + 3) == [NEW_CYCLE]


def test_a_key_twice_in_one_set_is_decided_in_order(store: Database):
    claims = [one("a", "x"), one("b"), one("a", "x"), one("a", "y"), one("b")]
    assert outcomes(store, *claims) == [FIRST, FIRST, IN_FLIGHT, CONFLICT, IN_FLIGHT]
    assert outcomes(store, *claims) == [COMMITTED, COMMITTED, COMMITTED, CONFLICT, COMMITTED]
    late = NOW + 2 * DAY
    assert claim(store, one("a", "y"), one("a", "x"), now=late) == [
        Verdict(outcome=NEW_CYCLE, cycle=2, first_at=late),
        Verdict(outcome=CONFLICT, cycle=2, first_at=late),
    ]


def test_the_very_same_claim_twice_is_a_duplicate_of_itself(store: Database):
    claimed = one("a")
    assert outcomes(store, claimed, claimed) == [FIRST, IN_FLIGHT]


def test_an_empty_set_has_no_verdicts(store: Database):
    assert claim(store) == []


def test_scopes_do_not_meet(store: Database):
    assert outcomes(store, one("a", "x"), scope="s") == [FIRST]
    assert outcomes(store, one("a", "y"), scope="t") == [FIRST]
    assert entry(store, "a", "u") is None


def test_a_claim_that_is_rolled_back_was_never_made(store: Database):
    def work(tx: Tx) -> None:
        ledger.claim(tx, "s", [one("a")], NOW)
        raise LookupError

    with pytest.raises(LookupError):
        store.run(work)
    assert outcomes(store, one("a")) == [FIRST]


def test_a_large_set_mixed_of_old_and_new_is_answered_in_its_order(store: Database):
    claim(store, *[one(f"{n}", "x") for n in range(0, 3000, 2)])
    claims = [one(f"{n}", "x" if n % 3 else "y") for n in range(2999, -1, -1)]
    expected = [FIRST if n % 2 else COMMITTED if n % 3 else CONFLICT for n in range(2999, -1, -1)]
    assert outcomes(store, *claims, now=NOW + 1) == expected


def test_keys_and_fingerprints_may_be_any_bytes(store: Database):
    claims = [
        Claim(key=bytes([n] * 16), fingerprint=mark, window=DAY)
        for n, mark in enumerate([b"", b"\0", b"\\x00", b"'", bytes(range(256))])
    ]
    assert outcomes(store, *claims) == [FIRST] * 5
    assert outcomes(store, *claims) == [COMMITTED] * 5


# held claims


def test_a_held_claim_is_in_flight_until_it_is_settled(store: Database):
    assert outcomes(store, one("a"), hold=MINUTE, holder="w1") == [FIRST]
    assert outcomes(store, one("a"), now=NOW + 1) == [IN_FLIGHT]
    assert outcomes(store, one("a", "other"), now=NOW + 1) == [CONFLICT]
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("a"), key16("b")], holder="w1")) == {key16("a")}
    assert outcomes(store, one("a"), now=NOW + 1) == [COMMITTED]
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("a")], holder="w1")) == set()


def test_a_released_claim_is_there_for_the_next_whatever_its_clock_says(store: Database):
    claim(store, one("a"), hold=MINUTE, holder="w1")
    assert store.run(lambda tx: ledger.release(tx, "s", [key16("a")], holder="w1")) == {key16("a")}
    behind = NOW - MINUTE
    assert claim(store, one("a", "other"), now=behind) == [Verdict(outcome=FIRST, cycle=1, first_at=behind)]
    assert outcomes(store, one("a", "other")) == [COMMITTED]


def test_a_released_later_cycle_is_taken_over_in_the_same_cycle(store: Database):
    claim(store, one("a", window=MINUTE))
    late = NOW + DAY
    assert claim(store, one("a"), now=late, hold=MINUTE, holder="w1")[0].cycle == 2
    store.run(lambda tx: ledger.release(tx, "s", [key16("a")], holder="w1"))
    assert claim(store, one("a"), now=late) == [Verdict(outcome=NEW_CYCLE, cycle=2, first_at=late)]


@pytest.mark.parametrize("later", [MINUTE + 1, 3 * DAY])
def test_a_hold_that_ran_out_is_taken_over_in_the_same_cycle_and_the_late_holder_is_told(store: Database, later: int):
    claim(store, one("a"), hold=MINUTE, holder="w1")
    assert outcomes(store, one("a"), now=NOW + MINUTE) == [IN_FLIGHT]
    taken = claim(store, one("a"), now=NOW + later, hold=MINUTE, holder="w2")
    assert taken == [Verdict(outcome=FIRST, cycle=1, first_at=NOW + later)]
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("a")], holder="w1")) == set()
    assert store.run(lambda tx: ledger.release(tx, "s", [key16("a")], holder="w1")) == set()
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("a")], holder="w2")) == {key16("a")}


def test_a_late_holder_may_settle_while_nobody_took_over(store: Database):
    claim(store, one("a"), hold=MINUTE, holder="w1")
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("a")], holder="w1")) == {key16("a")}
    assert outcomes(store, one("a"), now=NOW + 2 * MINUTE) == [COMMITTED]


def test_hold_and_holder_go_together(store: Database):
    for how in ({"hold": 1}, {"holder": "w"}):
        with pytest.raises(ValueError, match="go together"):
            claim(store, one("a"), **how)


# purge


def test_purge_forgets_what_ended_in_bounded_bites(store: Database):
    claim(store, *[one(f"{n}", window=n) for n in range(10)])
    purge = lambda before, limit: store.run(lambda tx: ledger.purge(tx, "s", before=before, limit=limit))  # noqa: E731
    assert purge(NOW + 6, 4) == 4
    assert purge(NOW + 6, 4) == 2
    assert purge(NOW + 6, 4) == 0
    left = store.read(lambda tx: ledger.entries(tx, "s", [key16(f"{n}") for n in range(10)]))
    assert set(left) == {key16(f"{n}") for n in range(6, 10)}
    assert claim(store, one("0"), now=NOW + 100)[0] == Verdict(outcome=FIRST, cycle=1, first_at=NOW + 100)


def test_purge_leaves_other_scopes_and_what_is_in_flight(store: Database):
    claim(store, one("a", window=1), scope="t")
    claim(store, one("b", window=1), hold=DAY, holder="w")
    claim(store, one("c", window=1), hold=1, holder="w died")
    assert store.run(lambda tx: ledger.purge(tx, "s", before=NOW + MINUTE, limit=100)) == 1
    assert entry(store, "c") is None
    assert store.run(lambda tx: ledger.settle(tx, "s", [key16("b")], holder="w")) == {key16("b")}
    assert store.run(lambda tx: ledger.purge(tx, "s", before=NOW + MINUTE, limit=100)) == 1
    assert entry(store, "a", "t") is not None


# deciding first, writing later


def begun(*claims: Claim, found: dict[bytes, Entry], now: int) -> dict[bytes, Entry]:
    entries = {}
    for c in claims:
        verdict = judge(found.get(c.key), c, now)
        if verdict.has_won:
            entries[c.key] = Entry(
                key=c.key, fingerprint=c.fingerprint, cycle=verdict.cycle, first_at=now, expires_at=now + c.window
            )
    return entries


def decide(store: Database, *claims: Claim, now: int) -> None:
    def work(tx: Tx) -> None:
        found = ledger.entries(tx, "s", [c.key for c in claims])
        ledger.begin_cycles(tx, "s", begun(*claims, found=found, now=now))

    store.run(work)


def test_cycles_that_a_caller_decided_on_are_as_if_they_had_been_claimed(store: Database):
    decide(store, one("a", window=MINUTE), one("b"), now=NOW)
    assert outcomes(store, one("a"), one("b", "other")) == [COMMITTED, CONFLICT]
    decide(store, one("a", "second"), one("b"), now=NOW + MINUTE + 1)
    found = entry(store, "a")
    assert found is not None
    assert (found.cycle, found.fingerprint, found.first_at) == (2, b"second", NOW + MINUTE + 1)


def test_a_caller_may_take_over_a_hold_that_ran_out(store: Database):
    claim(store, one("a"), one("b"), hold=MINUTE, holder="w1")
    store.run(lambda tx: ledger.release(tx, "s", [key16("b")], holder="w1"))
    decide(store, one("a"), one("b"), now=NOW + 2 * MINUTE)
    assert outcomes(store, one("a"), one("b"), now=NOW + 2 * MINUTE) == [COMMITTED, COMMITTED]


@pytest.mark.parametrize("stored", ["in its window", "in flight", "a cycle ahead", "purged and claimed anew"])
def test_a_decision_on_a_state_that_has_gone_is_refused(store: Database, stored: str):
    stale = Entry(key=key16("a"), fingerprint=b"x", cycle=2, first_at=NOW + 2 * DAY, expires_at=NOW + 3 * DAY)
    match stored:
        case "in its window":
            claim(store, one("a", window=2 * DAY))
        case "in flight":
            claim(store, one("a"), hold=3 * DAY, holder="w")
            stale = msgspec.structs.replace(stale, cycle=1)
        case "a cycle ahead":
            claim(store, one("a", window=1))
            claim(store, one("a", window=1), now=NOW + 10)
        case "purged and claimed anew":
            claim(store, one("a"), now=NOW + 2 * DAY - 1)
    before = entry(store, "a")
    with pytest.raises(StoreBusy):
        store.run(lambda tx: ledger.begin_cycles(tx, "s", {stale.key: stale}))
    assert entry(store, "a") == before


def test_a_lost_race_is_decided_again_on_what_the_other_left(store: Database):
    tries: list[int] = []

    def work(tx: Tx) -> Outcome:
        found = ledger.entries(tx, "s", [key16("a")])
        tries.append(len(found))
        if len(tries) == 1:
            found = {}  # as if another writer had been between the look and the write
        ledger.begin_cycles(tx, "s", begun(one("a"), found=found, now=NOW + 1))
        return judge(found.get(key16("a")), one("a"), NOW + 1).outcome

    claim(store, one("a"))
    assert store.run(work) is COMMITTED
    assert tries == [1, 1]


# several writers


def test_of_many_writers_one_wins_each_key(database_url: str, store: Database):
    keys = [f"{n}" for n in range(200)]
    won: list[str] = []
    start = threading.Barrier(4)

    def writer(number: int) -> None:
        mine = keys if number % 2 else keys[::-1]
        db = open_database(database_url)
        start.wait()
        for at in range(0, 200, 20):
            part = mine[at : at + 20]
            verdicts = db.run(lambda tx: ledger.claim(tx, "s", [one(key) for key in part], NOW))  # noqa: B023
            won.extend(key for key, verdict in zip(part, verdicts, strict=True) if verdict.has_won)
        db.close()

    threads = [threading.Thread(target=writer, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(keys)


def test_a_claim_waits_for_the_transaction_that_claimed_first_and_loses_to_it(postgres_url: str):
    from patra.kernel.db import migrate

    store = open_database(postgres_url)
    migrate(store, ["patra.kernel"])
    found: list[Outcome] = []

    def first(tx: Tx) -> threading.Thread:
        ledger.claim(tx, "s", [one("a")], NOW)
        other = threading.Thread(target=lambda: found.extend(outcomes(store, one("a"))))
        other.start()
        return other

    store.run(first).join()
    assert found == [COMMITTED]
    store.close()
