"""The study of overlapping grades: a quick run, printed figures, settings, and what verdicts come to."""

import numpy as np
import polars as pl
import pytest

from crowdrank import Grades
from crowdrank_studies.overlap import claims, learning, opinions, panels, pictures, recorded, simulated
from crowdrank_studies.overlap.setting_results import Results
from crowdrank_studies.overlap.settings import ALL, AVERAGED, BASELINE, MORE, NINE, TRUTH, averaged_name
from crowdrank_studies.overlap.yang_figures import ACCURACY, COST, MISPRINTS


@pytest.mark.data
def test_every_table_and_figure_has_a_verdict(ran):
    first = ran("overlap")
    verdicts = first.outcome.verdicts
    for place in (*ACCURACY, *COST, *(f"figure {number}" for number in range(1, 7))):
        assert any(verdict.claim.startswith(f"{place}:") for verdict in verdicts), place
    frame = first.outcome.frame()
    printed = frame.filter(pl.col("place") == "table 3", pl.col("measure").is_in(["nDCG@3", "nDCG@3 less baseline"]))
    assert dict(printed.filter(pl.col("measure") == "nDCG@3").select("setting", "paper").iter_rows()) == {
        name: row["nDCG@3"] for name, row in ACCURACY["table 3"].items()
    }
    assert printed.filter(pl.col("setting") == "If-good-3")["paper"].to_list() == [45.93, 1.92]
    assert "overlap-quick-figures-4-6.svg" in {file.name for file in first.files}


def test_printed_tables():
    assert [len(rows) for rows in ACCURACY.values()] == [9, 9, 8, 8, 4]
    for place, rows in ACCURACY.items():
        assert set(rows) <= set(ALL)
        assert max(rows, key=lambda name: rows[name]["nDCG@3"]) == ("If-good-2" if place == "table 5" else "If-good-3")
    # what the note says: the same values under other names
    third, fourth = (sorted(row["nDCG@3"] for row in ACCURACY[place].values()) for place in ("table 3", "table 4"))
    assert np.abs(np.subtract(third, fourth)).max() < 0.03
    assert ACCURACY["table 3"]["3-overlap"] != ACCURACY["table 4"]["3-overlap"]
    ratio = "Fair- : Good+"
    for place, name, _ in MISPRINTS:
        twin = {"11-overlap": "Mv11", "If-good-x3": "If-good-3"}.get(name)
        if twin is None:
            continue
        assert COST[place][name][ratio] == COST[place][twin][ratio]


def test_nine_settings_and_their_averages():
    assert set(NINE) == set(ACCURACY["table 1"])
    assert set(MORE) == {f"If-good-{k}" for k in (2, 4, 5, 6)}
    assert set(AVERAGED) == {
        averaged_name(name) for name in (*MORE, "If-good-3", "3-overlap", "11-overlap", "Good-till-bad")
    }  # fmt: skip


@pytest.fixture
def grades():
    """Three items with three grades each, in the order asked."""
    rows = [("ann", "x", 3), ("bob", "x", 0), ("cy", "x", 2), ("ann", "y", 1), ("bob", "y", 4), ("cy", "y", 4)]
    rows += [("ann", "z", 0), ("bob", "z", 0), ("cy", "z", 1)]
    return Grades.from_rows([(who, "q", item, grade) for who, item, grade in rows], levels=range(5))


@pytest.mark.parametrize(
    ("name", "labelling", "training", "ratio"),
    [
        (BASELINE, 1, 1, 2),
        ("3-overlap", 3, 3, 5 / 4),
        ("Mv3", 3, 1, 1 / 2),
        ("Highest-3", 3, 1, 1 / 2),
        ("If-good-2", 4 / 3, 4 / 3, 3),
        ("If-good-3", 5 / 3, 5 / 3, 3 / 2),
        ("If-good-x3", 1, 5 / 3, 2 / 3),
        ("Good-till-bad", 4 / 3, 4 / 3, 3),
    ],
)
def test_costs_by_hand(grades, name, labelling, training, ratio):
    found = ALL[name].costs(grades)
    assert found == pytest.approx({"labelling": labelling, "training": training, "Fair- : Good+": ratio})


