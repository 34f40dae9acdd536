"""A plan's snapshot goes in; what is compiled once for all runs of its tasks comes out, and what a run walks over."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from patra.ingest.bits import Credential
from patra.ingest.codes import Dimension, Operation
from patra.ingest.cutting import Rest
from patra.ingest.intent import grid_of
from patra.ingest.line import Line
from patra.ingest.paging import Place, first, passed
from patra.ingest.request import At
from patra.ingest.running_store import TaskRow
from patra.ingest.runs import Checkpoint, Phase
from patra.ingest.slices import SliceSpec, decode_slice
from patra.ingest.slicing import Grid, Span
from patra.ingest.spec import Spec
from patra.kernel.clock import MINUTE


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation decides about runs."""

    ttl: int = 2 * MINUTE
    publish: bool = True
    server_clock: bool = False
    """Leases go by the store's clock: for executors on several machines."""
    keep_bodies: bool = False
    max_body: int = 16 * 1024 * 1024


class Course:
    """A plan's snapshot, compiled: the line that lists, and the one that gives records where that is another."""

    def __init__(self, spec: Spec, credentials: Callable[[str], Credential | None]) -> None:
        self.spec = spec
        ref = spec.auth.credential_ref
        self.listing = Line(spec, spec, credentials(ref) if ref else None)
        detail = spec.detail
        two = detail is not None and (spec.two_phase.enabled or spec.operation is Operation.UPDATE)
        self.detail: Line | None = None
        if detail is not None and two:
            other = detail.auth.credential_ref
            self.detail = Line(spec, detail, credentials(other) if other else None)
        self.plan: dict[str, Any] = {
            "source": spec.provenance_code,
            "endpoint": spec.endpoint_code,
            "operation": spec.operation.value,
        }

    @cached_property
    def grid(self) -> Grid:
        return grid_of(self.spec.window)

    def line(self, phase: Phase) -> Line:
        return self.listing if phase is Phase.LIST else self.detail or self.listing


class Scope:
    """What one task covers: its slice, its window, and where its list begins."""

    def __init__(self, course: Course, task: TaskRow) -> None:
        self.course = course
        self.spec = course.spec
        self.slice: SliceSpec = decode_slice(task.slice_spec)
        timed = task.window_from is not None and task.window_to is not None
        self.window = Span(task.window_from or 0, task.window_to or 0) if timed else None
        pages = self.slice.bounds.page
        since = self.window.start if self.window else None
        self.first: Place = first(self.spec.pagination, from_page=pages.from_page if pages else None, since=since)

    def begin(self) -> Checkpoint:
        """The checkpoint of a task that nobody has worked on."""
        if self.slice.bounds.id is not None:
            return Checkpoint(place=self.first, pending=tuple(self.slice.bounds.id.ids), over=True)
        return Checkpoint(place=self.first)

    def rest(self, checkpoint: Checkpoint) -> Rest | None:
        """What smaller slices could take over: the window from its confirmed point on; None at the smallest."""
        if self.window is None or self.slice.dimension is not Dimension.TIME:
            return None
        grid = self.course.grid
        start = grid.floor(checkpoint.confirmed) if checkpoint.confirmed is not None else self.window.start
        window = Span(max(start, self.window.start), self.window.end)
        return Rest(window=window) if grid.halves(window) is not None else None

    def at(self, line: Line, place: Place, now: int, ids: tuple[str, ...] = ()) -> At:
        """What the request of a place is rendered from."""
        window = self.window
        before, total = (0, None) if ids else passed(self.spec.pagination, place)
        return At(
            source=self.spec.provenance_code,
            endpoint=line.leg.endpoint_code,
            operation=self.spec.operation,
            now=now,
            window_from=window.start if window else None,
            window_to=window.end if window else None,
            page_no=place.page,
            page_index=place.index,
            page_size=place.size,
            offset=place.offset,
            token=place.token,
            url=place.url if not ids else None,
            page_from=place.since,
            page_to=window.end if window else None,
            ids=ids,
            passed=before,
            total=total,
        )
