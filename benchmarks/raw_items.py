"""Features of raw items on one core: style and words of texts, speech, pages from source, measures of clutter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .workload import Call, Floor, Measured, Size, Workload

WORDS = (
    "tea",
    "coffee",
    "water",
    "because",
    "never",
    "you",
    "I",
    "weather",
    "convincing",
    "argument",
    "therefore",
    "it",
)


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    texts = []
    for number in range(size["n_texts"]):
        sentences = [
            " ".join(rng.choice(WORDS, rng.integers(4, 16))) + ", and so on. " for _ in range(rng.integers(2, 6))
        ]
        texts.append("".join(sentences) + (f"- {number}\n" if number % 7 == 0 else ""))
    (folder / "texts.json").write_text(json.dumps(texts))
    time = np.arange(16_000 * size["n_seconds"]) / 16_000
    pitch = 150 + 50 * np.sin(2 * np.pi * 0.7 * time)
    voice = np.sin(2 * np.pi * np.cumsum(pitch) / 16_000) * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * time))
    np.save(folder / "voice.npy", 0.3 * voice + rng.normal(size=len(time)) * 0.003)
    rules = "".join(
        f".c{number} {{ font-size: {8 + number % 20}px; background: #{number:06x} }}\n" for number in range(600)
    )
    for number in range(size["n_pages"]):
        site = folder / "sites" / f"s{number}"
        site.mkdir(parents=True)
        (site / "style.css").write_text(rules)
        boxes = "".join(
            f"<div class='c{rng.integers(0, 900)}'><a href='x'>{rng.choice(WORDS)}</a> {rng.choice(WORDS)}</div>"
            for _ in range(150)
        )
        (site / "index.html").write_text(f"<link rel='stylesheet' href='style.css'><body>{boxes}</body>")
    np.save(folder / "pictures.npy", rng.integers(0, 256, (size["n_pictures"], 288, 384, 3)).astype(np.uint8))


def _style(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.features.style import style_columns, style_counts

    texts = json.loads((folder / "texts.json").read_text())
    return lambda: [style_columns(style_counts(text)) for text in texts]


def _words(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.features.text_features import WordColumns

    texts = json.loads((folder / "texts.json").read_text())

    def fit() -> Any:
        columns = WordColumns.fit(texts, 5)
        return None if columns is None else columns.columns_of(texts)

    return fit


def _speech(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    from crowdrank.features.speech_features import speech_columns
    from crowdrank.kernels.threads import one_blas_thread

    voice = np.load(folder / "voice.npy")

    def measure() -> Any:
        with one_blas_thread():
            return speech_columns(voice, 16_000)

    return measure


def _pages(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.features.page_source import count_source
    from crowdrank.features.raw_items import read_raw_items

    raws = read_raw_items(folder / "sites", "page").raw
    return lambda: [count_source(raw).columns() for raw in raws]


def _clutter(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    from crowdrank.features.page_clutter import feature_congestion, subband_entropy

    pictures = np.load(folder / "pictures.npy")
    return lambda: [(feature_congestion(picture), subband_entropy(picture)) for picture in pictures]


def _megabytes(result: Any, folder: Path) -> float:
    return sum(len(text.encode()) for text in json.loads((folder / "texts.json").read_text())) / 1e6


def _seconds(result: Any, folder: Path) -> float:
    return float(result[0])


def _number(result: Any, folder: Path) -> float:
    return float(len(result))


def _per_second(side: str, limit: float) -> Floor:
    """At least so many megabytes in a second of a core."""

    def value(sides: Mapping[str, Measured]) -> float:
        return (sides[side].figure or 0.0) / sides[side].cpu

    return Floor(f"{side}, megabytes in a second", value, limit, True, "MB/s", (side,))


def _each(side: str, what: str, limit: float) -> Floor:
    """At most so many milliseconds of a core for each."""

    def value(sides: Mapping[str, Measured]) -> float:
        return 1000 * sides[side].cpu / (sides[side].figure or 1.0)

    return Floor(f"{side}, milliseconds per {what}", value, limit, False, "ms", (side,))


WORKLOAD = Workload(
    name="raw_items",
    what="{n_texts:,} texts, {n_seconds} s of speech, {n_pages} pages in source, {n_pictures} screenshots",
    sizes={
        "tiny": {"n_texts": 50, "n_seconds": 2, "n_pages": 2, "n_pictures": 1},
        "small": {"n_texts": 2_000, "n_seconds": 20, "n_pages": 20, "n_pictures": 2},
        "full": {"n_texts": 10_000, "n_seconds": 60, "n_pages": 60, "n_pictures": 5},
    },
    prepare=_prepare,
    sides={
        "style": Call("36 columns of style", _style, _megabytes),
        "words": Call("columns of words, fitted and made", _words, _megabytes),
        "speech": Call("75 columns of speech", _speech, _seconds),
        "pages": Call("eight columns of pages from source", _pages, _number),
        "clutter": Call("feature congestion and subband entropy", _clutter, _number),
    },
    floors=(
        _per_second("style", 1.0),
        _per_second("words", 2.0),
        _each("speech", "second", 20.0),
        _each("pages", "page", 20.0),
        _each("clutter", "screenshot", 800.0),
    ),
    figure="megabytes, seconds, pages or screenshots done",
    needs=("selectolax",),
)
