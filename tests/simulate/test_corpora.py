"""Corpora: features that tell a given share of the relevance."""

import numpy as np
import pytest

from crowdrank.errors import ParameterError
from crowdrank.simulate import CUTS, PerItem, draw_corpus, grades, profile


def test_relevance_is_standard_and_cut_into_the_grades():
    corpus = draw_corpus(2000, seed=1)
    z = corpus.truth.z
    assert (z.mean(), z.std()) == pytest.approx((0, 1), abs=0.02)
    assert (np.searchsorted(CUTS, z) == corpus.truth.truth.grade).all()
    assert (corpus.features.grade == corpus.truth.truth.grade).all()
    assert (corpus.truth.truth.align(corpus.features.items) == corpus.features.grade).all()


@pytest.mark.parametrize(("explained", "interactions"), [(0.65, 0.4), (0.3, 0.0), (1.0, 0.5)])
def test_features_explain_as_much_as_said(explained, interactions):
    corpus = draw_corpus(1500, n_features=6, explained=explained, interactions=interactions, seed=2)
    x, z = corpus.features.matrix, corpus.truth.z
    pairs = np.column_stack([x[:, 2 * j] * x[:, 2 * j + 1] for j in range(3)])
    linear, whole = (1 - np.var(z - part @ np.linalg.lstsq(part, z)[0]) for part in (x, np.hstack([x, pairs])))
    assert whole == pytest.approx(explained, abs=0.02)
    assert linear == pytest.approx(explained * (1 - interactions), abs=0.02)


def test_one_function_for_several_corpora():
    def weights(corpus):
        return np.linalg.lstsq(corpus.features.matrix, corpus.truth.z)[0]

    first, second, other = (draw_corpus(500, seed=s, function=f) for s, f in ((1, 0), (2, 0), (1, 5)))
    assert np.corrcoef(weights(first), weights(second))[0, 1] > 0.95
    assert np.corrcoef(weights(first), weights(other))[0, 1] < 0.8
    assert (first.features.matrix == draw_corpus(500, seed=1).features.matrix).all()


def test_annotators_judge_it():
    drawn = grades(draw_corpus(5, seed=1).truth, profile(n_annotators=20), PerItem(k=4), seed=1)
    assert len(drawn.judgments) == 5 * 19 * 4


def test_mistakes():
    with pytest.raises(ParameterError, match="n_features=1 is too few; give at least 2, or 1 and interactions=0"):
        draw_corpus(5, n_features=1)
    assert draw_corpus(5, n_features=1, interactions=0).features.matrix.shape == (95, 1)
    with pytest.raises(ParameterError, match="explained"):
        draw_corpus(5, explained=1.5)
