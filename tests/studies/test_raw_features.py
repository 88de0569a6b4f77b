"""Studies of features made of raw items: how votes are divided, and what is measured of them."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank_studies.raw_features.arguments import COLD, NEW, WARM, divide_votes
from crowdrank_studies.raw_features.held_out import accuracy, fit_scores, gaps, log_likelihood


@pytest.fixture(scope="module")
def votes():
    """Votes of 200 annotators on pairs of twelve queries of twelve items, the later item mostly better."""
    rng = np.random.default_rng(0)
    rows = {}
    for _ in range(3000):
        query, one, other = rng.integers(0, 12), *rng.permutation(12)[:2]
        key = (f"a{rng.integers(0, 200)}", f"q{query:02d}", f"i{min(one, other):02d}", f"i{max(one, other):02d}")
        rows[key] = "right" if rng.random() < 0.9 else "left"
    return cr.Preferences.from_rows([(*key, winner) for key, winner in rows.items()])


def test_votes_held_out_share_nothing_with_those_learned_from(votes):
    parts = divide_votes(votes, 0)
    pairs = list(zip(np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right), strict=True))
    learned = {pair for pair, kept in zip(pairs, parts.train, strict=True) if kept}
    seen = {item for pair in learned for item in pair}
    for test in (WARM, COLD, NEW):
        held = [pair for pair, kept in zip(pairs, parts.tests[test], strict=True) if kept]
        assert held
        assert learned.isdisjoint(held)
        if test != WARM:
            assert seen.isdisjoint(item for pair in held for item in pair)
    assert parts.held_queries.sum() == 8
    assert (divide_votes(votes, 1).train != parts.train).any()


def test_scores_are_measured_on_votes(votes):
    parts = divide_votes(votes, 0)
    number = [int(item[1:]) for item in votes.items.ids.to_list()]
    columns = cr.Features.from_arrays(
        votes.items.query_ids(), votes.items.ids, np.array(number, float)[:, None], names=["number"]
    )
    train = votes.select(parts.train)
    plain, helped = fit_scores(train, None), fit_scores(train, columns)
    assert accuracy(gaps(plain, votes, parts.tests[NEW])) == 0.5
    gap = gaps(helped, votes, parts.tests[NEW])
    assert accuracy(gap) > 0.85
    assert log_likelihood(np.zeros(40)) == pytest.approx(np.log(0.5))
    assert log_likelihood(gap) > -0.5
    # the scale of the scores does not matter
    assert log_likelihood(1000 * gap) == pytest.approx(log_likelihood(gap), abs=1e-3)
