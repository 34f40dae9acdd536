"""The same trigger gives the same keys byte for byte; another gives others (ch. 8.2.3, 5.3.5)."""

from functools import lru_cache

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.slice_spec import Slicer, decode_slice
from patra.ingest.planning.slicing.windows import IdList, PageRange, Span
from patra.ingest.planning.trigger import Trigger, activity_key, trigger_key
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.canonical import canonical
from patra.kernel.clock import HOUR
from tests.unit.ingest.sample_packs import loaded

OPERATIONS = st.sampled_from([Operation.HARVEST, Operation.BACKFILL])
WINDOWS = st.tuples(st.integers(0, 500_000), st.integers(1, 1000)).map(
    lambda p: Span(p[0] * HOUR, (p[0] + p[1]) * HOUR)
)


@lru_cache
def spec(operation: Operation, size: int = 1000) -> Spec:
    made = compile_spec(
        loaded("token"), "works", operation, Overrides(sections={"pagination": {"pageSize": size}})
    ).spec
    assert made is not None
    return made


@given(OPERATIONS, WINDOWS, st.none() | st.floats(0, 1e6), st.text(max_size=10))
def test_the_same_slice_is_the_same_bytes(operation, window, estimate, trigger):
    one = Slicer(spec(operation), trigger).of_window(window, estimate)
    assert one == Slicer(spec(operation), trigger).of_window(window, estimate)
    found = decode_slice(one.slice_spec)
    assert found.bounds.time.span == window
    assert found.pagination.type == "TOKEN"
    assert found.budget.expected_requests >= 1


@given(WINDOWS, st.lists(st.text(max_size=6), min_size=1, max_size=5, unique=True), st.integers(0, 10**9))
def test_the_texts_of_a_slice_are_canonical(window, ids, page):
    update = compile_spec(loaded("token"), "works", Operation.UPDATE).spec
    for sliced in (
        Slicer(spec(Operation.HARVEST), "t").of_window(window, 1.5),
        Slicer(update, "t").of_ids(IdList(tuple(ids))),
        Slicer(spec(Operation.HARVEST), "t").of_pages(PageRange(page, page + 1), None),
    ):
        for text in (sliced.expr_snapshot, sliced.params):
            assert canonical(msgspec.json.decode(text)).decode() == text


@given(OPERATIONS, WINDOWS, WINDOWS, st.none() | st.floats(0, 1e6))
def test_a_signature_knows_the_window_and_not_the_estimate(operation, one, two, estimate):
    slicer = Slicer(spec(operation), "t")
    first, second = slicer.of_window(one, None), slicer.of_window(two, estimate, "comment")
    assert (first.slice_signature_hash == second.slice_signature_hash) is (one == two)
    assert (first.idempotent_key == second.idempotent_key) is (one == two)


@given(WINDOWS)
def test_another_operation_trigger_or_request_has_other_keys(window):
    base = Slicer(spec(Operation.HARVEST), "t").of_window(window, None)
    other_operation = Slicer(spec(Operation.BACKFILL), "t").of_window(window, None)
    other_trigger = Slicer(spec(Operation.HARVEST), "u").of_window(window, None)
    other_request = Slicer(spec(Operation.HARVEST, 500), "t").of_window(window, None)
    assert base.slice_signature_hash == other_trigger.slice_signature_hash
    assert len({one.idempotent_key for one in (base, other_operation, other_trigger, other_request)}) == 4
    assert len({one.slice_signature_hash for one in (base, other_operation, other_request)}) == 3
    assert base.expr_hash != other_request.expr_hash


@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, min_size=1, max_size=20))
def test_a_slice_of_ids_can_be_run_again_with_the_same_ids(ids):
    update = compile_spec(loaded("token"), "works", Operation.UPDATE).spec
    sliced = Slicer(update, "t").of_ids(IdList(tuple(ids)))
    assert decode_slice(sliced.slice_spec).bounds.id.ids == ids
    assert msgspec.json.decode(sliced.params)["ids"]["count"] == len(ids)
    reversed_ids = Slicer(update, "t").of_ids(IdList(tuple(reversed(ids))))
    assert (sliced.slice_signature_hash == reversed_ids.slice_signature_hash) is (ids == ids[::-1])


@given(st.integers(1, 1000), st.integers(0, 500))
def test_pages_start_at_their_offset(first, more):
    offset = compile_spec(loaded("offset"), "query", Operation.HARVEST).spec
    found = decode_slice(Slicer(offset, "t").of_pages(PageRange(first, first + more), None).slice_spec)
    assert found.pagination.initial.offset == (first - 1) * 100
    assert (found.bounds.page.from_page, found.bounds.page.to_page) == (first, first + more)


TRIGGERS = st.builds(
    Trigger,
    source=st.just("s"),
    endpoint=st.just("e"),
    operation=OPERATIONS,
    since=st.none() | st.integers(0, 10**15),
    until=st.none() | st.integers(0, 10**15),
    params=st.dictionaries(st.sampled_from("ab"), st.text(max_size=3)),
    activity=st.none() | st.text(max_size=3),
)


@given(TRIGGERS, TRIGGERS, st.lists(WINDOWS, max_size=2))
def test_a_trigger_is_known_by_all_that_it_says(one, two, todo):
    assert (trigger_key(one, "n", 0, todo) == trigger_key(two, "n", 0, todo)) is (one == two)
    assert trigger_key(one, "n", 0, todo) != trigger_key(one, "n", 1, todo)
    assert trigger_key(one, "n", 0, todo) != trigger_key(one, "m", 0, todo)


@given(TRIGGERS, TRIGGERS)
def test_a_campaign_is_known_by_its_name_or_by_what_it_asks_for(one, two):
    same = activity_key(one, "s/e:1") == activity_key(two, "s/e:1")
    if one.activity is not None or two.activity is not None:
        assert same is ((one.activity, one.operation) == (two.activity, two.operation))
    else:
        assert same is ((one.operation, one.since, one.until) == (two.operation, two.since, two.until))
