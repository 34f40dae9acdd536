"""Failure as the normal case: fallback, retry, shots left out, cancel, resume, dead letters."""

import pytest
from msgspec.structs import replace

from patra.bus import operations
from patra.bus.publishing.envelope import encode
from patra.bus.store import dead_letters
from patra.bus.store.dead_letters import NewDeadLetter
from patra.kernel.clock import SECOND
from patra.kernel.db import Statement
from patra.kernel.errors import IllegalMove, Invalid
from patra.studio import observer
from patra.studio.film.ffmpeg import probe
from patra.studio.profiles import load_profiles
from patra.studio.storage import store
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.vocabulary.reasons import Reason
from tests.contract.studio.conftest import PREFER_SERVERS, remote_profiles
from tests.contract.studio.test_event_log import CONTRACT


def of(log, event_type, **fields):
    return [e for e in log if e.event_type == event_type and all(e.payload.get(k) == v for k, v in fields.items())]


def rename(db, old, new):
    text = f"ALTER TABLE {old} RENAME TO {new}"
    statement = Statement(name="rename", text={"sqlite": text, "postgres": text})
    db.run(lambda tx: tx.execute(statement))


def test_model_servers_do_the_work_under_the_same_contract(served, server):
    run_id = served.submit(profiles=PREFER_SERVERS)
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    log = served.log(run_id)
    used = {e.payload["worker_type"]: e.payload["model_profile_id"] for e in of(log, "job.succeeded")}
    assert used == {"llm": "chat", "audio": "speech", "video": "picture", "lipsync": "lipsync-phonemes"}
    film, manifest = served.studio.film(run_id)
    assert abs(probe(film).duration_ms - manifest.facts["duration_ms"]) <= 100
    assert server.asked("/v1/audio/speech")[0]["voice"] == "anna"
    sent = server.asked("/v1/generate")
    assert manifest.facts["requests"] == {
        shot["shot_id"]: next(body for body in sent if body["text"] == shot["narration"])
        for shot in of(log, "plan.shot.generated")[0].payload["shots"]
    }
    assert all(body["style"] and body["staging"]["time"] == "night" for body in sent)  # as the chat model staged it
    assert all("at night" in body["prompt"] for body in sent)
    assert all(
        headers["Authorization"] == "Bearer secret-key" for path, _, headers in server.requests if "chat" in path
    )
    assert served.studio.progress(run_id).cost_micros > 0


def test_a_server_is_not_asked_without_the_key_that_its_profile_refers_to(served, server, tmp_path, monkeypatch):
    monkeypatch.delenv("SPEECH_KEY", raising=False)
    secret = tmp_path / "key"
    profiles = dict(served.profiles)
    profiles["speech"] = replace(profiles["speech"], api_key="env:SPEECH_KEY")
    profiles["picture"] = replace(profiles["picture"], api_key=f"file:{secret}")
    served.studio = served.opened(profiles)
    run_id = served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS)
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    assert not server.asked("/v1/audio/speech") + server.asked("/v1/generate")
    assert len(of(served.log(run_id), "error.recorded", error_code=str(Reason.KEY_MISSING))) == 2
    monkeypatch.setenv("SPEECH_KEY", "one")
    secret.write_text("two\n")
    served.drain(served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS, fresh="again"))
    sent = {path: headers["Authorization"] for path, _, headers in server.requests}
    assert (sent["/v1/audio/speech"], sent["/v1/generate"]) == ("Bearer one", "Bearer two")


def test_a_server_that_refuses_does_not_stop_the_film(each_served, server):
    server.always["/v1/audio/speech"] = 403
    run_id = each_served.submit(profiles=PREFER_SERVERS)
    each_served.drain(run_id)
    assert each_served.stage(run_id) == "completed"
    log = each_served.log(run_id)
    assert {e.payload["model_profile_id"] for e in of(log, "job.succeeded", worker_type="audio")} == {"audio-espeak"}
    refused = of(log, "worker.audio.completed", status="failed")
    assert {(e.payload["error_code"], e.payload["retryable"]) for e in refused} == {(Reason.SERVER_REFUSED, False)}
    assert len(refused) == each_served.studio.progress(run_id).shots  # asked once each: a refusal is not repeated


