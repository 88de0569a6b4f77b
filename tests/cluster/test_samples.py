"""The sample that annotators are judged by: some judgments of everyone, by one rule in memory and over parts."""

import re

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster.packing import pack_judgments
from crowdrank.cluster.results import fit_in_one_pass, sample_of
from crowdrank.data import parted
from crowdrank.registry import make
from crowdrank.review.habits import repeats

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


def crowd(n=20_000, n_queries=1, n_annotators=300, seed=0):
    """Preferences by annotators who gave very unequal numbers of them; every third guesses."""
    rng = np.random.default_rng(seed)
    who = np.minimum((n_annotators * rng.random(n) ** 2).astype(int), n_annotators - 1)
    query, left = rng.integers(0, n_queries, n), rng.integers(0, 12, n)
    right = (left + rng.integers(1, 12, n)) % 12
    good = rng.random(n) < np.where(who % 3 == 0, 0.5, 0.95)
    winner = np.where((left < right) == good, "left", "right")
    table = {"query": query, "left": left, "right": right, "annotator": who, "winner": winner}
    return cr.Preferences.from_frame(pl.DataFrame(table))


@pytest.mark.parametrize(("by", "n_queries"), [("annotator", 1), ("query", 400)])
def test_every_annotator_is_judged_whatever_the_packing(tmp_path, monkeypatch, by, n_queries):
    monkeypatch.setattr(parted, "SAMPLE_ROWS", 5000)
    preferences = crowd(n_queries=n_queries)
    packed = pack_judgments([preferences], tmp_path / "p", by=by, part_rows=3000)
    sample = sample_of(packed)
    assert len(sample) < 1.7 * 5000
    assert len(np.unique(sample.annotator)) == packed.n_annotators
    found = fit_in_one_pass(make("aggregator", "bradley_terry"), packed).quality
    assert (found.parameters["n_pairs"] > 0).all()
    np.testing.assert_array_equal(found.n_judgments, np.bincount(preferences.annotator))
    guesses = np.array([int(name) % 3 == 0 for name in packed.annotators])
    assert found.quality[guesses].mean() < 0.6 < 0.85 < found.quality[~guesses].mean()


def test_by_annotator_all_their_preferences_are_compared_with_the_others(tmp_path, monkeypatch):
    preferences = crowd()
    packed = pack_judgments([preferences], tmp_path / "p", by="annotator", part_rows=3000)
    monkeypatch.setattr("crowdrank.quality.MANY_PREFERENCES", 1000)
    method = make("aggregator", "bradley_terry")
    whole = method.fit(preferences).quality
    monkeypatch.setattr(parted, "SAMPLE_ROWS", 5000)
    found = fit_in_one_pass(method, packed).quality
    np.testing.assert_array_equal(found.parameters["n_pairs"], whole.parameters["n_pairs"])
    assert np.abs(found.quality - whole.quality).mean() < 0.005


