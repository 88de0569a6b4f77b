"""Coefficients of covariates of each annotator, pooled."""

import numpy as np
import polars as pl
import pytest
from benchmarks.judge_coverage import judges as judges_of_both_sides
from scipy.special import expit

import crowdrank as cr
from crowdrank.aggregators import BradleyTerry, LatentScore
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.models.latent_score.kernels.ordinal import covariate_shifts
from crowdrank.models.latent_score.model import lay_out
from crowdrank.models.latent_score.steps import Options, fit_scores


def judges(each=100, n=20, n_items=20, sd=0.5, ties=0.0, lapse=0.0, seed=0):
    """Preferences of annotators who like long items each in a way of their own."""
    rng = np.random.default_rng(seed)
    annotator, rows = np.repeat(np.arange(n), each), each * n
    scores = rng.normal(0, 1, n_items)
    left = rng.integers(0, n_items, rows)
    right = (left + rng.integers(1, n_items, rows)) % n_items
    habit = rng.normal(0, 0.7, n_items)
    x = habit[left] - habit[right] + rng.normal(0, 1, rows)
    x /= np.sqrt((x**2).mean())
    own, side = 0.3 + rng.normal(0, sd, n), rng.normal(0, 0.3, n)
    seen = scores[left] - scores[right] + side[annotator] + own[annotator] * x + rng.logistic(size=rows)
    winner = np.where(np.abs(seen) < ties, "tie", np.where(seen > 0, "left", "right"))
    winner = np.where(rng.uniform(size=rows) < lapse, "left", winner)
    table = pl.DataFrame({
        "query": np.arange(rows), "left": left, "right": right, "winner": winner,
        "annotator": annotator, "length": x, "other": rng.normal(0, 2, rows),
    })  # fmt: skip
    return table, scores - scores.mean(), own


def read(table, names=("length",)):
    return cr.Preferences.from_frame(table, covariates=list(names)).across_queries()


def fit(table, names=("length",), **given):
    return LatentScore(**given).fit(read(table, names), control=list(names))


def by_annotator(consensus, name):
    ids, parameters = consensus.learned
    order = np.argsort([int(one) for one in ids.ids])
    return np.array(parameters[name])[order]


def by_item(consensus):
    return consensus.scores[np.argsort([int(one) for one in consensus.items.ids])]


@pytest.mark.parametrize(("ties", "lapse"), [(0.0, 0.0), (0.6, 0.0), (0.6, 0.1)])
def test_coefficients_of_annotators_come_back(ties, lapse):
    errors, inside = [], []
    for seed in range(3):
        table, scores, own = judges(ties=ties, lapse=lapse, seed=seed)
        found = fit(table, lapse=lapse > 0)
        errors.append(by_annotator(found, "length") - own)
        inside.append(np.abs(errors[-1]) < 1.645 * by_annotator(found, "length_sd"))
        plain = LatentScore(lapse=lapse > 0).fit(read(table))
        gains = [np.corrcoef(by_item(one), scores)[0, 1] for one in (found, plain)]
        assert gains[0] > gains[1]
        control = found.estimates["control"]["length"]
        assert control["sd_between_annotators"] == pytest.approx(0.5, abs=0.2)
        assert control["degrees"] == 19
        assert abs(control["coefficient"] - own.mean()) < 2.1 * control["std_error"]
    assert np.sqrt(np.mean(np.square(errors))) < 0.35
    # lapses that always say left are taken for a habit in part
    assert np.mean(inside) > (0.7 if lapse else 0.8)


def test_lapses_that_cannot_be_told_make_the_scale_uncertain():
    errors = {}
    for each, lapse in ((100, False), (100, True), (800, True)):
        table, _, _ = judges(each=each, n=6, n_items=8, seed=1)
        found = fit(table, lapse=lapse)
        errors[each, lapse] = found.estimates["scale_error"], by_annotator(found, "length_sd")
    assert errors[100, True][0] > 1.02 * errors[100, False][0]
    assert errors[100, True][0] > errors[800, True][0]
    preferences, _, _ = judges_of_both_sides(1000, 0, n=10, lapse=0.15)
    # where rounds end at the usual tolerance, .03 is found
    assert LatentScore(lapse=True).fit(preferences, control=["length"]).estimates["mean_lapse"] > 0.07


