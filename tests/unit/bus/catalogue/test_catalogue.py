"""The catalogue: C§2 and C§5 as data, complete; a wrong file is refused with its place."""

import pytest

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import OnDeadLetter, Status, load, parse
from patra.bus.catalogue.evolution import decode_release, objections, release
from patra.kernel.clock import DAY, MINUTE, SECOND, SystemClock
from patra.kernel.errors import ConfigInvalid
from patra.studio.pipeline import Studio
from tests.unit.bus.making import closed, event_type, version

AUTHORITY = {  # C§5, to the letter
    "task.submitted": "Gateway",
    "run.created": "Orchestrator",
    "run.stage.changed": "Orchestrator",
    "route.decision.made": "Model Router",
    "job.created": "Orchestrator",
    "job.claimed": "Worker Hub",
    "job.succeeded": "Worker Hub",
    "job.failed": "Worker Hub",
    "worker.video.completed": "worker-video",
    "worker.audio.completed": "worker-audio",
    "worker.llm.completed": "worker-llm",
    "worker.lipsync.completed": "worker-lipsync",
    "compose.completed": "Composer",
    "artifact.published": "Composer",
    "error.recorded": "Observer",
}
KEY_FIELDS = {  # C§2
    "task.submitted": "task_id chapter_id requested_quality language_context",
    "run.created": "run_id stage progress",
    "run.stage.changed": "run_id stage progress",
    "plan.shot.generated": "plan_id shots prompt_refs",
    "plan.prompt.generated": "plan_id shots prompt_refs",
    "route.decision.made": "job_id worker_type model_profile_id fallback_chain",
    "job.created": "job_id worker_type model_profile_id fallback_chain",
    "job.succeeded": "job_id status artifacts error_code retryable",
    "job.failed": "job_id status artifacts error_code retryable",
    "compose.completed": "run_id final_artifact_uri duration_ms",
    "artifact.published": "run_id final_artifact_uri duration_ms",
}
CONSUMERS = {  # C§2
    "task.submitted": {"orchestrator"},
    "run.created": {"planner", "observer"},
    "run.stage.changed": {"planner", "observer"},
    "plan.shot.generated": {"model-router"},
    "plan.prompt.generated": {"model-router"},
    "route.decision.made": {"worker-hub"},
    "job.created": {"worker-hub"},
    "job.succeeded": {"orchestrator", "composer", "observer"},
    "job.failed": {"orchestrator", "composer", "observer"},
    "compose.completed": {"gateway", "studio", "observer"},
    "artifact.published": {"gateway", "studio", "observer"},
}


@pytest.fixture(scope="module")
def types():
    return load().types


def test_c5_the_authority_table_is_data_in_the_catalogue(types):
    assert {name: types[name].producer for name in AUTHORITY} == AUTHORITY


def test_c5_no_event_type_has_two_producers(tmp_path):
    mine = tmp_path / "job.yaml"
    mine.write_text(
        "{type: job.created, title: A, description: B, producer: Somebody Else, versions: "
        "[{version: '1.0', schema: {type: object, additionalProperties: false}, examples: [{}]}]}"
    )
    with pytest.raises(ConfigInvalid, match=r"job\.created is declared in"):
        load([tmp_path])
    mine.write_text(mine.read_text().replace("Somebody Else", "[Orchestrator, Worker Hub]"))
    with pytest.raises(ConfigInvalid, match="producer"):
        load([tmp_path], built_in=False)


def test_b3_the_producers_of_c2_that_c5_does_not_list_are_the_planner(types):
    assert types["plan.shot.generated"].producer == types["plan.prompt.generated"].producer == "Planner"


def test_c2_every_key_field_is_in_the_schema_of_its_event(types):
    for name, fields in KEY_FIELDS.items():
        assert set(fields.split()) <= set(types[name].contracts[1].schema["properties"]), name


def test_c2_every_consumer_of_the_flow_is_listed(types):
    for name, groups in CONSUMERS.items():
        assert groups <= {consumer.group for consumer in types[name].consumers}, name


def test_every_consumer_that_the_studio_has_is_listed(types):
    """The catalogue tells who listens, and B4 waits for them: so nobody who does may be missing."""
    bus = Bus(load(), SystemClock())
    Studio(None, bus, None, {})
    real = {(c.event_type, c.group) for c in bus.consumers}
    assert real
    assert real <= {(name, c.group) for name, kind in types.items() for c in kind.consumers}


