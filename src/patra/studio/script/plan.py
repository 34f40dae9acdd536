"""Turns a chapter into the plan: scenes, shots, and one prompt for each worker and shot (C§2.3).

The same text and wishes give the same plan, byte by byte, so that asking again finds the work that was done.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.kernel.canonical import fingerprint
from patra.kernel.clock import format_instant
from patra.studio.script.certainty.cards import SCENE, settle_shots
from patra.studio.script.dialogue import Reading, utterances_of
from patra.studio.script.edits import AppliedEdit, Edit, edited_shots, parts_of
from patra.studio.script.people import people_of
from patra.studio.script.pictograms import is_bodily
from patra.studio.script.scenes import scenes_of
from patra.studio.script.sentences import read_chapter, with_chinese_marks
from patra.studio.script.shots import Picture, Shot, shots_of
from patra.studio.script.style import is_asking, is_episodic, is_explaining, is_instructing, is_step, is_verse

PLANNER_VERSION = "planner-11"
WORKERS = ("llm", "audio", "lipsync", "video")
"""In the order in which a shot needs them: video waits for all others, lipsync for audio."""

NEEDS: dict[str, tuple[str, ...]] = {
    "llm": (),
    "audio": (),
    "lipsync": ("audio",),
    "video": ("llm", "audio", "lipsync"),
}
SOFT = frozenset({"lipsync"})  # a film can do without: what waits for it goes on when it failed


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker is asked to do for one shot."""

    prompt_id: str
    shot_id: str
    worker_type: str
    body: dict[str, Any]
    sha256: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    language: str
    planner: str
    shots: tuple[Shot, ...]
    prompts: tuple[Prompt, ...]
    settings: tuple[str, ...]  # a line a scene, for people
    edits: tuple[AppliedEdit, ...] = ()
    quality: str = ""
    preferred: dict[str, list[str]] = {}  # profiles by worker type that the task asks for

    def prompt(self, shot_id: str, worker_type: str) -> Prompt:
        return next(p for p in self.prompts if (p.shot_id, p.worker_type) == (shot_id, worker_type))


def make_plan(
    text: str,
    language: str = "",
    quality: str = "draft",
    title: str = "",
    workers: Sequence[str] = WORKERS,
    form: str = "16:9",
    edits: Sequence[Edit] = (),
    stored: int = 0,
    least: float = SCENE,
) -> Plan:
    """The whole plan of a chapter, under its own title where none is given. Empty when the text says nothing.

    A scene that is less certain than `least` is a card; with 0 all that is understood is drawn.
    `workers` are the kinds of worker that each shot needs; a prompt is made for those only. The first
    `stored` of the edits were taken earlier. Raises Invalid where one of the others asks for what cannot be drawn.
    """
    chapter = read_chapter(text, language)
    text = with_chinese_marks(text) if chapter.language == "zh" else text
    title = title or chapter.title
    people = people_of(chapter)
    spoken = utterances_of(chapter, text, people)
    explains = not is_verse(text) and is_explaining(chapter, people, spoken)
    scenes = scenes_of(chapter, people, explains=explains, episodic=is_episodic(chapter, text))
    reading = Reading(
        language=chapter.language,
        people=people,
        text=text,
        utterances=spoken,
        explains=explains,
        cards_only=explains and is_asking(chapter.title),
        bodily=is_bodily(text, chapter.language),
    )
    drawn = settle_shots(shots_of(scenes, reading), scenes, reading, least)
    drawn = number_steps(drawn, chapter.language) if explains and is_instructing(chapter) else drawn
    shots, applied = edited_shots(drawn, edits, people.kinds, chapter.language, stored)
    prompts: list[Prompt] = []
    for shot in shots:
        before = shots[shot.index - 1] if shot.index else None
        after = shots[shot.index + 1] if shot.index + 1 < len(shots) else None
        told = [reading.parts(sentence, text) for sentence in shot.sentences]
        parts = parts_of(shot, people.kinds) if shot.rewritten else told
        for worker in (one for one in WORKERS if one in workers):
            body = _body(worker, shot, before, after, title, chapter.language, quality, form, parts)
            prompts.append(
                Prompt(
                    prompt_id=f"prm_{shot.index + 1:04}_{worker}",
                    shot_id=shot.shot_id,
                    worker_type=worker,
                    body=body,
                    sha256=fingerprint(body),
                )
            )
    return Plan(
        title=title,
        quality=quality,
        language=chapter.language,
        planner=PLANNER_VERSION,
        shots=tuple(shots),
        prompts=tuple(prompts),
        settings=tuple(
            f"{scene.setting.place}, {scene.setting.time}, {scene.setting.weather}, {scene.setting.mood}: "
            f"{len(scene.beats)} sentences" + (f" with {', '.join(scene.characters)}" if scene.characters else "")
            for scene in scenes
        ),
        edits=tuple(
            AppliedEdit(
                shot_id=edit.shot_id,
                changes=edit.change.changes,
                by=edit.by,
                at=format_instant(edit.at),
                applied=found,
            )
            for edit, found in zip(edits, applied, strict=True)
        ),
    )


