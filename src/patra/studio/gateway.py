"""Turns a chapter into `task.submitted`; the film's address comes back (C§2.1, C§2.6). Producer: Gateway."""

from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.bus.publishing.envelope import Envelope, decode_trusted
from patra.bus.store import events
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import IllegalMove, Invalid
from patra.kernel.ids import new_id
from patra.studio.film.quality import FORMATS, QUALITIES
from patra.studio.profiles import Profile, choose
from patra.studio.script.language import NAMES, READ, disagrees
from patra.studio.script.sentences import CONTROL, read_chapter
from patra.studio.storage import store
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.storage.store import Q
from patra.studio.vocabulary.contracts import VERSIONS, Context, OutgoingEvent, publish, run_id_of
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.espeak import knows
from patra.studio.voice.narration import voice_for

MODULE = "Gateway"  # as the bus knows it (C§5)

GROUP = "gateway"
SUBTITLES = ("soft", "burnt")
ON_FAILED_SHOT = ("leave_out", "stop")
_ADDED = ("ambience",)  # options that the modules of an earlier release refuse to read
_OWN = ("tenant_id", "project_id", "chapter_id", "title", "language", "quality", "options", "chapter_sha256")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task may ask for beside its chapter (`options` of `task.submitted`)."""

    subtitles: str = "soft"
    format: str = "16:9"
    narrator: bool = True
    on_failed_shot: str = "leave_out"
    profiles: dict[str, list[str]] = {}  # by worker type, the ones preferred, in order
    ambience: bool = True  # quiet sound beside speech: rain, sea, fire …, a soft pad
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
    options: Options = Options()


class ChapterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `task.submitted` refers to: the chapter itself, and how its film is wanted."""

    task_id: str
    text: str
    title: str
    language: str
    quality: str
    wishes: Options
    submitted_at: int


