"""Live pages: one stream for each open page, which sends the page's content again when it has changed.

A message is the HTML of the page's main part, its id the hash of it; who comes back with `Last-Event-ID` gets nothing
until something differs. What is rendered is shared between the pages of one address and role, and made at most once a
second; but a page is never sent what was read before it connected: it may know better already.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from threading import Lock
from time import monotonic

import msgspec

MAX_STREAMS = 20
MAX_FRAGMENTS = 100
LOOK_INTERVAL_S = 2.0
TICK_S = 0.25
SHARE_S = 1.0
PING_S = 15.0


class Fragment(msgspec.Struct, frozen=True):
    """A rendered main part and its hash; what it says was read after `begun_at`."""

    begun_at: float
    digest: str
    text: str


class Live:
    """The streams of this process."""

    def __init__(self) -> None:
        self.streams = 0
        self.stopping = False
        self._lock = Lock()
        self._fragments: OrderedDict[tuple[str, str], Fragment] = OrderedDict()

    @property
    def full(self) -> bool:
        return self.streams >= MAX_STREAMS

    def fragment(self, key: tuple[str, str], made: Callable[[], str], connected_at: float) -> Fragment:
        """The content of an address for a role: read at most a second ago, and not before the page connected.

        A page that shows what an act has changed would otherwise be set back to how it was before.
        """
        now = monotonic()
        with self._lock:
            known = self._fragments.get(key)
        if known is not None and known.begun_at >= max(now - SHARE_S, connected_at):
            return known
        text = made()
        found = Fragment(now, sha256(text.encode()).hexdigest()[:16], text)
        with self._lock:
            known = self._fragments.get(key)
            if known is None or known.begun_at < found.begun_at:
                self._fragments[key] = found
            if len(self._fragments) > MAX_FRAGMENTS:
                self._fragments.popitem(last=False)
        return found

    async def messages(self, look: Callable[[], Fragment | None], last: str) -> AsyncGenerator[bytes]:
        """Server-sent events until the client goes away, the session ends (`look` gives None), or the server stops."""
        self.streams += 1
        try:
            yield b": open\n\n"  # the page knows at once that it is connected; when it comes back, its own settings say
            quiet = monotonic()
            while not self.stopping:
                found = await asyncio.to_thread(look)
                if found is None:
                    yield b"event: signed-out\ndata: {}\n\n"
                    return
                if found.digest != last:
                    last, quiet = found.digest, monotonic()
                    yield message(found)
                elif monotonic() - quiet > PING_S:
                    quiet = monotonic()
                    yield b": alive\n\n"
                until = monotonic() + LOOK_INTERVAL_S
                while not self.stopping and monotonic() < until:  # noqa: ASYNC110  a signal handler sets the flag
                    await asyncio.sleep(TICK_S)
        finally:
            self.streams -= 1


def message(fragment: Fragment) -> bytes:
    lines = "".join(f"data: {line}\n" for line in fragment.text.splitlines())
    return f"id: {fragment.digest}\n{lines}\n".encode()
