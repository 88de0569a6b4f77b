"""Whole simulations: same seed, same table; truth in every form; one verb for all kinds."""

import numpy as np
import polars as pl
import pytest

from crowdrank import simulate
from crowdrank.data.judgments import KINDS
from crowdrank.data.truth import Truth
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.simulate.noise import NOISES

TRUTH = pl.DataFrame(
    {
        "query": np.repeat(["q1", "q2", "q3"], 8),
        "item": np.tile([f"d{n}" for n in range(8)], 3),
        "grade": np.random.default_rng(0).integers(0, 4, 24),
    }
)
CASES = [(name, kind) for name, model in NOISES.items() if model.make is not None for kind in model.kinds]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_same_seed_same_table(name, kind):
    noise = f"{NOISES[name].example}+random(0.1)+malicious(0.1)"

    def draw(seed):
        return simulate.simulate(TRUTH, annotators=12, noise=noise, kind=kind, seed=seed)

    first, again, other = draw(1), draw(1), draw(2)
    assert type(first.judgments) is KINDS[kind]
    assert first.judgments.frame().equals(again.judgments.frame())
    assert first.quality.equals(again.quality)
    assert not first.judgments.frame().equals(other.judgments.frame())
    assert first.quality.columns[:4] == ["annotator", "quality", "n_judgments", "role"]
    assert first.quality["quality"].is_between(0, 1).all()
    assert first.quality["n_judgments"].sum() == len(first.judgments)
    assert first.judgments.items.frame().equals(TRUTH.select("query", "item"))


@pytest.mark.parametrize(
    ("kind", "noise"), [("grade", "profile"), ("preference", "flip(0.1,0.1)"), ("ranking", "swap(2)")]
)
def test_what_is_written_can_be_read_again(kind, noise):
    drawn = simulate.simulate(TRUTH, annotators=12, noise=noise, seed=1)
    again = KINDS[kind].from_frame(drawn.judgments.frame())
    # rankings come back sorted by query and annotator, and numbered anew
    order = ["query", "annotator", "rank"] if kind == "ranking" else []
    tables = [judgments.frame().drop("ranking", strict=False) for judgments in (drawn.judgments, again)]
    first, second = (table.sort(order) if order else table for table in tables)
    assert first.equals(second)


def test_truth_in_every_form():
    as_truth = Truth.from_frame(TRUTH)
    forms = [TRUTH, TRUTH.to_pandas(), as_truth, (as_truth.items, as_truth.grade), TRUTH.to_dict(as_series=False)]
    tables = [simulate.simulate(form, annotators=9, noise="normal(0.7,0.2)").judgments.frame() for form in forms]
    assert all(table.equals(tables[0]) for table in tables)
    ranks = TRUTH.select("query", "item", rank=4 - pl.col("grade"))
    by_rank = simulate.simulate(ranks, annotators=9, noise="flip(0.3)").judgments.frame()
    assert by_rank.equals(simulate.simulate(TRUTH, annotators=9, noise="flip(0.3)").judgments.frame())


def test_truth_without_queries_and_with_odd_ids():
    truth = {"item": ["b", "ä", "漢字"], "grade": [0, 1, 2]}
    drawn = simulate.simulate(truth, annotators=3, noise="normal(0.9,0.1)", per_item=2)
    assert drawn.judgments.frame().columns == ["item", "grade", "annotator"]
    assert drawn.judgments.items.single


def test_annotator_ids_sort_by_number():
    ids = simulate.simulate(TRUTH, annotators=120, noise="flip(0.2)").judgments.annotators.ids
    assert ids.to_list()[:2] == ["a001", "a002"]
    assert ids.is_sorted()


