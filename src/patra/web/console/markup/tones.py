"""Which tone a state has: colour means attention, and the shape says the same to those who see no colour.

One table for every machine of the engines; a test reads the machines and fails on a state without a tone.
"""

from typing import NamedTuple


class Tone(NamedTuple):
    """A tone (CSS class), the icon that shows it, and the word where the state's own name would mislead."""

    tone: str
    icon: str
    word: str = ""


OK = Tone("ok", "ok")
DONE = Tone("done", "ok")
RUN = Tone("run", "run")
WAIT = Tone("wait", "wait")
PART = Tone("part", "part")
HOLD = Tone("hold", "hold")
WARN = Tone("warn", "warn")
BAD = Tone("bad", "bad")
OFF = Tone("off", "off")
DUPLICATE = Tone("off", "dup")

TONES: dict[str, dict[str, Tone]] = {
    "plan": {
        "DRAFT": WAIT,
        "SLICING": RUN,
        "READY": Tone("done", "ok", "sliced"),
        "PARTIAL": Tone("hold", "hold", "held back"),
        "FAILED": BAD,
        "CANCELLED": OFF,
    },
    "slice": {"PENDING": WAIT, "READY": DONE, "PARTIAL": PART, "FAILED": BAD, "CANCELLED": OFF},
    "task": {
        "QUEUED": WAIT,
        "DISPATCHED": RUN,
        "EXECUTING": RUN,
        "SUCCEEDED": DONE,
        "PARTIAL": PART,
        "FAILED": BAD,
        "CANCELLED": OFF,
    },
    "run": {
        "PLANNED": WAIT,
        "RUNNING": RUN,
        "SUCCEEDED": DONE,
        "PARTIAL": PART,
        "FAILED": BAD,
        "CANCELLED": OFF,
    },
    "batch": {
        "PLANNED": WAIT,
        "RUNNING": RUN,
        "SUCCEEDED": Tone("done", "ok", "landed"),
        "SKIPPED": OFF,
        "FAILED": BAD,
    },
    "circuit": {"CLOSED": DONE, "OPEN": WARN, "HALF_OPEN": WARN},
    "alert": {"PENDING": WARN, "FIRING": BAD, "OVER": OFF},
    "closure": {"open": WAIT, "closed_success": OK, "closed_failure": OFF},
    "click": {"pending": WAIT, "billable": DONE, "lapsed": OFF},
    "dedup": {
        "new": WAIT,
        "inflight_locked": RUN,
        "accepted_committed": DONE,
        "duplicate_inflight": DUPLICATE,
        "duplicate_committed": DUPLICATE,
        "rejected_conflict": BAD,
        "expired": OFF,
    },
    "record": {
        "new": WAIT,
        "committed": DONE,
        "duplicate": DUPLICATE,
        "conflicted": BAD,
        "rejected": BAD,
        "superseded": OFF,
    },
    "ack": {"accepted": DONE, "duplicate": DUPLICATE, "rejected": BAD, "retryable": WARN},
    "delivery": {"ready": WAIT, "held": RUN, "waiting": WARN, "done": DONE, "dead": BAD},
    "dead_letter": {"open": BAD, "replaying": RUN, "replayed": OK, "discarded": OFF},
    "group": {"active": DONE, "paused": HOLD},
    "type": {"open": DONE, "frozen": HOLD},
    "outbox": {"pending": WAIT, "delivered": DONE, "refused": BAD, "given_up": BAD},
    "film_run": {
        "submitted": WAIT,
        "queued": WAIT,
        "planning": RUN,
        "routing": RUN,
        "executing": RUN,
        "composing": RUN,
        "publishing": RUN,
        "completed": OK,
        "failed": BAD,
        "cancelled": OFF,
    },
    "job": {
        "waiting": WAIT,
        "created": WAIT,
        "claimed": RUN,
        "succeeded": DONE,
        "failed": BAD,
        "cancelled": OFF,
    },
    "work": {
        "announced": WAIT,
        "queued": WAIT,
        "leased": RUN,
        "reported": RUN,
        "done": DONE,
        "failed": BAD,
        "cancelled": OFF,
    },
    "film": {"wanted": WAIT, "leased": RUN, "published": OK, "failed": BAD, "cancelled": OFF},
    "shot": {"waiting": WAIT, "at_work": RUN, "made": DONE, "failed": BAD},
    "loop": {"running": Tone("done", "ok", "running"), "failing": WARN, "overdue": BAD, "ended": BAD},
    "health": {"ok": DONE, "warning": WARN, "broken": BAD, "off": OFF},
    "quarantine": {"OPEN": WARN, "RESOLVED": DONE, "DISMISSED": OFF},
}


def tone_of(machine: str, state: str) -> Tone:
    """The tone of a state; one that nobody has given a tone is shown as off, with its own name."""
    found = TONES.get(machine, {}).get(state, OFF)
    return found if found.word else found._replace(word=state)
