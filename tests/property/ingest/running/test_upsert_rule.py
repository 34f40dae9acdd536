"""Whatever order records arrive in, the latest version of each stays (ch. 11.1)."""

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.landing.records import Incoming, Stored, content_of, incoming, newest, sort_out

versions = st.one_of(st.none(), st.sampled_from(["1", "2", "10", "a", "b"]))


@st.composite
def records(draw) -> Incoming:
    updated, version = draw(st.integers(0, 4)), draw(versions)
    name = draw(st.sampled_from("abc"))
    return Incoming(
        id=name,
        updated_at=updated,
        version=version,
        deleted=draw(st.booleans()),
        content=f"{name}{updated}{version}".encode(),
        content_hash="",
    )


def rank(updated: int, version: str | None):
    if version is None:
        return updated, -1, 0, ""
    return (updated, 0, int(version), "") if version.isdecimal() else (updated, 1, 0, version)


def apply(store: dict[str, Stored], batch: list[Incoming], expr: str = "e", remap: bool = False):
    out = sort_out(batch, store, expr, remap=remap)
    for record in [*out.new, *(record for record, _ in out.newer)]:
        store[record.id] = Stored(record.updated_at, record.version, expr, "")
    return out


@given(batches=st.lists(st.lists(records(), max_size=6), max_size=8))
def test_the_latest_version_of_each_record_stays_whatever_the_order(batches: list[list[Incoming]]) -> None:
    store: dict[str, Stored] = {}
    everything: dict[str, tuple] = {}
    for batch in batches:
        before = dict(store)
        out = apply(store, batch)
        for record in batch:
            everything[record.id] = max(everything.get(record.id, (-1,)), rank(record.updated_at, record.version))
        assert {r.id for r in out.new}.isdisjoint(before)
        assert len(out.new) + len(out.newer) + len(out.equal) + len(out.older) + out.repeated == len(batch)
        for record, known in out.newer:
            assert rank(record.updated_at, record.version) > rank(known.updated_at, known.version)
    assert {key: rank(s.updated_at, s.version) for key, s in store.items()} == everything


@given(batch=st.lists(records(), max_size=10))
def test_landing_a_batch_twice_changes_nothing_the_second_time(batch: list[Incoming]) -> None:
    store: dict[str, Stored] = {}
    apply(store, batch)
    after = dict(store)
    again = apply(store, batch)
    assert store == after
    assert not again.new
    assert not again.newer


@given(batch=st.lists(records(), min_size=1, max_size=10))
def test_of_one_page_the_latest_version_of_each_id_is_taken(batch: list[Incoming]) -> None:
    kept, left_out = newest(batch)
    assert [record.id for record in kept] == sorted({record.id for record in batch})
    assert len(kept) + left_out == len(batch)


def test_an_equal_record_is_written_again_only_by_an_update_with_another_mapping() -> None:
    record = Incoming(id="a", updated_at=1, version=None, deleted=False, content=b"", content_hash="")
    known = {"a": Stored(1, None, "old", "")}
    assert sort_out([record], known, "new", remap=False).equal == ["a"]
    assert sort_out([record], known, "old", remap=True).equal == ["a"]
    assert [r.id for r, _ in sort_out([record], known, "new", remap=True).newer] == ["a"]


@given(text=st.text(max_size=3000))
def test_content_comes_back_as_it_was(text: str) -> None:
    import msgspec

    fields = {"title": text}
    record = incoming("a", 1, None, fields, {"raw": [text, 1]}, deleted=False)
    assert record is not None
    assert msgspec.json.decode(content_of(record.content)) == {"fields": fields, "raw": {"raw": [text, 1]}}


def test_a_deleted_record_keeps_its_raw_form_and_no_fields() -> None:
    import msgspec

    record = incoming("a", 1, None, {"title": "x"}, None, deleted=True)
    assert record is not None
    assert msgspec.json.decode(content_of(record.content)) == {"fields": {}}
