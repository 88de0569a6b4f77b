import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import crowdrank as cr
from crowdrank.aggregators import BradleyTerry
from crowdrank.errors import DataWarning, JudgmentError, ParameterError, UnknownNameError

GAMMA = np.array([0.8, -0.5])


def arena(n=4000, n_items=12, seed=0, ties=0.0, side=0.3):
    """Preferences of models over prompts whose answers differ in two covariates."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 0.8, n_items)
    left = rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    habit = rng.normal(0, 0.5, (n_items, 2))
    x = habit[left] - habit[right] + rng.normal(0, 1, (n, 2))
    won = rng.uniform(size=n) < expit(scores[left] - scores[right] + x @ GAMMA + side)
    winner = np.where(rng.uniform(size=n) < ties, "tie", np.where(won, "left", "right"))
    table = pl.DataFrame({
        "query": np.arange(n), "left": left, "right": right, "winner": winner, "annotator": rng.integers(0, 10, n),
        "length": 50 * x[:, 0], "bold": x[:, 1],
    })  # fmt: skip
    return table, scores - scores.mean()


def read(table, names=("length", "bold")):
    return cr.Preferences.from_frame(table, covariates=list(names)).across_queries()


def test_coefficients_and_scores_come_back():
    table, truth = arena()
    consensus = BradleyTerry().fit(read(table), control=["length", "bold"])
    control = consensus.estimates["control"]
    for name, true, scale in zip(("length", "bold"), GAMMA, (50, 1), strict=True):
        found = control[name]
        assert found["coefficient"] / found["unit"] == pytest.approx(
            true / scale, abs=4 * found["std_error"] / found["unit"]
        )
        assert found["identified"] > 0.5
    assert consensus.estimates["side"]["coefficient"] == pytest.approx(0.3, abs=0.15)
    plain = BradleyTerry().fit(read(table))
    assert np.abs(consensus.scores - truth).mean() < 0.6 * np.abs(plain.scores - truth).mean()
    covered = np.abs(consensus.scores - truth) < 2.6 * consensus.std_error
    assert covered.mean() > 0.8


@pytest.mark.parametrize("ties", ["split", "davidson", "ignore"])
def test_sides_rows_and_units_change_nothing(ties):
    table, _ = arena(n=700, ties=0.2)
    fit = BradleyTerry(ties=ties, tol=1e-10)
    first = fit.fit(read(table), control=["length", "bold"])
    swap = {"left": "right", "right": "left", "tie": "tie"}
    other = table.select(
        "query", "annotator", left="right", right="left", winner=pl.col("winner").replace(swap),
        bold=-pl.col("bold"), length=-1000 * pl.col("length"),
    )  # fmt: skip
    again = fit.fit(read(other), control=["length", "bold"])
    for name, unit in (("length", 1000), ("bold", 1)):
        one, two = (found.estimates["control"][name] for found in (first, again))
        assert two["unit"] == pytest.approx(unit * one["unit"])
        assert two["coefficient"] == pytest.approx(one["coefficient"], abs=1e-9)
    assert again.estimates["side"]["coefficient"] == pytest.approx(-first.estimates["side"]["coefficient"], abs=1e-9)
    assert again.scores == pytest.approx(first.scores, abs=1e-9)
    shuffled = fit.fit(read(table.sample(fraction=1, shuffle=True, seed=4)), control=["length", "bold"])
    assert shuffled.scores == pytest.approx(first.scores, abs=1e-9)


def test_a_row_twice_is_a_weight_of_two():
    table, _ = arena(n=300)
    twice = read(pl.concat([table, table.with_columns(query=pl.col("query") + 1000)]))
    heavy = read(table.with_columns(weight=pl.lit(2.0)))
    fits = [BradleyTerry(tol=1e-11).fit(p, control=["length"]) for p in (twice, heavy)]
    assert fits[1].scores == pytest.approx(fits[0].scores, abs=1e-9)
    assert fits[1].std_error == pytest.approx(fits[0].std_error, rel=1e-6)


def test_equals_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    table, _ = arena(n=1500, n_items=8)
    preferences = read(table)
    found = BradleyTerry(ridge=1e-3, tol=1e-10).fit(preferences, control=["length", "bold"])
    rows = np.zeros((1500, 8))
    rows[np.arange(1500), preferences.left] += 1
    rows[np.arange(1500), preferences.right] -= 1
    values = preferences.covariates / np.sqrt((preferences.covariates**2).mean(axis=0))
    design = np.column_stack([rows, values, np.ones(1500)])
    peer = LogisticRegression(C=1000, fit_intercept=False, tol=1e-10, max_iter=5000)
    peer.fit(design, preferences.outcome > 0)
    assert found.scores == pytest.approx(peer.coef_[0][:8], abs=1e-4)
    control = [found.estimates["control"][name]["coefficient"] for name in ("length", "bold")]
    assert [*control, found.estimates["side"]["coefficient"]] == pytest.approx(peer.coef_[0][8:], abs=1e-4)


@pytest.mark.parametrize("tie", [0.0, 0.7])
def test_derivatives(tie):
    from crowdrank.models.pairs.bradley_terry import PairProblem

    table, _ = arena(n=200, n_items=5, ties=0.3)
    problem = PairProblem.of(read(table), "davidson" if tie else "split", 0.1, ["length", "bold"])
    rng = np.random.default_rng(0)
    point = rng.normal(0, 0.5, len(problem.start()))
    here, step = problem.evaluate(point), 1e-5
    n = problem.n_items
    for place in range(len(point)):
        moved = np.zeros(len(point))
        moved[place] = step
        up, down = problem.evaluate(point + moved), problem.evaluate(point - moved)
        assert (up.value - down.value) / (2 * step) == pytest.approx(here.gradient[place], abs=1e-5)
        bent = -(up.gradient - down.gradient) / (2 * step)
        if place >= n:
            assert bent[:n] == pytest.approx(here.cross[:, place - n], abs=1e-5)
            assert bent[n:] == pytest.approx(here.curvature[:, place - n], abs=1e-5)
        else:
            assert bent[place] == pytest.approx(here.degree[place] + 0.1, abs=1e-5)


def test_large_matrices_are_solved_in_steps(monkeypatch):
    import crowdrank.kernels.laplacian as laplacian

    table, _ = arena(n=500)
    whole = BradleyTerry(tol=1e-10).fit(read(table), control=["length", "bold"])
    monkeypatch.setattr(laplacian, "_LARGEST_WHOLE", 3)
    steps = BradleyTerry(tol=1e-10).fit(read(table), control=["length", "bold"])
    assert steps.scores == pytest.approx(whole.scores, abs=1e-8)
    assert steps.std_error == pytest.approx(whole.std_error, rel=1e-6)


def test_many_preferences_start_from_a_part_in_several_threads(monkeypatch):
    import crowdrank.models.pairs.bradley_terry as room
    from crowdrank.models.pairs.kernels import pair_likelihood as kernel

    table, _ = arena(n=1200, n_items=6)
    heavy = read(table.with_columns(weight=pl.Series(np.tile([1.0, 1.0, 0.5], 400))))
    whole = BradleyTerry(tol=1e-9).fit(heavy, control=["length", "bold"])
    monkeypatch.setattr(room, "_MIN_PART_ROWS", 100)
    monkeypatch.setattr(room, "_MIN_PART_ROWS_PER_ITEM", 1)
    monkeypatch.setattr(kernel, "_ROWS_PER_THREAD", 300)
    parts = BradleyTerry(tol=1e-9).fit(heavy, control=["length", "bold"])
    assert parts.scores == pytest.approx(whole.scores, abs=1e-8)
    assert parts.std_error == pytest.approx(whole.std_error, rel=1e-8)
    assert parts.trace.n_iter < whole.trace.n_iter
    assert parts.trace.log_likelihood[-1] == pytest.approx(whole.trace.log_likelihood[-1], rel=1e-10)


def test_what_cannot_be_told_apart_is_refused():
    table, _ = arena(n=400)
    preferences = cr.Preferences.from_frame(table, covariates=["length"])
    with pytest.raises(JudgmentError, match="length does not vary within pairs of items"), pytest.warns(DataWarning):
        BradleyTerry().fit(preferences, control=["length"])
    # one if left is the first item, less one if right is
    is_first = (pl.col("left") == 0).cast(pl.Float64) - (pl.col("right") == 0).cast(pl.Float64)
    with pytest.raises(
        JudgmentError, match="length does not vary within pairs of items, so scores and length are confounded"
    ):
        BradleyTerry().fit(read(table.with_columns(length=is_first)), control=["length"])
    hardly = table.with_columns(length=is_first + 0.0012 * pl.col("length"))
    with pytest.warns(DataWarning, match=r"only \d % of the variation of length is within pairs of items"):
        BradleyTerry().fit(read(hardly), control=["length"])
    with pytest.raises(UnknownNameError, match="no covariate 'lenght'; did you mean"):
        BradleyTerry().fit(read(table), control=["lenght"])
    with pytest.raises(ParameterError, match="takes no"):
        cr.aggregate(read(table), "elo", control=["length"])


@pytest.mark.filterwarnings("ignore:.*repeat one by the same annotator")
def test_the_verb_reads_columns():
    table, _ = arena(n=600)
    found = cr.aggregate(
        table.drop("query").with_columns(length_a=pl.col("length") + 200, length_b=pl.lit(200.0)).drop("length"),
        "bradley_terry", control="length:difference,bold",
    )  # fmt: skip
    again = BradleyTerry().fit(read(table.drop("query")), control=["length", "bold"])
    assert found.scores == pytest.approx(again.scores, abs=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_covariates_that_tell_nothing_are_refused():
    table, _ = arena(n=400)
    for method in ("bradley_terry", "latent_score"):
        same = read(table.with_columns(length=pl.lit(3.0)))
        with pytest.raises(JudgmentError, match="'length' is the same in all preferences, which is a favour of one"):
            cr.aggregate(same, method, control=["length"])
        nearly = read(table.with_columns(length=5.0 + pl.col("bold")))
        with pytest.warns(DataWarning, match="length is nearly the same in all preferences, so it is hardly told from"):
            cr.aggregate(nearly, method, control=["length"])
        none = read(table.with_columns(length=pl.lit(0.0)))
        with pytest.raises(
            JudgmentError, match=r"covariate 'length' is 0 in .*; control for the others: control='bold'"
        ):
            cr.aggregate(none, method, control=["length", "bold"])
        with pytest.raises(JudgmentError, match=r"covariate 'length' is 0 in all preferences.*; leave control= out"):
            cr.aggregate(none, method, control=["length"])
    ties = read(table.with_columns(winner=pl.lit("tie")))
    with pytest.raises(
        JudgmentError, match="no preference is left to tell the coefficient of length from: all are ties"
    ):
        BradleyTerry(ties="ignore").fit(ties, control=["length"])
    assert not BradleyTerry().fit(ties, control=["length"]).scores.any()


def test_a_transform_that_was_not_read_is_refused():
    table, _ = arena(n=300)
    two = table.with_columns(length_left=500 + pl.col("length"), length_right=pl.lit(500.0)).drop("length")
    ratio, log = (
        cr.Preferences.from_frame(two, covariates=[name]).across_queries() for name in ("length", "length:log")
    )
    with pytest.raises(
        JudgmentError, match=r"have 'length' as ratio, not as log; read them with covariates=\['length:"
    ):
        cr.aggregate(ratio, control=["length:log"])
    with pytest.raises(JudgmentError, match="as ratio, not as log"):
        cr.diagnose(ratio, control=["length:log"])
    named, plain = (cr.aggregate(log, "bradley_terry", control=[name]) for name in ("length:log", "length"))
    assert (named.scores == plain.scores).all()
