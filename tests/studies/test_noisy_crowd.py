"""The study of noisy crowds: a quick run, printed figures, and the crowds it makes."""

import numpy as np
import polars as pl
import pytest

from crowdrank.data.truth import Truth
from crowdrank.simulate import OneCoin, RoundRobin
from crowdrank_studies.noisy_crowd.crowds import (
    FIXED,
    IMPROVED,
    PAPER,
    Crowd,
    Part,
    Split,
    WholeQueries,
    _Pilot,
    noisy,
)
from crowdrank_studies.noisy_crowd.kumar_figures import CLEAN, CLEAN_MEAN, COLUMNS, EXTRA, MEAN, TABLE_1
from crowdrank_studies.noisy_crowd.noise_results import Results
from crowdrank_studies.noisy_crowd.regimes import (
    RANDOM,
    SCATTERED,
    SHORT,
    WHOLE,
    Regimes,
    mechanism_note,
    regime_cell,
    regime_verdicts,
)


@pytest.mark.data
def test_printed_figures_stand_in_the_table(ran):
    frame = ran("noisy-crowd").outcome.frame()
    real = frame.filter(pl.col("place") == "real crowds")
    assert set(real["method"]) == {"MV", "NB learned", "Dawid-Skene"}
    assert set(frame["method"].drop_nulls()) == {*PAPER, *FIXED, *IMPROVED, *real["method"]}
    table = frame.filter(pl.col("place") == "table 1")
    printed = table.filter(pl.col("noise") == "N(0.5,0.2)", pl.col("L") == "800", pl.col("paper").is_not_null())
    assert dict(printed.select(pl.concat_str("method", "measure", separator=" "), "paper").iter_rows()) == {
        "SL rank": 23.7, "MV rank": 24.5, "MV label": 52.6, "NB given rank": 22.2, "NB given label": 54.7,
        "NB learned rank": 22.2, "NB learned label": 54.7,
    }  # fmt: skip


def test_printed_averages_are_those_of_the_printed_figures():
    # the paper rounds to a tenth, and the first mean of its noise-free row is of the budgets above 0
    assert pytest.approx(np.mean([CLEAN[extra] for extra in EXTRA[1:]]), abs=0.051) == CLEAN_MEAN
    noises = {noise for noise, _, _ in TABLE_1}
    for noise in noises:
        for column in COLUMNS:
            mean = np.mean([TABLE_1[noise, column, str(extra)] for extra in EXTRA[1:]])
            assert TABLE_1[noise, column, MEAN] == pytest.approx(mean, abs=0.11), (noise, column)
    assert len(TABLE_1) == 5 * (1 + 5 * 5)


@pytest.fixture(scope="module")
def split():
    """1,600 items of 80 queries whose grade follows from two features."""
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(80), 20)
    matrix = rng.random((len(query), 2))
    grade = np.clip(np.round(3.4 * matrix[:, 0] - 0.9), 0, 2)
    part = Part(matrix, grade, query.astype(np.int32))
    ids = {"query": [f"q{one:03d}" for one in query], "item": [f"d{n:05d}" for n in range(len(query))], "grade": grade}
    return Split(Truth.from_frame(ids), part, part, part)


def test_all_methods_learn_from_a_good_crowd(split):
    found = noisy(split, "N(0.7,0.2)", 0, (0, 800))
    assert {name.rpartition("|")[0] for name in found} == {*PAPER, *FIXED, *IMPROVED}
    assert min(values[0] for values in found.values()) > 90
    assert found["NB given|800"][2] > found["SL|800"][2]


def test_one_level_for_all_items_leaves_them_tied(split):
    item = np.arange(800)
    tied = split.learn(item, np.zeros(800))
    assert tied[0] < split.learn(item, split.train.grade[item])[0] - 20


def test_methods_share_their_first_grades(split):
    crowd = Crowd(split, OneCoin(np.linspace(0.2, 0.9, 100)), 5)
    single = crowd.buy(RoundRobin(n_items=1200, n_judgments=1200, distinct=False))
    again = crowd.buy(RoundRobin(n_items=400, n_judgments=1200, distinct=False))
    for name in ("item", "annotator", "grade"):
        assert (getattr(single, name)[:400] == getattr(again, name)[:400]).all()
    assert len(set(single.item.tolist())) == 1200
    assert np.bincount(again.item).max() == 3


def test_fix_changes_adversarial_annotators_only(split):
    accuracy = np.where(np.arange(100) < 30, 0.05, 0.8)
    crowd = Crowd(split, OneCoin(accuracy), 2)
    outcomes = crowd.outcomes(0, improved=False)
    plain, fixed = outcomes["SL"], outcomes[FIXED[0]]
    order = np.argsort(plain.item)
    changed = fixed.target != plain.target[order]
    bought = crowd.repeat(800, 800)
    assert (changed == (bought.annotator < 30)[np.argsort(bought.item)]).all()
    assert fixed.right > plain.right


def test_whole_queries_come_one_after_the_other_and_nested(split):
    first, _ = WholeQueries(800, 800).rows(split.truth.items, 100, seed=4)
    more, _ = WholeQueries(1200, 1200).rows(split.truth.items, 100, seed=4)
    again, _ = WholeQueries(800, 1600).rows(split.truth.items, 100, seed=4)
    assert (more[:800] == first).all()
    assert (again[:800] == again[800:]).all()
    assert len(set((first // 20).tolist())) == 40


def test_short_descents_from_random_weights_are_under_fitted(split):
    cells = [
        (noise, regime_cell(split, noise, seed, (0, 800))) for noise in ("no noise", "N(0.7,0.2)") for seed in (0, 1)
    ]
    regimes = Regimes(cells)
    slow, fast = (regimes.clean(WHOLE, name)[0] for name in ("start 0.1, step 0.003, 5 passes", "converged"))
    assert slow < fast - 2
    assert set(RANDOM) < set(SHORT)
    assert regimes.has(SCATTERED, RANDOM[0])
    assert not regimes.has(SCATTERED, "converged")
    assert len(regime_verdicts(regimes)) == 4
    assert "more gradient steps" in mechanism_note(regimes)


def test_pilot_grades_few_items_five_times_and_others_once(split):
    item, annotator = _Pilot(500).rows(split.truth.items, 100, seed=1)
    counts = np.bincount(np.unique(item, return_counts=True)[1])
    assert len(item) == len(annotator) == 1000
    assert (counts[1], counts[5]) == (500, 100)
    assert set(item[:500].tolist()).isdisjoint(item[500:].tolist())


def test_results_compare_in_pairs():
    runs = [
        ("noise", {"SL|0": [1, 0, 50], "SL|800": [2, 0, 50], "MV|800": [1, 0, 60]}),
        ("noise", {"SL|0": [3, 0, 50], "SL|800": [4, 0, 50], "MV|800": [5, 0, 70]}),
    ]
    found = Results(["noise"], [0, 800], runs)
    assert found.extras("MV") == [800]
    assert found.difference("MV", "SL").tolist() == [-1, 1]
    assert found.values("noise", "SL", MEAN, "rank") == (2, 4)
    assert found.points("MV") == ([65.0], [3.0])