@pytest.mark.parametrize("answer", ["silence", "drip"])
def test_a_server_that_never_ends_its_answer_is_given_up_after_its_time(one_url, tmp_path, server, answer):
    from tests.contract.studio.conftest import _site

    server.always["/v1/audio/speech"] = answer
    site = _site(one_url, tmp_path, load_profiles() | remote_profiles(server, timeout=0.2))
    run_id = site.submit("The sea was calm at dusk.", profiles={"audio": ["speech"]})
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    late = of(site.log(run_id), "worker.audio.completed", status="failed")
    assert [(e.payload["error_code"], e.payload["retryable"]) for e in late] == [(Reason.SERVER_UNAVAILABLE, True)] * 3
    assert {e.payload["model_profile_id"] for e in of(site.log(run_id), "job.succeeded", worker_type="audio")} == {
        "audio-espeak"
    }
    site.db.close()


def test_a_servers_video_is_cut_and_held_to_the_shots_length(served, server):
    server.always["/v1/generate"] = "video"
    run_id = served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS)
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    (clip,) = of(served.log(run_id), "worker.video.completed")
    assert clip.payload["model_profile_id"] == "picture"
    film, manifest = served.studio.film(run_id)
    assert abs(probe(film).duration_ms - manifest.facts["duration_ms"]) <= 100


def test_a_busy_server_is_asked_again_later_on_the_same_profile(served, server):
    from collections import deque

    server.answers["/v1/generate"] = deque([503, 429])
    run_id = served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS)
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    log = served.log(run_id)
    assert [e.payload["attempt"] for e in of(log, "job.claimed", worker_type="video")] == [1, 2, 3]
    assert of(log, "job.succeeded", worker_type="video")[0].payload["model_profile_id"] == "picture"
    assert len(of(log, "error.recorded", error_code=str(Reason.SERVER_UNAVAILABLE))) == 2


def test_a_server_that_stays_away_is_replaced_along_the_chain(served, server):
    server.always["/v1/generate"] = 503
    run_id = served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS)
    served.drain(run_id)
    log = served.log(run_id)
    tried = [e.payload["model_profile_id"] for e in of(log, "job.claimed", worker_type="video")]
    assert tried == ["picture", "picture", "picture", "video-painter"]
    assert served.stage(run_id) == "completed"


@pytest.mark.parametrize(
    ("path", "answer", "code"),
    [
        ("/v1/chat/completions", "garbage", Reason.SERVER_ANSWER_INVALID),
        ("/v1/chat/completions", "rubbish application/json", Reason.SERVER_ANSWER_INVALID),
        ("/v1/generate", "cut off", Reason.SERVER_UNAVAILABLE),
        ("/v1/generate", "rubbish image/png", Reason.SERVER_ANSWER_INVALID),
        ("/v1/generate", "rubbish video/mp4", Reason.MEDIA_UNREADABLE),
        ("/v1/generate", "rubbish text/html", Reason.SERVER_ANSWER_INVALID),
        ("/v1/audio/speech", "rubbish audio/wav", Reason.MEDIA_UNREADABLE),
    ],
)
def test_a_broken_answer_never_passes_for_a_result(served, server, path, answer, code):
    server.always[path] = answer
    run_id = served.submit("The sea was calm at dusk.", profiles=PREFER_SERVERS)
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    assert of(served.log(run_id), "error.recorded", error_code=str(code))


def test_a_failed_shot_is_left_out_and_the_manifest_says_so(each_served, server):
    only = {name: p for name, p in each_served.profiles.items() if not name.startswith("video-")}
    server.broken_prompts.add("medium shot")
    site = each_served
    site.studio = site.opened(only)
    run_id = site.submit()
    site.drain(run_id)
    seen = site.studio.progress(run_id)
    assert seen.stage == "completed"
    (left,) = seen.left_out
    assert (left["worker_type"], left["error_code"]) == ("video", Reason.SERVER_REFUSED)
    assert "small boat" in left["narration"]
    _, manifest = site.studio.film(run_id)
    assert manifest.facts["left_out"] == [left]
    assert len(manifest.work["shots"]) == seen.shots - 1
    assert len(of(site.log(run_id), "job.failed")) == 1


