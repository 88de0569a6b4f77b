"""Bradley-Terry from preferences that say by how much: an oracle, derivatives, recovery, and what must not matter."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit
from scipy.stats import kendalltau

import crowdrank as cr
from crowdrank.aggregators import BradleyTerry
from crowdrank.cluster.packing import pack_judgments
from crowdrank.cluster.results import fit_in_one_pass
from crowdrank.errors import DataWarning
from crowdrank.models.pairs.bradley_terry import PairProblem
from crowdrank.quality import held_out_quality

CUTS = {True: (0.4, 1.2, 2.5), False: (0.0, 1.2, 2.5)}


def graded(n=600, n_items=12, seed=0, ties=True, n_queries=1):
    """A table of preferences in three steps and two covariates, and the true scores, (n_queries, n_items)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.2, (n_queries, n_items))
    query, left = rng.integers(0, n_queries, n), rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    x = rng.normal(size=n)
    seen = scores[query, left] - scores[query, right] + rng.logistic(size=n)
    strength = np.searchsorted(CUTS[ties], np.abs(seen)).astype(float)
    table = pl.DataFrame({
        "query": query, "left": left, "right": right, "annotator": rng.integers(0, 6, n), "strength": strength,
        "winner": np.where(strength == 0, "tie", np.where(seen > 0, "left", "right")), "length": x,
        "weight": rng.integers(1, 4, n) / 2,
    })  # fmt: skip
    return table, scores - scores.mean(axis=1, keepdims=True)


