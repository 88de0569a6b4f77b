"""The 75 columns of recorded speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...data.features import Extractor
from ...protocols import Bools, Floats
from ..made import Made
from ..raw_items import RawItem, RawItems, leave_out
from ..work import Measure, Run, each_item, measure_rows
from .pitch import HOP, Pitch, track_pitch
from .recordings import RATE, expect_soundfile, read_recording, resample
from .spectra import N_COEFFICIENTS, Spectra, bandwidth_of, spectra_of

VERSION = 1
_FILES_PER_CHUNK = 8
_MAX_FILE_BYTES = 2 * 10**9

_PITCH = ("mean", "sd", "p10", "p50", "p90", "range", "slope", "change")
_LEVEL = ("mean", "sd", "p10", "p50", "p90", "slope", "range")
_SPECTRAL = ("harmonicity", "centroid", "rolloff", "flatness", "tilt", "high_band", "flux")
_RHYTHM = ("syllable_rate", "articulation_rate", "pauses_per_second", "pause_share")
COLUMNS = (
    "duration", "bandwidth", *(f"pitch_{name}" for name in _PITCH), "voiced", *(f"level_{name}" for name in _LEVEL),
    *(f"{name}_{what}" for name in _SPECTRAL for what in ("mean", "sd")), *_RHYTHM,
    *(f"{name}" for k in range(N_COEFFICIENTS) for name in (f"mfcc{k}_mean", f"mfcc{k}_sd", f"dmfcc{k}_sd")),
)  # fmt: skip
"""Names of the columns, in their order."""

_LOUD_RANGE = 30.0
"""Frames within this many dB of the 95th percentile are loud."""

_SYLLABLE_DIP, _SYLLABLE_FRAMES, _PAUSE_FRAMES = 2.0, 8, 15
"""dB between syllables, frames between them (80 ms), and frames of a pause (150 ms)."""

_SECONDS_PER_FRAME = HOP / RATE


def make(items: RawItems, params: Mapping[str, Any], fitted: Extractor | None, run: Run) -> Made:
    """Return the columns of recordings; nothing is fitted to them."""
    expect_soundfile()
    content = partial(RawItem.read_bytes, most=_MAX_FILE_BYTES)
    measure = Measure(
        "speech", VERSION, {}, ".sound.speech_features:measure_speech", len(COLUMNS), _FILES_PER_CHUNK, content
    )
    matrix, failed = measure_rows(measure, items.raw, run, "recordings")
    keep = [row not in failed for row in range(len(items))]
    return Made(leave_out(items, failed, run.on_error), matrix[keep], COLUMNS)


def measure_speech(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats | str]:
    """Yield the columns of each recording, or why there are none."""
    yield from each_item(lambda raw: speech_columns(*read_recording(raw)), raws)


def speech_columns(samples: Floats, rate: int) -> Floats:
    """Return the columns of one channel of samples; those of pitch are NaN where nobody speaks."""
    sound = resample(samples, rate)
    pitch, spectra = track_pitch(sound), spectra_of(sound)
    loud = spectra.level >= np.percentile(spectra.level, 95) - _LOUD_RANGE
    spectral = [pitch.harmonicity, *(getattr(spectra, name) for name in _SPECTRAL[1:])]
    values = [
        len(samples) / rate, bandwidth_of(samples, rate), *_pitch_columns(pitch, loud),
        float(pitch.has_voice[loud].mean()), *_level_columns(spectra.level, loud),
        *(number for column in spectral for number in (column[loud].mean(), column[loud].std())),
        *_rhythm_columns(spectra, pitch, loud, len(samples) / rate), *_cepstral_columns(spectra.cepstrum, loud),
    ]  # fmt: skip
    return np.array(values, np.float64)


def _pitch_columns(pitch: Pitch, loud: Bools) -> list[float]:
    """Pitch in semitones over 100 Hz, of the loud voiced frames."""
    voiced = np.flatnonzero(pitch.has_voice & loud)
    if not len(voiced):
        return [float("nan")] * len(_PITCH)
    tone = 12 * np.log2(pitch.frequency[voiced] / 100)
    low, middle, high = np.percentile(tone, [10, 50, 90])
    steps = np.abs(np.diff(tone))[np.diff(voiced) == 1]
    change = float(steps.mean()) if len(steps) else 0.0
    return [tone.mean(), tone.std(), low, middle, high, high - low, _slope(voiced, tone), change]


def _level_columns(level: Floats, loud: Bools) -> list[float]:
    """Level in dB of the loud frames, and the range of all."""
    frames, values = np.flatnonzero(loud), level[loud]
    low, middle, high = np.percentile(values, [10, 50, 90])
    quiet, noisy = np.percentile(level, [5, 95])
    return [values.mean(), values.std(), low, middle, high, _slope(frames, values), noisy - quiet]


def _slope(frames: Any, values: Floats) -> float:
    """Least-squares change per second, 0 of a single frame."""
    time = (frames - frames.mean()) * _SECONDS_PER_FRAME
    spread = float(time @ time)
    return float(time @ values) / spread if spread > 0 else 0.0


def _rhythm_columns(spectra: Spectra, pitch: Pitch, loud: Bools, seconds: float) -> list[float]:
    """Syllables per second, in all and while speaking; pauses per second and their share of the time."""
    from scipy.signal import find_peaks

    smooth = np.convolve(np.pad(spectra.level, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    peaks, _ = find_peaks(smooth, prominence=_SYLLABLE_DIP, distance=_SYLLABLE_FRAMES)
    n_syllables = int((pitch.has_voice & loud)[peaks].sum())
    inside = np.flatnonzero(loud)
    gaps = np.diff(inside) - 1  # frames that are not loud, between loud ones
    pauses = gaps[gaps >= _PAUSE_FRAMES]
    paused = float(pauses.sum()) * _SECONDS_PER_FRAME
    speaking = max(seconds - paused, _SECONDS_PER_FRAME)
    return [n_syllables / seconds, n_syllables / speaking, len(pauses) / seconds, paused / seconds]


def _cepstral_columns(cepstrum: Floats, loud: Bools) -> list[float]:
    """Mean and standard deviation of each coefficient, and the standard deviation of its change, in loud frames."""
    change = np.zeros_like(cepstrum) if len(cepstrum) < 2 else np.gradient(cepstrum, axis=0)
    columns = np.stack([cepstrum[loud].mean(axis=0), cepstrum[loud].std(axis=0), change[loud].std(axis=0)], axis=1)
    return [float(value) for value in columns.ravel()]
