"""Recordings in files: one channel of numbers, read only after the header was looked at."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from ..data.features import Extractor
from ..data.files import plain
from ..errors import MissingExtraError
from ..protocols import Bools, Counts, Floats
from .raw_items import LISTS, ItemError, Made, Measure, RawItem, RawItems, Run, each_item, measure_rows

RATE = 16_000
"""Samples per second of what is measured."""

MIN_SECONDS, MAX_SECONDS = 0.1, 600.0
_MAX_DECODED_BYTES = 10**9
_MIN_RATE, _MAX_RATE = 4_000, 400_000
"""Slower than any telephone, faster than any studio; a header beyond is wrong, and resampling would take for ever."""

_MAX_LOST_SECONDS = 0.1
"""A recording may be shorter than its header says by this: headers count padding and the delay of an encoder."""

_MIN_UNKNOWN_BYTES = 0x7FFF0000
"""Programs that write to a pipe put such a number where the length is not known yet."""

_CUT_OFF = re.compile(r"^\s*(?:data|SSND|Data Size|riff)\s*: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""How libsndfile says that the samples of wav, aiff, au and w64 end early: bytes by the header, and those found."""

_NOT_READ = (".m4a", ".mp4", ".aac", ".webm", ".wma")


def read_recording(raw: RawItem) -> tuple[Floats, int]:
    """Return the mean of a recording's channels, and its samples per second."""
    import soundfile

    assert raw.path is not None
    if raw.path.suffix.lower() in _NOT_READ:
        raise ItemError(f"{raw.path.suffix.lower()} is not read; convert it to wav or flac")
    try:
        raw.expect_file()
        with soundfile.SoundFile(str(raw.path)) as file:
            rate = int(file.samplerate)
            # what is too long, too large or of an impossible rate is refused before any of it is decoded
            if not _MIN_RATE <= rate <= _MAX_RATE:
                raise ItemError(f"{rate:,} samples per second; {_MIN_RATE:,} to {_MAX_RATE:,} are read")
            if file.frames > MAX_SECONDS * rate:
                raise ItemError(f"{file.frames / rate:,.0f} s long; at most {MAX_SECONDS:g} s are read")
            if file.frames * file.channels * 8 > _MAX_DECODED_BYTES:
                raise ItemError(f"more than {_MAX_DECODED_BYTES // 10**9} GB when decoded")
            samples = file.read(int(MAX_SECONDS * rate), dtype="float64", always_2d=True)
            n_frames = int(file.frames)
            cut_off = _CUT_OFF.search(file.extra_info)
            if cut_off is not None and 0 < int(cut_off[2]) < int(cut_off[1]) < _MIN_UNKNOWN_BYTES:
                n_frames = round(len(samples) * int(cut_off[1]) / int(cut_off[2]))
            if n_frames - len(samples) > _MAX_LOST_SECONDS * rate:
                there, stated = (f"{n / rate:.2f} s" for n in (len(samples), n_frames))
                raise ItemError(f"cut off: {there} of the {stated} that its header says; copy it again from its source")
    except FileNotFoundError:
        raise ItemError("there is no such file") from None
    except (soundfile.SoundFileError, OSError, ValueError, MemoryError) as error:
        if not raw.path.exists():
            raise ItemError("there is no such file") from None
        if raw.path.is_file() and raw.path.stat().st_size == 0:
            raise ItemError("the file is empty") from None
        said = plain(str(error).split(":")[-1].strip().rstrip("."))[:80]
        raise ItemError(f"no audio that can be read ({said.lower() or 'unknown format'})") from None
    if len(samples) < MIN_SECONDS * rate:
        raise ItemError(f"{len(samples) / rate:.3f} s of sound; at least {MIN_SECONDS:g} s are needed")
    if not np.isfinite(samples).all():
        raise ItemError("it holds samples that are not numbers")
    return samples.mean(axis=1), rate


