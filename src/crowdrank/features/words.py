"""Words of texts as a few columns: TF-IDF reduced by a truncated singular value decomposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.threads import one_blas_thread
from ..protocols import Floats

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
        in_texts = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = np.log((1 + len(texts)) / (1 + in_texts)) + 1
        weighted = _tf_idf(counts, idf)
        if not (weighted.max(axis=0) - weighted.min(axis=0)).nnz:
            # every text has the same words, which tell nothing apart
            return None
        with one_blas_thread():
            components = TruncatedSVD(n_columns, random_state=0).fit(weighted).components_
        loadings = orient_rows(components).astype(np.float32)
        return cls(tuple(map(str, reader.get_feature_names_out())), idf, loadings)

    def columns_of(self, texts: Sequence[str]) -> Floats:
        """Return one row of columns per text."""
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
        if len(set(vocabulary)) != len(vocabulary) or idf.shape != (len(vocabulary),):
            raise ValueError("its vocabulary does not fit the weights of its words")
        if components.ndim != 2 or components.shape[1] != len(vocabulary):
            raise ValueError("its vocabulary does not fit its loadings")
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
    sign = np.where(components[np.arange(len(components)), first] < 0, -1.0, 1.0)
    return components * sign[:, None]
