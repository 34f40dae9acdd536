"""Tasks of the sample packs, with nothing but their scope: enough for the stages of a run."""

from functools import cache

import msgspec

from patra.ingest.execution.compiled_plan import CompiledPlan, TaskScope
from patra.ingest.landing.page_records import Landing
from patra.ingest.landing.store import TaskRow
from patra.ingest.packs.compiler import compile_spec
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.slice_spec import Sliced, Slicer
from patra.ingest.planning.slicing.windows import IdList, Span
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR, parse_instant
from tests.unit.ingest.sample_packs import loaded

NOW = parse_instant("2026-01-02T00:00:00Z")
WINDOW = Span(NOW - DAY, NOW)
SMALLEST = Span(NOW - HOUR, NOW)


@cache
def spec_of(name: str = "offset", operation: Operation = Operation.HARVEST) -> Spec:
    pack = loaded(name)
    found = compile_spec(pack, next(iter(pack.pack.endpoints)), operation)
    assert found.spec is not None, found.problems
    return found.spec


def scope_of(spec: Spec, window: Span = WINDOW) -> TaskScope:
    return _scope(spec, Slicer(spec, "trigger").of_window(window, 100.0))


def scope_of_ids(spec: Spec, ids: tuple[str, ...]) -> TaskScope:
    return _scope(spec, Slicer(spec, "trigger").of_ids(IdList(ids=ids, bucket=None)))


def _scope(spec: Spec, part: Sliced) -> TaskScope:
    window = part.window
    row = TaskRow(
        task_id="p1.t000001",
        schedule_instance_id="i1",
        plan_id="p1",
        slice_id="p1.s000001",
        provenance_code=spec.provenance_code,
        endpoint_name=spec.endpoint_code,
        operation_code=spec.operation.value,
        partition_key="k",
        expr_hash=part.expr_hash,
        namespace_key="n",
        window_from=window.start if window else None,
        window_to=window.end if window else None,
        status_code="EXECUTING",
        lease_count=1,
        scheduled_at=NOW,
        priority=100,
        slice_spec=part.slice_spec,
        slice_signature_hash=part.slice_signature_hash,
    )
    return TaskScope(CompiledPlan(spec, lambda _: {}), row)


def landing_of(*ids: str, newest: int | None = None) -> Landing:
    return Landing(records=[], bad=[], ids=list(ids), digest="d", newest=newest)


def limited(spec: Spec, **planning: int) -> Spec:
    return msgspec.structs.replace(spec, planning=msgspec.structs.replace(spec.planning, **planning))
