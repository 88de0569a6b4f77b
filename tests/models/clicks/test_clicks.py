"""Click models on logs with a known bias."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.models.clicks.click_models import continuation
from crowdrank.simulate import draw_clicks


@pytest.fixture(scope="module")
def world():
    """A truth, scores of three rankers that showed its items, and a feature."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"query": np.repeat(np.arange(150), 12), "item": np.tile(np.arange(12), 150), "grade": rng.integers(0, 4, 1800)}
    )
    truth = cr.Truth.from_frame(frame)
    shown = [0.5 * truth.grade + rng.normal(size=1800) for _ in range(3)]
    feature = frame.select("query", "item", x=pl.Series(frame["grade"] + rng.normal(0, 1, 1800)))
    return truth, shown, feature


@pytest.mark.parametrize(("way", "off"), [("harvesting", 0.06), ("auto", 0.06), ("em", 0.12), ("features", 0.1)])
def test_propensities_come_back(world, way, off):
    truth, shown, feature = world
    log = draw_clicks(truth, shown, n_impressions=60, eta=1.0, seed=1)
    given = {"features": feature} if way == "features" else {"propensity": way}
    found = cr.fit_clicks(log, **given)
    np.testing.assert_allclose(found.propensity, 1 / np.arange(1, 11), atol=off)
    # the relevance orders items better than plain click rates do, which repeat where items were shown
    shown_often, clicks = log.counts()
    grade = truth.align(log.items)
    plain = np.corrcoef(clicks / shown_often, np.exp2(grade))[0, 1]
    assert np.corrcoef(found.relevance, np.exp2(grade))[0, 1] > plain + 0.05


def moved_within(groups, *, n_queries=60, n_shown=80):
    """Clicks on items that only move within groups of positions, position k examined with probability 1/k."""
    rng = np.random.default_rng(7)
    n = sum(map(len, groups))
    query, turn = np.divmod(np.arange(n_queries * n_shown), n_shown)
    order = np.concatenate([rng.permuted(np.tile(group, (len(turn), 1)), axis=1) for group in groups], axis=1)
    relevance = rng.uniform(0.1, 0.9, (n_queries, n))[query[:, None], order]
    clicked = rng.uniform(size=order.shape) < relevance / np.arange(1, n + 1)
    return pl.DataFrame({
        "query": np.repeat(query, n), "item": order.ravel(), "position": np.tile(np.arange(1, n + 1), len(turn)),
        "clicked": clicked.ravel().astype(int),
    })  # fmt: skip


@pytest.mark.parametrize("way", ["auto", "em", "harvesting"])
def test_positions_are_compared_only_where_items_connect_them(way):
    with pytest.raises(JudgmentError, match="no item was shown at two positions, so good positions cannot"):
        cr.fit_clicks(moved_within([[0], [1], [2], [3]]), propensity=way)
    np.testing.assert_allclose(
        cr.fit_clicks(moved_within([[0, 1, 2, 3]]), propensity=way).propensity, [1, 1 / 2, 1 / 3, 1 / 4], atol=0.06
    )
    with pytest.warns(DataWarning, match=r"of positions 3 and 4 cannot .* position 3 is given that of position 2"):
        found = cr.fit_clicks(moved_within([[0, 1], [2, 3]]), propensity=way).propensity
    np.testing.assert_allclose(
        [found[1] / found[0], found[2] / found[1], found[3] / found[2]], [1 / 2, 1, 3 / 4], atol=0.1
    )
    with pytest.warns(DataWarning, match="of position 1 cannot be compared with those of positions 2 to 4"):
        found = cr.fit_clicks(moved_within([[0], [1, 2, 3]]), propensity=way).propensity
    np.testing.assert_allclose(found, [1, 1, 2 / 3, 1 / 2], atol=0.1)
    never = {"query": ["q"] * 4, "item": list("xyzz"), "position": [1, 2, 1, 2], "clicked": [1, 1, 0, 0]}
    with pytest.raises(JudgmentError, match="no item that was shown at two positions was clicked"):
        cr.fit_clicks(never, propensity=way)


@pytest.mark.parametrize("way", ["auto", "em"])
def test_one_item_that_moved_tells_little(way):
    still = moved_within([[0], [1]])
    once = pl.DataFrame({"query": [0, 0], "item": [9, 9], "position": [1, 2], "clicked": [1, 1]})
    with pytest.warns(DataWarning, match=r"tell of position 2, so how .* within a factor of [0-9.]+ only"):
        cr.fit_clicks(pl.concat([still, once]), propensity=way)


def test_a_position_where_nothing_was_shown_is_like_its_neighbour():
    log = moved_within([[0, 1, 2]]).with_columns(pl.col("position").replace({3: 5}))
    found = cr.fit_clicks(log).propensities()
    np.testing.assert_allclose(found["propensity"], [1, 1 / 2, 1 / 2, 1 / 3, 1 / 3], atol=0.06)


def test_features_tell_positions_from_items_that_never_move(world):
    truth, shown, feature = world
    log = draw_clicks(truth, shown[0], n_impressions=40, eta=1.0, seed=8)
    with pytest.raises(JudgmentError, match="give features="):
        cr.fit_clicks(log)
    np.testing.assert_allclose(cr.fit_clicks(log, features=feature).propensity, 1 / np.arange(1, 11), atol=0.15)


