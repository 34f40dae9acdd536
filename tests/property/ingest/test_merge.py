"""Merging keeps to the order of the levels whatever they say, and a snapshot does not change when the registry does."""

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.packs.merge import Level, merge
from patra.ingest.packs.spec import decode_spec, encode_spec
from patra.ingest.vocabulary.codes import Operation
from tests.unit.ingest.sample_packs import KINDS, loaded

RETRY = st.fixed_dictionaries(
    {}, optional={"maxAttempts": st.integers(1, 20), "factor": st.floats(1, 10), "jitter": st.floats(0, 1)}
)
QUERY = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123") | st.none(), max_size=3)
LEVELS = (Level.SOURCE, Level.ENDPOINT, Level.SECTION, Level.OPERATION, Level.TRIGGER)


def tree(retry, query):
    return {"retry": retry, "http": {"queryTemplate": query}}


@given(st.lists(st.tuples(RETRY, QUERY), min_size=5, max_size=5))
def test_the_highest_level_that_speaks_decides(said):
    source, endpoint, section, operation, trigger = [tree(retry, query) for retry, query in said]
    pack = {
        "defaults": source,
        "endpoints": {"e": {"defaults": endpoint, **section, "operations": {"HARVEST": operation}}},
    }
    found = merge(pack, "e", Operation.HARVEST, trigger)
    for name, attribute, default in (
        ("maxAttempts", "max_attempts", 5),
        ("factor", "factor", 2.0),
        ("jitter", "jitter", 0.2),
    ):
        expected, level = default, Level.PLATFORM
        for (retry, _), at in zip(said, LEVELS, strict=True):
            if name in retry:
                expected, level = retry[name], at
        assert getattr(found.sections.retry, attribute) == expected
        assert found.origin(("retry", name)).level is level
    query: dict[str, str] = {}
    for _, values in said:
        for key, value in values.items():
            if value is None:
                query.pop(key, None)
            else:
                query[key] = value
    assert found.sections.http.query_template == query


@given(st.sampled_from(KINDS), st.integers(1, 20), st.sampled_from([Operation.HARVEST, Operation.BACKFILL]))
def test_a_snapshot_stays_as_it_was_when_the_pack_changes(name, attempts, operation):
    pack = loaded(name)
    endpoint = next(iter(pack.pack.endpoints))
    params = {"baseUrl": "https://oai.example.org"} if name == "oai" else {}
    made = compile_spec(pack, endpoint, operation, Overrides(params=params)).spec
    kept = encode_spec(made)
    pack.tree["endpoints"][endpoint]["retry"] = {"maxAttempts": attempts}
    again = compile_spec(pack, endpoint, operation, Overrides(params=params)).spec
    assert encode_spec(made) == kept
    assert decode_spec(kept) == made
    assert (again.spec_fingerprint == made.spec_fingerprint) is (attempts == 5)
    assert again.expr_proto_hash == made.expr_proto_hash
