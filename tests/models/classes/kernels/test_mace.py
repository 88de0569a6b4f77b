"""The spamming pass against its slow twin, and the models of annotators it is fed with."""

import numpy as np
import pytest
from scipy import integrate, stats
from tests.oracles import spamming as oracle

from crowdrank.kernels.confusion import levels_given, pack_grades
from crowdrank.models.classes.kernels.mace import (
    SpamModel,
    agreements,
    averaged_model,
    guessing_confusion,
    likeliest_model,
    mean_habits,
    record_numbers,
    spam_pass,
)

N_ITEMS, N_ANNOTATORS, N_LEVELS = 12, 4, 3


def random_rows(seed, *, weighted=False, n=60, n_items=N_ITEMS):
    rng = np.random.default_rng(seed)
    weight = rng.choice([0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    columns = rng.integers(0, n_items - 1, n), rng.integers(0, N_ANNOTATORS, n), rng.integers(0, N_LEVELS, n), weight
    return [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def packed(rows, n_items=N_ITEMS):
    item, annotator, level = (np.array(column, np.int32) for column in list(zip(*rows, strict=True))[:3])
    weight = np.array([row[3] for row in rows])
    grades = pack_grades(
        item, annotator, level, None if (weight == 1).all() else weight, n_items, N_ANNOTATORS, N_LEVELS
    )
    return grades, *levels_given(grades, N_ANNOTATORS, N_LEVELS)


def random_model(seed):
    rng = np.random.default_rng(seed)
    spam, answers = rng.uniform(0.05, 0.95, N_ANNOTATORS), rng.dirichlet(np.ones(N_LEVELS), N_ANNOTATORS)
    return spam, 0.9 * (1 - spam), answers


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("known", [{}, {0: 1, 3: 2}])
def test_a_pass_is_what_the_slow_twin_finds(weighted, known):
    rows, (spam, look, answers) = random_rows(1, weighted=weighted), random_model(2)
    prior = np.array([0.5, 0.3, 0.2])
    clamp = np.full(N_ITEMS, -1, np.int32)
    clamp[list(known)] = list(known.values())
    probabilities = np.full((N_ITEMS, N_LEVELS), np.nan)
    grades, levels, counts = packed(rows)
    model = SpamModel(np.log(spam), np.log(look), np.log(answers), 0.0)
    found = spam_pass(grades, levels, counts, model, np.log(prior), clamp, probabilities)
    total, by_item, looks = oracle.pass_over(rows, spam, look, answers, prior, known)
    assert found.log_likelihood == pytest.approx(total, abs=1e-8)
    np.testing.assert_allclose(found.knowing, looks, atol=1e-8)
    np.testing.assert_allclose(found.shares, sum(by_item.values()), atol=1e-8)
    for item, levels_of_item in by_item.items():
        np.testing.assert_allclose(probabilities[item], levels_of_item, atol=1e-12)
    assert np.isnan(probabilities[N_ITEMS - 1]).all()


def test_long_items_are_added_up_as_logarithms():
    rows = random_rows(3, n=3000, n_items=3)
    spam, look, answers = np.full(N_ANNOTATORS, 1e-4), np.full(N_ANNOTATORS, 1 - 1e-4), random_model(4)[2]
    grades, levels, counts = packed(rows, 3)
    model = SpamModel(np.log(spam), np.log(look), np.log(answers), 0.0)
    probabilities = np.empty((3, N_LEVELS))
    found = spam_pass(grades, levels, counts, model, np.log(np.full(3, 1 / 3)), np.full(3, -1, np.int32), probabilities)
    assert np.isfinite(found.log_likelihood)
    np.testing.assert_allclose(probabilities[:2].sum(axis=1), 1)


def test_order_of_rows_and_number_of_threads_change_no_bit(monkeypatch):
    rows = random_rows(5, n=4000, n_items=800)
    model = SpamModel(*(np.log(part) for part in random_model(6)), 0.0)
    found = []
    for cores in ({0}, {0, 1, 2}):
        monkeypatch.setattr("crowdrank.kernels.threads.os.sched_getaffinity", lambda _, cores=cores: cores)
        monkeypatch.setattr("crowdrank.kernels.confusion._PART_ROWS", 500)
        shuffled = [rows[k] for k in np.random.default_rng(len(cores)).permutation(len(rows))]
        grades, levels, counts = packed(shuffled, 800)
        assert len(grades.parts) > 3
        found.append(spam_pass(grades, levels, counts, model, np.zeros(3), np.full(800, -1, np.int32)))
    assert found[0].log_likelihood == found[1].log_likelihood
    np.testing.assert_array_equal(found[0].knowing, found[1].knowing)


def test_expected_logarithms_are_those_of_beta_and_dirichlet():
    rows = random_rows(7)
    counts = oracle.counts_of(rows, N_ANNOTATORS, N_LEVELS)
    looks = counts * np.random.default_rng(8).random(counts.shape)
    model = averaged_model(looks, counts - looks, 0.5, 10.0)
    for mine, slow in zip(model[:3], oracle.averages(looks, counts, 0.5, 10.0), strict=True):
        np.testing.assert_allclose(np.exp(mine), slow)


def test_the_penalty_is_the_divergence_from_the_priors():
    # two levels, so that the answers have a Beta distribution too and both divergences are integrals over one number
    knowing, spamming = np.array([[3.0, 1.0]]), np.array([[0.5, 2.5]])
    pairs = [(stats.beta(3.5, 4.5), stats.beta(0.5, 0.5)), (stats.beta(10.5, 12.5), stats.beta(10, 10))]
    gap = sum(integrate.quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, 1)[0] for p, q in pairs)
    assert averaged_model(knowing, spamming, 0.5, 10.0).penalty == pytest.approx(-gap, abs=1e-6)


def test_likeliest_shares_are_smoothed_ones():
    counts = oracle.counts_of(random_rows(9), N_ANNOTATORS, N_LEVELS)
    model = likeliest_model(0.3 * counts, 0.7 * counts, 0.01, 0.01)
    for mine, slow in zip(model[:3], oracle.likeliest(0.3 * counts, counts, 0.01), strict=True):
        np.testing.assert_allclose(np.exp(mine), slow)
    assert model.penalty == pytest.approx(0.01 * sum(part.sum() for part in model[:3]))
    spam, answers = mean_habits(0.3 * counts, 0.7 * counts, 0.01, 0.01)
    np.testing.assert_allclose(spam, np.exp(model.log_spam))
    np.testing.assert_allclose(answers, np.exp(model.log_answers))


def test_records_know_no_names():
    rows = [(0, 0, 1, 1.0), (0, 1, 1, 1.0), (1, 2, 0, 1.0), (1, 3, 2, 1.0)]
    grades, levels, counts = packed(rows)
    agreement = agreements(grades, levels, *counts.shape)
    assert record_numbers(counts, agreement).tolist() == [1, 1, 0, 0]


def test_confusion_mixes_the_truth_with_guesses():
    confusion = guessing_confusion(np.array([0.6]), np.array([[0.5, 0.25, 0.25]]))
    np.testing.assert_allclose(confusion[0], [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.7]])
