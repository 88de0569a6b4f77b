"""What is odd about judgments, as a verb and as part of every consensus."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..data.consensus import Consensus
from ..data.diagnostics import Diagnostics
from ..data.intake import short
from ..data.judgments import Judgments, Mixed, Preferences
from ..data.mixed import parts_of
from ..errors import DataWarning, JudgmentError, ParameterError
from ..io.notices import say
from ..io.truth import read_truth


def diagnose(judgments: Any, consensus: Consensus | None = None, *, truth: Any | None = None) -> Diagnostics:
    """Return what is odd about judgments: bad habits of annotators, annotators who are not independent, items apart.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; or a frame, or a file's path.
    consensus
        Their consensus, by any method, or that of more judgments; ``None`` takes that of ``aggregate(judgments)``.
    truth
        What is known to be right, about items or pairs, as far as it is known. Errors are then told by it, and those
        that most annotators have in common are found too, which agreement alone cannot show.

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
    from .aggregation import aggregate, as_judgments, expect_one_kind

    judged = expect_one_kind(as_judgments(judgments), "diagnose")
    known = None if truth is None else read_truth(truth)
    if consensus is None:
        consensus = aggregate(judged)
    elif not isinstance(consensus, Consensus):
        raise ParameterError(f"consensus= takes a consensus, not a {type(consensus).__name__}; make one with aggregate")
    return diagnosed(judged, consensus_of(consensus, judged), known)


def diagnosed(judgments: Judgments, consensus: Consensus, truth: Any | None = None) -> Diagnostics:
    """Return the diagnostics of judgments whose items are those of the consensus."""
    from ..review.diagnosis import diagnose as look

    return look(judgments, consensus, truth)


def with_diagnostics(consensus: Consensus, judgments: Judgments | Mixed) -> Consensus:
    """Return the consensus with diagnostics for whoever asks; warns at once of what a glance shows.

    Judgments of several kinds have none of them together; :func:`diagnose` takes each kind with this consensus.
    """
    for part in parts_of(judgments):
        if isinstance(part, Preferences) and len(part):
            from ..review.sides import recorded_sentences, side_sentences

            for sentence in side_sentences(part, consensus.scores, glance=True):
                warnings.warn(sentence, DataWarning, stacklevel=3)
            if part.recorded is None:
                # of tables of winners and losers it was said when they were read
                for sentence in recorded_sentences(part, glance=True):
                    say(sentence)
    if isinstance(judgments, Mixed):
        return consensus
    return replace(consensus, diagnostics_source=partial(diagnosed, judgments, consensus))


def consensus_of(consensus: Consensus, judgments: Judgments | Mixed) -> Consensus:
    """Return the consensus with the items of the judgments, all of which it has to know."""
    items = judgments.items
    if consensus.items is items:
        return consensus
    single = consensus.items.single and items.single
    codes = consensus.items.codes(None if single else items.query_ids(), items.ids)
    if (codes < 0).any():
        missing = int(np.argmax(codes < 0))
        raise JudgmentError(
            f"the consensus does not know item {short(items.ids[missing])}; give the consensus of these judgments"
        )
    grade = None if consensus.grade is None else consensus.grade[codes]
    return Consensus(
        items=items, scores=consensus.scores[codes], method=consensus.method, params=consensus.params,
        levels=consensus.levels, grade=grade, nominal=consensus.nominal,
    )  # fmt: skip
