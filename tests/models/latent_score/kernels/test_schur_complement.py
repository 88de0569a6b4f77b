"""What marginalising annotators takes off the curvature: blocks and products against plain sums."""

import numpy as np
import pytest
from tests.models.latent_score.kernels.test_ordinal import Case

from crowdrank.models.latent_score.kernels import schur_complement


def summed(cells, terms, n_items, n_annotators):
    """Ties of each item to both parameters of each annotator, (n_items, 2 n_annotators)."""
    table = np.zeros((n_items, 2 * n_annotators))
    for cell in range(len(cells.first)):
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            at = 2 * (cells.annotator_side[row] >> 2)
            table[cells.first[cell], at : at + 2] += terms[row]
            if len(cells.second):
                table[cells.second[cell], at : at + 2] -= terms[row]
    return table


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("small", [64, 0])
def test_blocks_and_products_are_plain_sums(pairs, small, monkeypatch):
    monkeypatch.setattr(schur_complement, "_MAX_LOOPED_ITEMS", small)
    case = Case(3, pairs)
    terms = np.random.default_rng(0).normal(size=(len(case.cells.annotator_side), 2))
    table = summed(case.cells, terms, 8, 5)
    found = schur_complement.schur_blocks(case.cells, terms, 5, np.array([0]), 8)
    np.testing.assert_allclose(found[0], table @ table.T, atol=1e-10)
    columns = np.random.default_rng(1).normal(size=(8, 3))
    products = schur_complement.schur_products([(case.cells, terms)], 5, columns)
    np.testing.assert_allclose(products, table @ (table.T @ columns), atol=1e-10)


@pytest.mark.parametrize("pairs", [True, False])
def test_ties_are_mixed_second_derivatives(pairs):
    case, step = Case(3, pairs, n=60), 1e-4
    adapt = np.tile([0.0, 1.0, 1.0], (5, 1))
    terms = schur_complement.cross_terms(case.cells, case.model(), case.gap(), np.zeros(len(case.cells.first)), adapt)
    table = summed(case.cells, terms, 8, 5)
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
