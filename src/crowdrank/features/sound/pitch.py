"""Pitch and harmonicity of speech by the autocorrelation method of Boersma (1993)."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import fft

from ...protocols import Bools, Counts, Floats
from .recordings import RATE

HOP, FRAME = 160, 400
"""Samples from one frame to the next, and in a frame: 10 and 25 ms."""

_WINDOW, _FFT = 640, 2048
_LOWEST, _HIGHEST = 60.0, 500.0
_SHORTEST_LAG, _LONGEST_LAG = int(RATE / _HIGHEST), int(np.ceil(RATE / _LOWEST))
_N_PEAKS = 6
_FRAMES_AT_ONCE = 1000

_VOICING, _SILENCE = 0.45, 0.03
_OCTAVE_COST, _JUMP_COST, _VOICE_COST = 0.01, 0.35, 0.14
"""Boersma's thresholds and costs, as Praat has them for frames of 10 ms."""

_NO_PEAK = -1e9
_MIN_CORRELATION, _MAX_CORRELATION = 0.01, 0.9999


class Pitch(NamedTuple):
    """Of each frame the frequency in Hz (0 where unvoiced), and how harmonic it is, in dB."""

    frequency: Floats
    harmonicity: Floats

    @property
    def has_voice(self) -> Bools:
        """Which frames have a voice."""
        return self.frequency > 0


def n_frames(n_samples: int) -> int:
    """Return the number of frames of a recording, one at least."""
    return 1 + max(0, n_samples - FRAME) // HOP


def frames_of(samples: Floats, length: int, begin: int, end: int) -> Floats:
    """Return frames of some length about the middles of the frames ``begin`` up to ``end``, zeros beyond both ends."""
    first = begin * HOP + FRAME // 2 - length // 2
    last = (end - 1) * HOP + FRAME // 2 - length // 2 + length
    part = samples[max(first, 0) : max(last, 0)]
    part = np.pad(part, (max(-first, 0), max(last - first - len(part) - max(-first, 0), 0)))
    return np.lib.stride_tricks.sliding_window_view(part, length)[::HOP]


def track_pitch(samples: Floats) -> Pitch:
    """Return the pitch of each frame of samples at 16 kHz."""
    count = n_frames(len(samples))
    bounds = [*range(0, count, _FRAMES_AT_ONCE), count]
    loudest = float(np.abs(samples - samples.mean()).max(initial=0.0))
    candidates = [_candidates(samples, begin, end, loudest) for begin, end in pairwise(bounds)]
    frequency, strength, unvoiced, best = (np.concatenate(parts) for parts in zip(*candidates, strict=True))
    path = _best_path(frequency, strength, unvoiced)
    chosen = np.where(path < _N_PEAKS, frequency[np.arange(count), np.minimum(path, _N_PEAKS - 1)], 0.0)
    correlation = np.clip(best, _MIN_CORRELATION, _MAX_CORRELATION)
    return Pitch(chosen, 10 * np.log10(correlation / (1 - correlation)))


def _candidates(samples: Floats, begin: int, end: int, loudest: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Frequencies and strengths of the highest peaks of each frame, the strength of no voice, and the highest peak."""
    frames = frames_of(samples, _WINDOW, begin, end)
    frames = frames - frames.mean(axis=1, keepdims=True)
    local = np.abs(frames).max(axis=1)
    correlation = _autocorrelation(frames)
    lags = np.arange(_SHORTEST_LAG - 1, _LONGEST_LAG + 2)
    values = correlation[:, lags]
    inner = values[:, 1:-1]
    is_peak = (inner > values[:, :-2]) & (inner >= values[:, 2:]) & (inner > 0)
    before, after = values[:, :-2], values[:, 2:]
    bend = np.where(is_peak, before - 2 * inner + after, -1.0)
    shift = np.where(is_peak, (before - after) / (2 * bend), 0.0)
    height = np.where(is_peak, inner - (before - after) * shift / 4, 0.0)
    height = np.where(height > 1, 1 / np.maximum(height, 1), height)
    lag = lags[1:-1] + shift
    strength = np.where(is_peak, height - _OCTAVE_COST * np.log2(_LOWEST * lag / RATE), _NO_PEAK)
    order = np.argsort(-strength, axis=1, kind="stable")[:, :_N_PEAKS]
    rows = np.arange(len(frames))[:, None]
    share = local / loudest if loudest > 0 else np.zeros(len(frames))
    unvoiced = _VOICING + np.maximum(0.0, 2 - share / (_SILENCE / (1 + _VOICING)))
    return RATE / lag[rows, order], strength[rows, order], unvoiced, height.max(axis=1)


def _autocorrelation(frames: Floats) -> Floats:
    """Autocorrelation of each windowed frame over that of the window; 0 where a frame is silent."""
    window = np.hanning(_WINDOW + 2)[1:-1]
    power = np.abs(fft.rfft(np.vstack([frames * window, window]), _FFT, axis=1)) ** 2
    raw = fft.irfft(power, _FFT, axis=1)[:, : _LONGEST_LAG + 2]
    energy = raw[:, :1]
    raw = np.divide(raw, energy, out=np.zeros_like(raw), where=energy > 1e-12)
    ratio: Floats = raw[:-1] / raw[-1]
    return ratio


def _best_path(frequency: Floats, strength: Floats, unvoiced: Floats) -> Counts:
    """The path of least cost through the candidates of each frame, of which the last is no voice (Viterbi)."""
    count, n = frequency.shape
    octaves = np.log2(frequency)
    gain = np.hstack([strength, unvoiced[:, None]])
    back = np.zeros((count, n + 1), np.int64)
    cost = np.full((n + 1, n + 1), _VOICE_COST)
    cost[n, n] = 0.0
    total = gain[0].copy()
    for frame in range(1, count):
        cost[:n, :n] = _JUMP_COST * np.abs(octaves[frame - 1][:, None] - octaves[frame][None, :])
        reach = total[:, None] - cost
        back[frame] = reach.argmax(axis=0)
        total = reach[back[frame], np.arange(n + 1)] + gain[frame]
    path = np.empty(count, np.int64)
    path[-1] = int(total.argmax())
    for frame in range(count - 1, 0, -1):
        path[frame - 1] = back[frame, path[frame]]
    return path
