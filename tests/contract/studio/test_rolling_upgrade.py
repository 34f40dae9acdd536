"""Processes of release 0.2.0 at work next to this one, and runs that they began: rows and events as 0.2.0 leaves them."""

import pytest

from patra.kernel.clock import SECOND
from patra.kernel.db.queries import statement
from patra.studio.storage import store
from patra.studio.vocabulary.contracts import OutgoingEvent, after, context_of, plan_id_of, publish
from patra.studio.vocabulary.reasons import Reason

SHORT = "The Test\n\nThe sea was calm at dusk."
OTHER = "The Other\n\nA boat came home at night."
FILES = {"audio": ("audio", "timing"), "video": ("video",), "lipsync": ("mouth_shapes",), "llm": ("text",)}
FORGET_PARTS = statement("forget_parts", "UPDATE stu_film SET plan_id = '', parts = '' WHERE run_id = :run_id")
FORGET_RESULTS = statement("forget_results", "DELETE FROM stu_part WHERE run_id = :run_id")
# `film_again` of 0.2.0
FILM_AGAIN = statement(
    "film_again", "UPDATE stu_film SET state = 'wanted', epoch = 2, tries = 0 WHERE run_id = :run_id"
)
KEEP_PARTS = statement(
    "keep_parts",
    "UPDATE stu_film SET plan_id = :plan_id, parts = :parts, epoch = 1, state = 'failed' WHERE run_id = :run_id",
)


def jobs_created(site, run_id, epoch=1):
    return [e for e in site.log(run_id) if e.event_type == "job.created" and e.idempotency_key.endswith(f":{epoch}")]


def say(site, event, event_type, key, payload, by):
    context = after(context_of(event), event.event_id)
    said = OutgoingEvent(type=event_type, key=key, payload=payload)
    site.db.run(lambda tx: publish(site.studio.bus, tx, context, [said], by=by))


def succeed(site, job, epoch=1):
    """The word of a job, its files not made: no test here draws anything."""
    kinds = FILES[job.payload["worker_type"]]
    made = [
        {
            "artifact_id": f"art_{kind}",
            "kind": kind,
            "uri": "file:x",
            "sha256": f"{epoch:064}",
            "media_type": "a/b",
            "bytes": 1,
        }
        for kind in kinds
    ]
    common = {name: job.payload[name] for name in ("job_id", "run_id", "shot_id", "worker_type", "model_profile_id")}
    payload = common | {"status": "succeeded", "artifacts": made, "error_code": None}
    say(site, job, "job.succeeded", f"{job.payload['job_id']}:{epoch}", payload, "Worker Hub")


def wanted(site, chapter=SHORT, epoch=1, run_id=""):
    """A run whose results are all there: its film is wanted and nobody has begun it."""
    run_id = run_id or site.submit(chapter)
    site.queued()
    answered = set()
    while site.stage(run_id) == "executing":
        new = [job for job in jobs_created(site, run_id, epoch) if job.event_id not in answered]
        assert new
        for job in new:
            succeed(site, job, epoch)
        answered |= {job.event_id for job in new}
        site.queued()
    assert site.stage(run_id) == "composing"
    return run_id


def taken(site):
    """What the composer would begin now: the run, the parts."""
    found = site.db.run(site.studio.composer._take_film)
    return (found[0].run_id, found[2]) if found else None


def hashes(parts):
    return {artifact.sha256 for _, files, _ in parts.shots for artifact in files.values()}


def film(site, run_id):
    return site.db.read(lambda tx: store.film(tx, run_id))


def test_a_film_that_0_2_0_wanted_is_made_of_the_results_of_its_run(site):
    run_id = wanted(site)
    assert film(site, run_id).parts
    site.db.run(lambda tx: tx.execute(FORGET_PARTS, {"run_id": run_id}))
    begun = taken(site)
    assert begun is not None
    assert (begun[0], len(begun[1].shots), begun[1].left_out) == (run_id, 1, ())


def test_a_film_whose_results_are_on_their_way_keeps_no_other_waiting(site):
    first = wanted(site, SHORT)
    site.clock.advance(1)
    second = wanted(site, OTHER)
    site.db.run(lambda tx: tx.execute(FORGET_RESULTS, {"run_id": first}))
    begun = taken(site)
    assert begun is not None
    assert begun[0] == second
    assert (film(site, first).state, taken(site)) == ("wanted", None)


