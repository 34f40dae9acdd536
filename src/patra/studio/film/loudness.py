"""Samples go in; their loudness (ITU-R BS.1770, as EBU R 128 uses it) and the gain towards a target come out (B6).

The K-weighting is applied to the spectrum of each 400 ms block; blocks are gated as the recommendation says. One pass
over the samples, a block at a time: ffmpeg's own filter upsamples to 192 kHz and takes a tenth of the film's length.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

TARGET = -16.0  # LUFS, as streaming services ask for speech
MOST_GAIN = 18.0  # dB
_BLOCK, _STEP = 0.4, 0.1  # seconds
_SILENCE, _GATE = -70.0, -10.0  # LUFS absolute, LU below the ungated mean


def loudness(pieces: Iterable[bytes], rate: int) -> float:
    """Integrated loudness in LUFS; -70 for silence."""
    block, step = round(_BLOCK * rate), round(_STEP * rate)
    weight = k_weighting(np.fft.rfftfreq(block, 1 / rate).astype(np.float64))
    weight[1:-1] *= 2  # the other half of the spectrum
    powers: list[float] = []
    waiting = np.zeros(0, np.float64)
    for piece in pieces:
        samples = np.frombuffer(piece, "<i2").astype(np.float64) / 32768
        waiting = np.concatenate([waiting, samples])
        while len(waiting) >= block:
            spectrum = np.abs(np.fft.rfft(waiting[:block])) ** 2
            powers.append(float(spectrum @ weight) / block**2)
            waiting = waiting[step:]
    heard = np.array([power for power in powers if _lufs(power) > _SILENCE])
    if not len(heard):
        return _SILENCE
    gate = _lufs(float(heard.mean())) + _GATE
    return _lufs(float(np.array([power for power in heard if _lufs(power) > gate]).mean()))


def gain_for(measured: float) -> float:
    """Decibels that bring a measured loudness to the target, within reason."""
    return 0.0 if measured <= _SILENCE else max(-MOST_GAIN, min(MOST_GAIN, TARGET - measured))


def k_weighting(frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """The squared response of the head's shelf and the low cut of BS.1770, by their analogue prototypes."""
    s = 2j * math.pi * frequency
    w1, q1, high = 2 * math.pi * 1681.97, 0.7072, 10 ** (4.0 / 20)
    shelf = (high * s**2 + high**0.4996 * w1 / q1 * s + w1**2) / (s**2 + w1 / q1 * s + w1**2)
    w2, q2 = 2 * math.pi * 38.135, 0.5003
    cut = s**2 / (s**2 + w2 / q2 * s + w2**2)
    return np.abs(shelf * cut) ** 2


def _lufs(power: float) -> float:
    return -0.691 + 10 * math.log10(power) if power > 0 else -math.inf
