"""Segment measure: how many regions a picture falls into, over several scales [Bravo08]_."""

from __future__ import annotations

import numpy as np

from .colours import Picture

_SCALES = (60, 180, 540)
_SIGMA, _MIN_REGION_PIXELS = 0.8, 20
_EXPONENT = 1.32
"""Numbers of regions fall with the scale by about this power, whatever the picture."""


def region_counts(picture: Picture) -> list[int]:
    """Return the number of regions at each scale."""
    from skimage.segmentation import felzenszwalb

    scaled = picture / 255
    return [
        int(felzenszwalb(scaled, scale=scale, sigma=_SIGMA, min_size=_MIN_REGION_PIXELS).max()) + 1 for scale in _SCALES
    ]


def segment_measure(picture: Picture) -> float:
    """Return the logarithm of the number of regions at scale 1, larger is more cluttered; as if it fell by that power.

    Examples
    --------
    >>> blank = np.full((96, 128, 3), 200, np.uint8)
    >>> round(segment_measure(blank), 4) == round(float(1.32 * np.mean(np.log([60, 180, 540]))), 4)
    True
    """
    return float(np.mean(np.log(region_counts(picture)) + _EXPONENT * np.log(_SCALES)))