def test_a_film_that_waits_for_a_result_is_begun_when_it_comes(site):
    run_id = site.submit(SHORT)
    site.queued()
    jobs = jobs_created(site, run_id)
    payload = {
        "run_id": run_id,
        "stage": "composing",
        "progress": 85,
        "plan_id": plan_id_of(run_id, 1),
        "plan_version": 1,
        "parts": [{"job_id": job.payload["job_id"], "attempt": 1} for job in jobs],
    }
    say(site, jobs[0], "run.stage.changed", f"{run_id}:1:composing", payload, "Orchestrator")
    site.queued()
    assert (film(site, run_id).state, taken(site)) == ("wanted", None)
    for job in jobs:
        succeed(site, job)
    site.queued()
    begun = taken(site)  # the clock stands still: nobody waits for a pause to end
    assert begun is not None
    assert begun[0] == run_id


def test_a_film_that_0_2_0_wants_again_is_made_of_the_results_of_its_new_epoch(site):
    run_id = wanted(site)
    before = film(site, run_id)
    site.studio.cancel(run_id)
    site.queued()
    assert site.studio.rerun(run_id, "executing") == "executing"
    wanted(site, epoch=2, run_id=run_id)
    first = {"run_id": run_id, "plan_id": before.plan_id, "parts": before.parts}
    site.db.run(lambda tx: tx.execute(KEEP_PARTS, first))
    site.db.run(lambda tx: tx.execute(FILM_AGAIN, {"run_id": run_id}))
    begun = taken(site)
    assert begun is not None
    assert (begun[0], hashes(begun[1])) == (run_id, {f"{2:064}"})


def test_a_film_that_0_2_0_wanted_takes_no_result_of_an_earlier_epoch(site):
    run_id = wanted(site)
    results = site.db.read(lambda tx: store.parts(tx, run_id))
    assert {part.epoch for part in results} == {1}
    site.studio.cancel(run_id)
    site.queued()
    site.studio.rerun(run_id, "executing")
    wanted(site, epoch=2, run_id=run_id)
    stale = statement("stale", "UPDATE stu_part SET epoch = 1 WHERE run_id = :run_id AND worker_type = 'video'")
    site.db.run(lambda tx: tx.execute(stale, {"run_id": run_id}))
    site.db.run(lambda tx: tx.execute(FORGET_PARTS, {"run_id": run_id}))
    assert taken(site) is None
    fresh = statement("fresh", "UPDATE stu_part SET epoch = 2 WHERE run_id = :run_id")
    site.db.run(lambda tx: tx.execute(fresh, {"run_id": run_id}))
    site.clock.advance(2 * SECOND)
    begun = taken(site)
    assert begun is not None
    assert begun[0] == run_id


@pytest.mark.parametrize(("epoch", "counted"), [(1, 0), (2, 0), (2, 9)])
def test_a_run_that_0_2_0_planned_is_executed_once_all_its_prompts_are_routed(site, epoch, counted):
    """0.2.0 writes no count of prompts, and where it plans a run again it leaves the count of the plan before."""
    run_id = site.submit(SHORT)
    if epoch == 2:
        site.queued()
        site.studio.cancel(run_id)
        site.queued()
        site.studio.rerun(run_id, "planning")
    planned = plan_id_of(run_id, epoch)
    before_the_router = [one for one in site.studio.dispatchers if one.group != "model-router"]
    while sum(one.run_once().handled for one in before_the_router):
        pass
    prompts = site.db.read(lambda tx: store.plan_prompts(tx, planned))
    assert (site.stage(run_id), prompts) == ("planning", 3)
    uncounted = {"run_id": run_id, "prompts": counted}
    site.db.run(lambda tx: tx.execute(store.Q["run_planned"], uncounted))
    site.queued()
    jobs = site.db.read(lambda tx: store.jobs(tx, run_id, planned))
    assert (site.stage(run_id), len(jobs)) == ("executing", 3)
    assert len(jobs_created(site, run_id, epoch)) == len([job for job in jobs if job.state == "created"]) > 0


