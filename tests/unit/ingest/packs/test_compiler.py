"""Snapshots: complete, sealed, and the same for the same input (ch. 3.3.4, 3.9)."""

import msgspec
import pytest

from patra.ingest.packs.compiler import LoadedPack, Overrides, compile_spec
from patra.ingest.packs.provenance import with_origins
from patra.ingest.packs.spec import decode_spec, encode_spec, seal_spec
from patra.ingest.packs.yaml.removed_fields import REMOVED_FIELDS
from patra.ingest.vocabulary.codes import CursorType, Dimension, Direction, NamespaceScope, Operation
from patra.ingest.vocabulary.reasons import Reason
from tests.unit.ingest.sample_packs import changed, loaded, loaded_text, problems_of, text_of

HARVEST, BACKFILL, UPDATE = Operation


def spec(pack: LoadedPack, endpoint: str, operation: Operation = HARVEST, **said):
    compiled = compile_spec(pack, endpoint, operation, Overrides(**said))
    assert compiled.spec is not None, [str(problem) for problem in compiled.problems]
    return compiled.spec


def test_a_snapshot_is_read_back_as_it_was_written():
    made = spec(loaded("twophase"), "search")
    assert decode_spec(encode_spec(made)) == made
    assert seal_spec(made) == made


def test_executors_of_the_release_before_read_a_snapshot_that_declares_nothing_new():
    """They refuse an unknown field and a null for `emptyPage`; a task whose plan cannot be read would fail for good."""
    tree = msgspec.json.decode(encode_spec(spec(loaded("twophase"), "search")))
    for pagination in (tree["pagination"], tree["detail"]["pagination"]):
        assert not {"verify", "emptyPage"} & set(pagination)
    said = spec(loaded("page"), "articles", sections={"pagination": {"emptyPage": "END", "verify": "TWICE"}})
    pagination = msgspec.json.decode(encode_spec(said))["pagination"]
    assert (pagination["emptyPage"], pagination["verify"]) == ("END", "TWICE")


def test_the_same_input_gives_the_same_bytes():
    assert encode_spec(spec(loaded("token"), "works")) == encode_spec(spec(loaded("token"), "works"))


def test_the_example_of_chapter_3_9_has_its_names():
    tree = msgspec.json.decode(encode_spec(spec(loaded("twophase"), "search")))
    for name in (
        "provenanceCode",
        "endpointCode",
        "operation",
        "http",
        "auth",
        "pagination",
        "window",
        "retry",
        "rateLimit",
        "batching",
        "expr",
        "response",
        "mapping",
        "specFingerprint",
    ):
        assert name in tree
    assert tree["http"]["queryTemplate"]["retstart"] == "${page.offset}"
    assert tree["auth"]["credentialRef"] == "ncbi"
    assert "env:" not in encode_spec(spec(loaded("twophase"), "search"))


def test_two_phases_bring_the_detail_leg_and_its_records():
    made = spec(loaded("twophase"), "search")
    assert made.detail.endpoint_code == "fetch"
    assert made.yields is made.detail
    assert made.detail.response.items_path == "/PubmedArticleSet/PubmedArticle"
    assert made.detail.rate_limit.cost == 2
    assert spec(loaded("token"), "works").yields.endpoint_code == "works"
    assert spec(loaded("token"), "works", UPDATE).yields.endpoint_code == "work"


@pytest.mark.parametrize(
    ("operation", "kind", "scope", "direction", "priority"),
    [
        (HARVEST, CursorType.TIME, NamespaceScope.EXPR, Direction.FORWARD, 100),
        (UPDATE, CursorType.ID, NamespaceScope.CUSTOM, Direction.FORWARD, 200),
        (BACKFILL, CursorType.TIME, NamespaceScope.CUSTOM, Direction.BACKFILL, 300),
    ],
)
def test_each_operation_has_its_cursor_and_priority(operation, kind, scope, direction, priority):
    made = spec(loaded("token"), "works", operation)
    assert (made.cursor.type, made.cursor.scope, made.cursor.direction, made.priority) == (
        kind,
        scope,
        direction,
        priority,
    )
    assert made.dimension is (Dimension.ID if operation is UPDATE else Dimension.TIME)


def test_parameters_that_select_have_a_watermark_of_their_own_and_others_do_not():
    pack = loaded("twophase")
    plain = spec(pack, "search")
    assert (
        spec(pack, "search", params={"email": "other@example.org"}).cursor.namespace_key == plain.cursor.namespace_key
    )
    assert spec(pack, "search", params={"term": "cancer"}).cursor.namespace_key != plain.cursor.namespace_key
    raised = loaded_text(
        changed("twophase", ("    twoPhase: {enabled", "    cursor: {revision: 2}\n    twoPhase: {enabled"))
    )
    assert spec(raised, "search").cursor.namespace_key != plain.cursor.namespace_key


