"""The event log of a run, checked against C§2 and C§5."""

from collections import Counter

from patra.studio.film.ffmpeg import probe
from patra.studio.observer import all_notes, notes
from patra.studio.script.plan import WORKERS as KINDS
from patra.studio.views import shots

# C§2 and C§5 to the letter: the producer, and the fields that the payload must have
CONTRACT = {
    "task.submitted": ("Gateway", "task_id chapter_id requested_quality language_context"),
    "run.created": ("Orchestrator", "run_id stage progress"),
    "run.stage.changed": ("Orchestrator", "run_id stage progress"),
    "plan.shot.generated": ("Planner", "plan_id shots prompt_refs"),
    "plan.prompt.generated": ("Planner", "plan_id shots prompt_refs"),
    "route.decision.made": ("Model Router", "job_id worker_type model_profile_id fallback_chain"),
    "job.created": ("Orchestrator", "job_id worker_type model_profile_id fallback_chain"),
    "job.claimed": ("Worker Hub", "job_id worker_type model_profile_id"),
    "worker.llm.completed": ("worker-llm", "job_id status artifacts error_code retryable"),
    "worker.audio.completed": ("worker-audio", "job_id status artifacts error_code retryable"),
    "worker.lipsync.completed": ("worker-lipsync", "job_id status artifacts error_code retryable"),
    "worker.video.completed": ("worker-video", "job_id status artifacts error_code retryable"),
    "job.succeeded": ("Worker Hub", "job_id status artifacts error_code retryable"),
    "job.failed": ("Worker Hub", "job_id status artifacts error_code retryable"),
    "compose.completed": ("Composer", "run_id final_artifact_uri duration_ms"),
    "compose.failed": ("Composer", "run_id error_code"),
    "artifact.published": ("Composer", "run_id final_artifact_uri duration_ms"),
    "error.recorded": ("Observer", "error_code"),
}
ABSENT = {"job.failed", "compose.failed", "error.recorded", "worker.llm.completed"}
WORKERS = tuple(kind for kind in KINDS if kind != "llm")  # nobody but a chat server changes a staging
CAUSES = {
    "task.submitted": {None},
    "run.created": {"task.submitted"},
    "run.stage.changed": {
        *("run.created", "route.decision.made", "job.succeeded", "compose.completed", "artifact.published"),
    },
    "plan.shot.generated": {"run.stage.changed"},
    "plan.prompt.generated": {"plan.shot.generated"},
    "route.decision.made": {"plan.prompt.generated"},
    "job.created": {"route.decision.made", "job.succeeded"},
    "job.claimed": {"job.created"},
    "worker.llm.completed": {"job.claimed"},
    "worker.audio.completed": {"job.claimed"},
    "worker.lipsync.completed": {"job.claimed"},
    "worker.video.completed": {"job.claimed"},
    "job.succeeded": {f"worker.{worker}.completed" for worker in WORKERS},
    "compose.completed": {"run.stage.changed"},
    "artifact.published": {"compose.completed"},
}


def test_a_chapter_becomes_a_published_film(told):
    site, run_id = told
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.progress, seen.left_out) == ("completed", 100, [])
    lines = site.db.read(lambda tx: shots(tx, run_id))
    assert [line.state for line in lines] == ["made"] * seen.shots
    film, manifest = site.studio.film(run_id)
    found = probe(film)
    assert found.streams == ("Video", "Audio", "Subtitle")
    assert abs(found.duration_ms - manifest.facts["duration_ms"]) <= 100
    assert site.studio.artifacts.orphans() == []


def test_every_event_of_the_loop_is_there_once(told):
    site, run_id = told
    log = site.log(run_id)
    shot_count = site.studio.progress(run_id).shots
    counts = Counter(e.event_type for e in log)
    once = (
        "task.submitted",
        "run.created",
        "plan.shot.generated",
        "plan.prompt.generated",
        "compose.completed",
        "artifact.published",
    )
    assert {name: counts[name] for name in once} == dict.fromkeys(once, 1)
    jobs = shot_count * len(WORKERS)
    for name in ("route.decision.made", "job.created", "job.claimed", "job.succeeded"):
        assert counts[name] == jobs
    for worker in WORKERS:
        assert counts[f"worker.{worker}.completed"] == shot_count
    assert counts["job.failed"] == counts["error.recorded"] == 0
    stages = [e.payload["stage"] for e in log if e.event_type == "run.stage.changed"]
    assert stages == ["planning", "routing", "executing", "composing", "publishing", "completed"]
    assert len({(e.event_type, e.idempotency_key) for e in log}) == len(log)