def test_gains_by_hand(grades):
    assert ALL[BASELINE].gains(grades).tolist() == [7, 1, 0]
    assert ALL["If-good-3"].gains(grades).tolist() == pytest.approx([10 / 3, 1, 0])
    assert ALL["Mv3"].gains(grades).tolist() == [3, 15, 0]
    assert ALL["Highest-3"].gains(grades).tolist() == [7, 15, 1]


def test_errors_and_misses_by_hand(grades):
    found = recorded.gain_errors(grades, np.array([2.0, np.nan, 0.0]))
    assert found[BASELINE] == pytest.approx(np.sqrt(16 / 2))
    assert found["Mv3"] == 0
    # the first grades of y and z are below Good, and one of their second ones is not
    assert recorded.misses(grades) == 0.5


def test_agreement_by_hand(grades):
    found = panels._agreement(grades, np.array([3.0, 4.0, 0.0]), 3, 0, few=1)
    assert (found["best"], found["mean"]) == pytest.approx((200 / 3, 500 / 9))
    assert found["majority vote"][2] == pytest.approx(200 / 3)


def test_featured_annotators_by_hand():
    rows = [(who, "q", f"i{n:02d}", grade) for who, grade in (("ann", 0), ("bob", 1), ("cy", 1)) for n in range(30)]
    found = panels.featured_annotators(Grades.from_rows(rows, levels=range(2)), 20)
    assert found["own"].tolist() == [[1, 0], [0, 1]]
    assert found["vote"].tolist() == [[0, 1], [0, 1]]
    assert found["all"].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert found["p among"] < 1e-10
    assert found["p vote"][0] < 1e-10
    assert found["p vote"][1] == 1


def test_repetitions_are_drawn_anew_and_the_same_again():
    small = simulated.resize(simulated.CLEAN07, "quick", "profile")
    one, again, other = (small.draw("profile", seed, 10) for seed in (1, 1, 2))
    assert (one.grades.grade == again.grades.grade).all()
    assert (one.test.matrix == again.test.matrix).all()
    assert not (one.test.matrix == other.test.matrix).any()
    assert not (one.vali.matrix[:50] == one.test.matrix[:50]).any()
    assert np.bincount(one.grades.item).tolist() == [11] * small.n_train * small.n_items
    assert one.training_features.grade is None


