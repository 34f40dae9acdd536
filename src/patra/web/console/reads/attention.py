"""How many things need a person, for the navigation: read at most every two seconds."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from patra.app.access.actor import Actor
from patra.app.wiring import Patra
from patra.bus.consuming.dead_letter import DeadLetterState
from patra.bus.store import dead_letters
from patra.kernel import outbox
from patra.kernel.errors import PatraError
from patra.web.console.calls import Calls, Refusal

FRESH_S = 2.0
MAX_COUNTED = 1000


class Counts:
    """The counts of one process, shared by all pages."""

    def __init__(self, read: Callable[[Actor], dict[str, int]]) -> None:
        self._read = read
        self._lock = Lock()
        self._begun_at = -FRESH_S
        self._known: dict[str, int] = {}

    def now(self, actor: Actor, not_before: float = 0.0) -> dict[str, int]:
        """At most two seconds old, and not read before an instant of `monotonic`: what follows an act shows it."""
        with self._lock:
            now = monotonic()
            if self._begun_at < max(now - FRESH_S, not_before):
                self._known, self._begun_at = self._read(actor), now
            return self._known


def read_counts(calls: Calls, actor: Actor) -> dict[str, int]:
    patra, ask = calls.patra, calls.ask
    reads: dict[str, Callable[[], int]] = {
        "alerts": lambda: sum(
            alert["state"] == "FIRING" and not alert["acknowledged"] and not alert["silenced"]
            for alert in ask(actor, "GET", "/ingest/alerts")["alerts"]
        ),
        "halts": lambda: sum(
            halt["kind"] == "BREAKER"
            for source in ask(actor, "GET", "/ingest/sources")["sources"]
            for halt in source["halts"]
        ),
        "dead_letters": lambda: dead_letters_waiting(calls)[DeadLetterState.OPEN],
        "frozen": lambda: len(ask(actor, "GET", "/bus/health")["frozen"]),
        "loops": lambda: sum(1 for state in patra.supervisor.states() if state.trouble),
        "outbox": lambda: sum(n for (_, state), n in _backlog(patra).items() if state != "pending"),
    }
    found: dict[str, int] = {}
    for name, read in reads.items():
        try:
            found[name] = read()
        except (Refusal, PatraError):  # a count is a help, not the page
            found[name] = 0
    return found


def dead_letters_waiting(calls: Calls) -> dict[DeadLetterState, int]:
    """Counted by themselves: the causes that HTTP lists are the most frequent ones, and dear to put together."""
    return calls.patra.db.read(dead_letters.waiting)


def _backlog(patra: Patra) -> dict[tuple[str, str], int]:
    return patra.db.read(lambda tx: outbox.backlog_up_to(tx, MAX_COUNTED))
