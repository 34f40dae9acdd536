"""Turns a cut and a snapshot into `slice_spec`, the localised expression, the signature and the task's key.

Ch. 8.2.2 to 8.2.4 and 5.3.5. All of it is deterministic: the same trigger on the same snapshot gives the same bytes.
"""

from typing import Annotated, Any

import msgspec
from msgspec import field

from patra.ingest.packs.sections import Bit
from patra.ingest.packs.sections.base import doc
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.windows import IdList, PageRange, Span
from patra.ingest.ratelimit.limiter import Budget as RateBudget
from patra.ingest.vocabulary.codes import Dimension, Operation, PaginationType
from patra.kernel.canonical import canonical, sha256_hex
from patra.kernel.clock import format_instant, parse_instant


class TimeBounds(Bit, frozen=True, kw_only=True):
    """`[from, to)`."""

    since: Annotated[str, doc("First instant.", "2025-09-20T00:00:00Z")] = field(name="from")
    until: Annotated[str, doc("First instant after it.", "2025-09-21T00:00:00Z")] = field(name="to")

    @property
    def span(self) -> Span:
        start, end = parse_instant(self.since), parse_instant(self.until)
        if start is None or end is None:
            raise ValueError(f"{self.since} to {self.until} is not a window")
        return Span(start, end)


class PageBounds(Bit, frozen=True, kw_only=True):
    """Pages, both ends included; no `toPage` means up to the end of the list."""

    from_page: Annotated[int, doc("First page.", 1)]
    to_page: Annotated[int | None, doc("Last page.", 200)]
    page_size: Annotated[int, doc("Records per page.", 100)]
    base1: Annotated[bool, doc("Whether pages count from 1.", True)]


class IdBounds(Bit, frozen=True, kw_only=True):
    """Ids, listed: a slice can be run again and find the same ones."""

    since: Annotated[str, doc("First id.", "A0000000")] = field(name="from")
    until: Annotated[str, doc("Last id.", "A000FFFF")] = field(name="to")
    hash_bucket: Annotated[int | None, doc("Bucket, where ids are spread over buckets.", 37)] = None
    ids: Annotated[list[str], doc("The ids.", ["A0000000"])]


class KeyFloor(Bit, frozen=True, kw_only=True):
    """Keys from the largest one on that was read before; ids that are larger."""

    after: Annotated[int | None, doc("The largest key that was read before; none at first.", 12_345)]


class Bounds(Bit, frozen=True, kw_only=True, omit_defaults=True):
    """What the slice covers, in its own dimension."""

    time: Annotated[TimeBounds | None, doc("TIME.", None)] = None
    page: Annotated[PageBounds | None, doc("PAGE.", None)] = None
    id: Annotated[IdBounds | None, doc("ID.", None)] = None
    key: Annotated[KeyFloor | None, doc("HARVEST by ID.", None)] = None


class Phase(Bit, frozen=True, kw_only=True):
    """One phase or two."""

    two_phase: Annotated[bool, doc("Ids first, then records.", False)]
    id_batch_size: Annotated[int, doc("Ids in one detail request.", 200)]


class SliceInitial(Bit, frozen=True, kw_only=True):
    """Where the list of the slice begins."""

    offset: Annotated[int, doc("First offset.", 0)] = 0
    page: Annotated[int | None, doc("First page.", 1)] = None
    token: Annotated[str | None, doc("First token.", "*")] = None
    url: Annotated[str | None, doc("First URL.", None)] = None


class SlicePagination(Bit, frozen=True, kw_only=True):
    """How the pages of the slice are walked."""

    type: Annotated[PaginationType | None, doc("What drives the pages.", "OFFSET")]
    initial: Annotated[SliceInitial, doc("Where the list begins.", {})]


class SliceWindow(Bit, frozen=True, kw_only=True):
    """Lag and watermark, as the plan saw them."""

    safety_lag: Annotated[str, doc("The lag that was kept.", "PT10M")]
    watermark_key: Annotated[str, doc("The field that moves the watermark.", "updated_at")]


class BudgetHint(Bit, frozen=True, kw_only=True):
    """What the rate gate could give when the plan was cut (ch. 4.10.6)."""

    permits: Annotated[int, doc("Permits within `maxDurationSec`, for all tasks of the rate key.", 3000)]
    rate_per_sec: Annotated[float, doc("Its rate.", 3.0)]
    concurrency: Annotated[int, doc("Tasks that can share it.", 3)]
    blocked_until: Annotated[str | None, doc("Until when the provider is left alone; tasks are due then.", None)] = None


