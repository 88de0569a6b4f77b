"""Whom to keep, to look at and to leave out, why, and what the consensus would become."""

from __future__ import annotations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.review.actions import FALSE_DROPS

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

GOOD, GUESSING, REVERSED = 0.85, 0.5, 0.1


def crowd(qualities, n=80, n_items=12, seed=0):
    """Preferences by annotators of these qualities, by name; sides are random."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, quality in qualities.items():
        for _ in range(n):
            one, other = rng.choice(n_items, 2, replace=False)
            best = min(one, other) if rng.random() < quality else max(one, other)
            rows.append((name, "q", f"x{one:02}", f"x{other:02}", f"x{best:02}"))
    return cr.Preferences.from_rows(rows)


def good(n):
    """So many good annotators."""
    return {f"good{number}": GOOD for number in range(n)}


def row(found, annotator):
    """What is suggested about an annotator."""
    return next(row for row in found.frame().rows(named=True) if row["annotator"] == annotator)


def test_the_bad_ones_are_named_and_the_consensus_without_them_made():
    votes = crowd({**good(10), "eve": REVERSED, "sam": GUESSING}, n=120)
    consensus = cr.aggregate(votes, "bradley_terry")
    found = cr.actions(consensus, votes)
    assert "eve" in found.dropped
    assert row(found, "eve")["reason"].startswith("answers the wrong way round (quality 0.")
    assert row(found, "sam")["action"] in ("drop", "review")
    assert set(found.kept) >= {f"good{number}" for number in range(9)}
    others = votes.select(~np.isin(votes.annotators.ids.gather(votes.annotator).to_list(), found.dropped))
    np.testing.assert_allclose(found.without.scores, cr.aggregators.BradleyTerry().fit(others).scores, atol=1e-4)
    assert found.n_judgments_dropped == 120 * len(found.dropped)
    assert consensus.scores is not found.without.scores


def test_the_frame_has_the_worst_first():
    found = cr.actions(cr.aggregate(votes := crowd({**good(8), "eve": REVERSED}), "borda"), votes)
    frame = found.frame()
    assert frame.columns == ["annotator", "action", "reason", "quality", "lower", "upper", "n_judgments"]
    assert frame["annotator"][0] == "eve"
    places = [("drop", "review", "keep").index(action) for action in frame["action"]]
    assert places == sorted(places)
    assert repr(found).startswith("Actions(drop 1")


@pytest.mark.parametrize("seed", range(5))
def test_few_judgments_leave_nobody_out(seed):
    votes = crowd({**good(12), "eve": REVERSED, "sam": GUESSING}, n=6, seed=seed)
    found = cr.actions(cr.aggregate(votes, "borda"), votes)
    assert found.dropped == []
    assert found.without is None


def test_good_annotators_are_hardly_ever_left_out():
    wrong, right = 0, 0
    for seed in range(6):
        votes = crowd({**good(20), "eve": REVERSED, "sam": 0.45, "tom": 0.45}, n=60, seed=seed)
        dropped = cr.actions(cr.aggregate(votes, "borda"), votes).dropped
        wrong += sum(name.startswith("good") for name in dropped)
        right += sum(not name.startswith("good") for name in dropped)
    assert right >= 9
    assert wrong <= max(1, 2 * FALSE_DROPS * (wrong + right))


def test_one_side_one_grade_and_ties_are_empty_answers():
    rng = np.random.default_rng(0)
    rows = []
    for number in range(6):
        for _ in range(60):
            one, other = rng.choice(10, 2, replace=False)
            rows.append((f"good{number}", "q", one, other, "left" if one < other else "right"))
    for _ in range(60):
        one, other = rng.choice(10, 2, replace=False)
        rows += [("lefty", "q", one, other, "left"), ("tied", "q", one, other, "tie")]
    votes = cr.Preferences.from_rows(rows)
    found = cr.actions(cr.aggregate(votes), votes)
    assert sorted(found.dropped) == ["lefty", "tied"]
    assert "chooses one side whatever the items (left in 60 of 60" in row(found, "lefty")["reason"]
    assert "ties nearly always" in row(found, "tied")["reason"]
    assert set(found.flags["flag"]) >= {"one_side", "always_ties"}


def test_one_grade_nearly_always():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    rows = [
        (f"good{a}", "q", i, int(np.clip(truth[i] + rng.integers(-1, 2), 0, 3))) for a in range(5) for i in range(60)
    ]
    rows += [("same", "q", i, 2) for i in range(60)]
    votes = cr.Grades.from_rows(rows)
    found = cr.actions(cr.aggregate(votes), votes)
    assert found.dropped == ["same"]
    assert "gives one grade nearly always (2 in 100 % of 60 grades" in row(found, "same")["reason"]


def test_copies_are_to_be_looked_at():
    rng = np.random.default_rng(3)
    rows = [
        (f"good{number}", "q", f"x{pair}", f"y{pair}", "left" if rng.random() < 0.7 else "right")
        for number in range(7)
        for pair in range(150)
    ]
    rows += [("copy", *row[1:]) for row in rows if row[0] == "good0"]
    votes = cr.Preferences.from_rows(rows)
    found = cr.actions(cr.aggregate(votes), votes)
    assert {row(found, who)["action"] for who in ("copy", "good0")} == {"review"}
    assert "makes the mistakes of another (agrees with 'good0' in 100 % of 150" in row(found, "copy")["reason"]


def test_a_mostly_bad_crowd_leaves_nobody_out():
    votes = crowd({**good(3), **{f"bad{number}": REVERSED for number in range(3)}, "one": 0.5, "two": 0.5}, n=150)
    found = cr.actions(cr.aggregate(votes, "borda"), votes)
    if not found.dropped:
        assert found.reviewed
    weights = dict(found.frame().select("annotator", "n_judgments").iter_rows())
    assert sum(weights[who] for who in found.dropped) <= 0.5 * sum(weights.values())


def test_doubt_about_the_consensus_is_said(monkeypatch):
    votes = crowd({**good(4), "eve": REVERSED, "bob": REVERSED})
    monkeypatch.setattr("crowdrank.review.actions.MOST_DROPPED", 0.1)
    found = cr.actions(cr.aggregate(votes, "borda"), votes)
    assert found.dropped == []
    assert {"eve", "bob"} <= set(found.reviewed)
    assert any("trusted=" in note for note in found.sentences())


def test_trusted_annotators_are_kept():
    votes = crowd({**good(8), "eve": REVERSED})
    consensus = cr.aggregate(votes, "borda")
    assert cr.actions(consensus, votes).dropped == ["eve"]
    assert "eve" in cr.actions(consensus, votes, trusted=["eve"]).kept
    with pytest.raises(LookupError, match="'evi'"):
        cr.actions(consensus, votes, trusted=["evi"])


def test_the_fit_without_them_starts_from_the_consensus(monkeypatch):
    from crowdrank.models.pairs.crowd_bt import CrowdBT

    votes = crowd({**good(8), "eve": REVERSED}, n=100)
    consensus = cr.aggregate(votes, "crowd_bt")
    starts, fit = [], CrowdBT.fit

    def watched(self, preferences, *, start=None, trusted=None):
        starts.append(start)
        return fit(self, preferences, start=start, trusted=trusted)

    monkeypatch.setattr(CrowdBT, "fit", watched)
    found = cr.actions(consensus, votes)
    assert found.dropped == ["eve"]
    assert starts[-1] is consensus


def test_changes_are_of_items_that_move():
    votes = crowd({**good(4), "eve": 0.02, "bob": 0.02}, n=60, n_items=20, seed=2)
    found = cr.actions(cr.aggregate(votes, "borda"), votes)
    assert sorted(found.dropped) == ["bob", "eve"]
    changes = found.changes()
    assert changes.columns == ["item", "rank", "rank_without", "score", "score_without"] or "query" in changes.columns
    assert (changes["rank"] != changes["rank_without"]).all()
    assert len(changes) == found.effect.n_moved
    moves = (changes["rank"].cast(int) - changes["rank_without"].cast(int)).abs().to_list()
    assert moves == sorted(moves, reverse=True)
    assert f"tau {found.effect.tau:.2f}" in found.sentence
    assert "win" in found.sentence


def test_several_queries_and_lost_items():
    rows = [(f"good{a}", f"q{q}", i, 5 - i) for a in range(5) for q in range(8) for i in range(5)]
    rows += [("eve", f"q{q}", i, i) for q in range(8) for i in range(5)] + [("eve", "q0", 9, 3)]
    votes = cr.Grades.from_rows(rows)
    found = cr.actions(cr.aggregate(votes, "mean_grade"), votes)
    assert found.dropped == ["eve"]
    assert found.effect.n_lost == 1
    assert "no query would have another winner" in found.sentence


def test_classes_without_an_order():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 80)
    rows = [
        (f"w{a}", "q", i, "abc"[truth[i] if rng.random() < 0.9 else rng.integers(0, 3)])
        for a in range(5)
        for i in range(80)
    ]
    rows += [("same", "q", i, "b") for i in range(80)]
    votes = cr.Grades.from_rows(rows, nominal=True)
    found = cr.actions(cr.aggregate(votes, "majority_vote"), votes)
    assert found.dropped == ["same"]
    assert "would have another class" in found.sentence


def test_a_consensus_read_from_a_file(tmp_path):
    from crowdrank.io.results import write_consensus

    votes = crowd({**good(8), "eve": REVERSED})
    write_consensus(cr.aggregate(votes, "borda"), tmp_path / "c.json", "json")
    assert cr.actions(cr.read_consensus(tmp_path / "c.json"), votes).dropped == ["eve"]


def test_an_aggregator_of_ones_own_is_given_by_method():
    class Own:
        kinds = ("preference",)

        def fit(self, judgments):
            fitted = cr.aggregators.Borda().fit(judgments)
            return cr.Consensus(
                items=fitted.items, scores=fitted.scores, method="own", quality_source=fitted.quality_source
            )

    votes = crowd({**good(8), "eve": REVERSED})
    found = cr.actions(Own().fit(votes), votes)
    assert found.without is None
    assert any("give the aggregator with method=" in text for text in found.sentences())
    assert cr.actions(Own().fit(votes), votes, method=Own()).without is not None


def test_a_part_of_the_judgments_is_looked_at_by_itself():
    votes = crowd({"adam": GUESSING, **good(8), "eve": REVERSED})
    part = cr.Preferences.from_frame(votes.select(votes.annotator > 0).frame())
    found = cr.actions(cr.aggregate(votes, "borda"), part)
    assert len(found.frame()) == 9
    assert found.dropped == ["eve"]


def test_all_tied():
    votes = {
        "left": ["x", "y", "x"] * 20,
        "right": ["y", "z", "z"] * 20,
        "annotator": list("abc") * 20,
        "winner": ["tie"] * 60,
    }
    found = cr.actions(cr.aggregate(votes, "bradley_terry"), votes)
    assert found.dropped == []
    assert set(found.frame()["action"]) == {"keep"}


def test_several_kinds_are_told_by_quality_alone():
    votes = crowd({**good(6), "eve": REVERSED})
    grades = cr.Grades.from_rows([(f"good{a}", "q", f"x{i:02}", 12 - i) for a in range(6) for i in range(12)])
    mixed = cr.Mixed.of([votes, grades])
    quality = cr.aggregators.Borda().fit(votes).quality
    consensus = cr.Consensus(items=mixed.items, scores=-1.0 * np.arange(12), method="own", quality_source=quality)
    assert cr.actions(consensus, mixed).dropped == ["eve"]


def test_nothing_to_say_of_a_good_crowd():
    votes = crowd(good(6), n=150)
    found = cr.actions(cr.aggregate(votes), votes)
    assert found.sentences() == ["there is no evidence against any of the 6 annotators"]
    assert len(found.changes()) == 0


def test_one_annotator():
    votes = {"item": list("xyz"), "annotator": ["a"] * 3, "grade": [1, 2, 3]}
    assert cr.actions(cr.aggregate(votes), votes).kept == ["a"]


@pytest.mark.parametrize(
    ("case", "message"),
    [("nobody", "name no annotators"), ("no consensus", "takes a consensus, not a dict"), ("other items", "item 'new'"),
     ("other annotators", "annotator 'zoe'")],
)  # fmt: skip
def test_mistakes(case, message):
    votes = crowd(good(3), n=20)
    consensus = cr.aggregate(votes, "borda")
    given = {
        "nobody": (consensus, {"item": ["x"], "grade": [1]}),
        "no consensus": ({"item": ["x"]}, votes),
        "other items": (consensus, cr.Preferences.from_rows([("good0", "q", "new", "x01", "left")])),
        "other annotators": (consensus, cr.Preferences.from_rows([("zoe", "q", "x00", "x01", "left")])),
    }[case]
    with pytest.raises((ParameterError, JudgmentError), match=message):
        cr.actions(*given)
