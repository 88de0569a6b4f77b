"""MACE: a peer's answers, the slow twin, recovery, restarts, known items, warm starts, and bad input."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.oracles import spamming as slow
from tests.strategies import grade_rows, judgments

from crowdrank import datasets
from crowdrank.data.judgments import Grades
from crowdrank.models.averages.majority_vote import MajorityVote
from crowdrank.models.classes import mace
from crowdrank.models.classes.mace import MACE

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "crowdkit_glad_mace.json").read_text())
WORSE = {
    "crowd-truth-inference/dog": (
        "4 of 807 items less than the peer in the order of the file; the peer's other orders give 0.827 to 0.833, and "
        "with ids in order of appearance, which hides its mix-up of annotators, it gives what ours does"
    ),
}


def spammed(n_items=300, n_levels=4, honest=8, spammers=6, per_item=6, seed=0):
    """Grades of honest annotators, right 4 times of 5, and of spammers who like their own level; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_levels, n_items)
    liking = rng.dirichlet(np.full(n_levels, 0.3), honest + spammers)
    spam = np.append(rng.uniform(0.1, 0.3, honest), np.full(spammers, 0.95))
    rows = []
    for item in range(n_items):
        for who in rng.permutation(honest + spammers)[:per_item]:
            blind = rng.random() < spam[who]
            grade = rng.choice(n_levels, p=liking[who]) if blind else truth[item]
            rows.append((f"a{who:02d}", "q", f"i{item:03d}", int(grade)))
    return rows, truth, spam, liking


def never_falls(trace):
    return bool((np.diff(trace.log_likelihood) >= 0).all())


def small_golden():
    table = pl.DataFrame(GOLDEN["small"]["rows"], schema=["annotator", "item", "grade"], orient="row")
    return Grades.from_frame(table), GOLDEN["small"]


@pytest.mark.parametrize(("inference", "field"), [("variational", "mace"), ("em", "mace_em")])
def test_golden(inference, field):
    grades, small = small_golden()
    consensus = MACE(inference=inference, n_restarts=1, prior="uniform", calibrated=False).fit(grades)
    assert consensus.items.ids.to_list() == small["items"]
    np.testing.assert_allclose(consensus.probabilities, small[field], atol=2e-4)
    if inference == "em":
        parameters = consensus.quality.parameters
        np.testing.assert_allclose(parameters["spam_probability"], small["em_spam"], atol=1e-3)
        np.testing.assert_allclose(parameters["spam_answers"], small["em_answers"], atol=2e-3)


@pytest.mark.data
@pytest.mark.parametrize("name", list(GOLDEN["sets"]))
def test_public_sets_against_the_peer(name, data_folder):
    peer = GOLDEN["sets"][name]
    loaded = datasets.load(name, data_folder)
    consensus = MACE(prior="uniform", calibrated=False).fit(loaded.judgments)
    accuracy, loss = against_gold(consensus, loaded)
    ours = peer["ours"]["mace"]
    assert (accuracy, loss) == pytest.approx((ours["accuracy"], ours["log_loss"]), abs=1e-3)
    allowed = max(0.003, 2 / peer["n_gold"]) + 1e-9
    assert accuracy >= peer["mace_ids_in_order"]["accuracy"] - allowed
    if name not in WORSE:
        assert accuracy >= peer["mace"][0]["accuracy"] - allowed
    assert consensus.trace.converged
    assert never_falls(consensus.trace)


def against_gold(consensus, loaded):
    """Accuracy and mean log-loss over graded items with gold."""
    truth = loaded.truth.align(consensus.items)
    gold = np.flatnonzero(np.isfinite(truth) & (consensus.grade >= 0))
    code = truth[gold].astype(int)
    loss = -np.log(np.maximum(consensus.probabilities[gold, code], 1e-6)).mean()
    return float((consensus.grade[gold] == code).mean()), float(loss)


