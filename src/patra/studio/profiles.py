"""Model profiles as data: who can do a piece of work, at which grade, cost and speed (C§2.4).

The built-in profiles need nothing but this machine. A YAML file adds others, which point to model servers:

    - profile_id: voice-server
      worker_type: audio
      engine: openai-speech
      url: http://localhost:8000/v1
      model: kokoro
      api_key: env:SPEECH_KEY
      languages: [en]
      grade: 80
      cost_micros: 12
      ms_per_second: 300
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import yaml

from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.networks import networks_of
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.piper import PiperVoice, trouble_with


class Engine(StrEnum):
    """What does the work."""

    LOCAL = "local"  # this machine: planner, eSpeak NG, the painter, mouth shapes
    LOCAL_STILL = "local-still"  # the painter without camera and weather: the plain way out
    PIPER = "piper"  # a neural voice on this machine, where its files are there
    OPENAI_CHAT = "openai-chat"
    OPENAI_SPEECH = "openai-speech"
    HTTP_VIDEO = "http-video"  # POST a prompt, get a picture or a video


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to do one kind of work. Costs are millionths of the billing currency a second of film."""

    profile_id: str
    worker_type: str
    engine: Engine = Engine.LOCAL
    url: str = ""
    model: str = ""
    api_key: str = ""
    voice: str = ""
    languages: tuple[str, ...] = ()  # empty: all
    qualities: tuple[str, ...] = ()  # empty: all
    grade: int = 50  # how good, 0 to 100
    cost_micros: int = 0
    ms_per_second: int = 100  # of work, a second of film
    timeout_seconds: float = 60.0
    networks: tuple[str, ...] = ()  # that the server's name may lead into, beside public addresses
    options: dict[str, Any] = {}

    def suits(self, worker_type: str, language: str, quality: str) -> bool:
        return (
            self.worker_type == worker_type
            and (not self.languages or language.split("-", maxsplit=1)[0] in self.languages)
            and (not self.qualities or quality in self.qualities)
        )

    def piper_voice(self, kind: str = "") -> PiperVoice:
        """Its voice for a kind of person: `options.voices` and `options.speakers` name one by kind."""
        voices: dict[str, str] = self.options.get("voices", {})
        speakers: dict[str, int] = self.options.get("speakers", {})
        return PiperVoice(
            model=voices.get(kind) or self.model,
            program=str(self.options.get("program", "")),
            speaker=speakers.get(kind),
            length_scale=float(self.options.get("length_scale", 1.0)),
        )

    def trouble(self) -> str:
        """What keeps it from working on this machine: files of a voice that are not there; else nothing."""
        if self.engine is not Engine.PIPER:
            return ""
        kinds: dict[str, str] = self.options.get("voices", {})
        return next((found for kind in ("", *kinds) if (found := trouble_with(self.piper_voice(kind)))), "")

    @property
    def identity(self) -> dict[str, Any]:
        """What of it shapes the result: not where the server stands, nor what it costs."""
        return {
            "profile_id": self.profile_id,
            "engine": self.engine.value,
            "model": self.model,
            "voice": self.voice,
            "options": self.options,
        }


BUILT_IN: tuple[Profile, ...] = (
    Profile(profile_id="llm-local", worker_type="llm", grade=40, ms_per_second=1),
    Profile(profile_id="audio-espeak", worker_type="audio", grade=40, ms_per_second=8),
    Profile(profile_id="lipsync-phonemes", worker_type="lipsync", grade=50, ms_per_second=2),
    Profile(profile_id="video-painter", worker_type="video", grade=50, ms_per_second=400),
    Profile(profile_id="video-still", worker_type="video", engine=Engine.LOCAL_STILL, grade=10, ms_per_second=200),
)


def load_profiles(file: str | Path = "", networks: Sequence[str] = ()) -> dict[str, Profile]:
    """The built-in profiles and those of a file, by id; one of the file replaces a built-in one of the same id.

    Servers may be in these networks beside those that their profile names.
    """
    found = {profile.profile_id: profile for profile in BUILT_IN}
    if not str(file):
        return found
    place = str(file)
    try:
        raw: Any = yaml.safe_load(Path(file).read_text("utf-8"))
        given = msgspec.convert(raw, list[Profile])
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigInvalid(
            Reason.PROFILE_UNKNOWN, str(error), place=place, advice="see docs/reference/studio.md"
        ) from error
    for profile in given:
        if profile.engine is Engine.PIPER and (profile.worker_type != "audio" or not profile.model):
            raise ConfigInvalid(
                Reason.PROFILE_UNKNOWN,
                f"{profile.profile_id}: piper does audio, with a model (a .onnx file)",
                place=place,
            )
        if profile.engine not in {Engine.LOCAL, Engine.LOCAL_STILL, Engine.PIPER} and not profile.url:
            raise ConfigInvalid(Reason.PROFILE_UNKNOWN, f"{profile.profile_id}: a model server has a url", place=place)
        try:
            networks_of(profile.networks)
        except ValueError as error:
            raise ConfigInvalid(
                Reason.PROFILE_UNKNOWN, f"{profile.profile_id}: networks: {error}", place=place
            ) from error
        found[profile.profile_id] = msgspec.structs.replace(profile, networks=(*profile.networks, *networks))
    return found


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    profile_id: str
    fallback_chain: tuple[str, ...]
    reason: Reason
    estimated_ms: int
    estimated_cost_micros: int


def choose(
    profiles: Mapping[str, Profile],
    worker_type: str,
    *,
    language: str,
    quality: str,
    seconds: float,
    preferred: Sequence[str] = (),
) -> Choice | None:
    """Who does a piece of work, and who is asked next when it fails.

    A neural voice without its files is passed over. What the task prefers comes first. Then, for a draft, the cheapest
    and fastest; for better films, the best grade.
    """
    able = [p for p in profiles.values() if p.suits(worker_type, language, quality) and not p.trouble()]
    if not able:
        return None
    asked = [profiles[name] for name in preferred if name in profiles and profiles[name] in able]
    rest = [p for p in able if p not in asked]
    if quality == "draft":
        rest.sort(key=lambda p: (p.grade < 20, p.cost_micros, p.ms_per_second, p.profile_id))
    else:
        rest.sort(key=lambda p: (-p.grade, p.cost_micros, p.ms_per_second, p.profile_id))
    first, *others = [*asked, *rest]
    return Choice(
        profile_id=first.profile_id,
        fallback_chain=tuple(p.profile_id for p in others)[:20],
        reason=Reason.ROUTE_PREFERRED if asked else Reason.ROUTE_CHEAPEST,
        estimated_ms=round(first.ms_per_second * seconds),
        estimated_cost_micros=round(first.cost_micros * seconds),
    )
