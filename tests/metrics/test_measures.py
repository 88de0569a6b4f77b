"""Measures by name."""

import subprocess
import sys

import numpy as np
import pytest

from crowdrank import metrics
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.metrics.measures import ALIASES, MEASURES

TRUTH, SCORES, QID = [2, 0, 1, 0, 1], [0.1, 0.5, 0.4, 0.9, 0.2], ["a", "a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("text", "function", "parameters"),
    [
        ("ndcg@10", metrics.ndcg, {"k": 10}),
        ("nDCG@3", metrics.ndcg, {"k": 3}),
        ("ndcg", metrics.ndcg, {}),
        ("ndcg@10(linear)", metrics.ndcg, {"k": 10, "gain": "linear"}),
        (" ndcg @ 5 ( gain=linear , ties=first ) ", metrics.ndcg, {"k": 5, "gain": "linear", "ties": "first"}),
        ("ndcg(k=none)", metrics.ndcg, {"k": None}),
        ("map", metrics.average_precision, {}),
        ("AP@100(relevant_from=2)", metrics.average_precision, {"k": 100, "relevant_from": 2}),
        ("p@5", metrics.precision, {"k": 5}),
        ("recall@5", metrics.recall, {"k": 5}),
        ("rbp@0.95", metrics.rbp, {"p": 0.95}),
        ("err@20(max_grade=4)", metrics.err, {"k": 20, "max_grade": 4}),
        ("mrr", metrics.reciprocal_rank, {}),
        ("mrr@10", metrics.reciprocal_rank, {"k": 10}),
        ("tau", metrics.kendall_tau, {}),
        ("tau(a)", metrics.kendall_tau, {"variant": "a"}),
        ("tau_ap", metrics.tau_ap, {}),
        ("tau-ap", metrics.tau_ap, {}),
        ("footrule(zero)", metrics.footrule, {"empty": "zero"}),
        ("pair_accuracy", metrics.pair_accuracy, {}),
    ],
)
def test_names(text, function, parameters):
    measure = metrics.parse(text)
    assert measure.function is function
    assert measure.parameters == parameters
    assert measure.name == text.strip().lower()
    values = measure(TRUTH, SCORES, QID)
    np.testing.assert_array_equal(values, function(TRUTH, SCORES, QID, per_query=True, **parameters))
    assert values.shape == (2,)


def test_every_entry_can_be_called():
    assert metrics.names() == list(MEASURES)
    assert set(ALIASES.values()) <= set(MEASURES)
    assert not set(ALIASES) & set(MEASURES)
    for name in metrics.names():
        measure = metrics.parse(name)
        assert measure.description
        scores = np.column_stack([SCORES, SCORES[::-1]]) if measure.needs == "pairs" else SCORES
        assert np.isfinite(measure([1, 0, 1, 0, 1], scores)).all()


def test_pairs():
    measure = metrics.parse("preference_accuracy")
    assert measure.needs == "pairs"
    np.testing.assert_allclose(measure([1, -1], [[2, 1], [2, 1]]), [0.5])
    with pytest.raises(ParameterError, match="pairs"):
        measure([1, -1], [2, 1])


def test_what_larger_means_and_what_truth_is_needed():
    assert [name for name in metrics.names() if not metrics.parse(name).larger_is_better] == ["footrule"]
    assert metrics.parse("tau").ranks_suffice
    assert not metrics.parse("ndcg").ranks_suffice


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("ndgc@10", UnknownNameError, "did you mean 'ndcg'?"),
        ("zzz", UnknownNameError, "known: ndcg,"),
        ("", UnknownNameError, "form"),
        ("ndcg@10)", UnknownNameError, "form"),
        ("ndcg@x", ParameterError, "whole number"),
        ("ndcg@0", ParameterError, "whole number"),
        ("ndcg@2.5", ParameterError, "whole number"),
        ("ndcg@", ParameterError, "whole number"),
        ("rbp@2", ParameterError, "between 0 and 1"),
        ("tau@5", ParameterError, "no number"),
        ("ndcg(depth=3)", ParameterError, "options are k, gain"),
        ("ndcg(a)", ParameterError, "no option 'a'"),
    ],
)
def test_unknown_names_and_parameters(text, error, words):
    with pytest.raises(error) as caught:
        metrics.parse(text)
    assert words in str(caught.value)


def test_the_package_is_lazy():
    assert set(metrics.__all__) == set(dir(metrics))
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
    with pytest.raises(AttributeError):
        metrics.nothing  # noqa: B018
    code = (
        "import sys; from crowdrank import metrics; metrics.parse('map'); print({'numba', 'scipy'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "set()"
