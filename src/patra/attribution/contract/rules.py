"""The windows that decide, as one value: the live ones are frozen, others are for a what-if (`replay --rules`).

Nothing that serves events takes rules as an argument from outside: only a replay does.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.windows import FUTURE_LIMIT, WAIT_WINDOW
from patra.kernel.clock import DAY, HOUR, SECOND
from patra.kernel.errors import Invalid


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How long what is waited for; instants in microseconds."""

    name: str = "live"
    closure_wait: int = WAIT_WINDOW
    click_wait: int = WAIT_WINDOW
    future_limit: int = FUTURE_LIMIT
    windows: dict[str, int] = msgspec.field(default_factory=lambda: {kind.name: kind.window for kind in KINDS.values()})
    """The dedup window by event type: also how old an event may be when it arrives."""


LIVE_RULES = Rules()

_Seconds = Annotated[int, msgspec.Meta(ge=1, le=30 * 86_400)]
_Days = Annotated[int, msgspec.Meta(ge=1, le=365)]


class RulesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of rules in TOML; what it leaves out is as it is live."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """What the rules are called, such as the version that they may become."""
    closure_wait_seconds: _Seconds | None = None
    click_wait_seconds: _Seconds | None = None
    future_limit_hours: Annotated[int, msgspec.Meta(ge=0, le=8760)] | None = None
    dedup_window_days: dict[str, _Days] = {}


def read_rules(path: Path) -> Rules:
    """The rules of a file; raises `Invalid` that names what is wrong with it."""
    try:
        read = msgspec.toml.decode(path.read_bytes(), type=RulesFile)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid("rules_invalid", str(error), place=str(path), advice=_ADVICE) from None
    if unknown := sorted(read.dedup_window_days.keys() - KINDS.keys()):
        raise Invalid(
            "rules_invalid",
            f"{', '.join(unknown)} is not an event type",
            place=f"{path}: dedup_window_days",
            advice=_ADVICE,
        )
    return Rules(
        name=read.name,
        closure_wait=_or(read.closure_wait_seconds, SECOND, LIVE_RULES.closure_wait),
        click_wait=_or(read.click_wait_seconds, SECOND, LIVE_RULES.click_wait),
        future_limit=_or(read.future_limit_hours, HOUR, LIVE_RULES.future_limit),
        windows=LIVE_RULES.windows | {name: days * DAY for name, days in read.dedup_window_days.items()},
    )


_ADVICE = "TOML: name, closure_wait_seconds, click_wait_seconds, future_limit_hours, and a table dedup_window_days"


def _or(given: int | None, unit: int, live: int) -> int:
    return live if given is None else given * unit
