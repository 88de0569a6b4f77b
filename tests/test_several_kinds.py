"""Grades, preferences and rankings together, through the verbs of the library and of the command line."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.io.notices import listen

ITEMS = [f"i{number:02d}" for number in range(12)]
SCORES = dict(zip(ITEMS, np.linspace(-2, 2, 12), strict=True))


@pytest.fixture(scope="module")
def parts():
    """Grades by some annotators, preferences by others, rankings by all; the items are in the order of their ids."""
    rng = np.random.default_rng(4)
    names = [f"a{number}" for number in range(8)]
    grades = [
        (who, "q", item, int(np.clip(np.round(score + rng.logistic(scale=0.4)), -2, 2)))
        for who in names[:4]
        for item, score in SCORES.items()
    ]
    pairs = []
    for who in names[3:]:
        for _ in range(40):
            left, right = rng.choice(ITEMS, 2, replace=False)
            wins = SCORES[left] - SCORES[right] + rng.logistic(scale=0.4) > 0
            pairs.append((who, "q", str(left), str(right), "left" if wins else "right"))
    ranked = []
    for who in names:
        felt = sorted(rng.choice(ITEMS, 5, replace=False), key=lambda item: -SCORES[item] + rng.logistic(scale=0.4))
        ranked += [(who, "q", str(item), place + 1) for place, item in enumerate(felt)]
    return (
        cr.Grades.from_rows(grades),
        cr.Preferences.from_rows({row[:4]: row for row in pairs}.values()),
        cr.Rankings.from_rows(ranked),
    )


@pytest.fixture
def files(parts, tmp_path):
    """The same as files."""
    paths = [tmp_path / name for name in ("grades.csv", "preferences.csv", "rankings.csv")]
    for part, path in zip(parts, paths, strict=True):
        part.frame().write_csv(path)
    return [str(path) for path in paths]


def test_judgments_frames_and_paths_together_give_one_consensus(parts, files):
    whole = cr.aggregate(list(parts), "latent_score")
    assert whole.method == "latent_score"
    assert cr.metrics.kendall_tau(np.array([SCORES[item] for item in whole.items.ids]), whole.scores) > 0.9
    for given in (files, [parts[0], parts[1].frame(), files[2]], cr.Mixed.of(parts), tuple(reversed(parts))):
        np.testing.assert_allclose(cr.aggregate(given, "latent_score").scores, whole.scores, atol=1e-12)


def test_a_list_of_one_kind_is_that_kind(parts):
    pairs = parts[1]
    halves = [pairs.select(np.arange(len(pairs)) % 2 == number) for number in (0, 1)]
    together = cr.aggregate(halves, "bradley_terry")
    np.testing.assert_allclose(together.scores, cr.aggregate(pairs, "bradley_terry").scores, atol=1e-9)


def test_each_annotator_has_one_quality_over_all_kinds(parts):
    quality = cr.aggregate(list(parts), "latent_score").quality
    assert list(quality.annotators) == [f"a{number}" for number in range(8)]
    assert (quality.quality > 0.7).all()


def test_auto_takes_several_kinds_and_says_why(parts):
    heard = []
    listen(heard.append)
    try:
        assert cr.aggregate(list(parts)).method == "latent_score"
    finally:
        listen(None)
    assert heard == ["method latent_score, since it takes several kinds of judgment together"]


def test_a_method_of_one_kind_says_which_takes_several(parts):
    with pytest.raises(JudgmentError, match="BradleyTerry takes one kind of judgment, not grades and preferences and"):
        cr.aggregate(list(parts), "bradley_terry")


def test_kinds_that_share_nothing_are_only_tied_by_the_prior(parts):
    strangers = cr.Preferences.from_rows([("zoe", "z", "x", "y", "left")])
    with pytest.warns(DataWarning, match="only tied by the prior"):
        found = cr.aggregate([parts[0], strangers], "latent_score")
    assert np.isfinite(found.scores).all()
    assert found.order("z") == ["x", "y"]


def test_one_judgment_of_each_kind():
    one = [cr.Grades.from_rows([("ann", "q", "x", 2)]), cr.Preferences.from_rows([("ann", "q", "x", "y", "left")])]
    found = cr.aggregate(one, "latent_score")
    assert found.order() == ["x", "y"]
    assert np.isfinite(found.std_error).all()


def test_a_known_item_that_nobody_knows_is_refused(parts):
    with pytest.raises(JudgmentError, match=r"known item 'zzz' .* is not among the judged items; leave it out"):
        cr.aggregate(list(parts), "latent_score", known={"query": ["q"], "item": ["zzz"], "score": [1]})


def test_all_annotators_may_be_trusted(parts):
    everybody = [f"a{number}" for number in range(8)]
    found = cr.aggregate(list(parts), "latent_score", trusted=everybody)
    assert cr.metrics.kendall_tau(np.array([SCORES[item] for item in found.items.ids]), found.scores) > 0.9


def test_nominal_grades_do_not_mix(parts):
    classes = cr.Grades.from_rows([("a0", "q", "i00", "cat")], nominal=True)
    with pytest.raises(JudgmentError, match="nominal grades have no order"):
        cr.aggregate([classes, parts[1]])


def test_bootstrap_draws_judgments_of_all_kinds(parts):
    found = cr.aggregate(list(parts), "latent_score", bootstrap=20)
    assert found.replicates.shape == (20, 12)
    assert found.uncertainty == "replicates"
    assert (found.std_error > 0).all()


def test_compare_takes_what_mixes_and_holds_out_of_each_kind(parts):
    table = cr.compare(list(parts))
    assert table["method"].to_list() == ["latent_score"]
    assert table["pair_accuracy"][0] > 0.8
    truth = {"query": ["q"] * 12, "item": ITEMS, "grade": list(range(12))}
    assert cr.compare(list(parts), truth=truth)["tau"][0] > 0.9


def test_diagnose_looks_at_one_kind_with_the_consensus_of_all(parts):
    with pytest.raises(JudgmentError, match="diagnose looks at one kind of judgment at a time; give it the grades"):
        cr.diagnose(list(parts))
    consensus = cr.aggregate(list(parts), "latent_score")
    assert len(cr.diagnose(parts[1], consensus).annotators()) == 5


def test_a_ranker_learns_from_several_kinds(parts):
    columns = {"query": ["q"] * 12, "item": ITEMS, "value": [SCORES[item] ** 3 for item in ITEMS]}
    features = cr.Features.from_frame(columns)
    fit = cr.train(list(parts), features, ranker="list_net", aggregator="latent_score")
    assert fit.predict(features)["score"].is_sorted()
    with pytest.raises(JudgmentError, match="grades and preferences and rankings cannot be learned from one by one"):
        cr.train(list(parts), features, ranker="list_net", aggregator=None)


def test_want_grade_is_for_grades_alone(parts):
    with pytest.raises(ParameterError, match="give the grades alone"):
        cr.aggregate(list(parts), want="grade")
