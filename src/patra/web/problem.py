"""Turns refusals and errors into `application/problem+json` (RFC 9457) with a stable `code`."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from patra.kernel.errors import (
    Fenced,
    IllegalMove,
    Invalid,
    MigrationMismatch,
    PatraError,
    StoreCorrupt,
    Transient,
)

MEDIA = "application/problem+json"
RETRY_SECONDS = "1"
SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused: machines match on `code`, people read the rest. `extra` adds members to the body."""

    status: int
    code: str
    title: str
    detail: str = ""
    extra: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is not a success (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str = ""


def problem_response(problem: Problem) -> Response:
    headers = SAFE_HEADERS | dict(problem.headers)
    return Response(problem_content(problem), problem.status, headers, media_type=MEDIA)


def problem_content(problem: Problem) -> bytes:
    """The body of the answer."""
    body = ProblemBody(title=problem.title, status=problem.status, code=problem.code, detail=problem.detail)
    return msgspec.json.encode({**msgspec.structs.asdict(body), **problem.extra})


def problem_of(error: PatraError) -> Problem:
    """What an engine's error means to the one who asked."""
    match error:
        case Invalid():
            detail = ": ".join(filter(None, (error.place, error.detail)))
            extra = {"advice": error.advice} if error.advice else {}
            return Problem(400, error.code, "The request breaks a rule", detail, extra)
        case Transient():
            headers = {"Retry-After": RETRY_SECONDS}
            return Problem(503, error.code, "Not now: the same request may succeed later", error.detail, {}, headers)
        case StoreCorrupt():
            return Problem(500, error.code, "The store is damaged", error.detail)
        case MigrationMismatch():
            return Problem(503, error.code, "The store is not of this version", error.detail)
        case Fenced() | IllegalMove():
            return Problem(409, error.code, "The state has moved on", error.detail)
        case _:
            return Problem(422, error.code, "The request cannot be done", error.detail)
