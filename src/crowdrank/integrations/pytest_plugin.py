"""Assertions for suites that evaluate models or rankings: they pass on evidence, and fail where it is missing.

pytest finds them as the fixtures ``assert_ranked`` and ``assert_no_worse``; other runners import the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

try:
    import pytest
except ImportError:  # the assertions need no pytest, the fixtures do
    pytest = None  # type: ignore[assignment]


def assert_ranked(judgments: Any, *items: Any, level: float = 0.95, query: Any = None) -> None:
    """Fail unless the judgments show that the items stand in this order, best first.

    Each two neighbours are compared: the first has to be above the second with a probability of at least ``level``.
    All of them have to hold at once (an intersection-union test), so a wrong order passes with a chance of at most
    ``1 - level``, however many items there are.

    Parameters
    ----------
    judgments
        A consensus of :func:`crowdrank.aggregate`, or judgments to make one of: a frame or a file's path too.
    items
        Ids, best first; two or more.
    level
        Probability that is asked for; raise it where a wrong pass is dear.
    query
        Whose order; where there is only one it may be left out.

    Examples
    --------
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 3, 0, 3, 1]}
    >>> assert_ranked(votes, "x", "y")
    >>> assert_ranked(votes, "y", "x")
    Traceback (most recent call last):
        ...
    AssertionError: 'y' above 'x' is not shown: probability 0.000, 0.95 is asked for; the order found is x, y
    """
    import crowdrank as cr

    if len(items) < 2:
        raise cr.errors.ParameterError("assert_ranked compares items; name two or more, best first")
    _check_level(level)
    consensus = judgments if isinstance(judgments, cr.Consensus) else cr.aggregate(judgments)
    if consensus.uncertainty is None:
        raise cr.errors.ParameterError(
            f"{consensus.method} does not say how sure its scores are, so no order can be asserted; give a consensus "
            "with bootstrap=200"
        )
    missing = []
    for better, worse in pairwise(items):
        probability = consensus.beats(better, worse, query)
        if not probability >= level:
            missing.append(f"{better!r} above {worse!r} is not shown: probability {probability:.3f}")
    if missing:
        order = ", ".join(map(str, consensus.order(query)))
        raise AssertionError(f"{'; '.join(missing)}, {level:g} is asked for; the order found is {order}")


def assert_no_worse(
    old: Any, new: Any, *, margin: float, items: Any = None, level: float = 0.95, undecided: str = "fail"
) -> None:
    """Fail unless the new run is shown to be no worse than the old one by more than a margin: a non-inferiority test.

    Judgments are paired by annotator, query and item (:func:`crowdrank.changed`). An item passes where the lower end
    of its interval is above ``-margin``. A run with too few judgments to tell does not pass: finding no difference in
    little data shows nothing.

    Parameters
    ----------
    old, new
        Judgments of the two runs: frames, or files' paths too.
    margin
        How much worse would be tolerated: of grades in their own unit, of preferences in shares of wins.
    items
        Those to look at; ``None`` for all that both runs judged.
    level
        Of the intervals, over all items of the runs together.
    undecided
        What to do where judgments are too few to decide: ``"fail"``, or ``"skip"`` the test, or ``"pass"``. An item
        that is shown to be worse, and not shown to be within the margin, fails in any case.

    Examples
    --------
    >>> rows = [(f"w{n % 5}", f"q{n}", "x", 3 + n % 2) for n in range(40)]
    >>> better = [(who, query, item, grade + (query < "q3")) for who, query, item, grade in rows]
    >>> import crowdrank as cr
    >>> old, new = cr.Grades.from_rows(rows), cr.Grades.from_rows(better)
    >>> assert_no_worse(old, new, margin=0.1)
    >>> assert_no_worse(new, old, margin=0.1)
    Traceback (most recent call last):
        ...
    AssertionError: x is worse: -0.575 (-0.735 to -0.415) by 40 pairs, and 0.1 is tolerated
    """
    import crowdrank as cr

    if not margin > 0:
        raise cr.errors.ParameterError(
            f"margin={margin!r} tolerates nothing, which no number of judgments can show; give the loss that you would "
            "accept, such as 0.1 of a grade or 0.02 of the wins"
        )
    if undecided not in ("fail", "skip", "pass"):
        raise cr.errors.ParameterError(f"undecided={undecided!r} is not understood; give 'fail', 'skip' or 'pass'")
    _check_level(level)
    rows = cr.changed(old, new, level=level).frame().to_dicts()
    if items is not None:
        wanted = [str(item) for item in ([items] if isinstance(items, str | int) else items)]
        absent = sorted(set(wanted) - {row["item"] for row in rows})
        if absent:
            raise cr.errors.JudgmentError(
                f"item {absent[0]!r} was not judged twice or more in both runs, so it cannot be compared; leave it out"
            )
        rows = [row for row in rows if row["item"] in wanted]
    worse, unknown = [], []
    for row in rows:
        said = (
            f"{row['difference']:+.3g} ({row['lower']:+.3g} to {row['upper']:+.3g}) by {row['n_pairs']} pairs, and "
            f"{margin:g} is tolerated"
        )
        if row["upper"] < 0 and row["lower"] <= -margin:
            worse.append(f"{row['item']} is worse: {said}")
        elif row["lower"] <= -margin:
            # the interval narrows with the root of the pairs
            reach = row["difference"] - row["lower"]
            room = row["difference"] + margin
            more = f"; about {round(row['n_pairs'] * (reach / room) ** 2)} pairs would decide" if room > 0 else ""
            unknown.append(f"{row['item']} is not shown to be no worse: {said}{more}")
    if worse or (unknown and undecided == "fail"):
        raise AssertionError("; ".join([*worse, *unknown]))
    if unknown and undecided == "skip":
        if pytest is None:
            raise cr.errors.MissingExtraError("only pytest can skip a test; install pytest, or give undecided='fail'")
        pytest.skip("; ".join(unknown))


def _check_level(level: float) -> None:
    """Refuse what is no level of confidence."""
    from crowdrank.errors import ParameterError

    if not 0.5 <= level < 1:
        raise ParameterError(f"level={level!r} is not a probability from 0.5 to below 1; give 0.95, for example")


if pytest is not None:

    @pytest.fixture(name="assert_ranked", scope="session")
    def _assert_ranked() -> Callable[..., None]:
        """Fail unless judgments show an order: ``assert_ranked(votes, "best", "second")``."""
        return assert_ranked

    @pytest.fixture(name="assert_no_worse", scope="session")
    def _assert_no_worse() -> Callable[..., None]:
        """Fail unless a run is shown to be no worse than another: ``assert_no_worse(old, new, margin=0.1)``."""
        return assert_no_worse
