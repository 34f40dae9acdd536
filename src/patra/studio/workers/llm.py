"""A shot's text and picture go in; the staging comes out: the planner's own, or a chat model's, checked (B6)."""

from pathlib import Path
from typing import Any, cast

import msgspec

from patra.kernel.errors import Permanent
from patra.studio.artifacts import ArtifactStore
from patra.studio.profiles import Engine
from patra.studio.reasons import R
from patra.studio.script.lexicon import INSIDE, MOODS, MOTIFS, PLACES, TIMES, WEATHERS
from patra.studio.script.shots import MOVES, Picture
from patra.studio.workers.order import File, Made, Order, Stop
from patra.studio.workers.server import post_json

KNOWN = {
    "place": [*PLACES, "shop"],
    "time": list(TIMES),
    "weather": list(WEATHERS),
    "mood": ["calm", *MOODS],
    "framing": ["wide", "medium", "insert"],
    "camera": sorted(set(MOVES)),
}
SYSTEM = (
    "You stage one shot of an illustrated film. Answer with one JSON object and nothing else. "
    "Start from the given picture and change only what the text asks for. Allowed values: "
)


class Llm:
    version = "llm-1"

    def execute(self, order: Order, folder: Path, artifacts: ArtifactStore, stop: Stop) -> Made:
        picture = msgspec.convert(order.prompt["picture"], Picture)
        if order.profile.engine is Engine.OPENAI_CHAT:
            picture = staged(_asked(order, stop), picture)
        file = folder / "staging.json"
        file.write_bytes(msgspec.json.encode(picture))
        del artifacts
        return Made(files=(File(path=file, kind="text", media_type="application/json"),))


def _asked(order: Order, stop: Stop) -> dict[str, Any]:
    body = {
        "model": order.profile.model,
        "temperature": 0,
        "response_format": {"type": "json_object"},
        "messages": [
            {"role": "system", "content": SYSTEM + msgspec.json.encode(KNOWN).decode()},
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
        raise Permanent(R.SERVER_ANSWER_INVALID, f"{order.profile.profile_id}: no staging in the answer") from error
    if not isinstance(found, dict):
        raise Permanent(R.SERVER_ANSWER_INVALID, f"{order.profile.profile_id}: the staging is no object")
    return cast("dict[str, Any]", found)


def staged(found: dict[str, Any], planned: Picture) -> Picture:
    """The planned picture with what a model changed. Raises when it names what the painter does not know."""
    changes: dict[str, Any] = {}
    for field, allowed in KNOWN.items():
        if field in found and found[field] != getattr(planned, field):
            if found[field] not in allowed:
                raise Permanent(R.PICTURE_INVALID, f"{field}: {found[field]!r} is not one of {', '.join(allowed)}")
            changes[field] = found[field]
    if isinstance(found.get("motifs"), list):
        changes["motifs"] = tuple(m for m in found["motifs"] if m in MOTIFS)
    if changes.get("framing") == "insert" and not planned.subject:
        del changes["framing"]
    return msgspec.structs.replace(planned, **changes)


__all__ = ["INSIDE", "KNOWN", "Llm", "staged"]
