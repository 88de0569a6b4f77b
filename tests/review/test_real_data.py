"""What the diagnostics find in public data: LLM judges of one family, judges that choose by side, crowds left alone."""

import warnings

import numpy as np
import pytest

import crowdrank as cr

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def found(data_folder):
    """Diagnostics of a data set, made once."""
    made = {}

    def of(name, *, truth=False):
        if (name, truth) not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cr.errors.DataWarning)
                data = cr.datasets.load(name)
                consensus = cr.aggregate(data.judgments, "borda")
                made[name, truth] = cr.diagnose(data.judgments, consensus, truth=data.truth if truth else None)
        return made[name, truth]

    return of


def test_llm_judges_of_one_model_are_families(found):
    table = found("llmbar-judges").dependence()
    model = [table[name].str.split("/").list.first() for name in ("annotator", "other")]
    same = (model[0] == model[1]).to_numpy()
    named = ((table["false_discovery"] <= 0.02) & (table["correlation"] >= 0.1)).to_numpy()
    assert named[same].mean() > 0.7
    assert named[~same].mean() < 0.3
    assert table["correlation"].to_numpy()[same].mean() > 0.3
    assert abs(table["correlation"].to_numpy()[~same].mean()) < 0.05
    given = found("llmbar-judges").families()
    given = given.filter(given["origin"] == "given")
    worth = dict(zip(given["family"], given["effective_annotators"], strict=True))
    assert worth["GPT-4"] < 2.5
    assert found("llmbar-judges").effective_annotators < 15


def test_known_answers_show_errors_that_all_llm_judges_share(found):
    assert found("llmbar-judges", truth=True).effective_annotators < 5
    assert found("llmbar-judges", truth=True).effective_annotators < found("llmbar-judges").effective_annotators


def test_llm_judges_that_choose_by_side(found):
    table = found("llmbar-judges").annotators()
    bias = dict(zip(table["annotator"], table["position_bias"], strict=True))
    assert bias["Falcon/CoT"] > 0.8
    assert abs(bias["GPT-4/Swap"]) < 0.1
    assert (table["share_flipped"] + 0.02 >= table["position_bias"].abs()).all()


def test_two_llm_judges_err_together_and_people_do_not(found):
    for truth in (False, True):
        best = found("pandalm-testset", truth=truth).dependence().row(0, named=True)
        assert (best["annotator"], best["other"]) == ("gpt-3.5-turbo", "pandalm-7b")
        assert best["correlation"] == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("name", ["llmfao", "mirex2005-crowd", "ukpconvarg1-crowd"])
def test_crowds_of_people_are_taken_for_independent(found, name):
    assert found(name).effective_annotators > 0.98 * found(name).n_annotators


def test_somebody_who_always_chose_left(found):
    assert any("'32' (left in 21 of 21 answers" in text for text in found("llmfao").annotator_messages)
    table = found("llmfao").annotators()
    assert np.nanmax(table["position_bias"].to_numpy()) > 0.8
