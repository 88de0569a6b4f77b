"""Measures of clutter against values of visual-clutter 1.0.7, stored here, on pictures that are drawn here.

They were made with numpy 2, scipy 1.17, scikit-image 0.26, opencv-python-headless and pyrtools 1.1.1 by
``Vlc(picture, numlevels=3, contrast_filt_sigma=1, contrast_pool_sigma=3, color_pool_sigma=3)``, ``getClutter_FC(p=1)``
and ``getClutter_SE()``.
"""

import numpy as np
import pytest

from crowdrank.features.page_clutter import feature_congestion, subband_entropy


def drawings():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:96, :128]
    noise = rng.integers(0, 256, (96, 128, 3)).astype(np.uint8)
    waves = [
        127 + 120 * np.sin(x / 17) * np.cos(y / 13),
        127 + 100 * np.cos(x / 29 + y / 31),
        127 + 80 * np.sin((x + y) / 23),
    ]
    boxes = np.full((96, 128, 3), 255, np.uint8)
    for _ in range(12):
        row, column = rng.integers(0, 80), rng.integers(0, 110)
        boxes[row : row + rng.integers(4, 16), column : column + rng.integers(4, 18)] = rng.integers(0, 256, 3)
    return {
        "flat": np.full((96, 128, 3), 200, np.uint8), "noise": noise,
        "smooth": np.stack(waves, -1).round().astype(np.uint8), "boxes": boxes,
    }  # fmt: skip


STORED = {
    "flat": (1.248283156290046, 0.0),
    "noise": (19.74106985686189, 3.487549068709533),
    "smooth": (2.254216786101454, 1.7710661227918054),
    "boxes": (5.999047591683979, 1.8271581257465794),
}


@pytest.mark.parametrize("name", STORED)
def test_values_of_the_package(name):
    picture = drawings()[name]
    congestion, entropy = STORED[name]
    assert feature_congestion(picture) == pytest.approx(congestion, rel=1e-6)
    assert subband_entropy(picture) == pytest.approx(entropy, rel=1e-5)


def test_rounding_has_no_entropy():
    stripes = np.zeros((96, 128, 3), np.uint8)
    stripes[:, ::8] = 255
    noisy = stripes.copy()
    noisy[::5, ::7] = 100
    assert 0 < subband_entropy(stripes) < subband_entropy(noisy)


def test_more_squares_are_more_segments():
    segments = pytest.importorskip("crowdrank.features.page_clutter")
    pytest.importorskip("skimage")
    found = []
    for n_squares in (1, 4, 9, 16):
        picture, side = np.full((96, 128, 3), 255, np.uint8), int(np.sqrt(n_squares))
        for number in range(n_squares):
            row, column = 4 + 23 * (number // side), 4 + 30 * (number % side)
            picture[row : row + 14, column : column + 14] = (40 * (number % 5), 30, 200 - 10 * number)
        found.append(segments.segment_measure(picture))
    assert found == sorted(found)
    assert len(set(found)) == 4
