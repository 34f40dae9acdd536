"""One thing that is not as it must be, and a page of what was looked at."""

import msgspec

MAX_SHOWN = 20
"""Findings of one kind that are listed one by one."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it must be; `key` leads to it."""

    check: str
    key: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one page looked at: how many rows, where it ended, whether there may be more, and what is wrong."""

    rows: int
    last: int
    more: bool
    findings: list[Finding]