def test_a_cell_learns_from_what_was_bought():
    drawn = simulated.draw_when_wanted(simulated.resize(simulated.CLEAN07, "quick", "profile"), "profile", 3, 40)
    assert drawn() is drawn()
    tried = learning.grid("quick")[learning.TREES]
    found = {name: learning.learn_best(drawn, learning.TREES, name, tried, 3) for name in (BASELINE, "Mv11", TRUTH)}
    assert min(one["nDCG@3"] for one in found.values()) > 35
    assert {"nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "validation"} <= set(found[TRUTH])


def results(gains, key=("Clean07", "matched", "LambdaRank")):
    """Three repetitions of settings with these gains over a baseline of 60."""
    found = Results()
    for seed in range(3):
        for name in (*ALL, TRUTH):
            value = 60 + gains.get(name, 0.0) + 0.01 * seed * (name != BASELINE)
            found.add(key, name, {"nDCG@3": value, learning.SINGLE: value})
    return found


def by_number(gains):
    """The verdict on figure 4."""
    return claims._by_number(results(gains), "figure 4", claims.FIGURES["figure 4"], (2, 3, 4, 5, 6), 3)


def test_verdicts_follow_from_the_figures():
    printed = {name: row["nDCG@3"] - 48.6 for name, row in ACCURACY["table 1"].items()}
    key = claims.TABLES["table 1"]
    above, best = claims._table(results(printed), "table 1", key)
    assert (above.verdict, best.verdict) == ("reproduced", "reproduced")
    assert "It is number 1 of 8" in best.reason
    above, best = claims._table(results({name: -gain for name, gain in printed.items()}), "table 1", key)
    assert (above.verdict, best.verdict) == ("not reproduced", "not reproduced")
    assert "Clearly ahead of If-good-3: 11-overlap" in best.reason
    by_k = {f"If-good-{k}": gain for k, gain in zip((2, 3, 4, 5, 6), (0.5, 1.0, 0.8, 0.2, 0.1), strict=True)}
    assert by_number(by_k).verdict == "reproduced"
    assert by_number({**by_k, "If-good-2": 1.001}).verdict == "not reproduced"
    assert by_number({**by_k, "If-good-6": 2.0}).verdict == "not reproduced"


def test_spread_that_is_too_wide_decides_nothing():
    found = Results()
    for seed, gain in enumerate((-1.0, 2.0, 0.5)):
        for name in (*ALL, TRUTH):
            value = 60 + gain * (name == "If-good-3")
            found.add(("Clean07", "matched", "LambdaRank"), name, {"nDCG@3": value, learning.SINGLE: value + seed})
    above, best = claims._table(found, "table 1", ("Clean07", "matched", "LambdaRank"))
    assert (above.verdict, best.verdict) == ("undecided", "undecided")


def test_plain_copies_are_learned_as_items_of_their_own():
    drawn = simulated.draw_when_wanted(simulated.resize(simulated.CLEAN07, "quick", "matched"), "matched", 3, 40)
    tried = learning.grid("quick")[learning.TREES]
    names = ("3-overlap", "3-overlap, plain copies")
    aware, copies = (learning.learn_best(drawn, learning.TREES, name, tried, 3) for name in names)
    assert copies["nDCG@3"] > 30
    assert copies != aware
    assert aware[learning.SINGLE] != aware["nDCG@3"]


def test_judges_are_those_that_table_6_implies():
    grades, _ = simulated.CLEAN07.draw_grades(800, simulated.MAIN, 0)
    order = np.argsort(grades.item, kind="stable")
    good = (grades.grade[order] >= 2).reshape(-1, simulated.PANEL)
    assert good[:, 0].mean() == pytest.approx(0.21, abs=0.025)
    assert good[good[:, 0], 1].mean() == pytest.approx(0.53, abs=0.04)


def test_good_till_bad_cannot_have_the_printed_ratio(grades):
    for place in ("table 6", "table 7"):
        row = COST[place]["Good-till-bad"]
        assert row["Fair- : Good+"] > 1 / (row["labelling"] - 1)
        assert (place, "Good-till-bad", "Fair- : Good+") in MISPRINTS
    found = ALL["Good-till-bad"].costs(simulated.CLEAN07.draw_grades(200, simulated.MAIN, 1)[0])
    assert found["Fair- : Good+"] <= 1 / (found["labelling"] - 1)


def test_cost_verdicts_follow_from_the_figures():
    same = {place: {name: {cost: [value] for cost, value in row.items()} for name, row in rows.items()}
            for place, rows in COST.items()}  # fmt: skip
    assert {verdict.verdict for verdict in claims.cost_verdicts(same)} == {"reproduced"}
    same["table 6"]["If-good-3"]["labelling"] = [2.0]
    assert [verdict.verdict for verdict in claims.cost_verdicts(same)[:2]] == ["reproduced", "not reproduced"]


def test_best_annotator_verdict():
    def run(vote):
        return {"best": 70.0, "mean": 60.0, "majority vote": [60.0] * 5 + vote, "mean grade": [60.0] * 7,
                "Dawid and Skene": [60.0] * 7}  # fmt: skip

    assert opinions._best_annotator("x", [run([75.0, 76.0]), run([74.0, 78.0])] * 3).verdict == "reproduced"
    assert opinions._best_annotator("x", [run([69.0, 76.0]), run([69.0, 78.0])] * 3).verdict == "same trend"
    assert opinions._best_annotator("x", [run([60.0, 61.0])] * 3).verdict == "not reproduced"


def test_pictures_are_drawn_from_what_is_there():
    found = results({"If-good-3": 1.0})
    for name in ALL:
        for collection in ("Clean08", "Clean+"):
            found.add((collection, "matched", "LambdaRank"), name, {"nDCG@3": 60.0})
    assert len(pictures.by_number(found).axes) == 3
    assert len(pictures.gains(found).axes) == 3
