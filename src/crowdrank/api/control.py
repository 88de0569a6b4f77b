"""What preferences are controlled for: style counted in texts, families of judges and models, and how that reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ..data.column_names import understand_items
from ..data.covariates import covariate_columns, parse_covariates
from ..data.frames import to_frame
from ..data.judgments import Judgments, Mixed, Preferences
from ..errors import JudgmentError, ParameterError
from ..io.exports.cells import answer_text
from ..wording import first_few, option

STYLE = ("length", "headers", "bold", "lists")
_TEXTS = (
    ("left_text", "right_text"), ("text_left", "text_right"), ("response_a", "response_b"), ("answer_a", "answer_b"),
    ("output_1", "output_2"), ("response_1", "response_2"), ("text_a", "text_b"), ("conversation_a", "conversation_b"),
)  # fmt: skip


def control_names(control: str | Sequence[str]) -> dict[str, str]:
    """Return the covariates that are meant, with the transforms that are named; ``style`` means four of them.

    Examples
    --------
    >>> list(control_names("style,self"))
    ['length', 'headers', 'bold', 'lists', 'self']
    """
    transforms: dict[str, str] = {}
    for name, transform in parse_covariates(control).items():
        transforms |= dict.fromkeys(STYLE, transform) if name == "style" else {name: transform}
    return transforms


def names_to_control(judgments: Any, control: str | Sequence[str]) -> list[str]:
    """Return the names of the covariates that are meant, unless the judgments have one of them made in another way."""
    wanted = control_names(control)
    if isinstance(judgments, Preferences):
        transforms = dict(zip(judgments.covariate_names, judgments.covariate_transforms, strict=True))
        for name, way in wanted.items():
            if way and transforms.get(name, way) != way:
                raise JudgmentError(
                    f"the preferences have {name!r} as {transforms[name]}, not as {way}; read them with covariates="
                    f"[{f'{name}:{way}'!r}] (--control {name}:{way}), or name it without a transform"
                )
        if "self" in wanted and "self" not in transforms:
            raise JudgmentError(
                "there is no covariate 'self', since the families of items are not known; give a table of item and "
                "family with with_families(preferences, table) (--item-families FILE), and each annotator's as group"
            )
    return list(wanted)


def expect_self(control: str | Sequence[str] | None) -> None:
    """Refuse families that nothing is to be controlled for by."""
    if control is None or "self" not in control_names(control):
        raise ParameterError(f"families are for {option('control', 'self')}; add that, or leave families out")


def zero_covariates(judgments: Any, control: Sequence[str]) -> list[str]:
    """Return those covariates that are 0 in all of these preferences."""
    if not isinstance(judgments, Preferences) or judgments.covariates is None:
        return []
    some = dict(zip(judgments.covariate_names, (np.abs(judgments.covariates).sum(axis=0) > 0).tolist(), strict=True))
    return [name for name in control if not some.get(name, True)]


def read_covariates_of(control: str | Sequence[str]) -> dict[str, Any]:
    """Return the options of reading that covariates need: their names, and what counts style in texts."""
    wanted = control_names(control)
    names = [f"{name}:{way}" if way else name for name, way in wanted.items() if name != "self"]
    counted: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    if any(name in STYLE for name in wanted):
        whole = "style" in parse_covariates(control)
        counted = partial(with_style, wanted=STYLE if whole else [name for name in STYLE if name in wanted])
    return {"covariates": names, "add_columns": counted}


def style_counts(texts: Any) -> pl.DataFrame:
    """Return how long texts are and how they are formatted: length, headers, bold, lists.

    Length is in characters; headers, bold and lists are those of Markdown, code blocks left out.

    Examples
    --------
    >>> style_counts(["# Title", "- one\\n- two"]).rows()
    [(7, 1, 0, 0), (11, 0, 0, 2)]
    """
    from ..features.style import markdown_counts, plain_text

    rows = []
    for text in texts:
        plain = plain_text("" if text is None else str(text)).strip()
        counts = markdown_counts(plain)[0]
        rows.append((len(plain), counts["headings"], counts["bold"], counts["bullets"] + counts["numbered"]))
    return pl.DataFrame(rows, schema=STYLE, orient="row")


def with_style(table: pl.DataFrame, wanted: Sequence[str] = STYLE) -> pl.DataFrame:
    """Return the table with style counted in its texts: ``length_left``, ``length_right``, ...

    What the table has in columns of its own is not counted.
    """
    lacking = [name for name in wanted if not covariate_columns(table, [name])]
    if not lacking:
        return table
    sides = next((pair for pair in _TEXTS if set(pair) <= set(table.columns)), None)
    if sides is None:
        raise JudgmentError(
            f"there is no covariate {lacking[0]!r}, and no texts to count it in: neither {lacking[0]}_left and "
            f"{lacking[0]}_right nor left_text and right_text; the columns are "
            f"{first_few(map(repr, table.columns), shown=40)}"
        )
    for side, name in zip(("left", "right"), sides, strict=True):
        if table.schema[name].is_nested():
            table = table.with_columns(pl.Series(name, [answer_text(one) for one in table[name].to_list()], pl.String))
        # many rows show the same text
        texts = table[name].unique(maintain_order=True)
        counts = style_counts(texts).select(pl.col(style).alias(f"{style}_{side}") for style in lacking)
        table = table.join(counts.with_columns(texts.alias(name)), on=name, how="left", nulls_equal=True)
    return table


def with_families(judgments: Judgments | Mixed, families: Any) -> Preferences:
    """Return preferences with the covariate ``self``: whether left, or right, is of the annotator's own family.

    ``families`` is a table of item and family; the family of an annotator is the group. Then
    ``aggregate(preferences, control=["self"])`` controls for annotators who prefer their own family.

    Examples
    --------
    >>> rows = {"left": ["m1", "m2"], "right": ["m2", "m3"], "winner": ["left", "tie"], "annotator": ["j", "j"],
    ...         "group": ["red", "red"]}
    >>> families = {"item": ["m1", "m2", "m3"], "family": ["red", "blue", "green"]}
    >>> with_families(Preferences.from_frame(rows), families).covariates.tolist()
    [[1.0], [0.0]]
    """
    if not isinstance(judgments, Preferences):
        raise JudgmentError(f"{option('families')} applies to preferences, but these are other judgments; leave it out")
    if judgments.group is None or judgments.groups is None:
        raise JudgmentError("control of own families needs a group column: the family of each annotator")
    table = to_frame(families)
    name = understand_items(table.columns)["item"]
    if "family" not in table.columns:
        raise JudgmentError(f"the table of families has no column family; its columns are {', '.join(table.columns)}")
    known = dict(zip(table[name].cast(pl.String), table["family"].cast(pl.String), strict=True))
    of_items = [known.get(str(item)) for item in judgments.items.ids.to_list()]
    missing = sorted({str(i) for i, f in zip(judgments.items.ids.to_list(), of_items, strict=True) if f is None})
    if missing:
        raise JudgmentError(f"the table of families lacks {first_few(map(repr, missing))}; add the family of each")
    groups = judgments.groups.ids.cast(pl.String).to_list()
    code = {group: place for place, group in enumerate(groups)}
    family = np.array([code.get(str(one), -1) for one in of_items])
    own = judgments.group[judgments.annotator]
    values = (family[judgments.left] == own).astype(float) - (family[judgments.right] == own)
    return judgments.with_covariate("self", values)
