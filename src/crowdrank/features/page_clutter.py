"""Colours and pyramids that the measures of clutter start from."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from ..protocols import Floats
from .page_rendering import Rendered
from .page_source import SCREEN_HEIGHT, SCREEN_WIDTH, eight_columns
from .raw_items import ItemError

Picture: TypeAlias = NDArray[np.uint8]
"""Height x width x 3, red, green and blue."""

N_LEVELS = 3

_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = np.array([95.047, 100.0, 108.833])
"""For XYZ of 0 to 100; they divide XYZ of 0 to 1, since the weights of the measures belong to that scale."""

_BINOMIAL = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16 * np.sqrt(2)
"""The values of a level are twice those of the level before, as in the pyramids the measures were tuned with."""


def lab_channels(picture: Picture) -> tuple[Floats, ...]:
    """Return lightness and two opponent colours, rounded to 32 bits."""
    rgb = picture.astype(np.float32) / 255
    linear = np.where(rgb >= 0.04045, ((rgb + np.float32(0.055)) / np.float32(1.055)) ** np.float32(2.4), rgb / 12.92)
    xyz = linear.astype(np.float32) @ _TO_XYZ.T / _WHITE
    cubic = np.where(xyz >= 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = (116 * cubic[..., 1] - 16, 500 * (cubic[..., 0] - cubic[..., 1]), 200 * (cubic[..., 1] - cubic[..., 2]))
    return tuple(channel.astype(np.float32).astype(np.float64) for channel in lab)


def gaussian_pyramid(channel: Floats) -> list[Floats]:
    """Return a channel at three scales, each half as wide and high as the one before."""
    levels = [channel]
    for _ in range(1, N_LEVELS):
        levels.append(_halve(levels[-1], _BINOMIAL))
    return levels


def _halve(values: Floats, kernel: Floats) -> Floats:
    """Values smoothed both ways, at half the width and height."""
    narrow = ndimage.convolve1d(values, kernel, axis=1, mode="mirror")[:, ::2]
    return ndimage.convolve1d(narrow, kernel, axis=0, mode="mirror")[::2]


def gaussian(half: int, sigma: float, centre: float = 0.0) -> Floats:
    """Return a Gaussian kernel of 2 half + 1 weights that sum to 1."""
    kernel = np.exp(-((np.arange(-half, half + 1) - centre) ** 2) / (2 * sigma**2))
    return kernel / kernel.sum()


def pool_pixels(values: Floats, kernel: Floats) -> Floats:
    """Return weighted means about each pixel, both ways, of what lies within the picture."""
    for axis in (1, 0):
        values = _pool_axis(values, kernel, axis, kernel.sum())
    return values


def _pool_axis(values: Floats, kernel: Floats, axis: int, scale: float) -> Floats:
    """Sums along an axis of what lies within the picture, over the share of the kernel that does, times a scale."""
    inside = ndimage.convolve1d(np.ones(values.shape[axis]), kernel, mode="constant")
    share = inside[None, :] if axis == 1 else inside[:, None]
    return scale * ndimage.convolve1d(values, kernel, axis=axis, mode="constant") / share


_COLOUR_WEIGHT, _CONTRAST_WEIGHT, _ORIENTATION_WEIGHT = 1 / 0.2088, 1 / 0.0660, 1 / 0.0269
_COLOUR_NOISE = (0.0007**2, 0.1**2, 0.05**2)
_COLOUR_POOL, _CONTRAST_POOL = gaussian(6, 3.0), gaussian(6, 3.0)
_CENTRE, _SURROUND = gaussian(3, 0.71), gaussian(3, 1.14)
# one standard deviation before, at and behind the middle
_ORIENTED = [gaussian(6, 2.0, shift) for shift in (2.0, 0.0, -2.0)]
_ENERGY_POOL, _ENERGY_NOISE = gaussian(4, 1.75), 1.0
_ORIENTATION_POOL, _ORIENTATION_NOISE = gaussian(28, 14.0), 0.001
_UPSAMPLE = np.array([0.05, 0.25, 0.4, 0.25, 0.05])


def feature_congestion(picture: Picture) -> float:
    """Return the mean congestion of a picture of three channels, larger is more cluttered.

    Examples
    --------
    >>> round(feature_congestion(np.full((96, 128, 3), 200, np.uint8)), 4)
    1.2483
    """
    levels = [gaussian_pyramid(channel) for channel in lab_channels(picture)]
    lightness = levels[0]
    total = _COLOUR_WEIGHT * _largest([_colour(*scale) for scale in zip(*levels, strict=True)])
    total += _CONTRAST_WEIGHT * _largest([_contrast(scale) for scale in lightness])
    total += _ORIENTATION_WEIGHT * _largest([_orientation(scale) for scale in lightness])
    return float(total.mean())


def _colour(*channels: Floats) -> Floats:
    """Volume of the local distribution of colours: the sixth root of the determinant of their covariance."""
    means = [pool_pixels(channel, _COLOUR_POOL) for channel in channels]

    def covariance(i: int, j: int) -> Floats:
        product = pool_pixels(channels[i] * channels[j], _COLOUR_POOL) - means[i] * means[j]
        return product + (_COLOUR_NOISE[i] if i == j else 0.0)

    ll, la, lb = covariance(0, 0), covariance(0, 1), covariance(0, 2)
    aa, ab, bb = covariance(1, 1), covariance(1, 2), covariance(2, 2)
    determinant = ll * (aa * bb - ab * ab) - la * (la * bb - ab * lb) + lb * (la * ab - aa * lb)
    return np.maximum(determinant, 0.0) ** (1 / 6)


def _contrast(lightness: Floats) -> Floats:
    """Local standard deviation of contrast, which is the difference of two Gaussians."""
    contrast = np.abs(_smooth_mirrored(lightness, _CENTRE) - _smooth_mirrored(lightness, _SURROUND))
    mean, square = pool_pixels(contrast, _CONTRAST_POOL), pool_pixels(contrast**2, _CONTRAST_POOL)
    return np.sqrt(np.abs(square - mean**2))


def _orientation(lightness: Floats) -> Floats:
    """Area of the local distribution of orientations, given as cosine and sine of twice the angle."""
    horizontal, vertical, falling, rising = (_energy(response**2) for response in _oriented_responses(lightness))
    total = horizontal + vertical + falling + rising + _ENERGY_NOISE
    cosine, sine = (horizontal - vertical) / total, (rising - falling) / total
    mean_cosine, mean_sine = pool_pixels(cosine, _ORIENTATION_POOL), pool_pixels(sine, _ORIENTATION_POOL)
    cc = pool_pixels(cosine**2, _ORIENTATION_POOL) - mean_cosine**2 + _ORIENTATION_NOISE
    cs = pool_pixels(cosine * sine, _ORIENTATION_POOL) - mean_cosine * mean_sine
    ss = pool_pixels(sine**2, _ORIENTATION_POOL) - mean_sine**2 + _ORIENTATION_NOISE
    return np.maximum(cc * ss - cs**2, 0.0) ** (1 / 4)


def _smooth_mirrored(values: Floats, kernel: Floats) -> Floats:
    """Values smoothed both ways, with the picture mirrored at its edges."""
    for axis in (1, 0):
        values = ndimage.convolve1d(values, kernel, axis=axis, mode="mirror")
    return values


def _energy(energy: Floats) -> Floats:
    """Energy pooled at twice the resolution: expanded, then reduced."""
    height, width = energy.shape
    wide, tall = np.zeros((height, 2 * width)), np.zeros((2 * height, 2 * width))
    wide[:, ::2] = energy
    tall[::2] = _pool_axis(wide, 2 * _ENERGY_POOL, 1, 2)
    return _halve(_pool_axis(tall, 2 * _ENERGY_POOL, 0, 2), _ENERGY_POOL)


def _oriented_responses(lightness: Floats) -> Iterator[Floats]:
    """Second derivatives of the smoothed lightness in four directions: horizontal, vertical and both diagonals."""
    for axis in (0, 1):
        smooth = ndimage.convolve1d(lightness, _ORIENTED[1], axis=1 - axis, mode="mirror")
        yield ndimage.convolve1d(smooth, _second_derivative(_ORIENTED), axis=axis, mode="mirror")
    for kernel in _diagonal_kernels():
        yield ndimage.convolve(lightness, kernel, mode="mirror")


def _second_derivative(kernels: list[Floats]) -> Floats:
    """The middle one twice, less its neighbours."""
    return -kernels[0] + 2 * kernels[1] - kernels[2]


@cache
def _diagonal_kernels() -> tuple[Floats, Floats]:
    """Second derivatives of a Gaussian along both diagonals."""
    parts = [np.outer(kernel, _ORIENTED[1]) for kernel in _ORIENTED]
    falling, rising = (_second_derivative([_turn_kernel(part, degrees) for part in parts]) for degrees in (-45.0, 45.0))
    return falling, rising


def _turn_kernel(kernel: Floats, degrees: float) -> Floats:
    """A kernel turned about its middle by cubic interpolation, with weights that sum to 1."""
    low, spread = kernel.min(), kernel.max() - kernel.min()
    scaled = (kernel - low) / spread
    n, angle = len(kernel), np.deg2rad(degrees)
    middle = (n - 1) / 2
    row, column = np.mgrid[:n, :n] - middle
    source_column = np.cos(angle) * column - np.sin(angle) * row + middle
    source_row = np.sin(angle) * column + np.cos(angle) * row + middle
    padded = np.pad(scaled, n)
    first_row, first_column = np.floor(source_row).astype(int), np.floor(source_column).astype(int)
    rows, columns = _cubic(source_row - first_row), _cubic(source_column - first_column)
    interpolated = sum(
        rows[i] * columns[j] * padded[first_row + n - 1 + i, first_column + n - 1 + j] for i, j in np.ndindex(4, 4)
    )
    turned = np.clip(interpolated, scaled.min(), scaled.max()) * spread + low
    return turned / turned.sum()


def _cubic(share: Floats) -> tuple[Floats, ...]:
    """Weights of four neighbours, of which the middle two enclose the point (Catmull and Rom)."""
    t = share
    first, last = 0.5 * (-t + 2 * t**2 - t**3), 0.5 * (-(t**2) + t**3)
    return first, 0.5 * (2 - 5 * t**2 + 3 * t**3), 0.5 * (t + 4 * t**2 - 3 * t**3), last


def _largest(levels: list[Floats]) -> Floats:
    """The largest value over scales at each pixel, smaller scales expanded by a kernel that sums to 1."""
    largest = levels[0].copy()
    for scale, level in enumerate(levels[1:], 1):
        for _ in range(scale):
            # at twice the width and height
            wide = np.zeros((2 * level.shape[0], 2 * level.shape[1]))
            wide[::2, ::2] = level
            level = _smooth_mirrored(wide, _UPSAMPLE)
        height, width = (min(sizes) for sizes in zip(largest.shape, level.shape, strict=True))
        np.maximum(largest[:height, :width], level[:height, :width], out=largest[:height, :width])
    return largest


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
    total = 0.0
    for channel, weight in zip(lab_channels(picture), (1.0, _CHROMA_WEIGHT, _CHROMA_WEIGHT), strict=True):
        if weight == 1.0 or channel.max() - channel.min() >= _MIN_CHROMA_RANGE:
            total += weight * float(np.mean([_entropy(band) for band in _bands(channel)]))
    return total / (1 + 2 * _CHROMA_WEIGHT)


def _entropy(band: Floats) -> float:
    """Entropy of a band's values in as many equal parts as the root of their number, the largest value apart."""
    low, high = float(band.min()), float(band.max())
    if high - low < _MIN_BAND_RANGE:
        return 0.0
    n_parts = math.ceil(math.sqrt(band.size)) - 1
    counts = np.bincount(np.searchsorted(np.linspace(low, high, n_parts + 1), band.ravel(), side="right"))
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
    # direction of each frequency, and the logarithm of its distance from 0 relative to half the sampling rate
    x, y = np.meshgrid(np.linspace(-1, 1, width + 1)[:-1], np.linspace(-1, 1, height + 1)[:-1])
    distance, row, column = np.hypot(x, y), height // 2, width // 2
    distance[row, column] = distance[row, column - 1]
    angle, octave = np.arctan2(y, x), np.log2(distance)
    high, low, levels = np.cos(_slope(octave, 0)), np.sin(_slope(octave, 0)), []
    scale = math.sqrt(2.0**6 * 36 / (_N_ORIENTATIONS * math.factorial(6)))
    for level in range(1, _N_LEVELS + 1):
        ring = scale * np.cos(_slope(octave, level))
        oriented = [ring * np.cos(angle - np.pi * k / _N_ORIENTATIONS) ** 3 for k in range(_N_ORIENTATIONS)]
        rows, columns = _middle(octave.shape[0]), _middle(octave.shape[1])
        angle, octave = angle[rows, columns], octave[rows, columns]
        levels.append((oriented, np.sin(_slope(octave, level))))
    return high, low, levels


