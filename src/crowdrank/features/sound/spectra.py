"""What the spectrum of each frame looks like, and its cepstral coefficients."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import fft

from ...protocols import Floats
from .pitch import FRAME, frames_of, n_frames
from .recordings import RATE

_FFT = 512
_N_BANDS, N_COEFFICIENTS = 26, 13
_LOW_EDGE, _HIGH_EDGE = 60.0, 7600.0
_PRE_EMPHASIS = 0.97
_ROLL_OFF, _TILT_EDGE, _HIGH_BAND_EDGE = 0.85, 1000.0, 4000.0
_FLOOR = 1e-10
"""Power that stands for none: -100 dB."""

_FRAMES_AT_ONCE = 4000
_BANDWIDTH_SHARE, _BANDWIDTH_FRAME, _BANDWIDTH_FRAMES_AT_ONCE = 0.999, 4096, 500


class Spectra(NamedTuple):
    """Numbers of each frame: levels in dB, frequencies in kHz, shares; and (frames, 13) cepstral coefficients."""

    level: Floats
    centroid: Floats
    rolloff: Floats
    flatness: Floats
    tilt: Floats
    high_band: Floats
    flux: Floats
    cepstrum: Floats


def spectra_of(samples: Floats) -> Spectra:
    """Return what the frames of samples at 16 kHz sound like."""
    count = n_frames(len(samples))
    emphasised = np.append(samples[:1], samples[1:] - _PRE_EMPHASIS * samples[:-1])
    bounds = [*range(0, count, _FRAMES_AT_ONCE), count]
    parts = [_block(samples, emphasised, begin, end) for begin, end in pairwise(bounds)]
    level, centroid, rolloff, flatness, tilt, high_band, bands = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    steps = np.abs(np.diff(bands, axis=0)).mean(axis=1)
    flux = np.append(steps[:1] if count > 1 else [0.0], steps)
    cepstrum = fft.dct(bands, norm="ortho", axis=1)[:, :N_COEFFICIENTS]
    return Spectra(level, centroid, rolloff, flatness, tilt, high_band, flux, cepstrum)


def _block(samples: Floats, emphasised: Floats, begin: int, end: int) -> tuple[Floats, ...]:
    """The numbers of some frames, and their logarithmic Mel bands."""
    window = np.hanning(FRAME + 2)[1:-1]
    plain = frames_of(samples, FRAME, begin, end)
    level = 10 * np.log10(np.maximum((plain**2).mean(axis=1), _FLOOR))
    power = np.abs(fft.rfft(plain * window, _FFT, axis=1)) ** 2
    sharp = np.abs(fft.rfft(frames_of(emphasised, FRAME, begin, end) * window, _FFT, axis=1)) ** 2
    frequency = fft.rfftfreq(_FFT, 1 / RATE)
    total = np.maximum(power.sum(axis=1), _FLOOR)
    below = np.cumsum(power, axis=1)
    rolloff = frequency[np.argmax(below >= _ROLL_OFF * below[:, -1:], axis=1)] / 1000
    low = np.maximum(power[:, frequency < _TILT_EDGE].sum(axis=1), _FLOOR)
    high = np.maximum(power[:, frequency >= _TILT_EDGE].sum(axis=1), _FLOOR)
    floored = np.maximum(power, _FLOOR)
    return (
        level,
        power @ frequency / total / 1000,
        rolloff,
        np.exp(np.log(floored).mean(axis=1)) / floored.mean(axis=1),
        10 * np.log10(high / low),
        power[:, frequency >= _HIGH_BAND_EDGE].sum(axis=1) / total,
        np.log(np.maximum(sharp @ _mel_bands().T, _FLOOR)),
    )


@cache
def _mel_bands() -> Floats:
    """Weights of triangular bands that are evenly spaced in Mel, (bands, frequencies)."""
    low, high = (2595 * math.log10(1 + edge / 700) for edge in (_LOW_EDGE, _HIGH_EDGE))
    edges = np.linspace(low, high, _N_BANDS + 2)
    edges = 700 * (10 ** (edges / 2595) - 1)
    frequency = fft.rfftfreq(_FFT, 1 / RATE)
    rising = (frequency - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequency) / np.diff(edges)[1:, None]
    weights: Floats = np.maximum(0.0, np.minimum(rising, falling))
    return weights


def bandwidth_of(samples: Floats, rate: int) -> float:
    """Return the frequency in kHz below which nearly all of the power lies, NaN of silence; at the file's own rate."""
    samples = samples - samples.mean()
    length = min(_BANDWIDTH_FRAME, len(samples))
    window = np.hanning(length + 2)[1:-1]
    power = np.zeros(length // 2 + 1)
    step = max(length // 2, 1)
    for begin in range(0, len(samples) - length + 1, step * _BANDWIDTH_FRAMES_AT_ONCE):
        part = samples[begin : begin + step * (_BANDWIDTH_FRAMES_AT_ONCE - 1) + length]
        frames = np.lib.stride_tricks.sliding_window_view(part, length)[::step]
        power += (np.abs(fft.rfft(frames * window, axis=1)) ** 2).sum(axis=0)
    if power.sum() <= _FLOOR:
        return float("nan")
    below = np.cumsum(power)
    return float(fft.rfftfreq(length, 1 / rate)[np.argmax(below >= _BANDWIDTH_SHARE * below[-1])] / 1000)