def test_a_frequent_level_is_learned_of():
    rng = np.random.default_rng(4)
    truth = (rng.random(500) < 0.1).astype(int)
    # everybody looks two times in three and otherwise says anything
    rows = [
        (f"a{who:02d}", "q", f"i{item:03d}", int(truth[item]) if rng.random() < 0.67 else int(rng.integers(0, 2)))
        for item in range(500)
        for who in rng.choice(20, 3, replace=False)
    ]
    grades = Grades.from_rows(rows)
    found = {prior: MACE(prior=prior, calibrated=False).fit(grades).grade for prior in ("learned", "uniform")}
    assert (found["learned"] == truth).mean() > (found["uniform"] == truth).mean() + 0.05


@pytest.mark.data
def test_row_order_changes_nothing_where_it_moves_the_peer(data_folder):
    name = "crowd-truth-inference/duck"
    loaded = datasets.load(name, data_folder)
    peers = [run["accuracy"] for run in GOLDEN["sets"][name]["mace"]]
    assert max(peers) - min(peers) > 0.1
    first = MACE().fit(loaded.judgments)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(loaded.judgments))
        again = MACE().fit(loaded.judgments.select(order))
        np.testing.assert_array_equal(again.probabilities, first.probabilities)


@pytest.mark.parametrize("inference", ["variational", "em"])
@given(rows=grade_rows(min_size=4, max_size=20))
def test_a_pass_of_the_slow_twin_changes_nothing_any_more(inference, rows):
    grades = judgments("grade", rows)
    codes, levels, values = grades.level_codes()
    if len(levels) == 1 or len({(row[1], row[2]) for row in rows}) == len(rows):
        return
    method = MACE(inference=inference, n_restarts=1, smoothing=1.0, tol=1e-8, prior="uniform", calibrated=False)
    consensus = method.fit(grades)
    plain = list(zip(grades.item.tolist(), grades.annotator.tolist(), codes.tolist(), [1.0] * len(rows), strict=True))
    n_levels, counts = len(levels), slow.counts_of(plain, grades.n_annotators, len(levels))
    more, even = (0.5, 10.0) if inference == "variational" else (1 / n_levels, 1 / n_levels)
    parameters = consensus.quality.parameters
    blind = parameters["spam_probability"] * (counts.sum(axis=1) + 2 * more) - more
    looks = counts - (parameters["spam_answers"] * (blind + n_levels * even)[:, None] - even)
    learn = (
        slow.averages(looks, counts, more, even) if inference == "variational" else slow.likeliest(looks, counts, more)
    )
    _, expected, again = slow.pass_over(plain, *learn, np.full(n_levels, 1 / n_levels))
    np.testing.assert_allclose(again, looks, atol=1e-5)
    for item, own in expected.items():
        np.testing.assert_allclose(consensus.probabilities[item], own, atol=1e-5)
        assert consensus.scores[item] == pytest.approx(float(own @ values), abs=1e-4)


@pytest.mark.parametrize("inference", ["variational", "em"])
@pytest.mark.parametrize("prior", ["uniform", "estimated"])
def test_levels_and_habits_come_back(inference, prior):
    rows, truth, spam, liking = spammed()
    grades = Grades.from_rows(rows)
    consensus = MACE(inference=inference, prior=prior).fit(grades)
    accuracy = float((consensus.grade == truth).mean())
    assert accuracy >= 0.92
    assert accuracy > float((MajorityVote().fit(grades).grade == truth).mean()) + 0.05
    parameters = consensus.quality.parameters
    np.testing.assert_allclose(parameters["spam_probability"], spam, atol=0.15)
    assert np.abs(parameters["spam_answers"][8:] - liking[8:]).mean() < 0.06
    assert consensus.quality.quality[:8].min() > 0.75
    assert consensus.quality.quality[8:].max() < 0.7
    assert consensus.trace.converged
    assert never_falls(consensus.trace)


def test_scores_are_expected_grades_and_confidence_is_theirs():
    rows, _, _, _ = spammed(n_items=60)
    consensus = MACE().fit(Grades.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, consensus.probabilities @ np.arange(4))
    np.testing.assert_allclose(consensus.probabilities.sum(axis=1), 1)
    confidence = dict(consensus.frame()["item", "confidence"].iter_rows())
    for code, item in enumerate(consensus.items.ids):
        assert confidence[item] == consensus.probabilities[code].max()


