"""Speaks one sentence with eSpeak NG: 16-bit samples, and the times of its words and phonemes (B6).

The library keeps global state, so one lock stands in front of it, and it is loaded again for each sentence (8 ms): the
same sentence then gives the same samples, whatever was said before. It comes from the wheel `espeakng-loader`; nothing
is installed on the machine and nothing is sent anywhere.
"""

import _ctypes
import ctypes
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec

from patra.kernel.errors import ConfigInvalid, Permanent
from patra.studio.vocabulary.reasons import Reason

_SYNCHRONOUS, _PHONEME_EVENTS, _PHONEME_IPA, _DONT_EXIT = 2, 1, 2, 0x8000
_UTF8, _PHONEMES_OUT, _ENDPAUSE = 1, 0x100, 0x1000
_WORD, _END, _PHONEME = 1, 5, 7
_RATE, _PITCH, _RANGE, _WORDGAP = 1, 3, 4, 7

VOICES = {"en": "en-gb-x-rp", "zh": "cmn", "de": "de", "fr": "fr-fr", "es": "es", "it": "it", "ja": "ja", "ru": "ru"}


class Mark(msgspec.Struct, frozen=True):
    """Something that is heard at a time: a word (as it is written) or a phoneme (IPA). Milliseconds."""

    at: int
    end: int
    text: str


class Speech(msgspec.Struct, frozen=True, kw_only=True):
    samples: bytes  # 16-bit little-endian mono
    rate: int
    words: tuple[Mark, ...]
    phonemes: tuple[Mark, ...]

    @property
    def milliseconds(self) -> int:
        return len(self.samples) * 500 // self.rate


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """How it is said."""

    name: str = "en-gb-x-rp"
    words_a_minute: int = 152
    pitch: int = 42
    range: int = 58


class _Id(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    ]


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))
_lock = threading.Lock()


class _Heard:
    """What the callback gathered of one sentence."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.words: list[tuple[int, int, int]] = []
        self.phonemes: list[tuple[int, str]] = []


_heard = _Heard()


def _gather(samples: Any, count: int, events: Any) -> int:
    if samples and count > 0:
        _heard.pieces.append(ctypes.string_at(samples, count * 2))
    number = 0
    while events and (event := events[number]).type:
        if event.type == _WORD:
            _heard.words.append((event.audio_position, event.text_position, event.length))
        elif event.type == _PHONEME:
            _heard.phonemes.append((event.audio_position, event.id.string.decode("utf-8", "ignore")))
        number += 1
    return 0


_callback = _Callback(_gather)


@lru_cache(maxsize=1)
def _places() -> tuple[str, bytes]:
    """The library and its data."""
    try:
        import espeakng_loader  # noqa: PLC0415  an extra  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ConfigInvalid(
            Reason.EXTRA_MISSING, "speech needs espeakng-loader", place="studio", advice="pip install 'patra[studio]'"
        ) from error
    return str(espeakng_loader.get_library_path()), str(espeakng_loader.get_data_path()).encode()


@contextmanager
def _library() -> Generator[tuple[Any, int]]:
    """The library as if just started: the noise and phase that it carries from sentence to sentence are gone."""
    path, data = _places()
    library: Any = ctypes.CDLL(path)
    try:
        rate: int = library.espeak_Initialize(_SYNCHRONOUS, 0, data, _PHONEME_EVENTS | _PHONEME_IPA | _DONT_EXIT)
        if rate <= 0:
            raise Permanent(Reason.SPEECH_FAILED, "eSpeak NG found no data")
        library.espeak_ng_SetRandSeed(ctypes.c_long(1))
        library.espeak_SetSynthCallback(_callback)
        yield library, rate
        library.espeak_Terminate()
    finally:
        _ctypes.dlclose(library._handle)  # noqa: SLF001  the one way to unload it


@lru_cache(maxsize=64)
def knows(name: str) -> bool:
    """Whether the synthesiser has a voice of this name."""
    with _lock, _library() as (library, _):
        return library.espeak_SetVoiceByName(name.encode()) == 0


def speak(text: str, voice: Voice) -> Speech:
    """Synthesise one sentence. The same text and voice give the same samples."""
    global _heard  # noqa: PLW0603  the C library calls back without a place for our state
    with _lock, _library() as (library, rate):
        if library.espeak_SetVoiceByName(voice.name.encode()) != 0:
            raise Permanent(Reason.VOICE_UNKNOWN, f"eSpeak NG has no voice {voice.name}")
        for parameter, value in ((_RATE, voice.words_a_minute), (_PITCH, voice.pitch), (_RANGE, voice.range)):
            library.espeak_SetParameter(parameter, value, 0)
        _heard = _Heard()
        data = text.encode() + b"\0"
        code = library.espeak_Synth(data, len(data), 0, 1, 0, _UTF8, None, None)
        heard = _heard
    if code != 0 or not heard.pieces:
        raise Permanent(Reason.SPEECH_FAILED, f"eSpeak NG answered {code}")
    samples = b"".join(heard.pieces)
    length = len(samples) * 500 // rate
    return Speech(samples=samples, rate=rate, words=_words(heard, text, length), phonemes=_phonemes(heard, length))


def _words(heard: _Heard, text: str, length: int) -> tuple[Mark, ...]:
    found = [(at, text[start - 1 : start - 1 + count]) for at, start, count in heard.words if count > 0]
    ends = [at for at, _ in found[1:]] + [length]
    return tuple(Mark(at, max(at, end), word) for (at, word), end in zip(found, ends, strict=True))


def _phonemes(heard: _Heard, length: int) -> tuple[Mark, ...]:
    ends = [at for at, _ in heard.phonemes[1:]] + [length]
    return tuple(
        Mark(at, max(at, end), name) for (at, name), end in zip(heard.phonemes, ends, strict=True) if name or end > at
    )
