"""A chapter goes in; the plan comes out: scenes, shots, and one prompt for each worker and shot (C§2.3).

The same text and wishes give the same plan, byte by byte, so that asking again finds the work that was done.
"""

from typing import Any

import msgspec

from patra.kernel.canonical import fingerprint
from patra.studio.script.scenes import cast_of, scenes_of
from patra.studio.script.sentences import read_chapter
from patra.studio.script.shots import Picture, Shot, shots_of

PLANNER_VERSION = "planner-2"
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

    def prompt(self, shot_id: str, worker_type: str) -> Prompt:
        return next(p for p in self.prompts if (p.shot_id, p.worker_type) == (shot_id, worker_type))


def make_plan(text: str, language: str = "", quality: str = "draft", title: str = "") -> Plan:
    """The whole plan of a chapter, under its own title where none is given. Empty when the text says nothing."""
    chapter = read_chapter(text, language)
    title = title or chapter.title
    scenes = scenes_of(chapter)
    shots = shots_of(scenes, chapter.language, cast_of(chapter))
    prompts: list[Prompt] = []
    for shot in shots:
        before = shots[shot.index - 1] if shot.index else None
        after = shots[shot.index + 1] if shot.index + 1 < len(shots) else None
        for worker in WORKERS:
            body = _body(worker, shot, before, after, title, chapter.language, quality)
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
        language=chapter.language,
        planner=PLANNER_VERSION,
        shots=tuple(shots),
        prompts=tuple(prompts),
        settings=tuple(
            f"{scene.setting.place}, {scene.setting.time}, {scene.setting.weather}, {scene.setting.mood}: "
            f"{len(scene.beats)} sentences" + (f" with {', '.join(scene.characters)}" if scene.characters else "")
            for scene in scenes
        ),
    )


def _body(
    worker: str, shot: Shot, before: Shot | None, after: Shot | None, title: str, language: str, quality: str
) -> dict[str, Any]:
    cut = "open" if before is None else ("blend" if before.scene == shot.scene else "dip")
    match worker:
        case "llm":
            return {"task": "stage", "text": shot.narration, "language": language, "picture": _plain(shot.picture)}
        case "audio":
            return {
                "sentences": [sentence.text for sentence in shot.sentences],
                "language": language,
                "mood": shot.picture.mood,
                "opens": before is None,
                "ends": after is None,
                "quality": quality,
            }
        case "lipsync":
            return {"narrator": "narrator", "language": language}
        case _:
            return {
                "prompt": in_words(shot.picture),
                "picture": _plain(shot.picture),
                "before": _plain(before.picture) if before and cut == "blend" else None,
                "cut": cut,
                "leaves": "end" if after is None else ("cut" if after.scene == shot.scene else "dip"),
                "title": title if before is None else "",
                "language": language,
                "quality": quality,
            }


def in_words(picture: Picture) -> str:
    """The picture as a sentence for a model server."""
    where = f"{picture.place} at {picture.time}" if picture.time != "day" else f"{picture.place} by day"
    what = [motif for motif in picture.motifs if motif != picture.subject]
    who = [figure.kind for figure in picture.figures]
    parts = [
        f"Close-up of a {picture.subject}, {where}"
        if picture.framing == "insert"
        else f"{picture.framing} shot, {where}",
        f"weather: {picture.weather}",
        f"mood: {picture.mood}",
        *([f"with {', '.join(what)}"] if what else []),
        *([f"people: {', '.join(who)}"] if who else []),
        *(["a crowd"] if picture.crowd else []),
        f"camera: {picture.camera.replace('_', ' ')}",
        "illustrated storybook style, layered, soft light, no text",
    ]
    return "; ".join(parts)


def _plain(value: Any) -> dict[str, Any]:
    return msgspec.to_builtins(value)
