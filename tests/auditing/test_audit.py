"""``cr.audit``: verdicts, corrected figures, refusals, every kind, the command and its page."""

import json

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.auditing.program_audit import Figure, corrected_row, rogan_gladen
from crowdrank.errors import JudgmentError, ParameterError

N = 120


def labels(quality=0.9, *, n=N, n_more=200, seed=0, people=("ann", "bob", "cy"), scale=1):
    """Grades 1 to 5 by people on n items, and by a program on these and more."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, n + n_more)
    rows = []
    for who in people:
        grade = np.where(rng.random(n) < 0.7, truth[:n], rng.integers(1, 6, n))
        rows += [(who, "q", f"i{k}", int(grade[k])) for k in range(n)]
    said = np.where(rng.random(n + n_more) < quality, truth, rng.integers(1, 6, n + n_more))
    return rows, [("bot", "q", f"i{k}", scale * int(said[k])) for k in range(n + n_more)]


def test_verdicts_of_good_and_random_programs():
    people, good = labels(0.95)
    bad = [("noise", *row[1:3], int(np.random.default_rng(k).integers(1, 6))) for k, row in enumerate(good)]
    found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(good + bad))
    assert found.verdicts == {"bot": "yes", "noise": "no"}
    row = found.frame().row(0, named=True)
    assert row["low"] < row["advantage"] < row["high"]
    assert row["quality"] > 0.85
    assert "may stand in for people" in row["sentence"]
    assert set(found.corrected["program"]) == {"bot", "noise"}
    width = dict(found.corrected.filter(figure="mean grade").select("program", "relative_width").rows())
    assert width["bot"] < 0.8 < width["noise"] <= 1.01
    assert len(found.next_labels.filter(program="bot")) == 200
    assert json.loads(json.dumps(found.plain()))["programs"][0]["verdict"] == "yes"


def test_one_set_and_two_sets_are_the_same():
    people, program = labels()
    two = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program))
    one = cr.audit(cr.Grades.from_rows(program + people), people="ann,bob,cy")
    assert one.frame().equals(two.frame())
    assert one.corrected.equals(two.corrected)


def test_too_little_is_not_decided():
    people, program = labels(0.75, n=40, n_more=0)
    found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program))
    assert found.verdicts == {"bot": "undecided"}
    assert "not decided with these labels" in found.sentences[0]
    assert "would decide" in found.sentences[0] or "would be needed" in found.sentences[0]


REFUSED = {
    "one person": (labels(people=("ann",)), "only one person"),
    "no overlap": (([("ann", "q", f"i{k}", 1 + k % 5) for k in range(60)]
                    + [("bob", "q", f"j{k}", 1 + k % 5) for k in range(60)],
                    [("bot", "q", f"i{k}", 1 + k % 4) for k in range(60)]), "no two of the 2 people judged the same"),
    "few items": (labels(n=12, n_more=0), "have 12 items in common"),
    "scale": (labels(scale=20), "grades from 20 to 100 and people from 1 to 5; give both on the same scale"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tested_is_refused_with_what_would_do(case):
    (people, program), message = REFUSED[case]
    with pytest.raises(JudgmentError, match=message) as caught:
        cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program))
    assert "\n" not in str(caught.value)
    if case != "scale":
        assert "at least 50 items with two people each are needed" in str(caught.value)


def test_a_program_without_people_beside_it_is_not_decided():
    people, program = labels(0.95)
    alone = [("lone", "q", f"z{k}", 1 + k % 5) for k in range(60)]
    found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program + alone))
    assert found.verdicts == {"bot": "yes", "lone": "undecided"}
    assert "lone judged nothing that people did" in found.sentences[1]
    assert "lone judged nothing" in found.html()


def test_copies_and_wrong_sides_are_refused():
    people, _ = labels()
    copy = [("bot", *row[1:]) for row in people if row[0] == "ann"]
    with pytest.raises(JudgmentError, match="gives the labels of 'ann' on 120 items in common"):
        cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(copy))
    grades = cr.Grades.from_rows(people)
    with pytest.raises(ParameterError, match="say who the people are"):
        cr.audit(grades)
    with pytest.raises(JudgmentError, match="stand among people and programs"):
        cr.audit(grades, grades)
    with pytest.raises(ParameterError, match="is not a difference of shares"):
        cr.audit(grades, people="ann", margin=3)


def preference_rows(n=150, seed=1):
    """Preferences over prompts by three people and one program."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        left, right = rng.choice(6, 2, replace=False)
        for who in ("ann", "bob", "cy", "bot"):
            won = 0.6 * (right - left) + rng.logistic() > 0
            rows.append((who, f"p{k}", f"m{left}", f"m{right}", "left" if won else "right"))
    return rows


