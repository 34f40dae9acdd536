"""A request's way through the shell, on a real server: shapes, bounds of size and time, refusals, bugs, the audit."""

import socket
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any

import msgspec
import pytest
import structlog

from patra.app.access.actor import Role
from patra.app.access.audit import AuditEntry, list_acts
from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import (
    Fenced,
    IllegalMove,
    Invalid,
    MigrationMismatch,
    PatraError,
    Permanent,
    StoreBusy,
    StoreUnavailable,
)
from patra.kernel.telemetry import setup_logging
from patra.web.auth import gate
from patra.web.endpoint import Endpoint, Reply, Request
from patra.web.problem import Problem, problem_of
from tests.unit.web.served import Client, problem, served, web_settings


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    count: int = 1


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    size: int = 10


class Hold:
    """A handler that runs until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()

    def __call__(self, request: Request) -> Receipt:
        self.entered.set()
        self.go.wait(60)
        return Receipt(text="late")


def order(request: Request) -> Receipt:
    body: Order = request.body
    return Receipt(text=f"{body.count} {body.name}")


def bug(request: Request) -> Receipt:
    raise KeyError("the bug's own words")


def endpoint(method: str, path: str, handler: Any, **more: Any) -> Endpoint:
    return Endpoint(
        method=method, path=path, handler=handler, role=more.pop("role", None), summary="An example.", **more
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    table = [
        endpoint("POST", "/orders", order, request=Order, response=Receipt),
        endpoint("POST", "/pages", lambda r: Receipt(text=f"{r.body.size}"), request=Page, response=Receipt),
        endpoint("GET", "/pages/{book}", lambda r: Receipt(text=f"{r.path['book']} {r.query.size}"), query=Page),
        endpoint("GET", "/bytes", lambda r: b"\x00\xff", media="application/octet-stream"),
        endpoint("GET", "/nothing", lambda r: None),
        endpoint(
            "GET", "/teapot", lambda r: Problem(418, "teapot", "Short and stout", "", {"spout": 1}, {"X-Tea": "y"})
        ),
        endpoint("GET", "/created", lambda r: Reply(Receipt(text="made"), 201, {"Location": "/x"})),
        endpoint("GET", "/bug", bug),
    ]
    with served(web_settings(max_body_bytes=100), table) as running:
        yield running


JSON = {"Content-Type": "application/json"}


def test_a_body_is_decoded_and_a_struct_answers(client: Client) -> None:
    response = client.post("/orders", body=b'{"name":"tea","count":2}', headers=JSON)
    assert (response.status, response.json()) == (200, {"text": "2 tea"})
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_body_whose_fields_all_have_defaults_may_be_left_out(client: Client) -> None:
    assert client.post("/pages").json() == {"text": "10"}
    assert client.post("/pages", body=b'{"size":3}', headers=JSON).json() == {"text": "3"}
    described = client.get("/openapi.json").json()["paths"]
    assert described["/pages"]["post"]["requestBody"]["required"] is False
    assert described["/orders"]["post"]["requestBody"]["required"] is True


def test_path_and_query_are_decoded(client: Client) -> None:
    assert client.get("/pages/b%20c?size=3").json() == {"text": "b c 3"}


def test_bytes_nothing_and_a_reply_are_answers_too(client: Client) -> None:
    assert client.get("/bytes").data == b"\x00\xff"
    assert client.get("/bytes").headers["Content-Type"] == "application/octet-stream"
    assert (client.get("/nothing").status, client.get("/nothing").data) == (204, b"")
    created = client.get("/created")
    assert (created.status, created.headers["Location"], created.json()) == (201, "/x", {"text": "made"})


def test_a_returned_problem_is_the_answer_with_its_extra_members(client: Client) -> None:
    response = client.get("/teapot")
    assert problem(response)["code"] == "teapot"
    assert (response.json()["spout"], response.headers["X-Tea"]) == (1, "y")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [
        ("GET", "/nowhere", None, {}, 404, "path_unknown"),
        ("GET", "/orders/", None, {}, 404, "path_unknown"),
        ("DELETE", "/orders", None, {}, 405, "method_not_allowed"),
        ("PROPFIND", "/orders", None, {}, 405, "method_not_allowed"),
        ("POST", "/orders", b"{", JSON, 400, "body_malformed"),
        ("POST", "/orders", b'{"name":"\xff"}', JSON, 400, "body_malformed"),
        ("POST", "/orders", b"", JSON, 400, "body_malformed"),
        ("POST", "/pages", b" ", JSON, 400, "body_malformed"),
        ("POST", "/pages", b"x", {}, 415, "media_type_unsupported"),
        ("POST", "/orders", b"{}", JSON, 422, "body_invalid"),
        ("POST", "/orders", b'{"name":"x","size":1}', JSON, 422, "body_invalid"),
        ("POST", "/orders", b'{"name":"x"}', {"Content-Type": "text/plain"}, 415, "media_type_unsupported"),
        ("POST", "/orders", b'{"name":"x"}', {}, 415, "media_type_unsupported"),
        ("GET", "/pages/x?size=many", None, {}, 400, "query_invalid"),
        ("GET", "/pages/x%00", None, {}, 400, "parameter_invalid"),
        ("GET", "/health", None, {"Host": "evil.example"}, 421, "host_not_allowed"),
        ("GET", "/nowhere", None, {"Host": "evil.example"}, 421, "host_not_allowed"),
        ("POST", "/orders", b"{}", {"Origin": "http://evil.example"}, 403, "cross_origin_refused"),
    ],
)
def test_every_refusal_is_a_problem_with_a_stable_code(
    client: Client, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int, code: str
) -> None:
    response = client(method, path, body=body, headers=headers)
    assert (response.status, problem(response)["code"]) == (status, code)


def test_the_answer_to_a_wrong_method_says_which_are_right(client: Client) -> None:
    assert client("DELETE", "/health").headers["Allow"] == "GET, HEAD, OPTIONS"
    options = client("OPTIONS", "/orders")
    assert (options.status, options.headers["Allow"]) == (204, "OPTIONS, POST")


def test_head_is_get_without_a_body(client: Client) -> None:
    head = client("HEAD", "/ready")
    assert (head.status, head.data) == (200, b"")


def test_a_body_over_the_bound_is_refused_by_its_declared_and_by_its_real_length(client: Client) -> None:
    fits = b'{"name":"' + b"x" * 89 + b'"}'
    assert len(fits) == 100
    assert client.post("/orders", body=fits, headers=JSON).status == 200

    over = client.post("/orders", body=fits + b" ", headers=JSON)
    assert (over.status, problem(over)["code"], over.json()["limit"]) == (413, "body_too_large", 100)
    chunked = client.post("/orders", body=iter([fits, b" "]), headers=JSON)
    assert (chunked.status, problem(chunked)["code"]) == (413, "body_too_large")


def test_a_bug_is_a_500_whose_id_the_log_explains(client: Client) -> None:
    written = StringIO()
    setup_logging(format="json", stream=written)
    response = client.get("/bug")
    structlog.reset_defaults()

    found = problem(response)
    assert (response.status, found["code"]) == (500, "internal_error")
    assert "own words" not in response.data.decode()
    lines = [msgspec.json.decode(line) for line in written.getvalue().splitlines()]
    (line,) = [line for line in lines if line["event"] == "http_internal_error"]
    assert line["error_id"] == found["error_id"]
    assert "the bug's own words" in line["exception"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Invalid("x_bad", "wrong", place="$.a", advice="mend it"), 400),
        (StoreUnavailable("store_unavailable", "gone"), 503),
        (StoreBusy("store_busy", "busy"), 503),
        (MigrationMismatch("migration_changed", "changed"), 503),
        (Fenced("fenced", "late"), 409),
        (IllegalMove("illegal", "no edge"), 409),
        (Permanent("x_never", "no"), 422),
    ],
)
def test_an_engines_error_keeps_its_code_and_gets_a_status(error: PatraError, status: int) -> None:
    answer = problem_of(error)
    assert (answer.status, answer.code) == (status, error.code)
    assert ("Retry-After" in answer.headers) is isinstance(error, (StoreUnavailable, StoreBusy))


def test_an_error_raised_by_a_handler_is_answered_as_its_problem() -> None:
    def fails(request: Request) -> None:
        raise Invalid("x_bad", "wrong", place="$.a", advice="mend it")

    with served(endpoints=[endpoint("GET", "/fails", fails)]) as client:
        body = problem(client.get("/fails"))
    assert (body["code"], body["detail"], body["advice"]) == ("x_bad", "$.a: wrong", "mend it")


def test_a_request_that_takes_too_long_is_answered_and_warns_that_it_may_still_happen() -> None:
    slow, slow_write = Hold(), Hold()
    table = [endpoint("GET", "/slow", slow), endpoint("POST", "/slow", slow_write)]
    with served(web_settings(request_seconds=0.2), table) as client:
        read, write = client.get("/slow"), client.post("/slow")
        slow.go.set()
        slow_write.go.set()
    assert (read.status, problem(read)["code"]) == (504, "request_timed_out")
    assert (write.status, problem(write)["code"]) == (504, "request_timed_out")
    assert "may still be carried out" in write.json()["detail"]
    assert slow.entered.is_set()


def test_a_request_that_no_thread_was_free_for_has_not_been_carried_out() -> None:
    first, second = Hold(), Hold()
    table = [endpoint("GET", "/first", first, seconds=60), endpoint("POST", "/second", second)]
    with served(web_settings(threads=1, request_seconds=0.2), table) as client:
        holding = threading.Thread(target=client.get, args=("/first",))
        holding.start()
        assert first.entered.wait(30)
        response = client.post("/second")
        alive = client.get("/health")
        first.go.set()
        holding.join()
        client.get("/ready")  # the only thread is free again and would by now have taken the second, had it been kept
    assert (response.status, problem(response)["code"]) == (503, "server_busy")
    assert response.headers["Retry-After"] == "1"
    assert alive.status == 200
    assert not second.entered.is_set()


def test_a_body_that_does_not_arrive_is_not_waited_for_longer_than_the_bound() -> None:
    table = [endpoint("POST", "/orders", order, request=Order)]
    with served(web_settings(request_seconds=0.2), table) as client:
        host, _, port = client.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            head = b"POST /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b'Content-Length: 20\r\n\r\n{"na')
            answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_timed_out"' in answer


TOKENS = {"viewer": "v" * 32, "operator": "o" * 32, "admin": "a" * 32}


def acts(client: Client) -> list[AuditEntry]:
    return client.patra.db.read(lambda tx: list_acts(tx, limit=10))


def test_every_act_leaves_an_audit_row_with_its_actor_and_a_refused_one_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for role, token in TOKENS.items():
        monkeypatch.setenv(f"TOKEN_{role.upper()}", token)

    def in_its_transaction(request: Request) -> Receipt:
        return request.act(lambda tx: Receipt(text="done"), request.path["key"], why="because")

    def by_itself(request: Request) -> Receipt | Problem:
        return Receipt(text="done") if request.path["key"] == "yes" else Problem(409, "no", "No")

    def fails(request: Request) -> Receipt:
        return request.act(lambda tx: 1 // 0, "never")  # pyright: ignore[reportReturnType]

    table = [
        endpoint("POST", "/a/{key}", in_its_transaction, role=Role.OPERATOR, act="example.a"),
        endpoint("POST", "/b/{key}", by_itself, role=Role.OPERATOR, act="example.b"),
        endpoint("POST", "/c", fails, role=Role.OPERATOR, act="example.c"),
    ]
    settings = web_settings(
        viewer_tokens=("env:TOKEN_VIEWER",),
        operator_tokens=("olga=env:TOKEN_OPERATOR",),
        admin_tokens=("env:TOKEN_ADMIN",),
    )
    with served(settings, table) as client:
        answers = [
            client.post("/a/k1", token=TOKENS["operator"]).status,
            client.post("/a/k1", token=TOKENS["viewer"]).status,
            client.post("/a/k1").status,
            client.post("/b/yes", token=TOKENS["admin"]).status,
            client.post("/b/no", token=TOKENS["admin"]).status,
            client.post("/c", token=TOKENS["operator"]).status,
        ]
        rows = acts(client)
        over_http = client.get("/audit?act=example.a", token=TOKENS["admin"]).json()
        forbidden = client.get("/audit", token=TOKENS["operator"]).status

    assert answers == [200, 403, 401, 200, 409, 500]
    admin = gate(WebSettings(admin_tokens=("env:TOKEN_ADMIN",))).tokens[0].actor.name
    assert [(row.actor, row.role, row.act, row.subject, row.detail) for row in rows] == [
        (admin, "admin", "example.b", "yes", {}),
        ("olga", "operator", "example.a", "k1", {"why": "because"}),
    ]
    assert [act["actor"] for act in over_http["acts"]] == ["olga"]
    assert forbidden == 403


def test_an_endpoint_that_writes_for_a_role_must_name_its_act() -> None:
    with pytest.raises(ValueError, match="must name its act"):
        endpoint("POST", "/x", order, role=Role.ADMIN)


def test_an_endpoint_has_one_handler() -> None:
    with pytest.raises(ValueError, match="either a handler or a raw handler"):
        Endpoint(method="GET", path="/x", role=None, summary="Nothing.")