def test_derivatives():
    """Gradient and curvature in the coefficients, by differences of the log-likelihood."""
    from crowdrank.models.latent_score.kernels.ordinal import annotator_pass, item_pass

    table, scores, _ = judges(each=30, n=3, n_items=4, ties=0.5)
    preferences = read(table, ("length", "other"))
    kind = lay_out(preferences, values=preferences.covariates, lapse=True).kinds[0]
    from crowdrank.models.latent_score.model import first_state

    layout = lay_out(preferences, values=preferences.covariates)
    state = first_state(layout, np.array([0.7, 1.2, 1.0]), 0)
    coefficients = np.random.default_rng(1).normal(0, 0.5, (3, 2))
    gap = scores[kind.cells.first] - scores[kind.cells.second]
    none = np.zeros(len(gap))

    def sums(values, moved=none):
        model = state.kinds[0].response_model(kind, state.alpha, np.zeros(3))
        model = model._replace(shifts=covariate_shifts(kind.cells, values, np.zeros((3, 4, 4)), 1.0))
        return annotator_pass(kind.cells, model, gap + moved, none), item_pass(kind.cells, model, gap + moved, none)

    here, (slope, _) = sums(coefficients)
    step = 1e-5
    for a in range(3):
        for c in range(2):
            moved = np.zeros((3, 2))
            moved[a, c] = step
            up, down = sums(coefficients + moved)[0], sums(coefficients - moved)[0]
            assert (up.log_likelihood - down.log_likelihood) / (2 * step) == pytest.approx(here.control[a, c], abs=1e-5)
            bent = -(up.control - down.control)[a] / (2 * step)
            assert bent == pytest.approx(here.control_curvature[a, c, 2:], abs=1e-4)
            assert -(up.bias - down.bias)[a] / (2 * step) == pytest.approx(here.control_curvature[a, c, 1], abs=1e-4)
            assert -(up.alpha - down.alpha)[a] / (2 * step) == pytest.approx(here.control_curvature[a, c, 0], abs=1e-4)
    moved = none.copy()
    moved[0] = step
    up, down = sums(coefficients, moved)[0], sums(coefficients, -moved)[0]
    assert (up.log_likelihood - down.log_likelihood) / (2 * step) == pytest.approx(slope[0], abs=1e-5)


def test_the_variance_of_the_predictor_is_that_of_its_parts():
    table, _, _ = judges(each=20, n=3, n_items=4)
    preferences = read(table, ("length", "other"))
    kind = lay_out(preferences, values=preferences.covariates).kinds[0]
    rng = np.random.default_rng(0)
    root = rng.normal(0, 1, (3, 4, 4))
    covariance, own = root @ root.transpose(0, 2, 1), rng.normal(0, 1, (3, 2))
    shifts = covariate_shifts(kind.cells, own, covariance, 0.8)
    annotator, side = kind.cells.annotator_side >> 2, 1.0 - (kind.cells.annotator_side & 3)
    for row, (a, x) in enumerate(zip(annotator, kind.cells.values, strict=True)):
        d = 0.37
        whole = np.array([0.8 * d, side[row], *x])
        plain = np.array([0.8 * d, side[row], 0, 0])
        both = whole @ covariance[a] @ whole - plain @ covariance[a] @ plain
        assert d * shifts[row, 1] + shifts[row, 2] == pytest.approx(both)
        assert shifts[row, 0] == pytest.approx(x @ own[a])


def test_rows_units_and_sides_change_nothing():
    table, _, _ = judges(each=40, n=6, n_items=8, ties=0.4)
    exact = {"tol": 1e-9, "max_iter": 3000}
    first = fit(table, ("length", "other"), **exact)
    shuffled = fit(table.sample(fraction=1, shuffle=True, seed=3), ("length", "other"), **exact)
    assert shuffled.scores == pytest.approx(first.scores, abs=1e-9)
    swap = {"left": "right", "right": "left", "tie": "tie"}
    turned = table.select(
        "query", "annotator", left="right", right="left", winner=pl.col("winner").replace(swap),
        length=-1000 * pl.col("length"), other=-pl.col("other"),
    )  # fmt: skip
    again = fit(turned, ("length", "other"), **exact)
    assert again.scores == pytest.approx(first.scores, abs=1e-8)
    assert by_annotator(again, "bias") == pytest.approx(-by_annotator(first, "bias"), abs=1e-8)
    assert by_annotator(again, "length") == pytest.approx(by_annotator(first, "length"), abs=1e-8)
    assert again.std_error == pytest.approx(first.std_error, rel=1e-6)
    twice = pl.concat([table, table.with_columns(query=pl.col("query") + 10_000)])
    heavy = table.with_columns(weight=pl.lit(2.0))
    one, two = fit(twice, **exact), fit(heavy, **exact)
    assert two.scores == pytest.approx(one.scores, abs=1e-8)
    assert by_annotator(two, "length") == pytest.approx(by_annotator(one, "length"), abs=1e-8)


def test_without_control_covariates_change_no_bit():
    table, _, _ = judges(each=40, n=6, n_items=8)
    with_them = LatentScore().fit(read(table))
    without = LatentScore().fit(cr.Preferences.from_frame(table.drop("length", "other")).across_queries())
    assert (with_them.scores == without.scores).all()
    assert (with_them.std_error == without.std_error).all()


