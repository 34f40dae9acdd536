"""Turns sentences into one WAV and the times of all that is said, by eSpeak NG, Piper or a speech server (B6)."""

from pathlib import Path
from typing import Any

import msgspec

from patra.studio.film.ffmpeg import Interrupted, decode_samples
from patra.studio.profiles import Engine
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.voice.espeak import Mark, Speech, speak
from patra.studio.voice.narration import in_one, join_speeches, voice_of
from patra.studio.voice.piper import speak_to
from patra.studio.workers.job_request import File, JobRequest, JobResult, Stop
from patra.studio.workers.model_client import post_for_file

RATE = 22050


class Audio:
    version = "audio-2"

    def execute(self, order: JobRequest, folder: Path, artifacts: ArtifactStore, stop: Stop) -> JobResult:
        prompt, speeches = order.prompt, list[tuple[str, Speech]]()
        by_name: list[tuple[Mark, ...]] = []
        for number, text in enumerate(prompt["sentences"]):
            parts: list[tuple[str, Speech]] = []
            for place, part in enumerate(_parts(prompt, number, text)):
                if stop():
                    raise Interrupted
                voice = voice_of(order.language, prompt["mood"], part["kind"], part["number"])
                spoken = speak(part["text"], voice)
                if order.profile.engine in {Engine.OPENAI_SPEECH, Engine.PIPER}:
                    file = folder / f"sentence_{number}_{place}"
                    spoken = _speak_elsewhere(order, part["text"], part["kind"], spoken, file, stop)
                parts.append((part["speaker"], spoken))
            whole, names = in_one(parts)
            speeches.append((text, whole))
            by_name.append(names)
        sound, timing = join_speeches(
            speeches,
            order.quality.fps,
            opens=prompt["opens"],
            ends=prompt["ends"],
            spoken=by_name,
            least_ms=prompt.get("least_ms", 0),
        )
        wav, times = folder / "narration.wav", folder / "timing.json"
        wav.write_bytes(sound)
        times.write_bytes(msgspec.json.encode(timing))
        length = {"duration_ms": timing.duration_ms, "language": order.language}
        del artifacts
        return JobResult(
            files=(
                File(path=wav, kind="audio", media_type="audio/wav", fields=length),
                File(path=times, kind="timing", media_type="application/json", fields=length),
            ),
            metrics={"sentences": len(speeches), "words": sum(len(s.words) for _, s in speeches)},
        )


def _parts(prompt: dict[str, Any], number: int, text: str) -> list[dict[str, Any]]:
    """Who says what in a sentence; the narrator says all of it where the plan (of an earlier release) has no parts."""
    planned: list[list[dict[str, Any]]] = prompt.get("parts") or []
    found = planned[number] if number < len(planned) else []
    return found or [{"text": text, "speaker": "", "kind": "", "number": 0}]


def _speak_elsewhere(order: JobRequest, text: str, kind: str, local: Speech, file: Path, stop: Stop) -> Speech:
    """Another voice's samples; its word and phoneme times are the embedded voice's, stretched to their length."""
    if order.profile.engine is Engine.PIPER:
        if not speak_to(file, text, order.profile.piper_voice(kind), stop):
            raise Interrupted
    else:
        _ask_server(order, text, kind, file, stop)
    samples = decode_samples(file, RATE)
    stretch = (len(samples) * 500 / RATE) / max(1, local.milliseconds)

    def fit_marks(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
        return tuple(Mark(round(m.at * stretch), round(m.end * stretch), m.text) for m in marks)

    return Speech(samples=samples, rate=RATE, words=fit_marks(local.words), phonemes=fit_marks(local.phonemes))


def _ask_server(order: JobRequest, text: str, kind: str, file: Path, stop: Stop) -> None:
    """A server's voice; `options.voices` of the profile may name one for each kind of person."""
    voices: dict[str, str] = order.profile.options.get("voices", {})
    body = {
        "model": order.profile.model,
        "voice": voices.get(kind) or order.profile.voice or "default",
        "input": text,
        "response_format": "wav",
    }
    post_for_file(order.profile, "/audio/speech", body, file, stop)
