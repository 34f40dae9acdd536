"""The three simulated providers behind one local HTTP server, with their rate limits, and troubles on purpose.

with serve(library()) as providers:
    text = local_pack("pubmed", providers.url)      # the pack of the distribution, pointed at the simulation
"""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import fill
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra.demo import providers_crossref, providers_openalex, providers_pubmed
from patra.demo.providers import TOPICS, Library, library
from patra.demo.providers_crossref import Crossref
from patra.demo.providers_openalex import OpenAlex
from patra.demo.providers_pubmed import Reply
from patra.ingest.packs import bundled
from patra.kernel.errors import Invalid

PORT = 8650
LIMITS = {"pubmed": 3, "crossref": 5, "openalex": 10}
"""Requests a second without a key, as the providers document them; more get a 429."""

_HOSTS = {
    "pubmed": "https://eutils.ncbi.nlm.nih.gov",
    "crossref": "https://api.crossref.org",
    "openalex": "https://api.openalex.org",
}


class Trouble:
    """What goes wrong on purpose. Counted in requests, so that a run with the same requests has the same troubles."""

    def __init__(self, throttle_every: int = 0, timeout_every: int = 0) -> None:
        self.throttle_every = throttle_every
        self.timeout_every = timeout_every

    def strikes(self, source: str, number: int) -> Reply | None:
        if self.throttle_every and number % self.throttle_every == 0:
            return too_many(source)
        if self.timeout_every and number % self.timeout_every == 0:
            return providers_pubmed.backend_timeout() if source == "pubmed" else Reply(504, {}, b"")
        return None


def too_many(source: str) -> Reply:
    """The provider's way of saying 429."""
    match source:
        case "pubmed":
            return providers_pubmed.throttling_reply(LIMITS["pubmed"])
        case "crossref":
            return providers_crossref.throttling_reply()
        case _:
            return providers_openalex.throttling_reply()


class Providers:
    """The three, and what was asked of them: `asked` counts requests by source, `refused` the 429 among them."""

    def __init__(
        self,
        papers: Library,
        *,
        limits: Mapping[str, int] | None = None,
        trouble: Trouble | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.library = papers
        self.trouble = trouble or Trouble()
        self.url = ""
        self.asked: dict[str, int] = dict.fromkeys(LIMITS, 0)
        self.refused: dict[str, int] = dict.fromkeys(LIMITS, 0)
        self.crossref = Crossref(papers, clock)
        self._openalex = OpenAlex(papers)
        self._limits = dict(limits if limits is not None else LIMITS)
        self._clock = clock
        self._recent: dict[str, list[float]] = {source: [] for source in LIMITS}
        self._lock = threading.Lock()

    def answer(self, path: str, params: Mapping[str, str], *, url_length: int = 0) -> Reply:
        """`/pubmed/entrez/…`, `/crossref/works…` or `/openalex/works…`."""
        source, _, rest = path.lstrip("/").partition("/")
        if source not in LIMITS:
            return Reply(404, {"Content-Type": "text/plain"}, b"no such provider")
        with self._lock:
            self.asked[source] += 1
            number = self.asked[source]
            struck = too_many(source) if self._too_fast(source, params) else self.trouble.strikes(source, number)
            if struck is not None:
                self.refused[source] += struck.status == 429
                return struck
            match source:
                case "pubmed":
                    return providers_pubmed.answer(self.library, f"/{rest}", params, url_length=url_length)
                case "crossref":
                    return self.crossref.answer(f"/{rest}", params)
                case _:
                    return self._openalex.answer(f"/{rest}", params)

    def _too_fast(self, source: str, params: Mapping[str, str]) -> bool:
        most = self._limits.get(source, 0)
        if not most:
            return False
        if source == "pubmed" and "api_key" in params:
            most = 10
        now = self._clock()
        recent = self._recent[source] = [at for at in self._recent[source] if now - at < 1.0]
        if len(recent) >= most + 1:  # the networks between us bunch requests, so the real ones are not exact either
            return True
        recent.append(now)
        return False


@contextmanager
def serve(papers: Library, *, host: str = "127.0.0.1", port: int = 0, **options: Any) -> Generator[Providers]:
    """The providers on a local address until the block ends."""
    providers = Providers(papers, **options)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
            self._answer(dict(parse_qsl(body, keep_blank_values=True)))

        def _answer(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            params = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **form}
            reply = providers.answer(parts.path, params, url_length=len(self.path))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the standard library's
            """Say nothing: what was asked is counted."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="simulated providers", daemon=True)
    thread.start()
    providers.url = f"http://{host}:{server.server_address[1]}"
    try:
        yield providers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def local_pack(source: str, url: str) -> str:
    """The pack of the distribution, pointed at the simulation; nothing else in it is changed."""
    host = _HOSTS.get(source)
    if host is None:
        raise Invalid("pack_unknown", f"{source!r} is not simulated", advice=f"one of {', '.join(_HOSTS)}")
    here = f"baseUrl: {url}/{source}\n    allowHttp: true"
    text = bundled.text(source)
    if text.count(f"baseUrl: {host}\n") != 1:
        raise Invalid("pack_changed", f"the pack of {source} no longer names {host} once")
    return text.replace(f"baseUrl: {host}", here)


def without_credential(text: str) -> str:
    """The pack without its credential: the simulation needs none, and a key of the provider must not be sent to it."""
    before, _, rest = text.partition("\ncredentials:\n")
    _, found, after = rest.partition("\ndefaults:\n")
    lines = after.splitlines(keepends=True)
    if not found or sum(line.startswith("  auth: ") for line in lines) != 1:
        raise AssertionError("the pack has no credential for all of its endpoints")
    return f"{before}\ndefaults:\n{''.join(line for line in lines if not line.startswith('  auth: '))}"


def _free(port: int) -> int:
    """The port, or any other where that one is taken: the packs name whatever it is."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return port


def main() -> None:
    """`python -m patra.demo.providers_http [PORT]`: serve until Ctrl-C, with packs for it in the present folder."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else _free(PORT)
    if port == 0 and (pack := Path("pubmed.yaml")).is_file() and f":{PORT}/" in pack.read_text("utf-8"):
        sys.exit(
            f"port {PORT} is in use, and the packs of this folder name it: a simulation may be running already. "
            "Use that one, or end it first."
        )
    start = datetime.now(UTC).date() - timedelta(days=365)
    papers = library(365, start=start, crowded={start + timedelta(days=200): 400})
    with serve(papers, port=port, trouble=Trouble(throttle_every=30, timeout_every=43)) as providers:
        for source in LIMITS:
            Path(f"{source}.yaml").write_text(without_credential(local_pack(source, providers.url)), encoding="utf-8")
        sys.stdout.write(
            f"{len(papers.papers)} papers of the last year at {providers.url}\n"
            f"paths: {', '.join(f'/{source}' for source in LIMITS)}\n"
            f"{fill('topics: ' + ', '.join(TOPICS), 80, subsequent_indent='  ')}\n"
            f"packs: {', '.join(f'{source}.yaml' for source in LIMITS)}\nCtrl-C ends it\n"
        )
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
