"""What is odd about judgments, as a verb and as part of every consensus."""

from __future__ import annotations

import warnings
from typing import Any

from ..data.consensus import Consensus
from ..data.diagnostics import Diagnostics
from ..data.judgments import Judgments, Mixed, Preferences
from ..data.mixed import parts_of
from ..errors import DataWarning, ParameterError
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
    from ..review import diagnosis as review
    from .aggregation import aggregate, as_judgments, expect_one_kind

    judged = expect_one_kind(as_judgments(judgments), "diagnose")
    known = None if truth is None else read_truth(truth)
    if consensus is None:
        consensus = aggregate(judged)
    elif not isinstance(consensus, Consensus):
        raise ParameterError(f"consensus= takes a consensus, not a {type(consensus).__name__}; make one with aggregate")
    return review.diagnose(judged, review.matched(consensus, judged), known)


def warn_of_sides(consensus: Consensus, judgments: Judgments | Mixed) -> None:
    """Warn at once of annotators who choose one side, and say where the sides are the recorder's."""
    for part in parts_of(judgments):
        if isinstance(part, Preferences) and len(part):
            from ..review.sides import recorded_sentences, side_sentences

            for sentence in side_sentences(part, consensus.scores, glance=True):
                warnings.warn(sentence, DataWarning, stacklevel=3)
            if part.recorded is None:
                # of tables of winners and losers it was said when they were read
                for sentence in recorded_sentences(part, glance=True):
                    say(sentence)
