"""Studio: which films are made, making one, and how far one is."""

from typing import Any

from markupsafe import Markup

from patra.web.console.acts import ACTS
from patra.web.console.markup.drawings import Part, shares
from patra.web.console.markup.formats import instant, plural, span_text
from patra.web.console.markup.shot_bar import shot_bar
from patra.web.console.reads import studio as reads
from patra.web.console.view import PAGE_SIZE, Page, Route, View

ENDED = frozenset({"completed", "failed", "cancelled"})
MAX_POSTERS = 12
"""Of the list of films: so many of the newest show a picture."""
MAX_PROGRESS = 12
"""Of the list of films: of so many that are being made it is said how far they are."""
JOB_TONES = {"succeeded": "done", "failed": "bad", "cancelled": "off", "claimed": "run"}


def runs(view: View) -> Page:
    found = view.ask("/studio/runs", limit=PAGE_SIZE)["runs"]
    under_way = sum(1 for run in found if run["stage"] not in ENDED)
    moving = [run["run_id"] for run in found if run["run_id"] and run["stage"] not in ENDED]
    done = {
        run_id: view.part("progress", lambda run_id=run_id: _percent(view, run_id)) for run_id in moving[:MAX_PROGRESS]
    }
    title = f"{plural(under_way, 'film is', 'films are')} being made" if under_way else "No film is being made"
    newest = [run["run_id"] for run in found[:MAX_POSTERS] if run["run_id"]]
    posters = view.part("pictures", lambda: reads.posters(view.patra, newest)) or {}
    return Page(title=title, template="studio/runs.html", values={"runs": found, "posters": posters, "done": done})


def _percent(view: View, run_id: str) -> int:
    """How much of a film is made, in percent."""
    return view.ask("/studio/runs/{run_id}", {"run_id": run_id})["progress"]


def new(view: View) -> Page:
    most = view.patra.settings.studio.max_characters
    values = {"inputs": ACTS["studio.submit"].inputs, "most": most}
    return Page(title="New film", template="studio/new.html", values=values)


def run(view: View) -> Page:
    run_id = view.path["run"]
    found = view.ask("/studio/runs/{run_id}", {"run_id": run_id})
    jobs = [(kind, _bar(counts), counts) for kind, counts in sorted(found["jobs"].items())]
    notes = reads.notes(view.patra, run_id)
    shots = reads.shots(view.patra, run_id)
    manifest = view.ask("/studio/runs/{run_id}/manifest", {"run_id": run_id}) if found["film_uri"] else None
    return Page(
        title=found["title"] or run_id,
        template="studio/run.html",
        values={
            "run": found,
            "ended": found["stage"] in ENDED,
            "jobs": jobs,
            "length": span_text(found["film_ms"] * 1000) if found["film_ms"] else "",
            "shots": shots,
            "newest": next((one["shot_id"] for one in reversed(shots) if one["state"] == "made"), ""),
            "retries": _retries(shots),
            "manifest": manifest,
            "shot_bar": _shot_bar(run_id, manifest) if manifest else "",
            "notes": notes,
            "stages": _stages(notes, view.now),
        },
    )


def _shot_bar(run_id: str, manifest: dict[str, Any]) -> Markup:
    """Empty where the manifest does not say where each shot begins, as those of older composers."""
    work: dict[str, Any] = manifest["work"]
    facts: dict[str, Any] = manifest["facts"]
    shots = [str(one["shot_id"]) for one in work.get("shots", ())]
    starts = [int(at) for at in facts.get("starts_ms", ())]
    return shot_bar(shots, starts, int(facts.get("duration_ms", 0)), f"/console/studio/film/{run_id}")


def _stages(notes: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """The stages that the run has been in, in their order, and how long it was in each."""
    moves = [note for note in reversed(notes) if note["kind"] == "run.stage.changed"]
    found: list[dict[str, Any]] = []
    for at, note in enumerate(moves):
        stage = str(note["detail"].get("stage") or note["subject"])
        begin = instant(note["at"]) or 0
        end = (instant(moves[at + 1]["at"]) or 0) if at + 1 < len(moves) else now
        ended = stage in ENDED
        found.append({"stage": stage, "at": note["at"], "took": "" if ended else span_text(end - begin)})
    return found


def _retries(shots: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Jobs that were not done at the first attempt, or whose worker was lost, or that failed permanently."""
    return [
        {**job, "shot": number, "from_profile": job["fallback_chain"][0] if job["fallback_chain"] else ""}
        for number, shot in enumerate(shots, 1)
        for job in shot["jobs"]
        if job["tries"] > 1 or job["attempt"] > 1 or job["losses"] or job["error_code"]
    ]


def _bar(counts: dict[str, int]) -> Any:
    return shares(
        Part(count=count, tone=JOB_TONES.get(state, "wait"), label=f"{count} {state}")
        for state, count in sorted(
            counts.items(), key=lambda item: list(JOB_TONES).index(item[0]) if item[0] in JOB_TONES else 9
        )
    )


ROUTES = (
    Route(path="/studio", handler=runs, nav="/studio"),
    Route(path="/studio/new", handler=new, nav="/studio/new", live=False),
    Route(path="/studio/run/{run}", handler=run, nav="/studio"),
)
