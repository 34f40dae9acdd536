"""What a text of a pack stands for beyond being text: each kind has a check that compiles it, and a code."""

import difflib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from cronsim import CronSim, CronSimError

from patra.ingest.expressions.cleaners import CLEANERS
from patra.ingest.expressions.functions import FUNCTIONS
from patra.ingest.vocabulary.instants import check_format
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import parse_duration, parse_instant
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern


class TextKind(msgspec.Struct, frozen=True):
    """`check` raises Invalid. Templates and paths are compiled later, when the names they may read are known."""

    check: Callable[[str], Any]
    code: Reason


def _check_instant(text: str) -> None:
    if parse_instant(text) is None:
        parse_duration(text)


def _check_cron(text: str) -> None:
    try:
        next(CronSim(text, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        raise Invalid(
            "cron_invalid", f"{text!r} is not a schedule", advice="minute hour day month weekday, such as */15 * * * *"
        ) from error


def _check_listed(names: Mapping[str, Any], what: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        if text not in names:
            near = difflib.get_close_matches(text, names, 1)
            raise Invalid(
                "unknown",
                f"there is no {what} {text!r}",
                advice=f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}",
            )

    return check


_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?")


def _check_host(text: str) -> None:
    if not _HOST.fullmatch(text):
        raise Invalid(
            "host_invalid", f"{text!r} is not a host", advice="a name without scheme or path, such as api.example.org"
        )


KINDS: dict[str, TextKind] = {
    "duration": TextKind(parse_duration, Reason.PACK_BAD_DURATION),
    "pattern": TextKind(pattern, Reason.PACK_BAD_PATTERN),
    "function": TextKind(_check_listed(FUNCTIONS, "function"), Reason.PACK_UNKNOWN_FUNCTION),
    "apply": TextKind(_check_listed(CLEANERS, "cleaner"), Reason.PACK_UNKNOWN_FUNCTION),
    "format": TextKind(check_format, Reason.PACK_BAD_FORMAT),
    "instant": TextKind(_check_instant, Reason.PACK_BAD_DURATION),
    "cron": TextKind(_check_cron, Reason.PACK_BAD_FORMAT),
    "host": TextKind(_check_host, Reason.HOST_INVALID),
}
