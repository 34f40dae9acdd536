"""Turns the sentences of a shot into one WAV of whole picture frames, and the times of all that is said (B6).

Speech is made sentence by sentence, so each caption has its exact time. The sound is padded to a whole number of
frames:
picture and sound of a shot have the same length to the sample, and so have the film's.
"""

import io
import wave
from collections.abc import Sequence

import msgspec

from patra.studio.voice.espeak import VOICES, Mark, Speech, Voice

GAP_MS = 260  # between the sentences of a shot
PAUSES_MS = {**dict.fromkeys(",，、", 130), **dict.fromkeys(";；:：", 200), **dict.fromkeys("?？!！", 330)}
LONG_PAUSE_MS = 440  # after dots and dashes
PART_GAP_MS = 90  # between a quotation and the words beside it
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


VARIANTS = {
    "woman": ("f2", "f4", "f3"),
    "girl": ("f5", "f2"),
    "granny": ("f3", "f1"),
    "man": ("m3", "m1", "m7"),
    "boy": ("m5", "m2"),
    "old": ("m6", "m4"),
}
KIND_PITCH = {"woman": 10, "girl": 26, "granny": 2, "man": -6, "boy": 22, "old": -14}
KIND_PACE = {"granny": 0.88, "old": 0.86, "girl": 1.05, "boy": 1.05}


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All that is heard in a shot."""

    rate: int
    frames: int
    fps: int
    duration_ms: int
    sentences: tuple[Said, ...]
    phonemes: tuple[Mark, ...]
    spoken: tuple[Mark, ...] = ()  # what people say themselves, with their names; the narrator says the rest


def voice_for(language: str, mood: str) -> Voice:
    base = 152 if language != "zh" else 168
    return Voice(
        name=VOICES.get(language, language),
        words_a_minute=round(base * MOOD_PACE.get(mood, 1.0)),
        pitch=42 + MOOD_PITCH.get(mood, 0),
    )


def voice_of(language: str, mood: str, kind: str, number: int) -> Voice:
    """The voice of a character: one of their kind's, another one for the next of the kind."""
    told = voice_for(language, mood)
    if kind not in VARIANTS:
        return told
    variants = VARIANTS[kind]
    return Voice(
        name=f"{told.name}+{variants[max(0, number) % len(variants)]}",
        words_a_minute=round(told.words_a_minute * KIND_PACE.get(kind, 1.0)),
        pitch=max(5, min(95, told.pitch + KIND_PITCH[kind] + 3 * (number % 3))),
    )


def pause_ms(text: str) -> int:
    """How long is waited after a sentence, by the mark that ends it."""
    plain = text.rstrip("”’」』\"') ")
    if plain.endswith(("…", "—", "...")):
        return LONG_PAUSE_MS
    return PAUSES_MS.get(plain[-1:], GAP_MS)


def in_one(parts: Sequence[tuple[str, Speech]]) -> tuple[Speech, tuple[Mark, ...]]:
    """The parts of a sentence, by several voices, as one; and who says what when."""
    rate = parts[0][1].rate
    sound = bytearray()
    words: list[Mark] = []
    phonemes: list[Mark] = []
    spoken: list[Mark] = []
    for number, (speaker, speech) in enumerate(parts):
        if number:
            sound += _silence(PART_GAP_MS, rate)
        at = len(sound) * 500 // rate
        samples = _trim_silence(speech.samples, rate)
        length = len(samples) * 500 // rate
        sound += samples
        words += _move_marks(speech.words, at, length)
        phonemes += _move_marks(speech.phonemes, at, length)
        if speaker:
            spoken.append(Mark(at, at + length, speaker))
    whole = Speech(samples=bytes(sound), rate=rate, words=tuple(words), phonemes=tuple(phonemes))
    return whole, tuple(spoken)


def join_speeches(
    speeches: Sequence[tuple[str, Speech]],
    fps: int,
    *,
    opens: bool = False,
    ends: bool = False,
    spoken: Sequence[tuple[Mark, ...]] = (),
    least_ms: int = 0,
) -> tuple[bytes, Timing]:
    """Sentences one after another with their pauses, padded to whole frames and to the least length."""
    rate = speeches[0][1].rate
    head = HEAD_MS + (OPEN_MS if opens else 0)
    sound = bytearray(_silence(head, rate))
    said: list[Said] = []
    phonemes: list[Mark] = []
    by_name: list[Mark] = []
    for number, (text, speech) in enumerate(speeches):
        if number:
            sound += _silence(pause_ms(speeches[number - 1][0]), rate)
        at = len(sound) * 500 // rate
        samples = _trim_silence(speech.samples, rate)
        length = len(samples) * 500 // rate
        sound += samples
        said.append(Said(text=text, at=at, end=at + length, words=_move_marks(speech.words, at, length)))
        phonemes += _move_marks(speech.phonemes, at, length)
        by_name += _move_marks(spoken[number], at, length) if spoken else ()
    sound += _silence(TAIL_MS + (END_MS if ends else 0), rate)
    sound += bytes(max(0, 2 * (least_ms * rate // 1000) - len(sound)))
    frames = -(-(len(sound) // 2) * fps // rate)
    sound += bytes(2 * round(frames * rate / fps) - len(sound))
    timing = Timing(
        rate=rate,
        frames=frames,
        fps=fps,
        duration_ms=round(1000 * frames / fps),
        sentences=tuple(said),
        phonemes=tuple(phonemes),
        spoken=tuple(by_name),
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


def _trim_silence(samples: bytes, rate: int) -> bytes:
    """Without the synthesiser's own silence at the end, beyond 60 ms."""
    view = memoryview(samples).cast("h")
    last = len(view)
    while last and -64 < view[last - 1] < 64:
        last -= 1
    return samples[: 2 * min(len(view), last + rate * 60 // 1000)]


def _move_marks(marks: Sequence[Mark], by: int, length: int) -> tuple[Mark, ...]:
    return tuple(Mark(m.at + by, min(m.end, length) + by, m.text) for m in marks if m.at <= length)


def _silence(milliseconds: int, rate: int) -> bytes:
    return bytes(2 * (milliseconds * rate // 1000))
