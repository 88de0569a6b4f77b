"""How a file of judgments is to be read, as the user says it; every reader gets the same object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..data.column_names import check_words, is_side_word, names_metric
from ..data.covariates import parse_covariates
from ..data.intake import check_codes, check_rules, checked_levels
from ..errors import ParameterError
from ..wording import option

SIDES = ("left", "right")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the arguments of :func:`~crowdrank.read_judgments` say, looked over once.

    Parameters
    ----------
    kind, columns, levels, nominal, winner_codes, duplicates, invalid, items
        As for :func:`~crowdrank.read_judgments`.
    source
        Importer to use; ``"table"`` for none, ``None`` tells it from the file.
    answer
        Question, metric or answer column to read where a file has several.
    where
        Column or path -> value, as text; rows with other values are left out.
    keep
        Statuses to keep in place of the importer's own choice.
    wide
        Columns that hold one annotator's, or one item's, grades each; patterns such as ``Q1_*`` are not yet resolved.
    strength
        (column, side): a signed column that is positive where ``side`` is better; also a difference of two columns,
        or of a column and a number, such as ``score_a-score_b`` and ``rating-4``.
    small_is_good
        Whether numbers count downwards; ``None`` as a metric's own file tells, else upwards.
    swapped
        ``COLUMN`` or ``COLUMN=VALUE``: rows in which the right item was shown first; ``none``: sides are as they stand.
    missing
        Answers that say that there is none, such as ``-1`` and ``N/A``; their rows are left out.
    skip_rows
        Lines above the header of a text table or sheet.
    baseline_model, sheet, encoding, header
        Arena-Hard's other model; sheet of a spreadsheet; text encoding; names for a file without a header line.
    no_annotators
        Nobody is named, and that is meant.
    agreeing
        MT-Bench pairs as FastChat counts them: both games, differing ones tie.
    pseudonyms
        Annotators become A1, A2, ... in order of their ids.
    strength_weights
        Weight of strength 1, 2, ...
    judge_version
        Column of the version behind an annotator's name; each version is an annotator of its own.
    covariates
        What preferences are to be controlled for, as for :meth:`~crowdrank.Preferences.from_frame`.
    add_columns
        Adds columns to a plain table that covariates are made from.
    """

    kind: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    levels: Sequence[Any] | None = None
    nominal: bool = False
    winner_codes: Mapping[Any, str] | None = None
    duplicates: str | None = None
    invalid: str = "error"
    items: Any | None = None
    source: str | None = None
    answer: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] | None = None
    wide: Sequence[str] | None = None
    strength: tuple[str, str] | None = None
    small_is_good: bool | None = None
    swapped: str | None = None
    missing: Sequence[str] | None = None
    skip_rows: int = 0
    baseline_model: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    header: Sequence[str] | None = None
    no_annotators: bool = False
    agreeing: bool = False
    pseudonyms: bool = False
    strength_weights: Sequence[float] | None = None
    judge_version: str | None = None
    covariates: Sequence[str] = ()
    add_columns: Callable[[pl.DataFrame], pl.DataFrame] | None = None

    @property
    def metrics(self) -> list[str]:
        """What is graded in the rows that are wanted, where a column names it."""
        return [value for path, value in self.where.items() if names_metric(path) is not False]

    @property
    def codes(self) -> dict[str, str]:
        """What winners mean, by their text."""
        return {str(code): word for code, word in (self.winner_codes or {}).items()}

    def __post_init__(self) -> None:
        check_words(self.columns, self.kind)
        check_rules(self.duplicates or "keep", self.invalid)
        check_codes(self.winner_codes or {})
        if self.levels is not None:
            checked_levels(self.levels)
        if self.skip_rows < 0:
            problem = f"{option('skip_rows', self.skip_rows)} is below 0"
            raise ParameterError(f"{problem}; give the number of lines to pass over")
        for name in ("keep", "wide", "header", "strength_weights", "missing"):
            given = getattr(self, name)
            if isinstance(given, str) or (given is not None and not len(given)):
                raise ParameterError(f"{option(name, given)} is not a list; give the values one by one")
        if self.strength is not None and (len(self.strength) != 2 or self.strength[1] not in SIDES):
            raise ParameterError(
                f"{option('strength')} names a column and the side that positive numbers favour; write "
                f"{option('strength', {'score': 'left'})} or {option('strength', {'score': 'right'})}"
            )
        if self.strength_weights is not None and not all(0 < weight < 1e12 for weight in self.strength_weights):
            problem = f"{option('strength_weights')} holds a weight that is not above 0"
            raise ParameterError(f"{problem}; give weights such as 1,3")


def side_words(options: ReadOptions) -> dict[str, str]:
    """Return the fields that are named for a covariate of one side, such as ``length_left``, which must be wanted."""
    named = {word: path for word, path in options.columns.items() if is_side_word(word)}
    wanted = parse_covariates(options.covariates)
    for word in named:
        name = word.rpartition("_")[0]
        if name not in wanted:
            problem = f"{option('columns', {word: named[word]})} is about a covariate"
            raise ParameterError(f"{problem}; add {option('control', name)}, or leave it out")
    return named


def read_options(
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | None = None,
    strength: Mapping[str, str] | tuple[str, str] | None = None,
    swapped: str | Mapping[str, Any] | None = None,
    **given: Any,
) -> ReadOptions:
    """Return the options, with ``where`` and ``strength`` in their plain form.

    Examples
    --------
    >>> options = read_options(where={"criterion": "helpful"}, strength={"score": "left"})
    >>> options.where, options.strength
    ({'criterion': 'helpful'}, ('score', 'left'))
    """
    rows = {str(name): str(value) for name, value in (where or {}).items()}
    if isinstance(strength, Mapping):
        if len(strength) != 1:
            problem = f"{option('strength')} names one column"
            raise ParameterError(f"{problem}; write {option('strength', {'score': 'left'})}")
        strength = next(iter(strength.items()))
    if isinstance(swapped, Mapping):
        swapped = ",".join(f"{name}={value}" for name, value in swapped.items())
    if given.get("missing") is not None and not isinstance(given["missing"], str):
        given["missing"] = [str(value) for value in given["missing"]]
    return ReadOptions(columns=dict(columns or {}), where=rows, strength=strength, swapped=swapped, **given)
