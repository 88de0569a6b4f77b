"""What diagnostics count, against slow twins."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import diagnosis as slow
from tests.review.crowds import panel, preferences

from crowdrank.data.index import LONG
from crowdrank.data.judgments import Preferences
from crowdrank.data.preferences import outcome_counts
from crowdrank.review.coded_judgments import leads_of_left
from crowdrank.review.habits import count_triads, side_sentences

ROW = st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans(), st.integers(-1, 1))


@given(rows=st.lists(ROW, max_size=40))
def test_leads_of_left(rows):
    thing, annotator, turned, outcome = (np.array([row[place] for row in rows], np.int64) for place in range(4))
    own, low, high = leads_of_left(thing * 3 + annotator, turned.astype(bool), outcome.astype(np.int8))
    found = zip((own // 3).tolist(), (own % 3).tolist(), low.tolist(), high.tolist(), strict=True)
    assert list(found) == slow.leads(rows, 3)


@pytest.mark.parametrize("n", [1000, LONG])
def test_outcomes_of_few_and_many_rows(n):
    rng = np.random.default_rng(0)
    annotator, outcome = rng.integers(0, 7, n).astype(np.int32), rng.integers(-1, 2, n).astype(np.int8)
    expected = np.zeros((7, 3), np.int64)
    np.add.at(expected, (annotator, outcome + 1), 1)
    np.testing.assert_array_equal(outcome_counts(annotator, outcome, 7), expected)


@given(data=st.data())
def test_triads(data):
    pair = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda p: p[0] < p[1])
    key = st.tuples(st.integers(0, 2), st.integers(0, 1), pair)
    answers = data.draw(st.dictionaries(key, st.booleans(), max_size=60))
    rows = [(annotator, place, *pair, won) for (annotator, place, pair), won in answers.items()]
    annotator, place, low, high, won = (np.array([row[c] for row in rows], np.int32) for c in range(5))
    number, circular = count_triads(annotator, place, low, high, won.astype(bool), 3)
    for who in range(3):
        parts = [
            slow.triads({pair: won for (a, p, pair), won in answers.items() if (a, p) == (who, place)})
            for place in (0, 1)
        ]
        assert (number[who], circular[who]) == tuple(np.sum(parts, axis=0))


def test_a_sample_of_triads_has_the_same_share(monkeypatch):
    rng = np.random.default_rng(3)
    low, high = (column.astype(np.int32) for column in np.triu_indices(60, 1))
    nobody, won = np.zeros(len(low), np.int32), rng.random(len(low)) < 0.5
    number, circular = count_triads(nobody, nobody, low, high, won, 1)
    monkeypatch.setattr("crowdrank.review.habits.MOST_WEDGES", 4000)
    fewer, among = count_triads(nobody, nobody, low, high, won, 1)
    assert number[0] == 60 * 59 * 58 // 6
    assert 0.05 * number[0] < fewer[0] < 0.2 * number[0]
    assert among[0] / fewer[0] == pytest.approx(circular[0] / number[0], abs=0.03)
    assert circular[0] / number[0] == pytest.approx(0.25, abs=0.02)


def test_a_glance_sees_who_always_chooses_left_and_nobody_else(monkeypatch):
    given, _ = panel(np.random.default_rng(1), n=6, things=1000)
    given[2] = np.abs(given[2])
    judged = Preferences.from_frame(preferences(given).frame().sample(fraction=1.0, shuffle=True, seed=1))
    monkeypatch.setattr("crowdrank.data.preferences.LONG", 100)
    monkeypatch.setattr("crowdrank.review.habits.GLANCE", 2000)
    scores = np.zeros(judged.n_items)
    assert side_sentences(judged, scores, glance=True) == side_sentences(judged, scores) == []
    table = judged.frame()
    always = pl.when(table["annotator"] == "a2").then(pl.lit("left")).otherwise(table["winner"])
    biased = Preferences.from_frame(table.with_columns(winner=always))
    scores = np.arange(judged.n_items) % 2.0
    told = side_sentences(biased, scores, glance=True)
    assert told == side_sentences(biased, scores)
    assert "'a2' (left in 1,000 of 1,000 answers" in told[0]