def test_one_annotator_has_the_coefficient_of_the_crowd():
    table, _, _ = judges(each=600, n=1, n_items=8)
    found = fit(table)
    control = found.estimates["control"]["length"]
    assert by_annotator(found, "length")[0] == pytest.approx(control["coefficient"], abs=0.01)
    assert by_annotator(found, "length_sd")[0] == pytest.approx(control["std_error"], rel=0.05)
    assert (control["degrees"], control["sd_between_annotators"]) == (None, 0.0)
    plain = BradleyTerry().fit(read(table), control=["length"]).estimates["control"]["length"]
    assert control["coefficient"] == pytest.approx(plain["coefficient"], abs=0.15)
    assert control["std_error"] == pytest.approx(plain["std_error"], rel=0.3)


def test_an_annotator_whose_pairs_are_equal_is_like_the_crowd():
    table, _, _ = judges(each=60, n=8, n_items=8)
    table = table.with_columns(length=pl.when(pl.col("annotator") == 3).then(0.0).otherwise("length"))
    found = fit(table)
    control = found.estimates["control"]["length"]
    assert by_annotator(found, "length")[3] == pytest.approx(control["coefficient"], abs=1e-3)
    assert by_annotator(found, "length_sd")[3] >= 0.95 * control["sd_between_annotators"]
    told = cr.findings(found, read(table)).of("likes_long")
    assert told is None or 3 not in told.ids


def test_large_queries_and_a_former_consensus(monkeypatch):
    import crowdrank.models.latent_score.outcomes as errors

    table, _, _ = judges(each=60, n=8, n_items=12)
    found = fit(table, tol=1e-6, max_iter=1000)
    again = LatentScore(tol=1e-6, max_iter=1000).fit(read(table), control=["length"], start=found)
    assert again.scores == pytest.approx(found.scores, abs=1e-3)
    assert again.trace.n_iter < found.trace.n_iter
    monkeypatch.setattr(errors, "COVARIANCE_ITEMS", 4)
    probed = fit(table, tol=1e-6, max_iter=1000)
    assert probed.covariance is None
    assert probed.std_error == pytest.approx(found.std_error, rel=0.2)


@pytest.mark.parametrize("method", ["latent_score", "bradley_terry"])
@pytest.mark.filterwarnings("ignore:.*repeat one by the same annotator")
def test_queries_as_clusters(method):
    """Errors by query cover where the effect of a query makes the model too sure."""
    widths, inside = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, scores = 10, rng.normal(0, 1, 10)
        effect = rng.normal(0, 0.9, (40, n))
        query = np.repeat(np.arange(40), 60)
        left = rng.integers(0, n, len(query))
        right = (left + rng.integers(1, n, len(query))) % n
        x = rng.normal(0, 1, len(query))
        seen = (scores + effect)[query, left] - (scores + effect)[query, right] + 0.5 * x
        winner = np.where(rng.uniform(size=len(x)) < expit(seen), "left", "right")
        table = pl.DataFrame({
            "query": query, "left": left, "right": right, "winner": winner, "annotator": np.arange(len(x)) % 3,
            "length": x,
        })  # fmt: skip
        preferences = cr.Preferences.from_frame(table, covariates=["length"]).across_queries()
        found = [cr.aggregate(preferences, method, control=["length"], robust=robust) for robust in ("none", "query")]
        if seed == 0 and method == "bradley_terry":
            nameless = cr.Preferences.from_frame(table.drop("annotator"), covariates=["length"]).across_queries()
            unasked = cr.aggregate(nameless, method, control=["length"])
            assert unasked.std_error.tolist() == found[0].std_error.tolist()
            assert unasked.estimates["by_query"]["wider"] == pytest.approx(found[1].estimates["robust"]["wider"])
            assert "by_query" not in found[1].estimates
            said = cr.findings(unasked, nameless).of("by_query").sentence
            assert "times as wide as the model's: judgments of a query depend" in said
        widths.append(found[1].std_error.mean() / found[0].std_error.mean())
        truth = scores - scores.mean()
        size = float(by_item(found[1]) @ truth) / float(truth @ truth)
        inside.append(np.abs(by_item(found[1]) - size * truth) < 2 * found[1].std_error.mean())
        if method == "bradley_terry":
            errors = [one.estimates["control"]["length"]["std_error"] for one in found]
            assert 0.5 < errors[1] / errors[0] < 2
    assert np.mean(widths) > 1.2
    assert 0.88 < np.mean(inside) <= 1.0