@pytest.mark.filterwarnings("ignore:few clicks on items that moved")
def test_weights_of_clicks_are_bounded():
    tiny = {"query": ["q"] * 4, "item": list("xyxy"), "position": [1, 2, 2, 1], "clicked": [1, 0, 0, 1]}
    with pytest.warns(DataWarning, match="position 2: .* weight of a click is bounded by"):
        found = cr.fit_clicks(tiny)
    # of two clicks at most, no weight can be above 3
    assert found.propensities()["weight"].max() <= 3
    # nobody looks at the last position of a long log
    log = moved_within([[0, 1, 2, 3]]).with_columns(
        clicked=pl.when(pl.col("position") < 4).then("clicked").otherwise(0)
    )
    with pytest.warns(DataWarning, match="^position 4: users look there so rarely, .* bounded by 100; a longer log"):
        found = cr.fit_clicks(log, propensity="em")
    assert found.propensities()["weight"].to_list()[3] == pytest.approx(100)
    rows = {"impression": [1, 1, 2, 2], "item": list("xyxy"), "position": [1, 2, 1, 2], "clicked": [1, 0, 1, 0]}
    with pytest.warns(DataWarning, match="position 2: users look there so rarely"):
        assert cr.fit_clicks(rows, "cascade").propensities()["weight"].to_list() == [1, 3]


def test_no_bias_is_found_where_there_is_none(world):
    truth, shown, _ = world
    log = draw_clicks(truth, shown, n_impressions=30, eta=0.0, seed=2)
    assert cr.fit_clicks(log, propensity="harvesting").propensity.min() > 0.85


def test_cascades_count_what_was_read(world):
    rows = [
        ("p1", "x", 1, 0),
        ("p1", "y", 2, 1),
        ("p1", "z", 3, 1),
        ("p2", "x", 1, 0),
        ("p2", "y", 2, 0),
        ("p2", "z", 3, 0),
    ]
    log = pl.DataFrame(rows, schema=["impression", "item", "position", "clicked"], orient="row")
    stop = cr.fit_clicks(log, "cascade")
    assert stop.examined.tolist() == [2, 2, 1]
    assert stop.clicked.tolist() == [0, 1, 0]
    go_on = cr.fit_clicks(log, "dependent_click")
    assert go_on.examined.tolist() == [2, 2, 2]
    assert go_on.clicked.tolist() == [0, 1, 1]
    assert continuation(cr.read_clicks(log)).tolist() == [1, 1, 0]
    truth, shown, _ = world
    log = draw_clicks(truth, shown, n_impressions=60, model="dependent_click", go_on=0.6, seed=3)
    rates = continuation(log)[:4]
    # a page also ends where nothing more is clicked, so that the estimate is below what users do
    assert (rates < 0.62).all()
    assert (rates > 0.4).all()


def test_order_of_rows_changes_nothing(world):
    truth, shown, _ = world
    frame = draw_clicks(truth, shown, n_impressions=6).frame()
    mixed = frame.sample(fraction=1, shuffle=True, seed=4)
    for model in ("position_bias", "cascade"):
        assert cr.fit_clicks(frame, model).frame().equals(cr.fit_clicks(mixed, model).frame())


def test_clicks_stand_beside_people_and_teach_rankers(world):
    truth, shown, feature = world
    found = cr.fit_clicks(draw_clicks(truth, shown, n_impressions=30, seed=5))
    people = cr.Grades.from_rows([("ann", 0, 0, 2), ("ann", 0, 1, 0), ("bob", 1, 3, 1), ("bob", 1, 4, 2)])
    both = cr.aggregate([people, found.preferences()], "latent_score")
    assert set(both.quality.frame()["annotator"]) == {"ann", "bob", "clicks"}
    assert cr.evaluate(both, truth, ["tau"])["value"].item() > 0.3
    fit = cr.train(found.grades(), feature, ranker="list_net", aggregator=None)
    assert cr.evaluate(fit.predict(feature), truth, ["tau"])["value"].item() > 0.5


def test_lambda_mart_takes_positions(world):
    truth, shown, feature = world
    log = draw_clicks(truth, shown[0], n_impressions=8, seed=6)
    matrix = feature["x"].to_numpy()[truth.items.codes_of(log.items, "truth", "log")][log.item][:, None]
    ranker = cr.rankers.LambdaMART(n_trees=20)
    ranker.fit_clicks(matrix, log.clicked, qid=log.impression, position=log.position)
    plain = cr.rankers.LambdaMART(n_trees=20).fit(matrix, log.clicked.astype(float), qid=log.impression)
    assert not np.array_equal(ranker.predict(matrix[:50]), plain.predict(matrix[:50]))
    assert np.corrcoef(ranker.predict(matrix), matrix[:, 0])[0, 1] > 0.5
    with pytest.raises(ParameterError, match="3 clicks and 2 positions"):
        ranker.fit_clicks(matrix[:3], [0, 1, 0], qid=[1, 1, 1], position=[1, 2])


def test_mistakes_in_a_log_are_named():
    good = {"query": ["q", "q"], "item": ["x", "y"], "position": [1, 2], "clicked": [0, 1]}
    for wrong, said in (
        ({"position": [0, 1]}, "row 1 has the position 0"),
        ({"clicked": [0, 7]}, "row 2 has clicked = 7"),
        ({"item": ["x", None]}, "the item is blank in row 2"),
        ({"impression": [1, 1], "position": [1, 1]}, "row 2 shows a second item at position 1"),
    ):
        with pytest.raises(JudgmentError, match=said):
            cr.read_clicks({**good, **wrong})
    with pytest.raises(JudgmentError, match="no clicked column"):
        cr.read_clicks({"query": ["q"], "item": ["x"], "position": [1]})
    with pytest.raises(JudgmentError, match="no click, so nothing"):
        cr.fit_clicks({**good, "clicked": [0, 0]})
    with pytest.raises(JudgmentError, match="add an impression column"):
        cr.fit_clicks(good, "cascade")