def test_each_event_comes_from_its_authority_and_from_nobody_else(told):
    site, run_id = told
    log = site.log(run_id)
    assert {e.event_type: e.producer for e in log} == {
        name: producer for name, (producer, _) in CONTRACT.items() if name not in ABSENT
    }
    assert len({(e.event_type, e.producer) for e in log}) == len({e.event_type for e in log})
    assert {e.forwarded_by for e in log} == {()}
    for envelope in log:
        assert set(CONTRACT[envelope.event_type][1].split()) <= set(envelope.payload), envelope.event_type


def test_every_event_is_caused_by_the_one_before_it_in_the_contract(told):
    site, run_id = told
    log = site.log(run_id)
    by_id = {e.event_id: e for e in log}
    for envelope in log:
        cause = by_id[envelope.causation_id].event_type if envelope.causation_id else None
        assert cause in CAUSES[envelope.event_type], (envelope.event_type, cause)
        if cause is not None:
            assert log.index(by_id[envelope.causation_id]) < log.index(envelope)


def test_causation_and_correlation_are_unbroken_from_submission_to_publication(told):
    site, run_id = told
    log = site.log(run_id)
    by_id = {e.event_id: e for e in log}
    assert len({(e.tenant_id, e.project_id, e.trace_id, e.correlation_id) for e in log}) == 1
    for envelope in log:
        way = [envelope]
        while way[-1].causation_id is not None:
            way.append(by_id[way[-1].causation_id])
        assert way[-1].event_type == "task.submitted"
    (published,) = [e for e in log if e.event_type == "artifact.published"]
    way = [published.event_type]
    here = published
    while here.causation_id is not None:
        here = by_id[here.causation_id]
        way.append(here.event_type)
    assert way[:3] == ["artifact.published", "compose.completed", "run.stage.changed"]
    assert {"job.succeeded", "job.claimed", "job.created", "plan.shot.generated", "run.created"} <= set(way)


def test_the_same_task_again_is_the_same_run(site):
    from patra.studio.gateway import Submission

    asked = Submission(chapter="It rained on the sea all day.", task_id="task-1")
    assert site.studio.submit(asked) == site.studio.submit(asked)
    site.drain()
    assert site.types(site.studio.submit(asked)).count("run.created") == 1


def test_the_same_work_is_found_and_not_done_again(site):
    first = site.submit()
    site.drain(first)
    second = site.submit()
    site.drain(second)
    done = [e for e in site.log(second) if e.event_type.startswith("worker.")]
    assert all(e.payload["metrics"] == {"reused": 1.0} for e in done)
    assert site.studio.film(first)[0] == site.studio.film(second)[0]


def test_fresh_work_is_done_again(site):
    first = site.submit()
    site.drain(first)
    second = site.submit(fresh="once more")
    site.drain(second)
    done = [e for e in site.log(second) if e.event_type.startswith("worker.")]
    assert not any("reused" in e.payload["metrics"] for e in done)


def test_a_film_without_narrator_has_no_lipsync_jobs(site):
    run_id = site.submit(narrator=False)
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    assert "worker.lipsync.completed" not in site.types(run_id)


def test_burnt_subtitles_are_drawn_and_still_a_stream(site):
    run_id = site.submit("The sea was calm.", subtitles="burnt")
    site.drain(run_id)
    film, _ = site.studio.film(run_id)
    assert probe(film).streams == ("Video", "Audio", "Subtitle")


def test_a_chinese_chapter_becomes_a_film(site):
    run_id = site.submit("纸船\n\n清晨，江面上浮着一层薄雾。\n\n小满坐在石桥上。")
    site.drain(run_id)
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.title) == ("completed", "纸船")


def test_a_story_of_many_pages_is_told_to_its_end(site):
    run_id = site.submit("The sea was calm at dusk.")
    site.drain(run_id)
    told = all_notes(site.db, run_id, at_once=3)
    assert len(told) > 6
    assert told == site.db.read(lambda tx: notes(tx, run_id))
