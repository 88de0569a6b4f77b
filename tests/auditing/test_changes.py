"""``cr.changed``: paired runs, what caused a change, and looks that may be repeated."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.auditing.changes import betting_interval, log_capital
from crowdrank.errors import JudgmentError, ParameterError


def runs(shift=0.0, n=80, seed=0, only=None, merged=True):
    """Grades of three items over prompts in two runs by the same two judges; one item moves."""
    rng = np.random.default_rng(seed)
    frames = []
    for run in range(2):
        rows = [
            (who, f"p{k}", f"m{m}", float(np.round(3 + m / 2 + rng.normal() / 2
                                                    + (run * shift if m == 1 and (only or who) == who else 0), 2)))
            for k in range(n) for who in ("ann", "bob") for m in range(3)
        ]  # fmt: skip
        grades = cr.Grades.from_rows(rows)
        frames.append(grades.across_queries() if merged else grades)
    return frames


def test_a_move_is_found_and_the_others_are_not():
    found = cr.changed(*runs(-0.4))
    changes = dict(found.frame().select("item", "change").rows())
    assert changes == {"m1": "worse", "m0": "none", "m2": "none"}
    assert found.counts().row(0, named=True) == {"better": 0, "worse": 1, "changed": 1, "n_items": 3}
    assert found.sentences[0].startswith("m1 is worse: ")
    row = found.frame().filter(item="m1").row(0, named=True)
    assert row["lower"] < row["difference"] < row["upper"] < 0


def test_who_caused_it_is_named():
    found = cr.changed(*runs(-0.8, only="bob"))
    cause = found.causes.filter(unit="annotator").row(0, named=True)
    assert cause["id"] == "bob"
    assert cause["share"] > 0.8


@pytest.mark.parametrize("looks", ["once", "anytime"])
def test_nothing_is_called_a_change_where_nothing_changed(looks):
    false = sum(cr.changed(*runs(seed=seed), looks=looks).counts()["changed"][0] > 0 for seed in range(40))
    assert false <= 6


def test_preferences_of_two_runs():
    rng = np.random.default_rng(0)

    def votes(edge):
        rows = [("judge", f"p{k}", "x", "y", "left" if rng.random() < 0.5 + edge else "right") for k in range(300)]
        return cr.Preferences.from_rows(rows).across_queries()

    found = cr.changed(votes(0.0), votes(0.3))
    assert dict(found.frame().select("item", "change").rows()) == {"x": "better", "y": "worse"}


@pytest.mark.parametrize(("wins", "n"), [(5, 9), (40, 60), (330, 600)])
def test_bets_on_coins_are_those_of_robbins(wins, n):
    """Against a fair coin the integral of (1 + c)^wins (1 - c)^losses is an incomplete beta function [Robbins70]."""
    from scipy.special import betaincc, betaln

    coins = np.arange(n) < wins
    wanted = (n + 1) * np.log(2) + betaln(wins + 1, n - wins + 1) + np.log(betaincc(wins + 1, n - wins + 1, 0.5))
    assert log_capital(coins.astype(float), 0.5) == pytest.approx(wanted, abs=1e-6)


def test_bets_equal_an_exact_twin_and_the_interval_is_where_they_reach_the_level():
    """The product of 1 + c (x / m - 1) as a polynomial in c with fractions, integrated term by term."""
    values = [Fraction(k, 20) for k in (3, 18, 11, 14, 12, 16, 8, 15, 13, 17, 11, 20, 0, 14)]

    def twin(values, mean):
        terms = [Fraction(1)]
        for x in values:
            edge = x / mean - 1
            terms = [a + edge * b for a, b in zip([*terms, 0], [0, *terms], strict=True)]
        return math.log(sum(term / (power + 1) for power, term in enumerate(terms)))

    x = np.array([float(one) for one in values])
    for mean in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        assert log_capital(x, float(mean)) == pytest.approx(twin(values, mean), abs=1e-9)
    low, high = betting_interval(x, 0.05)
    assert twin(values, Fraction(low)) == pytest.approx(math.log(40), abs=1e-6)
    assert twin([1 - one for one in values], 1 - Fraction(high)) == pytest.approx(math.log(40), abs=1e-6)
    assert betting_interval(x[::-1], 0.05) == pytest.approx((low, high), abs=1e-9)
    assert betting_interval(np.zeros(30), 0.05)[0] == 0.0
    assert betting_interval(np.ones(30), 0.05)[1] == 1.0


def test_false_alarms_under_daily_looks():
    """Sixty looks at runs that do not differ, the second judge of a prompt coming a day later: at most 5 % in all."""
    from crowdrank.metrics.significance import mean_interval

    rng = np.random.default_rng(4)
    n, alarms = 150, {"anytime": 0, "once": 0}
    for _ in range(n):
        grades = np.clip(np.round(3 + rng.normal(size=(420, 1, 1)) + rng.normal(size=(420, 2, 2))), 1, 5)
        move = grades[..., 1] - grades[..., 0]
        looks = []
        for day in range(1, 61):
            seen = move[: 7 * day].mean(axis=1)
            seen[7 * (day - 1) :] = move[7 * (day - 1) : 7 * day, 0]
            looks.append(seen)
        alarms["anytime"] += any(
            max(log_capital(0.5 + sign * one / 8, 0.5) for sign in (1, -1)) >= math.log(2 / 0.05) for one in looks
        )
        alarms["once"] += any(low > 0 or high < 0 for low, high in map(mean_interval, looks))
    assert alarms["anytime"] <= 0.05 * n
    assert alarms["once"] > 0.2 * n


def test_refusals():
    old, new = runs()
    with pytest.raises(JudgmentError, match="no judgment in common"):
        cr.changed(old, cr.Grades.from_rows([("zoe", "p1", "m1", 2.0), ("zoe", "p2", "m1", 2.0)]))
    with pytest.raises(ParameterError, match="'anytime'"):
        cr.changed(old, new, looks="often")
    classes = cr.Grades.from_rows([("a", "q", "x", "red")], nominal=True)
    with pytest.raises(JudgmentError, match="do not get better or worse"):
        cr.changed(classes, classes)


def test_the_command_ends_with_a_code(tmp_path, monkeypatch, capsys):
    from crowdrank.cli.running import main

    monkeypatch.chdir(tmp_path)
    for name, one in zip(("old.csv", "new.csv"), runs(-0.5, merged=False), strict=True):
        one.frame().write_csv(name)
    words = ["changed", "old.csv", "new.csv", "--across-queries", "-q"]
    assert main([*words, "-o", "c.csv", "--causes", "why.csv"]) == 0
    assert pl.read_csv("c.csv")["change"].to_list().count("worse") == 1
    assert main([*words, "--fail-if", "worse>0"]) == 3
    assert main([*words, "--fail-if", "better>0"]) == 0


def test_anytime_bets_on_the_whole_scale(tmp_path, monkeypatch, capsys):
    from crowdrank.cli.running import main

    rows = [(f"w{n}", f"q{n}", "x", 3 + n % 2) for n in range(40)]
    later = [(who, q, item, 3 + (n + n // 4) % 2) for n, (who, q, item, _) in enumerate(rows)]
    seen = [cr.Grades.from_rows(part).across_queries() for part in (rows, later)]
    told = [cr.Grades.from_rows(part, levels=[1, 2, 3, 4, 5]).across_queries() for part in (rows, later)]

    def width(pair, **how):
        row = cr.changed(*pair, looks="anytime", **how).frame().row(0, named=True)
        return row["upper"] - row["lower"]

    assert width(told) > 1.5 * width(seen)
    assert width(seen, scale=(1, 5)) == pytest.approx(width(told))
    with pytest.raises(JudgmentError, match="beyond the scale of 1 to 3; give the whole scale"):
        cr.changed(*seen, looks="anytime", scale=(1, 3))
    with pytest.raises(ParameterError, match="lowest and the highest grade"):
        cr.changed(*seen, scale=(5,))
    monkeypatch.chdir(tmp_path)
    for name, part in (("old.csv", rows), ("new.csv", later)):
        pl.DataFrame(part, schema=["annotator", "query", "item", "grade"], orient="row").write_csv(name)
    words = ["changed", "old.csv", "new.csv", "--across-queries", "--looks", "anytime", "-q", "-o", "c.csv"]
    assert main([*words, "--range", "1,5"]) == 0
    row = pl.read_csv("c.csv").row(0, named=True)
    assert row["upper"] - row["lower"] == pytest.approx(width(told), abs=1e-4)
    assert main([*words, "--range", "1"]) == 2
    assert "lowest and the highest grade" in capsys.readouterr().err