@pytest.mark.parametrize(
    ("worker", "path"),
    [("llm", "/v1/chat/completions"), ("audio", "/v1/audio/speech"), ("video", "/v1/generate")],
)
def test_by_the_other_policy_a_failed_shot_fails_the_run(served, server, worker, path):
    local = {"llm": "llm-local", "audio": "audio-espeak", "video": "video-"}[worker]
    only = {name: p for name, p in served.profiles.items() if not name.startswith(local)}
    server.always[path] = 422
    served.studio = served.opened(only)
    run_id = served.submit(on_failed_shot="stop")
    served.drain(run_id)
    seen = served.studio.progress(run_id)
    assert (seen.stage, seen.reason_code) == ("failed", Reason.SHOT_FAILED)
    assert f" {worker}: {Reason.SERVER_REFUSED}" in seen.reason
    assert not of(served.log(run_id), "artifact.published")


def test_a_failed_run_resumes_with_what_succeeded(each_served, server):
    only = {name: p for name, p in each_served.profiles.items() if not name.startswith("video-")}
    server.broken_prompts.add("boat")
    each_served.studio = each_served.opened(only)
    run_id = each_served.submit(on_failed_shot="stop")
    each_served.drain(run_id)
    before = len(server.asked("/v1/generate"))
    server.broken_prompts.clear()
    assert each_served.studio.resume(run_id) == "executing"
    each_served.drain(run_id)
    assert each_served.stage(run_id) == "completed"
    log = each_served.log(run_id)
    created = of(log, "job.created")
    again = [e for e in created if e.payload["attempt"] == 2]
    kept = {e.payload["job_id"] for e in of(log, "job.succeeded")} - {e.payload["job_id"] for e in again}
    assert again
    assert kept
    assert len(server.asked("/v1/generate")) - before == sum(e.payload["worker_type"] == "video" for e in again)


def test_when_no_shot_can_be_made_the_run_fails(served, server):
    only = {name: p for name, p in served.profiles.items() if not name.startswith("video-")}
    server.always["/v1/generate"] = 422
    served.studio = served.opened(only)
    run_id = served.submit()
    served.drain(run_id)
    assert served.studio.progress(run_id).reason_code == Reason.NOTHING_LEFT
    assert of(served.log(run_id), "error.recorded", severity="critical")


def test_a_cancelled_run_stops_and_can_be_resumed(each_site):
    site = each_site
    run_id = site.submit()
    site.drain(until=lambda: site.stage(run_id) == "executing")
    site.studio.run_once()
    site.studio.cancel(run_id, by="anna")
    site.drain(run_id)
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason_code, seen.reason) == ("cancelled", Reason.CANCELLED, "by anna")
    assert not of(site.log(run_id), "artifact.published")
    assert site.studio.resume(run_id, by="anna") == "executing"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    log = site.log(run_id)
    assert len(of(log, "artifact.published")) == 1
    assert len(of(log, "job.succeeded")) == len({e.payload["job_id"] for e in of(log, "job.created")})
    assert site.studio.artifacts.orphans() == []


class CancelledMeanwhile(ArtifactStore):
    """Keeps a film just as an operator cancels its run."""

    def __init__(self, site, run_id):
        super().__init__(site.folder)
        self._cancel = lambda: site.studio.cancel(run_id, by="anna")

    def commit(self, work, artifacts, facts=None):
        self._cancel()
        return super().commit(work, artifacts, facts)


