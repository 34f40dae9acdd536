"""What is wrong with a pack or a trigger: where it stands, what it is, what to do about it."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from patra.ingest.vocabulary.reasons import Reason

TreePath = tuple[str | int, ...]


class Severity(StrEnum):
    ERROR = "error"  # it does not compile
    WARNING = "warning"  # it compiles with a fallback (ch. 3.6)


class Mark(msgspec.Struct, frozen=True):
    """A place in a file; lines and columns count from 1, 0 means that there is none."""

    line: int = 0
    column: int = 0


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. `path` names the field as in the file: `endpoints.search.pagination.type`."""

    code: Reason
    message: str
    advice: str = ""
    path: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        head = " ".join(part for part in (f"{place}:" if place else "", f"{self.path}:" if self.path else "") if part)
        return f"{head} {self.message} [{self.code}]{f' → {self.advice}' if self.advice else ''}".strip()


class Source(msgspec.Struct, frozen=True):
    """The file that a tree was read from, with the place of each part; empty for trees that are in no file."""

    file: str = ""
    marks: Mapping[TreePath, Mark] = {}

    def mark(self, path: TreePath) -> Mark:
        """The place of a part, or of the nearest part above it that is in the file."""
        for end in range(len(path), -1, -1):
            if (found := self.marks.get(path[:end])) is not None:
                return found
        return Mark()

    def problem(
        self, code: Reason, path: TreePath, message: str, advice: str = "", severity: Severity = Severity.ERROR
    ) -> Problem:
        mark = self.mark(path)
        return Problem(
            code=code,
            message=message,
            advice=advice,
            path=dotted_path(path),
            file=self.file,
            line=mark.line,
            column=mark.column,
            severity=severity,
        )


def dotted_path(path: TreePath) -> str:
    """A path as people write it: `endpoints.search.errors[2].path`."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Advice for a name that is not among those that are known: the nearest one, and all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"{f'did you mean {near[0]}? ' if near else ''}known: {', '.join(names) or 'none'}"


def errors(problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity is Severity.ERROR]


def order_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Each problem once, in the order of the file."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file, p.line, p.column, p.path, p.code))
