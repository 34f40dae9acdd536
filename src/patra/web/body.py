"""Turns a request whose body still streams in into its bytes, or a refusal where they are too many.

What is too much is not kept, but read for a while: a client that is cut off while it still writes sees a connection
that was reset, and not the answer, and sends the same again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.requests import ClientDisconnect, Request

from patra.web.problem import Problem

LINGER_BYTES = 16 * 1024 * 1024
LINGER_SECONDS = 5.0
"""How much of a body that is refused is read, and for how long."""


async def read_body(request: Request, limit: int) -> bytes | Problem:
    """The whole body, at most `limit` bytes of it, whatever its Content-Length says."""
    declared, stream = request.headers.get("content-length", ""), request.stream()
    if declared.isdigit() and int(declared) > limit:
        if "expect" not in request.headers and int(declared) <= LINGER_BYTES:  # who asks before has sent nothing yet
            await _discard(stream)
        return too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in stream:
            size += len(part)
            if size > limit:
                await _discard(stream)
                return too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        return Problem(400, "body_incomplete", "The client went away before the body was complete")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _discard(stream: AsyncIterator[bytes]) -> None:
    left = LINGER_BYTES
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(LINGER_SECONDS):
            async for part in stream:
                left -= len(part)
                if left < 0:
                    return


def too_large(limit: int) -> Problem:
    return Problem(
        413,
        "body_too_large",
        "The request body is too large",
        f"At most {limit} bytes are taken.",
        {"limit": limit},
        {"Connection": "close"},  # more of the body is not read
    )