def test_a_run_that_is_cancelled_while_its_film_is_made_publishes_none(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    site.studio.composer._artifacts = CancelledMeanwhile(site, run_id)
    site.drain(run_id)
    assert site.studio.progress(run_id).stage == "cancelled"
    assert not of(site.log(run_id), "artifact.published")
    with pytest.raises(Invalid, match="no film was made"):
        site.studio.film(run_id)
    site.studio = site.opened()
    assert site.studio.resume(run_id) == "composing"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


def test_a_run_whose_film_is_published_is_not_cancelled_before_the_orchestrator_hears_of_it(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    while not site.studio.composer.run_once().published:
        site.studio.dispatch()
        for desk in site.studio.desks:
            desk.run_once()
    assert site.stage(run_id) == "composing"
    with pytest.raises(IllegalMove, match="the film is published"):
        site.studio.cancel(run_id)
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


def test_a_film_is_not_made_where_the_end_of_its_run_was_heard_of_first(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    others = [one for one in site.studio.dispatchers if one.group != "composer"]
    while site.stage(run_id) != "composing":  # the composer has yet to hear that a film is wanted
        assert sum(one.run_once().handled for one in others) + sum(desk.run_once().done for desk in site.studio.desks)
    site.studio.cancel(run_id)
    site.queued()
    film = site.db.read(lambda tx: store.film(tx, run_id))
    assert (film.state, film.epoch) == ("cancelled", 1)
    assert site.studio.composer.run_once().published == 0
    assert site.studio.resume(run_id) == "composing"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


def test_an_ended_run_cannot_be_cancelled_nor_one_under_way_resumed(site):
    run_id = site.submit("The sea was calm.")
    site.drain(until=lambda: site.stage(run_id) == "executing")
    with pytest.raises(IllegalMove) as refused:
        site.studio.resume(run_id)
    assert refused.value.code == Reason.RUN_NOT_ENDED
    site.drain(run_id)
    with pytest.raises(IllegalMove) as refused:
        site.studio.cancel(run_id)
    assert refused.value.code == Reason.RUN_NOT_RUNNING
    with pytest.raises(Invalid) as refused:
        site.studio.rerun(run_id, "publishing")
    assert refused.value.code == Reason.STAGE_UNKNOWN


def test_a_run_is_seen_and_cancelled_before_the_orchestrator_has_heard_of_it(each_site):
    site = each_site
    run_id = site.submit("The sea was calm.")
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.progress, seen.has_ended) == ("submitted", 0, False)
    with pytest.raises(IllegalMove) as refused:
        site.studio.resume(run_id)
    assert refused.value.code == Reason.RUN_NOT_ENDED
    site.studio.cancel(run_id, by="anna")
    site.drain(run_id)
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason) == ("cancelled", "by anna")
    log = site.log(run_id)
    assert [e.event_type for e in log] == ["task.submitted", "run.created", "run.stage.changed"]
    assert log[1].causation_id == log[0].event_id
    assert site.studio.resume(run_id) == "planning"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


@pytest.mark.parametrize("stage", ["planning", "executing", "composing"])
def test_a_run_can_be_done_again_from_a_stage(site, stage):
    run_id = site.submit("The sea was calm at dusk.\n\nA boat came home.")
    site.drain(run_id)
    first = site.studio.film(run_id)[1]
    assert site.studio.rerun(run_id, stage) == stage
    site.drain(run_id)
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.epoch) == ("completed", 2)
    assert site.studio.film(run_id)[1] == first  # the same work, found
    log = site.log(run_id)
    assert len(of(log, "artifact.published")) == 2
    assert len(of(log, "plan.shot.generated")) == (2 if stage == "planning" else 1)


def test_the_job_of_a_dead_worker_comes_back_and_its_late_report_is_fenced_off(site):
    run_id = site.submit("The sea was calm at dusk.")
    site.queued()
    dead = site.opened()
    claim = dead.hub.claim("audio", "worker-that-dies")
    assert claim is not None
    site.clock.advance(60 * SECOND)
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    from patra.kernel.errors import Fenced

    with pytest.raises(Fenced):
        site.db.run(lambda tx: dead.hub.report(tx, claim))
    log = site.log(run_id)
    assert len(of(log, "job.claimed", worker_type="audio")) == 2
    assert len(of(log, "job.succeeded", worker_type="audio")) == 1


def test_a_job_that_kills_every_worker_goes_to_the_next_profile_and_then_fails(site):
    run_id = site.submit("The sea was calm at dusk.")
    site.queued()
    other = site.opened()
    (llm,) = [desk for desk in site.studio.desks if desk.worker_type == "llm"]
    deaths = 0
    for turn in range(20):
        site.studio.dispatch()
        llm.run_once()
        deaths += other.hub.claim("audio", f"doomed-{turn}") is not None
        site.clock.advance(60 * SECOND)
    assert deaths == 4
    assert site.studio.progress(run_id).reason_code == Reason.NOTHING_LEFT
    assert of(site.log(run_id), "job.failed")[0].payload["error_code"] == Reason.WORKER_CRASHED


