"""A code of the specification with one line on when it is given.

An engine's `reasons.py` holds one class of them:

    class R(Reason):
        ACCEPTED = "f_accepted", "the event is new and passes every check"

A reason is text (`R.ACCEPTED == "f_accepted"`), is encoded and stored as its code, and explains itself: `.text`.
"""

from enum import StrEnum
from typing import Self


class ReasonCode(StrEnum):
    """Base of every engine's reasons: the code is the value, `text` says when it is given."""

    _value_: str
    text: str

    __hash__ = str.__hash__  # that of an enum is Python code; reasons are keys on hot paths

    def __new__(cls, code: str, text: str) -> Self:
        if not code or not text:
            raise ValueError(f"{cls.__name__}: a reason has a code and one line on when it is given")
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member

    def __init_subclass__(cls) -> None:
        # An enum would make the second name of a code an alias of the first, without a word.
        aliases = [name for name, member in cls.__members__.items() if member.name != name]
        if aliases:
            raise TypeError(f"{cls.__name__}: codes given twice, the second time as {', '.join(aliases)}")
