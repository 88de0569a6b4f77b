import numpy as np
import pytest
from scipy.special import expit

import crowdrank as cr
from crowdrank.data.consensus import OddsScale
from crowdrank.errors import ParameterError, UnknownNameError


def arena(seed=0, n=600, ties=0.0):
    rng = np.random.default_rng(seed)
    scores = np.array([1.0, 0.4, 0.0, -0.5, -0.9])
    left, right = rng.integers(0, 5, n), rng.integers(1, 5, n)
    right = (left + right) % 5
    won = rng.uniform(size=n) < expit(scores[left] - scores[right])
    winner = np.where(rng.uniform(size=n) < ties, "tie", np.where(won, "left", "right"))
    names = np.array(list("abcde"))
    return cr.Preferences.from_frame({
        "left": names[left], "right": names[right], "winner": winner,
        "annotator": rng.integers(0, 8, n), "query": np.arange(n),
    }).across_queries()  # fmt: skip


def test_ratings_are_differences_to_the_anchor():
    consensus = cr.aggregators.BradleyTerry().fit(arena())
    table = consensus.rating(anchor="c")
    place = table["item"].to_list().index("c")
    assert table["rating"][place] == table["lower"][place] == table["upper"][place] == 1000
    a = {"score": consensus.scores[consensus.items.code("a")], "base": consensus.scores[consensus.items.code("c")]}
    assert table["rating"][table["item"].to_list().index("a")] == pytest.approx(
        1000 + 400 / np.log(10) * (a["score"] - a["base"])
    )
    assert table["rating"].is_sorted(descending=True)
    plain = consensus.rating()
    assert plain["rating"].mean() == pytest.approx(1000)
    assert (plain["lower"] < plain["rating"]).all()


def test_intervals_of_differences_come_from_what_is_known():
    preferences = arena()
    normal = cr.aggregate(preferences, "bradley_terry")
    drawn = cr.aggregate(preferences, "bradley_terry", bootstrap=300)
    for anchor in (None, "b"):
        one, other = normal.rating(anchor), drawn.rating(anchor)
        widths = [(t.sort("item")["upper"] - t.sort("item")["lower"]).to_numpy() for t in (one, other)]
        assert widths[1] == pytest.approx(widths[0], rel=0.3)


def test_a_tier_ends_where_an_item_is_clearly_below_its_first():
    rng = np.random.default_rng(3)
    n_items, n = 150, 9_000
    left = rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    won = rng.uniform(size=n) < expit((left - right) / 60)
    table = {"left": left, "right": right, "winner": np.where(won, "left", "right")}
    consensus = cr.aggregate(cr.Preferences.from_frame(table), "bradley_terry")
    found = consensus.rating(level=0.9)
    tiers, first = [1], found["item"][0]
    for item in found["item"][1:]:
        ends = consensus.beats(first, item) > 0.95
        tiers.append(tiers[-1] + ends)
        first = item if ends else first
    assert found["tier"].to_list() == tiers
    assert 1 < tiers[-1] < n_items


@pytest.mark.parametrize(("method", "params"), [("bradley_terry", {"ties": "davidson"}), ("latent_score", {})])
def test_win_rates_count_ties_half(method, params):
    consensus = cr.aggregate(arena(n=3000, ties=0.3), method, params=params)
    found = consensus.win_rate("a", "e")
    # of the 70 % that are no ties, a wins about 87 %
    assert found["share"] == pytest.approx(0.15 + 0.7 * expit(1.9), abs=0.05)
    assert found["lower"] < found["share"] < found["upper"]
    assert consensus.win_rate("e", "a")["share"] == pytest.approx(1 - found["share"])
    others = [consensus.win_rate("a", b)["share"] for b in "bcde"]
    assert consensus.win_rate("a")["share"] == pytest.approx(np.mean(others))


def test_shares_are_symmetric_and_never_overflow():
    wide = np.array([-1e6, -2.0, 0.0, 2.0, 1e6])
    for scale in (OddsScale(1.0), OddsScale(0.7, davidson=0.8), OddsScale(1.0, tie=0.6)):
        share = scale.share(wide)
        assert share + scale.share(-wide) == pytest.approx(np.ones(5))
        assert (np.diff(share) > 0).all()
        assert share[[0, 2, 4]].tolist() == [0.0, 0.5, 1.0]
    assert OddsScale(1.0).share(np.array([2.0])) == pytest.approx(expit(2.0))
    tie = OddsScale(1.0, tie=0.6).share(np.array([1.0]))
    assert tie == pytest.approx(1 - 0.5 * (expit(-0.6 - 1.0) + expit(0.6 - 1.0)))


def test_scores_that_are_no_log_odds_are_refused():
    consensus = cr.aggregate(arena(), "rank_centrality")
    with pytest.raises(ParameterError, match="not log-odds"):
        consensus.rating()
    with pytest.raises(UnknownNameError, match="no item 'z'"):
        cr.aggregate(arena(), "bradley_terry").rating(anchor="z")
    two = cr.Preferences.from_rows([("ann", "q", "x", "y", "x"), ("ann", "r", "x", "y", "x")])
    with pytest.warns(cr.errors.DataWarning), pytest.raises(ParameterError, match="2 queries"):
        cr.aggregate(two, "bradley_terry").rating()