class Gateway:
    """The one way in for chapters."""

    def __init__(self, bus: Bus, profiles: dict[str, Profile], *, max_characters: int) -> None:
        self._bus = bus
        self._profiles = profiles
        self._most = max_characters
        bus.consumer("compose.completed", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_composed))
        bus.consumer("artifact.published", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_published))
        bus.consumer("error.recorded", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_error))

    def submit(self, tx: Tx, asked: Submission) -> tuple[str, bool]:
        """Take a chapter; gives the task's id and whether it is new. Raises Invalid with the field that is wrong."""
        self.check(asked)
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
            "options": store.text(write_options(asked.options)),
            "chapter": asked.chapter.encode(),
            "chapter_sha256": digest,
            "submitted_by": asked.submitted_by,
            "submitted_at": self._bus.clock.now(),
        }
        new = bool(tx.insert_absent("stu_task", [row], key=("task_id",)))
        if not new:
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
            "options": msgspec.json.decode(row["options"]),
            "submitted_by": row["submitted_by"],
            "submitted_at": format_instant(row["submitted_at"]),
        }
        publish(self._bus, tx, context, [OutgoingEvent(type="task.submitted", key=task_id, payload=payload)], by=MODULE)
        return task_id, new

    def check(self, asked: Submission) -> None:
        """Refuse what cannot become a film. Raises Invalid with the field that breaks a rule."""
        if asked.quality not in QUALITIES:
            raise Invalid(Reason.OPTION_INVALID, f"is one of {', '.join(QUALITIES)}", place="quality")
        if asked.options.subtitles not in SUBTITLES:
            raise Invalid(Reason.OPTION_INVALID, f"is one of {', '.join(SUBTITLES)}", place="options.subtitles")
        if asked.options.format not in FORMATS:
            raise Invalid(Reason.OPTION_INVALID, f"is one of {', '.join(FORMATS)}", place="options.format")
        if asked.options.on_failed_shot not in ON_FAILED_SHOT:
            raise Invalid(
                Reason.OPTION_INVALID, f"is one of {', '.join(ON_FAILED_SHOT)}", place="options.on_failed_shot"
            )
        for names in asked.options.profiles.values():
            for name in names:
                if name not in self._profiles:
                    raise Invalid(Reason.PROFILE_UNKNOWN, f"no profile {name}", place="options.profiles")
        if len(asked.chapter) > self._most:
            raise Invalid(
                Reason.CHAPTER_TOO_LONG, f"{len(asked.chapter)} characters, at most {self._most}", place="chapter"
            )
        for place, text in (("chapter", asked.chapter), ("title", asked.title)):
            if found := CONTROL.search(text):
                detail = f"U+{ord(found[0]):04X} at character {found.start() + 1} is no text"
                raise Invalid(Reason.CHAPTER_NOT_TEXT, detail, place=place)
        chapter = read_chapter(asked.chapter, asked.language)
        if not chapter.sentences:
            raise Invalid(Reason.CHAPTER_EMPTY, "holds no sentence", place="chapter")
        self._check_language(asked, chapter.language)
        if not knows(voice_for(chapter.language, "").name):
            advice = "give a language that eSpeak NG speaks, such as en, zh, de"
            raise Invalid(
                Reason.LANGUAGE_UNKNOWN, f"nobody speaks {chapter.language!r}", place="language", advice=advice
            )

        self._check_profiles(asked, chapter.language)

    def _check_language(self, asked: Submission, language: str) -> None:
        """Refuse a text that the wrong voice would read, or that is not understood and was not asked for as it is."""
        other = disagrees(asked.chapter, language) if asked.language else ""
        found = other or ("" if asked.language or language in READ else language)
        if found:
            name = NAMES.get(found, found)
            detail = f"the chapter is {name} ({found}); English and Chinese are understood"
            advice = f"translate it, or give the language {found} to have it read aloud over lettering"
            raise Invalid(Reason.LANGUAGE_UNKNOWN, detail, place="language", advice=advice)

    def _check_profiles(self, asked: Submission, language: str) -> None:
        """Refuse now what no profile could do later."""
        for kind in ("audio", "video", *(("lipsync",) if asked.options.narrator else ())):
            if choose(self._profiles, kind, language=language, quality=asked.quality, seconds=1.0) is None:
                detail = f"no profile does {kind} in {language} at quality {asked.quality}"
                advice = "add a profile to studio.profiles that has this language and quality"
                raise Invalid(Reason.NO_PROFILE, detail, place="options.profiles", advice=advice)

    def request(self, tx: Tx, run_id: str) -> ChapterRequest | None:
        """The chapter of a run, for the modules that work on it; also of one that has yet to be created."""
        task = store.task_of_run(tx, run_id)
        if task is None:
            return None
        return ChapterRequest(
            task_id=task["task_id"],
            text=bytes(task["chapter"]).decode(),
            title=task["title"],
            language=task["language"],
            quality=task["quality"],
            wishes=msgspec.json.decode(task["options"], type=Options),
            submitted_at=task["submitted_at"],
        )

    def submission(self, tx: Tx, run_id: str) -> Envelope | None:
        """The `task.submitted` of a run; the log keeps its body until it is handled."""
        task = store.task_of_run(tx, run_id)
        said = events.by_correlation(tx, task["task_id"]) if task else []
        return next((decode_trusted(one.body) for one in said if one.event_type == "task.submitted" and one.body), None)

    def on_composed(self, tx: Tx, event: Event) -> None:
        """Nothing yet: the film is given out when it is published."""

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


def write_options(options: Options) -> dict[str, Any]:
    """Options as they are stored and published: those added later only where they are not at their default.

    Processes of an earlier release on the same store then read them, and find a task submitted again to be the same.
    """
    usual: dict[str, Any] = msgspec.to_builtins(Options())
    wanted: dict[str, Any] = msgspec.to_builtins(options)
    return {name: value for name, value in wanted.items() if name not in _ADDED or value != usual[name]}


def _first(tx: Tx, row: dict[str, Any]) -> dict[str, Any]:
    """What stays as it was first said when a task is submitted again. Raises where its id is another task's."""
    found = store.task(tx, row["task_id"])
    if found is None:
        return {}
    other = [name for name in _OWN if _known_value(name, found[name]) != _known_value(name, row[name])]
    if other:
        detail = f"{row['task_id']} was submitted with another {' and '.join(other)}"
        raise IllegalMove(Reason.TASK_CONFLICT, detail)
    return {name: found[name] for name in ("trace_id", "submitted_by", "submitted_at", "options")}


def _known_value(name: str, value: Any) -> Any:
    """A value of a task as this release reads it: options of an earlier one have the defaults of those it had not."""
    return msgspec.json.decode(value, type=Options) if name == "options" else value
