"""What the loaded judgments say, against figures published for the data sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from crowdrank.data.judgments import Grades, Preferences
from crowdrank.datasets import Dataset

Load = Callable[[str], Dataset]
pytestmark = pytest.mark.data


def grades_of(dataset: Dataset) -> tuple[Grades, np.ndarray]:
    """Grades and the truth of every item, NaN where there is none."""
    assert isinstance(dataset.judgments, Grades)
    return dataset.judgments, dataset.truth.align(dataset.judgments.items)


def preferences_of(dataset: Dataset) -> Preferences:
    assert isinstance(dataset.judgments, Preferences)
    return dataset.judgments


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("trec-rf10-labels-full/all", 0.439),
        ("trec2011-stage2-labels", 0.612),
        ("web-search-relevance5", 0.552),
    ],
)
def test_share_of_grades_that_equal_the_gold(loaded: Load, name: str, accuracy: float) -> None:
    grades, truth = grades_of(loaded(name))
    covered = np.isfinite(truth[grades.item])
    assert np.mean(grades.grade[covered] == truth[grades.item][covered]) == pytest.approx(accuracy, abs=5e-4)


def test_every_truth_lies_on_the_grades_scale(loaded: Load) -> None:
    for name in ("dog", "face-sentiment", "duck", "product"):
        grades, truth = grades_of(loaded(f"crowd-truth-inference/{name}"))
        assert grades.nominal
        assert set(truth) <= set(grades.grade) == set(range(len(grades.levels)))
        assert grades.levels == tuple(range(len(grades.levels)))
    grades, truth = grades_of(loaded("adult-content2"))
    assert grades.levels == ("G", "P", "R", "X")
    assert np.isfinite(truth).sum() == 333
    grades, truth = grades_of(loaded("crowd-truth-inference/emotion"))
    assert grades.grade.min() >= -100
    assert grades.grade.max() <= 100
    assert np.isfinite(truth).all()


def test_trec_items_have_their_topics(loaded: Load) -> None:
    dataset = loaded("trec-rf10-labels-full")
    grades, truth = grades_of(dataset)
    assert grades.n_items / grades.n_queries == pytest.approx(190.3, abs=0.05)
    known = np.bincount(grades.items.query[np.isfinite(truth)], minlength=100)
    assert (known.min(), known.max(), round(known.mean(), 1)) == (15, 58, 32.8)
    assert dataset.details["document"].drop_nulls().len() == 3275
    gold = loaded("trec-rf10-crowd-gold").truth
    named = dataset.details.drop_nulls("document").join(
        pl.DataFrame({"query": grades.items.query_ids(), "item": grades.items.ids, "grade": truth}),
        on=["query", "item"],
    )
    both = named.join(gold.frame().rename({"item": "document"}), on=["query", "document"])
    assert len(both) == 3275
    assert ((both["grade"] > 0) == (both["grade_right"] > 0)).all()


def test_trec_gold_that_was_voted_on(loaded: Load) -> None:
    for name, covered in (("own", 290), ("others", 395)):
        _, truth = grades_of(loaded(f"trec2011-crowd/{name}"))
        assert np.isfinite(truth).sum() == covered
    own = loaded("trec2011-crowd/own").judgments
    assert own.time.min() == 1
    uc3m = [loaded(f"trec2011-crowd-uc3m{run}") for run in ("", "/run2", "/run3")]
    annotators = {who for run in uc3m if run.judgments for who in run.judgments.annotators}
    assert len(annotators) == 122
    scales = [grades_of(run)[0].grade.max() for run in uc3m]
    assert scales == [2, 100, 99]
    assert [np.isfinite(grades_of(run)[1]).sum() for run in uc3m] == [290] * 3


def test_mirex_groups_and_sides(loaded: Load) -> None:
    dataset = loaded("mirex2005-crowd")
    preferences = preferences_of(dataset)
    assert [int((preferences.outcome == outcome).sum()) for outcome in (0, -1, 1)] == [1405, 823, 577]
    truth = dataset.truth.align(preferences.items)
    gap = np.sign(truth[preferences.left] - truth[preferences.right])
    decided = (gap != 0) & (preferences.outcome != 0)
    assert (int(decided.sum()), int((gap == preferences.outcome)[decided].sum())) == (1179, 980)
    assert np.ptp(preferences.time) < 10 * 86400


def test_arguments_agree_with_their_gold(loaded: Load) -> None:
    ranking, pairs = loaded("ukpconvarg1-crowd").truth, loaded("ukpconvarg1-crowd/pairs").truth
    left, right, outcome = pairs.align_pairs(ranking.items)
    agree = np.sign(ranking.grade[left] - ranking.grade[right]) == outcome
    assert agree[outcome != 0].mean() == pytest.approx(0.87, abs=0.005)
    details = loaded("ukpconvarg1-crowd").details
    assert details["text"].str.len_chars().min() > 0


def test_models_over_prompts(loaded: Load) -> None:
    for name, models in (("llmfao", 59), ("llmfao/judges", 70), ("pandalm-testset", 5)):
        assert preferences_of(loaded(name)).across_queries().n_items == models
    crowd = preferences_of(loaded("llmfao")).frame()
    assert crowd.n_unique(["query", "left", "right"]) == 2139
    judges = preferences_of(loaded("llmfao/judges")).frame()
    assert crowd.join(judges, on=["query", "left", "right"], how="semi").height == crowd.height


def test_pandalm_truth_is_the_majority(loaded: Load) -> None:
    truth = loaded("pandalm-testset").truth
    people = preferences_of(loaded("pandalm-testset/humans")).frame()
    votes = people.group_by("query", "left", "right").agg(
        pl.col("winner").mode().first(), pl.col("winner").n_unique().alias("n")
    )
    assert (votes["n"] == 1).sum() == 879
    assert votes["n"].max() == 2
    assert votes.join(truth.frame(), on=["query", "left", "right", "winner"], how="semi").height == 999


def test_llmbar_shows_position_bias(loaded: Load) -> None:
    dataset = loaded("llmbar-judges")
    preferences = preferences_of(dataset)
    left, right, outcome = dataset.truth.align_pairs(preferences.items)
    best = np.empty(preferences.n_queries, np.int64)
    best[preferences.items.query[left]] = np.where(outcome == 1, left, right)
    won = np.where(preferences.outcome == 1, preferences.left, preferences.right)
    correct = won == best[preferences.items.query[preferences.left]]
    model = preferences.group[preferences.annotator]
    shares = {name: correct[model == code].mean() for code, name in enumerate(preferences.groups)}
    expected = {"GPT-4": 0.80, "PaLM2": 0.64, "Falcon": 0.53, "ChatGPT": 0.48, "LLaMA2": 0.48}
    assert all(shares[name] == pytest.approx(share, abs=0.01) for name, share in expected.items())
    falcon = model == preferences.groups.code("Falcon")
    shown_first = preferences.items.ids.gather(preferences.left.astype(np.int64)) == "output_2"
    for swapped in (False, True):
        asked = falcon & (shown_first.to_numpy() == swapped)
        assert (preferences.outcome[asked] == 1).mean() > 0.75
    assert len(preferences.groups) == 6


def test_rag_answers(loaded: Load) -> None:
    preferences = preferences_of(loaded("webis-rag-crowd"))
    assert (preferences.outcome != 0).all()
    pairs = preferences.frame().select(
        "query",
        low=pl.min_horizontal("left", "right"),
        high=pl.max_horizontal("left", "right"),
    )
    assert pairs.n_unique() == 975
    assert (preferences_of(loaded("webis-rag-crowd/correctness_topical")).outcome == 0).sum() == 2066
    judges = preferences_of(loaded("webis-rag-crowd/judges"))
    assert np.bincount(judges.annotator).tolist() == [1132 - 1, 1227]
    pointwise = loaded("webis-rag-crowd/pointwise").judgments
    assert isinstance(pointwise, Grades)
    assert pointwise.levels == (-3, -1, 1, 3)


def test_translations(loaded: Load) -> None:
    rankings = loaded("wmt13-fr-en-rankings").judgments
    by_turkers = rankings.group[rankings.annotator] == rankings.groups.code("turker")
    assert by_turkers.sum() == 6476
    assert rankings.across_queries().n_items == 13
    assert (np.diff(rankings.offsets) == 5).all()


@pytest.mark.parametrize(
    ("name", "total", "agreement"),
    [("dots", 3183, [0.59, 0.63, 0.68, 0.71]), ("puzzle", 3180, [0.61, 0.71, 0.69, 0.64])],
)
def test_known_order(loaded: Load, name: str, total: int, agreement: list[float]) -> None:
    dataset = loaded(f"preflib/{name}")
    rankings = dataset.judgments
    assert rankings.row_weight.sum() == total
    pairs = rankings.as_preferences()
    truth = dataset.truth.align(pairs.items)
    right = np.sign(truth[pairs.left] - truth[pairs.right]) == pairs.outcome
    query = pairs.items.query[pairs.left]
    shares = [np.average(right[query == q], weights=pairs.row_weight[query == q]) for q in range(pairs.n_queries)]
    assert shares == pytest.approx(agreement, abs=0.006)


def test_skating_events(loaded: Load) -> None:
    rankings = loaded("preflib/skate").judgments
    assert rankings.row_weight.sum() == 416
    sizes = np.diff(rankings.items.offsets)
    assert (sizes.min(), sizes.max()) == (14, 30)


def test_clutter_measures_agree(loaded: Load) -> None:
    dataset = loaded("visual-clutter")
    assert dataset.details["source"].n_unique() <= 34
    measures = ("feature_congestion", "subband_entropy", "segment_measure")
    ranks = dataset.details.select(pl.col(measures).rank())
    for one, other, expected in (("f", "su", 0.89), ("su", "se", 0.85), ("f", "se", 0.79)):
        first, second = (next(name for name in measures if name.startswith(start)) for start in (one, other))
        assert np.corrcoef(ranks[first], ranks[second])[0, 1] == pytest.approx(expected, abs=0.02)
    frame = dataset.judgments.frame()
    first = frame.filter((pl.col("annotator") == "subband_entropy") & (pl.col("rank") == 1))["item"][0]
    lowest = dataset.details.sort("subband_entropy")["item"][0]
    assert first == lowest
    assert not np.isnan(dataset.features.matrix).any()


def test_home_pages(loaded: Load) -> None:
    dataset = loaded("visual-clutter/calista")
    preferences = preferences_of(dataset)
    accepted = preferences.group[preferences.annotator] == preferences.groups.code("accepted")
    assert accepted.sum() == 5568 - 135
    assert len(np.unique(preferences.annotator[accepted])) == 174


def test_rankers_lists(loaded: Load) -> None:
    for name, rankers, nulls in (("letor-mq2007-agg", 21, 508381), ("letor-mq2008-agg", 25, 247320)):
        rankings = loaded(name).judgments
        assert len(rankings.item) == rankings.n_items * rankers - nulls
        assert (rankings.rank[rankings.offsets[:-1]] == 1).all()
    same = loaded("letor-mq2008").features
    assert same.items.frame().equals(rankings.items.frame())


def test_releases_of_ohsumed_agree(loaded: Load) -> None:
    new, old = loaded("letor-ohsumed").features, loaded("letor2-ohsumed").features
    assert new.items.frame().equals(old.items.frame())
    assert (new.grade == old.grade).all()
    assert new.items.n_queries == 106
    assert new.matrix.min() == 0
    assert new.matrix.max() == 1


def test_tables(loaded: Load) -> None:
    for colour, top in (("red", 8), ("white", 9)):
        truth = loaded(f"wine-quality/{colour}").truth
        assert (truth.grade.min(), truth.grade.max()) == (3, top)
    digits = loaded("pendigits")
    assert set(digits.truth.grade) == set(range(10))
    assert (digits.features.matrix.min(), digits.features.matrix.max()) == (0, 100)
    sample = loaded("lightgbm-rank-sample").truth
    assert set(sample.grade) == set(range(5))