def number_steps(shots: Sequence[Shot], language: str) -> list[Shot]:
    """The shots of an instruction, its steps counted: each card says which of how many it is."""
    first = next((shot.index for shot in shots if is_step(shot.narration, language)), len(shots))
    steps = [shot.index for shot in shots[first:] if shot.picture.card is not None]

    def with_number(shot: Shot) -> Shot:
        if shot.index not in steps or shot.picture.card is None:
            return shot
        card = msgspec.structs.replace(shot.picture.card, step=(steps.index(shot.index) + 1, len(steps)))
        return msgspec.structs.replace(shot, picture=msgspec.structs.replace(shot.picture, card=card))

    return [with_number(shot) for shot in shots]


def _body(
    worker: str,
    shot: Shot,
    before: Shot | None,
    after: Shot | None,
    title: str,
    language: str,
    quality: str,
    form: str,
    parts: list[list[dict[str, Any]]],
) -> dict[str, Any]:
    cut = "open" if before is None else ("blend" if before.scene == shot.scene else "dip")
    take: dict[str, Any] = {"take": shot.take} if shot.take else {}  # what nobody edited keeps its hash
    match worker:
        case "llm":
            fixed: dict[str, Any] = {"fixed": list(shot.fixed)} if shot.fixed else {}
            staged = {"text": shot.narration, "language": language, "picture": _plain(shot.picture)}
            return {"task": "stage"} | staged | fixed | take
        case "audio":
            return {
                "sentences": [sentence.text for sentence in shot.sentences],
                "parts": parts,
                "language": language,
                "mood": shot.picture.mood,
                "opens": before is None,
                "ends": after is None,
                "quality": quality,
                **({"least_ms": shot.least_ms} if shot.least_ms else {}),
                **take,
            }
        case "lipsync":
            return {"narrator": "narrator", "language": language}
        case _:
            return {
                "prompt": in_words(shot.picture),
                "text": shot.narration,
                "picture": _plain(shot.picture),
                "before": _plain(before.picture) if before and cut == "blend" else None,
                "cut": cut,
                "leaves": "end" if after is None else ("cut" if after.scene == shot.scene else "dip"),
                "title": title if before is None else "",
                "language": language,
                "quality": quality,
                "format": form,
                **take,
            }


STYLE = "illustrated storybook style, layered, soft light, no text"
CARD_STYLE = "flat infographic on paper, one accent colour, plain lettering"


def style_of(picture: Picture) -> str:
    """The style of a picture, for a model server."""
    return CARD_STYLE if picture.framing == "card" else STYLE


def in_words(picture: Picture) -> str:
    """The picture as a sentence for a model server."""
    when = "by day" if picture.time == "day" else f"at {picture.time}"
    where = f"{picture.sign or picture.place or 'plain background'} {when}"
    what = [motif for motif in picture.motifs if motif != picture.subject]
    what += [name for name in picture.pictograms if name not in what]
    who = [f"{f.name} ({f.kind})" if f.name and f.name != f.kind else f.kind for f in picture.figures]
    card = picture.card
    match picture.framing:
        case "insert":
            shown = f"Close-up of a {picture.subject}, {where}"
        case "card" if card is not None:
            shown = f"{card.kind} card: {'; '.join(part for part in (card.title, *card.items) if part)}"
        case _:
            shown = f"{picture.framing} shot, {where}"
    scenic = picture.framing != "card"
    parts = [
        shown,
        *([f"weather: {picture.weather}", f"mood: {picture.mood}"] if scenic else []),
        *([f"with {', '.join(what)}"] if what else []),
        *([f"lettering: {', '.join(picture.labels)}"] if picture.labels else []),
        *([f"without {', '.join(picture.absent)}"] if picture.absent and scenic else []),
        *([f"people: {', '.join(who)}"] if who else []),
        *([f"{picture.speaker} speaks"] if picture.speaker else []),
        *(["a crowd"] if picture.crowd else []),
        *([f"camera: {picture.camera.replace('_', ' ')}"] if scenic else []),
        style_of(picture),
    ]
    return "; ".join(parts)


def _plain(value: Any) -> dict[str, Any]:
    return msgspec.to_builtins(value)