class Budget(Bit, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What the slice may use; no part of the signature. What a later version adds is passed over."""

    max_requests: Annotated[int, doc("Most requests.", 800)]
    max_duration_sec: Annotated[int, doc("Longest time.", 900)]
    priority: Annotated[int, doc("The smaller runs first.", 100)]
    expected_requests: Annotated[int, doc("Requests that are expected and reserved from the quota.", 12)]


class Telemetry(Bit, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """For people; no part of the signature. What a later version adds is passed over."""

    total_estimated: Annotated[int | None, doc("Records that are expected.", 42_000)] = None
    comment: Annotated[
        str,
        doc(
            "How the slice came about, and `budgetHint`: what the rate gate could give. It stands in a text because "
            "executors of the release before refuse a slice with a field that they do not know.",
            'auto-bisect from estimate; budgetHint {"permits":3000,"ratePerSec":3.0,"concurrency":3}',
        ),
    ] = ""


class SliceSpec(Bit, frozen=True, kw_only=True):
    """`ing_plan_slice.slice_spec` (ch. 8.2.2)."""

    dimension: Annotated[Dimension, doc("TIME, PAGE or ID.", "TIME")]
    bounds: Annotated[Bounds, doc("What it covers.", {})]
    phase: Annotated[Phase, doc("One phase or two.", {})]
    pagination: Annotated[SlicePagination, doc("Where the list begins.", {})]
    window: Annotated[SliceWindow, doc("Lag and watermark.", {})]
    budget: Annotated[Budget, doc("What it may use.", {})]
    telemetry: Annotated[Telemetry, doc("For people; no part of the signature.", {})] = Telemetry()


canonical_of_plain = msgspec.json.Encoder(order="sorted").encode
"""The RFC 8785 form of what slices are made of: text, small integers, ASCII keys. Asking `canonical` whether they are
would cost more than all else that a slice costs; a test holds the two equal."""


class Sliced(msgspec.Struct, frozen=True, kw_only=True):
    """A slice ready to be written: texts and hashes for `ing_plan_slice` and `ing_task`."""

    slice_spec: str
    slice_signature_hash: str
    expr_snapshot: str
    expr_hash: str
    params: str
    idempotent_key: str
    window: Span | None
    expected_requests: int
    expected_details: int = 0


class Slicer:
    """Makes slices of one plan. What all of them share is worked out once."""

    def __init__(self, spec: Spec, trigger: str, budget: RateBudget | None = None) -> None:
        """`budget`: what the rate gate can give now."""
        self._spec = spec
        self._hint = "" if budget is None else _hint(budget)
        self._trigger = trigger
        pagination = spec.pagination
        self._window = SliceWindow(safety_lag=spec.window.safety_lag, watermark_key=spec.window.watermark_key)
        detailed = spec.two_phase.enabled or spec.operation is Operation.UPDATE
        batch = (spec.detail or spec).batching.id_batch_size
        self._phase = Phase(two_phase=detailed and spec.detail is not None, id_batch_size=batch)
        first = pagination.first_page if pagination.type is PaginationType.PAGE else None
        self._initial = SliceInitial(
            offset=pagination.initial.offset, page=first, token=pagination.initial.token, url=pagination.initial.url
        )

    def of_window(self, span: Span, estimate: float | None, comment: str = "") -> Sliced:
        bounds = Bounds(time=TimeBounds(since=format_instant(span.start), until=format_instant(span.end)))
        return self._slice_of(Dimension.TIME, bounds, self._initial, estimate, comment, span)

    def of_pages(self, pages: PageRange, span: Span | None, comment: str = "") -> Sliced:
        """Pages of a list; `span` is the window of its plan, which all of its slices share."""
        pagination = self._spec.pagination
        size = pagination.page_size or 1
        first = pages.first - pagination.first_page
        bounds = Bounds(
            time=None if span is None else TimeBounds(since=format_instant(span.start), until=format_instant(span.end)),
            page=PageBounds(
                from_page=pages.first, to_page=pages.last, page_size=size, base1=pagination.base1 is not False
            ),
        )
        initial = msgspec.structs.replace(
            self._initial,
            offset=pagination.initial.offset + first * size,
            page=pages.first if pagination.type is PaginationType.PAGE else None,
        )
        count = None if pages.last is None else float((pages.last - pages.first + 1) * size)
        return self._slice_of(Dimension.PAGE, bounds, initial, count, comment, None)

    def of_ids(self, listed: IdList, comment: str = "") -> Sliced:
        bounds = Bounds(
            id=IdBounds(since=listed.ids[0], until=listed.ids[-1], hash_bucket=listed.bucket, ids=list(listed.ids))
        )
        return self._slice_of(Dimension.ID, bounds, SliceInitial(), float(len(listed.ids)), comment, None)

    def of_new_keys(self, after: int | None) -> Sliced:
        """What came after a key: one list, read from its beginning."""
        return self._slice_of(Dimension.ID, Bounds(key=KeyFloor(after=after)), self._initial, None, "", None)

    def expected_requests(self, estimate: float | None) -> tuple[int, int]:
        """Requests for so many records: all, and those for details."""
        return _expected_requests(self._spec, self._phase, estimate)

    def _slice_of(
        self,
        dimension: Dimension,
        bounds: Bounds,
        initial: SliceInitial,
        estimate: float | None,
        comment: str,
        window: Span | None,
    ) -> Sliced:
        spec = self._spec
        expected, details = self.expected_requests(estimate)
        slice_spec = SliceSpec(
            dimension=dimension,
            bounds=bounds,
            phase=self._phase,
            pagination=SlicePagination(type=spec.pagination.type, initial=initial),
            window=self._window,
            budget=Budget(
                max_requests=spec.planning.max_requests,
                max_duration_sec=spec.planning.max_duration_sec,
                priority=spec.priority,
                expected_requests=expected,
            ),
            telemetry=Telemetry(
                total_estimated=None if estimate is None else int(estimate),
                comment="; ".join(filter(None, (comment, self._hint))),
            ),
        )
        tree: dict[str, Any] = msgspec.to_builtins(slice_spec)
        local = self._localise_tree(tree)
        expr_snapshot = canonical_of_plain(local)
        expr_hash = sha256_hex(expr_snapshot)
        signed = {key: tree[key] for key in ("dimension", "bounds", "phase", "pagination", "window")}
        signature = sha256_hex(
            canonical_of_plain([spec.provenance_code, spec.endpoint_code, spec.operation.value, expr_hash, signed])
        )
        params = canonical_of_plain({key: value for key, value in local.items() if key != "exprProtoHash"}).decode()
        key = sha256_hex(canonical_of_plain([signature, expr_hash, spec.operation.value, self._trigger, params]))
        return Sliced(
            slice_spec=msgspec.json.encode(tree).decode(),
            slice_signature_hash=signature,
            expr_snapshot=expr_snapshot.decode(),
            expr_hash=expr_hash,
            params=params,
            idempotent_key=key,
            window=window,
            expected_requests=expected,
            expected_details=details,
        )

    def _localise_tree(self, tree: dict[str, Any]) -> dict[str, Any]:
        """What this slice adds to the snapshot: window, first page, ids by their hash (ch. 8.2.4)."""
        bounds = tree["bounds"]
        local: dict[str, Any] = {
            "exprProtoHash": self._spec.expr_proto_hash,
            "dimension": tree["dimension"],
            "pagination": tree["pagination"],
            "phase": tree["phase"],
        }
        if "time" in bounds:
            local["window"] = bounds["time"]
        if "page" in bounds:
            local["page"] = bounds["page"]
        if "key" in bounds:
            local["key"] = bounds["key"]
        if "id" in bounds:
            ids = bounds["id"]["ids"]
            local["ids"] = {"count": len(ids), "hash": sha256_hex(canonical(ids)), "from": ids[0], "to": ids[-1]}
        return local


def _expected_requests(spec: Spec, phase: Phase, estimate: float | None) -> tuple[int, int]:
    """Pages for so many records, and detail requests where there are two phases: all, and those for details.

    One where nothing is known.
    """
    refresh = spec.operation is Operation.UPDATE
    if estimate is None:
        return 1, int(refresh)
    records = int(estimate) + 1
    listing = 0 if refresh else -(-records // (spec.pagination.page_size or 100))
    details = -(-records // phase.id_batch_size) if phase.two_phase else 0
    total = min(max(listing + details, 1), spec.planning.max_requests)
    return total, total - min(listing, total)


def expected_details(spec: Spec, part: SliceSpec) -> int:
    """How many of the requests that a slice expects are for details."""
    return _expected_requests(spec, part.phase, part.telemetry.total_estimated)[1]


def _hint(budget: RateBudget) -> str:
    blocked = budget.blocked_until
    hint = BudgetHint(
        permits=budget.permits,
        rate_per_sec=budget.rate_per_sec,
        concurrency=budget.concurrency,
        blocked_until=None if blocked is None else format_instant(blocked),
    )
    return f"budgetHint {msgspec.json.encode(hint).decode()}"


_decoder = msgspec.json.Decoder(SliceSpec)


def decode_slice(text: str | bytes) -> SliceSpec:
    return _decoder.decode(text)