def _slope(octave: Floats, level: int) -> Floats:
    """Angle from a quarter turn, one octave below a level's edge, to 0 above it; its cosine keeps what is above."""
    return np.pi / 2 * np.clip(-level - octave, 0.0, 1.0)


def _middle(size: int) -> slice:
    """The lower half of the frequencies."""
    start = math.ceil((size + 0.5) / 2) - math.ceil((math.ceil((size - 0.5) / 2) + 0.5) / 2)
    return slice(start, start + math.ceil((size - 0.5) / 2))


def _inverse(spectrum: NDArray[np.complex128]) -> Floats:
    """Values from their spectrum."""
    return np.real(fft.ifft2(fft.ifftshift(spectrum)))


_SCALES = (60, 180, 540)
_SIGMA, _MIN_REGION_PIXELS = 0.8, 20
_EXPONENT = 1.32
"""Numbers of regions fall with the scale by about this power, whatever the picture."""


def segment_measure(picture: Picture) -> float:
    """Return the logarithm of the number of regions at scale 1, larger is more cluttered; as if it fell by that power.

    Examples
    --------
    >>> blank = np.full((96, 128, 3), 200, np.uint8)
    >>> round(segment_measure(blank), 4) == round(float(1.32 * np.mean(np.log([60, 180, 540]))), 4)
    True
    """
    from skimage.segmentation import felzenszwalb

    how = {"sigma": _SIGMA, "min_size": _MIN_REGION_PIXELS}
    n_regions = [int(felzenszwalb(picture / 255, scale=scale, **how).max()) + 1 for scale in _SCALES]
    return float(np.mean(np.log(n_regions) + _EXPONENT * np.log(_SCALES)))


