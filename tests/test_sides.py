"""Sides that tell nothing: exchanging them, or putting all winners on one, changes neither scores nor verdicts."""

import warnings

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import DataWarning
from crowdrank.registry import card, make, names

METHODS = [name for name in names("aggregator") if "preference" in card("aggregator", name).kinds]

SLACK = {"latent_score": 0.05}
"""Method -> how far scores may move, in standard deviations of them: where sides are shown a favour is estimated."""


def crowd(seed, *, n=20, each=60, n_items=10, clickers=0, ties=0.1):
    """Table of preferences by honest annotators and by some who always choose left; sides are drawn by a coin."""
    rng = np.random.default_rng(seed)
    worth = np.linspace(-1.5, 1.5, n_items)
    rows = []
    for a in range(n):
        for _ in range(each):
            left, right = rng.choice(n_items, 2, replace=False).tolist()
            ahead = rng.random() < 1 / (1 + np.exp(-2 * (worth[left] - worth[right]))) or a < clickers
            tied = a >= clickers and rng.random() < ties
            rows.append((f"a{a:02}", f"i{left}", f"i{right}", "tie" if tied else "left" if ahead else "right"))
    return pl.DataFrame(rows, schema=["annotator", "left", "right", "winner"], orient="row")


def swapped(table, where):
    """The same answers with the items of some rows on exchanged sides."""
    where = pl.lit(pl.Series(where))
    other = pl.col("winner").replace({"left": "right", "right": "left"})
    return table.with_columns(
        left=pl.when(where).then("right").otherwise("left"), right=pl.when(where).then("left").otherwise("right"),
        winner=pl.when(where).then(other).otherwise("winner"),
    )  # fmt: skip


def winners_first(table):
    """The same answers as a recorder writes them down."""
    return swapped(table, table["winner"] == "right")


