"""What is heard beside speech is what the text says is there, quiet, ducked, and the same each time."""

from pathlib import Path

import numpy as np
import pytest

from patra.studio.film.ambience import DUCKED, LEVELS, mix_samples, sounds_of
from patra.studio.film.loudness import TARGET_LUFS, gain_to_target, level, loudness
from patra.studio.film.timeline import Clip, timeline_of
from patra.studio.voice.narration import Said, Timing, wav
from tests.support.understood import understood

RATE = 22050


def sounds(text: str) -> set[str]:
    return {name for shot in understood(text).shots for name in sounds_of(shot.picture)}


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("It rained on the village all night.", {"rain"}),
        ("There was no rain in the village that night.", set()),
        ("The storm broke over the island.", {"rain", "wind", "sea"}),
        ("The waves ran up the beach.", {"sea"}),
        ("He had never seen the sea, and lived in a village.", set()),
        ("They sat by the fire in the kitchen.", {"fire", "room"}),
        ("They sat in the kitchen, and there was no fire.", {"room"}),
        ("A cold wind blew over the field.", {"wind"}),
        ("村口下着雨。", {"rain"}),
        ("村口没有下雨。", set()),
        ("小船停在江面上。", {"stream"}),
        ("A battery is a device that stores energy.", set()),
    ],
)
def test_only_what_the_text_says_is_heard(text: str, heard: set[str]) -> None:
    assert sounds(text) == heard


def test_rain_is_softer_inside() -> None:
    (shot,) = understood("In the kitchen they heard the rain.").shots
    assert sounds_of(shot.picture)["rain"] < LEVELS["rain"]


def clip(folder: Path, name: str, seconds: float, speech: tuple[float, float], **fields: object) -> Clip:
    t = np.arange(int(RATE * seconds)) / RATE
    loud = (t >= speech[0]) & (t < speech[1])
    samples = (np.sin(2 * np.pi * 440 * t) * np.sin(2 * np.pi * 3 * t) * 9000 * loud).astype("<i2")
    (folder / name).write_bytes(wav(samples.tobytes(), RATE))
    said = Said(text="x", at=round(1000 * speech[0]), end=round(1000 * speech[1]), words=())
    timing = Timing(
        rate=RATE, frames=round(20 * seconds), fps=20, duration_ms=round(1000 * seconds), sentences=(said,), phonemes=()
    )
    return Clip(shot_id=name, video="", audio=str(folder / name), timing=timing, **fields)


def rms(samples: np.ndarray, begin: float, end: float) -> float:
    return float(np.sqrt(np.mean((samples[int(begin * RATE) : int(end * RATE)] / 32767) ** 2)))


def test_it_is_quiet_ducked_under_speech_and_the_same_each_time(tmp_path: Path) -> None:
    clips = [
        clip(tmp_path, "a", 4.0, (1.0, 2.0), sounds={"rain": LEVELS["rain"]}),
        clip(tmp_path, "b", 3.0, (0.5, 2.5)),
    ]
    timeline = timeline_of(clips, "en")
    made = b"".join(mix_samples(timeline))
    assert made == b"".join(mix_samples(timeline))
    silent = timeline_of(
        [clip(tmp_path, "a", 4.0, (1.0, 2.0), silent=True), clip(tmp_path, "b", 3.0, (0.5, 2.5), silent=True)], "en"
    )
    spoken = b"".join(mix_samples(silent))
    assert len(made) == len(spoken) == 2 * 7 * RATE
    beside = np.frombuffer(made, "<i2").astype(float) - np.frombuffer(spoken, "<i2")
    free, under = rms(beside, 2.6, 4.0), rms(beside, 1.1, 1.9)
    assert 0.5 * LEVELS["rain"] < free < 2 * LEVELS["rain"]
    assert under == pytest.approx(DUCKED * free, rel=0.3)
    assert rms(beside, 4.9, 7.0) < free  # the rain fades with its shot
    assert np.frombuffer(spoken, "<i2")[: RATE // 2].any() == np.False_


def test_the_loudness_of_the_mix_is_the_target(tmp_path: Path) -> None:
    timeline = timeline_of([clip(tmp_path, "a", 5.0, (0.5, 4.0), sounds=dict(LEVELS))], "en")
    gain = gain_to_target(lambda: mix_samples(timeline), RATE)
    assert loudness(mix_samples(timeline), RATE, level(gain)) == pytest.approx(TARGET_LUFS, abs=0.5)
