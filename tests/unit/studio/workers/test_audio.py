"""The speech of a shot, also of one that an earlier release has planned."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.studio.film.quality import QUALITIES
from patra.studio.profiles import Engine, Profile, load_profiles
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.voice.espeak import speak
from patra.studio.voice.narration import Timing, join_speeches, voice_for
from patra.studio.workers.audio import Audio
from patra.studio.workers.job_request import JobRequest
from tests.support.piper_stand_in import install

SENTENCES = ["The sea was calm.", "“Come home,” said Ann."]


def spoken(folder: Path, profile: Profile | None = None, **more: Any) -> tuple[bytes, Timing]:
    order = JobRequest(
        job_id="job",
        run_id="run",
        shot_id="shot",
        worker_type="audio",
        prompt={"sentences": SENTENCES, "mood": "sad", "opens": True, "ends": False} | more,
        prompt_sha256="",
        inputs=(),
        profile=profile or load_profiles()["audio-espeak"],
        quality=QUALITIES["draft"],
        language="en",
    )
    wav, times = Audio().execute(order, folder, ArtifactStore(folder / "films"), lambda: False).files
    return wav.path.read_bytes(), msgspec.json.decode(times.path.read_bytes(), type=Timing)


EMPTY: dict[str, Any] = {"parts": [[], []]}


@pytest.mark.parametrize("plan", [{}, EMPTY], ids=["no parts", "empty parts"])
def test_a_plan_that_says_nothing_of_speakers_is_read_by_the_narrator(tmp_path: Path, plan: dict[str, Any]) -> None:
    voice = voice_for("en", "sad")
    told = join_speeches([(text, speak(text, voice)) for text in SENTENCES], QUALITIES["draft"].fps, opens=True)
    assert spoken(tmp_path, **plan) == told


def test_parts_of_a_plan_have_voices_of_their_own(tmp_path: Path) -> None:
    narrator = {"speaker": "", "kind": "", "number": 0}
    ann = {"speaker": "Ann", "kind": "woman", "number": 0}
    parts = [
        [narrator | {"text": SENTENCES[0]}],
        [ann | {"text": "Come home,"}, narrator | {"text": "said Ann."}],
    ]
    _, timing = spoken(tmp_path, parts=parts)
    assert [(mark.text, mark.at) for mark in timing.spoken] == [("Ann", timing.sentences[1].at)]


def test_a_shot_lasts_at_least_as_long_as_someone_asked(tmp_path: Path) -> None:
    short, long = spoken(tmp_path)[1], spoken(tmp_path, least_ms=20_000)[1]
    assert (long.duration_ms, long.sentences) == (20_000, short.sentences)
    assert spoken(tmp_path, least_ms=100)[1] == short


def test_a_neural_voice_speaks_and_the_times_of_words_are_stretched_to_it(tmp_path: Path) -> None:
    program, model, log = install(tmp_path / "voices")
    voice = Profile(
        profile_id="anna",
        worker_type="audio",
        engine=Engine.PIPER,
        model=str(model),
        options={"program": str(program), "speakers": {"woman": 7}},
    )
    parts = [
        [{"text": SENTENCES[0], "speaker": "", "kind": "", "number": 0}],
        [{"text": "Come home,", "speaker": "Ann", "kind": "woman", "number": 0}],
    ]
    _, timing = spoken(tmp_path, voice, parts=parts)
    assert [line.split(", ")[1] for line in log.read_text().splitlines()] == ["None", "'7'"]
    first = timing.sentences[0]
    assert first.end - first.at == pytest.approx(1000 * len(SENTENCES[0]) / 20, abs=80)  # as the stand-in speaks
    assert first.words[-1].end == pytest.approx(first.end, abs=120)
