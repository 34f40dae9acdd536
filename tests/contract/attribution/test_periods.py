"""A period closed, verified elsewhere, reconciled: on both databases, by the functions, the commands and over HTTP."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
import urllib3
from click.testing import CliRunner

from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.commit import commit
from patra.attribution.delivery.port import Rejected
from patra.attribution.delivery.relay import Delivery, handing
from patra.attribution.intake.batch import read_batch
from patra.attribution.replay import replay
from patra.attribution.retention import FACTS
from patra.attribution.settlement.dimensions import counts_by
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.period import close_period, parse_period
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.reconcile import DifferenceKind, their_facts
from patra.attribution.settlement.reconciliation import reconcile
from patra.attribution.settlement.statement import verification
from patra.attribution.settlement.statement_store import add_rate, facts_in_statements, statement_file, statements
from patra.attribution.storage.key_index import Indexer
from patra.attribution.storage.sql import set_mark
from patra.attribution.verify import Finding
from patra.cli.attribution.group import group
from patra.kernel.clock import DAY, format_instant
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid, StoreCorrupt
from patra.kernel.testing import ManualClock
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.contract.attribution.archives import ListedArchive
from tests.unit.attribution.said import PACKAGES, T0, at, event, fresh, sent, tick

JANUARY, FEBRUARY = parse_period("2026-01"), parse_period("2026-02")
AFTER = JANUARY.end + DAY
LATE = 13 * 86400
"""Seconds after T0 at which an event of the first day is still taken."""


def shown(number: int, seconds: float = 0, received: float | None = None, **changes: Any) -> dict[str, Any]:
    """An impression and its click, under keys of their own."""
    keys = {"renderAttemptId": f"ra{number}", "opportunityKey": f"o{number}", "eventAt": at(seconds)}
    return sent(
        seconds if received is None else received,
        event("opportunity_created", "o", placementKey=f"p{number % 2}", **_without(keys, "renderAttemptId")),
        event("impression", "i", creativeId=f"c{number % 2}", **keys),
        event("click", "c", **keys),
        batch=f"b{number}",
        **changes,
    )


def _without(keys: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key != name}


def feed(db: Database, *lines: dict[str, Any]) -> None:
    replay(lines, db)


@pytest.fixture
def store(database: Database) -> Database:
    migrate(database, PACKAGES)
    feed(database, shown(1), shown(2), shown(3, app="other"), tick(600))
    for kind, price in (("billable_impression", 2500), ("billable_click", 150_000)):
        rate = Rate(billable_type=kind, price_micros=price, currency="EUR", valid_from=T0)
        database.run(lambda tx, rate=rate: add_rate(tx, rate, T0))
    return database


def close(db: Database, period: Any = JANUARY, now: int = AFTER, **options: Any) -> Any:
    return close_period(db, ManualClock(now), "app", period, **options)


def refusal(db: Database, *args: Any, **options: Any) -> str:
    with pytest.raises(Invalid) as refused:
        close(db, *args, **options)
    return refused.value.code


def test_a_closed_period_has_its_facts_amounts_and_hash_and_stays_as_it_is(store: Database):
    file = close(store)
    found = file.statement
    assert (found.impressions, found.clicks, found.adjustments) == (2, 2, 0)
    assert found.amounts == {"EUR": 2 * 2500 + 2 * 150_000}
    assert {(line.placement, line.creative) for line in found.lines} == {("p1", "c1"), ("p0", "c0")}
    assert verification([file]) == []
    feed(store, shown(4, 60, received=LATE))
    assert store.read(lambda tx: statement_file(tx, "app", "2026-01")) == file
    assert refusal(store) == "period_closed"


def test_what_arrives_later_is_an_adjustment_of_the_next_statement_and_only_of_that(store: Database):
    first = close(store)
    feed(store, shown(4, 60, received=LATE))
    second = close(store, FEBRUARY, FEBRUARY.end)
    assert [(fact.adjustment_flag, fact.period, fact.opportunity) for fact in second.facts] == [
        (True, "2026-01", "o4"),
        (True, "2026-01", "o4"),
    ]
    assert second.statement.amounts == {"EUR": 152_500}
    third = close(store, parse_period("2026-03"), FEBRUARY.end + 40 * DAY)
    assert (third.facts, third.statement.number) == ([], 3)
    assert verification([first, second, third]) == []
    assert store.read(lambda tx: statements(tx, "app")) == [file.statement for file in (first, second, third)]


@pytest.mark.parametrize("status", ["conflicted", "rejected"])
def test_a_fact_that_is_delivered_after_its_period_was_closed_is_an_adjustment(store: Database, status: str):
    """As when an operator issues a given-up record again (F26)."""
    own = "billable_type = 'billable_click' AND app_id = 'app'"
    _run(store, f"UPDATE att_billable SET status = '{status}' WHERE {own}")
    first = close(store)
    assert (first.statement.impressions, first.statement.clicks) == (2, 0)
    _run(store, f"UPDATE att_billable SET status = 'committed' WHERE {own}")
    second = close(store, FEBRUARY, FEBRUARY.end)
    assert [(fact.billing_key, fact.adjustment_flag, fact.period) for fact in second.facts] == [
        ("ref|ra1|billable_click", True, "2026-01"),
        ("ref|ra2|billable_click", True, "2026-01"),
    ]
    assert verification([first, second]) == []


def test_a_fact_before_the_first_closed_period_is_an_adjustment_and_stops_no_later_one(database: Database):
    """No period can be closed for it any more, so it would stop every later one."""
    migrate(database, PACKAGES)
    feed(database, shown(1, 86_400))
    first, second, third, fourth = (parse_period(f"2026-01-0{n}") for n in range(1, 5))
    two = close(database, second, second.end, allow_unpriced=True)
    feed(database, shown(2, 7200, received=2 * 86_400 + 60))
    assert refusal(database, first, third.end) == "period_out_of_order"
    three = close(database, third, third.end, allow_unpriced=True)
    assert [(fact.opportunity, fact.adjustment_flag, fact.period) for fact in three.facts] == [
        ("o2", True, "2026-01-01"),
        ("o2", True, "2026-01-01"),
    ]
    four = close(database, fourth, fourth.end, allow_unpriced=True)
    assert (four.facts, verification([two, three, four])) == ([], [])


def test_a_rate_that_is_added_later_does_not_touch_a_statement(store: Database):
    file = close(store)
    rate = Rate(billable_type="billable_impression", price_micros=1, currency="EUR", app_id="app", valid_from=T0)
    assert store.run(lambda tx: add_rate(tx, rate, T0)) == 3
    assert store.read(lambda tx: statement_file(tx, "app", "2026-01")) == file


def test_a_period_is_refused_before_its_end_out_of_order_and_across_a_closed_one(store: Database):
    assert refusal(store, now=JANUARY.end - 1) == "period_not_over"
    close(store, parse_period(format_instant(T0)[:10]))
    assert refusal(store) == "period_closed"
    assert refusal(store, parse_period(format_instant(T0 - DAY)[:10])) == "period_out_of_order"


def test_a_period_is_refused_while_an_earlier_one_with_facts_is_not_closed(store: Database):
    assert refusal(store, FEBRUARY, FEBRUARY.end) == "period_left_out"
    close(store)
    assert close(store, FEBRUARY, FEBRUARY.end).statement.number == 2


def test_no_statement_is_written_for_an_app_that_never_had_a_fact(store: Database):
    with pytest.raises(Invalid, match="period_app_unknown"):
        close_period(store, ManualClock(AFTER), "tpyo", JANUARY)


def test_of_facts_that_stand_in_a_statement_the_decisions_are_not_needed_again(store: Database):
    close(store)
    _run(store, "DELETE FROM att_decision")
    with pytest.raises(StoreCorrupt):
        list(settled_facts(store, JANUARY.begin, JANUARY.end, "app"))
    assert list(settled_facts(store, JANUARY.begin, JANUARY.end, "app", without=facts_in_statements)) == []


def test_a_period_with_undelivered_records_is_refused(store: Database):
    _run(store, "UPDATE att_billable SET status = 'new' WHERE billable_type = 'billable_click'")
    assert refusal(store) == "period_undelivered"
    _run(store, "UPDATE att_billable SET status = 'committed'")
    assert close(store).statement.clicks == 2


def test_a_period_is_refused_until_the_archive_has_taken_or_refused_its_records(database: Database):
    migrate(database, PACKAGES)
    clock, archive = ManualClock(T0), ListedArchive()
    for line in (shown(1), shown(2)):
        batch = read_batch(msgspec.json.encode(line["batch"]), clock.now())
        commit(database, [batch], hand=handing(clock))
    archive.fails = lambda record: Rejected("g_archive_refused") if "ra2" in str(record.body) else None
    with pytest.raises(Invalid, match="the records of 4 facts are still on their way"):
        close(database, allow_unpriced=True)
    delivery = Delivery(database, archive, clock)
    while not delivery.relay.run_once().idle:
        pass
    closed = close(database, allow_unpriced=True).statement
    assert (closed.impressions, closed.clicks) == (1, 1)


def test_a_period_is_refused_while_verification_finds_anything(store: Database):
    _run(store, "DELETE FROM att_log WHERE number = 1")
    assert refusal(store) == "period_unverified"


def test_a_fault_in_the_sums_or_the_index_is_told_and_does_not_stop_a_period(store: Database):
    Indexer(store, ManualClock(AFTER), patience=0).run_once()
    _run(store, "DELETE FROM att_locator")
    _run(
        store,
        "INSERT INTO att_sum_hour (fact_hour, app_id, billable_type, facts) VALUES (1, 'app', 'billable_click', 7)",
    )
    told: list[Finding] = []
    assert close(store, tell=told.extend).statement.clicks == 2
    assert {one.check for one in told} == {"sums_differ", "index_lacks_key"}


def test_a_refusal_counts_only_what_stands_in_the_way(store: Database):
    _run(
        store,
        "INSERT INTO att_sum_hour (fact_hour, app_id, billable_type, facts) VALUES (1, 'app', 'billable_click', 7)",
    )
    _run(store, "DELETE FROM att_log WHERE number = 1")
    with pytest.raises(Invalid, match="verification found 1 problem"):
        close(store)


def test_a_period_is_refused_where_a_key_was_billed_twice(store: Database):
    if store.dialect == "postgres":
        pytest.skip("PostgreSQL refuses the row itself")
    _run(
        store,
        "INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status, closure)"
        " SELECT decision_id + 1000000, app_id, billable_type, opportunity, fact_hour, fact_at, status, closure"
        " FROM att_billable",
    )
    assert refusal(store) == "period_billed_twice"


def test_facts_without_a_price_are_refused_unless_allowed(store: Database):
    _run(store, "DELETE FROM att_rate WHERE billable_type = 'billable_click'")
    with pytest.raises(Invalid) as refused:
        close(store)
    assert (refused.value.code, refused.value.detail) == (
        "period_unpriced",
        (
            "2 facts without a price: 1 billable_click of placement p0, creative c0 (the first is ref|ra2|billable_click at "
            "2026-01-01T00:00:00Z); 1 billable_click of placement p1, creative c1 (the first is ref|ra1|billable_click at "
            "2026-01-01T00:00:00Z)"
        ),
    )
    assert close(store, allow_unpriced=True).statement.unpriced == 2


def test_an_amount_that_json_would_round_is_refused(database: Database):
    migrate(database, PACKAGES)
    feed(database, *(shown(number) for number in range(10)), tick(600))
    for kind, price in (("billable_impression", 10**15), ("billable_click", 0)):
        rate = Rate(billable_type=kind, price_micros=price, currency="VND", valid_from=T0)
        database.run(lambda tx, rate=rate: add_rate(tx, rate, T0))
    assert refusal(database) == "period_amount_too_large"


def test_a_refusal_names_what_a_rate_has_to_name_though_a_statement_would_mask_it():
    with closing(fresh()) as db:
        feed(db, sent(0, event("impression", creativeId="ann@example.org")), tick(600))
        with pytest.raises(Invalid) as refused:
            close(db)
        assert "creative ann@example.org (" in refused.value.detail
        assert "example.org" not in msgspec.json.encode(close(db, allow_unpriced=True)).decode()


def test_facts_are_counted_in_any_combination_with_filters(store: Database):
    facts = list(settled_facts(store, JANUARY.begin, JANUARY.end))
    found = counts_by(facts, ["app", "creative"], {"placement": "p1"})
    assert [(line.values, line.impressions, line.clicks) for line in found.lines] == [
        (("app", "c1"), 1, 1),
        (("other", "c1"), 1, 1),
    ]
    assert counts_by(facts, ["opportunity"], {"day": "2026-01-02"}).lines == []


def test_every_difference_from_a_doctored_list_is_explained_by_its_decision(store: Database):
    feed(
        store,
        sent(700, event("click", "alone", renderAttemptId="ra9"), batch="b9"),
        tick(1000),
        shown(5, 31 * 86400 + 60),
    )
    ours = [fact.billing_key for fact in close(store).facts]
    missing, changed, twice = ours[0], ours[1], ours[2]
    rows = [*((key, 2500 if "impression" in key else 150_000) for key in ours[1:]), (twice, 150_000)]
    rows = [(key, 7 if key == changed else price) for key, price in rows]
    rows = [(key, price if key != twice else (2500 if "impression" in key else 150_000)) for key, price in rows]
    rows += [("ref|ra9|billable_click", 150_000), ("ref|never|billable_click", 1), ("ref|ra5|billable_click", 150_000)]
    text = ["billingKey,priceMicros", *(f"{key},{price}" for key, price in rows)]
    found = {(one.kind, one.billing_key): one for one in reconcile(store, "app", JANUARY, their_facts(text))}
    assert set(found) == {
        (DifferenceKind.OURS_ONLY, missing),
        (DifferenceKind.PRICE, changed),
        (DifferenceKind.THEIRS_TWICE, twice),
        (DifferenceKind.THEIRS_ONLY, "ref|ra9|billable_click"),
        (DifferenceKind.THEIRS_ONLY, "ref|never|billable_click"),
        (DifferenceKind.THEIRS_ONLY, "ref|ra5|billable_click"),
    }
    said = {key: one.explanation for (_, key), one in found.items()}
    assert "f_accepted" in said[missing]
    assert said["ref|ra9|billable_click"].startswith("not billable: f_")
    assert said["ref|never|billable_click"] == "no event of this key was ever received from this app"
    assert "outside this statement (record committed)" in said["ref|ra5|billable_click"]
    assert found[DifferenceKind.OURS_ONLY, missing].decisions


def explanations(db: Database, *rows: str, period: Any = JANUARY) -> dict[str, str]:
    """What is said of rows that are added to a list like ours."""
    file = db.read(lambda tx: statement_file(tx, "app", period.name))
    text = ["billingKey", *(fact.billing_key for fact in file.facts if file), *rows]
    return {one.billing_key: one.explanation for one in reconcile(db, "app", period, their_facts(text))}


def test_a_key_of_another_app_or_of_another_statement_is_told_as_such(store: Database):
    feed(store, shown(5, 31 * 86400 + 60))
    close(store)
    close(store, FEBRUARY, FEBRUARY.end)
    found = explanations(store, "ref|ra3|billable_click", "ref|ra5|billable_click")
    fact_at = format_instant(T0)
    assert found["ref|ra3|billable_click"] == (
        f"the events came from another app, 'other': billed by us at factAt {fact_at}, "
        "outside this statement (record committed)"
    )
    assert found["ref|ra5|billable_click"].endswith("in the statement of 2026-02")


def test_a_key_whose_decision_was_purged_is_explained_by_its_statement_and_not_called_unknown(store: Database):
    close(store)
    close(store, FEBRUARY, FEBRUARY.end)
    _run(store, "DELETE FROM att_decision")
    store.run(lambda tx: set_mark(tx, FACTS, 2**60))
    found = explanations(store, "ref|ra1|billable_click", "ref|never|billable_click", period=FEBRUARY)
    assert found == {
        "ref|ra1|billable_click": f"billed at factAt {format_instant(T0)}, in the statement of 2026-01",
        "ref|never|billable_click": "no decision on this key is left in the store: `patra attribution history ask`",
    }


def test_who_may_not_know_of_other_apps_is_told_of_their_keys_what_is_said_of_unknown_ones(store: Database):
    text = ["billingKey", "ref|ra3|billable_click", "ref|never|billable_click"]
    found = reconcile(store, "app", JANUARY, their_facts(text), other_apps=False)
    theirs = {one.billing_key: (one.explanation, one.decisions) for one in found if one.billing_key in text}
    assert theirs == dict.fromkeys(text[1:], ("no event of this key was ever received from this app", []))


def test_an_event_that_was_rejected_explains_why_its_key_was_not_billed(store: Database):
    feed(store, sent(30 * 86400, event("impression", "old", renderAttemptId="ra8"), batch="b8"))
    close(store)
    assert explanations(store, "ref|ra8|billable_impression") == {
        "ref|ra8|billable_impression": "not billable: f_event_stale_outside_dedup_window"
    }


def test_keys_are_explained_in_batches_with_and_without_the_index(store: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.settlement.reconciliation.EXPLAIN_BATCH_KEYS", 2)
    close(store)
    rows = [f"ref|never{n}|billable_click" for n in range(5)] + ["ref|ra3|billable_click"]
    before = explanations(store, *rows)
    Indexer(store, ManualClock(AFTER), patience=0).run_once()
    assert explanations(store, *rows) == before
    assert len(before) == 6
    assert before["ref|never4|billable_click"] == "no event of this key was ever received from this app"


def test_other_prices_and_currencies_are_explained_by_the_rate_that_decided(store: Database):
    close(store)
    key = "ref|ra1|billable_click"
    text = ["billingKey,priceMicros,currency", f"{key},149999,EUR", "ref|ra2|billable_click,150000,USD"]
    found = {one.kind: one for one in reconcile(store, "app", JANUARY, their_facts(text))}
    price = found[DifferenceKind.PRICE]
    assert (price.billing_key, price.ours_micros, price.theirs_micros) == (key, 150_000, 149_999)
    assert price.explanation == "our price is that of rate version 2, valid at its factAt, 2026-01-01T00:00:00Z"
    assert price.decisions[-1] == "2026-01-01T00:00:00Z both_emit f_accepted"
    assert found[DifferenceKind.CURRENCY].explanation == "our price is in EUR, theirs in USD"


def test_a_price_of_theirs_where_we_have_none_is_explained(store: Database):
    _run(store, "DELETE FROM att_rate")
    close(store, allow_unpriced=True)
    (found,) = (
        one
        for one in reconcile(store, "app", JANUARY, their_facts(["billingKey,priceMicros", "ref|ra1|billable_click,1"]))
        if one.kind is DifferenceKind.PRICE
    )
    assert found.explanation == "we have no price for it: no rate was valid at its factAt, 2026-01-01T00:00:00Z"


def test_a_list_like_ours_has_no_difference(store: Database):
    text = ["billingKey", *(fact.billing_key for fact in close(store).facts)]
    assert reconcile(store, "app", JANUARY, their_facts(text)) == []


def _run(db: Database, text: str) -> None:
    db.run(lambda tx: tx.execute(statement("change", text)))


# --- from the outside -------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path}/patra.db")
    patra = build(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db")))
    feed(patra.db, shown(1), shown(2), tick(600))
    patra.close(0)

    def invoke(*args: str, code: int | None = 0) -> str:
        found = CliRunner().invoke(group, list(args), standalone_mode=False)
        if found.exception is not None:
            raise found.exception
        assert (found.return_value or 0) == code, found.output
        return found.stdout

    return invoke


def test_the_commands_close_export_verify_and_reconcile(command: Any, tmp_path: Path):
    command("rate", "add", "impression", "2500", "EUR", "--from", "2026-01-01")
    command("rate", "add", "click", "150000", "EUR", "--from", "2026-01-01", "--app", "app")
    assert len(json.loads(command("rate", "list", "--json"))) == 2
    assert "305000 micro-EUR (0.305 EUR)" in command("period", "close", "2026-01", "--app", "app")
    assert json.loads(command("statement", "list", "--json"))[0]["clicks"] == 2
    assert "2 impressions, 2 clicks" in command("statement", "show", "2026-01", "--app", "app")
    for form in ("json", "csv", "parquet"):
        command("statement", "export", "2026-01", "--app", "app", "--out", f"s.{form}")
    (tmp_path / "patra.db").rename(tmp_path / "gone.db")  # verified without the store
    assert "4 facts" in command("statement", "verify", "s.json")
    body = json.loads((tmp_path / "s.json").read_text())
    body["facts"][0]["priceMicros"] = 1
    (tmp_path / "bad.json").write_text(json.dumps(body))
    assert "factsHash does not match" in command("statement", "verify", "bad.json", code=1)
    (tmp_path / "gone.db").rename(tmp_path / "patra.db")
    rows = list(csv.DictReader((tmp_path / "s.csv").open()))
    assert [row["billingKey"] for row in rows] == [fact["billingKey"] for fact in body["facts"]]
    assert duckdb.sql(f"SELECT sum(priceMicros) FROM '{tmp_path}/s.parquet'").fetchall() == [(305_000,)]
    assert json.loads(command("reconcile", "s.csv", "--app", "app", "--period", "2026-01", "--json")) == []
    (tmp_path / "theirs.csv").write_text("billingKey\n" + rows[0]["billingKey"] + "\n")
    found = json.loads(command("reconcile", "theirs.csv", "--app", "app", "--period", "2026-01", "--json", code=1))
    assert [one["kind"] for one in found] == ["ours_only"] * 3


def test_the_commands_tell_wrong_sums_and_rebuild_them(command: Any, tmp_path: Path):
    with sqlite3.connect(tmp_path / "patra.db") as changed:
        changed.execute("INSERT INTO att_sum_hour VALUES (1, 'app', 'billable_click', 7)")
    changed.close()
    assert "sums_differ" in command("verify", code=1)
    closed = CliRunner().invoke(group, ["period", "close", "2026-01", "--app", "app", "--allow-unpriced"])
    assert "patra attribution verify --rebuild-sums" in closed.stderr
    assert "2 impressions, 2 clicks" in closed.stdout
    assert "0 findings" in command("verify", "--rebuild-sums")
    assert "0 findings" in command("verify")
    with sqlite3.connect(tmp_path / "patra.db") as read:
        assert read.execute("SELECT subject FROM app_audit WHERE act = 'attribution.sums.rebuild'").fetchall() == [
            ("",)
        ]
    read.close()


def test_settle_takes_combinations_and_filters(command: Any, tmp_path: Path):
    span = ("settle", "--from", "2026-01-01", "--to", "2026-02-01")
    text = command(*span, "--by", "day,creative,opportunity", "--where", "placement=p1", "--format", "csv")
    assert text.splitlines() == ["day,creative,opportunity,impressions,clicks", "2026-01-01,c1,o1,1,1"]
    command(*span, "--by", "app,placement", "--out", "x.parquet")
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/x.parquet'").fetchall() == [(2,)]
    assert json.loads(command(*span, "--by", "creative", "--format", "json"))["clicks"] == 2
    with pytest.raises(Exception, match="colour"):
        command(*span, "--by", "colour")


def test_the_same_over_http(tmp_path: Path):
    settings = Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0))
    patra = build(settings)
    feed(patra.db, shown(1), shown(2), tick(600))
    http = urllib3.PoolManager(retries=False)
    try:
        with serving(app(patra), settings.web) as served:

            def ask(method: str, path: str, body: Any = None) -> urllib3.BaseHTTPResponse:
                return http.request(method, f"{served.url}/attribution{path}", json=body if body is not None else None)

            close_path = "/apps/app/periods/2026-01/close"
            assert ask("POST", close_path, {}).json()["code"] == "period_unpriced"
            price = {"priceMicros": 10, "currency": "EUR", "validFrom": "2026-01-01T00:00:00Z"}
            for kind in ("billable_impression", "billable_click"):
                assert ask("POST", "/rates", {**price, "billableType": kind}).status == 200
            assert ask("POST", "/rates", {**price, "billableType": "x"}).json()["code"] == "rate_invalid"
            assert len(ask("GET", "/rates").json()["rates"]) == 2
            closed = ask("POST", close_path, {}).json()
            assert closed["amounts"] == {"EUR": 40}
            assert ask("GET", "/statements?appId=app").json()["statements"] == [closed]
            file = ask("GET", "/statements/app/2026-01").data
            assert verification([msgspec.json.decode(file, type=type(_file_of(patra.db)))]) == []
            assert ask("GET", "/statements/app/2026-02").status == 404
            compared = ask("POST", "/apps/app/periods/2026-01/reconcile", {"csv": "billingKey\n"}).json()
            assert {one["kind"] for one in compared["differences"]} == {"ours_only"}
            span = "begin=2026-01-01T00:00:00Z&end=2026-02-01T00:00:00Z"
            counts = ask("GET", f"/settlement/dimensions?{span}&by=creative,app&placement=p1").json()
            assert [line["values"] for line in counts["lines"]] == [["c1", "app"]]
            assert ask("GET", f"/settlement/dimensions?{span}&by=app,app").status == 400
    finally:
        patra.close(1)


def _file_of(db: Database) -> Any:
    return db.read(lambda tx: statement_file(tx, "app", "2026-01"))
