"""A request whose body still streams in goes in, its bytes come out, or a refusal as soon as they are too many."""

from starlette.requests import ClientDisconnect, Request

from patra.web.problem import Problem


async def read_body(request: Request, limit: int) -> bytes | Problem:
    """The whole body, at most `limit` bytes of it, whatever its Content-Length says."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        return too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                return too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        return Problem(400, "body_incomplete", "The client went away before the body was complete")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(limit: int) -> Problem:
    return Problem(
        413,
        "body_too_large",
        "The request body is too large",
        f"At most {limit} bytes are taken.",
        {"limit": limit},
        {"Connection": "close"},  # the rest of the body is not read
    )
