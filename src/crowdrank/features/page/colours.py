"""Colours and pyramids that the measures of clutter start from."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ...protocols import Floats

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
        smooth = ndimage.convolve1d(levels[-1], _BINOMIAL, axis=1, mode="mirror")[:, ::2]
        levels.append(ndimage.convolve1d(smooth, _BINOMIAL, axis=0, mode="mirror")[::2])
    return levels


def gaussian(half: int, sigma: float, centre: float = 0.0) -> Floats:
    """Return a Gaussian kernel of 2 half + 1 weights that sum to 1."""
    kernel = np.exp(-((np.arange(-half, half + 1) - centre) ** 2) / (2 * sigma**2))
    weights: Floats = kernel / kernel.sum()
    return weights


def pool_pixels(values: Floats, kernel: Floats) -> Floats:
    """Return weighted means about each pixel, both ways, of what lies within the picture."""
    means = values
    for axis in (1, 0):
        inside = ndimage.convolve1d(np.ones(means.shape[axis]), kernel, mode="constant")
        share = inside[None, :] if axis == 1 else inside[:, None]
        means = kernel.sum() * ndimage.convolve1d(means, kernel, axis=axis, mode="constant") / share
    return means
