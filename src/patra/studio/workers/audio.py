"""Sentences go in; one WAV and the times of all that is said come out, by eSpeak NG or a speech server (B6)."""

from pathlib import Path

import msgspec

from patra.studio.artifacts import ArtifactStore
from patra.studio.film.ffmpeg import Interrupted, decode_samples
from patra.studio.profiles import Engine
from patra.studio.voice.espeak import Mark, Speech, speak
from patra.studio.voice.narration import joined, voice_for
from patra.studio.workers.order import File, Made, Order, Stop
from patra.studio.workers.server import post_for_file

RATE = 22050


class Audio:
    version = "audio-1"

    def execute(self, order: Order, folder: Path, artifacts: ArtifactStore, stop: Stop) -> Made:
        prompt, speeches = order.prompt, list[tuple[str, Speech]]()
        voice = voice_for(order.language, prompt["mood"])
        for number, text in enumerate(prompt["sentences"]):
            if stop():
                raise Interrupted
            spoken = speak(text, voice)
            if order.profile.engine is Engine.OPENAI_SPEECH:
                spoken = _served(order, text, spoken, folder / f"sentence_{number}", stop)
            speeches.append((text, spoken))
        sound, timing = joined(speeches, order.quality.fps, opens=prompt["opens"], ends=prompt["ends"])
        wav, times = folder / "narration.wav", folder / "timing.json"
        wav.write_bytes(sound)
        times.write_bytes(msgspec.json.encode(timing))
        length = {"duration_ms": timing.duration_ms, "language": order.language}
        del artifacts
        return Made(
            files=(
                File(path=wav, kind="audio", media_type="audio/wav", fields=length),
                File(path=times, kind="timing", media_type="application/json", fields=length),
            ),
            metrics={"sentences": len(speeches), "words": sum(len(s.words) for _, s in speeches)},
        )


def _served(order: Order, text: str, local: Speech, file: Path, stop: Stop) -> Speech:
    """A server's voice; its word and phoneme times are the local voice's, stretched to the server's length."""
    body = {
        "model": order.profile.model,
        "voice": order.profile.voice or "default",
        "input": text,
        "response_format": "wav",
    }
    post_for_file(order.profile, "/audio/speech", body, file, stop)
    samples = decode_samples(file, RATE)
    stretch = (len(samples) * 500 / RATE) / max(1, local.milliseconds)

    def fitted(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
        return tuple(Mark(round(m.at * stretch), round(m.end * stretch), m.text) for m in marks)

    return Speech(samples=samples, rate=RATE, words=fitted(local.words), phonemes=fitted(local.phonemes))
