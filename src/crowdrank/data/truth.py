"""Known answers: of items, of pairs of items, and accuracies of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Floats, Ints, Outcomes
from ..wording import naming
from .column_names import BY_WINNER, is_gold, person_column, quote_names, understand_items
from .columns import understand
from .consensus import Consensus
from .frames import to_frame
from .grades import Grades
from .index import Items, first_row
from .intake import numbers_of, numeric_levels
from .judged import judged_frame
from .preferences import Preferences, winner_words
from .showing import Shown


@dataclass(frozen=True, eq=False)
class Truth(Shown):
    """Known grades of items (``form`` "grade" or "rank") or winners of pairs (``form`` "pairs"); it may cover a part.

    A rank becomes the grade ``-rank``, so larger is better everywhere. Of classes ``levels`` holds the user's own
    values and ``grade`` their codes; they have no order where they are ``nominal``. ``source`` is the consensus that
    the truth was taken from, if it was.

    Examples
    --------
    >>> truth = Truth.from_frame({"query": ["q", "q"], "item": ["x", "y"], "grade": [2, 0]})
    >>> truth.form, truth.grade.tolist()
    ('grade', [2.0, 0.0])
    """

    form: str
    items: Items
    grade: Floats | None = None
    left: Ints | None = None
    right: Ints | None = None
    outcome: Outcomes | None = None
    levels: tuple[Any, ...] | None = None
    nominal: bool = False
    source: Consensus | None = None

    def __repr__(self) -> str:
        what = {"grade": "grades", "rank": "ranks", "pairs": "pairs"}[self.form]
        return f"Truth({len(self):,} {what}, {self.items.n_queries:,} queries)"

    def __len__(self) -> int:
        return len(self.grade) if self.grade is not None else 0 if self.outcome is None else len(self.outcome)

    @classmethod
    def from_frame(
        cls, data: Any, *, columns: Mapping[str, str] | None = None, winner_codes: Mapping[Any, str] | None = None
    ) -> Self:
        """Return truth from a table of (query, item, grade), (query, item, rank) or (query, left, right, winner)."""
        if isinstance(data, cls):
            return data
        frame = to_frame(data)
        words = {str(name).strip().lower() for name in frame.columns} | set(columns or {})
        if any(set(pair) <= words for pair in (("left", "right"), ("model_a", "model_b"), *BY_WINNER)):
            pairs = Preferences.from_frame(frame, columns=columns, winner_codes=winner_codes)
            return cls("pairs", pairs.items, None, pairs.left, pairs.right, pairs.outcome)
        understood = understand_items(frame.columns, columns, also=("grade", "rank"))
        form = next((form for form in ("grade", "rank") if form in understood), None)
        gold = [name for name in frame.columns if is_gold(name) and name not in understood.values()]
        beside = form == "grade" and person_column(frame.columns) is not None
        if gold and "grade" not in (columns or {}) and (form is None or beside):
            if beside:
                # what is right stands beside what annotators said, about the items that they judged
                judged = understand(frame, "grade", columns).columns
                understood = {word: judged[word] for word in ("item", "query") if word in judged}
            form, understood["grade"] = "grade", gold[0]
            frame = frame.filter(frame[gold[0]].is_not_null())
        if form is None:
            what = f"the truth has no grade, rank or winner column (its columns: {quote_names(frame.columns)})"
            raise JudgmentError(f"{what}; {naming('grade')}")
        places = {"item": "item", "grade": form, "query": "query"}
        table = frame.select(**{word: pl.col(understood[own]) for word, own in places.items() if own in understood})
        _, blank, text = numbers_of(table["grade"])
        nominal = form == "grade" and bool(text.sum() > 0.5 * (~blank).sum())
        grades = Grades.from_frame(table, nominal=nominal)
        truth = np.empty(grades.n_items)
        truth[grades.item] = grades.grade
        if (row := first_row(truth[grades.item] != grades.grade)) is not None:
            code = int(grades.item[row])
            raise JudgmentError(f"the truth gives item {grades.items.ids[code]!r} two different grades; keep one")
        sign = -1.0 if form == "rank" else 1.0
        return cls(form, grades.items, sign * truth, levels=grades.declared, nominal=nominal)

    @classmethod
    def from_consensus(cls, consensus: Consensus) -> Self:
        """Return the scores of a consensus as truth; those of classes without an order are their codes."""
        if consensus.nominal and consensus.grade is not None:
            grade = np.where(consensus.grade < 0, np.nan, consensus.grade)
            return cls("grade", consensus.items, grade, levels=consensus.levels, nominal=True, source=consensus)
        return cls("grade", consensus.items, consensus.scores, source=consensus)

    def align(self, items: Items) -> Floats:
        """Return the truth of each of the given items, NaN where it is not covered."""
        assert self.grade is not None
        codes = self.items.codes_of(items, "truth", "items")
        return np.where(codes >= 0, self.grade[codes], np.nan)

    def labels(self, grade: Floats) -> pl.Series:
        """Return classes as text from their numbers, as :meth:`align` gives them; null for NaN."""
        covered = np.isfinite(grade)
        filled = np.where(covered, grade, 0.0)
        levels = numeric_levels(filled) if self.levels is None else [self.levels[int(code)] for code in filled]
        return pl.Series(list(map(str, levels)), dtype=pl.String).set(pl.Series(~covered), None)

    def align_pairs(self, items: Items) -> tuple[Ints, Ints, Outcomes]:
        """Return the pairs whose two items are among the given ones, as their codes, with the outcome."""
        codes = items.codes_of(self.items, "items", "truth")
        left, right, outcome = self._pairs()
        left, right = codes[left], codes[right]
        covered = (left >= 0) & (right >= 0)
        return left[covered], right[covered], outcome[covered]

    def _pairs(self) -> tuple[Ints, Ints, Outcomes]:
        """Both items and the outcome of each pair, of truth about pairs."""
        assert self.left is not None
        assert self.right is not None
        assert self.outcome is not None
        return self.left, self.right, self.outcome

    def frame(self) -> pl.DataFrame:
        """Return the truth as a table."""
        if self.grade is not None:
            shown = {"rank": -self.grade} if self.form == "rank" else {"grade": self.grade}
            return pl.DataFrame({**self.items.id_columns(), **shown})
        left, right, outcome = self._pairs()
        return judged_frame(self.items, {"left": left, "right": right}, {"winner": winner_words(outcome)})


def given_accuracies(accuracies: Any, grades: Grades) -> Floats:
    """Return the accuracy of each annotator as given, (n_annotators,), NaN for those not named.

    ``accuracies`` maps annotators to numbers between 0 and 1, or is a table of annotator and accuracy; annotators in it
    who gave no grade are passed over.
    """
    if not grades.n_annotators:
        raise JudgmentError("accuracies= names annotators and the grades do not; leave it out, or add the column")
    if isinstance(accuracies, Mapping) and all(np.ndim(value) == 0 for value in accuracies.values()):
        accuracies = {"annotator": list(accuracies), "accuracy": list(accuracies.values())}
    frame = to_frame(accuracies)
    if not {"annotator", "accuracy"} <= set(frame.columns):
        raise JudgmentError("accuracies= has no columns annotator and accuracy; give both, or a dict of accuracies")
    values = frame["accuracy"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    if (row := first_row(~((values >= 0) & (values <= 1)))) is not None:
        who, value = frame["annotator"][row], frame["accuracy"][row]
        raise ParameterError(f"accuracies= gives annotator {who!r} {value!r}, which is not between 0 and 1; correct it")
    code = grades.annotators.codes(frame["annotator"])
    given = np.full(grades.n_annotators, np.nan)
    given[code[code >= 0]] = values[code >= 0]
    return given
