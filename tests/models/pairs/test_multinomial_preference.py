"""MPM: worked examples, the slow twin, recovery of scores and adherences, and what it does with difficult data."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.models.pairs.test_bradley_terry import quiet, simulated
from tests.models.pairs.test_crowd_bt import crowd, given
from tests.oracles import annotated as slow
from tests.strategies import judgments, preference_rows

from crowdrank import aggregate
from crowdrank.data.judgments import Preferences
from crowdrank.errors import DataWarning
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.models.pairs.multinomial_preference import MultinomialPreference
from crowdrank.simulate import AllPairs, PlackettLuce, preferences

MODELS = ["multinomial", "logistic"]


def adherence(consensus):
    """What the method learned of the annotators."""
    return consensus.quality.parameters["adherence"]


def sloped(slopes, n_items=20, seed=0, k=None):
    """Preferences by annotators of known slope about every pair, and the scores they are drawn from."""
    scores = np.random.default_rng(seed).normal(0, 1, n_items)
    truth = {"item": [f"i{number:03d}" for number in range(n_items)], "grade": scores}
    drawn = preferences(truth, PlackettLuce(np.asarray(slopes, float)), AllPairs(k=k or len(slopes)), seed=seed)
    return drawn.judgments, scores - scores.mean()


def test_two_items_by_hand():
    # with two items all pairs are (x, y) and (y, x): 3 to 1 gives exp(2 t d) = 3, and a firm prior keeps t at 1
    rows = [(who, "q", "x", "y", w) for who, w in zip("abcd", ("left", "left", "left", "right"), strict=True)]
    consensus = MultinomialPreference(alpha=1e9, ridge=1e-9, tol=1e-9).fit(Preferences.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [np.log(3) / 4, -np.log(3) / 4], atol=1e-6)
    # information on the difference: 4 contests * p (1 - p) * 2^2
    np.testing.assert_allclose(consensus.std_error, np.sqrt(1 / (4 * 3 / 16 * 4)) / 2, rtol=1e-5)


def test_three_items_by_hand():
    # everybody prefers x to y and never judges otherwise; z stands between them by symmetry
    rows = [("a", "q", "x", "y", "left"), ("b", "q", "x", "z", "left"), ("c", "q", "z", "y", "left")]
    consensus = quiet(MultinomialPreference(alpha=1e9, ridge=1.0, tol=1e-9), Preferences.from_rows(rows))
    x, y, z = consensus.scores
    assert z == pytest.approx(0, abs=1e-9)
    assert x == pytest.approx(-y)
    # net wins 2 at x: 2 - 3 E = x, with E the mean of x's place under the model at d = x
    up, down = np.exp([x, -x, 0]), np.exp([-x, x, 0])
    norm = up.sum() * down.sum() - 3
    assert 2 - 3 * (up[0] * down.sum() - down[0] * up.sum()) / norm == pytest.approx(x, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
@hypothesis.given(preference_rows(min_size=3), st.sampled_from(["split", "ignore"]), st.sampled_from([0.5, 2.0]))
def test_equals_the_slow_twin(model, rows, ties, ridge):
    judged = judgments("preference", rows)
    consensus = quiet(MultinomialPreference(model=model, ties=ties, ridge=ridge, tol=1e-9), judged)
    n, own = judged.n_items, adherence(consensus)
    make = slow.multinomial_objective if model == "multinomial" else slow.slope_objective
    objective = make(judged, ties, np.ones(len(own)), ridge)
    point = np.concatenate([consensus.scores, own])
    gradient = slow.gradient(objective, point)
    inside = np.append(np.ones(n, bool), (own > -3) & (own < 5))
    np.testing.assert_allclose(gradient[inside], 0, atol=1e-6)
    assert consensus.trace.log_likelihood[-1] == pytest.approx(objective(point), abs=1e-9)
    for query, block in enumerate(consensus.covariance):
        part = list(range(*judged.items.offsets[query : query + 2]))
        fixed = (set(range(n)) - set(part)) | set(np.flatnonzero(~inside))
        expected = slow.covariance(objective, point, part, fixed)
        if expected is not None:
            np.testing.assert_allclose(block, expected, atol=1e-4 / ridge)
        np.testing.assert_allclose(consensus.std_error[part] ** 2, np.diag(block), atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_recovers_scores_and_adherences(model):
    slopes = np.array([2.0] * 6 + [1.0] * 8 + [0.0] * 4 + [-1.5] * 3)
    judged, truth = sloped(slopes, n_items=30)
    consensus = MultinomialPreference(model=model).fit(judged)
    own = adherence(consensus)
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.95
    assert np.corrcoef(own, slopes)[0, 1] > 0.95
    assert (own[-3:] < -0.3).all()
    assert (np.abs(own[14:18]) < 0.3).all()


def test_logistic_scores_come_within_their_standard_errors():
    judged, truth = sloped([1.0] * 30, n_items=30)
    consensus = MultinomialPreference(model="logistic", alpha=30.0, ridge=0.5).fit(judged)
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


def test_firm_logistic_annotators_reduce_to_bradley_terry():
    judged, _ = simulated(10, 3000)
    firm = MultinomialPreference(model="logistic", alpha=1e9, ridge=0.1, tol=1e-8)
    np.testing.assert_allclose(firm.fit(judged).scores, BradleyTerry(ridge=0.1).fit(judged).scores, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_the_objective_never_falls(model):
    judged, _ = sloped([1.0, 0.5, -1.0], n_items=15)
    trace = quiet(MultinomialPreference(model=model), judged).trace
    values = np.array(trace.log_likelihood)
    assert trace.converged
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()


@pytest.mark.parametrize("model", MODELS)
def test_adherences_stay_within_their_bounds(model):
    # ann agrees with the crowd without fail and often, and would adhere without bounds
    judged, _ = sloped([0.3] * 40, n_items=12, seed=1)
    rows = [(who, "q", left, right, winner) for left, right, winner, who in judged.frame().iter_rows()]
    order = BradleyTerry().fit(judged).order()
    rows += [("ann", "q", a, b, a) for place, a in enumerate(order) for b in order[place + 1 :]] * 20
    consensus = quiet(MultinomialPreference(model=model, ridge=5.0), given(rows))
    own = adherence(consensus)
    assert consensus.trace.converged
    assert own.max() <= 5
    assert own.argmax() == list(consensus.quality.annotators).index("ann")
    assert np.isfinite(consensus.std_error).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_reversed_majority_is_found_out_by_whom_to_trust(model):
    judged, truth = crowd([0.95] * 3 + [0.05] * 7, n_items=30, n_rows=3000)
    fooled = MultinomialPreference(model=model).fit(judged)
    assert np.corrcoef(fooled.scores, truth)[0, 1] < -0.9
    told = MultinomialPreference(model=model).fit(judged, trusted=["a0000"])
    assert np.corrcoef(told.scores, truth)[0, 1] > 0.9
    np.testing.assert_array_equal(adherence(told) > 0, [True] * 3 + [False] * 7)
    np.testing.assert_array_equal(told.quality.quality > 0.5, [True] * 3 + [False] * 7)


@pytest.mark.parametrize("model", MODELS)
def test_a_crowd_at_odds_with_itself_is_warned_of(model):
    judged, _ = crowd([0.95] * 5 + [0.05] * 5, n_items=30, n_rows=3000)
    with pytest.warns(DataWarning, match="multinomial_preference finds the annotators hardly better than chance"):
        MultinomialPreference(model=model).fit(judged)


@pytest.mark.parametrize("model", MODELS)
def test_a_former_consensus_is_a_start(model):
    judged, _ = sloped([1.0, 1.5, -1.0, 1.5], n_items=12)
    method = MultinomialPreference(model=model, tol=1e-9)
    former = method.fit(judged)
    again = method.fit(judged, start=former)
    assert again.trace.n_iter <= 2
    np.testing.assert_allclose(again.scores, former.scores, atol=1e-8)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("ties", ["ignore", "split"])
def test_nothing_but_ties(model, ties):
    rows = [(who, "q", a, b, "tie") for who in ("ann", "bob") for a, b in ("xy", "yz")]
    consensus = quiet(MultinomialPreference(model=model, ties=ties), Preferences.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, 0, atol=1e-12)
    np.testing.assert_allclose(adherence(consensus), 1)


@pytest.mark.parametrize("model", MODELS)
def test_annotators_without_answers_have_the_mean_of_the_prior(model):
    rows = [("ann", "q", "x", "y", "x"), ("ann", "q", "y", "z", "z"), ("bob", "q", "x", "y", "tie")]
    consensus = quiet(MultinomialPreference(model=model), Preferences.from_rows(rows))
    assert adherence(consensus)[1] == 1


@pytest.mark.parametrize("model", MODELS)
def test_queries_are_fitted_apart_where_annotators_are_firm(model):
    judged, _ = crowd([0.9] * 5, sizes=[4, 9, 4], n_rows=600)
    method = MultinomialPreference(model=model, alpha=1e9)
    together = quiet(method, judged)
    for query in range(3):
        alone = quiet(method, judged.select(judged.items.query[judged.left] == query))
        part = slice(*judged.items.offsets[query : query + 2])
        np.testing.assert_allclose(together.scores[part], alone.scores[part], atol=1e-6)
        np.testing.assert_allclose(together.covariance[query], alone.covariance[query], atol=1e-6)


def test_large_queries_have_probed_standard_errors(monkeypatch):
    judged, _ = crowd([0.9, 0.8, 0.3] * 10, n_items=150, n_rows=6000)
    exact = quiet(MultinomialPreference(), judged)
    monkeypatch.setattr("crowdrank.standard_errors.COVARIANCE_ITEMS", 100)
    probed = quiet(MultinomialPreference(), judged)
    assert probed.covariance == (None,)
    assert np.sqrt(np.mean((probed.std_error / exact.std_error - 1) ** 2)) < 0.05


def test_each_query_by_itself():
    rows = [(who, "q1", a, b, a) for who in ("bob", "cy", "dee") for a, b in ("xy", "yz", "xz")] * 6
    rows += [("ann", "q1", a, b, b) for a, b in ("xy", "yz", "xz")] * 6 + [("ann", "q2", "u", "v", "u")] * 6
    judged = given(rows)
    for model in MODELS:
        pooled = quiet(MultinomialPreference(model=model), judged)
        apart = quiet(MultinomialPreference(model=model, per_query=True), judged)
        assert pooled.order("q2") == ["v", "u"]
        assert apart.order("q2") == ["u", "v"]


def test_the_papers_name():
    judged, _ = sloped([1.0, 1.0], n_items=6)
    named = quiet_aggregate(judged, "mpm")
    assert named.method == "multinomial_preference"


def quiet_aggregate(judged, name):
    """Aggregate by name without the warnings about tiny data."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return aggregate(judged, name)


