"""The sentences of a shot go in; one WAV of whole picture frames, and the times of all that is said, come out (B6).

Speech is made sentence by sentence, so each caption has its exact time. The sound is padded to a whole number of
frames:
picture and sound of a shot have the same length to the sample, and so have the film's.
"""

import io
import wave
from collections.abc import Sequence

import msgspec

from patra.studio.voice.espeak import VOICES, Mark, Speech, Voice, speak

GAP_MS = 260  # between the sentences of a shot
HEAD_MS, TAIL_MS = 180, 320  # before the first and after the last
OPEN_MS, END_MS = 2200, 1800  # more of it where the film opens (its title is read) and ends

MOOD_PACE = {"tense": 1.08, "joyful": 1.04, "sad": 0.92, "mysterious": 0.93, "warm": 0.97}
MOOD_PITCH = {"tense": 4, "joyful": 5, "sad": -5, "mysterious": -4}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence in the shot's time, in milliseconds."""

    text: str
    at: int
    end: int
    words: tuple[Mark, ...]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All that is heard in a shot."""

    rate: int
    frames: int
    fps: int
    duration_ms: int
    sentences: tuple[Said, ...]
    phonemes: tuple[Mark, ...]


def voice_for(language: str, mood: str) -> Voice:
    base = 152 if language != "zh" else 168
    return Voice(
        name=VOICES.get(language, language),
        words_a_minute=round(base * MOOD_PACE.get(mood, 1.0)),
        pitch=42 + MOOD_PITCH.get(mood, 0),
    )


def narrate(
    sentences: Sequence[str], language: str, mood: str, fps: int, *, opens: bool = False, ends: bool = False
) -> tuple[bytes, Timing]:
    """A shot's WAV and its timing, spoken by eSpeak NG."""
    voice = voice_for(language, mood)
    return joined([(text, speak(text, voice)) for text in sentences], fps, opens=opens, ends=ends)


def joined(
    speeches: Sequence[tuple[str, Speech]], fps: int, *, opens: bool = False, ends: bool = False
) -> tuple[bytes, Timing]:
    """Sentences one after another with their pauses, padded to whole frames."""
    rate = speeches[0][1].rate
    head = HEAD_MS + (OPEN_MS if opens else 0)
    sound = bytearray(_silence(head, rate))
    said: list[Said] = []
    phonemes: list[Mark] = []
    for number, (text, speech) in enumerate(speeches):
        if number:
            sound += _silence(GAP_MS, rate)
        at = len(sound) * 500 // rate
        samples = _trimmed(speech.samples, rate)
        length = len(samples) * 500 // rate
        sound += samples
        said.append(Said(text=text, at=at, end=at + length, words=_moved(speech.words, at, length)))
        phonemes += _moved(speech.phonemes, at, length)
    sound += _silence(TAIL_MS + (END_MS if ends else 0), rate)
    frames = -(-(len(sound) // 2) * fps // rate)
    sound += bytes(2 * round(frames * rate / fps) - len(sound))
    timing = Timing(
        rate=rate,
        frames=frames,
        fps=fps,
        duration_ms=round(1000 * frames / fps),
        sentences=tuple(said),
        phonemes=tuple(phonemes),
    )
    return wav(bytes(sound), rate), timing


def wav(samples: bytes, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return out.getvalue()


def samples_of(data: bytes) -> tuple[bytes, int]:
    """The samples and their rate of a mono 16-bit WAV."""
    with wave.open(io.BytesIO(data)) as file:
        return file.readframes(file.getnframes()), file.getframerate()


def _trimmed(samples: bytes, rate: int) -> bytes:
    """Without the synthesiser's own silence at the end, beyond 60 ms."""
    view = memoryview(samples).cast("h")
    last = len(view)
    while last and -64 < view[last - 1] < 64:
        last -= 1
    return samples[: 2 * min(len(view), last + rate * 60 // 1000)]


def _moved(marks: Sequence[Mark], by: int, length: int) -> tuple[Mark, ...]:
    return tuple(Mark(m.at + by, min(m.end, length) + by, m.text) for m in marks if m.at <= length)


def _silence(milliseconds: int, rate: int) -> bytes:
    return bytes(2 * (milliseconds * rate // 1000))
