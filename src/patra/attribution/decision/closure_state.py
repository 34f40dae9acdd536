"""The states of a closure, the ways between them (§3.8.17, §3.8.18), and the working copy of its row.

What an event does to a closure is decided in `closure_rules`.
"""

from enum import StrEnum

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.windows import WAIT_WINDOW
from patra.attribution.intake.checked_event import EventRef
from patra.attribution.intake.identity import Origin
from patra.kernel.machine import Machine


class ClosureState(StrEnum):
    OPEN = "open"
    CLOSED_SUCCESS = "closed_success"
    CLOSED_FAILURE = "closed_failure"


class ClosureTransition(StrEnum):
    IMPRESSION = "impression"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    LATE_IMPRESSION = "late_impression"


CLOSURE = Machine(
    "attribution_closure",
    version="f_closure_v1",
    initial=ClosureState.OPEN,
    edges={
        (ClosureState.OPEN, ClosureTransition.IMPRESSION): ClosureState.CLOSED_SUCCESS,
        (ClosureState.OPEN, ClosureTransition.FAILURE): ClosureState.CLOSED_FAILURE,
        (ClosureState.OPEN, ClosureTransition.TIMEOUT): ClosureState.CLOSED_FAILURE,
        (
            ClosureState.CLOSED_FAILURE,
            ClosureTransition.LATE_IMPRESSION,
        ): ClosureState.CLOSED_SUCCESS,  # only over a synthesised failure (§3.8.19)
    },
)


class Terminal(StrEnum):
    """`terminalSource`: what closed a closure."""

    IMPRESSION = "impression"
    ERROR = "error"
    TIMEOUT = "system_timeout_synthesized"


class Click(StrEnum):
    """What became of the click that a closure counts."""

    PENDING = "pending"
    BILLABLE = "billable"
    LAPSED = "lapsed"


class Closure(msgspec.Struct, kw_only=True):
    """One render attempt until it has ended, and its one click."""

    key: bytes
    closure: str
    app: str
    opened_at: int
    opener: EventRef | None
    """Whom a timeout takes its keys from; not kept once the closure is closed."""
    opener_batch: str | None = None
    state: ClosureState = ClosureState.OPEN
    source: Terminal | None = None
    ended_by: Origin | None = None
    timeout: int | None = None
    """The decision of the timeout, whose record a late impression supersedes."""
    click: Click | None = None
    clicked_by: EventRef | None = None
    """The click that waits."""
    click_batch: str | None = None
    billed: Origin | None = None
    """The click that was billed."""
    click_code: Reason | None = None
    click_due: int | None = None
    wait: int = WAIT_WINDOW
    """How long it is open at most; another only in a what-if (`Rules`)."""
    click_wait: int = WAIT_WINDOW
    stated_in: tuple[str, int] | None = None
    """App and number of the statement that counts its impression, once that fact left the store."""
    number: int = 0
    """Of its row, where the store numbers closures."""
    is_new: bool = True
    """Not in the store yet."""
    changed: bool = True
    """Not as it is in the store."""

    @property
    def next_due(self) -> int | None:
        """The next deadline: of the closure while it is open, of its click while that is pending."""
        ends = self.opened_at + self.wait if self.state is ClosureState.OPEN else None
        if self.click is Click.PENDING and self.click_due is not None:
            return self.click_due if ends is None else min(ends, self.click_due)
        return ends