def test_preferences_have_win_rates_and_a_leaderboard():
    votes = cr.Preferences.from_rows(preference_rows()).across_queries()
    found = cr.audit(votes, people=["ann", "bob", "cy"])
    assert found.verdicts["bot"] in ("yes", "undecided")
    assert found.corrected["figure"].to_list()[0] == "win rate of m0"
    assert found.leaderboard.columns[:3] == ["program", "item", "people_rank"]
    assert found.frame()["kappa"][0] > 0


def test_classes_and_rankings():
    people, program = labels(0.9)
    words = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}
    named = [[(*row[:3], words[row[3]]) for row in part] for part in (people, program)]
    found = cr.audit(*(cr.Grades.from_rows(part, nominal=True) for part in named))
    assert found.verdicts == {"bot": "yes"}
    assert found.frame()["accuracy"][0] > 0.7
    assert set(found.corrected["figure"]) == {f"share of {one}" for one in "abcde"}
    rng = np.random.default_rng(0)
    rows = [
        (who, f"q{q}", f"i{item}", place)
        for q in range(60)
        for who in ("ann", "bob", "bot")
        for place, item in enumerate(np.argsort(-(np.arange(4) + rng.gumbel(size=4))), 1)
    ]
    found = cr.audit(cr.Rankings.from_rows(rows), people=["ann", "bob"])
    assert found.frame()["n_items"][0] == 60


def test_slices_and_a_run():
    people, program = labels(0.95, n=200, n_more=100)
    by = pl.DataFrame({"item": [f"i{k}" for k in range(200)], "part": ["odd" if k % 2 else "even" for k in range(200)]})
    people = [(who, q, item, 6 - g if int(item[1:]) % 2 else g) for who, q, item, g in people]
    found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program), by=by)
    gains = dict(found.slices.select("slice", "gain").rows())
    assert gains["even"] > gains["odd"]
    assert found.slices["differs"].all()
    rng = np.random.default_rng(5)
    grades = {}
    for who, n in (("ann", 40), ("bob", 40), ("bot", 120)):
        grade = np.clip(np.arange(6) % 4 + rng.integers(-1, 2, (n, 6)), 0, 3)
        grades[who] = [(who, f"q{q}", f"d{d}", int(grade[q, d])) for q in range(n) for d in range(6)]
    run = pl.DataFrame([(f"q{q}", f"d{d}", float(rng.random())) for q in range(120) for d in range(6)],
                       schema=["query", "item", "score"], orient="row")  # fmt: skip
    found = cr.audit(cr.Grades.from_rows(grades["ann"] + grades["bob"]), cr.Grades.from_rows(grades["bot"]), run=run)
    row = found.corrected.filter(figure="ndcg@10").row(0, named=True)
    assert (row["n_people"], row["n_program"]) == (40, 120)
    assert row["lower"] < row["corrected"] < row["upper"]


def test_corrected_figures_cover_and_labels_needed_are_those():
    rng = np.random.default_rng(2)
    covered, widths = 0, []
    for _ in range(300):
        f = rng.normal(size=2000)
        h = 0.8 * f + 0.6 * rng.normal(size=2000) + 1.0
        seen = np.where(np.arange(2000) < 150, h, np.nan)
        row = corrected_row(Figure("mean", seen, f), np.arange(2000), 0.9)
        covered += row["lower"] <= 1.0 <= row["upper"]
        widths.append((row["upper"] - row["lower"], row["people_upper"] - row["people_lower"], row["labels_to_halve"]))
    assert 0.86 < covered / 300 < 0.95
    joint, alone, needed = np.mean(np.array(widths), axis=0)
    assert joint < 0.75 * alone
    # with the labels said to be needed the interval is half as wide as people's alone
    n = round(needed)
    f = rng.normal(size=2000 - 150 + n)
    h = 0.8 * f + 0.6 * rng.normal(size=len(f)) + 1.0
    row = corrected_row(Figure("mean", np.where(np.arange(len(f)) < n, h, np.nan), f), np.arange(len(f)), 0.9)
    assert row["upper"] - row["lower"] == pytest.approx(alone / 2, rel=0.15)


def test_rogan_gladen_by_hand():
    # sensitivity 0.8 (8 of 10), specificity 0.9 (9 of 10), the program passes half: (0.5 + 0.9 - 1) / 0.7
    h = np.array([1.0] * 10 + [0.0] * 10)
    f = np.array([1.0] * 8 + [0.0] * 2 + [0.0] * 9 + [1.0])
    found = rogan_gladen(h, f, np.array([1.0, 0.0] * 50), 0.9)
    assert found["rogan_gladen"] == pytest.approx(0.4 / 0.7)
    assert found["rogan_gladen_lower"] < 0.4 / 0.7 < found["rogan_gladen_upper"]


