"""Comparative judgement: reliability that is honest, judges who do not fit, grades from anchors, cohorts, workbooks."""

import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.adaptive_designs import campaign

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.report import write_moderation

pytestmark = pytest.mark.filterwarnings("ignore:.*repeat one by the same annotator:crowdrank.errors.DataWarning")


def judged(rng, scores, pairs, judges=8, slopes=None):
    """Preferences of these pairs by judges with these slopes."""
    slopes = np.ones(judges) if slopes is None else np.asarray(slopes)
    who = rng.integers(judges, size=len(pairs))
    gap = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    won = rng.random(len(pairs)) < 1 / (1 + np.exp(-slopes[who] * gap))
    table = {
        "left": [f"s{one:03d}" for one in pairs[:, 0]], "right": [f"s{one:03d}" for one in pairs[:, 1]],
        "annotator": [f"j{one}" for one in who], "winner": np.where(won, "left", "right").tolist(),
    }  # fmt: skip
    return cr.Preferences.from_frame(table)


def random_pairs(rng, items, number):
    first = rng.choice(items, number)
    second = rng.choice(items, number)
    return np.stack([first, second], axis=1)[first != second]


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_adjusted_reliability_is_that_of_the_truth_whatever_chose_the_pairs(adaptive, spread):
    found, truth = [], []
    for seed in range(3):
        drawn = campaign(seed, n_items=60, per_item=14, spread=spread, adaptive=adaptive)
        found.append(cr.moderate(drawn.preferences).reliability)
        scores = cr.aggregators.BradleyTerry().scores(drawn.preferences)
        truth.append(np.corrcoef(scores, drawn.scores)[0, 1] ** 2 if spread else 0.0)
    mean = {name: np.mean([one[name] for one in found]) for name in ("adjusted", "separation", "split_half")}
    assert all(one["adaptive"] == adaptive for one in found) or not adaptive
    assert abs(mean["adjusted"] - np.mean(truth)) < (0.08 if spread else 0.25)
    if adaptive and not spread:
        # answers by a coin: the usual figures are far too large
        assert mean["separation"] > 0.5
        assert mean["split_half"] > 0.4
    for one in found:
        assert 0 <= one["adjusted_lower"] <= one["adjusted"] <= one["adjusted_upper"] <= 1


def test_a_judge_who_tosses_a_coin_does_not_fit_and_the_others_do():
    rng = np.random.default_rng(5)
    scores = rng.normal(0, 2, 30)
    slopes = [0.0] + [1.5] * 7
    found = cr.moderate(judged(rng, scores, random_pairs(rng, 30, 800), slopes=slopes))
    assert found.judges.filter("misfit")["judge"].to_list() == ["j0"]
    worst = found.judges.row(0, named=True)
    assert worst["judge"] == "j0"
    assert worst["infit_lower"] > 1
    assert worst["infit_lower"] < worst["infit"] < worst["infit_upper"]
    # what the scale hardly expected is mostly theirs
    assert (found.misfits["judge"] == "j0").mean() > 0.5
    assert any("j0" in step for step in found.steps)


def test_infit_and_outfit_are_the_textbook_sums():
    rng = np.random.default_rng(1)
    preferences = judged(rng, rng.normal(0, 1, 10), random_pairs(rng, 10, 150))
    found = cr.moderate(preferences)
    scores = cr.aggregators.BradleyTerry().scores(preferences)
    chance = 1 / (1 + np.exp(scores[preferences.right] - scores[preferences.left]))
    won, mine = preferences.outcome > 0, preferences.annotator == 0
    squared, variance = (won - chance)[mine] ** 2, (chance * (1 - chance))[mine]
    row = found.judges.filter(judge="j0").row(0, named=True)
    np.testing.assert_allclose(row["infit"], squared.sum() / variance.sum())
    np.testing.assert_allclose(row["outfit"], (squared / variance).mean())


