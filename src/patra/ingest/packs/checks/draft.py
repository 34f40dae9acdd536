"""What is being compiled: one endpoint of a pack for one operation, with all that the checks look at."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from patra.ingest.packs.merge import Level, Merged
from patra.ingest.packs.problems import Problem, Severity, Source, TreePath
from patra.ingest.packs.schema import Endpoint, Pack, Sections
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason

Dictionary = Mapping[str, frozenset[str]]
"""The codes that may be used, by dictionary type: `sys_dict_item`, or the built-in lists."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """One leg on its way to a snapshot. `params` are the values in force, `given` those that a trigger brought."""

    pack: Pack
    name: str
    operation: Operation
    merged: Merged
    source: Source
    params: Mapping[str, Any]
    detail: "Draft | None" = None
    second: bool = False
    """Whether this is the detail leg of another endpoint."""
    complete: bool = True
    """Whether a trigger has spoken: then every required parameter must have a value."""

    @property
    def at(self) -> Sections:
        return self.merged.sections

    @property
    def endpoint(self) -> Endpoint:
        return self.pack.endpoints[self.name]

    @property
    def lists(self) -> bool:
        """Whether pages of a list are walked here."""
        return not self.second and self.operation is not Operation.UPDATE

    @property
    def has_details(self) -> bool:
        """Whether the records come from the detail leg."""
        return not self.second and (self.at.two_phase.enabled or self.operation is Operation.UPDATE)

    @property
    def secrets(self) -> frozenset[str]:
        credential = self.pack.credentials.get(self.at.auth.credential_ref or "")
        return frozenset(credential.secrets) if credential else frozenset()

    def place(self, path: TreePath) -> TreePath:
        """Where a value of the sections stands in the pack; one that nobody gave would stand in its section."""
        origin = self.merged.origin(path)
        if origin.level is not Level.PLATFORM:
            return origin.path
        for end in range(len(path) - 1, 0, -1):
            if (above := self.merged.origins.get(path[:end])) is not None:
                return (*above.path, *path[end:])
        return ("endpoints", self.name, *path)

    def error(self, code: Reason, path: TreePath, message: str, advice: str = "") -> Problem:
        return self._problem(code, path, message, advice, Severity.ERROR)

    def warning(self, code: Reason, path: TreePath, message: str, advice: str = "") -> Problem:
        return self._problem(code, path, message, advice, Severity.WARNING)

    def _problem(self, code: Reason, path: TreePath, message: str, advice: str, severity: Severity) -> Problem:
        return self.source.problem(code, self.place(path), message, advice, severity)


def legs(draft: Draft) -> Iterator[Draft]:
    """The endpoint itself, where its list is walked, and its detail leg, where that is asked."""
    if draft.lists:
        yield draft
    if draft.detail is not None:
        yield draft.detail
    elif not draft.lists:
        yield draft