class TestHashes:
    def test_a_change_of_speed_changes_the_fingerprint_alone(self):
        pack = loaded("token")
        one, two = spec(pack, "works"), spec(pack, "works", sections={"rateLimit": {"refillRatePerSec": 1.0}})
        assert one.spec_fingerprint != two.spec_fingerprint
        assert one.expr_proto_hash == two.expr_proto_hash
        assert one.record_expr_hash == two.record_expr_hash

    def test_a_change_of_the_request_changes_the_prototype_and_not_what_records_are(self):
        one, two = (
            spec(loaded("token"), "works"),
            spec(loaded_text(changed("token", ("rows: ${page.size}", "rows: ${page.size}\n        x: y"))), "works"),
        )
        assert one.expr_proto_hash != two.expr_proto_hash
        assert one.record_expr_hash == two.record_expr_hash

    def test_a_change_of_the_mapping_changes_what_records_are(self):
        one, two = (
            spec(loaded("token"), "works"),
            spec(loaded_text(changed("token", ("apply: [doi]", "apply: [strip]"))), "works"),
        )
        assert one.record_expr_hash != two.record_expr_hash
        assert one.expr_proto_hash != two.expr_proto_hash

    def test_operations_share_what_records_are(self):
        pack = loaded("token")
        assert spec(pack, "works").record_expr_hash == spec(pack, "works", BACKFILL).record_expr_hash
        assert spec(pack, "works").expr_proto_hash != spec(pack, "works", BACKFILL).expr_proto_hash


def test_a_base_url_that_is_a_parameter_brings_its_host():
    made = spec(loaded("oai"), "records", params={"baseUrl": "https://oai.example.org/request/"})
    assert made.http.base_url == "https://oai.example.org/request"
    assert made.hosts == ["oai.example.org"]


def test_fields_given_as_plain_text_become_fields():
    fields = spec(loaded("token"), "works").mapping.output.fields
    assert fields["authors"].fields["given"].path == "$.given"
    assert fields["authors"].fields["name"].expr.startswith("${coalesce")
    assert fields["authors"].fields["name"].path is None


def test_a_trigger_may_override_any_section():
    made = spec(loaded("token"), "works", sections={"pagination": {"pageSize": 50}, "planning": {"priority": 7}})
    assert (made.pagination.page_size, made.priority) == (50, 7)


def test_every_value_is_shown_with_the_line_it_comes_from():
    pack = loaded("token")
    compiled = compile_spec(pack, "works", BACKFILL, Overrides(sections={"retry": {"maxAttempts": 3}}))
    rows = {row.path: row for row in with_origins(compiled, pack.source)}
    assert (rows["http.method"].level, rows["http.method"].place) == ("endpoint", "token.yaml:23")
    assert rows["rateLimit.refillRatePerSec"].level == "operation"
    assert rows["rateLimit.burstCapacity"].level == "source"
    assert rows["pagination.pageSize"].level == "section"
    assert (rows["retry.maxAttempts"].level, rows["retry.maxAttempts"].place) == (
        "trigger",
        "trigger.retry.maxAttempts",
    )
    assert (rows["retry.factor"].level, rows["retry.factor"].place) == ("platform", "")


def test_the_instant_of_an_output_field_stands_for_the_update_time_where_there_is_none():
    text = changed(
        "token",
        ("updatedAtPath: $.indexed['date-time']", "updatedAtPath: ''"),
        ("watermarkKey: indexed", "substituteKey: created"),
        ("shape: work", "shape: raw"),
        ("    window: {", "    ordering: {monotonic: true}\n    window: {"),
        (
            "      fields:",
            "      fields:\n        created: {path: \"$.created['date-time']\", type: INSTANT, format: [EPOCH_MS]}",
        ),
    )
    compiled = compile_spec(loaded_text(text), "works", Operation.HARVEST)
    assert compiled.spec is not None, [str(problem) for problem in compiled.problems]
    assert compiled.spec.response.updated_at_path == "$.created['date-time']"
    assert compiled.spec.response.updated_at_format == ("EPOCH_MS",)
    assert (compiled.spec.window.watermark_key, compiled.spec.cursor.key) == ("created", "created")


@pytest.mark.parametrize(("section", "field"), sorted(REMOVED_FIELDS))
def test_a_field_that_was_removed_is_refused_with_what_to_do_and_old_snapshots_are_read(section, field):
    text = text_of("token").replace(
        "endpoints:\n  works:\n", f"endpoints:\n  works:\n    {section}: {{{field}: 1}}\n", 1
    )
    (found,) = [one for one in problems_of(text) if "was removed" in one.message]
    assert (found.code, found.advice) == (Reason.PACK_UNKNOWN_FIELD, REMOVED_FIELDS[section, field])
    spec = compile_spec(loaded("token"), "works", Operation.HARVEST).spec
    assert spec is not None
    tree = msgspec.to_builtins(spec)
    tree[section] = {**tree[section], field: "1"}
    assert decode_spec(msgspec.json.encode(tree)) == spec
    tree[section]["nobodyKnows"] = 1
    with pytest.raises(msgspec.ValidationError):
        decode_spec(msgspec.json.encode(tree))
