"""What loading a public data set gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from ..data.features import Features
from ..data.judgments import Grades, Preferences, Rankings
from ..data.truth import Truth
from ..wording import counted


@dataclass(frozen=True)
class Fold:
    """One split of a data set, as ids of its queries.

    Parameters
    ----------
    name
        Name of the split in its source, such as ``Fold1``.
    train, vali, test
        Query ids to train on, to tune on and to report on; ``vali`` is empty where the source has none.

    Examples
    --------
    >>> Fold("Fold1", ("1", "2", "3"), ("4",), ("5",)).test
    ('5',)
    """

    name: str
    train: tuple[str, ...]
    vali: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset:
    """One public data set as judgments, truth and features; a field is ``None`` where the set has nothing for it.

    Parameters
    ----------
    name
        Name it was loaded by.
    judgments
        What annotators said: grades, preferences or rankings.
    truth
        What is known to be right, for all items or for a part of them.
    features
        One row of numbers for each item; the labels of a learning-to-rank set are its truth.
    folds
        Splits that come with the set, as query ids.
    details
        What else is known of the items: ``query`` (where there are several), ``item``, then ``text``, ``source`` and
        other columns that a study may need.
    notes
        What loading left out or decided, one sentence each.
    description
        What the set is.
    source
        The public repository it comes from (owner/name), the commit and the path inside it.
    licence
        Terms of the source.

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 2), ("bob", "q", "y", 1)])
    >>> Dataset(name="tiny", judgments=grades, truth=Truth.from_frame({"item": ["x"], "grade": [2]}))
    <Dataset tiny: 2 grades by 2 annotators on 2 items of 1 query; truth of 1 item>
    """

    name: str
    judgments: Grades | Preferences | Rankings | None = None
    truth: Truth | None = None
    features: Features | None = None
    folds: tuple[Fold, ...] | None = None
    details: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    description: str = ""
    source: str = ""
    licence: str = ""

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {'; '.join(self._parts())}>"

    def _parts(self) -> Iterator[str]:
        """What the set has, in a few words each."""
        if (given := self.judgments) is not None:
            by = f" by {counted(given.n_annotators, 'annotator')}" if given.n_annotators else ""
            of = f"{counted(given.n_items, 'item')} of {counted(given.n_queries, 'query')}"
            yield f"{counted(len(given), given.kind)}{by} on {of}"
        if self.truth is not None:
            yield f"truth of {counted(len(self.truth), 'pair' if self.truth.form == 'pairs' else 'item')}"
        if self.features is not None:
            yield f"{counted(self.features.matrix.shape[1], 'feature')} of {counted(len(self.features), 'item')}"
        if self.folds is not None:
            yield counted(len(self.folds), "fold")
