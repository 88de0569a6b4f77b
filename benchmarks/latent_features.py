"""What features add where preferences are few: arguments of ukpconvarg1, described by their length and punctuation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .held_out import latent_levels, of_levels, split

NAMES = ("log_words", "word_length", "sentences", "asks_or_cries", "capitals")


def described(details: Any) -> Any:
    """Return five numbers of each text, standardised, in the order of the table."""
    texts = details["text"].to_list()
    words = [text.split() for text in texts]
    counts = np.array([len(each) for each in words])
    columns = (
        np.log1p(counts),
        [np.mean([len(word) for word in each] or [0]) for each in words],
        np.log1p([sum(text.count(mark) for mark in ".!?") for text in texts]),
        np.log1p([text.count("!") + text.count("?") for text in texts]),
        [sum(word.isupper() and len(word) > 1 for word in each) / max(len(each), 1) for each in words],
    )
    matrix = np.column_stack([np.asarray(column, np.float64) for column in columns])
    return (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)


def matrix_of(loaded: Any) -> Any:
    """Return the columns of the set's items, in the order of their codes."""
    details = loaded.details
    codes = loaded.judgments.items.codes(details["query"], details["item"])
    matrix = np.zeros((loaded.judgments.n_items, len(NAMES)))
    matrix[codes] = described(details)
    return matrix


def log_likelihood(judgments: Any, features: Any, keep: float, seed: int) -> float:
    """Return the mean log-likelihood of decided answers held out, learned from a share of the others."""
    learned, held = split(judgments, seed, keep=keep)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return of_levels(latent_levels(learned, held, features=features), held)
