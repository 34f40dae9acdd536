"""A chapter goes in, `task.submitted` comes out; the film's address comes back (C§2.1, C§2.6). Producer: Gateway."""

import re
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import IllegalMove, Invalid
from patra.kernel.ids import new_id
from patra.studio import store
from patra.studio.contracts import VERSIONS, Context, Said, run_id_of, say
from patra.studio.film.quality import QUALITIES
from patra.studio.profiles import Profile
from patra.studio.reasons import R
from patra.studio.script.sentences import read_chapter
from patra.studio.store import Q
from patra.studio.voice.espeak import knows
from patra.studio.voice.narration import voice_for

GROUP = "gateway"
SUBTITLES = ("soft", "burnt")
ON_FAILED_SHOT = ("leave_out", "stop")
_OWN = ("tenant_id", "project_id", "chapter_id", "title", "language", "quality", "options", "chapter_sha256")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Wishes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task may ask for beside its chapter (`options` of `task.submitted`)."""

    subtitles: str = "soft"
    narrator: bool = True
    on_failed_shot: str = "leave_out"
    profiles: dict[str, list[str]] = {}  # by worker type, the ones preferred, in order
    fresh: str = ""  # any text: work of another text is not reused


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chapter and how it is wanted. The same `task_id` again is the same task (B2)."""

    chapter: str
    title: str = ""
    quality: str = "draft"
    language: str = ""
    task_id: str = ""
    chapter_id: str = ""
    tenant_id: str = "default"
    project_id: str = "default"
    trace_id: str = ""
    submitted_by: str = "local"
    options: Wishes = Wishes()


class Gateway:
    """The one way in for chapters."""

    def __init__(self, bus: Bus, profiles: dict[str, Profile], *, max_characters: int) -> None:
        self._bus = bus
        self._profiles = profiles
        self._most = max_characters
        bus.consumer("artifact.published", group=GROUP, versions=VERSIONS)(self.on_published)
        bus.consumer("error.recorded", group=GROUP, versions=VERSIONS)(self.on_error)

    def submit(self, tx: Tx, asked: Submission) -> str:
        """Take a chapter; gives the task's id. Raises Invalid with the field that breaks a rule."""
        self._check(asked)
        chapter = read_chapter(asked.chapter, asked.language)
        digest = sha256_hex(asked.chapter)
        task_id = asked.task_id or f"task_{new_id()}"
        title = asked.title or chapter.title
        row: dict[str, Any] = {
            "task_id": task_id,
            "run_id": run_id_of(task_id),
            "tenant_id": asked.tenant_id,
            "project_id": asked.project_id,
            "trace_id": asked.trace_id or new_id(),
            "chapter_id": asked.chapter_id or f"ch_{digest[:16]}",
            "title": title,
            "language": chapter.language,
            "quality": asked.quality,
            "options": store.text(asked.options),
            "chapter": asked.chapter.encode(),
            "chapter_sha256": digest,
            "submitted_by": asked.submitted_by,
            "submitted_at": self._bus.clock.now(),
        }
        if not tx.insert_absent("stu_task", [row], key=("task_id",)):
            row |= _first(tx, row)
        context = Context(
            tenant_id=row["tenant_id"], project_id=row["project_id"], trace_id=row["trace_id"], correlation_id=task_id
        )
        payload: dict[str, Any] = {
            "task_id": task_id,
            "chapter_id": row["chapter_id"],
            "requested_quality": asked.quality,
            "language_context": {"source_language": chapter.language, "subtitle_languages": [chapter.language]},
            "chapter": {
                "title": title,
                "uri": f"studio:chapter/{task_id}",
                "sha256": digest,
                "characters": len(asked.chapter),
            },
            "options": msgspec.to_builtins(asked.options),
            "submitted_by": row["submitted_by"],
            "submitted_at": format_instant(row["submitted_at"]),
        }
        say(self._bus, tx, context, [Said(type="task.submitted", key=task_id, payload=payload)])
        return task_id

    def _check(self, asked: Submission) -> None:
        if asked.quality not in QUALITIES:
            raise Invalid(R.OPTION_INVALID, f"is one of {', '.join(QUALITIES)}", place="quality")
        if asked.options.subtitles not in SUBTITLES:
            raise Invalid(R.OPTION_INVALID, f"is one of {', '.join(SUBTITLES)}", place="options.subtitles")
        if asked.options.on_failed_shot not in ON_FAILED_SHOT:
            raise Invalid(R.OPTION_INVALID, f"is one of {', '.join(ON_FAILED_SHOT)}", place="options.on_failed_shot")
        for names in asked.options.profiles.values():
            for name in names:
                if name not in self._profiles:
                    raise Invalid(R.PROFILE_UNKNOWN, f"no profile {name}", place="options.profiles")
        if len(asked.chapter) > self._most:
            raise Invalid(R.CHAPTER_TOO_LONG, f"{len(asked.chapter)} characters, at most {self._most}", place="chapter")
        for place, text in (("chapter", asked.chapter), ("title", asked.title)):
            if found := _CONTROL.search(text):
                detail = f"U+{ord(found[0]):04X} at character {found.start() + 1} is no text"
                raise Invalid(R.CHAPTER_NOT_TEXT, detail, place=place)
        chapter = read_chapter(asked.chapter, asked.language)
        if not chapter.sentences:
            raise Invalid(R.CHAPTER_EMPTY, "holds no sentence", place="chapter")
        if not knows(voice_for(chapter.language, "").name):
            advice = "give a language that eSpeak NG speaks, such as en, zh, de"
            raise Invalid(R.LANGUAGE_UNKNOWN, f"nobody speaks {chapter.language!r}", place="language", advice=advice)

    def on_published(self, tx: Tx, event: Event) -> None:
        payload = event.payload
        tx.execute(
            Q["task_published"],
            {
                "task_id": payload.get("task_id", event.envelope.correlation_id),
                "uri": payload["final_artifact_uri"],
                "sha256": payload.get("sha256"),
                "ms": payload["duration_ms"],
                "now": self._bus.clock.now(),
            },
        )

    def on_error(self, tx: Tx, event: Event) -> None:
        tx.execute(Q["task_error"], {"task_id": event.envelope.correlation_id})


def _first(tx: Tx, row: dict[str, Any]) -> dict[str, Any]:
    """What stays as it was first said when a task is submitted again. Raises where its id is another task's."""
    found = store.task(tx, row["task_id"])
    if found is None:
        return {}
    other = [name for name in _OWN if found[name] != row[name]]
    if other:
        detail = f"{row['task_id']} was submitted with another {' and '.join(other)}"
        raise IllegalMove(R.TASK_CONFLICT, detail)
    return {name: found[name] for name in ("trace_id", "submitted_by", "submitted_at")}