def test_methods_of_many_passes_judge_everyone_too(tmp_path, monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    monkeypatch.setattr(parted, "SAMPLE_ROWS", 2000)
    preferences = crowd(6000, n_queries=100, n_annotators=80)
    packed = pack_judgments([preferences], tmp_path / "p", part_rows=1500)
    quality = cr.aggregate(packed, "crowd_bt").quality
    assert (quality.parameters["n_pairs"] > 0).all()


def test_samples_do_not_follow_from_the_order_of_rows():
    preferences = crowd(4000, n_queries=50, n_annotators=40)
    order = np.random.default_rng(1).permutation(len(preferences))
    given = np.bincount(preferences.annotator).astype(float)
    for by_row in (False, True):
        kept = parted.sampled_rows(preferences, given, 0.2, by_row=by_row)
        again = parted.sampled_rows(preferences.select(order), given, 0.2, by_row=by_row)
        assert (kept[order] == again).all()
        assert 0.1 < kept.mean() < 0.35


def test_of_large_queries_single_judgments_are_drawn(monkeypatch):
    preferences = crowd(4000, n_queries=4, n_annotators=40)
    given = np.bincount(preferences.annotator).astype(float)
    monkeypatch.setattr(parted, "_LARGE_QUERY", 100)
    kept = parted.sampled_rows(preferences, given, 0.2)
    assert 0.15 < kept.mean() < 0.3
    assert len(np.unique(preferences.items.query[preferences.left[kept]])) == 4


@pytest.mark.parametrize("stream", [True, False])
def test_progress_says_what_a_pass_took_and_nothing_is_tried_before(tmp_path, monkeypatch, stream):
    from tests.cluster.test_in_parts import some_grades

    from crowdrank.io.notices import collect_notices

    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    packed = pack_judgments([some_grades()], tmp_path / "p", part_rows=300)
    read, words = [], []
    part = type(packed).part
    monkeypatch.setattr(type(packed), "part", lambda self, number: read.append(len(words)) or part(self, number))
    with collect_notices() as said:
        cr.aggregate(packed, "dawid_skene", stream=stream, progress=lambda done, of, what: words.append(what))
    assert any(("streamed" if stream else "in memory") in line for line in said)
    assert not any("would take" in line or "cluster" in line for line in said)
    assert words[0] == "pass 1"
    assert all(re.fullmatch(r"pass \d+, \d+\.\d s each", word) for word in words[packed.n_parts :])
    # one part to choose and check the method, then each of them as a pass needs it
    assert read.count(0) <= 1 + (1 if stream else packed.n_parts)


def asked_twice(kind, n_queries, n=24_000, same=0.6, seed=4):
    """Judgments of which one in three is asked again, half of these with the sides swapped; answers stay by chance."""
    rng = np.random.default_rng(seed)
    levels = np.arange(4 if kind == "grade" else 2)
    again = rng.random(n) < 1 / 3
    who, query, item = rng.integers(0, 60, n), rng.integers(0, n_queries, n), rng.integers(0, 400, n)
    other = (item + rng.integers(1, 400, n)) % 400
    answer = rng.choice(levels, n)
    changed = rng.choice(levels[1:], n)
    later = np.where(rng.random(n) < same, answer, (answer + changed) % len(levels))
    swapped = rng.random(n) < 0.5
    frame = pl.DataFrame({"query": query, "annotator": who, "item": item, "other": other, "answer": answer,
                          "later": later, "again": again, "swapped": swapped})  # fmt: skip
    frame = frame.unique(["query", "annotator", "item"], keep="first", maintain_order=True)
    if kind == "grade":
        first = frame.select("query", "annotator", "item", grade="answer")
        second = frame.filter("again").select("query", "annotator", "item", grade="later")
        return cr.Grades.from_frame(pl.concat([first, second]))
    second = frame.filter("again")
    turned, second = second.filter("swapped"), second.filter(~pl.col("swapped"))
    if kind == "preference":
        sides = pl.Series(["left", "right"])
        asked = ((frame, "answer", False), (second, "later", False), (turned, "later", True))
        rows = [
            part.select(
                "query", "annotator", left="other" if swap else "item", right="item" if swap else "other",
                winner=(sides[::-1] if swap else sides).gather(part[answers]),
            )
            for part, answers, swap in asked
        ]  # fmt: skip
        return cr.Preferences.from_frame(pl.concat(rows))
    lists = []
    for number, (part, answers) in enumerate(((frame, "answer"), (second, "later"), (turned, "later"))):
        for row in part.iter_rows(named=True):
            pair = (row["item"], row["other"]) if row[answers] % 2 else (row["other"], row["item"])
            name = f"{number} {row['query']} {row['annotator']} {row['item']}"
            lists += [(row["query"], row["annotator"], item, rank, name) for rank, item in enumerate(pair, 1)]
    names = ["query", "annotator", "item", "rank", "ranking"]
    return cr.Rankings.from_frame(pl.DataFrame(lists, schema=names, orient="row"))


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
@pytest.mark.parametrize(("n_queries", "by_row"), [(1, True), (3000, False), (3000, True)])
def test_samples_do_not_depend_on_what_was_answered(kind, n_queries, by_row):
    judgments = asked_twice(kind, n_queries)
    given = np.bincount(judgments.annotator).astype(float)
    kept = judgments.select(np.flatnonzero(parted.sampled_rows(judgments, given, 0.3, by_row=by_row)))
    whole, sample = repeats(judgments), repeats(kept)
    for number, same in (("n_again", "again"), ("n_swapped", "swapped")):
        n, n_whole = getattr(sample, number), getattr(whole, number)
        if n is None:
            assert number == "n_swapped"
            continue
        # what was asked again comes in together, so a share of it is in the sample
        assert n.sum() > 0.2 * n_whole.sum() > 200
        share, expected = getattr(sample, same).sum() / n.sum(), getattr(whole, same).sum() / n_whole.sum()
        assert share == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / n.sum()))


def test_many_answers_to_one_question_are_drawn_one_by_one():
    rng = np.random.default_rng(7)
    winner = np.where(rng.random(6000) < 0.7, "left", "right")
    preferences = cr.Preferences.from_frame(
        pl.DataFrame({"left": "a", "right": "b", "annotator": "x", "winner": winner})
    )
    kept = parted.sampled_rows(preferences, np.array([6000.0]), 0.25)
    assert kept.mean() == pytest.approx(0.25, abs=0.03)
    assert (preferences.outcome[kept] > 0).mean() == pytest.approx(0.7, abs=0.04)
    order = rng.permutation(6000)
    again = parted.sampled_rows(preferences.select(order), np.array([6000.0]), 0.25)
    assert (preferences.outcome[order][again] > 0).sum() == (preferences.outcome[kept] > 0).sum()
