"""Why an event is not taken: a returned value, with all that is wrong with it."""

from collections.abc import Sequence

import msgspec

from patra.bus.catalogue.reasons import Reason


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why an event is not taken: a code for machines, a place (JSON pointer into the envelope) and words for people."""

    code: Reason
    place: str
    detail: str
    others: tuple["Refused", ...] = ()  # what else is wrong with it: all of it is said at once


def together(wrong: Sequence[Refused]) -> Refused:
    """The first decides; all are given."""
    first, *others = wrong
    return msgspec.structs.replace(first, others=tuple(others))
