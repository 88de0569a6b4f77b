"""Recordings in files: one channel of numbers, read only after the header was looked at."""

from __future__ import annotations

import re
from math import gcd
from typing import Any

import numpy as np

from ...data.files import plain
from ...errors import MissingExtraError
from ...protocols import Floats
from ..raw_items import ItemError, RawItem

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


def expect_soundfile() -> None:
    """Refuse to go on without the package that reads recordings."""
    try:
        import soundfile  # noqa: F401
    except (ImportError, OSError):
        raise MissingExtraError("recordings are read by the package soundfile; install crowdrank[speech]") from None


def read_recording(raw: RawItem) -> tuple[Floats, int]:
    """Return the mean of a recording's channels, and its samples per second."""
    import soundfile

    assert raw.path is not None
    if raw.path.suffix.lower() in _NOT_READ:
        raise ItemError(f"{raw.path.suffix.lower()} is not read; convert it to wav or flac")
    try:
        raw.expect_file()
        with soundfile.SoundFile(str(raw.path)) as file:
            _check_header(file)
            most = int(MAX_SECONDS * file.samplerate)
            samples = file.read(most, dtype="float64", always_2d=True)
            rate = int(file.samplerate)
            _expect_whole(file, len(samples))
    except FileNotFoundError:
        raise ItemError("there is no such file") from None
    except (soundfile.SoundFileError, OSError, ValueError, MemoryError) as error:
        raise ItemError(_reason(raw, error)) from None
    if len(samples) < MIN_SECONDS * rate:
        raise ItemError(f"{len(samples) / rate:.3f} s of sound; at least {MIN_SECONDS:g} s are needed")
    if not np.isfinite(samples).all():
        raise ItemError("it holds samples that are not numbers")
    return samples.mean(axis=1), rate


def _check_header(file: Any) -> None:
    """Refuse what is too long, too large or of an impossible rate before any of it is decoded."""
    if not _MIN_RATE <= file.samplerate <= _MAX_RATE:
        raise ItemError(f"{file.samplerate:,} samples per second; {_MIN_RATE:,} to {_MAX_RATE:,} are read")
    if file.frames > MAX_SECONDS * file.samplerate:
        raise ItemError(f"{file.frames / file.samplerate:,.0f} s long; at most {MAX_SECONDS:g} s are read")
    if file.frames * file.channels * 8 > _MAX_DECODED_BYTES:
        raise ItemError(f"more than {_MAX_DECODED_BYTES // 10**9} GB when decoded")


def _expect_whole(file: Any, n_read: int) -> None:
    """Refuse a recording that ends before its header says."""
    n_frames = int(file.frames)
    said = _CUT_OFF.search(file.extra_info)
    if said is not None and 0 < int(said[2]) < int(said[1]) < _MIN_UNKNOWN_BYTES:
        n_frames = round(n_read * int(said[1]) / int(said[2]))
    if n_frames - n_read > _MAX_LOST_SECONDS * file.samplerate:
        there, stated = (f"{n / file.samplerate:.2f} s" for n in (n_read, n_frames))
        raise ItemError(f"cut off: {there} of the {stated} that its header says; copy it again from its source")


def _reason(raw: RawItem, error: Exception) -> str:
    """Why a file could not be read, as a clause."""
    if raw.path is not None and not raw.path.exists():
        return "there is no such file"
    if raw.path is not None and raw.path.is_file() and raw.path.stat().st_size == 0:
        return "the file is empty"
    said = plain(str(error).split(":")[-1].strip().rstrip("."))[:80]
    return f"no audio that can be read ({said.lower() or 'unknown format'})"


def resample(samples: Floats, rate: int) -> Floats:
    """Return samples at 16 kHz."""
    from scipy.signal import resample_poly

    if rate == RATE:
        return samples
    common = gcd(rate, RATE)
    resampled: Floats = resample_poly(samples, RATE // common, rate // common)
    return resampled
