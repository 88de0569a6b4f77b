"""The latent-score model on public sets: no worse than was measured."""

import pytest
from benchmarks import latent_features
from benchmarks.held_out import log_likelihood
from benchmarks.real_latent_score import GRADE_SETS, PREFERENCE_SETS, fitted, measured

from crowdrank import datasets

SETS = {case.name: case for case in (*GRADE_SETS, *PREFERENCE_SETS)}

LIKELIHOOD = {
    "llmbar-judges": -0.445,
    "llmfao": -0.545,
    "ukpconvarg1-crowd/pairs": -0.452,
    "mirex2005-crowd": -0.48,
    "web-search-relevance5": -1.18,
    "crowd-truth-inference/emotion": -0.72,
    "peer-grading": -1.86,
}
"""Set -> what the mean log-likelihood of held-out answers reaches."""

TRUTH = {
    "llmbar-judges": {"pairs": 0.765},
    "web-search-relevance5": {"tau": 0.83, "grade": 0.82},
    "trec2011-crowd": {"ndcg@10": 0.81, "auc": 0.84},
    "peer-grading": {"tau": 0.55},
}
"""Set -> what a fit to all judgments reaches."""


@pytest.mark.data
@pytest.mark.parametrize("name", LIKELIHOOD)
def test_answers_held_out_are_predicted(name, data_folder):
    judgments = SETS[name].prepare(datasets.load(name).judgments)
    assert log_likelihood("latent_score", judgments, 0) >= LIKELIHOOD[name]


@pytest.mark.data
@pytest.mark.parametrize("name", TRUTH)
def test_truth_is_found(name, data_folder):
    loaded = datasets.load(name)
    judgments = SETS[name].prepare(loaded.judgments)
    consensus = fitted(judgments, "latent_score", {})
    short = {
        measure: value
        for measure, least in TRUTH[name].items()
        if (value := measured(consensus, judgments, loaded.truth, measure)) < least
    }
    assert not short


@pytest.mark.data
def test_features_pay_where_preferences_are_few(data_folder):
    loaded = datasets.load("ukpconvarg1-crowd")
    matrix = latent_features.matrix_of(loaded)
    figures = [latent_features.log_likelihood(loaded.judgments, chosen, 0.01, 0) for chosen in (matrix, None)]
    assert figures[0] >= -0.590
    assert -0.66 <= figures[1] <= -0.63
