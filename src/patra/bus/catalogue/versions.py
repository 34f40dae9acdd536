"""Versions (`1.2`) and ranges of versions (`>=1,<2`) that can be compared (C§4, B1)."""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import msgspec

_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\Z")
_BOUND = re.compile(r"\s*(>=|<=|==|>|<|=)?\s*(0|[1-9][0-9]{0,8})(?:\.(0|[1-9][0-9]{0,8}))?\s*\Z")
_COMPARE: dict[str, Callable[["Version", "Version"], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Version(NamedTuple):
    """`major.minor`: a greater minor adds optional fields, a greater major breaks (B4)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version | None:
    """`1.2` as a version; None when the text is not `major.minor`."""
    match = _VERSION.match(text)
    return Version(int(match[1]), int(match[2])) if match else None


class VersionRange(msgspec.Struct, frozen=True):
    """The versions a consumer can read, as it wrote them: bounds joined by commas, all of which hold."""

    text: str
    bounds: tuple[tuple[str, int, int | None], ...]

    def __contains__(self, version: Version) -> bool:
        return all(_holds(op, Version(major, minor or 0), minor is None, version) for op, major, minor in self.bounds)

    def majors(self, known: frozenset[int] | set[int]) -> set[int]:
        """Which of the known major versions have a version in this range."""
        edges = [minor for _, _, minor in self.bounds if minor is not None]
        tried = {0, *edges, *(minor + 1 for minor in edges)}
        return {major for major in known if any(Version(major, minor) in self for minor in tried)}


def _holds(op: str, bound: Version, whole: bool, version: Version) -> bool:
    if op in {"==", "="}:
        return version.major == bound.major if whole else version == bound
    if whole and op in {"<=", ">"}:  # `<=1` takes all of 1.x, `>1` begins at 2.0
        return version.major <= bound.major if op == "<=" else version.major > bound.major
    return _COMPARE[op](version, bound)


@lru_cache(maxsize=1024)
def parse_range(text: str) -> VersionRange | None:
    """`>=1,<2`, `==1.2`, `1` (any 1.x) as a range; None when the text is none."""
    bounds: list[tuple[str, int, int | None]] = []
    for part in text.split(","):
        if (match := _BOUND.match(part)) is None:
            return None
        bounds.append((match[1] or "==", int(match[2]), int(match[3]) if match[3] is not None else None))
    return VersionRange(text, tuple(bounds))