def test_the_command_writes_json_a_page_and_fails_on_conditions(tmp_path, monkeypatch, capsys):
    from crowdrank.cli.running import main

    monkeypatch.chdir(tmp_path)
    people, program = labels(0.95)
    schema = ["annotator", "query", "item", "grade"]
    pl.DataFrame(people, schema=schema, orient="row").write_csv("people.csv")
    pl.DataFrame(program, schema=schema, orient="row").write_csv("bots.csv")
    words = ["audit", "people.csv", "bots.csv", "-o", "a.json", "--report", "a.html", "--next", "n.csv", "-q"]
    assert main([*words, "--fail-if", "winning_rate<0.5"]) == 0
    assert json.loads((tmp_path / "a.json").read_text())["programs"][0]["verdict"] == "yes"
    page = (tmp_path / "a.html").read_text()
    assert "bot may stand in for people" in page
    for text in ("share of items on which it is as good or better", "Figures by people alone", "people say 5"):
        assert text in page
    assert "p worse" not in page
    assert pl.read_csv("n.csv").height == 200
    assert main(["audit", "people.csv", "bots.csv", "-q", "--fail-if", "advantage>0.1"]) == 3
    assert "advantage" in capsys.readouterr().err
    assert main(["audit", "people.csv", "-q"]) == 2
    assert "--people group=person" in capsys.readouterr().err
    assert main(["audit", "people.csv", "bots.csv", "-q", "--fail-if", "winnin_rate<1"]) == 2
    assert "did you mean 'winning_rate'" in capsys.readouterr().err


def test_people_by_any_column_and_criteria_one_by_one(tmp_path, monkeypatch, capsys):
    from crowdrank.cli.running import main

    monkeypatch.chdir(tmp_path)
    people, program = labels(0.95)
    _, poor = labels(0.0, seed=3)
    rows = [("person", "clear", *row) for row in people] + [("person", "true", *row) for row in people]
    rows += [("program", "clear", *row) for row in program] + [("program", "true", *row) for row in poor]
    schema = ["kind", "criterion", "annotator", "query", "item", "grade"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv("votes.csv")
    words = ["audit", "votes.csv", "--people", "kind=person"]
    assert main([*words, "-o", "a.json", "--report", "a.html"]) == 0
    assert "each criterion is audited by itself" in capsys.readouterr().err
    found = json.loads((tmp_path / "a.json").read_text())["programs"]
    assert [(one["criterion"], one["verdict"]) for one in found] == [("clear", "yes"), ("true", "no")]
    assert found[1]["sentence"].startswith("true: bot may not stand in for people")
    assert "figures by bot (true) alone" in (tmp_path / "a.html").read_text()
    assert main([*words, "--where", "criterion=clear", "-o", "b.json", "-q"]) == 0
    assert [one["verdict"] for one in json.loads((tmp_path / "b.json").read_text())["programs"]] == ["yes"]
    assert main(["audit", "votes.csv", "--people", "sort=person", "-q"]) == 2
    assert "no 'sort' of annotators" in capsys.readouterr().err


def test_disagreements_are_in_words_with_texts(tmp_path, monkeypatch):
    from crowdrank.cli.running import main

    monkeypatch.chdir(tmp_path)
    people, program = labels(0.6)
    words = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}
    schema = ["annotator", "item", "grade"]
    for rows, name in ((people, "people.csv"), (program, "bots.csv")):
        named = [(who, item, words[grade]) for who, _, item, grade in rows]
        pl.DataFrame(named, schema=schema, orient="row").write_csv(name)
    texts = pl.DataFrame({"item": [f"i{k}" for k in range(N)], "text": [f"text of {k}" for k in range(N)]})
    texts.write_csv("items.csv")
    words = ["audit", "people.csv", "bots.csv", "--nominal", "--items", "items.csv", "-q"]
    assert main([*words, "-o", "a.json", "--report", "a.html", "--next", "n.csv"]) == 0
    row = json.loads((tmp_path / "a.json").read_text())["disagreements"][0]
    assert row["text"] == f"text of {row['item'][1:]}"
    assert "query" not in row
    assert row["program_says"] in "abcde"
    assert row["program_says"] not in row["people_say"]
    assert f"text of {row['item'][1:]}" in (tmp_path / "a.html").read_text()
    assert pl.read_csv("n.csv").columns == ["program", "item", "spread", "text"]
    votes = cr.Preferences.from_rows(preference_rows()).across_queries()
    about = {"item": ["m5"], "text": ["the last model"]}
    row = cr.audit(votes, people=["ann", "bob", "cy"], items=about).disagreements.filter(other="m5").row(0, named=True)
    assert row["program_says"] in (row["item"], "m5")
    assert row["other_text"] == "the last model"


