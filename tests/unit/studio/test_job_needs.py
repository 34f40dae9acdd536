"""Which jobs of a shot can begin, which never will, and which results a film is made of."""

from patra.studio.job_needs import film_parts_of, hopeless, ready_with_inputs
from patra.studio.storage.store import JobRow


def job(worker: str, state: str, *, shot: str = "s1", error_code: str = "", epoch: int = 1) -> JobRow:
    return JobRow(
        job_id=f"{shot}-{worker}",
        run_id="r",
        plan_id="p",
        shot_id=shot,
        shot_index=0,
        worker_type=worker,
        prompt_id="",
        profile_id="",
        fallback_chain=[],
        state=state,
        epoch=epoch,
        artifacts=[{"kind": worker}] if state == "succeeded" else [],
        error_code=error_code,
        changed_at=0,
    )


def names(jobs: list[JobRow]) -> list[str]:
    return [one.job_id for one in jobs]


def test_a_job_begins_when_what_it_needs_has_ended_and_gets_what_it_gave():
    jobs = [
        job("audio", "succeeded"),
        job("lipsync", "failed"),
        job("video", "waiting"),
        job("audio", "waiting", shot="s2"),
    ]
    assert [(one.job_id, inputs) for one, inputs in ready_with_inputs(jobs)] == [
        ("s1-video", [{"kind": "audio"}]),
        ("s2-audio", []),
    ]
    assert ready_with_inputs([job("audio", "claimed"), job("lipsync", "waiting"), job("video", "waiting")]) == []


def test_what_waits_for_a_failed_job_is_hopeless_and_what_waits_for_that_too_but_mouths_are_not_needed():
    assert names(hopeless([job("audio", "failed"), job("lipsync", "waiting"), job("video", "waiting")])) == [
        "s1-lipsync",
        "s1-video",
    ]
    assert hopeless([job("audio", "succeeded"), job("lipsync", "failed"), job("video", "waiting")]) == []
    assert hopeless([job("audio", "failed"), job("video", "waiting", shot="s2")]) == []


def test_a_film_is_made_of_results_and_a_skipped_job_has_none():
    jobs = [
        job("audio", "succeeded", epoch=3),
        job("video", "failed"),
        job("audio", "failed", shot="s2", error_code="s_speech_failed", epoch=2),
        job("video", "cancelled", shot="s2"),
    ]
    assert film_parts_of(jobs) == [{"job_id": "s1-audio", "attempt": 3}, {"job_id": "s2-audio", "attempt": 2}]
