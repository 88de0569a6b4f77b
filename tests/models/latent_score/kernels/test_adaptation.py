"""What annotators who adapt take off the curvature: blocks and products against plain sums."""

import numpy as np
import pytest
from tests.models.latent_score.kernels.test_ordinal import Case

from crowdrank.models.latent_score.kernels import adaptation


def summed(cells, ties, n_items, n_annotators):
    """Ties of each item to both parameters of each annotator, (n_items, 2 n_annotators)."""
    table = np.zeros((n_items, 2 * n_annotators))
    for cell in range(len(cells.first)):
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            at = 2 * (cells.who[row] >> 2)
            table[cells.first[cell], at : at + 2] += ties[row]
            if len(cells.second):
                table[cells.second[cell], at : at + 2] -= ties[row]
    return table


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("small", [64, 0])
def test_blocks_and_products_are_plain_sums(pairs, small, monkeypatch):
    monkeypatch.setattr(adaptation, "_SMALL_ITEMS", small)
    case = Case(3, pairs)
    ties = np.random.default_rng(0).normal(size=(len(case.cells.who), 2))
    table = summed(case.cells, ties, 8, 5)
    found = adaptation.adapted_blocks(case.cells, ties, 5, np.array([0]), 8)
    np.testing.assert_allclose(found[0], table @ table.T, atol=1e-10)
    columns = np.random.default_rng(1).normal(size=(8, 3))
    products = adaptation.adapted_products([(case.cells, ties)], 5, columns)
    np.testing.assert_allclose(products, table @ (table.T @ columns), atol=1e-10)


@pytest.mark.parametrize("pairs", [True, False])
def test_ties_are_mixed_second_derivatives(pairs):
    case, step = Case(3, pairs, n=60), 1e-4
    adapt = np.tile([0.0, 1.0, 1.0], (5, 1))
    ties = adaptation.answer_ties(case.cells, case.answering(), case.gap(), np.zeros(len(case.cells.first)), adapt)
    table = summed(case.cells, ties, 8, 5)
    for item in range(8):
        for a in range(5):
            for number, name in enumerate(("alpha", "bias")):
                ends = []
                for one in (1, -1):
                    for other in (1, -1):
                        scores, own = case.scores.copy(), getattr(case, name).copy()
                        scores[item] += one * step
                        own[a] += other * step
                        ends.append(one * other * case.value(scores=scores, **{name: own}))
                assert table[item, 2 * a + number] == pytest.approx(-sum(ends) / (4 * step**2), abs=2e-4)
