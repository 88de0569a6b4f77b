"""Annotators whose agreement changes with time are found, and constant ones are left alone."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

N_ANNOTATORS, N_EACH, N_ITEMS = 20, 150, 30
START = 1.7e9


def preferences(seed, changing=(), n_each=N_EACH, tired=False):
    """Preferences in time: ``changing`` annotators guess in their second half."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.2, N_ITEMS)
    who = np.repeat(np.arange(N_ANNOTATORS), n_each)
    step = np.tile(np.arange(n_each), N_ANNOTATORS)
    left = rng.integers(0, N_ITEMS, len(who))
    right = (left + rng.integers(1, N_ITEMS, len(who))) % N_ITEMS
    skill = np.where(np.isin(who, changing) & (step >= n_each // 2), 0.0, 2.0)
    if tired:
        skill = 3.0 * (1 - step / n_each)
    won = rng.logistic(size=len(who)) < skill * (scores[left] - scores[right])
    votes = {
        "left": left, "right": right, "annotator": who, "winner": np.where(won, "left", "right"),
        "time": START + 60.0 * step,
    }  # fmt: skip
    return cr.Preferences.from_frame(pl.DataFrame(votes))


def grades(seed, changing=(), nominal=False):
    """Grades in time, two thirds right; ``changing`` annotators guess in their second half."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 200)
    rows = []
    for who in range(12):
        items = rng.permutation(200)[:120]
        for step, item in enumerate(items.tolist()):
            guess = rng.random() < (0.9 if who in changing and step >= 60 else 0.25)
            rows.append((item, who, int(rng.integers(0, 4)) if guess else int(truth[item]), step))
    frame = pl.DataFrame(rows, schema=["item", "annotator", "grade", "time"], orient="row")
    return cr.Grades.from_frame(frame, nominal=nominal)


def flagged(judgments, method):
    """Annotators said to change, and the sentence."""
    found = cr.findings(cr.aggregate(judgments, method), judgments).of("changes")
    return ([], "") if found is None else (list(found.ids), found.sentence)


def test_constant_annotators_are_left_alone():
    assert sum(bool(flagged(preferences(seed), "bradley_terry")[0]) for seed in range(12)) <= 1


def test_a_new_model_behind_a_name_is_found_with_its_time():
    who, sentence = flagged(preferences(1, changing=[3]), "bradley_terry")
    assert who == [3]
    assert "otherwise from some time on" in sentence
    assert "2023-11-1" in sentence
    table = cr.diagnose(preferences(1, changing=[3])).annotators().row(3, named=True)
    assert table["agreement_before"] > table["agreement_after"] + 0.3
    assert abs(table["changed_at"] - (START + 60 * N_EACH / 2)) < 60 * 20


def test_a_crowd_that_tires_is_found():
    who, _ = flagged(preferences(2, n_each=400, tired=True), "bradley_terry")
    assert len(who) >= N_ANNOTATORS // 2


@pytest.mark.parametrize("nominal", [False, True])
def test_changes_of_graders_are_found(nominal):
    method = "majority_vote" if nominal else "mean_grade"
    assert flagged(grades(0, changing=[5], nominal=nominal), method)[0] == [5]
    assert flagged(grades(0, nominal=nominal), method)[0] == []


def test_the_order_of_rows_with_equal_times_is_no_matter():
    votes = preferences(1, changing=[3])
    frame = pl.DataFrame({
        "left": votes.items.ids.gather(votes.left), "right": votes.items.ids.gather(votes.right),
        "annotator": votes.annotators.ids.gather(votes.annotator),
        "winner": np.where(votes.outcome > 0, "left", "right"), "time": np.floor(votes.time / 600),
    })  # fmt: skip
    tables = [cr.diagnose(cr.Preferences.from_frame(rows)).annotators() for rows in (frame, frame.reverse())]
    for name in ("agreement_before", "agreement_after", "changed_at", "change_p_value"):
        first, second = (table.sort("annotator")[name].to_numpy() for table in tables)
        np.testing.assert_allclose(first, second)


def test_without_times_nothing_is_said():
    votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    assert "change_p_value" not in cr.diagnose(votes).annotators().columns


def test_the_report_draws_who_changes(tmp_path):
    votes = preferences(1, changing=[3])
    consensus = cr.aggregate(votes, "bradley_terry")
    cr.report.write(consensus, votes, tmp_path / "page.html")
    assert "also of annotators whose answers change" in (tmp_path / "page.html").read_text()
    table = cr.report.TimeDisplay.from_judgments(votes, consensus, [3]).table
    own = table["agreement of 3"]
    assert own[0] > 0.7 > 0.6 > own[-1]


def test_each_version_of_a_judge_is_an_annotator(tmp_path):
    rows = "item,annotator,model,grade\nx,gpt,v1,3\ny,gpt,v1,1\nx,gpt,v2,1\ny,gpt,v2,2\nx,ann,,3\n"
    (tmp_path / "votes.csv").write_text(rows)
    judged = cr.read_judgments(tmp_path / "votes.csv", judge_version="model")
    assert list(judged.annotators) == ["ann", "gpt (v1)", "gpt (v2)"]
    with pytest.raises(cr.errors.JudgmentError, match="the table's columns are 'item'"):
        cr.read_judgments(tmp_path / "votes.csv", judge_version="version")
    (tmp_path / "votes.csv").write_text("item,grade\nx,3\nx,1\n")
    with pytest.raises(cr.errors.JudgmentError, match="names no annotators"):
        cr.read_judgments(tmp_path / "votes.csv", judge_version="grade", no_annotators=True)
