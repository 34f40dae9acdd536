"""Turns a shot's text and picture into the staging: the planner's own, or a chat model's, checked (B6)."""

from pathlib import Path
from typing import Any, cast

import msgspec

from patra.kernel.errors import Permanent
from patra.studio.profiles import Engine
from patra.studio.script.edits import STAGING_VALUES
from patra.studio.script.lexicon import MOTIFS
from patra.studio.script.shots import Picture
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.vocabulary.reasons import Reason
from patra.studio.workers.job_request import File, JobRequest, JobResult, Stop
from patra.studio.workers.model_client import post_json

SYSTEM = (
    "You stage one shot of an illustrated film. Answer with one JSON object and nothing else. "
    "Start from the given picture and change only what the text asks for. Allowed values: "
)


class Llm:
    version = "llm-1"

    def execute(self, order: JobRequest, folder: Path, artifacts: ArtifactStore, stop: Stop) -> JobResult:
        picture = msgspec.convert(order.prompt["picture"], Picture)
        if order.profile.engine is Engine.OPENAI_CHAT:
            fixed = frozenset(order.prompt.get("fixed", ()))
            found = {field: value for field, value in _ask_model(order, stop).items() if field not in fixed}
            picture = stage_picture(found, picture)
        file = folder / "staging.json"
        file.write_bytes(msgspec.json.encode(picture))
        del artifacts
        return JobResult(files=(File(path=file, kind="text", media_type="application/json"),))


def _ask_model(order: JobRequest, stop: Stop) -> dict[str, Any]:
    body = {
        "model": order.profile.model,
        "temperature": 0,
        "response_format": {"type": "json_object"},
        "messages": [
            {"role": "system", "content": SYSTEM + msgspec.json.encode(STAGING_VALUES).decode()},
            {
                "role": "user",
                "content": msgspec.json.encode(
                    {"text": order.prompt["text"], "picture": order.prompt["picture"]}
                ).decode(),
            },
        ],
    }
    answer = post_json(order.profile, "/chat/completions", body, stop)
    try:
        content = answer["choices"][0]["message"]["content"]
        found = msgspec.json.decode(content.strip().removeprefix("```json").removesuffix("```"))
    except (KeyError, IndexError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise Permanent(
            Reason.SERVER_ANSWER_INVALID, f"{order.profile.profile_id}: no staging in the answer"
        ) from error
    if not isinstance(found, dict):
        raise Permanent(Reason.SERVER_ANSWER_INVALID, f"{order.profile.profile_id}: the staging is no object")
    return cast("dict[str, Any]", found)


def stage_picture(found: dict[str, Any], planned: Picture) -> Picture:
    """The planned picture with what a model changed. Raises when it names what the painter does not know."""
    changes: dict[str, Any] = {}
    for field, allowed in STAGING_VALUES.items():
        if field in found and found[field] != getattr(planned, field):
            if found[field] not in allowed:
                raise Permanent(Reason.PICTURE_INVALID, f"{field}: {found[field]!r} is not one of {', '.join(allowed)}")
            changes[field] = found[field]
    if isinstance(found.get("motifs"), list):
        changes["motifs"] = tuple(m for m in found["motifs"] if m in MOTIFS)
    if changes.get("framing") == "insert" and not planned.subject:
        del changes["framing"]
    return msgspec.structs.replace(planned, **changes)
