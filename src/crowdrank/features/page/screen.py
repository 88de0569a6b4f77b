"""Numbers of a page as a browser shows it: counts, two numbers of the screenshot, and three measures of clutter."""

from __future__ import annotations

import io
import math

import numpy as np

from ...protocols import Floats
from ..raw_items import ItemError
from .colours import Picture
from .feature_congestion import feature_congestion
from .rendering import Rendered
from .segments import segment_measure
from .source import SCREEN_HEIGHT, SCREEN_WIDTH
from .subband_entropy import subband_entropy

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
    pixels = columns @ pixels
    picture: Picture = np.rint(pixels).astype(np.uint8)
    return picture


def _areas(size: int, smaller: int) -> Floats:
    """Weights that average a row of pixels over equal stretches, (smaller, size)."""
    edges = np.linspace(0, size, smaller + 1)
    pixel = np.arange(size)
    inside = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    weights: Floats = np.maximum(inside, 0.0) * smaller / size
    return weights


def screen_numbers(picture: Picture) -> list[float]:
    """Return the share of pixels at an edge, and the logarithm of the number of colours at 3 bits a channel."""
    grey = picture @ _GREY
    down, across = np.gradient(grey)
    coarse = (picture >> 5).astype(np.int64) @ np.array([64, 8, 1])
    return [float((np.hypot(down, across) > _EDGE_GRADIENT).mean()), math.log1p(len(np.unique(coarse)))]


def counted_columns(rendered: Rendered, place: str) -> list[float]:
    """Return the eight columns of the whole page or of its first screen."""
    given = {name.removeprefix(f"{place}_"): value for name, value in rendered.numbers.items()}
    characters = given["characters"]
    height = rendered.numbers["height"] if place == "whole" else min(rendered.numbers["height"], SCREEN_HEIGHT)
    return [
        math.log1p(given["texts"]), math.log1p(given["links"]), math.log1p(given["fonts"]),
        given["sizes"] / characters if characters else math.nan, math.log1p(given["tables"]),
        math.log1p(given["colours"]), math.log1p(given["images"]), max(height, SCREEN_HEIGHT) / SCREEN_WIDTH,
    ]  # fmt: skip


def clutter_measures(picture: Picture) -> list[float]:
    """Return feature congestion, subband entropy and segment measure of a reduced screenshot."""
    return [feature_congestion(picture), subband_entropy(picture), segment_measure(picture)]
