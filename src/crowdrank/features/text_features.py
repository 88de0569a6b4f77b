"""Columns of texts: style, words and embeddings."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.features import Extractor
from ..data.files import plain
from ..errors import DataWarning, JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Floats
from ..wording import counted, first_few, of_all, option
from .made import Made
from .raw_items import ItemError, RawItem, RawItems, leave_out
from .style import COLUMNS, MAX_CHARACTERS, plain_text, style_columns, style_counts
from .words import WordColumns
from .work import Measure, Run, measure_rows

VERSION = 1
_TEXTS_PER_CHUNK, _TEXTS_PER_CHUNK_EMBEDDED = 200, 8
_MAX_BYTES = 4 * MAX_CHARACTERS
"""No million characters take more in UTF-8."""


def make(items: RawItems, params: Mapping[str, Any], fitted: Extractor | None, run: Run) -> Made:
    """Return the columns of texts: fitted anew, or as they were ``fitted`` before."""
    if fitted is None:
        n_words = params["words"]
        if isinstance(n_words, bool) or not isinstance(n_words, int) or n_words < 0:
            raise ParameterError(f"{option('words', n_words)} is not a number of columns; use 0 for none, or 50")
    embedding = _Embedding(params["embed"], fitted) if params["embed"] else None
    items, texts = _texts(items, run)
    raws = [replace(raw, text=text, path=None) for raw, text in zip(items.raw, texts, strict=True)]
    style = Measure("text", VERSION, {}, ".text_features:measure_style", len(COLUMNS), _TEXTS_PER_CHUNK, _content)
    matrix, _ = measure_rows(style, raws, run, "style")
    blocks, names = [matrix], list(COLUMNS)
    facts: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    words = _words(texts, params["words"], fitted)
    if words is not None:
        blocks.append(words.columns_of(texts))
        names += _numbered_names("word", len(words.components))
        facts["vocabulary"] = list(words.vocabulary)
        numbers |= {"idf": words.idf, "components": words.components}
    if embedding is not None:
        blocks.append(embedding.columns(raws, run))
        names += _numbered_names("embed", blocks[-1].shape[1])
        facts["embed_sha"] = embedding.sha
        numbers |= {"embed_mean": embedding.mean, "embed_directions": embedding.directions}
    return Made(items, np.hstack(blocks), tuple(names), facts, numbers)


def measure_style(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats]:
    """Yield the 36 columns of style of each text."""
    for raw in raws:
        yield np.array(style_columns(style_counts(raw.text or "")))


def _content(raw: RawItem) -> bytes:
    """The text itself."""
    return (raw.text or "").encode("utf-8", "surrogatepass")


def _numbered_names(word: str, n: int) -> list[str]:
    """Names such as word01; with as many digits as the last one has, two at least."""
    digits = max(2, len(str(n)))
    return [f"{word}{number:0{digits}d}" for number in range(1, n + 1)]


def _texts(items: RawItems, run: Run) -> tuple[RawItems, list[str]]:
    """The items that can be read, and their texts in plain form."""
    texts: list[str] = []
    failed: dict[int, str] = {}
    long = []
    for row, raw in enumerate(items.raw):
        try:
            text = raw.text if raw.path is None else _read(raw)
        except ItemError as error:
            failed[row] = str(error)
            continue
        if len(text or "") > MAX_CHARACTERS:
            long.append(raw.name)
        texts.append(plain_text(text or ""))
    items = leave_out(items, failed, run.on_error)
    _warn_of_odd(items, texts, long)
    return items, texts


def _warn_of_odd(items: RawItems, texts: Sequence[str], long: Sequence[str]) -> None:
    """Say which texts were cut and which are empty; refuse texts that are all empty."""
    if long:
        what = f"{counted(len(long), 'text')} cut after {MAX_CHARACTERS:,} characters: {first_few(long)}"
        warnings.warn(what, DataWarning, stacklevel=5)
    empty = [raw.name for raw, text in zip(items.raw, texts, strict=True) if not text.strip()]
    if len(empty) == len(texts):
        raise JudgmentError(f"{of_all(len(empty), len(texts), 'text')} hold nothing; check the column or the files")
    if empty:
        which = first_few(empty)
        what = f"{of_all(len(empty), len(texts), 'text')} hold nothing and count 0 in every column: {which}"
        warnings.warn(what, DataWarning, stacklevel=5)


def _read(raw: RawItem) -> str:
    """The text of a file, with or without byte-order mark; more than is used is not read."""
    assert raw.path is not None
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if _is_utf8(raw.encoding) else raw.encoding)()
    except LookupError:
        raise ParameterError(f"{option('encoding', raw.encoding)} is not known; use a name such as latin-1") from None
    try:
        raw.expect_file()
        with raw.path.open("rb") as handle:
            data = handle.read(_MAX_BYTES + 1)
    except (OSError, ValueError):
        data = raw.read_bytes(0)  # says why
    try:
        text = decoder.decode(data, final=len(data) <= _MAX_BYTES)
    except UnicodeDecodeError:
        remedy = f"; name its encoding with {option('encoding', 'latin-1')}" if _is_utf8(raw.encoding) else ""
        raise ItemError(f"not {plain(raw.encoding)}{remedy}") from None
    if "\0" in text:
        raise ItemError("not text: it holds NUL characters")
    return text


def _is_utf8(encoding: str) -> bool:
    """Whether a name of an encoding is one of UTF-8."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


def _words(texts: Sequence[str], n_columns: int, fitted: Extractor | None) -> WordColumns | None:
    """The columns of words, fitted or taken over."""
    if fitted is not None:
        return WordColumns.restore(fitted.facts, fitted.numbers) if "vocabulary" in fitted.facts else None
    if not n_columns:
        return None
    columns = WordColumns.fit(texts, n_columns)
    if columns is None:
        how = "too few words, or all of them the same; a column needs five texts, and words that stand in three of them"
        say(f"no columns of words: {counted(len(texts), 'text')} share {how}")
    return columns


class _Embedding:
    """The embedding model, and what its vectors are reduced by."""

    def __init__(self, name: str, fitted: Extractor | None) -> None:
        from .embedding import expect_model, load_model, model_folder, model_hash

        self.folder = model_folder(name)
        load_model(self.folder)
        self.sha = model_hash(self.folder)
        self.mean = self.directions = None
        if fitted is not None:
            expect_model(self.folder, str(fitted.facts["embed_sha"]), name)
            self.mean, self.directions = fitted.numbers["embed_mean"], fitted.numbers["embed_directions"]
            if self.directions.ndim != 2 or self.mean.shape != self.directions.shape[1:]:
                raise ValueError("the directions of its embedding do not fit")

    def columns(self, raws: Sequence[RawItem], run: Run) -> Floats:
        """The reduced embeddings of texts; fits the reduction where there is none yet."""
        from .embedding import fit_principal, load_model

        n_dimensions = load_model(self.folder).n_dimensions
        measure = Measure(
            "embedding", VERSION, {"sha": self.sha, "folder": str(self.folder)}, ".embedding:measure_embeddings",
            n_dimensions, _TEXTS_PER_CHUNK_EMBEDDED, _content,
        )  # fmt: skip
        vectors, _ = measure_rows(measure, raws, run, "embeddings")
        if self.mean is None or self.directions is None:
            self.mean, self.directions = fit_principal(vectors)
        reduced: Floats = (vectors - self.mean) @ self.directions.T
        return reduced
