"""The papers' methods by their printed names: each is made by the registry and runs on a small crowd."""

import warnings
from itertools import combinations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.registry import ALIASES, PRESETS, make

ORDERS = {"ann": "uvwxyz", "bob": "uwvxzy", "cy": "vuwxyz", "dan": "zyxwvu"}
FEATURES = cr.Features.from_frame({"query": ["q"] * 6, "item": list("uvwxyz"), "length": [9, 7, 8, 4, 3, 1]})


def preferences():
    return cr.Preferences.from_rows(
        [(who, "q", *pair, "left") for who, items in ORDERS.items() for pair in combinations(items, 2)]
    )


def rankings():
    return cr.Rankings.from_rows(
        [(who, "q", item, place + 1) for who, items in ORDERS.items() for place, item in enumerate(items)]
    )


@pytest.mark.parametrize(
    "name",
    [
        *("crowdagg-paper", "crowdagg-printed", "crowdagg-rbp-paper", "em-elo-paper", "mpm", "svp", "st-agg"),
        *("bt-paper", "crowd-bt-paper", "mpm-paper"),
    ],
)
def test_aggregators_of_preferences_run_as_printed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus = make("aggregator", name).fit(preferences())
    assert np.isfinite(consensus.scores).all()
    assert sorted(consensus.order("q")) == list("uvwxyz")


def test_st_agg_is_crowd_agg_without_quality_and_per_topic_crowd_bt_has_an_eta_in_each_query():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stochastic = make("aggregator", "st-agg").fit(preferences())
        plain = make("aggregator", "crowd_agg", {"gap": "hard", "quality": "none"}).fit(preferences())
    np.testing.assert_array_equal(stochastic.scores, plain.scores)
    assert make("aggregator", "crowd-bt-paper").per_query


def test_the_printed_equation_turns_orders_round_and_the_mended_one_does_not():
    # many annotators who judged two or three of twelve items each, all in the true order
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        chosen = sorted(rng.choice(12, 3, replace=False))
        rows += [(f"a{number:02d}", "q", f"i{one:02d}", f"i{two:02d}", "left") for one, two in combinations(chosen, 2)]
    judged = cr.Preferences.from_rows(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mended, printed = (
            make("aggregator", "crowd_agg", {"gap": gap, "quality": "none"}).fit(judged)
            for gap in ("swapped", "printed")
        )
    truth = -np.arange(12)
    assert cr.metrics.kendall_tau(truth, mended.scores) > 0.5
    assert cr.metrics.kendall_tau(truth, printed.scores) < 0
    assert [PRESETS["aggregator"][f"crowdagg-{name}"]["gap"] for name in ("paper", "printed")] == ["swapped", "printed"]


@pytest.mark.parametrize("name", ["jam-paper", "vrjam-paper", "iam-paper"])
def test_joint_methods_of_gupta_run_as_printed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = make("joint", name).fit(preferences(), FEATURES)
    assert fit.consensus.order("q")[0] in "uvw"


@pytest.mark.parametrize("name", ["ltrma-d-paper", "ltrma-paper"])
def test_joint_methods_of_wu_run_as_printed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = make("joint", name).fit(rankings(), FEATURES)
    assert fit.consensus.order("q")[0] in "uvw"


@pytest.mark.parametrize("distance", ["kendall", "cayley", "footrule", "spearman"])
def test_mallows_takes_each_distance_exactly_and_sampled(distance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = make("aggregator", "mallows", {"distance": distance}).fit(rankings())
        sampled = make("aggregator", "mallows", {"distance": distance, "n_exact": 0}).fit(rankings())
    assert exact.order("q")[:3] == list("uvw")
    theta = exact.quality.parameters["theta"], sampled.quality.parameters["theta"]
    # few rankings make chains of the sampled fit noisy; reversed dan is nearest to guessing in both
    np.testing.assert_allclose(*theta, atol=0.35)
    assert [int(np.argmax(one)) for one in theta] == [3, 3]


def test_large_queries_of_counted_distances_are_refused_in_words():
    rows = [("ann", "q", f"i{place:02d}", place + 1) for place in range(15)]
    rows += [("bob", "q", f"i{place:02d}", 15 - place) for place in range(15)]
    with pytest.raises(cr.errors.JudgmentError, match="spearman distance takes queries of up to 14 ranked items"):
        make("aggregator", "mallows", {"distance": "spearman"}).fit(cr.Rankings.from_rows(rows))


def test_every_preset_is_a_name():
    for family, presets in PRESETS.items():
        for name in presets:
            assert name in ALIASES.get(family, {}) or name in cr.registry.FAMILIES[family]