def read(table, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return cr.Preferences.from_frame(table, **more)


def fitted(table, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return BradleyTerry(tol=1e-10, **params).fit(read(table))


def by_id(consensus):
    return {(q, i): s for q, i, s in consensus.frame().sort("query", "item").select("query", "item", "score").rows()}


def objective(preferences, ridge, has_ties):
    """The penalised log-likelihood of scores and cuts, from the chances of a logistic variable between two cuts."""
    n, step = preferences.n_items, (preferences.outcome * preferences.strength).astype(int)

    def value(point):
        cuts = point[n:] if has_ties else np.append(0.0, point[n:])
        bounds = np.concatenate([[-np.inf], -cuts[::-1], cuts if has_ties else cuts[1:], [np.inf]])
        number = step + 3 - (0 if has_ties else step > 0)
        gap = point[preferences.left] - point[preferences.right]
        chance = expit(bounds[number + 1] - gap) - expit(bounds[number] - gap)
        if (chance <= 0).any():
            return -1e9
        return float((preferences.row_weight * np.log(chance)).sum() - 0.5 * ridge * (point**2).sum())

    return value


@pytest.mark.parametrize("ties", [True, False])
def test_equals_a_dense_maximiser(ties):
    table, _ = graded(250, 6, ties=ties)
    preferences, ridge = read(table), 0.5
    consensus = fitted(table, ridge=ridge)
    value, n = objective(preferences, ridge, ties), preferences.n_items
    start = np.concatenate([np.zeros(n), [0.5, 1.5, 3.0][0 if ties else 1 :]])
    best = minimize(lambda x: -value(x), start, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(consensus.scores, best[:n], atol=1e-5)
    cuts = consensus.estimates["cuts"]
    np.testing.assert_allclose(cuts[len(cuts) // 2 + (not ties) :], best[n:], atol=1e-5)
    assert cuts == [-cut for cut in cuts[::-1]]
    curvature = -np.array([
        approx_fprime(best, lambda x, k=k: approx_fprime(x, value, 1e-4)[k], 1e-4) for k in range(len(best))
    ])  # fmt: skip
    centre = np.eye(n) - 1 / n
    expected = centre @ np.linalg.inv(0.5 * (curvature + curvature.T))[:n, :n] @ centre
    np.testing.assert_allclose(consensus.covariance[0], expected, atol=2e-3 * expected.max())
    np.testing.assert_allclose(consensus.std_error**2, np.diag(consensus.covariance[0]), rtol=1e-9)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("control", [(), ("length",)])
def test_derivatives(ties, control):
    table, _ = graded(200, 5, ties=ties)
    problem = PairProblem.of(read(table, covariates=["length"]), "split", 0.1, control)
    rng, n, step = np.random.default_rng(1), problem.n_items, 1e-5
    point = problem.start() + rng.normal(0, 0.1, len(problem.start()))
    here = problem.evaluate(point)
    matrix = np.diag(here.degree + 0.1)
    first = np.repeat(np.arange(n), np.diff(problem.counts.starts))
    matrix[first, problem.counts.second] = matrix[problem.counts.second, first] = -here.bend
    matrix = np.block([[matrix, here.cross], [here.cross.T, here.curvature]])
    for place in range(len(point)):
        moved = np.zeros(len(point))
        moved[place] = step
        up, down = problem.evaluate(point + moved), problem.evaluate(point - moved)
        assert (up.value - down.value) / (2 * step) == pytest.approx(here.gradient[place], abs=1e-5)
        assert -(up.gradient - down.gradient) / (2 * step) == pytest.approx(matrix[place], abs=1e-5)
    assert np.linalg.eigvalsh(matrix)[0] > 0


def test_cuts_out_of_order_are_no_point():
    problem = PairProblem.of(read(graded(200, 5)[0]), "split", 0.1)
    point = problem.start()
    for wrong in ([-0.1, 1.0, 2.0], [0.5, 2.0, 1.0]):
        assert problem.evaluate(np.append(point[:5], wrong)).value == -np.inf


def test_strength_brings_scores_nearer_to_the_truth():
    ratios, gains = [], []
    for seed in range(8):
        table, truth = graded(300, 20, seed, ties=seed % 2 == 0)
        with_strength, without = fitted(table).scores, fitted(table.drop("strength")).scores
        ratios.append(np.square(with_strength - truth[0]).mean() / np.square(without - truth[0]).mean())
        gains.append(kendalltau(with_strength, truth[0])[0] - kendalltau(without, truth[0])[0])
    assert np.exp(np.mean(np.log(ratios))) < 0.85
    assert np.mean(gains) > 0.02


def test_scores_are_log_odds_of_winning_within_their_standard_errors():
    table, truth = graded(20_000, 30)
    consensus = fitted(table.drop("weight"))
    z = (consensus.scores - truth[0]) / consensus.std_error
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
    assert consensus.estimates["cuts"][3:] == pytest.approx(CUTS[True], abs=0.1)
    best, worst = int(truth.argmax()), int(truth.argmin())
    gap = truth[0, best] - truth[0, worst]
    share = 0.5 * (expit(gap - 0.4) + expit(gap + 0.4))
    assert consensus.win_rate(best, worst)["share"] == pytest.approx(share, abs=0.02)


def test_rows_names_and_sides_do_not_matter():
    table, _ = graded(300, 8, n_queries=2)
    consensus = fitted(table)
    expected = by_id(consensus)
    shuffled = by_id(fitted(table.sample(fraction=1, shuffle=True, seed=3)))
    turned = fitted(table.rename({"left": "right", "right": "left"}).with_columns(
        winner=pl.col("winner").replace({"left": "right", "right": "left"})))  # fmt: skip
    renamed = by_id(fitted(table.with_columns(left=100 - pl.col("left"), right=100 - pl.col("right"))))
    for key, score in expected.items():
        assert shuffled[key] == pytest.approx(score, abs=1e-9)
        assert by_id(turned)[key] == pytest.approx(score, abs=1e-9)
        assert renamed[key[0], 100 - key[1]] == pytest.approx(score, abs=1e-8)
    swap = {"left": "right", "right": "left", "tie": "tie"}
    opposite = fitted(table.with_columns(winner=pl.col("winner").replace(swap)))
    np.testing.assert_allclose(opposite.scores, -consensus.scores, atol=1e-9)


def test_a_row_twice_is_weight_two():
    table = graded(200, 8)[0].drop("weight").with_columns(strength=pl.col("strength") * (1 + pl.int_range(200)))
    for part in (table, table.with_columns(strength=pl.col("strength").clip(0, 2))):
        twice, heavy = fitted(pl.concat([part, part])), fitted(part.with_columns(weight=2.0))
        np.testing.assert_allclose(twice.scores, heavy.scores, atol=1e-8)
        np.testing.assert_allclose(twice.std_error, heavy.std_error, rtol=1e-7)
    assert len(fitted(table).estimates["cuts"]) == 14


def test_queries_share_the_cuts_only():
    table, truth = graded(4000, 8, n_queries=3)
    consensus = fitted(table)
    for query in range(3):
        alone = fitted(table.filter(pl.col("query") == query))
        part = slice(8 * query, 8 * query + 8)
        assert consensus.scores[part].sum() == pytest.approx(0, abs=1e-9)
        np.testing.assert_allclose(consensus.scores[part], alone.scores, atol=0.1)
    assert np.corrcoef(consensus.scores, truth.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("ties", ["split", "ignore", "davidson"])
def test_strengths_of_one_size_change_no_bit(ties):
    table, _ = graded(200, 8)
    plain, one = (
        fitted(part, ties=ties)
        for part in (table.drop("strength"), table.with_columns(strength=pl.col("strength").clip(0, 1)))
    )
    assert plain.scores.tobytes() == one.scores.tobytes()
    assert plain.std_error.tobytes() == one.std_error.tobytes()
    assert plain.estimates == one.estimates


def test_ties_may_be_ignored():
    table, _ = graded(300, 8)
    ignored, dropped = fitted(table, ties="ignore"), fitted(table.filter(pl.col("winner") != "tie"))
    np.testing.assert_allclose(ignored.scores, dropped.scores, atol=1e-9)
    assert ignored.estimates["cuts"][2] == 0


@pytest.mark.parametrize(
    ("winners", "bounded"),
    [
        (["A>>B", "A>B", "A>>B", "B>A"], True),
        (["A>>B", "A>>B", "A>>B", "B>A"], False),  # x wins by the largest step only
        (["A>>B", "A>B", "A>B", "B>A"], False),  # the cut of the largest step may rise with x
    ],
)
def test_whose_score_only_the_ridge_holds_is_said(winners, bounded):
    rows = {"left": ["x", "x", "y", "y"], "right": ["y", "z", "z", "z"], "winner": winners}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preferences = cr.Preferences.from_frame(rows)
        loose, free = (BradleyTerry(ridge=ridge, tol=1e-9).fit(preferences).scores for ridge in (1e-4, 1e-8))
    said = [warning for warning in caught if "'x' won every preference" in str(warning.message)]
    assert (len(said) == 0) == bounded
    assert all(warning.filename == __file__ for warning in said)
    assert (np.abs(loose - free).max() < 0.01) == bounded


@pytest.mark.parametrize("ties", [True, False])
def test_gradients_of_preferences_add_up(ties):
    table, _ = graded(300, 6, ties=ties)
    preferences = read(table, covariates=["length"])
    method = BradleyTerry(tol=1e-11)
    for control in (None, ["length"]):
        consensus = method.fit(preferences, control=control)
        found = method.score_gradients(preferences, consensus)
        total = np.bincount(found.item, found.value, preferences.n_items)
        np.testing.assert_allclose(total, 0.1 * consensus.scores, atol=1e-6)
        own = np.array(consensus.estimates["cuts"])
        own = own[own > 0]
        np.testing.assert_allclose(found.shared.value.sum(axis=0)[-len(own) :], 0.1 * own, atol=1e-6)
    preferences = read(table.with_columns(annotator=pl.int_range(len(table)) % 40))
    robust = cr.aggregate(preferences, "bradley_terry", robust="annotator")
    assert 0.6 < np.median(robust.std_error / method.fit(preferences).std_error) < 1.6


def test_a_covariate_is_controlled_for():
    table, truth = graded(6000, 8, ties=True)
    seen = truth[0][table["left"]] - truth[0][table["right"]] + 0.8 * table["length"].to_numpy()
    seen = seen + np.random.default_rng(5).logistic(size=len(table))
    strength = np.searchsorted(CUTS[True], np.abs(seen)).astype(float)
    winner = np.where(strength == 0, "tie", np.where(seen > 0, "left", "right"))
    preferences = read(table.with_columns(strength=strength, winner=winner), covariates=["length"])
    consensus = BradleyTerry().fit(preferences, control=["length"])
    found = consensus.estimates["control"]["length"]
    assert found["coefficient"] / found["unit"] == pytest.approx(0.8, abs=4 * found["std_error"] / found["unit"])
    assert np.corrcoef(consensus.scores, truth[0])[0, 1] > 0.99
    assert consensus.quality.frame()["quality"].min() > 0.5


def test_quality_bootstrap_and_scores_use_strength():
    table, _ = graded(300, 8)
    preferences, method = read(table), BradleyTerry()
    consensus = method.fit(preferences)
    np.testing.assert_allclose(method.scores(preferences), consensus.scores, atol=1e-7)
    assert consensus.quality.frame()["quality"].is_between(0.5, 1).all()
    drawn = cr.aggregate(preferences, "bradley_terry", bootstrap=40, seed=1)
    assert 0.6 < np.median(drawn.std_error / consensus.std_error) < 1.6


def test_quality_of_many_preferences_uses_strength(monkeypatch):
    table, _ = graded(300, 8)
    preferences = read(table)
    few = held_out_quality(BradleyTerry(), preferences).frame().sort("annotator")["quality"]
    monkeypatch.setattr("crowdrank.quality.MANY_PREFERENCES", 10)
    many = held_out_quality(BradleyTerry(), preferences).frame().sort("annotator")["quality"]
    np.testing.assert_allclose(many, few, atol=1e-9)
    own = BradleyTerry().fit(preferences).quality.frame().sort("annotator")["quality"]
    np.testing.assert_allclose(few, own, atol=1e-6)


def test_packed_preferences_keep_their_strength(tmp_path):
    table, _ = graded(400, 8, n_queries=3)
    packed = pack_judgments([read(table)], tmp_path, part_rows=100)
    found = fit_in_one_pass(BradleyTerry(), packed)
    whole = BradleyTerry().fit(read(table))
    assert found.estimates["cuts"] == pytest.approx(whole.estimates["cuts"], abs=1e-7)
    assert by_id(found) == pytest.approx(by_id(whole), abs=1e-7)
