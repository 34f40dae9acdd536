"""What is compiled once from a plan's snapshot for all runs of its tasks, and what a run walks over."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from patra.ingest.extraction.key_ranges import KeyRange
from patra.ingest.extraction.pagination import PagePosition, first, places_before
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.http.request import Position
from patra.ingest.http.upper_bound import upper_bound
from patra.ingest.landing.page_records import GrowingKey
from patra.ingest.landing.run_state import Checkpoint, Phase
from patra.ingest.landing.store import TaskRow
from patra.ingest.packs.sections import Credential
from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.planning.slicing.slice_groups import NUMBERED, Rest
from patra.ingest.planning.slicing.slice_spec import SliceSpec, decode_slice
from patra.ingest.planning.slicing.windows import Grid, PageRange, Span
from patra.ingest.planning.window_intent import grid_of
from patra.ingest.vocabulary.codes import Dimension, Operation, PaginationType
from patra.kernel.clock import SECOND


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation decides about runs."""

    ttl: int = 30 * SECOND
    """How long a lease lasts: a killed executor costs as much. It is renewed while its task runs."""
    publish: bool = True
    server_clock: bool = False
    """Leases go by the store's clock: for executors on several machines."""
    keep_bodies: bool = False
    max_body: int = 16 * 1024 * 1024


def _client(spec: Spec, leg: Leg, credentials: Callable[[str], Mapping[str, Credential]]) -> EndpointClient:
    """The client of a leg; with a pool, the one of its preferred credential, which knows the others."""
    ref = leg.auth.credential_ref
    found: Mapping[str, Credential] = credentials(ref) if ref else {}
    if len(found) < 2:
        return EndpointClient(spec, leg, next(iter(found.values()), None))
    replace = msgspec.structs.replace
    clients = tuple(
        EndpointClient(spec, replace(leg, auth=replace(leg.auth, credential_ref=name)), credential)
        for name, credential in found.items()
    )
    for client in clients:
        client.pool = clients
    return clients[0]


class CompiledPlan:
    """A plan's snapshot, compiled: the line that lists, and the one that gives records where that is another."""

    def __init__(self, spec: Spec, credentials: Callable[[str], Mapping[str, Credential]]) -> None:
        """`credentials` gives those behind a reference by name: one, or a pool of them, the preferred first."""
        self.spec = spec
        self.listing = _client(spec, spec, credentials)
        detail = spec.detail
        two = detail is not None and (spec.two_phase.enabled or spec.operation is Operation.UPDATE)
        self.detail: EndpointClient | None = None
        if detail is not None and two:
            self.detail = _client(spec, detail, credentials)
        self.plan: dict[str, Any] = {
            "source": spec.provenance_code,
            "endpoint": spec.endpoint_code,
            "operation": spec.operation.value,
        }

    @cached_property
    def grid(self) -> Grid:
        return grid_of(self.spec.window)

    @cached_property
    def largest_key_first(self) -> bool:
        """HARVEST by key: the list falls from its largest key."""
        return self.spec.by_key and self.spec.ordering.order_by.split() == [self.spec.cursor.key, "desc"]

    @cached_property
    def falls_to_known_keys(self) -> bool:
        """HARVEST by key: the list falls, and no request asks for the new keys only: known ones follow the new ones."""
        return self.largest_key_first and not self._asks_from_a_key

    @cached_property
    def rises_from_a_key(self) -> bool:
        """HARVEST by key: the list rises from the key that is asked for: it can be gone on with from any key."""
        rising = self.spec.ordering.order_by.split() == [self.spec.cursor.key, "asc"]
        return self.spec.by_key and rising and self._asks_from_a_key

    @cached_property
    def _asks_from_a_key(self) -> bool:
        spec = self.spec
        said = msgspec.json.encode((spec.http, spec.expr.vars, spec.mapping.request_params, spec.params))
        return b"key.from" in said

    def line(self, phase: Phase) -> EndpointClient:
        return self.listing if phase is Phase.LIST else self.detail or self.listing


class TaskScope:
    """What one task covers: its slice, its window, and where its list begins."""

    def __init__(self, course: CompiledPlan, task: TaskRow) -> None:
        self.course = course
        self.spec = course.spec
        self.slice: SliceSpec = decode_slice(task.slice_spec)
        timed = task.window_from is not None and task.window_to is not None
        self.window = Span(task.window_from or 0, task.window_to or 0) if timed else None
        pages, timed_pages = self.slice.bounds.page, self.slice.bounds.time
        self.covers = timed_pages.span if pages is not None and timed_pages is not None else self.window
        """What records may lie in: the task's own window, or the one that all slices of a list by pages share."""
        self._untils: dict[tuple[str, bool], int | None] = {}
        floor = self.slice.bounds.key
        self.after_key = floor.after if floor is not None else None
        """HARVEST by key: the largest key that was read before."""
        since = self.window.start if self.window else None
        self.first: PagePosition = first(
            self.spec.pagination, from_page=pages.from_page if pages else None, since=since
        )

    @property
    def growing_key(self) -> GrowingKey | None:
        """HARVEST by key: which one, and how far it was read."""
        if not self.spec.by_key:
            return None
        key = self.spec.cursor.key
        field = key if key in self.spec.mapping.output.fields else None
        return GrowingKey(field=field, after=self.after_key)

    @property
    def first_key(self) -> int | None:
        """HARVEST by key: the first one that may be new."""
        key = self.growing_key
        return None if key is None else key.first

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

    def remaining(self, place: PagePosition, pending: tuple[str, ...]) -> Rest | None:
        """What other slices could take over from `place` on, everything before it being done; None for windows."""
        pages, pagination = self.slice.bounds.page, self.spec.pagination
        if self.slice.bounds.id is not None:
            return Rest(ids=pending) if len(pending) > 1 else None
        if pages is None or pagination.type not in NUMBERED or pending:
            return None
        if pagination.type is PaginationType.PAGE:
            at = place.page or 0
        else:
            at = pagination.first_page + ((place.offset or 0) - pagination.initial.offset) // pages.page_size
        if pages.to_page is not None and at >= pages.to_page:
            return None
        return Rest(pages=PageRange(at, pages.to_page))

    @property
    def until_offset(self) -> int | None:
        """Where the pages of a slice of a list by offset end, whatever the size of the pages that are asked for."""
        pages, pagination = self.slice.bounds.page, self.spec.pagination
        if pages is None or pages.to_page is None or pagination.type is not PaginationType.OFFSET:
            return None
        return pagination.initial.offset + (pages.to_page + 1 - pagination.first_page) * pages.page_size

    def at(
        self,
        line: EndpointClient,
        place: PagePosition,
        now: int,
        ids: tuple[str, ...] = (),
        keys: KeyRange | None = None,
    ) -> Position:
        """What the request of a place is rendered from."""
        window = self.covers
        keys = None if keys is None or keys.recount else keys  # the whole is asked for without a key
        before, total = (0, None) if ids else places_before(self.spec.pagination, place)
        at = Position(
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
            key_from=keys.first if keys is not None else self.first_key,
            key_to=keys.last if keys is not None else None,
            ids=ids,
            passed=before,
            total=total,
        )
        return at if window is None else msgspec.structs.replace(at, window_until=self._until(line, at))

    def _until(self, line: EndpointClient, at: Position) -> int | None:
        """The upper bound to send, found once for the first page and once for the others."""
        key = (line.leg.endpoint_code, at.page_index > 0)
        if key not in self._untils:
            self._untils[key] = upper_bound(self.spec.window, at, line.masked_request)
        return self._untils[key]
