"""What the story of a key consists of: instants are µs in an `Entry` and RFC 3339 in a `StoryEntry` of the answer."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from patra.kernel.db import Tx


class Engine(StrEnum):
    ATTRIBUTION = "attribution"
    INGEST = "ingest"
    BUS = "bus"
    STUDIO = "studio"


class Shape(StrEnum):
    """The kind of thing that an entry describes."""

    IN = "in"
    RULE = "rule"
    WRITTEN = "written"
    OUT = "out"
    ACT = "act"


class Outcome(StrEnum):
    FOUND = "found"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"


class Related(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Another key, and how it belongs to this one."""

    relation: str
    kind: str
    key: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, as an engine recorded it. `id` is the same whenever the same thing is found."""

    id: str
    at: int
    engine: Engine
    shape: Shape
    what: str
    text: str
    state: str = ""
    code: str = ""
    code_text: str = ""
    cause: str = ""
    """Which of the causes that `code` stands for it was, where the engine knows."""
    rule_version: str = ""
    paragraph: str = ""
    detail: dict[str, Any] = {}
    related: list[Related] = []


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still to happen; `due` is None where it waits for a person or an event."""

    engine: Engine
    what: str
    text: str
    due: int | None
    state: str = ""
    related: list[Related] = []


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a key may stand for. Candidates with the same `subject` are one thing under several names."""

    engine: Engine
    kind: str
    key: str
    label: str
    count: int = 1
    subject: str = ""


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine knows about a key; `follow` are keys of other engines that belong into the same story."""

    kinds: list[str]
    """The kinds of key that were looked for."""
    candidates: list[Candidate] = []
    entries: list[Entry] = []
    pending: list[Pending] = []
    follow: list[Related] = []
    complete: bool = True
    """Whether the story is complete; False where a bound cut it off."""
    advice: list[str] = []
    """What to do about what a bound cut off."""


class Collected:
    """Collects what an engine knows about a key; a row that is found twice is included once."""

    def __init__(self, tx: Tx, limit: int) -> None:
        self.tx = tx
        self.limit = limit
        self.entries: dict[str, Entry] = {}
        self.pending: dict[str, Pending] = {}
        self.follow: dict[Related, None] = {}
        self.complete = True

    def lookup(self, kinds: Sequence[str], candidates: list[Candidate]) -> Lookup:
        """What was collected, as the answer of the engine."""
        return Lookup(
            kinds=list(kinds),
            candidates=candidates,
            entries=list(self.entries.values()),
            pending=list(self.pending.values()),
            follow=list(self.follow),
            complete=self.complete,
        )


class StoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the answer: `text` says it in a sentence, `code` with `code_text` why, `docs` by which paragraph."""

    id: str
    at: str
    engine: str
    shape: str
    what: str
    text: str
    state: str
    code: str
    code_text: str
    rule_version: str
    docs: str
    detail: dict[str, Any]
    related: list[Related]


class StoryPending(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to come: `due` is an instant, or null where it waits for a person or another event."""

    engine: str
    what: str
    text: str
    due: str | None
    state: str
    related: list[Related]


class StoryCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an ambiguous key may stand for: ask again with this `kind` and `key`."""

    engine: str
    kind: str
    key: str
    label: str
    count: int


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """Where was looked: `complete` is false where a bound was reached and the engine knows more."""

    engine: str
    kinds: list[str]
    complete: bool


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The story of a key. `outcome` is `found`, `ambiguous` (see `candidates`) or `unknown` (see `searched`).

    `advice` says what to do where something is unknown, ambiguous, or more than is listed.
    Entries are in the order of time; `next` is the `after` of the next page. `related` are all keys of the entries.
    """

    key: str
    kind: str | None
    outcome: str
    verdict: str = ""
    """What became of it, in a sentence or two."""
    entries: list[StoryEntry]
    pending: list[StoryPending]
    related: list[Related]
    candidates: list[StoryCandidate]
    searched: list[Searched]
    advice: list[str]
    next: str | None