def test_other_judgments_and_names_are_refused():
    grades = cr.Grades.from_frame({"item": ["x", "y"], "annotator": ["a", "a"], "grade": [1, 2]})
    rankings = cr.Rankings.from_frame({"item": ["x", "y"], "annotator": ["a", "a"], "rank": [1, 2]})
    for judged in (grades, rankings):
        for method in ("latent_score", "auto"):
            with pytest.raises(JudgmentError, match="only preferences have covariates"):
                cr.aggregate(judged, method, control=["length"])
    table, _, _ = judges(each=20, n=2, n_items=4)
    with pytest.raises(ParameterError, match="cannot be called 'bias'"):
        fit(table.rename({"length": "bias"}), ("bias",))
    with pytest.raises(ParameterError, match=r"takes no control=.*; leave it out or use bradley_terry or latent_score"):
        cr.aggregate(read(table), "borda", control=["length"])


def test_what_cannot_be_told_apart_is_refused_or_warned_of():
    table, _, _ = judges(each=60, n=4, n_items=6)
    pair = cr.Preferences.from_frame(table, covariates=["length"])
    with pytest.raises(JudgmentError, match="length does not vary within pairs of items"):
        LatentScore().fit(pair, control=["length"])
    twin = table.with_columns(other=pl.col("length") * 2 + 0.01 * pl.col("other"))
    with pytest.warns(DataWarning, match="length and other vary together"):
        fit(twin, ("length", "other"))
    decided = table.with_columns(winner=pl.when(pl.col("length") > 0).then(pl.lit("left")).otherwise(pl.lit("right")))
    with pytest.warns(DataWarning, match="length decides nearly all preferences"):
        found = fit(decided)
    assert np.isfinite(found.scores).all()


def test_auto_learns_annotators_where_they_are_named():
    table, _, _ = judges(each=60, n=4, n_items=6)
    assert cr.aggregate(read(table), control=["length"]).method == "latent_score"
    assert cr.aggregate(read(table.drop("annotator")), control=["length"]).method == "bradley_terry"
    assert cr.aggregate(read(table.head(40)), control=["length"]).method == "bradley_terry"


def test_rounds_end_and_no_start_matters():
    table, _, _ = judges(each=80, n=10, n_items=10)
    preferences = read(table)
    values = preferences.covariates / np.sqrt((preferences.covariates**2).mean())
    layout = lay_out(preferences, values=values)
    loose, exact = (fit_scores(layout, Options(tol, 2000)) for tol in (5e-3, 1e-9))
    assert exact.trace.converged
    assert loose.state.scores == pytest.approx(exact.state.scores, abs=0.05)
    assert loose.state.kinds[0].control.shared == pytest.approx(exact.state.kinds[0].control.shared, abs=0.05)


def test_an_annotator_of_whom_nothing_is_known_has_no_habit():
    from crowdrank.review.findings import annotator_habits

    table, _, _ = judges(each=60, n=8, n_items=8)
    own = pl.when(pl.col("annotator") < 2).then("length").otherwise(0.0)
    found = fit(table.with_columns(length=own + 0.8 * own.sign()))
    habits = {habit.covariate: habit.table["annotator"].to_list() for habit in annotator_habits(found)}
    assert habits["length"] == [0, 1]
    assert len(habits["side"]) == 8


def test_relative_coefficients_are_of_those_who_judged_the_same_pairs():
    rng = np.random.default_rng(0)
    rows = []
    for query in range(400):
        x, better = rng.normal(0, 1, 2)
        # the last two judge pairs of their own; the first of all likes length
        for who in (0, 1, 2) if query < 300 else (3,):
            won = rng.uniform() < expit(better + (1.5 if who == 0 else 0.0) * x)
            rows.append((query, "a", "b", "left" if won else "right", f"j{who}", x))
    names = ["query", "left", "right", "winner", "annotator", "length"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    found = cr.diagnose(cr.Preferences.from_frame(table, covariates=["length"]), control=["length"])
    told = dict(found.annotators().select("annotator", "length").iter_rows())
    assert told["j3"] is None
    assert told["j0"] > 0.3
    assert told["j1"] + told["j2"] + told["j0"] == pytest.approx(0, abs=1e-9)
    assert any("nothing is known about 'j3', since nobody else judged the same pairs" in note for note in found.notes)
    heavy = table.with_columns(weight=pl.when(pl.col("query") < 50).then(0.1).otherwise(1.0))
    weighted = cr.diagnose(cr.Preferences.from_frame(heavy, covariates=["length"]), control=["length"])
    unit = np.sqrt((heavy["weight"] * heavy["length"] ** 2).sum() / heavy["weight"].sum())
    sentence = next(one for one in weighted.annotator_messages if "likes long" in one)
    odds = np.exp(weighted.annotators().row(by_predicate=pl.col("annotator") == "j0", named=True)["length"])
    assert f"wins {odds:.2f} times" in sentence
    assert unit < 1.1