def test_labels_to_buy_where_people_judged_everything():
    people, program = labels(0.7, n_more=0)
    own, others = (cr.Grades.from_rows([(*row[:3], f"class {row[3]}") for row in part], nominal=True)
                   for part in (people, program))  # fmt: skip
    found, asked = cr.audit(own, others), cr.propose(own)
    assert len(found.next_labels) == len(asked) > 0
    assert found.next_labels["item"].to_list() == asked["item"].to_list()
    votes = cr.Preferences.from_rows(preference_rows(60))
    found = cr.audit(votes, people=["ann", "bob", "cy"])
    assert found.next_labels.columns[:3] == ["query", "item", "other"]
    assert "to buy, best first" in found.html()


def test_quality_is_by_the_consensus_of_people_alone():
    """Programs that agree with each other do not gain by it; those of unlike quality keep their order."""
    people, good = labels(0.9, n=300, n_more=0, people=("ann", "bob", "cy", "dee"))
    rng = np.random.default_rng(8)
    noise = rng.integers(1, 6, 300)
    bad = [(f"noise{k}", *row[1:3], int(noise[number])) for k in range(6) for number, row in enumerate(good)]
    alone = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(good)).frame().row(0, named=True)
    found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(good + bad)).frame()
    quality = dict(found.select("program", "quality").rows())
    assert quality["bot"] == pytest.approx(alone["quality"], abs=0.01)
    assert quality["bot"] > 0.85 > 0.6 > max(value for name, value in quality.items() if name != "bot")


def test_parts_that_do_not_differ_are_not_said_to():
    false = 0
    for seed in range(40):
        people, program = labels(0.8, n=160, n_more=0, seed=seed)
        by = pl.DataFrame({"item": [f"i{k}" for k in range(160)], "part": [f"p{k % 8 // 7}" for k in range(160)]})
        found = cr.audit(cr.Grades.from_rows(people), cr.Grades.from_rows(program), by=by)
        false += found.slices["differs"].any()
    assert false <= 5


def test_length_is_a_habit_and_wrong_sides_are_told(tmp_path, monkeypatch, capsys):
    from crowdrank.cli.running import main

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for k in range(400):
        left, right = rng.choice(6, 2, replace=False)
        length = rng.integers(50, 500, 2)
        for who in ("ann", "bob", "cy", "gpt-4"):
            taste = 3.0 * np.log(length[0] / length[1]) if who == "gpt-4" else 0.0
            won = 0.5 * (right - left) + taste + rng.logistic() > 0
            rows.append((who, f"p{k}", f"m{left}", f"m{right}", "left" if won else "right", *length))
    names = ["annotator", "query", "left", "right", "winner", "length_left", "length_right"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(kind=pl.col("query").str.slice(0, 2))
    table.write_csv("votes.csv")
    words = ["audit", "votes.csv", "--people", "ann,bob,cy", "--across-queries"]
    assert main([*words, "--control", "length", "--by", "kind", "-o", "a.json"]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert any("likes long items: gpt-4" in text for text in found["habits"]), found["habits"]
    # a column of the prompt has its parts though items are the same in all prompts
    assert {one["slice"]: one["n_items"] for one in found["slices"]} == {
        **{f"p{k}": 111 for k in range(1, 4)}, **{f"p{k}": 11 for k in range(4, 10)}
    }  # fmt: skip
    capsys.readouterr()
    table.filter(pl.col("annotator") != "gpt-4").write_csv("people.csv")
    own = table.filter(annotator="gpt-4")
    other = own.with_columns(annotator=pl.lit("gpt-4o"), winner=pl.lit("left"))
    pl.concat([own, other]).write_csv("judges.csv")
    assert main(["audit", "judges.csv", "people.csv"]) == 0
    assert "taken for people: 'gpt-4' and 'gpt-4o'; the file of people goes first" in capsys.readouterr().err


def test_quality_of_classes_goes_by_items_on_which_people_agree():
    """Of two people who name different classes, neither decides that a program is right."""
    rng = np.random.default_rng(0)
    truth = rng.choice(list("abc"), 200)
    rows = [(who, "q", f"i{k}", truth[k] if rng.random() < 0.7 else rng.choice(list("abc")))
            for who in ("ann", "bob") for k in range(200)]  # fmt: skip
    rows += [("good", "q", f"i{k}", truth[k]) for k in range(200)] + [("flat", "q", f"i{k}", "a") for k in range(200)]
    found = cr.audit(cr.Grades.from_rows(rows, nominal=True), people=["ann", "bob"]).frame()
    quality = dict(found.select("program", "quality").rows())
    assert quality["good"] > 0.9
    assert 0.35 < quality["flat"] < 0.6
