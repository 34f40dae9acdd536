"""One extension of each kind, for a library whose catalogue answers in CSV, wants a session and signed URLs."""

import csv
import hmac
import io
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from msgspec.structs import replace


def sign(request: Any, secrets: Mapping[str, str], now: int) -> Any:
    """Signing: takes the request as it would be sent and returns the request to send. `now` is µs since 1970, UTC."""
    stamp = now // 1_000_000
    digest = hmac.new(secrets["password"].encode(), f"{stamp}".encode(), sha256).hexdigest()
    return replace(request, url=f"{request.url}&stamp={stamp}&sig={digest}")


def login(secrets: Mapping[str, str], send: Callable[..., Any], base_url: str) -> tuple[str, float]:
    """Authentication: gives a token and for how many seconds it holds. `send` asks declared hosts only."""
    body = json.dumps({"user": secrets["user"], "password": secrets["password"]}).encode()
    answer = send("POST", f"{base_url}/login", {"Content-Type": "application/json"}, body)
    session = json.loads(answer.body)
    return session["session"], session["seconds"]


def last_id(document: Any) -> str | None:
    """Paging: returns the next token from the parsed document of a page, or None at the end."""
    items = document["items"]
    return items[-1]["id"] if len(items) == document["asked"] else None


def csv_to_json(body: bytes, content_type: str) -> bytes:
    """Decoding: turns the body as received into JSON or XML, as `response.format` says."""
    if not content_type.startswith("text/csv"):
        return body
    text = body.decode("utf-8")
    size, _, table = text.partition("\n")
    return json.dumps({"asked": int(size), "items": list(csv.DictReader(io.StringIO(table)))}).encode()