def test_per_item():
    assert len(simulate.simulate(TRUTH, annotators=12, noise="uniform(0.5,1)", per_item=7).judgments) == 24 * 7
    assert len(simulate.simulate(TRUTH, annotators=12, noise="flip(0.1)", per_item=6).judgments) == 24 * 3
    assert len(simulate.simulate(TRUTH, annotators=12, noise="mallows(1)", per_item=7).judgments) == 3 * 7
    assert len(simulate.simulate(TRUTH, annotators=2, noise="uniform(0.5,1)").judgments) == 24 * 2
    with pytest.raises(ParameterError, match="13 annotators per item or pair cannot be drawn from 12"):
        simulate.simulate(TRUTH, annotators=12, noise="uniform(0.5,1)", per_item=13)
    with pytest.raises(ParameterError, match="whole number"):
        simulate.simulate(TRUTH, annotators=12, noise="uniform(0.5,1)", per_item=2.5)


def test_the_callers_truth_is_not_changed():
    before = TRUTH.clone()
    simulate.simulate(TRUTH, annotators=5, noise="profile")
    assert TRUTH.equals(before)


@pytest.mark.parametrize(
    ("truth", "options", "error", "message"),
    [
        (
            TRUTH,
            {"kind": "ranking"},
            ParameterError,
            "noise 'normal' draws no rankings; noise for rankings: plackett_luce",
        ),
        (TRUTH, {"kind": "grades"}, ParameterError, "kind='grades' is not known; did you mean 'grade'"),
        (TRUTH, {"seed": -1}, ParameterError, "seed must be 0 or more, not -1"),
        (TRUTH, {"per_item": float("nan")}, ParameterError, "per_item must be a whole number"),
        (TRUTH, {"per_item": -3}, ParameterError, "at least 1, not -3"),
        (TRUTH, {"annotators": 0}, ParameterError, "at least 1 annotator"),
        ({"item": [1, 2], "grade": [1, 1]}, {}, ParameterError, "have the same grade"),
        ({"item": [1], "grade": [1]}, {"noise": "flip(0.1)"}, JudgmentError, "nothing to compare"),
        ({"item": range(99), "grade": range(99)}, {}, ParameterError, "99 distinct grades, more than 30"),
        ({"left": [1], "right": [2], "winner": ["left"]}, {}, ParameterError, "truth about pairs"),
        ({"item": [1, 2]}, {}, JudgmentError, "no grade"),
    ],
)
def test_bad_input(truth, options, error, message):
    with pytest.raises(error, match=message):
        simulate.simulate(truth, **{"annotators": 5, "noise": "normal(0.7,0.2)", **options})


def test_bad_truth_arrays():
    items = Truth.from_frame(TRUTH).items
    pool = simulate.OneCoin(np.ones(5))
    with pytest.raises(JudgmentError, match="one finite grade for each of its 24 items"):
        simulate.grades((items, np.zeros(3)), pool)
    with pytest.raises(JudgmentError, match="finite"):
        simulate.grades((items, np.full(24, np.nan)), pool)
    with pytest.raises(ParameterError, match="has grade 3, which levels= does not name"):
        simulate.grades(TRUTH, pool, levels=[0, 1, 2])


def test_levels_name_the_whole_scale():
    truth = {"item": ["x", "y"], "grade": [0, 2]}
    drawn = simulate.grades(truth, simulate.OneCoin(np.full(300, 0.2)), simulate.PerItem(k=300), levels=[0, 1, 2, 4])
    assert drawn.judgments.levels == (0, 1, 2, 4)
    assert set(drawn.judgments.grade) == {0, 1, 2, 4}


def test_one_item_and_one_annotator():
    drawn = simulate.grades(
        {"item": ["x"], "grade": [1]}, simulate.OneCoin(np.ones(1)), simulate.PerItem(k=1), levels=[0, 1]
    )
    assert drawn.judgments.grade.tolist() == [1]
    assert len(simulate.preferences({"item": ["x"], "grade": [1]}, simulate.Flips(np.zeros(1))).judgments) == 0
    assert len(simulate.rankings({"item": ["x"], "grade": [1]}, simulate.Swaps(np.ones(9))).judgments) == 5