def test_a_run_that_0_2_0_planned_resumes_where_it_stopped(site):
    run_id = wanted(site)
    site.db.run(lambda tx: tx.execute(store.Q["run_planned"], {"run_id": run_id, "prompts": 0}))
    site.studio.cancel(run_id)
    assert site.studio.resume(run_id) == "composing"


def ask_for_plan(site, run_id, epoch):
    """`run.stage.changed` of 0.2.0, which names no plan."""
    asked = site.log(run_id)[0]
    payload = {"run_id": run_id, "stage": "planning", "progress": 5}
    say(site, asked, "run.stage.changed", f"{run_id}:{epoch}:planning", payload, "Orchestrator")


def plans(site, run_id):
    found = [site.db.read(lambda tx, n=n: store.plan(tx, plan_id_of(run_id, n))) for n in (1, 2, 3)]
    return [number for number, plan in enumerate(found, 1) if plan]


def test_a_run_that_0_2_0_resumed_before_it_had_a_plan_gets_the_plan_that_it_waits_for(site):
    run_id = site.submit(SHORT)
    before_the_planner = [one for one in site.studio.dispatchers if one.group != "planner"]
    while sum(one.run_once().handled for one in before_the_planner):
        pass
    resumed = {"run_id": run_id, "plan_version": 2, "now": site.clock.now()}
    site.db.run(lambda tx: tx.execute(store.Q["run_next_epoch"], resumed))
    forget = statement("forget", "DELETE FROM bus_delivery WHERE true")  # what this release said before
    site.db.run(lambda tx: tx.execute(forget))
    ask_for_plan(site, run_id, 3)  # of another epoch than the run has
    site.queued()
    assert plans(site, run_id) == []
    ask_for_plan(site, run_id, 2)
    site.queued()
    assert (plans(site, run_id), site.stage(run_id)) == ([2], "executing")


def found_film(site, run_id, folder):
    """Files in the place of a film, so that the composer finds its work done."""
    parts = site.db.read(lambda tx: site.studio.composer._parts(tx, store.film(tx, run_id)))
    kinds = (
        ("film", "video/mp4"),
        ("subtitles", "application/x-subrip"),
        ("subtitles", "text/vtt"),
        ("poster", "image/jpeg"),
    )
    kept = []
    for number, (kind, media_type) in enumerate(kinds):
        file = folder / f"{number}"
        file.write_bytes(bytes([number]))
        kept.append(site.studio.artifacts.keep(file, kind, media_type))
    site.studio.artifacts.commit(parts.work(), kept, {"duration_ms": 1000, "left_out": []})


@pytest.mark.parametrize(("stage", "published", "fenced"), [("composing", 1, 0), ("cancelled", 0, 1)])
def test_a_film_is_not_published_once_0_2_0_has_cancelled_its_run(site, tmp_path, stage, published, fenced):
    """0.2.0 cancels a run without its film, which waits for the event."""
    run_id = wanted(site)
    found_film(site, run_id, tmp_path)
    cancel = statement("cancel", "UPDATE stu_run SET stage = :stage WHERE run_id = :run_id")
    site.db.run(lambda tx: tx.execute(cancel, {"run_id": run_id, "stage": stage}))
    counts = site.studio.composer.run_once()
    assert (counts.published, counts.fenced) == (published, fenced)
    assert site.types(run_id).count("artifact.published") == published


def test_a_run_whose_film_0_2_0_gave_up_ends_and_says_why_once(each_site):
    site = each_site
    run_id = wanted(site)
    give_up = statement(
        "give_up",
        "UPDATE stu_film SET state = 'failed', tries = 3, error_code = 's_artifact_missing', error = 'gone' WHERE run_id = :run_id",
    )
    site.db.run(lambda tx: tx.execute(give_up, {"run_id": run_id}))
    for composer in (site.studio.composer, site.opened().composer):
        composer.run_once()
    (said,) = [one for one in site.log(run_id) if one.event_type == "compose.failed"]
    assert (said.producer, said.payload["error_code"], said.payload["attempts"]) == (
        "Composer",
        "s_artifact_missing",
        3,
    )
    site.queued()
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason_code, seen.reason) == (
        "failed",
        Reason.COMPOSE_FAILED,
        "s_artifact_missing: gone",
    )
    site.studio.composer.run_once()
    assert site.types(run_id).count("compose.failed") == 1
    assert site.studio.resume(run_id) == "composing"
