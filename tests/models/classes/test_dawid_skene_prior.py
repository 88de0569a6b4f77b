"""The hierarchy of confusion matrices: its weights against a slow twin, few grades each, skew, and hard cases."""

import numpy as np
import pytest
from tests.oracles import own_prior as slow

from crowdrank.data.judgments import Grades
from crowdrank.errors import ParameterError
from crowdrank.kernels.confusion import Tallies
from crowdrank.models.averages.majority_vote import MajorityVote
from crowdrank.models.classes import dawid_skene as priors
from crowdrank.models.classes.dawid_skene import DawidSkene
from crowdrank.models.classes.kernels.own_prior import likeliest_weight
from crowdrank.models.classes.naive_bayes import NaiveBayes


def crowd(seed, n_levels=4, n_items=300, per_item=5, each=20, shares=None, mean=0.7, weight=6.0, rows=40.0, ease=None):
    """Grades of a crowd drawn from the hierarchy, as classes without an order, and the true class of each item."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_levels, n_items, p=shares)
    n_annotators = max(int(n_items * per_item / each), per_item + 1)
    right = 1 - (1 - rng.beta(mean * weight, (1 - mean) * weight, n_annotators))[:, None] * np.array(
        [1.0] * n_levels if ease is None else ease
    )
    errors = rng.dirichlet(np.ones(n_levels), n_levels) * (1 - np.eye(n_levels)) + 0.02 * (1 - np.eye(n_levels))
    errors /= errors.sum(axis=1, keepdims=True)
    rows_of = []
    for item in range(n_items):
        for who in rng.choice(n_annotators, per_item, replace=False):
            own = np.clip(right[who, truth[item]], 0.02, 0.99)
            centre = np.where(np.arange(n_levels) == truth[item], own, (1 - own) * errors[truth[item]])
            # an annotator's row is drawn anew from a seed of their own
            row = np.random.default_rng([seed, who, truth[item]]).dirichlet(rows * centre + 1e-3)
            rows_of.append((f"a{who}", "q", f"i{item:04d}", f"c{rng.choice(n_levels, p=row)}"))
    return Grades.from_rows(rows_of, nominal=True), truth


def accuracy(consensus, truth):
    """Share of items whose chosen class is the true one."""
    names = np.array([int(level[1:]) for level in consensus.levels])
    code = np.array([int(item[1:]) for item in consensus.items.ids])
    return float((names[consensus.grade] == truth[code]).mean())


def test_the_weight_of_rows_is_that_of_the_slow_twin():
    rng = np.random.default_rng(0)
    ability, ease, errors = (
        rng.normal(1, 0.5, 30),
        rng.normal(0, 0.3, 3),
        np.array([[0, 0.3, 0.7], [0.5, 0, 0.5], [0.9, 0.1, 0]]),
    )
    rows = np.array(slow.centre(ability, ease, errors))
    counts = np.array([[rng.multinomial(12, rng.dirichlet(8.0 * row)) for row in own] for own in rows]).astype(float)
    found = likeliest_weight(counts, rows, 20.0, 1.0)
    assert found == pytest.approx(slow.likeliest_weight(counts, rows, 20.0, 1.0), rel=1e-4)
    assert 4 < found < 16
    prior = priors.OwnPrior(ability, ease, errors, 1.0, 20.0, 4.0, 3.0)
    np.testing.assert_allclose(prior.centre, rows)


def test_the_hierarchy_comes_back_from_counts():
    rng = np.random.default_rng(1)
    ability = rng.normal(1.2, 0.8, 400)
    errors = np.array([[0, 0.8, 0.2], [0.5, 0, 0.5], [0.1, 0.9, 0]])
    rows = np.array(slow.centre(ability, [0.5, -0.5, 0.0], errors))
    counts = np.array([[rng.multinomial(15, rng.dirichlet(30.0 * row)) for row in own] for own in rows]).astype(float)
    prior = priors.OwnPrior.begin(np.full((3, 3), 0.05) + 0.18 * np.eye(3), 400)
    for _ in range(15):
        prior = prior.learn(Tallies(0.0, counts, np.array([500.0, 500.0, 500.0])))
    assert prior.is_settled
    # accuracies are estimated too, and take a part of what rows differ by
    assert 15 < prior.row_weight < 75
    assert np.corrcoef(prior.ability, ability)[0, 1] > 0.85
    np.testing.assert_allclose(prior.errors, errors, atol=0.05)
    assert prior.ease[0] > prior.ease[2] > prior.ease[1]
    # even shares: the prior of the shares is strong
    assert prior.share_weight > 50


@pytest.mark.parametrize(
    ("case", "gain"),
    [
        ({"each": 3.7, "weight": 4.0}, 0.01),
        ({"n_levels": 2, "shares": (0.9, 0.1), "per_item": 3, "each": 15, "mean": 0.8}, 0.01),
        ({"shares": (0.7, 0.15, 0.1, 0.05), "each": 15, "mean": 0.6}, 0.05),
        ({"ease": (0.2, 0.6, 1.2, 2.0)}, 0.03),
    ],
)
def test_few_grades_skew_and_uneven_levels_gain_on_the_crowds_prior(case, gain):
    own, former, votes = [], [], []
    for seed in range(4):
        grades, truth = crowd(seed, **case)
        own.append(accuracy(DawidSkene(calibrated=False).fit(grades), truth))
        former.append(accuracy(DawidSkene(prior="crowd", calibrated=False).fit(grades), truth))
        votes.append(accuracy(MajorityVote().fit(grades), truth))
    assert np.mean(own) > np.mean(votes)
    assert np.mean(own) > np.mean(former) + (gain if case.get("n_levels") != 2 else 0.0)


@pytest.mark.filterwarnings("ignore")
def test_learned_shares_are_nowhere_far_from_the_better_extreme():
    for case in (
        {"n_levels": 2, "shares": (0.9, 0.1), "per_item": 3, "mean": 0.8},
        {"n_levels": 2, "ease": (0.4, 1.8)},
    ):
        found = {prior: [] for prior in ("learned", "uniform", "estimated")}
        for seed in range(3):
            grades, truth = crowd(seed, **case)
            for prior, values in found.items():
                values.append(accuracy(NaiveBayes(prior=prior, calibrated=False).fit(grades), truth))
        means = {prior: np.mean(values) for prior, values in found.items()}
        assert means["learned"] > max(means["uniform"], means["estimated"]) - 0.02


@pytest.mark.filterwarnings("ignore")
def test_no_level_no_annotator_and_many_levels_are_too_few_or_too_many():
    one = DawidSkene().fit(
        Grades.from_rows([("a", "q", "x", "u"), ("a", "q", "y", "v")], nominal=True, levels=["u", "v"])
    )
    assert one.frame()["grade"].sort().to_list() == ["u", "v"]
    rng = np.random.default_rng(2)
    rows = [
        (f"a{who}", "q", f"i{item}", f"c{item % 120 if rng.random() < 0.8 else rng.integers(120):03d}")
        for item in range(240)
        for who in range(4)
    ]
    many = DawidSkene().fit(Grades.from_rows(rows, nominal=True, levels=[f"c{k:03d}" for k in range(120)]))
    assert np.isfinite(many.probabilities).all()
    assert (
        np.array([int(level[1:]) for level in many.levels])[many.grade]
        == np.array([int(i[1:]) % 120 for i in many.items.ids])
    ).mean() > 0.9


def test_an_unknown_prior_is_refused():
    with pytest.raises(ParameterError, match="prior='owm' is not known"):
        DawidSkene(prior="owm")


@pytest.mark.parametrize("seed", [1, 3])
def test_no_level_swallows_the_others_where_items_have_one_grade_or_two(seed):
    """A crowd that leans to the best level: without the anchor of the shares .33 and .36 are right, of votes .45."""
    rng = np.random.default_rng(seed)
    truth, near = rng.integers(0, 5, 600), np.exp(-0.9 * np.abs(np.subtract.outer(np.arange(5), np.arange(5))))
    liking, rows = rng.dirichlet([1, 1, 1, 2, 4], 60) ** 0.7, []
    for item, level in enumerate(truth):
        for who in rng.choice(60, 1 + (rng.random() < 0.5), replace=False):
            chance = near[level] * liking[who]
            rows.append((f"w{who}", "q", f"i{item:03d}", int(rng.choice(5, p=chance / chance.sum()))))
    grades = Grades.from_rows(rows)
    votes, found = MajorityVote().fit(grades), DawidSkene(calibrated=False).fit(grades)
    assert (found.grade == truth).mean() > (votes.grade == truth).mean() - 0.02


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("ordinal", [False, True])
def test_two_grades_an_item_leave_a_level_that_is_seldom_given_its_items(seed, ordinal):
    """Without the anchor of the shares one level takes .8 of the items, and less is known than before (1.6 to 2.4)."""
    rng = np.random.default_rng(seed)
    truth, near = rng.integers(0, 3, 600), np.exp(-1.2 * np.abs(np.subtract.outer(np.arange(3), np.arange(3))))
    liking, rows = np.exp([0.0, 0.8, 0.3] + rng.normal(0, 0.5, (60, 3))), []
    for item, level in enumerate(truth):
        for who in rng.choice(60, 2, replace=False):
            chance = near[level] * liking[who]
            rows.append((f"w{who}", "q", f"i{item:03d}", int(rng.choice(3, p=chance / chance.sum()))))
    found = DawidSkene(ordinal=ordinal, calibrated=False).fit(Grades.from_rows(rows)).probabilities
    assert found.mean(axis=0).min() > 0.5 * (np.bincount(truth) / len(truth)).min()
    assert -np.log(found[np.arange(len(truth)), truth]).mean() < 0.8 * np.log(3)


def test_the_anchor_of_shares_fades_with_the_pairs_of_answers():
    from crowdrank.models.classes.coded_grades import ClassRows, vote_anchor

    def anchor(n_annotators):
        return vote_anchor(
            ClassRows.of(Grades.from_rows([(f"w{a}", "q", i, i % 2) for a in range(n_annotators) for i in range(8)]))
        )

    np.testing.assert_allclose(anchor(2), [4.0, 4.0])
    np.testing.assert_allclose(anchor(10), [4.0 / 45**2, 4.0 / 45**2])