def test_anchors_put_the_others_into_grades():
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 2.5, 80)
    true = np.digitize(scores, [-1.5, 1.5])
    preferences = judged(rng, scores, random_pairs(rng, 80, 1600))
    names = np.array(["C", "B", "A"])[true]
    anchors = {"script": [f"s{one:03d}" for one in range(24)], "grade": names[:24].tolist()}
    found = cr.moderate(preferences, anchors=anchors, levels=["C", "B", "A"])
    rest = found.scripts.filter(found.scripts["anchor"].is_null())
    right = rest["grade"].to_numpy() == names[[int(one[1:]) for one in rest["script"]]]
    said = rest.select("P(C)", "P(B)", "P(A)").to_numpy()
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    assert right.mean() > 0.75
    # as sure as it is right
    assert abs(said.max(axis=1).mean() - right.mean()) < 0.12
    assert found.boundaries["from_score"].is_sorted()
    for wrong, error in (({"script": ["nobody"], "grade": ["A"]}, "never judged"), (anchors, "--levels A,B,C")):
        with pytest.raises((JudgmentError, ParameterError), match=error):
            cr.moderate(preferences, anchors=wrong)


def test_cohorts_are_one_scale_where_they_share_scripts():
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(0, 1, 20), rng.normal(2, 1, 20)])
    rows = []
    for cohort, items in (("2024", np.arange(0, 24)), ("2025", np.arange(20, 40))):
        one = judged(rng, scores, random_pairs(rng, items, 500)).frame()
        rows += [(who, cohort, left, right, won) for left, right, won, who in
                 one.select("left", "right", "winner", "annotator").rows()]  # fmt: skip
    found = cr.moderate(cr.Preferences.from_rows(rows))
    mean = dict(found.cohorts.select("cohort", "mean").rows())
    assert found.cohorts["common"].to_list() == [4, 4]
    assert 1 < mean["2025"] - mean["2024"] < 3
    apart = [row for row in rows if row[1] == "2024" or min(row[2:4]) >= "s024"]
    with pytest.raises(JudgmentError, match="no common scripts"):
        cr.moderate(cr.Preferences.from_rows(apart))


def test_the_page_and_the_workbook_speak_of_judges_and_scripts(tmp_path):
    rng = np.random.default_rng(4)
    preferences = judged(rng, rng.normal(0, 2, 12), random_pairs(rng, 12, 200))
    preferences.frame().rename({"annotator": "judge"}).write_csv(tmp_path / "pairs.csv")
    (tmp_path / "anchors.csv").write_text("script,grade\ns000,=cmd()\ns001,B\n")
    options = ["-o", "r.xlsx", "--moderation", "m.html", "--anchors", "anchors.csv", "--levels", "=cmd(),B"]
    command = [sys.executable, "-m", "crowdrank", "aggregate", "pairs.csv", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    text = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).lower()
    assert not re.search(r"\b(query|ridge|annotator|item)s?\b", text)
    assert "judge" in text
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(tmp_path / "r.xlsx")
    assert book.sheet_names == ["scripts", "judges", "pairs", "boundaries", "what to do next"]
    rows = book.get_sheet_by_name("scripts").to_python()
    assert rows[0][0] == "script"
    assert {row[0] for row in rows[1:]} == {f"s{one:03d}" for one in range(12)}
    # text that begins like a formula stays text
    assert any("=cmd()" in row for row in rows)


def test_a_chain_compares_every_script_so_often_and_shares_one_with_the_last():
    asked = cr.propose(None, "chained", {"script": [f"s{one}" for one in range(21)]}, params={"least": 6})
    rows = asked.select("left", "right").rows()
    counts = {one: sum(one in row for row in rows) for one in {name for row in rows for name in row}}
    assert len(counts) == 21
    assert min(counts.values()) == 6
    assert max(counts.values()) <= 7
    assert all(set(one) & set(other) for one, other in itertools.pairwise(rows))
    assert len({frozenset(row) for row in rows}) == len(rows)
    lefts = [sum(row[0] == one for row in rows) - sum(row[1] == one for row in rows) for one in counts]
    assert max(map(abs, lefts)) <= 2


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_near_pairs_are_near_and_random_ones_remain():
    rng = np.random.default_rng(5)
    votes = judged(rng, np.linspace(-4, 4, 60), random_pairs(rng, 60, 300))
    scores = dict(cr.aggregate(votes, "bradley_terry").frame().select("item", "score").rows())
    gap = {}
    for near in (0.0, 0.5, 1.0):
        asked = cr.propose(votes, "chained", params={"least": 60, "near": near}, budget=100, seed=1)
        gap[near] = np.mean([abs(scores[left] - scores[right]) for left, right in asked.select("left", "right").rows()])
    assert gap[1.0] < 0.8 * gap[0.5] < 0.8 * gap[0.0], gap
    begun = cr.propose(None, "chained", {"item": list("abcd")}, params={"near": 0.5})
    assert begun["reason"][0] == "not judged yet"
    with pytest.raises(ParameterError, match="is no share"):
        cr.propose(votes, "chained", params={"near": 2})


