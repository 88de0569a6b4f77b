"""Subband entropy: how many bits a picture would take, band by band of a steerable pyramid [Rosenholtz07]_.

Written from the paper; the constants are those of the package visual-clutter 1.0.7 (MIT).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ...protocols import Floats
from .colours import Picture, lab_channels

_N_LEVELS, _N_ORIENTATIONS = 3, 4
_CHROMA_WEIGHT = 0.0625
_MIN_CHROMA_RANGE = 0.008
_MIN_BAND_RANGE = 1e-9
"""A band narrower than that holds nothing but rounding."""


def subband_entropy(picture: Picture) -> float:
    """Return the mean entropy of the bands of a picture, in nats; larger is more cluttered.

    Examples
    --------
    >>> subband_entropy(np.full((96, 128, 3), 200, np.uint8))
    0.0
    """
    lightness, *chroma = lab_channels(picture)
    total = _mean_entropy(lightness)
    for channel in chroma:
        if channel.max() - channel.min() >= _MIN_CHROMA_RANGE:
            total += _CHROMA_WEIGHT * _mean_entropy(channel)
    return total / (1 + 2 * _CHROMA_WEIGHT)


def _mean_entropy(channel: Floats) -> float:
    """Mean entropy of the bands of a channel."""
    return float(np.mean([_entropy(band) for band in _bands(channel)]))


def _entropy(band: Floats) -> float:
    """Entropy of a band's values in as many equal parts as the root of their number, the largest value apart."""
    low, high = float(band.min()), float(band.max())
    if high - low < _MIN_BAND_RANGE:
        return 0.0
    n_parts = math.ceil(math.sqrt(band.size)) - 1
    edges = np.linspace(low, high, n_parts + 1)
    counts = np.bincount(np.searchsorted(edges, band.ravel(), side="right"))
    share = counts[counts > 0] / band.size
    return float(-(share * np.log(share)).sum())


def _bands(channel: Floats) -> list[Floats]:
    """The bands of a steerable pyramid: a high-pass rest, four orientations at three scales, and a low-pass rest."""
    high, low, levels = _filters(*channel.shape)
    spectrum = fft.fftshift(fft.fft2(channel))
    bands = [_inverse(spectrum * high)]
    spectrum = spectrum * low
    for oriented, below in levels:
        bands += [_inverse(1j * spectrum * filter) for filter in oriented]
        spectrum = spectrum[_middle(spectrum.shape[0]), _middle(spectrum.shape[1])] * below
    return [*bands, _inverse(spectrum)]


@lru_cache(maxsize=4)
def _filters(height: int, width: int) -> tuple[Floats, Floats, list[tuple[list[Floats], Floats]]]:
    """The filters of the high-pass rest, of what is left, and of each scale its orientations and what is left there."""
    angle, octave = _frequencies(height, width)
    high, low, levels = _rising(octave, 0), _falling(octave, 0), []
    scale = math.sqrt(2.0**6 * 36 / (_N_ORIENTATIONS * math.factorial(6)))
    for level in range(1, _N_LEVELS + 1):
        ring = scale * _rising(octave, level)
        oriented = [ring * np.cos(angle - np.pi * k / _N_ORIENTATIONS) ** 3 for k in range(_N_ORIENTATIONS)]
        rows, columns = _middle(octave.shape[0]), _middle(octave.shape[1])
        angle, octave = angle[rows, columns], octave[rows, columns]
        levels.append((oriented, _falling(octave, level)))
    return high, low, levels


def _frequencies(height: int, width: int) -> tuple[Floats, Floats]:
    """Direction of each frequency, and the logarithm of its distance from 0 relative to half the sampling rate."""
    x, y = np.meshgrid(np.linspace(-1, 1, width + 1)[:-1], np.linspace(-1, 1, height + 1)[:-1])
    distance = np.hypot(x, y)
    row, column = height // 2, width // 2
    distance[row, column] = distance[row, column - 1]
    return np.arctan2(y, x), np.log2(distance)


def _rising(octave: Floats, level: int) -> Floats:
    """Filter that is 0 one octave below a level's edge and 1 above it."""
    response: Floats = np.cos(np.pi / 2 * np.clip(-level - octave, 0.0, 1.0))
    return response


def _falling(octave: Floats, level: int) -> Floats:
    """Filter that is 1 one octave below a level's edge and 0 above it."""
    response: Floats = np.sin(np.pi / 2 * np.clip(-level - octave, 0.0, 1.0))
    return response


def _middle(size: int) -> slice:
    """The lower half of the frequencies."""
    start = math.ceil((size + 0.5) / 2) - math.ceil((math.ceil((size - 0.5) / 2) + 0.5) / 2)
    return slice(start, start + math.ceil((size - 0.5) / 2))


def _inverse(spectrum: NDArray[np.complex128]) -> Floats:
    """Values from their spectrum."""
    values: Floats = np.real(fft.ifft2(fft.ifftshift(spectrum)))
    return values