def judged(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return cr.Preferences.from_frame(table)


def told(preferences, consensus):
    """What is said of each annotator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = cr.actions(consensus, preferences)
    return sorted(found.frame().select("annotator", "action").rows()), set(found.flags["flag"]) - {"circular"}


@pytest.mark.parametrize("name", METHODS)
def test_sides_change_neither_scores_nor_verdicts(name):
    table = crowd(3)
    coin = swapped(table, np.random.default_rng(1).random(len(table)) < 0.5)
    fits = []
    for preferences in map(judged, (table, coin, winners_first(table))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fits.append((preferences, make("aggregator", name, seed=3).fit(preferences)))
    one = fits[0][1]
    within = SLACK.get(name, 1e-9) * one.scores.std()
    for preferences, other in fits[1:]:
        np.testing.assert_allclose(other.scores, one.scores, atol=within)
        if one.quality is not None:
            np.testing.assert_allclose(other.quality.quality, one.quality.quality, atol=0.02 if name in SLACK else 1e-9)
        if name in ("latent_score", "bradley_terry"):
            assert told(preferences, other) == told(fits[0][0], one) == (told(fits[0][0], one)[0], set())


def test_a_recorder_is_told_from_a_crowd():
    honest = crowd(1)
    assert judged(honest).shown.all()
    assert not judged(winners_first(honest)).shown.any()
    # the loser first is an order too
    assert not judged(swapped(honest, honest["winner"] == "left")).shown.any()
    # some winners were put right by hand, and two annotators came from elsewhere
    table = winners_first(honest)
    few = np.random.default_rng(0).random(len(table)) < 0.02
    assert not judged(swapped(table, few)).shown.any()
    mixed = pl.concat([table, crowd(2, n=2).with_columns(annotator="b" + pl.col("annotator"))])
    assert not judged(mixed).shown.any()
    for preferences in (judged(table), judged(mixed)):
        assert cr.actions(cr.aggregate(preferences, "latent_score"), preferences).dropped == []


@pytest.mark.parametrize("clickers", [1, 4, 9])
def test_who_really_clicks_left_is_still_caught(clickers):
    preferences = judged(crowd(5, clickers=clickers))
    assert preferences.shown.all()
    with pytest.warns(DataWarning, match="one side whatever the items"):
        consensus = cr.aggregate(preferences, "bradley_terry")
    wanted = [f"a{a:02}" for a in range(clickers)]
    found = cr.actions(consensus, preferences)
    assert sorted(found.flags.filter(flag="one_side")["annotator"]) == wanted
    assert sorted(found.dropped) == wanted


def test_a_part_of_the_rows_from_a_table_of_winners():
    shown = crowd(4, clickers=1).with_columns(annotator="b" + pl.col("annotator"))
    preferences = judged(pl.concat([winners_first(crowd(3)), shown]))
    assert preferences.shown.all()
    with pytest.warns(DataWarning, match="1 annotator chooses one side"):
        consensus = cr.aggregate(preferences, "latent_score")
    found = cr.actions(consensus, preferences)
    assert found.flags.filter(flag="one_side")["annotator"].to_list() == ["ba00"]
    assert found.dropped == ["ba00"]
    bias = cr.diagnose(preferences, consensus).annotators()
    assert bias.filter(~bias["annotator"].str.starts_with("b"))["position_bias"].null_count() >= 18


def test_known_rows_of_winners_and_losers_beside_shown_ones():
    by_winner = winners_first(crowd(3, ties=0)).select("annotator", winner="left", loser="right")
    shown = crowd(4, clickers=1).with_columns(annotator="b" + pl.col("annotator"))
    preferences = cr.Mixed.of([judged(by_winner), judged(shown)]).parts[0]
    assert preferences.shown.tolist() == [False] * len(by_winner) + [True] * len(shown)
    with pytest.warns(DataWarning, match="1 annotator chooses one side"):
        consensus = cr.aggregate(preferences, "latent_score")
    assert cr.actions(consensus, preferences).dropped == ["ba00"]
    bias = consensus.quality.parameters["bias"]
    assert np.abs(bias[:20]).max() < 0.3 < 1.5 < bias[20]
    note = cr.diagnose(preferences, consensus).notes[0]
    assert note.startswith("1,200 of 2,400 preferences do not say which item was shown on which side")


def test_one_annotator_who_goes_by_the_side_in_both_orders():
    pairs = [(f"i{i}", f"i{j}") for i in range(6) for j in range(6) if i != j]
    always_left = judged({"left": [x for x, _ in pairs], "right": [y for _, y in pairs], "winner": ["left"] * 30})
    assert always_left.shown.all()
    twice = [pair for pair in pairs if pair[0] < pair[1]] * 2
    written = judged({"left": [x for x, _ in twice], "right": [y for _, y in twice], "winner": ["left"] * 30})
    assert not written.shown.any()


def test_few_answers_and_few_annotators_tell_little():
    few = {"left": ["x"] * 7, "right": list("abcdefg"), "winner": ["left"] * 7}
    assert judged(few).shown.all()
    assert not judged({**few, "left": ["x"] * 8, "right": list("abcdefgh"), "winner": ["left"] * 8}).shown.any()
    # one or two annotators may lean; three who all do are no accident
    lean = ["left"] * 39 + ["right"]
    for n, recorded in ((1, False), (2, False), (3, True)):
        table = {
            "annotator": [f"a{a}" for a in range(n) for _ in lean], "winner": lean * n, "left": ["x"] * 40 * n,
            "right": [f"i{i}" for i in range(40 * n)],
        }  # fmt: skip
        assert judged(table).shown.all() != recorded


def test_weights_count_like_rows():
    table = crowd(6, n=4, each=12, ties=0).with_columns(weight=pl.Series(np.random.default_rng(0).integers(1, 4, 48)))
    for rows in (table, winners_first(table)):
        again = rows.select(pl.exclude("weight").repeat_by("weight").explode())
        assert judged(rows).shown.all() == judged(again).shown.all()
        tiny = rows.with_columns(weight=pl.col("weight") * 1e-6)
        assert judged(tiny).shown.all() == judged(rows).shown.all()


def test_what_was_never_shown_has_no_sides():
    grades = cr.Grades.from_rows([(who, "q", item, len(item)) for who in "ab" for item in ("x", "yy", "zzz")])
    assert not grades.as_preferences().shown.any()
    assert not grades.as_rankings().as_preferences().shown.any()


def test_a_sentence_says_so_once():
    preferences = judged(winners_first(crowd(1)))
    consensus = cr.aggregate(preferences, "latent_score")
    wanted = r"the left item won in 1,\d+ of 1,\d+ preferences of 20 annotators: that is taken for the order in which"
    (note,) = cr.diagnose(preferences, consensus).notes
    assert pl.Series([note]).str.contains(wanted).all()
    assert "bias" not in consensus.quality.parameters
    table = cr.diagnose(preferences, consensus).annotators()
    for name in ("share_left", "position_bias", "share_flipped", "share_swapped"):
        assert table[name].null_count() == len(table)
    found = cr.findings(consensus, preferences)
    assert found.of("sides_unknown").sentence == note
    assert found.of("no_bias", "leans", "one_side", "flips") is None
