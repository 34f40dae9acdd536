"""A cut and a snapshot go in; `slice_spec`, the localised expression, the signature and the task's key come out.

Ch. 8.2.2 to 8.2.4 and 5.3.5. All of it is deterministic: the same trigger on the same snapshot gives the same bytes.
"""

from typing import Annotated, Any

import msgspec
from msgspec import field

from patra.ingest.bits import Bit
from patra.ingest.bits.base import doc
from patra.ingest.codes import Dimension, Operation, PaginationType
from patra.ingest.slicing import IdList, PageRange, Span
from patra.ingest.spec import Spec
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
            raise ValueError(f"{self.since} to {self.until} is no window")
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


class Bounds(Bit, frozen=True, kw_only=True, omit_defaults=True):
    """What the slice covers, in its own dimension."""

    time: Annotated[TimeBounds | None, doc("TIME.", None)] = None
    page: Annotated[PageBounds | None, doc("PAGE.", None)] = None
    id: Annotated[IdBounds | None, doc("ID.", None)] = None


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


class Budget(Bit, frozen=True, kw_only=True):
    """What the slice may use."""

    max_requests: Annotated[int, doc("Most requests.", 800)]
    max_duration_sec: Annotated[int, doc("Longest time.", 900)]
    priority: Annotated[int, doc("The smaller runs first.", 100)]
    expected_requests: Annotated[int, doc("Requests that are expected and reserved from the quota.", 12)]


class Telemetry(Bit, frozen=True, kw_only=True):
    """For people; no part of the signature."""

    total_estimated: Annotated[int | None, doc("Records that are expected.", 42_000)] = None
    comment: Annotated[str, doc("How the slice came about.", "auto-bisect from estimate")] = ""


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


class Slicer:
    """Makes slices of one plan. What all of them share is worked out once."""

    def __init__(self, spec: Spec, trigger: str) -> None:
        self._spec = spec
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
        return self._sliced(Dimension.TIME, bounds, self._initial, estimate, comment, span)

    def of_pages(self, pages: PageRange, comment: str = "") -> Sliced:
        pagination = self._spec.pagination
        size = pagination.page_size or 1
        first = pages.first - pagination.first_page
        bounds = Bounds(
            page=PageBounds(
                from_page=pages.first, to_page=pages.last, page_size=size, base1=pagination.base1 is not False
            )
        )
        initial = msgspec.structs.replace(
            self._initial,
            offset=pagination.initial.offset + first * size,
            page=pages.first if pagination.type is PaginationType.PAGE else None,
        )
        count = None if pages.last is None else float((pages.last - pages.first + 1) * size)
        return self._sliced(Dimension.PAGE, bounds, initial, count, comment, None)

    def of_ids(self, listed: IdList, comment: str = "") -> Sliced:
        bounds = Bounds(
            id=IdBounds(since=listed.ids[0], until=listed.ids[-1], hash_bucket=listed.bucket, ids=list(listed.ids))
        )
        return self._sliced(Dimension.ID, bounds, SliceInitial(), float(len(listed.ids)), comment, None)

    def expected_requests(self, estimate: float | None) -> int:
        """Pages for so many records, and detail requests where there are two phases; one where nothing is known."""
        spec = self._spec
        if estimate is None:
            return 1
        records = int(estimate) + 1
        listing = 0 if spec.operation is Operation.UPDATE else -(-records // (spec.pagination.page_size or 100))
        details = -(-records // self._phase.id_batch_size) if self._phase.two_phase else 0
        return min(max(listing + details, 1), spec.planning.max_requests)

    def _sliced(
        self,
        dimension: Dimension,
        bounds: Bounds,
        initial: SliceInitial,
        estimate: float | None,
        comment: str,
        window: Span | None,
    ) -> Sliced:
        spec = self._spec
        expected = self.expected_requests(estimate)
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
            telemetry=Telemetry(total_estimated=None if estimate is None else int(estimate), comment=comment),
        )
        tree: dict[str, Any] = msgspec.to_builtins(slice_spec)
        local = self._localised(tree)
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
        )

    def _localised(self, tree: dict[str, Any]) -> dict[str, Any]:
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
        if "id" in bounds:
            ids = bounds["id"]["ids"]
            local["ids"] = {"count": len(ids), "hash": sha256_hex(canonical(ids)), "from": ids[0], "to": ids[-1]}
        return local


_decoder = msgspec.json.Decoder(SliceSpec)


def decode_slice(text: str | bytes) -> SliceSpec:
    return _decoder.decode(text)
