"""Every act of the console is done once by its form, as the browser sends it, and leaves its row in the audit.

The table below names each act once: an act that is added without a line here fails the test. Roles, form tokens and
double sending are tried in `tests/unit/web/console/test_application.py`, dialogs in `test_acts.py`.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3

from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from patra.web.console.acts import ACTS
from tests.e2e.console.world import World, world
from tests.unit.app.test_outbox_admin import refuse
from tests.unit.ingest.sample_packs import text_of

Form = dict[str, str]
FAIL_ALL = statement("fail_all", "UPDATE ing_task SET status_code = 'FAILED' WHERE status_code = 'QUEUED'")
BREAK = statement(
    "break",
    "INSERT INTO ing_halt (provenance_code, endpoint_name, kind_code, reason_code, detail, halted_by, halted_at)"
    " VALUES ('atomlike', '', 'BREAKER', 'i_fatal', '401', 'worker', 1)",
)


class Desk:
    """The console of one world, by its forms."""

    def __init__(self, made: World) -> None:
        self.world = made
        self._http = urllib3.PoolManager(retries=False)
        self._cookie = self._http.request("GET", made.url + "/console/").headers["Set-Cookie"].partition(";")[0]
        self._number = 0

    def confirmation(self, name: str, form: Form) -> str:
        answer = self._http.request(
            "GET", f"{self.world.url}/console/confirm/{name}?{urlencode(form)}", headers={"Cookie": self._cookie}
        )
        assert answer.status == 200, answer.data
        return answer.data.decode()

    def do(self, name: str, form: Form, expected: int = 0) -> str:
        """Where it leads, or the page that shows the result."""
        token = re.search(r'name="form_token" value="([^"]*)"', self.confirmation(name, form))
        assert token is not None
        self._number += 1
        sent = {**form, "form_token": token[1], "once": str(self._number)}
        headers = {"Cookie": self._cookie, "Content-Type": "application/x-www-form-urlencoded"}
        answer = self._http.request(
            "POST", f"{self.world.url}/console/do/{name}", body=urlencode(sent), headers=headers, redirect=False
        )
        assert answer.status in ({expected} if expected else {200, 303}), (
            name,
            answer.status,
            answer.data.decode()[-3000:],
        )
        return answer.headers.get("Location") or answer.data.decode()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    setup_logging(level="critical")
    with world(Path(tmp_path_factory.mktemp("acts"))) as made:
        yield Desk(made)


def _window(made: World) -> Form:
    today = made.clock.now() // DAY * DAY
    return {"since": format_instant(today - 12 * DAY), "until": format_instant(today - 10 * DAY)}


def _run(made: World, stmt: Any) -> None:
    made.patra.db.run(lambda tx: tx.execute(stmt, {}))


def _with(stmt: Any, form: Form) -> Callable[[World], Form]:
    def made(found: World) -> Form:
        _run(found, stmt)
        return form

    return made


def _bulk_act(made: World) -> Form:
    asked = {"act": "replay", "group": "search-index", "confirm": "search-index"}
    return {"act_id": made.post("/bus/acts", asked)["act_id"]}


def _refused_message(made: World) -> Form:
    refuse(made.patra.db, "ingest.record", "a")
    return {"channel": "ingest.record", "seqs": str(made.get("/outbox")["messages"][0]["seq"])}


def _period(made: World) -> Form:
    made.clock.advance(SECOND)
    return {"app": "shop", "period": format_instant(made.clock.now() - 2 * DAY)[:10], "unpriced": "yes"}


def _failed_tasks(made: World) -> Form:
    _run(made, FAIL_ALL)
    return {"tasks": "\n".join(one["task"] for one in made.get("/ingest/tasks?status=FAILED&limit=2")["tasks"])}


def _ended_film(made: World) -> Form:
    return {"run_id": made.known["film"]}


def _new_version(made: World) -> Form:
    del made
    text = text_of("offset").replace("maxWindow: P1D", "maxWindow: P2D")
    return {"source": "atomlike", "text": text, "share": "40", "why": "larger windows"}


def _on_trial(made: World) -> Form:
    made.post("/ingest/packs/stage", {"text": _new_version(made)["text"]})
    return {"source": "atomlike", "confirm": "atomlike"}


ALERT = {"alert": "fatal", "subject": "oailike", "why": "known", "duration": "PT1H"}
QUERY = {"source": "atomlike", "endpoint": "query"}
RECORD = {**QUERY, "keys": "10.5555/boats.1", "why": "withdrawn"}
JOB = {"job": "atomlike/nightly"}
HOOK = {"name": "hook", "url": "https://example.org/in", "types": "task.submitted >=1"}
TABLE: tuple[tuple[str, Callable[[World], Form]], ...] = (
    ("ingest.pause", lambda _: QUERY),
    ("ingest.resume", lambda _: QUERY),
    ("ingest.lift", _with(BREAK, {"source": "atomlike", "why": "a new key"})),
    ("ingest.plan", lambda made: {**QUERY, **_window(made), "operation": "BACKFILL", "activity": "x"}),
    ("ingest.reread", lambda made: {**QUERY, **_window(made), "why": "a correction"}),
    ("ingest.add_schedule", lambda _: {**JOB, "endpoint": "query", "cron": "0 3 * * *", "params": "search=boats"}),
    ("ingest.disable_schedule", lambda _: JOB),
    ("ingest.run_schedule", lambda _: JOB),
    ("ingest.enable_schedule", lambda _: JOB),
    ("ingest.change_schedule", lambda _: {**JOB, "endpoint": "query", "cron": "0 4 * * 1", "missed": "ALL"}),
    ("ingest.remove_schedule", lambda _: {**JOB, "why": "over"}),
    ("ingest.pack_stage", _new_version),
    ("ingest.pack_rollback", lambda _: {"source": "atomlike", "why": "no better"}),
    ("ingest.pack_promote", _on_trial),
    ("ingest.signal", lambda _: {**QUERY, "keys": "10.5555/boats.1\n10.5555/boats.2", "why": "retracted"}),
    ("ingest.evidence", lambda made: {"run": made.known["run"], "batch": "2", "why": "TICKET-7"}),
    ("ingest.cancel_slice", lambda made: {"slice": made.known["queued"].replace(".t", ".s"), "why": "x"}),
    ("ingest.requeue_task", lambda made: {"task": made.known["task"]}),
    ("ingest.requeue_tasks", _failed_tasks),
    ("ingest.cancel_task", lambda made: {"task": made.known["task"], "why": "x"}),
    ("ingest.requeue_failed", _with(FAIL_ALL, {"source": "atomlike", "why": "the provider is back"})),
    ("ingest.cancel_plan", lambda made: {"plan": made.known["plan"], "why": "x"}),
    ("ingest.dismiss", lambda _: RECORD),
    ("ingest.acknowledge", lambda _: ALERT),
    ("ingest.silence", lambda _: ALERT),
    ("ingest.end_silence", lambda _: ALERT),
    ("bus.pause", lambda _: {"group": "mail-out"}),
    ("bus.resume", lambda _: {"group": "mail-out"}),
    ("bus.replay", lambda made: _letter(made, "letter-0")),
    ("bus.discard", lambda made: {**_letter(made, "letter-1"), "reason": "withdrawn"}),
    ("bus.replay_all", lambda _: {"group": "search-index", "confirm": "search-index"}),
    ("bus.stop_act", _bulk_act),
    ("bus.discard_all", lambda _: {"group": "search-index", "confirm": "search-index", "why": "x"}),
    ("bus.freeze", lambda _: {"type": "task.submitted", "confirm": "task.submitted", "reason": "x"}),
    ("bus.thaw", lambda _: {"type": "task.submitted"}),
    ("bus.webhook.add", lambda _: HOOK),
    ("bus.webhook.remove", lambda _: {"name": "hook", "confirm": "hook"}),
    ("attribution.close", _period),
    ("attribution.reconcile", lambda made: {**_period(made), "csv": "billingKey\n"}),
    ("attribution.app.add", lambda _: {"app": "kiosk"}),
    ("attribution.app.rotate", lambda _: {"app": "kiosk", "confirm": "kiosk"}),
    ("attribution.app.revoke", lambda _: {"app": "kiosk", "confirm": "kiosk"}),
    ("studio.submit", lambda _: {"chapter": "A river\n\nThe river is wide."}),
    ("studio.cancel", _ended_film),
    ("studio.resume", _ended_film),
    ("outbox.requeue", _refused_message),
)
"""Each act with its form, in an order in which all of them can be done."""


def _letter(made: World, name: str) -> Form:
    return {"group": "mail-out", "event_ids": made.known[name], "confirm": "mail-out"}


def test_every_act_stands_in_the_table_once() -> None:
    elsewhere = ["ingest.replay", "loop.wake", "studio.edit", "studio.render"]
    assert sorted([*(name for name, _ in TABLE), *elsewhere]) == sorted(ACTS)


@pytest.mark.parametrize("name", ["studio.edit", "studio.render"])
def test_a_shot_of_a_run_that_has_not_ended_is_not_made_again_and_the_form_says_so(desk: Desk, name: str) -> None:
    form = {"run_id": desk.world.known["film"], "shot_id": "shot_0001", "place": "sea"}
    assert "#s_run_not_ended" in desk.do(name, form, expected=409)


def test_a_loop_that_does_not_run_here_is_not_woken_and_the_form_says_so(desk: Desk) -> None:
    assert "loop_unknown" in desk.do("loop.wake", {"name": "nobody"}, expected=404)


def test_a_batch_whose_body_is_not_kept_is_not_replayed_from_it_and_the_form_says_so(desk: Desk) -> None:
    form = {"run": desk.world.known["run"], "number": "1", "how": "kept body"}
    refused = unescape(desk.do("ingest.replay", form, expected=400))
    assert "body_not_kept" in refused


def test_every_act_is_done_by_its_form_and_audited(desk: Desk) -> None:
    names = {(one.method, one.template): one.act for one in desk.world.endpoints()}
    for name, form in TABLE:
        given = form(desk.world)
        before = len(desk.world.audit())
        desk.do(name, given)
        written = [act for _, act, _ in desk.world.audit()]
        assert written[: len(written) - before] == [names[ACTS[name].method, ACTS[name].template]], name


def test_what_is_asked_before_an_act_is_shown_by_its_level(desk: Desk) -> None:
    asked = {name: unescape(desk.confirmation(name, form)) for name, form in PREVIEWS.items()}
    assert "failed tasks" in asked["ingest.requeue_failed"] or "failed task" in asked["ingest.requeue_failed"]
    assert "patra ingest requeue --source atomlike --why" in asked["ingest.requeue_failed"]
    assert "slices" in asked["ingest.plan"]
    assert "request" in asked["ingest.plan"]
    assert "slices" in asked["ingest.reread"]
    assert "patra ingest dismiss atomlike query 'a b; touch x'" in asked["ingest.dismiss"]
    assert "patra ingest signal atomlike query 'a b; touch x' --why" in asked["ingest.signal"]
    assert all('name="why"' in asked[name] for name in ("ingest.requeue_failed", "ingest.reread", "ingest.dismiss"))


SPAN = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-03T00:00:00Z"}
PREVIEWS = {
    "ingest.requeue_failed": {"source": "atomlike"},
    "ingest.plan": {**QUERY, **SPAN, "operation": "BACKFILL", "activity": "january"},
    "ingest.reread": {**QUERY, **SPAN},
    "ingest.dismiss": {**QUERY, "keys": "a b; touch x"},
    "ingest.signal": {**QUERY, "keys": "a b; touch x"},
}