WIDTH, HEIGHT = 384, 288
"""Size that every screenshot is reduced to: all three measures depend on it."""

MEASURES = ("feature_congestion", "subband_entropy", "segment_measure")
_EDGE_GRADIENT = 20.0
_GREY = np.array([0.299, 0.587, 0.114])


def reduced_screen(png: bytes) -> Picture:
    """Return a screenshot reduced by averaging over areas."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(png)) as opened:
            screen = np.asarray(opened.convert("RGB"), np.float64)
    except (OSError, ValueError):
        raise ItemError("its screenshot cannot be read") from None
    if screen.shape[:2] != (SCREEN_HEIGHT, SCREEN_WIDTH):
        raise ItemError("its screenshot is of another size")
    rows, columns = _areas(SCREEN_HEIGHT, HEIGHT), _areas(SCREEN_WIDTH, WIDTH)
    pixels = (rows @ screen.reshape(SCREEN_HEIGHT, -1)).reshape(HEIGHT, SCREEN_WIDTH, 3)
    return np.rint(columns @ pixels).astype(np.uint8)


def _areas(size: int, smaller: int) -> Floats:
    """Weights that average a row of pixels over equal stretches, (smaller, size)."""
    edges = np.linspace(0, size, smaller + 1)
    pixel = np.arange(size)
    inside = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return np.maximum(inside, 0.0) * smaller / size


def screen_numbers(picture: Picture) -> list[float]:
    """Return the share of pixels at an edge, and the logarithm of the number of colours at 3 bits a channel."""
    down, across = np.gradient(picture @ _GREY)
    coarse = (picture >> 5).astype(np.int64) @ np.array([64, 8, 1])
    return [float((np.hypot(down, across) > _EDGE_GRADIENT).mean()), math.log1p(len(np.unique(coarse)))]


def counted_columns(rendered: Rendered, place: str) -> list[float]:
    """Return the eight columns of the whole page or of its first screen."""
    given = {name.removeprefix(f"{place}_"): value for name, value in rendered.numbers.items()}
    height = rendered.numbers["height"] if place == "whole" else min(rendered.numbers["height"], SCREEN_HEIGHT)
    return eight_columns(given | {"height": max(height, SCREEN_HEIGHT)})