def test_a_film_that_cannot_be_composed_fails_the_run_after_three_tries(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    site.drain(until=lambda: site.stage(run_id) and "worker.video.completed" in site.types(run_id))
    (made,) = of(site.log(run_id), "worker.video.completed")
    (clip,) = made.payload["artifacts"]
    whole = site.studio.artifacts.path(clip)
    whole.write_bytes(bytes(whole.stat().st_size))  # the disk lies: right size, wrong bytes
    site.drain(run_id)
    site.queued()
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason_code) == ("failed", Reason.COMPOSE_FAILED)
    assert not of(site.log(run_id), "artifact.published")
    assert of(site.log(run_id), "error.recorded", error_code=str(Reason.COMPOSE_FAILED), severity="critical")
    (told,) = of(site.log(run_id), "compose.failed")
    assert (told.producer, told.payload["error_code"], told.payload["attempts"]) == (
        "Composer",
        Reason.ARTIFACT_MISSING,
        3,
    )
    (ended,) = of(site.log(run_id), "run.stage.changed", stage="failed")
    assert ended.causation_id == told.event_id
    moves = site.db.read(
        lambda tx: tx.lookup(
            "krn_move", columns=("on_event",), key=("machine", "subject"), keys=[("studio_film", run_id)]
        )
    )
    assert sorted(m[0] for m in moves) == ["give_up", "retry", "retry", "take", "take", "take"]
    assert site.studio.rerun(run_id, "executing") == "executing"  # the file is gone, so its work is done again
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    done = of(site.log(run_id), "worker.video.completed", status="succeeded")
    assert [e.payload["metrics"].get("reused") for e in done] == [None, None]
    assert site.studio.artifacts.orphans() == []


def test_a_dead_letter_of_the_composer_fails_the_run_and_resume_makes_the_film(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    site.queued()
    rename(site.db, "stu_part", "stu_part_gone")
    for _ in range(100):  # everyone works but the composer itself, which only hears, and cannot keep what it hears
        site.studio.dispatch()
        if not any(desk.run_once().done for desk in site.studio.desks):
            site.clock.advance(600 * SECOND)
        letters = site.db.read(lambda tx: operations.find_letters(tx, operations.Filter(group="composer"), limit=100))
        if site.stage(run_id) == "failed":
            break
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason_code) == ("failed", Reason.HANDLER_FAILED)  # it does not wait for ever
    assert "composer could not handle job.succeeded" in seen.reason
    assert {letter.event_type for letter in letters} == {"job.succeeded"}
    recorded = of(site.log(run_id), "error.recorded", module="composer", severity="critical")
    assert {e.payload["source_event_id"] for e in recorded} == {letter.event_id for letter in letters}
    rename(site.db, "stu_part_gone", "stu_part")
    assert site.studio.resume(run_id) == "executing"  # what the composer missed is sent again
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    again = of(site.log(run_id), "worker.audio.completed", status="succeeded")
    assert again[-1].payload["metrics"] == {"reused": 1.0}  # found, not spoken again


