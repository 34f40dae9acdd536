"""What a film is made of: the results that were named, each of the attempt that counts."""

import msgspec

from patra.studio.film_parts import gather
from patra.studio.gateway import ChapterRequest, Options
from patra.studio.script.plan import make_plan
from patra.studio.storage.store import FilmRow, NamedParts, PartRow
from patra.studio.vocabulary.contracts import Context, job_id_of

TEXT = "The sea was calm at dusk.\n\nA boat came home at night."
PLAN = make_plan(TEXT, workers=("audio", "video"))
REQUEST = ChapterRequest(
    task_id="t", text=TEXT, title="The Sea", language="en", quality="draft", wishes=Options(), submitted_at=0
)
FILES = {"audio": ("audio", "timing"), "video": ("video",)}


def artifact(kind: str, attempt: int) -> dict[str, object]:
    digest = f"{attempt:064}"
    return {"artifact_id": "art", "kind": kind, "uri": "file:x", "sha256": digest, "media_type": "a/b", "bytes": 1}


def results(attempt: int = 1) -> list[PartRow]:
    return [
        PartRow(
            job_id=job_id_of("plan", prompt.prompt_id),
            shot_id=prompt.shot_id,
            worker_type=prompt.worker_type,
            epoch=attempt,
            status="succeeded",
            profile_id="local",
            artifacts=[artifact(kind, attempt) for kind in FILES[prompt.worker_type]],
            error_code="",
        )
        for prompt in PLAN.prompts
    ]


def film(attempts: dict[str, int]) -> FilmRow:
    context = Context(tenant_id="a", project_id="b", trace_id="c", correlation_id="t")
    named = msgspec.json.encode(NamedParts(epoch=2, attempts=attempts)).decode()
    return FilmRow(
        run_id="r",
        state="wanted",
        epoch=2,
        context=context,
        plan_id="plan",
        parts=named,
        tries=0,
        error_code="",
        error="",
    )


def failed(part: PartRow) -> PartRow:
    return msgspec.structs.replace(part, status="failed", artifacts=[], error_code="s_server_refused")


def test_a_film_waits_for_the_attempt_that_counts_and_takes_no_earlier_one():
    first, second = results(1), results(2)
    wanted = film({part.job_id: 2 for part in second})
    assert gather(wanted, REQUEST, PLAN, first) is None
    assert gather(wanted, REQUEST, PLAN, [first[0], *second[1:]]) is None
    made = gather(wanted, REQUEST, PLAN, second)
    assert made is not None
    assert {a.sha256 for _, files, _ in made.shots for a in files.values()} == {f"{2:064}"}
    assert (made.title, made.left_out) == ("The Sea", ())


def test_a_shot_whose_results_were_not_named_is_left_out_though_an_earlier_plan_or_epoch_made_it():
    all_of_them = results()
    kept = [part for part in all_of_them if part.shot_id == "shot_0001"]
    made = gather(film({part.job_id: 1 for part in kept}), REQUEST, PLAN, all_of_them)
    assert made is not None
    assert [shot_id for shot_id, _, _ in made.shots] == ["shot_0001"]
    assert [(one.shot_id, one.error_code) for one in made.left_out] == [("shot_0002", "s_shot_left_out")]


def test_why_a_shot_is_left_out_is_waited_for_too():
    first, *rest = results()
    named = film({part.job_id: 1 for part in (first, *rest)})
    assert gather(named, REQUEST, PLAN, rest) is None
    made = gather(named, REQUEST, PLAN, [failed(first), *rest])
    assert made is not None
    assert [(one.shot_id, one.error_code) for one in made.left_out] == [(first.shot_id, "s_server_refused")]
