"""The console over HTTP: headers, sessions, form tokens, roles, acts that are done once."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from patra.app.access.audit import list_acts
from patra.app.access.sessions import AGE_LIMIT, IDLE_LIMIT, Sessions
from patra.cli.main import cli
from patra.kernel.clock import HOUR, format_instant
from patra.kernel.db import migrate, open_database
from patra.kernel.telemetry import setup_logging
from patra.kernel.testing import ManualClock
from patra.web.asgi import every_endpoint
from patra.web.console.access import form_token, local_path
from patra.web.console.act import lacking
from patra.web.console.acts import ACTS
from patra.web.console.calls import Calls
from patra.web.console.forms import LOGIN_BYTES, MAX_FORM_FIELDS, form_fields
from patra.web.console.pages import ROUTES
from patra.web.problem import Problem
from tests.unit.attribution import said
from tests.unit.web.served import Client, served, web_settings

VIEWER, ADMIN = "viewer-token-0123456789", "admin-token-0123456789"


@pytest.fixture
def client() -> Iterator[Client]:
    setup_logging(level="error")
    with served() as found:
        yield found


@contextmanager
def guarded(folder: Path) -> Iterator[Client]:
    for name, token in (("viewer", VIEWER), ("admin", ADMIN)):
        (folder / name).write_text(token)
    settings = web_settings(
        viewer_tokens=[f"vera=file:{folder / 'viewer'}"], admin_tokens=[f"ada=file:{folder / 'admin'}"]
    )
    with served(settings) as found:
        yield found


def form(client: Client, path: str, fields: dict[str, str], **headers: str):
    sent = {"Content-Type": "application/x-www-form-urlencoded", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return client._pool.request("POST", client.url + path, body=urlencode(fields), headers=sent, redirect=False)


def page(client: Client, path: str, cookie: str = ""):
    headers = {"Cookie": cookie} if cookie else {}
    return client._pool.request("GET", client.url + path, headers=headers, redirect=False)


def cookie_of(answer) -> str:
    return answer.headers["Set-Cookie"].partition(";")[0]


def hidden(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found
    return found[1]


def test_every_page_has_the_strict_policy(client: Client):
    for path in [route.path for route in ROUTES if "{" not in route.path] + ["/login", "/nowhere"]:
        answer = page(client, f"/console{path}")
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


NEED_A_KEY = {
    "/attribution/event", "/attribution/closure", "/attribution/statement", "/ingest/cursor", "/rule",
}  # fmt: skip
"""Addresses that are of one thing, which their query names."""


def test_every_page_opens_on_an_empty_store(client: Client):
    paths = [route.path for route in ROUTES if "{" not in route.path]
    assert len(paths) > 30
    for path in paths:
        expected = 404 if path in NEED_A_KEY else 200
        assert (path, page(client, f"/console{path}").status) == (path, expected)


@pytest.mark.parametrize("place", ["²", "--5", "9" * 30, "9" * 5000, "\ud83d"])
def test_a_place_in_a_list_that_is_none_is_no_bug(client: Client, place: str):
    asked = urlencode({"before": place, "after": place}, errors="replace")
    for route in ROUTES:
        path = re.sub(r"{[^}]*}", "x", route.path)
        assert page(client, f"/console{path}?{asked}").status < 500, path
    assert page(client, f"/console/ingest/run/x/batch/{quote(place, errors='replace')}").status < 500


def test_a_form_has_a_bounded_number_of_fields_and_its_ids_are_lines(client: Client):
    assert form_fields(b"group=g&event_ids=a&event_ids=&event_ids=b") == {"group": "g", "event_ids": "a\nb"}
    assert isinstance(form_fields(b"event_ids=a&" * (MAX_FORM_FIELDS + 1)), Problem)


def test_nobody_sends_more_than_a_token_to_sign_in(tmp_path: Path):
    with guarded(tmp_path) as found:
        assert form(found, "/console/login", {"token": "x" * LOGIN_BYTES}).status == 413
        assert form(found, "/console/login", {"token": "x"}).status == 401


def test_the_root_is_the_console_for_browsers_and_json_for_programs(client: Client):
    answer = client._pool.request("GET", client.url + "/", headers={"Accept": "text/html,*/*"}, redirect=False)
    assert (answer.status, answer.headers["Location"]) == (303, "/console/")
    assert client.get("/").json()["name"] == "patra"
    foreign = client._pool.request(
        "GET", client.url + "/", headers={"Accept": "text/html", "Host": "evil.example"}, redirect=False
    )
    assert foreign.status == 421


def test_a_foreign_host_or_origin_is_refused_on_loopback(client: Client):
    assert page(client, "/console/").status == 200
    answer = client._pool.request("GET", client.url + "/console/", headers={"Host": "evil.example"}, redirect=False)
    assert answer.status == 421
    shown = page(client, "/console/loops")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        sent = form(
            client,
            "/console/do/bus.pause?group=g",
            {"form_token": token, "once": "x"},
            Cookie=cookie,
            **{k.replace("-", "_"): v for k, v in headers.items()},
        )
        assert sent.status == 403


def test_an_act_needs_the_form_token_of_its_cookie(client: Client):
    shown = page(client, "/console/confirm/studio.submit")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    fields = {"chapter": "A river runs.", "once": "one"}
    assert form(client, "/console/do/studio.submit", fields, Cookie=cookie).status == 403
    assert form(client, "/console/do/studio.submit", {**fields, "form_token": "0" * 64}, Cookie=cookie).status == 403
    assert form(client, "/console/do/studio.submit", {**fields, "form_token": token}).status == 403
    assert form(client, "/console/do/studio.submit", {**fields, "form_token": token}, Cookie=cookie).status == 303


def test_a_form_that_is_sent_twice_is_one_act(client: Client):
    shown = page(client, "/console/confirm/studio.submit")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    fields = {"chapter": "A river runs.", "once": "twice", "form_token": token}
    answers = [form(client, "/console/do/studio.submit", fields, Cookie=cookie) for _ in range(2)]
    assert [answer.status for answer in answers] == [303, 303]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    acts = client.patra.db.read(lambda tx: list_acts(tx, limit=10))
    assert [act.act for act in acts] == ["studio.submit"]


def test_a_form_that_the_browser_kept_and_that_is_filled_in_anew_is_another_act(client: Client):
    shown = page(client, "/console/confirm/studio.submit")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    for chapter in ("A river runs.", "A boat comes."):
        fields = {"chapter": chapter, "once": "kept", "form_token": token}
        assert form(client, "/console/do/studio.submit", fields, Cookie=cookie).status == 303
    assert len(client.patra.db.read(lambda tx: list_acts(tx, limit=10))) == 2


def test_a_part_of_a_page_never_gets_a_whole_one(tmp_path: Path):
    """Of the session that has ended it learns where to go; of a refusal, what a dialog can show."""
    with guarded(tmp_path) as client:
        part = {"HX-Request": "true", "HX-Current-URL": f"{client.url}/console/bus/groups?x=1"}
        for path in ("/console/confirm/bus.pause?group=g", "/console/live?view=%2Fconsole%2Fbus%2Fgroups"):
            ended = client.get(path, headers=part)
            assert (ended.status, ended.data) == (401, b"")
            assert ended.headers["HX-Redirect"] == "/console/login?next=%2Fconsole%2Fbus%2Fgroups%3Fx%3D1"
        cookie = cookie_of(form(client, "/console/login", {"token": VIEWER, "next": "/console/bus"}))
        refused = client.get("/console/confirm/bus.pause?group=g", headers={**part, "Cookie": cookie})
        assert (refused.status, refused.headers["HX-Reswap"]) == (403, "innerHTML")
        assert b"This needs the role operator" in refused.data
        assert b"<html" not in refused.data


def test_the_navigation_of_a_page_after_an_act_shows_the_act(client: Client):
    shown = page(client, "/console/confirm/bus.freeze?type=task.submitted")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    fields = {"type": "task.submitted", "confirm": "task.submitted", "reason": "r", "form_token": token, "once": "f"}
    target = form(client, "/console/do/bus.freeze", fields, Cookie=cookie).headers["Location"]
    after = page(client, target, cookie).data.decode()
    assert re.search(r'data-count="frozen">.*?<span>1</span>', after)


def test_no_act_is_done_by_get(client: Client):
    assert page(client, "/console/do/studio.submit?chapter=x").status == 404
    assert client.patra.db.read(lambda tx: list_acts(tx, limit=10)) == []


def test_where_a_form_leads_back_to_is_the_console(client: Client):
    shown = page(client, "/console/confirm/bus.freeze?type=task.submitted")
    cookie, token = cookie_of(shown), hidden(shown.data.decode(), "form_token")
    fields = {"type": "task.submitted", "confirm": "task.submitted", "reason": "r", "form_token": token, "once": "b"}
    answer = form(client, "/console/do/bus.freeze", {**fields, "back": "https://evil.example/"}, Cookie=cookie)
    assert answer.headers["Location"] == "/console/?did=b"
    for outside in ("/console/../x", "/consoleevil", "//evil.test/console/", "/console\\evil", "/console/do/loop.wake"):
        assert local_path(outside) == "/console/", outside
    for inside in ("/console", "/console/bus?next=1..2", "/console/story?key=a/../b"):
        assert local_path(inside) == inside


def test_a_session_stands_for_a_token_and_its_role(tmp_path: Path):
    with guarded(tmp_path) as client:
        asked = page(client, "/console/bus?x=1")
        assert (asked.status, asked.headers["Location"]) == (303, "/console/login?next=%2Fconsole%2Fbus%3Fx%3D1")
        assert form(client, "/console/login", {"token": "wrong", "next": "/console/"}).status == 401
        made = form(client, "/console/login", {"token": VIEWER, "next": "/console/bus"})
        assert (made.status, made.headers["Location"]) == (303, "/console/bus")
        flags = made.headers["Set-Cookie"].lower()
        assert "httponly" in flags
        assert "samesite=strict" in flags
        assert "path=/console" in flags
        cookie = cookie_of(made)
        assert VIEWER not in cookie
        shown = page(client, "/console/bus", cookie).data.decode()
        assert "vera" in shown
        assert "/console/confirm/" not in shown
        token = hidden(shown, "form_token")
        acted = form(
            client,
            "/console/do/bus.freeze",
            {"type": "task.submitted", "confirm": "task.submitted", "reason": "r", "form_token": token},
            Cookie=cookie,
        )
        assert acted.status == 403
        assert client.get("/bus/groups", headers={"Cookie": cookie}).status == 401  # the cookie counts here alone
        assert form(client, "/console/logout", {"form_token": token}, Cookie=cookie).status == 303
        assert page(client, "/console/bus", cookie).status == 303


def test_what_is_streamed_to_all_of_a_role_holds_nothing_of_one_session(client: Client):
    cookie = cookie_of(page(client, "/console/studio/new"))
    url = f"{client.url}/console/live?view=%2Fconsole%2Fstudio%2Fnew"
    stream = client._pool.request("GET", url, headers={"Cookie": cookie}, preload_content=False)
    first = b""
    while b"studio.submit" not in first:
        first += stream.read1()
    stream.close()
    assert form_token(cookie.partition("=")[2]).encode() not in first


def test_the_stream_says_when_nothing_has_changed(client: Client):
    answer = client._pool.request("GET", f"{client.url}/console/live?view=%2Fconsole%2Fkeys", preload_content=False)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    text = b""
    while b"\n\n" not in text.partition(b"id: ")[2]:
        text += answer.read1()
    answer.close()
    assert text.startswith(b": open")
    assert re.search(rb"id: [0-9a-f]{16}\ndata: ", text)


def test_every_act_is_an_endpoint_of_the_table(client: Client):
    calls = Calls(client.patra, every_endpoint(client.patra))
    assert [name for name, act in ACTS.items() if not calls.has(act.method, act.template)] == []
    assert {act.level for act in ACTS.values()} == {1, 2, 3}


def test_what_an_act_needs_is_checked_by_the_server():
    assert lacking(ACTS["ingest.lift"], {"source": "s"}) == {"why": "This is needed."}
    assert lacking(ACTS["bus.replay"], {"group": "g", "confirm": "other"}) == {"confirm": "Type g to confirm."}
    assert lacking(ACTS["bus.replay"], {"group": "g", "confirm": "g"}) == {}


def test_a_session_ends_by_itself_and_holds_no_secret():
    db, clock = open_database("sqlite:///:memory:"), ManualClock()
    migrate(db, ["patra.kernel", "patra.app"])
    sessions = Sessions(db, clock)
    cookie = sessions.begin("hash of a token")
    assert sessions.token_hash(cookie) == "hash of a token"
    clock.advance(IDLE_LIMIT - HOUR)
    assert sessions.token_hash(cookie) == "hash of a token"  # and it was used now
    clock.advance(IDLE_LIMIT - HOUR)
    assert sessions.token_hash(cookie) == "hash of a token"
    clock.advance(IDLE_LIMIT)
    assert sessions.token_hash(cookie) is None
    used, began = sessions.begin("hash of a token"), clock.now()
    while clock.now() - began < AGE_LIMIT:
        assert sessions.token_hash(used) == "hash of a token"
        clock.advance(IDLE_LIMIT - HOUR)
    assert sessions.token_hash(used) is None  # however often it was used
    db.close()


def test_a_cookie_that_a_stranger_chose_is_no_session_and_signing_in_again_ends_the_one_before(tmp_path: Path):
    with guarded(tmp_path) as found:
        chosen = "patra_console=chosen-by-a-stranger"
        first = cookie_of(form(found, "/console/login", {"token": ADMIN}, Cookie=chosen))
        assert first != chosen
        assert page(found, "/console/bus", chosen).status == 303
        assert page(found, "/console/bus", first).status == 200
        second = cookie_of(form(found, "/console/login", {"token": VIEWER}, Cookie=first))
        assert [page(found, "/console/bus", one).status for one in (first, second)] == [303, 200]


def test_the_commands_of_attribution_pages_are_commands_whatever_a_stranger_wrote(client: Client):
    reference = "it's; touch x; '"
    event = said.event(
        "impression", "e-1", responseReference=reference, eventAt=format_instant(client.patra.clock.now())
    )
    sent = json.dumps(said.envelope(event, batch="b-1"))
    assert client.post("/events", body=sent, headers={"Content-Type": "application/json"}).status == 200
    key = f"{reference}|ra"
    for path, word in (
        ("settlement", "--by"),
        (f"closure?key={quote(key)}", key),
        ("event?batch=b-1&event=e-1", "e-1"),
    ):
        told = page(client, f"/console/attribution/{path}").data.decode()
        found = re.search(r'data-copy="(patra attribution [^"]*)"', told)
        assert found, path
        program, engine, name, *words = shlex.split(unescape(found[1]))
        assert (program, engine) == ("patra", "attribution")
        assert word in words
        with cli.make_context(program, [engine]) as ctx:
            group = cli.get_command(ctx, engine)
            command = group.get_command(ctx, name)
            command.make_context(name, words, parent=ctx)  # refuses an option that is not there


def test_an_act_on_all_dead_letters_is_begun_as_of_the_preview_that_was_shown_first(client: Client):
    path = "/console/confirm/bus.discard_all?group=g"
    shown = page(client, path)
    cookie, text = cookie_of(shown), shown.data.decode()
    fields = {"group": "g", "why": "w", "form_token": hidden(text, "form_token"), "once": "a"}
    first = hidden(text, "as_of")
    again = form(client, "/console/do/bus.discard_all", {**fields, "as_of": first}, Cookie=cookie)  # not confirmed
    assert again.status == 422
    assert re.findall(r'name="as_of" value="([^"]*)"', again.data.decode()) == [first]
    refused = form(client, "/console/do/bus.discard_all", {**fields, "confirm": "g", "as_of": "soon"}, Cookie=cookie)
    assert (refused.status, "is not an instant" in refused.data.decode()) == (422, True)
    done = form(client, "/console/do/bus.discard_all", {**fields, "confirm": "g", "as_of": first}, Cookie=cookie)
    assert done.headers["Location"].startswith("/console/bus/act/")


def test_the_page_of_apps_says_whether_batches_are_taken_without_a_key(client: Client, tmp_path: Path) -> None:
    batch = {"body": b"{}", "headers": {"Content-Type": "application/json"}}
    assert client.post("/events", **batch).status != 401
    assert "on this address every batch is taken" in page(client, "/console/attribution/apps").data.decode()
    with guarded(tmp_path) as found:
        assert found.post("/events", **batch).status == 401
        cookie = cookie_of(form(found, "/console/login", {"token": ADMIN}))
        assert "so no batch is taken" in page(found, "/console/attribution/apps", cookie).data.decode()