def test_quality_is_that_of_the_mixture():
    rows, _, _, _ = spammed(n_items=80)
    quality = MACE().fit(Grades.from_rows(rows)).quality
    spam, answers = quality.parameters["spam_probability"], quality.parameters["spam_answers"]
    mixed = (1 - spam)[:, None, None] * np.eye(4) + spam[:, None, None] * answers[:, None, :]
    np.testing.assert_allclose(quality.parameters["confusion"], mixed)
    # who never looks orders half of the pairs right, who always does all of them: quality is linear in spamming
    # as far as held-out agreement, and a tenth of its interval, let it be
    np.testing.assert_allclose(quality.quality, 0.5 + 0.5 * (1 - spam), atol=0.16)


def climbed(monkeypatch, grades, **options):
    """Starts of the climbs, and the objectives they ended with."""
    starts, ends = [], []
    plain = mace.accelerate

    def noted(step, start, **more):
        state, trace = plain(step, start, **more)
        starts.append(start)
        ends.append(trace.log_likelihood[-1])
        return state, trace

    monkeypatch.setattr(mace, "accelerate", noted)
    return MACE(prior="uniform", calibrated=False, **options).fit(grades), starts[:-1], ends[:-1]


def test_restarts_differ_and_the_best_wins(monkeypatch):
    # hardly anybody looks: several tops
    rows, _, _, _ = spammed(n_items=40, n_levels=2, honest=2, spammers=8, per_item=4, seed=3)
    grades = Grades.from_rows(rows)
    consensus, starts, ends = climbed(monkeypatch, grades, n_restarts=12)
    assert len(starts) == 12
    for one in range(12):
        for other in range(one):
            assert np.abs(starts[one] - starts[other]).max() > 0.01
    assert len({round(end, 2) for end in ends}) > 2
    assert max(ends) > min(ends) + 1
    assert consensus.trace.log_likelihood[-1] >= max(ends) - 1e-6
    again, same, _ = climbed(monkeypatch, grades, n_restarts=12)
    np.testing.assert_array_equal(same, starts)
    np.testing.assert_array_equal(again.probabilities, consensus.probabilities)
    _, others, _ = climbed(monkeypatch, grades, n_restarts=3, seed=1)
    assert np.abs(others[1] - starts[1]).max() > 0.01
    in_order = mace._starts
    monkeypatch.setattr(mace, "_starts", lambda *arguments: reversed(list(in_order(*arguments))))
    backwards, _, ends = climbed(monkeypatch, grades, n_restarts=12)
    assert ends[-1] > ends[0]
    np.testing.assert_allclose(backwards.probabilities, consensus.probabilities, atol=1e-4)


def test_known_items_are_certain_and_teach():
    rows, truth, spam, _ = spammed(n_items=120, honest=4, spammers=9, seed=1)
    grades = Grades.from_rows(rows)
    known = pl.DataFrame({"query": ["q"] * 60, "item": [f"i{k:03d}" for k in range(60)], "grade": truth[:60]})
    taught = MACE().fit(grades, known=known)
    assert (taught.grade[:60] == truth[:60]).all()
    assert (taught.probabilities.max(axis=1)[:60] == 1).all()
    plain = MACE().fit(grades)

    def error(consensus):
        return np.abs(consensus.quality.parameters["spam_probability"] - spam).mean()

    assert error(taught) < error(plain)


def test_annotators_who_saw_known_items_only_are_scored():
    rows = [("good", "q", f"i{k}", k % 3) for k in range(9)] + [("bad", "q", f"i{k}", 0) for k in range(9)]
    known = {"query": ["q"] * 9, "item": [f"i{k}" for k in range(9)], "grade": [k % 3 for k in range(9)]}
    single = [row for k, row in enumerate(rows) if k < 5 or k >= 14]
    quality = dict(
        MACE().fit(Grades.from_rows(single), known=known).quality.frame()["annotator", "quality"].iter_rows()
    )
    assert quality["good"] > quality["bad"]


