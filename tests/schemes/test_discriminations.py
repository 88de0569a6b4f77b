"""Discriminations that schemes read from a consensus."""

import numpy as np
import pytest
from tests.models.latent_score.test_latent_score import some_grades, some_preferences

from crowdrank import aggregate
from crowdrank.data.judgments import Mixed
from crowdrank.schemes.information import preference_discriminations


def test_a_newcomer_has_the_mean_of_the_crowd():
    drawn, _, _ = some_preferences(1, 600, n_queries=2, n_items=12, n_annotators=10)
    consensus = aggregate(drawn, "latent_score")
    alpha, deviation = preference_discriminations(consensus)
    np.testing.assert_array_equal(alpha[:-1], consensus.quality.parameters["alpha"])
    np.testing.assert_array_equal(deviation[:-1], consensus.quality.parameters["alpha_sd"])
    assert alpha[-1] == pytest.approx(consensus.quality.parameters["alpha"].mean())
    assert deviation[-1] == consensus.estimates["alpha_sd"]


def test_discriminations_are_on_the_scale_of_preferences():
    preferences, _, _ = some_preferences(2, 200, n_queries=2, n_items=12, n_annotators=10)
    grades, _, _ = some_grades(2, 600, n_queries=2, n_items=12, n_annotators=10)
    consensus = aggregate(Mixed.of([preferences, grades]), "latent_score")
    scale = consensus.estimates["scale_preference"]
    assert scale != 1
    alpha, _ = preference_discriminations(consensus)
    np.testing.assert_allclose(alpha[:-1], scale * consensus.quality.parameters["alpha"])


def test_a_method_without_discriminations_has_ones():
    drawn, _, _ = some_preferences(1, 200, n_queries=1, n_items=12, n_annotators=10)
    alpha, deviation = preference_discriminations(aggregate(drawn, "bradley_terry"))
    assert set(alpha) == {1.0}
    assert set(deviation) == {0.0}
