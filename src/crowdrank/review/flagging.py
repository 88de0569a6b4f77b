"""Which flags each annotator has, with reasons, and whom that is enough to leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.diagnostics import Diagnostics
from ..data.intake import short
from ..data.judgments import Judgments, Mixed
from ..data.recording import FEWEST
from ..protocols import Bools, Floats
from ..wording import option, percent
from .flags import DOUBTS, EMPTY, FLAGS
from .verdicts import POOR, doubts, verdict

FALSE_DROPS = 0.05
"""Share of those left out for their quality alone that may be left out wrongly."""

MOST_DROPPED = 0.5
"""Where more of the judgments than this would be left out, the consensus itself is in doubt, and nobody is."""

ALIKE = 0.5
"""From this correlation of errors with one of the same family on, an annotator may be a copy."""

_TWO_HALVES = 3.29
"""Standard errors from one end of a 90 % interval to the other."""


def flag_annotators(
    table: pl.DataFrame, judged: Judgments | Mixed, known: Consensus, odd: Diagnostics | None
) -> pl.DataFrame:
    """Return annotator, flag and reason, one row for each flag of each annotator."""
    rows: list[tuple[Any, str, str]] = []
    for row in table.iter_rows(named=True):
        lower, upper = row.get("lower", row["quality"]), row.get("upper", row["quality"])
        number = row["n_judgments"]
        code = verdict(row["quality"], lower, upper, number, row.get("n_pairs", number))
        if code:
            rows.append((row["annotator"], code, _reason(code, quality_in_words(row))))
    habits: list[tuple[Any, str, str]] = []
    if odd is not None and not isinstance(judged, Mixed):
        from .messages import flagged_habits

        for habit, (codes, words) in flagged_habits(judged, odd.annotators(), known.scores).items():
            ids = judged.annotators.ids.gather(codes).to_list()
            habits += [(who, habit, _reason(habit, numbers)) for who, numbers in zip(ids, words, strict=True)]
        habits += _copies(odd)
    explained = {who for who, habit, _ in habits if habit in EMPTY}
    rows += [
        (row["annotator"], code, _reason(code, quality_in_words(row)))
        for code, row in zip(doubts(table), table.iter_rows(named=True), strict=True)
        # answers that have little to do with the items are why nothing more can be told of whoever gave them
        if code and row["annotator"] not in explained
    ]
    rows += habits
    schema: dict[str, Any] = {"annotator": table.schema["annotator"], "flag": pl.String, "reason": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _reason(code: str, numbers: str) -> str:
    """Why an annotator has a flag, with the numbers behind it."""
    return f"{FLAGS[code].noun} ({numbers})"


def quality_in_words(row: Mapping[str, Any]) -> str:
    """Return the quality of an annotator with its interval, in words."""
    if row.get("lower") is None:
        return f"quality {row['quality']:.2f}"
    return f"quality {row['quality']:.2f}, {row['lower']:.2f} to {row['upper']:.2f}"


def _copies(odd: Diagnostics) -> list[tuple[Any, str, str]]:
    """Those of a family that was found who err much as another of it does, with the one they agree with most."""
    family = odd.annotators().filter(pl.col("family").is_not_null()).select("annotator", "family")
    if not len(family) or odd.dependence_table is None:
        return []
    pairs = odd.dependence()
    both = pl.concat([pairs, pairs.rename({"annotator": "other", "other": "annotator"}).select(pairs.columns)])
    inside = both.join(family, on="annotator").join(family, left_on="other", right_on="annotator", suffix="_other")
    nearest = (
        inside.filter(pl.col("family") == pl.col("family_other"), pl.col("correlation") >= ALIKE)
        .sort("excess", "annotator", "other", descending=[True, False, False])
        .unique("annotator", keep="first", maintain_order=True)
    )
    return [
        (
            row["annotator"],
            "copies",
            _reason(
                "copies",
                f"agrees with {short(row['other'])} in {percent(row['agreement'])} of {row['n_common']:,}, "
                f"{percent(row['expected'])} expected",
            ),
        )
        for row in nearest.iter_rows(named=True)
    ]


def choose_actions(table: pl.DataFrame, flags: pl.DataFrame, trusted: list[Any], notes: list[str]) -> dict[Any, str]:
    """Return the action for each annotator about whom something was found; doubts about it all go to the notes."""
    sure = dict(zip(table["annotator"], surely_bad(table), strict=True))
    rows = {row["annotator"]: row for row in table.iter_rows(named=True)}
    action: dict[Any, str] = {}
    for who, flag in flags.select("annotator", "flag").iter_rows():
        if who not in rows or flag in DOUBTS:
            continue
        lower = rows[who].get("lower", rows[who]["quality"])
        if flag == "circular" and lower > POOR:
            # good annotators go round in circles too, between items that are close
            continue
        if flag in ("guessing", "reversed"):
            drop = sure[who] and rows[who]["n_judgments"] >= FEWEST
        elif flag == "circular":
            drop = lower <= 0.5
        else:
            drop = flag in EMPTY and lower <= POOR
        action[who] = "drop" if drop or action.get(who) == "drop" else "review"
    for who in trusted:
        action.pop(who, None)
    weight = sum(rows[who]["n_judgments"] for who, what in action.items() if what == "drop")
    if weight > MOST_DROPPED * float(table["n_judgments"].sum()):
        notes.append(
            "more than half of the judgments are by annotators who seem to guess or to be reversed, so the consensus "
            "itself may be wrong and nobody should be left out; name annotators known to be good with "
            f"{option('trusted')}"
        )
        return dict.fromkeys(action, "review")
    return action


def surely_bad(table: pl.DataFrame) -> Bools:
    """Return who is below 0.6 beyond doubt, this many annotators being looked at [Benjamini95]_."""
    from scipy.special import ndtr

    from .dependence import false_discovery_rates

    if "lower" not in table.columns:
        return np.zeros(len(table), bool)
    quality, lower, upper = (table[name].to_numpy() for name in ("quality", "lower", "upper"))
    error = np.maximum((upper - lower) / _TWO_HALVES, 1e-9)
    chance: Floats = ndtr(-(POOR - quality) / error)
    return np.asarray(false_discovery_rates(chance) <= FALSE_DROPS)


def better_flags(again: dict[Any, dict[str, Any]], flags: pl.DataFrame) -> pl.DataFrame:
    """Return the flags of annotators who do better when measured again, as rows like those of the first time."""
    rows = [(who, "better", _reason("better", quality_in_words(row))) for who, row in again.items()]
    return pl.DataFrame(rows, schema=flags.schema, orient="row")