@pytest.mark.parametrize("options", [{}, {"inference": "em", "smoothing": 1.0}, {"prior": "estimated"}])
def test_warm_starts_end_where_cold_ones_do_but_sooner(options):
    rows, _, _, _ = spammed(n_items=400, seed=5)
    method = MACE(n_restarts=1, tol=1e-7, calibrated=False, **({"prior": "uniform"} | options))
    former = method.fit(Grades.from_rows(rows[: int(0.99 * len(rows))]))
    more = Grades.from_rows([*rows, ("new", "q", "i000", 1), ("new", "q", "extra", 2), ("a00", "q", "extra", 2)])
    warm, cold = method.fit(more, start=former), method.fit(more)
    np.testing.assert_allclose(warm.probabilities, cold.probabilities, atol=1e-4)
    assert warm.trace.n_iter < cold.trace.n_iter
    assert never_falls(warm.trace)
    assert method.fit(more, start=cold).trace.n_iter <= 0.5 * cold.trace.n_iter


def test_per_query_takes_annotators_apart():
    one, first, _, _ = spammed(n_items=150, honest=7, spammers=7, seed=1)
    # the same people, honest in one query and spammers in the other
    swap = {f"a{k:02d}": f"a{(k + 7) % 14:02d}" for k in range(14)}
    two, second, _, _ = spammed(n_items=150, honest=7, spammers=7, seed=20)
    rows = one + [(swap[who], "r", item, grade) for who, _, item, grade in two]
    grades = Grades.from_rows(rows)
    apart, pooled = (MACE(per_query=each, calibrated=False).fit(grades) for each in (True, False))
    truth = np.append(first, second)
    assert (apart.grade == truth).mean() > (pooled.grade == truth).mean() + 0.03
    alone = MACE(calibrated=False).fit(Grades.from_rows(one))
    np.testing.assert_allclose(apart.probabilities[:150], alone.probabilities, atol=1e-6)
    assert never_falls(apart.trace)


def test_who_gives_one_level_only_tells_nothing():
    rows, truth, _, _ = spammed(honest=8, spammers=0, n_items=200)
    lazy = [("lazy", "q", f"i{k:03d}", 3) for k in range(200)]
    consensus, plain = MACE().fit(Grades.from_rows(rows + lazy)), MACE().fit(Grades.from_rows(rows))
    assert consensus.quality.parameters["spam_probability"][-1] > 0.9
    assert consensus.quality.quality[-1] == pytest.approx(0.5, abs=0.05)
    assert (consensus.grade == truth).mean() >= (plain.grade == truth).mean() - 0.01


def test_a_level_that_nobody_gave():
    rows, _, _, _ = spammed(n_items=40, n_levels=3)
    consensus = MACE().fit(Grades.from_rows(rows, levels=[0, 1, 2, 3]))
    assert consensus.probabilities.shape == (40, 4)
    assert (consensus.probabilities[:, 3] == 0).all()
    assert consensus.quality.parameters["spam_answers"].shape == (14, 4)
    np.testing.assert_allclose(consensus.scores, MACE().fit(Grades.from_rows(rows)).scores)
    # the level turns up later
    later = Grades.from_rows([*rows, ("a00", "q", "new", 3), ("a01", "q", "new", 3)], levels=[0, 1, 2, 3])
    assert MACE().fit(later, start=consensus).grade[-1] == 3


def test_who_is_below_chance_counts_for_little():
    rows, truth, _, _ = spammed(honest=8, spammers=0, n_items=200)
    wrong = [("foe", "q", f"i{k:03d}", int((truth[k] + 1 + k % 3) % 4)) for k in range(200)]
    consensus = MACE().fit(Grades.from_rows(rows + wrong))
    assert consensus.quality.parameters["spam_probability"][-1] > 0.9
    assert (consensus.grade == truth).mean() > 0.95
