"""What is odd about judgments, as a verb and as part of every consensus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Diagnostics
from ..data.judgments import Preferences
from ..errors import ParameterError, UnidentifiedError
from ..io.truth import read_truth
from ..registry import method_class
from ..review import diagnosis as review
from ..review import findings as found
from ..review.actions import Actions, suggest_actions
from ..review.findings import Findings, facts_of
from ..review.fragility import Fragility, fragility_of
from ..wording import first_few, option
from .aggregation import aggregate, as_judgments, expect_one_kind, names_to_control


def diagnose(
    judgments: Any,
    consensus: Consensus | None = None,
    *,
    truth: Any | None = None,
    control: str | Sequence[str] | None = None,
) -> Diagnostics:
    """Return what is odd about judgments: bad habits of annotators, annotators who are not independent, items apart.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; or a frame, or a file's path.
    consensus
        Their consensus, by any method, or that of more judgments; ``None`` takes that of ``aggregate(judgments)``.
    truth
        What is known to be right, about items or pairs, as far as it is known. Errors are then measured by it, and
        those that most annotators have in common are found too, which agreement alone cannot show.
    control
        Covariates of preferences, as in :func:`aggregate`: the table has each annotator's coefficients, in log-odds at
        the root mean square of the covariate, with 90 % intervals. Where scores and covariate are confounded,
        coefficients are relative to those of the other annotators, and a message says so.

    Examples
    --------
    >>> rows = [(who, "q", f"x{i}", f"y{i}", "left" if i % 3 else "right") for i in range(30) for who in ("ann", "bob")]
    >>> rows += [("eve", "q", f"x{i}", f"y{i}", "left") for i in range(30)]
    >>> from crowdrank.data.judgments import Preferences
    >>> from crowdrank.aggregators import Borda
    >>> votes = Preferences.from_rows(rows)
    >>> found = diagnose(votes, Borda().fit(votes))
    >>> found.annotators().select("annotator", "share_left").rows()
    [('ann', 0.6666666666666666), ('bob', 0.6666666666666666), ('eve', 1.0)]
    >>> found.annotator_messages[0][:54]
    "1 annotator chooses one side whatever the items: 'eve'"
    """
    judged = expect_one_kind(as_judgments(judgments, control), "diagnose")
    known = None if truth is None else read_truth(truth)
    habits: list[found.Habit] = []
    relative: str | None = None
    if control is not None:
        names = names_to_control(judged, control)
        if not isinstance(judged, Preferences) or not judged.n_annotators:
            raise ParameterError(f"{option('control')} is about preferences of named annotators; leave it out")
        try:
            consensus = consensus or aggregate(judged, "latent_score", control=names, shared="none")
            habits = found.annotator_habits(consensus)
        except UnidentifiedError as error:
            coefficients = method_class("aggregator", "latent_score")().relative_coefficients(judged, names)
            relative = f"coefficients of annotators are relative to each other: {error}"
            judging = np.isin(np.arange(judged.n_annotators), judged.annotator)
            alone = judged.annotators.ids.filter(pl.Series(judging & ~coefficients.comparable.any(axis=1))).to_list()
            if alone:
                who = first_few(map(repr, alone))
                relative += f"; nothing is known about {who}, since nobody else judged the same pairs"
            habits = found.relative_habits(judged, names, coefficients)
    if consensus is None:
        consensus = aggregate(judged, shared="none")
    elif not isinstance(consensus, Consensus):
        raise ParameterError(f"consensus= takes a consensus, not a {type(consensus).__name__}; make one with aggregate")
    diagnostics = review.diagnose(judged, review.match_items(consensus, judged), known)
    if control is None:
        return diagnostics
    # with what annotators like
    table = diagnostics.annotator_table
    leaning = table["annotator"].gather(review.rows_with_side_bias(table)).to_list()
    for habit in habits:
        columns = {name: f"{habit.covariate}_{name}" for name in ("lower", "upper")}
        own = habit.table.rename({"coefficient": habit.covariate, **columns}).drop("odds")
        table = table.join(own, on="annotator", how="left", maintain_order="left")
    to_each_other = "" if relative is None else " (relative to the other annotators)"
    sentences = [f"{one.sentence}{to_each_other}" for one in found.habit_findings(consensus, habits, leaning=leaning)]
    return replace(
        diagnostics, annotator_table=table, annotator_messages=(*diagnostics.annotator_messages, *sentences),
        notes=diagnostics.notes if relative is None else (*diagnostics.notes, relative),
    )  # fmt: skip


def actions(consensus: Consensus, judgments: Any, *, method: Any | None = None, trusted: Any | None = None) -> Actions:
    """Return whom to keep, whom to look at and whom to leave out, and what the consensus would become without them.

    Left out are those who guess or answer the wrong way round, if that is certain enough: their quality lies below 0.6
    by more than chance explains, among this many annotators (of those named for this, one in 20 may be named wrongly);
    and those whose answers have little to do with the items: one side, one grade or a tie nearly always, or circles as
    guessing gives them. Nobody is left out for fewer than 20 judgments. To look at are those who may be poor, lean to
    one side, change their mind with the order of items, or make the mistakes of another, as copies do. It is a
    suggestion: nothing is left out of ``consensus`` itself. Who was to be left out for quality, but does better by the
    consensus of the others, is only to be looked at.

    Parameters
    ----------
    consensus
        The consensus of the judgments, from :func:`crowdrank.aggregate`.
    judgments
        The judgments; or a frame, or a file's path.
    method
        Aggregator for the fit without those to be left out, which starts from the consensus where it can; ``None``
        takes the method of the consensus.
    trusted
        Annotators known to be good: they are kept whatever speaks against them.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> rows = [(who, item, item) for who in ("ann", "bob", "cy") for item in range(20)]
    >>> rows += [("eve", item, -item) for item in range(20)]
    >>> votes = dict(zip(("annotator", "item", "grade"), zip(*rows)))
    >>> found = actions(aggregate(votes), votes)
    >>> found.dropped, found.frame()["reason"][0].partition(" (")[0]
    (['eve'], 'answers the wrong way round')
    >>> found.sentence
    'without that one the order would stay as it is, and 19 would still win'
    """
    return suggest_actions(consensus, as_judgments(judgments), method, trusted)


def fragility(
    consensus: Consensus, judgments: Any, a: Any | None = None, b: Any | None = None, *, query: Any | None = None
) -> Fragility:
    r"""Return how few votes, annotators or queries decide the first place, or between two items.

    At the maximum of the likelihood a vote with gradient :math:`g` in the scores adds :math:`g^\top v` to the gap of
    items :math:`i` and :math:`j`, where :math:`H v = e_i - e_j` and :math:`H` is the observed information, prior
    included [Broderick20]_. Votes are dropped in that order until the gap is used up, and refits find the least number
    near it. Of mean grades the number is exact. The same is done for annotators and, where items are ranked over
    queries, for queries.

    Parameters
    ----------
    consensus
        By bradley_terry, crowd_bt, latent_score, plackett_luce or mean_grade.
    judgments
        The judgments it was made from; a frame, or a file's path.
    a, b
        Two items, the order of which is to be turned; one alone is to be put before the first; none asks for any change
        of the first place.
    query
        Where there are several.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> rows = [(f"w{n}", "q", "x", "y", "left" if n < 7 else "right") for n in range(10)]
    >>> from crowdrank.data.judgments import Preferences
    >>> votes = Preferences.from_rows(rows)
    >>> found = fragility(aggregate(votes, "bradley_terry"), votes)
    >>> found.votes.number, found.other
    (5, 'y')
    """
    judged = as_judgments(judgments)
    return fragility_of(facts_of(consensus, judged).consensus, judged, a, b, query=query)


def findings(consensus: Consensus, judgments: Any | None = None) -> Findings:
    """Return what there is to say of a consensus: what won and how sure that is, whom to look at, what is missing.

    Parameters
    ----------
    consensus
        What a method found, best from :func:`crowdrank.aggregate`, which adds what is odd about the judgments.
    judgments
        The judgments it was made from; a frame, or a file's path; ``None`` leaves out what only they can tell.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 3, 1, 3, 1]}
    >>> found = findings(aggregate(votes), votes)
    >>> found.of("winner").sentence
    'x is first of 2 items: better than the next, y, with a probability of over 99 %'
    >>> found.of("judgments").numbers["n_judgments"]
    6
    """
    return found.findings_of(facts_of(consensus, None if judgments is None else as_judgments(judgments)))