@pytest.mark.parametrize("names", [
    ("Judge", "Left", "Right", "Chosen"), ("Judge Name", "Chosen Candidate", "Not Chosen Candidate"),
    ("judge", "candidate_chosen", "candidate_not_chosen"),
    ("Assessor", "Representation A", "Representation B", "Selected representation"),
])  # fmt: skip
def test_exports_of_comparative_judgement_are_read(tmp_path, names):
    won = [("ann", "s1", "s2"), ("bob", "s3", "s2"), ("ann", "s3", "s1"), ("bob", "s2", "s1"), ("bob", "s1", "s3"),
           ("kim", "s3", "s1"), ("kim", "s3", "s2"), ("ann", "s2", "s3")]  # fmt: skip
    rows = [(*row, row[1]) if len(names) == 4 else row for row in won]
    text = "\n".join(",".join(row) for row in [names, *rows])
    (tmp_path / "e.csv").write_text(text)
    found = cr.read_judgments(tmp_path / "e.csv")
    assert cr.aggregate(found, "bradley_terry").order() == ["s3", "s1", "s2"]
    assert found.annotators.ids.to_list() == ["ann", "bob", "kim"]


def test_criteria_below_each_other_are_those_beside_each_other(tmp_path):
    wide = "script,marker,content,style\na,x,5,1\na,y,4,2\nb,x,2,4\nb,y,1,5\nc,x,3,3\nc,y,3,3\n"
    (tmp_path / "wide.csv").write_text(wide)
    rows = [line.split(",") for line in wide.splitlines()[1:]]
    long = [f"{row[0]},{row[1]},{name},{row[place]}" for row in rows for place, name in ((2, "content"), (3, "style"))]
    (tmp_path / "long.csv").write_text("\n".join(["script,marker,criterion,mark", *long]))
    said = []
    for name in ("wide.csv", "long.csv"):
        command = [sys.executable, "-m", "crowdrank", "aggregate", name, "-m", "mean_grade"]
        asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "--criteria content,style" in asked.stderr
        more = ["--criteria", "content=.9,style=.1", "--quiet"]
        done = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]


def test_answers_that_are_too_few_give_no_number_and_no_nan(tmp_path):
    found = cr.moderate(cr.Preferences.from_rows([("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "tie")]))
    assert found.reliability["adjusted"] is None
    write_moderation(found, tmp_path / "m.html")
    assert "nan" not in (tmp_path / "m.html").read_text(encoding="utf-8").lower()
    with pytest.raises(JudgmentError, match="needs pairs"):
        cr.moderate(cr.Grades.from_rows([("ann", "q", "x", 1)]))


def test_beyond_its_thresholds_there_is_no_reliability(monkeypatch, tmp_path):
    rng = np.random.default_rng(6)
    preferences = judged(rng, rng.normal(0, 2, 12), random_pairs(rng, 12, 60))
    monkeypatch.setattr("crowdrank.api.moderation._MOST_SCRIPTS", 5)
    found = cr.moderate(preferences).reliability
    assert found["adjusted"] is None
    assert found["separation"] is not None
    from crowdrank.cli import aggregate
    from crowdrank.cli.votes import Asked
    from crowdrank.io.output import format_for

    monkeypatch.setattr("crowdrank.api.moderation.MANY_JUDGEMENTS", 10)
    asked = Asked(moderation=None, anchors=None)
    assert aggregate._moderate(preferences, None, asked, format_for("r.json", None)) is None


def test_reliability_does_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(2)
    pairs = [rng.choice(12, 2, replace=False) for _ in range(200)]
    rows = [(f"j{n % 5}", "q", f"s{a:02}", f"s{b:02}", "left" if a + rng.normal(0, 3) > b else "right")
            for n, (a, b) in enumerate(pairs)]  # fmt: skip
    found = [cr.moderate(cr.Preferences.from_rows(some)).reliability for some in (rows, rows[::-1])]
    for name, value in found[0].items():
        assert found[1][name] == (pytest.approx(value, abs=1e-6) if isinstance(value, float) else value), name
