"""What to do about each annotator: keep, talk to or leave out, why, and what the consensus would become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.intake import short
from ..data.judgments import Judgments, Mixed
from ..data.preferences import FEWEST
from ..data.showing import Shown
from ..errors import CrowdrankError, JudgmentError, ParameterError
from ..metrics.correlation import kendall_tau
from ..protocols import Bools, takes_argument
from ..quality import fit_quietly, held_out_quality, pair_accuracy, trusted_annotators
from ..registry import make
from ..wording import of_all, option
from .dependence import false_discovery_rates
from .diagnosis import INTERVAL_WIDTH, diagnose, flagged_habits, match_items
from .findings import POOR, annotator_table, quality_flags
from .sentences import ACTIONS, BY_QUALITY, DOUBTS, EMPTY, FLAGS, fill

FALSE_DROPS = 0.05
"""Share of those left out for their quality alone that may be left out wrongly."""

MOST_DROPPED = 0.5
"""Where more of the judgments than this would be left out, the consensus itself is in doubt, and nobody is."""

ALIKE = 0.5
"""From this correlation of errors with one of the same family on, an annotator may be a copy."""

_ACTIONS = ("drop", "review", "keep")


@dataclass(frozen=True)
class Effect:
    """What leaving annotators out does to the consensus.

    Parameters
    ----------
    tau
        Kendall's tau between the orders with and without them; for classes the share of items in the same class.
    n_moved, n_items
        Items whose rank (or class) changes, and all items.
    n_winners_changed, n_queries
        Queries with another item, or other items, on top; and all queries.
    n_lost
        Items that are left without a judgment.
    """

    tau: float
    n_moved: int
    n_items: int
    n_winners_changed: int
    n_queries: int
    n_lost: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Actions(Shown):
    """What is suggested about each annotator; :func:`crowdrank.actions` makes it.

    Parameters
    ----------
    table
        What :meth:`frame` returns.
    flags
        annotator, flag, reason: everything that was found, several rows for an annotator with several flags; the
        codes are those of ``crowdrank.review.sentences``.
    n_judgments_dropped
        Judgments (or their weight) of those to be left out.
    consensus, without
        The consensus as it is, and without those to be left out; ``None`` where it was not made.
    effect
        How far the two differ.
    notes
        What could not be determined, and why.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> advice = cr.actions(cr.aggregate(votes, "mean_grade"), votes)
    >>> advice, advice.frame().columns[:3]
    (Actions(drop 0, review 0, keep 3), ['annotator', 'action', 'reason'])
    """

    table: pl.DataFrame
    flags: pl.DataFrame
    n_judgments_dropped: float
    consensus: Consensus
    without: Consensus | None = None
    effect: Effect | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        counts = ", ".join(f"{action} {len(self._of(action)):,}" for action in _ACTIONS)
        return f"Actions({counts})"

    def frame(self) -> pl.DataFrame:
        """Return annotator, action, reason, quality, lower, upper, n_judgments; those to leave out first, worst first.

        ``action`` is ``drop`` (leave out), ``review`` (look at, or talk to) or ``keep``.
        """
        return self.table

    @property
    def dropped(self) -> list[str | int]:
        """Annotators to leave out."""
        return self._of("drop")

    @property
    def reviewed(self) -> list[str | int]:
        """Annotators to look at or to talk to."""
        return self._of("review")

    @property
    def kept(self) -> list[str | int]:
        """Annotators to keep."""
        return self._of("keep")

    def _of(self, action: str) -> list[str | int]:
        """Annotators with an action."""
        return self.table.filter(pl.col("action") == action)["annotator"].to_list()

    def changes(self) -> pl.DataFrame:
        """Return the items whose rank changes without those to be left out, the largest change first.

        query (where there are several), item, rank, rank_without, score, score_without.
        """
        now, then = self.consensus, self.consensus if self.without is None else self.without
        columns: dict[str, Any] = {} if now.items.single else {"query": now.items.query_ids()}
        rank, after = now.ranks(), then.ranks()
        columns |= {"item": now.items.ids, "rank": rank, "rank_without": after}
        columns |= {"score": now.scores, "score_without": then.scores}
        moved = np.flatnonzero(rank != after)
        far = np.abs(rank[moved].astype(np.int64) - after[moved])
        return pl.DataFrame(columns)[moved[np.argsort(-far, kind="stable")]]

    @property
    def sentence(self) -> str:
        """What changes without those to be left out; empty where that is nobody, or was not looked at."""
        effect, after = self.effect, self.without
        if effect is None or after is None:
            return ""
        them = "that one" if len(self.dropped) == 1 else "them"
        moved = of_all(effect.n_moved, effect.n_items, "item") if effect.n_moved else "no item"
        if after.nominal:
            return fill(ACTIONS["classes"], moved=moved, them=them)
        n_changed = effect.n_winners_changed
        if effect.n_queries > 1:
            queries = of_all(n_changed, effect.n_queries, "query") if n_changed else "no query"
            winners = fill(ACTIONS["winners"], queries=queries)
        else:
            top = {"old": _top_item(self.consensus), "new": _top_item(after)}
            winners = fill(ACTIONS["new_winner" if n_changed else "same_winner"], **top)
        size = "hardly change" if effect.tau >= 0.95 else "change" if effect.tau >= 0.8 else "be very different"
        words = {"size": size, "moves": "moves" if effect.n_moved == 1 else "move", "tau": effect.tau}
        order = ACTIONS["order" if effect.n_moved else "same_order"]
        return fill(order, moved=moved, them=them, winners=winners, **words)

    def sentences(self) -> list[str]:
        """Return what there is to say, one sentence each."""
        n, drop, review = len(self.table), len(self.dropped), len(self.reviewed)
        code = "both" if drop and review else "drop" if drop else "review" if review else "fine"
        said = fill(ACTIONS["only_one" if n <= 1 and code == "fine" else code], n=n, drop=drop, review=review)
        return [said, *([self.sentence] if self.sentence else []), *self.notes]


def _top_item(consensus: Consensus) -> str:
    """The item on top, or how many share the place."""
    top = np.flatnonzero(consensus.ranks() == 1)
    name = short(consensus.items.ids[int(top[0])])
    return name if len(top) == 1 else f"{name} with {len(top) - 1:,} more"


def suggest_actions(
    consensus: Consensus, judged: Judgments | Mixed, method: Any | None = None, trusted: Any | None = None
) -> Actions:
    """Return what :func:`crowdrank.actions` does, of judgments."""
    if not judged.n_annotators:
        raise ParameterError(ACTIONS["nobody"])
    if not isinstance(consensus, Consensus):
        raise ParameterError(f"consensus= takes a consensus, not a {type(consensus).__name__}; make one with aggregate")
    trusted = consensus.estimates.get("trusted") if trusted is None else trusted
    known, notes, aggregator = match_items(consensus, judged), list[str](), method
    if method is None or isinstance(method, str):
        try:
            aggregator = make("aggregator", method or consensus.method, None if method else dict(consensus.params))
        except CrowdrankError:
            if method is not None:
                raise
            why = f"{consensus.method} is not a method of this package; give the aggregator with method="
            notes.append(fill(ACTIONS["unknown"], why=why))
    table = _table(consensus, judged, aggregator)
    flags = _flag_annotators(table, judged, consensus, known)
    sure = judged.annotators.ids.filter(pl.Series(trusted_annotators(judged, trusted))).to_list()
    action = _choose_actions(table, flags, sure, notes)
    while True:
        # once as suggested, and again without those who do better by the consensus of the others
        dropped = np.array([action.get(name) == "drop" for name in judged.annotators.ids.to_list()], bool)
        gone = dropped[judged.annotator]
        without: Consensus | None = None
        if aggregator is not None and dropped.any():
            given = {"start": consensus} if trusted is None else {"start": consensus, "trusted": trusted}
            extra = {name: value for name, value in given.items() if takes_argument(aggregator, name)}
            try:
                # what is wrong with all judgments was said when they were fitted
                without = fit_quietly(aggregator, judged.select(~gone), **extra)
            except CrowdrankError as error:
                notes.append(fill(ACTIONS["unknown"], why=error))
        if without is None or without.nominal or "better" in flags["flag"]:
            break
        # many bad annotators spoil the consensus that all are measured by, and good ones with it
        quality = pair_accuracy(judged.select(gone), without.scores)
        assert quality is not None
        found = flags.filter(pl.col("flag").is_in([*EMPTY, "copies"]))["annotator"].to_list()
        frame = quality.frame()
        frame = frame.filter((frame["n_judgments"] > 0) & ~frame["annotator"].is_in(found))
        better = frame.filter(~pl.Series(_surely_bad(frame), dtype=pl.Boolean))
        if not len(better):
            break
        more = [(row["annotator"], "better", _quality_in_words(row)) for row in better.iter_rows(named=True)]
        flags = pl.concat([flags, _with_reasons(more, flags.schema)])
        action |= dict.fromkeys(better["annotator"], "review")
    effect = None
    if without is not None:
        lost, n_changed = judged.judged_items & ~judged.select(~gone).judged_items, 0
        if known.nominal and known.grade is not None and without.grade is not None:
            moved = known.grade != without.grade
            tau = float((~moved).mean())
        else:
            first, then = known.ranks(), without.ranks()
            moved, tau = first != then, float(kendall_tau(known.scores, without.scores, known.items.query))
            n_changed = len(np.unique(known.items.query[(first == 1) != (then == 1)]))
        effect = Effect(tau, int(moved.sum()), len(known.items), n_changed, known.items.n_queries, int(lost.sum()))
    reasons = flags.group_by("annotator", maintain_order=True).agg(pl.col("reason").str.join("; "))
    shown = table.join(reasons, on="annotator", how="left", maintain_order="left")
    plain = pl.Series([_quality_in_words(row) for row in table.iter_rows(named=True)], dtype=pl.String)
    chosen = pl.Series("action", [action.get(who, "keep") for who in shown["annotator"]], dtype=pl.String)
    shown = shown.with_columns(chosen, pl.col("reason").fill_null(plain))
    place = pl.col("action").replace_strict({name: place for place, name in enumerate(_ACTIONS)})
    bounds = [name for name in ("lower", "upper") if name in table.columns]
    columns = ("annotator", "action", "reason", "quality", *bounds, "n_judgments")
    shown, weight = shown.sort(place, "quality", "annotator").select(columns), float(judged.row_weight[gone].sum())
    results: dict[str, Any] = {"consensus": known, "without": without, "effect": effect, "notes": tuple(notes)}
    return Actions(table=shown, flags=flags, n_judgments_dropped=weight, **results)


def _table(consensus: Consensus, judged: Judgments | Mixed, aggregator: Any) -> pl.DataFrame:
    """The annotators who judged something, with quality and its interval."""
    quality = consensus.quality
    if quality is None and aggregator is not None:
        quality = held_out_quality(aggregator, judged)
    frame = annotator_table(quality)
    if frame is None:
        raise ParameterError("the consensus has no quality of annotators; give the aggregator with method=")
    names = judged.annotators.ids.gather(np.unique(judged.annotator))
    # a file may hold as text what was a number
    frame = frame.with_columns(pl.col("annotator").cast(names.dtype, strict=False))
    missing = names.filter(~names.is_in(frame["annotator"].implode())) if len(frame) else names
    if len(missing):
        raise JudgmentError(fill(ACTIONS["stranger"], who=f"annotator {short(missing[0])}"))
    bounds = [name for name in ("lower", "upper") if name in frame.columns]
    here = frame.filter(frame["annotator"].is_in(names.implode()))
    return here.select("annotator", "quality", *bounds, "n_judgments")


def _flag_annotators(
    table: pl.DataFrame, judged: Judgments | Mixed, consensus: Consensus, known: Consensus
) -> pl.DataFrame:
    """Annotator, flag and reason, one row for each flag of each annotator."""
    habits: list[tuple[str | int, str, str]] = []
    # several kinds together have no habits, each has its own
    if not isinstance(judged, Mixed):
        odd, ids = consensus.diagnostics, judged.annotators.ids
        if odd is None or odd.dependence_table is None or not odd.annotators()["annotator"].equals(ids):
            odd = diagnose(judged, known)
        for habit, flagged in flagged_habits(judged, odd.annotators(), known.scores).items():
            habits += [(who, habit, numbers) for who, numbers in zip(flagged.ids, flagged.words, strict=True)]
        # those of a family that was found who err much as another of it does, with the one they agree with most
        family = odd.annotators().filter(pl.col("family").is_not_null()).select("annotator", "family")
        pairs = odd.dependence()
        both = pl.concat([pairs, pairs.rename({"annotator": "other", "other": "annotator"}).select(pairs.columns)])
        inside = both.join(family, on="annotator").join(family, left_on="other", right_on="annotator", suffix="_other")
        inside = inside.filter(pl.col("family") == pl.col("family_other"), pl.col("correlation") >= ALIKE)
        inside = inside.sort("excess", "annotator", "other", descending=[True, False, False])
        for row in inside.unique("annotator", keep="first", maintain_order=True).iter_rows(named=True):
            same = fill(ACTIONS["copies"], **{**row, "other": short(row["other"])})
            habits.append((row["annotator"], "copies", same))
    # answers that have little to do with the items are why nothing more can be told of whoever gave them
    explained = {who for who, habit, _ in habits if habit in EMPTY}
    in_words = map(_quality_in_words, table.iter_rows(named=True))
    rows = zip(table["annotator"], quality_flags(table), in_words, strict=True)
    flags = [row for row in rows if row[1] in BY_QUALITY or (row[1] and row[0] not in explained)]
    flags.sort(key=lambda flag: flag[1] in DOUBTS)
    schema: dict[str, Any] = {"annotator": table.schema["annotator"], "flag": pl.String, "reason": pl.String}
    return _with_reasons([*flags, *habits], schema)


def _with_reasons(flags: list[tuple[str | int, str, str]], schema: Any) -> pl.DataFrame:
    """Annotators with their flags, the numbers behind each becoming a reason."""
    rows = [(who, code, f"{FLAGS[code].noun} ({numbers})") for who, code, numbers in flags]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _quality_in_words(row: Mapping[str, Any]) -> str:
    """The quality of an annotator with its interval, in words."""
    return fill(ACTIONS["quality" if row.get("lower") is None else "quality_between"], **row)


def _choose_actions(table: pl.DataFrame, flags: pl.DataFrame, trusted: list[Any], notes: list[str]) -> dict[Any, str]:
    """The action for each annotator about whom something was found; doubts about it all go to the notes."""
    sure = dict(zip(table["annotator"], _surely_bad(table), strict=True))
    rows = {row["annotator"]: row for row in table.iter_rows(named=True)}
    action: dict[str | int, str] = {}
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
        notes.append(fill(ACTIONS["doubtful"], trusted=option("trusted")))
        return dict.fromkeys(action, "review")
    return action


def _surely_bad(table: pl.DataFrame) -> Bools:
    """Who is below 0.6 beyond doubt, this many annotators being looked at [Benjamini95]_."""
    from scipy.special import ndtr

    if "lower" not in table.columns:
        return np.zeros(len(table), bool)
    quality, lower, upper = (table[name].to_numpy() for name in ("quality", "lower", "upper"))
    error = np.maximum((upper - lower) / INTERVAL_WIDTH, 1e-9)
    return np.asarray(false_discovery_rates(ndtr(-(POOR - quality) / error)) <= FALSE_DROPS)