def test_the_platforms_own_events_are_in_the_catalogue(types):
    assert {"ingest.record.changed", "ingest.source.halted", "attribution.record.emitted"} <= set(types)


def test_the_released_catalogue_is_the_one_that_is_loaded():
    """B4 for this repository: a contract changed without its version, or without `catalogue release`, fails here."""
    from importlib.resources import files

    released = decode_release((files("patra.bus") / "contracts" / "released.json").read_bytes())
    assert objections(released, load()) == []
    assert released == release(load())


def test_b5_defaults_five_retries_and_a_threshold_of_a_hundred():
    kind = event_type()
    assert kind.retry.max_retries == 5
    assert kind.dead_letter_threshold == 100
    assert (kind.retry.base, kind.retry.cap, kind.retention) == (SECOND, 5 * MINUTE, 90 * DAY)


def test_a_type_that_asks_for_order_says_by_what_and_what_a_dead_letter_does():
    kind = event_type(ordering={"key": ["/tenant_id", "/payload/key"], "scope": "things", "on_dead_letter": "block"})
    assert kind.ordering.scope == "things"
    assert kind.ordering.on_dead_letter is OnDeadLetter.BLOCK


def test_majors_that_are_not_retired_are_published_together():
    kind = event_type(versions=[version("1.4", status="retired"), version("2.0", status="retiring"), version("3.1")])
    assert kind.live == {2, 3}
    assert kind.contracts[1].status is Status.RETIRED


def test_a_whole_type_can_be_retired():
    assert event_type(versions=[version("1.0", status="retired")]).live == set()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "Thing"}, "not an event type"),
        ({"type": "thing"}, "not an event type"),
        ({"producer": " "}, "producer"),
        ({"dead_letter_threshold": 0}, "dead_letter_threshold"),
        ({"retry": {"max_retries": -1}}, "max_retries"),
        ({"retry": {"base": "1s"}}, "duration"),
        ({"retry": {"base": "PT10M", "cap": "PT1M"}}, "base <= cap"),
        ({"retention": "P1Y"}, "years"),
        ({"consumers": [{"group": "Big Group"}]}, "group"),
        ({"consumers": [{"group": "g", "versions": "new"}]}, "range"),
        ({"ordering": {"key": []}}, "pointers"),
        ({"ordering": {"key": ["/payload/n"]}}, "not a required field"),
        ({"ordering": {"key": ["/idempotency_key"]}}, "pointers"),
        ({"versions": []}, "exactly one"),
        ({"versions": [version("1.0", status="retiring")]}, "exactly one"),
        ({"versions": [version("1.0"), version("2.0", status="retiring")]}, "newest"),
        ({"versions": [version("1.0", status="retiring"), version("1.1")]}, "once"),
        ({"versions": [version("0.9")]}, "from 1.0"),
        ({"versions": [version("1")]}, "major.minor"),
        ({"versions": [version(schema={"type": "string"})]}, "type: object"),
        ({"versions": [version(schema=closed({"a": {"minItems": "x"}}))]}, "whole number"),
        ({"versions": [version(example={"other": 1})]}, "not a field"),
        ({"versions": [{**version(), "examples": []}]}, "example"),
        ({"subscribers": []}, "unknown field"),
    ],
)
def test_a_contract_that_breaks_a_rule_is_refused_with_the_reason(change, words):
    with pytest.raises(ConfigInvalid) as refused:
        event_type(**change) if "type" not in change else event_type(name=change["type"])
    assert refused.value.code == "b_catalogue_invalid"
    assert words in str(refused.value)
    assert ".yaml" in refused.value.place


@pytest.mark.parametrize("text", ["a: [", "a: 9999-99-99", "a: " + "9" * 5000])
def test_yaml_that_is_none_is_refused(text: str):
    with pytest.raises(ConfigInvalid, match="no YAML"):
        parse(text, "broken.yaml")


def test_a_type_stands_in_one_file(tmp_path):
    text = (load.__globals__["files"]("patra.bus") / "contracts" / "job.failed.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigInvalid, match="one file a type"):
        load([tmp_path])


def test_aliases_of_aliases_are_refused_instead_of_being_written_out():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with pytest.raises(ConfigInvalid) as caught:
        parse("\n".join(lines), "laughs.yaml")
    assert "aliases" in caught.value.detail