def resample(samples: Floats, rate: int) -> Floats:
    """Return samples at 16 kHz."""
    from scipy.signal import resample_poly

    common = gcd(rate, RATE)
    return samples if rate == RATE else resample_poly(samples, RATE // common, rate // common)


HOP, FRAME = 160, 400
"""Samples from one frame to the next, and in a frame: 10 and 25 ms."""

_WINDOW, _PITCH_FFT = 640, 2048
_LOWEST, _HIGHEST = 60.0, 500.0
_SHORTEST_LAG, _LONGEST_LAG = int(RATE / _HIGHEST), int(np.ceil(RATE / _LOWEST))
_N_PEAKS = 6
_PITCH_FRAMES_AT_ONCE = 1000

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
    bounds = [*range(0, count, _PITCH_FRAMES_AT_ONCE), count]
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
    before, inner, after = (correlation[:, lags[place : len(lags) - 2 + place]] for place in range(3))
    is_peak = (inner > before) & (inner >= after) & (inner > 0)
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
    power = np.abs(fft.rfft(np.vstack([frames * window, window]), _PITCH_FFT, axis=1)) ** 2
    raw = fft.irfft(power, _PITCH_FFT, axis=1)[:, : _LONGEST_LAG + 2]
    energy = raw[:, :1]
    raw = np.divide(raw, energy, out=np.zeros_like(raw), where=energy > 1e-12)
    return raw[:-1] / raw[-1]


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


_FFT = 512
_N_BANDS, N_COEFFICIENTS = 26, 13
_LOW_EDGE, _HIGH_EDGE = 60.0, 7600.0
_PRE_EMPHASIS = 0.97
_ROLL_OFF, _TILT_EDGE, _HIGH_BAND_EDGE = 0.85, 1000.0, 4000.0
_FLOOR = 1e-10
"""Power that stands for none: -100 dB."""

_FRAMES_AT_ONCE = 4000
_BANDWIDTH_SHARE, _BANDWIDTH_FRAME, _BANDWIDTH_FRAMES_AT_ONCE = 0.999, 4096, 500


def spectra_of(samples: Floats) -> dict[str, Floats]:
    """Return what the frames of samples at 16 kHz sound like.

    Numbers of each frame: ``level`` in dB, frequencies in kHz, shares; and ``cepstrum``, (frames, 13) coefficients.
    """
    count = n_frames(len(samples))
    emphasised = np.append(samples[:1], samples[1:] - _PRE_EMPHASIS * samples[:-1])
    bounds = [*range(0, count, _FRAMES_AT_ONCE), count]
    parts = [_block(samples, emphasised, begin, end) for begin, end in pairwise(bounds)]
    *columns, bands = (np.concatenate(column) for column in zip(*parts, strict=True))
    steps = np.abs(np.diff(bands, axis=0)).mean(axis=1)
    flux = np.append(steps[:1] if count > 1 else [0.0], steps)
    cepstrum = fft.dct(bands, norm="ortho", axis=1)[:, :N_COEFFICIENTS]
    return dict(zip(("level", *_SPECTRAL[1:], "cepstrum"), (*columns, flux, cepstrum), strict=True))


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
    tilted = (frequency < _TILT_EDGE, frequency >= _TILT_EDGE)
    low, high = (np.maximum(power[:, own].sum(axis=1), _FLOOR) for own in tilted)
    floored = np.maximum(power, _FLOOR)
    flatness = np.exp(np.log(floored).mean(axis=1)) / floored.mean(axis=1)
    high_band = power[:, frequency >= _HIGH_BAND_EDGE].sum(axis=1) / total
    bands = np.log(np.maximum(sharp @ _mel_bands().T, _FLOOR))
    return level, power @ frequency / total / 1000, rolloff, flatness, 10 * np.log10(high / low), high_band, bands


@cache
def _mel_bands() -> Floats:
    """Weights of triangular bands that are evenly spaced in Mel, (bands, frequencies)."""
    low, high = (2595 * math.log10(1 + edge / 700) for edge in (_LOW_EDGE, _HIGH_EDGE))
    edges = np.linspace(low, high, _N_BANDS + 2)
    edges = 700 * (10 ** (edges / 2595) - 1)
    frequency = fft.rfftfreq(_FFT, 1 / RATE)
    rising = (frequency - edges[:-2, None]) / np.diff(edges)[:-1, None]
    return np.maximum(0.0, np.minimum(rising, (edges[2:, None] - frequency) / np.diff(edges)[1:, None]))


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


VERSION = 1
_FILES_PER_CHUNK = 8
_MAX_FILE_BYTES = 2 * 10**9

_SPECTRAL = ("harmonicity", "centroid", "rolloff", "flatness", "tilt", "high_band", "flux")
COLUMNS: tuple[str, ...] = tuple(LISTS["speech"]["columns"])
"""Names of the columns, in their order."""

_LOUD_RANGE = 30.0
"""Frames within this many dB of the 95th percentile are loud."""

_SYLLABLE_DIP, _SYLLABLE_FRAMES, _PAUSE_FRAMES = 2.0, 8, 15
"""dB between syllables, frames between them (80 ms), and frames of a pause (150 ms)."""

_SECONDS_PER_FRAME = HOP / RATE


def make(items: RawItems, params: Mapping[str, Any], fitted: Extractor | None, run: Run) -> Made:
    """Return the columns of recordings; nothing is fitted to them."""
    try:
        import soundfile  # noqa: F401
    except (ImportError, OSError):
        raise MissingExtraError("recordings are read by the package soundfile; install crowdrank[speech]") from None
    content = partial(RawItem.read_bytes, most=_MAX_FILE_BYTES)
    measure = Measure("speech", VERSION, {}, measure_speech, len(COLUMNS), _FILES_PER_CHUNK, content)
    return Made(*measure_rows(measure, items, run, "recordings"), COLUMNS)


def measure_speech(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats | str]:
    """Yield the columns of each recording, or why there are none."""
    yield from each_item(lambda raw: speech_columns(*read_recording(raw)), raws)


def speech_columns(samples: Floats, rate: int) -> Floats:
    """Return the columns of one channel of samples; those of pitch are NaN where nobody speaks."""
    sound = resample(samples, rate)
    pitch, spectra = track_pitch(sound), spectra_of(sound)
    loud = spectra["level"] >= np.percentile(spectra["level"], 95) - _LOUD_RANGE
    spectral = [pitch.harmonicity, *(spectra[name] for name in _SPECTRAL[1:])]
    # level in dB of the loud frames, and the range of all
    level = spectra["level"][loud]
    quiet, noisy = np.percentile(spectra["level"], [5, 95])
    levels = [level.mean(), level.std(), *np.percentile(level, [10, 50, 90]), _slope(np.flatnonzero(loud), level)]
    # mean and standard deviation of each coefficient, and the standard deviation of its change
    cepstrum = spectra["cepstrum"]
    change = np.zeros_like(cepstrum) if len(cepstrum) < 2 else np.gradient(cepstrum, axis=0)
    cepstral = np.stack([cepstrum[loud].mean(axis=0), cepstrum[loud].std(axis=0), change[loud].std(axis=0)], axis=1)
    values = [
        len(samples) / rate, bandwidth_of(samples, rate), *_pitch_columns(pitch, loud),
        float(pitch.has_voice[loud].mean()), *levels, noisy - quiet,
        *(number for column in spectral for number in (column[loud].mean(), column[loud].std())),
        *_rhythm_columns(spectra["level"], pitch, loud, len(samples) / rate),
        *cepstral.ravel(),
    ]  # fmt: skip
    return np.array(values, np.float64)


def _pitch_columns(pitch: Pitch, loud: Bools) -> list[float]:
    """Pitch in semitones over 100 Hz, of the loud voiced frames."""
    voiced = np.flatnonzero(pitch.has_voice & loud)
    if not len(voiced):
        return [float("nan")] * sum(name.startswith("pitch_") for name in COLUMNS)
    tone = 12 * np.log2(pitch.frequency[voiced] / 100)
    low, middle, high = np.percentile(tone, [10, 50, 90])
    steps = np.abs(np.diff(tone))[np.diff(voiced) == 1]
    change = float(steps.mean()) if len(steps) else 0.0
    return [tone.mean(), tone.std(), low, middle, high, high - low, _slope(voiced, tone), change]


def _slope(frames: Any, values: Floats) -> float:
    """Least-squares change per second, 0 of a single frame."""
    time = (frames - frames.mean()) * _SECONDS_PER_FRAME
    spread = float(time @ time)
    return float(time @ values) / spread if spread > 0 else 0.0


def _rhythm_columns(level: Floats, pitch: Pitch, loud: Bools, seconds: float) -> list[float]:
    """Syllables per second, in all and while speaking; pauses per second and their share of the time."""
    from scipy.signal import find_peaks

    smooth = np.convolve(np.pad(level, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    peaks, _ = find_peaks(smooth, prominence=_SYLLABLE_DIP, distance=_SYLLABLE_FRAMES)
    n_syllables = int((pitch.has_voice & loud)[peaks].sum())
    gaps = np.diff(np.flatnonzero(loud)) - 1  # frames that are not loud, between loud ones
    pauses = gaps[gaps >= _PAUSE_FRAMES]
    paused = float(pauses.sum()) * _SECONDS_PER_FRAME
    speaking = max(seconds - paused, _SECONDS_PER_FRAME)
    return [n_syllables / seconds, n_syllables / speaking, len(pauses) / seconds, paused / seconds]
