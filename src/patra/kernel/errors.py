"""The one exception tree: what may be tried again is Transient, what may not is Permanent.

    PatraError                  code, detail
    ├── Transient               the same call may succeed later
    │   ├── StoreUnavailable    the database cannot be reached or written
    │   └── StoreBusy           the transaction lost a race: lock, deadlock, serialization
    └── Permanent               the same call fails again
        ├── Invalid             data from outside breaks a rule; says where and what to do
        │   └── ConfigInvalid   a setting, a pack or a catalogue breaks a rule
        ├── NotCanonical        a value has no RFC 8785 form
        ├── MigrationMismatch   the store's migrations are not the ones of this version
        ├── StoreCorrupt        stored bytes are not those that were written
        ├── IllegalMove         a machine has no such edge
        └── Fenced              the lease was lost; the write came too late

Exceptions are for outages and bugs. What a specification foresees (duplicate, rejected, conflicted, wait) is a
returned value.
"""


class PatraError(Exception):
    """An error with a stable code for machines and a detail for people."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class Transient(PatraError):  # noqa: N818  the tree's names are its vocabulary, "Error" would add nothing
    """The same call may succeed later."""


class StoreUnavailable(Transient):
    """The database cannot be reached or written."""


class StoreBusy(Transient):
    """The transaction lost a race (lock, deadlock, serialization failure); run it again."""


class Permanent(PatraError):  # noqa: N818
    """The same call fails again."""


class Invalid(Permanent):
    """Data from outside breaks a rule: `place` says where it stands, `advice` what to do about it."""

    def __init__(self, code: str, detail: str, *, place: str = "", advice: str = "") -> None:
        super().__init__(code, detail)
        self.place = place
        self.advice = advice

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        then = f" ({self.advice})" if self.advice else ""
        return f"{where}{self.code}: {self.detail}{then}"


class ConfigInvalid(Invalid):
    """A setting, a source pack or a catalogue breaks a rule."""


class NotCanonical(Permanent):
    """A value has no RFC 8785 form; `path` names the first offending place, `$.a[3]`."""

    def __init__(self, code: str, detail: str, *, path: str = "$") -> None:
        super().__init__(code, detail)
        self.path = path

    def __str__(self) -> str:
        return f"{self.code} at {self.path}: {self.detail}"


class MigrationMismatch(Permanent):
    """The store's migrations are not the ones of this version."""


class StoreCorrupt(Permanent):
    """Stored bytes are not those that were written; the detail names table and key where they are known."""


class IllegalMove(Permanent):
    """A machine has no edge for this state and event."""


class Fenced(Permanent):
    """The lease was lost to another holder; the write came too late."""


def count_phrase(count: int, noun: str) -> str:
    """A number with its noun, for messages: `1 fact`, `2 facts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
