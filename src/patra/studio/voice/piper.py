"""Speaks with Piper, a neural voice on this machine, where its program and the files of a voice are there (B6).

Nothing is downloaded. A voice is two files, `NAME.onnx` and `NAME.onnx.json`; the program is `piper` of the search path
or the one that is named. It reads a line of text and writes a WAV.
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from patra.kernel.errors import Permanent, Transient
from patra.kernel.safety.redact import redact_text
from patra.studio.vocabulary.reasons import Reason

PROGRAM = "piper"
TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.2


class PiperVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice of Piper: its files, and which of its speakers."""

    model: str
    program: str = ""
    speaker: int | None = None
    length_scale: float = 1.0  # above 1 is slower


def trouble_with(voice: PiperVoice) -> str:
    """What keeps a voice from speaking, judged by its files; empty where nothing does."""
    if _program(voice) is None:
        return f"no program {voice.program or PROGRAM}"
    model = Path(voice.model)
    if not model.is_file():
        return f"no file {model}"
    config = Path(f"{model}.json")
    try:
        settings: Any = msgspec.json.decode(config.read_bytes())
        rate = settings["audio"]["sample_rate"]
    except OSError:
        return f"no file {config}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"{config} is no configuration of a voice"
    return "" if isinstance(rate, int) and rate > 0 else f"{config} has no sample rate"


def speak_to(file: Path, text: str, voice: PiperVoice, stop: Callable[[], bool] = lambda: False) -> bool:
    """Say a text into a WAV file; gives whether it was said, or stopped.

    Raises Permanent where the voice cannot, Transient where it took too long.
    """
    if found := trouble_with(voice):
        raise Permanent(Reason.VOICE_UNKNOWN, found)
    file.unlink(missing_ok=True)
    speaker = [] if voice.speaker is None else ["--speaker", str(voice.speaker)]
    scale = ["--length_scale", f"{voice.length_scale:g}"]
    words = [str(_program(voice)), "--model", voice.model, "--output_file", str(file), *speaker, *scale]
    process = subprocess.Popen(  # noqa: S603  the program that an operator named, arguments of our own
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    said = _read_messages(process, " ".join(text.split()), stop)
    if said is None and stop():
        return False
    if said is None:
        raise Transient(Reason.SPEECH_FAILED, f"{voice.model} took more than {TIMEOUT_S:g} s")
    if process.returncode != 0 or not file.is_file() or not file.stat().st_size:
        last = redact_text(said.decode("utf-8", "replace").strip().splitlines()[-1:][0][:300]) if said.strip() else ""
        raise Permanent(Reason.SPEECH_FAILED, f"{voice.model}: exit code {process.returncode} {last}".strip())
    return True


def _read_messages(process: "subprocess.Popen[bytes]", text: str, stop: Callable[[], bool]) -> bytes | None:
    """What the program said beside its sound; None where it was ended before it was done."""
    until = time.monotonic() + TIMEOUT_S
    given: bytes | None = f"{text}\n".encode()
    try:
        while not stop() and time.monotonic() < until:
            try:
                return process.communicate(given, timeout=LOOK_EVERY_S)[1]
            except subprocess.TimeoutExpired:
                given = None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return None


def _program(voice: PiperVoice) -> str | None:
    return shutil.which(voice.program or PROGRAM)