@pytest.mark.parametrize("turn", range(5))
def test_items_that_are_alike_share_a_rank_though_steps_end_before_all_digits_are_there(turn):
    levels = {
        "q1": {"a": (0, 1, 0), "b": (0, 0, 1), "c": (0, 1, 0), "d": (1, 0, 0), "e": (0, 1, 0)},
        "q2": {"a": (1, 1, 0), "b": (0, 2, 2), "c": (2, 2, 0), "d": (0, 1, 1), "e": (0, 1, 0)},
    }
    new = dict(zip("abcde", np.roll(list("abcde"), turn).tolist(), strict=True))
    rows = [
        (f"w{(number + turn) % 3}", query, new[left], new[right], "left" if given[number] > other[number] else "right")
        for query, items in levels.items()
        for left, given in items.items() for right, other in items.items() for number in range(3)
        if left < right and given[number] != other[number]
    ]  # fmt: skip
    found = quiet(MultinomialPreference(), Preferences.from_rows(rows))
    ranks = dict(zip(zip(found.items.query_ids(), found.items.ids, strict=True), found.ranks().tolist(), strict=True))
    assert [ranks["q1", new[item]] for item in "abcde"] == [1, 4, 1, 4, 1]
    assert [ranks["q2", new[item]] for item in "abcde"] == [4, 1, 1, 4, 3]


@pytest.mark.parametrize("method", ["crowd_bt", "multinomial_preference"])
def test_a_crowd_that_contradicts_itself_evenly_puts_all_items_level(method):
    rng = np.random.default_rng(4)
    pairs = [tuple(rng.choice(list("uvwxyz"), 2, replace=False)) for _ in range(12)]
    both = [(who, "q", *(pair if who == "ann" else pair[::-1]), "left") for pair in pairs for who in ("ann", "bob")]
    weight = np.repeat(rng.choice([0.1, 0.3, 0.7], 12), 2)
    columns = dict(zip(("annotator", "query", "left", "right", "winner"), zip(*both, strict=True), strict=True))
    with pytest.warns(DataWarning):
        found = aggregate(Preferences.from_frame({**columns, "weight": weight}), method)
    assert found.ranks().tolist() == [1] * 6