def test_a_handler_that_cannot_do_its_work_ends_the_run_within_seconds(each_site):
    site = each_site
    run_id = site.submit("The sea was calm at dusk.")
    rename(site.db, "stu_plan", "stu_plan_gone")  # what the planner has to write to
    began = site.clock.now()
    while site.stage(run_id) != "failed" and site.clock.now() - began < 600 * SECOND:
        if not site.studio.dispatch().events:
            site.clock.advance(SECOND // 4)
    assert site.stage(run_id) == "failed"
    assert site.clock.now() - began < 5 * SECOND  # the clock is set by hand: it tells how often was waited
    rename(site.db, "stu_plan_gone", "stu_plan")
    assert "planner could not handle run.stage.changed" in site.studio.progress(run_id).reason
    assert site.studio.resume(run_id) == "planning"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


def test_work_of_a_resumed_run_is_not_stopped_by_the_word_of_its_end(site):
    run_id = site.submit("The sea was calm at dusk.")
    site.queued()
    site.studio.cancel(run_id, "anna")
    assert site.studio.resume(run_id, "anna") == "executing"  # before the hub has heard of the end
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    assert not of(site.log(run_id), "job.failed")


def test_every_dead_letter_is_recorded_once_however_many_there_are(site, monkeypatch):
    monkeypatch.setattr(observer, "DEAD_LETTERS_PER_PAGE", 2)
    run_id = site.submit("The sea was calm at dusk.")
    site.queued()
    submitted, now = site.log(run_id)[0], site.clock.now()
    ids = [f"00000000-0000-7000-8000-{number:012}" for number in range(5)]
    letters = [
        NewDeadLetter(
            letter_id=f"composer/{event_id}",
            group_id=1,
            group_name="composer",
            seq=number,
            order_key=None,
            event_id=event_id,
            event_type="job.succeeded",
            event_version="1.0",
            producer="worker-hub",
            tenant_id=submitted.tenant_id,
            trace_id=submitted.trace_id,
            correlation_id=submitted.correlation_id,
            error_code="b_handler_failed",
            error_detail="the disk is full",
            reason="b_attempts_exhausted",
            attempts=5,
            first_failed_at=now,
            last_failed_at=now + number // 3,  # several fail at the same time
            envelope=encode(submitted).decode(),
        )
        for number, event_id in enumerate(ids)
    ]
    site.db.run(lambda tx: dead_letters.write(tx, letters))
    assert [site.studio.observer.run_once(site.db) for _ in range(2)] == [5, 0]
    recorded = of(site.log(run_id), "error.recorded", module="composer")
    assert sorted(e.payload["source_event_id"] for e in recorded) == ids


def test_a_run_that_no_profile_fits_fails_at_once_and_goes_on_when_one_does(site, server):
    without = {name: p for name, p in load_profiles().items() if p.worker_type != "video"}
    run_id = site.submit("The sea was calm at dusk.")
    site.studio = site.opened(without)  # the process that works has fewer profiles than the one that took the chapter
    for _ in range(20):  # and the clock stands still: nothing is waited for
        site.studio.run_once()
    seen = site.studio.progress(run_id)
    assert (seen.stage, seen.reason_code) == ("failed", Reason.HANDLER_FAILED)
    assert "s_no_profile no profile does video in en at quality draft" in seen.reason
    errors = of(site.log(run_id), "error.recorded")
    assert {(e.payload["module"], e.payload["error_code"]) for e in errors} == {
        ("model-router", Reason.NO_PROFILE),
        ("orchestrator", Reason.HANDLER_FAILED),
    }
    (letter,) = site.db.read(lambda tx: operations.find_letters(tx, operations.Filter(group="model-router"), limit=10))
    assert (letter.event_type, letter.error_code) == ("plan.prompt.generated", Reason.NO_PROFILE)
    site.studio = site.opened(load_profiles() | remote_profiles(server))  # an operator adds the profile
    done = site.db.run(
        lambda tx: operations.replay(
            tx, site.studio.bus, "model-router", [letter.event_id], by="anna", confirm="model-router"
        )
    )
    assert isinstance(done, operations.Done)
    site.drain(run_id)
    assert site.stage(run_id) == "failed"  # the routes of the old plan come too late
    assert site.studio.resume(run_id) == "planning"
    site.drain(run_id)
    assert site.stage(run_id) == "completed"


def test_a_chapter_that_no_profile_fits_is_refused_at_once(site):
    german = {n: replace(p, languages=("de",)) if p.worker_type == "audio" else p for n, p in site.profiles.items()}
    site.studio = site.opened(german)
    with pytest.raises(Invalid) as refused:
        site.submit("The sea was calm at dusk.")
    assert (refused.value.code, refused.value.place) == (Reason.NO_PROFILE, "options.profiles")
    assert "audio in en" in refused.value.detail


def test_every_group_that_the_catalogue_names_for_the_studios_events_subscribes(site):
    named = {
        (name, consumer.group)
        for name, kind in site.studio.bus.catalogue.types.items()
        if name in CONTRACT
        for consumer in kind.consumers
    }
    assert {(c.event_type, c.group) for c in site.studio.bus.consumers} >= named
