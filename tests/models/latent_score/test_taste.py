"""A few people beside programs that judge much, and have tastes."""

import numpy as np
import polars as pl
import pytest
from benchmarks.judge_coverage import people_and_programs

import crowdrank as cr
from crowdrank.aggregators import LatentScore
from crowdrank.errors import DataWarning, ParameterError

PEOPLE = [f"p{place}" for place in range(5)]


def crowd(seed=0, own=0.3, common=0.0, programs=1, n_people=200, each=1500, m=10, ties=0.0):
    """Preferences of five people, and of programs that see other scores and like long answers."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, m)
    shared, rows = rng.normal(0, 1, m) * common, []
    seen = [(name, scores, n_people // 5, 1.0, 0.0) for name in PEOPLE]
    tastes = shared + own * rng.normal(0, 1, (programs, m))
    seen += [(f"j{place}", scores + taste / 1.3, each, 1.3, 0.5) for place, taste in enumerate(tastes)]
    for who, sees, n, alpha, length in seen:
        left = rng.integers(0, m, n)
        right = (left + rng.integers(1, m, n)) % m
        x = rng.normal(0, 1, n)
        felt = alpha * (sees[left] - sees[right]) + length * x + rng.logistic(size=n)
        winner = np.where(np.abs(felt) < ties, "tie", np.where(felt > 0, "left", "right"))
        queries = [f"{who} {place}" for place in range(n)]
        rows.append(pl.DataFrame({
            "query": queries, "left": left, "right": right, "winner": winner, "annotator": [who] * n, "length": x,
        }))  # fmt: skip
    return pl.concat(rows), scores


def read(table):
    return cr.Preferences.from_frame(table, covariates=["length"]).across_queries()


def differences(consensus, scores):
    """Error of each difference, and its standard error."""
    truth = scores[[int(one) for one in consensus.items.ids]]
    i, j = np.triu_indices(len(truth), 1)
    v = consensus.covariance[0]
    spread = np.sqrt(v[i, i] + v[j, j] - 2 * v[i, j])
    return consensus.scores[i] - consensus.scores[j] - (truth[i] - truth[j]), spread


@pytest.mark.parametrize(
    ("own", "common", "programs", "n_people"), [(0.0, 0.0, 1, 50), (0.6, 0.0, 1, 200), (0.3, 0.4, 3, 200)]
)
def test_intervals_cover(own, common, programs, n_people):
    inside, without = [], []
    for seed in range(3):
        table, scores = crowd(seed, own, common, programs, n_people)
        for taste, into in ((None, inside), (False, without)):
            found = LatentScore(taste=taste).fit(read(table), trusted=PEOPLE, control=["length"])
            error, spread = differences(found, scores)
            into.append((np.abs(error) < 1.96 * spread).mean())
            assert ("taste" in found.estimates) == (taste is None)
    assert np.mean(inside) > 0.88
    if own > 0:
        assert np.mean(without) < 0.85


def test_five_programs_beside_ten_judgments_of_each_person():
    """With so few judgments of those who set the scale, rounds once moved it to and fro without end."""
    inside = []
    for seed in range(2):
        preferences, scores = people_and_programs(seed, 5, 50)
        found = LatentScore().fit(preferences, trusted=PEOPLE, control=["length"])
        assert len(found.estimates["taste"]["annotators"]) == 5
        error, spread = differences(found, scores)
        inside.append((np.abs(error) < 1.96 * spread).mean())
    assert np.mean(inside) > 0.88


def test_people_decide_what_programs_do_not_know():
    table, scores = crowd(1, own=1.2, n_people=1000)
    both = LatentScore().fit(read(table), trusted=PEOPLE)
    program = LatentScore().fit(read(table.filter(pl.col("annotator") == "j0")))
    error, worse = (np.square(differences(one, scores)[0]).mean() for one in (both, program))
    assert error < 0.5 * worse
    taste = both.estimates["taste"]
    assert taste["annotators"] == ["j0"]
    assert taste["own_sd"] > 0.5


def test_neither_order_of_rows_nor_ties_matter():
    table, _ = crowd(2, ties=0.4, n_people=100)
    first = LatentScore(tol=1e-8, max_iter=2000).fit(read(table), trusted=PEOPLE)
    again = LatentScore(tol=1e-8, max_iter=2000).fit(
        read(table.sample(fraction=1, shuffle=True, seed=1)), trusted=PEOPLE
    )
    assert dict(zip(again.items.ids, again.scores, strict=True)) == pytest.approx(
        dict(zip(first.items.ids, first.scores, strict=True)), abs=1e-7
    )
    assert np.isfinite(first.covariance[0]).all()


def test_what_is_wrong_is_said():
    table, _ = crowd(3, each=300, m=6)
    with pytest.raises(ParameterError, match=r"taste is learned against trusted annotators; name them with trusted="):
        cr.aggregate(read(table), "latent_score", params={"taste": True})
    alone = cr.Preferences.from_frame(table)
    with pytest.raises(ParameterError, match="items of one query"):
        LatentScore(taste=True).fit(alone, trusted=PEOPLE)
    with pytest.raises(ParameterError, match="no cluster-robust errors for tastes"):
        cr.aggregate(read(table), "latent_score", trusted=PEOPLE, robust="query")


def test_few_judgments_have_no_taste():
    table, _ = crowd(4, each=20)
    assert "taste" not in LatentScore().fit(read(table), trusted=PEOPLE).estimates


def test_many_items_take_a_coarser_grid(monkeypatch):
    import crowdrank.models.latent_score.latent_score as room

    table, scores = crowd(5)
    fine = LatentScore().fit(read(table), trusted=PEOPLE)
    monkeypatch.setattr(room, "_MANY_ITEMS", 5)
    coarse = LatentScore().fit(read(table), trusted=PEOPLE)
    assert coarse.scores == pytest.approx(fine.scores, abs=0.15)
    assert coarse.std_error == pytest.approx(fine.std_error, rel=0.2)
    assert len(scores) == len(fine.scores)


def test_too_many_items_for_tastes_are_said(monkeypatch):
    import crowdrank.models.latent_score.latent_score as room

    table, _ = crowd(6, each=200, m=6)
    monkeypatch.setattr(room, "MAX_TASTE_ITEMS", 5)
    with pytest.warns(
        DataWarning, match=r"tastes are learned for up to 5 items, not for 6: every answer of 'j0' counts"
    ):
        found = LatentScore().fit(read(table), trusted=PEOPLE)
    assert "taste" not in found.estimates
    with pytest.raises(ParameterError, match="up to 5 items of one query"):
        LatentScore(taste=True).fit(read(table), trusted=PEOPLE)
