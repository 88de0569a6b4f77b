"""Feature congestion: how much colour, contrast and orientation vary locally [Rosenholtz07]_.

Written from the paper; the constants are those of the package visual-clutter 1.0.7 (MIT), whose values it gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy import ndimage

from ...protocols import Floats
from .colours import Picture, gaussian, gaussian_pyramid, lab_channels, pool_pixels

_COLOUR_WEIGHT, _CONTRAST_WEIGHT, _ORIENTATION_WEIGHT = 1 / 0.2088, 1 / 0.0660, 1 / 0.0269
_COLOUR_NOISE = (0.0007**2, 0.1**2, 0.05**2)
_COLOUR_POOL, _CONTRAST_POOL = gaussian(6, 3.0), gaussian(6, 3.0)
_CENTRE, _SURROUND = gaussian(3, 0.71), gaussian(3, 1.14)
_ORIENTED_SIGMA, _ORIENTED_HALF = 2.0, 6
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
    volume: Floats = np.maximum(determinant, 0.0) ** (1 / 6)
    return volume


def _contrast(lightness: Floats) -> Floats:
    """Local standard deviation of contrast, which is the difference of two Gaussians."""
    inner, outer = (_smooth_mirrored(lightness, kernel) for kernel in (_CENTRE, _SURROUND))
    contrast = np.abs(inner - outer)
    mean, square = pool_pixels(contrast, _CONTRAST_POOL), pool_pixels(contrast**2, _CONTRAST_POOL)
    deviation: Floats = np.sqrt(np.abs(square - mean**2))
    return deviation


def _orientation(lightness: Floats) -> Floats:
    """Area of the local distribution of orientations, given as cosine and sine of twice the angle."""
    horizontal, vertical, falling, rising = (_energy(response**2) for response in _oriented_responses(lightness))
    total = horizontal + vertical + falling + rising + _ENERGY_NOISE
    cosine, sine = (horizontal - vertical) / total, (rising - falling) / total
    mean_cosine, mean_sine = pool_pixels(cosine, _ORIENTATION_POOL), pool_pixels(sine, _ORIENTATION_POOL)
    cc = pool_pixels(cosine**2, _ORIENTATION_POOL) - mean_cosine**2 + _ORIENTATION_NOISE
    cs = pool_pixels(cosine * sine, _ORIENTATION_POOL) - mean_cosine * mean_sine
    ss = pool_pixels(sine**2, _ORIENTATION_POOL) - mean_sine**2 + _ORIENTATION_NOISE
    area: Floats = np.maximum(cc * ss - cs**2, 0.0) ** (1 / 4)
    return area


def _smooth_mirrored(values: Floats, kernel: Floats) -> Floats:
    """Values smoothed both ways, with the picture mirrored at its edges."""
    smooth = values
    for axis in (1, 0):
        smooth = ndimage.convolve1d(smooth, kernel, axis=axis, mode="mirror")
    return smooth


def _energy(energy: Floats) -> Floats:
    """Energy pooled at twice the resolution: expanded, then reduced."""
    height, width = energy.shape
    wide = np.zeros((height, 2 * width))
    wide[:, ::2] = energy
    wide = _within(wide, 1)
    tall = np.zeros((2 * height, 2 * width))
    tall[::2] = wide
    tall = _within(tall, 0)
    narrow = ndimage.convolve1d(tall, _ENERGY_POOL, axis=1, mode="mirror")[:, ::2]
    pooled: Floats = ndimage.convolve1d(narrow, _ENERGY_POOL, axis=0, mode="mirror")[::2]
    return pooled


def _within(values: Floats, axis: int) -> Floats:
    """Twice the weighted mean along an axis of what lies within the picture."""
    kernel = 2 * _ENERGY_POOL
    inside = ndimage.convolve1d(np.ones(values.shape[axis]), kernel, mode="constant")
    share = inside[None, :] if axis == 1 else inside[:, None]
    mean: Floats = 2 * ndimage.convolve1d(values, kernel, axis=axis, mode="constant") / share
    return mean


def _oriented_responses(lightness: Floats) -> Iterator[Floats]:
    """Second derivatives of the smoothed lightness in four directions: horizontal, vertical and both diagonals."""
    across, derivative = _smoothing_kernels()[1], _second_derivative(_smoothing_kernels())
    for axis in (0, 1):
        smooth = ndimage.convolve1d(lightness, across, axis=1 - axis, mode="mirror")
        yield ndimage.convolve1d(smooth, derivative, axis=axis, mode="mirror")
    for kernel in _diagonal_kernels():
        yield ndimage.convolve(lightness, kernel, mode="mirror")


def _smoothing_kernels() -> list[Floats]:
    """Gaussians one standard deviation before, at and behind the middle."""
    return [gaussian(_ORIENTED_HALF, _ORIENTED_SIGMA, shift) for shift in (_ORIENTED_SIGMA, 0.0, -_ORIENTED_SIGMA)]


def _second_derivative(kernels: list[Floats]) -> Floats:
    """The middle one twice, less its neighbours."""
    return -kernels[0] + 2 * kernels[1] - kernels[2]


@cache
def _diagonal_kernels() -> tuple[Floats, Floats]:
    """Second derivatives of a Gaussian along both diagonals."""
    parts = [np.outer(kernel, _smoothing_kernels()[1]) for kernel in _smoothing_kernels()]
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
        rows[i] * columns[j] * padded[first_row + n - 1 + i, first_column + n - 1 + j]
        for i in range(4)
        for j in range(4)
    )
    turned = np.clip(interpolated, scaled.min(), scaled.max()) * spread + low
    weights: Floats = turned / turned.sum()
    return weights


def _cubic(share: Floats) -> tuple[Floats, ...]:
    """Weights of four neighbours, of which the middle two enclose the point (Catmull and Rom)."""
    t = share
    return (
        0.5 * (-t + 2 * t**2 - t**3), 0.5 * (2 - 5 * t**2 + 3 * t**3),
        0.5 * (t + 4 * t**2 - 3 * t**3), 0.5 * (-(t**2) + t**3),
    )  # fmt: skip


def _largest(levels: list[Floats]) -> Floats:
    """The largest value over scales at each pixel, smaller scales expanded by a kernel that sums to 1."""
    largest = levels[0].copy()
    for scale, level in enumerate(levels[1:], 1):
        for _ in range(scale):
            level = _expand(level)
        height, width = (min(sizes) for sizes in zip(largest.shape, level.shape, strict=True))
        np.maximum(largest[:height, :width], level[:height, :width], out=largest[:height, :width])
    return largest


def _expand(values: Floats) -> Floats:
    """Values at twice the width and height."""
    height, width = values.shape
    wide = np.zeros((2 * height, 2 * width))
    wide[::2, ::2] = values
    for axis in (1, 0):
        wide = ndimage.convolve1d(wide, _UPSAMPLE, axis=axis, mode="mirror")
    return wide
