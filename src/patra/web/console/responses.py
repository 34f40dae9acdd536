"""Answers of the console: HTML under a strict policy, compressed where the browser takes it."""

import gzip

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Vary": "Cookie, HX-Request, Accept-Encoding",
}
HTML = "text/html; charset=utf-8"
COMPRESS_FROM_BYTES = 1024


def html(request: Request, text: str, status: int = 200) -> Response:
    content = text.encode()
    if len(content) >= COMPRESS_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(gzip.compress(content, 5), status, HEADERS | {"Content-Encoding": "gzip"}, HTML)
    return Response(content, status, HEADERS, HTML)


def is_part(request: Request) -> bool:
    """Whether htmx asks, for a part of a page that is open."""
    return request.headers.get("hx-request") == "true"


def part(request: Request, text: str, status: int = 200) -> Response:
    """A part of a page. The header tells it from what a proxy in between may answer, which must not stand in ours."""
    response = html(request, text, status)
    response.headers["HX-Reswap"] = "innerHTML"
    return response


def redirect_page(target: str) -> Response:
    """For a part of a page: the page goes elsewhere."""
    return Response(b"", 401, HEADERS | {"HX-Redirect": target})


def download(name: str, content: bytes) -> Response:
    """A file to keep. `name` is one of ours: it has no quote in it."""
    named = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, 200, HEADERS | named, "application/octet-stream")


def redirect(target: str) -> Response:
    return RedirectResponse(target, 303, HEADERS)
