import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError


def answers(who, n, chance, rng, swap=False):
    """Preferences for x over y in each of n queries with these chances, sides as drawn."""
    rows = []
    for query, likely in enumerate(chance[:n]):
        winner = "x" if rng.uniform() < likely else "y"
        rows.append((who, f"q{query}", *(("y", "x") if swap and rng.uniform() < 0.5 else ("x", "y")), winner))
    return rows


def test_the_judge_is_corrected():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.2, 0.8, 2000)
    people = cr.Preferences.from_rows(answers("ann", 300, chance, rng, swap=True))
    judge = cr.Preferences.from_rows(answers("bot", 2000, np.clip(chance + 0.2, 0, 1), rng))
    found = cr.win_rate(people, judge, "x", "y")
    assert found["judge_share"] > 0.65
    assert found["lower"] < chance.mean() < found["upper"]
    assert found["n_both"] == 300
    assert found["n_judge"] == 1700
    mirrored = cr.win_rate(people.across_queries(), judge, "y", "x")
    assert mirrored["share"] == pytest.approx(1 - found["share"], abs=1e-12)
    assert mirrored["lower"] == pytest.approx(1 - found["upper"], abs=1e-12)


def test_orders_and_repeats_of_a_query_are_averaged():
    rng = np.random.default_rng(1)
    rows = answers("ann", 40, rng.uniform(0.3, 0.9, 40), rng)
    judge = cr.Preferences.from_rows(answers("bot", 200, rng.uniform(0.3, 0.9, 200), rng))
    once = cr.win_rate(cr.Preferences.from_rows(rows), judge, "x", "y")
    again = [(who, query, right, left, winner) for who, query, left, right, winner in rows]
    assert cr.win_rate(cr.Preferences.from_rows(rows + again), judge, "x", "y") == once


def test_what_cannot_be_told_is_refused():
    one = cr.Preferences.from_rows([("ann", "q1", "x", "y", "x"), ("ann", "q2", "x", "y", "y")])
    other = cr.Preferences.from_rows([("bot", "q8", "x", "y", "x"), ("bot", "q9", "x", "y", "y")])
    with pytest.raises(JudgmentError, match="0 queries in common"):
        cr.win_rate(one, other, "x", "y")
    with pytest.raises(JudgmentError, match="people never compared 'x' with 'z'"):
        cr.win_rate(one, other, "x", "z")
    with pytest.raises(ParameterError, match="against itself"):
        cr.win_rate(one, other, "x", "x")
    with pytest.raises(ParameterError, match=r"level=0\.95"):
        cr.win_rate(one, other, "x", "y", level=95)
    graded = cr.Grades.from_rows([("ann", "q", "x", 3)])
    with pytest.raises(JudgmentError, match="as_preferences"):
        cr.win_rate(graded, other, "x", "y")
