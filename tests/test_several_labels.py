"""Several labels per item, soft labels, classifiers as annotators, and answers that say that nobody can tell."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import difficulty, informed_by_difficulty
from crowdrank.errors import JudgmentError, ParameterError


def crowd(seed, n=150, k=6, people=16, per_item=4):
    """Sets of labels by annotators of whom a third are poor, and the truth."""
    rng = np.random.default_rng(seed)
    holds = rng.random((n, k)) < rng.beta(1, 4, k) * 0.9 + 0.05
    poor = np.arange(people) % 3 == 0
    sensitivity, false = np.where(poor, 0.35, 0.8), np.where(poor, 0.25, 0.05)
    rows = {"item": [], "annotator": [], "labels": []}
    for item in range(n):
        for who in rng.choice(people, per_item, replace=False):
            said = rng.random(k) < np.where(holds[item], sensitivity[who], false[who])
            rows["item"].append(f"i{item:03d}")
            rows["annotator"].append(f"w{who:02d}")
            rows["labels"].append("|".join(f"l{one}" for one in np.flatnonzero(said)))
    return rows, holds


def doubtful(seed, n=150, *, informative=True):
    """Answers of three classes, "can't tell" among them, the truth, and which items are hard: a quarter of them."""
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(3, size=n), rng.random(n) < 0.25
    rows = []
    for item in range(n):
        for who in rng.choice(15, 5, replace=False):
            doubt = (0.45 if hard[item] else 0.12) if informative else 0.2
            if rng.random() < doubt * (1.6 if who % 5 == 0 else 0.9):
                answer = "can't tell"
            else:
                right = rng.random() < (0.5 if hard[item] else 0.88)
                answer = "abc"[truth[item] if right else rng.integers(3)]
            rows.append((f"i{item:03d}", f"w{who}", answer))
    return pl.DataFrame(rows, schema=["item", "annotator", "grade"], orient="row"), truth, hard


def f1_of(found, holds):
    """Mean F1 of the sets found."""
    taken = np.array(
        [[f"l{one}" in text.split("|") for one in range(holds.shape[1])] for text in found.table["labels"]]
    )
    both = holds.sum(axis=1) + taken.sum(axis=1)
    return float(np.where(both > 0, 2 * (holds & taken).sum(axis=1) / np.maximum(both, 1), 1.0).mean())


def test_shared_quality_beats_the_majority_and_says_how_sure_it_is():
    ours, majority, said = [], [], []
    for seed in range(3):
        rows, holds = crowd(seed)
        found = cr.aggregate_labels(rows)
        ours.append(f1_of(found, holds))
        said.append(found.table["expected_f1"].mean())
        majority.append(f1_of(cr.aggregate_labels(rows, method="majority", choose=0.5), holds))
        people = found.annotators.sort("annotator")["informedness"].to_numpy()
        assert people[::3].max() < np.delete(people, np.arange(0, 16, 3)).min()
    assert np.mean(ours) > np.mean(majority) + 0.03
    # said on the side of caution where annotators are few
    assert np.mean(ours) - 0.2 < np.mean(said) < np.mean(ours) + 0.02


def test_the_set_of_largest_expected_f1_is_that_of_all_sets():
    from crowdrank.api.labels import _best_sets

    chances = np.random.default_rng(0).random((20, 4))
    chosen, best = _best_sets(chances)
    for row in range(20):
        values = []
        for code in range(16):
            taken = np.array([code >> bit & 1 for bit in range(4)], bool)
            value = 0.0
            for truth in range(16):
                holds = np.array([truth >> bit & 1 for bit in range(4)], bool)
                both = holds.sum() + taken.sum()
                chance = np.where(holds, chances[row], 1 - chances[row]).prod()
                value += chance * (2 * (holds & taken).sum() / both if both else 1.0)
            values.append(value)
        assert best[row] == pytest.approx(max(values))
        assert values[int((chosen[row] * 2 ** np.arange(4)).sum())] == pytest.approx(max(values))
    np.testing.assert_array_equal(_best_sets(chances, 0.5)[0], chances >= 0.5)


def test_marks_lists_and_columns_are_read_alike():
    rows, _ = crowd(1, n=30)
    sets = [text.split("|") if text else [] for text in rows["labels"]]
    known = sorted({label for one in sets for label in one})
    lists = {**rows, "labels": sets}
    texts = {**rows, "labels": [json.dumps(one) for one in sets]}
    hot = {"item": rows["item"], "annotator": rows["annotator"]} | {k: [int(k in one) for one in sets] for k in known}
    expected = cr.aggregate_labels(rows).table
    for other in (lists, texts):
        assert cr.aggregate_labels(other).table.equals(expected)
    assert cr.aggregate_labels(hot, columns=known).table.equals(expected)
    crosses = {**hot, **{k: ["x" if one else None for one in hot[k]] for k in known}}
    assert cr.aggregate_labels(crosses, columns=known).table.equals(expected)
    # one label per row, in any order of rows, and items of two queries apart
    single = [
        (i, w, label) for i, w, one in zip(rows["item"], rows["annotator"], sets, strict=True) for label in one or [""]
    ]
    long = pl.DataFrame(single, schema=["item", "annotator", "labels"], orient="row")
    assert cr.aggregate_labels(long.sample(fraction=1.0, shuffle=True, seed=1)).table.equals(expected)
    twice = pl.concat([long.with_columns(query=pl.lit(one)) for one in ("p", "q")])
    assert cr.aggregate_labels(twice).table.group_by("query").len()["len"].to_list() == [len(expected)] * 2
    for wrong, says in (({**hot, known[0]: ["2"] * len(sets)}, "holds 1 or 0 only"),):
        with pytest.raises(JudgmentError, match=says):
            cr.aggregate_labels(wrong, columns=known)
    with pytest.raises(JudgmentError, match="no annotator column"):
        cr.aggregate_labels({"item": ["x"], "labels": ["a"]})
    with pytest.raises(ParameterError, match="neither 'f1' nor a probability"):
        cr.aggregate_labels(rows, choose="best")


def classified(seed, accuracy=0.85, n=240):
    """Grades of three classes by annotators of whom half guess, a classifier's probabilities, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    rows = []
    for item in range(n):
        for who in rng.choice(12, 2, replace=False):
            right = rng.random() < (0.85 if who % 2 else 0.45)
            label = truth[item] if right else rng.integers(3)
            rows.append((f"w{who}", "q", f"i{item:03d}", "abc"[label]))
    sure = rng.random(n)
    right = rng.random(n) < accuracy * (0.6 + 0.4 * sure) / 0.8
    label = np.where(right, truth, (truth + rng.integers(1, 3, n)) % 3)
    chances = np.full((n, 3), 0.3)
    chances[np.arange(n), label] += 0.1 + sure
    chances /= chances.sum(axis=1, keepdims=True)
    table = {"item": [f"i{item:03d}" for item in range(n)]} | {name: chances[:, k] for k, name in enumerate("abc")}
    return cr.Grades.from_rows(rows, nominal=True), table, truth


def accuracy_of(grades, truth):
    found = cr.aggregate(grades, "dawid_skene").frame()
    return float(
        np.mean([grade == "abc"[truth[int(item[1:])]] for item, grade in found.select("item", "grade").rows()])
    )


def test_a_classifier_is_an_annotator_that_counts_as_far_as_it_is_right():
    good, bad, alone = [], [], []
    for seed in range(3):
        grades, table, truth = classified(seed)
        alone.append(accuracy_of(grades, truth))
        good.append(accuracy_of(cr.with_classifier(grades, table), truth))
        rng = np.random.default_rng(seed)
        noise = rng.dirichlet(np.ones(3), len(truth))
        bad.append(accuracy_of(cr.with_classifier(grades, {**table, **dict(zip("abc", noise.T, strict=True))}), truth))
    assert np.mean(good) > np.mean(alone) + 0.04
    assert np.mean(bad) > np.mean(alone) - 0.05
    with pytest.raises(JudgmentError, match="no column for 'a'"):
        cr.with_classifier(grades, {"item": ["i000"], "b": [1.0], "c": [0.0]})


def test_soft_labels_keep_doubt_and_disagreement():
    grades, _, _ = classified(0)
    consensus = cr.aggregate(grades, "dawid_skene")
    table = cr.soft_labels(consensus, grades)
    np.testing.assert_allclose(table.select("P(a)", "P(b)", "P(c)").sum_horizontal(), 1.0)
    assert table["effective_labels"].is_between(1, 3.0001).all()
    split = table.filter(pl.col("disagreement") > 0.9)
    assert (split["n_votes"] == 2).all()
    records = cr.lewidi(consensus, grades)
    one = records["i000"]
    assert one["number of annotations"] == len(one["annotations"].split(",")) == len(one["annotators"].split(","))
    assert sum(one["soft_label"].values()) == pytest.approx(1)
    with pytest.raises(ParameterError, match="no probabilities"):
        cr.soft_labels(cr.aggregate(cr.Grades.from_rows([("a", "q", "x", 1), ("b", "q", "y", 2)]), "mean_grade"))


def test_difficulty_is_that_of_the_item_and_not_of_who_was_asked():
    rng = np.random.default_rng(2)
    rows = []
    for item in range(40):
        for who in range(10) if item % 2 else range(5, 15):
            chance = (0.5 if item < 10 else 0.1) * (1.8 if who < 5 else 0.4 if who >= 10 else 1.0)
            rows.append((f"i{item:02d}", f"w{who}", "can't tell" if rng.random() < chance else "cat"))
    items, people = difficulty(pl.DataFrame(rows, schema=["item", "annotator", "grade"], orient="row"), ["Can't tell"])
    hard = items["item"].str.slice(1).cast(pl.Int64).to_numpy() < 10
    odd = items["item"].str.slice(1).cast(pl.Int64).to_numpy() % 2 == 1
    value, share = items["difficulty"].to_numpy(), items["cannot_tell"].to_numpy()
    assert value[hard].mean() > 2.5 * value[~hard].mean()
    # odd items were asked of those who often say so
    assert abs(value[~hard & odd].mean() - value[~hard & ~odd].mean()) < 0.6 * abs(
        share[~hard & odd].mean() - share[~hard & ~odd].mean()
    )
    assert people["annotator"][0] in {f"w{who}" for who in range(5)}


def test_doubt_makes_hard_items_less_sure_where_it_says_something():
    for informative in (True, False):
        said = {"plain": [], "informed": [], "right": [], "moved": []}
        for seed in range(3):
            asked, truth, hard = doubtful(seed, informative=informative)
            grades = cr.Grades.from_frame(asked.filter(pl.col("grade") != "can't tell"), nominal=True)
            plain = cr.aggregate(grades, "dawid_skene")
            informed = informed_by_difficulty(plain, grades, difficulty(asked, ["can't tell"])[0])
            place = np.array([int(item[1:]) for item in plain.items.ids])
            np.testing.assert_array_equal(plain.probabilities.argmax(axis=1), informed.probabilities.argmax(axis=1))
            sure, new = plain.probabilities.max(axis=1), informed.probabilities.max(axis=1)
            true = np.array([plain.levels.index("abc"[one]) for one in truth[place]])
            said["right"].append((plain.probabilities.argmax(axis=1) == true)[hard[place]].mean())
            said["plain"].append(sure[hard[place]].mean())
            said["informed"].append(new[hard[place]].mean())
            said["moved"].append(np.abs(new - sure).mean())
        mean = {name: np.mean(values) for name, values in said.items()}
        if informative:
            assert mean["right"] < mean["informed"] < mean["plain"] - 0.01
        else:
            assert mean["moved"] < 0.01


def run(tmp_path, *words):
    command = [sys.executable, "-m", "crowdrank", "aggregate", *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_rates_of_doubt_are_in_every_file(tmp_path):
    rows = "x,ann,3\nx,bob,N/A\ny,ann,1\ny,bob,2\nz,ann,N/A\nz,bob,n/a\ny,kim,N/A\n"
    (tmp_path / "g.csv").write_text("item,annotator,grade\n" + rows)
    for out in ("r.json", "r.xlsx"):
        done = run(tmp_path, "g.csv", "--cannot-tell", "N/A", "-m", "mean_grade", "-o", out, "--annotators", "who.csv")
        assert done.returncode == 0, done.stderr
    assert "nobody could tell of 1 item: z" in done.stderr
    rates = dict(pl.read_csv(tmp_path / "who.csv").select("annotator", "cannot_tell").rows())
    assert rates == {"ann": pytest.approx(1 / 3), "bob": pytest.approx(2 / 3), "kim": 1.0}
    found = json.loads((tmp_path / "r.json").read_text())
    assert {one["item"]: one["cannot_tell"] for one in found["items"]} == {"x": 0.5, "y": pytest.approx(1 / 3), "z": 1}
    assert {one["annotator"] for one in found["estimates"]["cannot_tell"]["annotators"]} == {"ann", "bob", "kim"}
    from python_calamine import CalamineWorkbook

    sheet = CalamineWorkbook.from_path(tmp_path / "r.xlsx").get_sheet_by_name("annotators").to_python()
    assert "cannot_tell" in sheet[0]
    assert "no answer is dunno" in run(tmp_path, "g.csv", "--cannot-tell", "dunno").stderr


def test_label_sets_take_the_options_of_tables_and_refuse_others(tmp_path):
    (tmp_path / "s.csv").write_text(
        "photo,who,tags,batch\nx,ann,cat;dog,1\nx,bob,cat,1\ny,ann,can't tell,2\ny,bob,dog,2\nz,ann,dog,2\n"
        "z,bob,dog;cat,2\n"
    )
    names = ["s.csv", "--several-labels", "tags", "--column", "item=photo,annotator=who"]
    done = run(tmp_path, *names, "--where", "batch=1", "--annotators", "who.csv")
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["item", "x"]
    assert pl.read_csv(tmp_path / "who.csv")["n_judged"].to_list() == [1, 1]
    done = run(tmp_path, *names, "--cannot-tell", "can't tell", "--set", "choose=0.9")
    assert "n_asked,cannot_tell,difficulty" in done.stdout
    for more, says in (
        (["--levels", "a,b"], "--levels does not apply to sets of labels"), (["--known", "s.csv"], "--known does not"),
        (["--set", "trim=1"], "no parameter 'trim'"), (["--where", "batch=3"], "no row has '3'"),
    ):  # fmt: skip
        done = run(tmp_path, *names, *more)
        assert done.returncode == 2
        assert says in done.stderr
    assert "--several-labels tags" in run(tmp_path, "s.csv", "--column", "item=photo,annotator=who").stderr


def test_the_command_line_takes_them_all(tmp_path):
    (tmp_path / "sets.csv").write_text("item,annotator,labels\nx,ann,cat|dog\nx,bob,cat\ny,ann,\ny,bob,dog\n")
    (tmp_path / "labels.csv").write_text(
        "item,annotator,label\nx,ann,cat\nx,bob,can't tell\nx,kim,cat\ny,ann,dog\ny,bob,dog\ny,kim,can't tell\n"
    )
    (tmp_path / "probs.csv").write_text("item,cat,dog\nx,.9,.1\ny,.2,.8\n")
    for words, says in (
        ("sets.csv --several-labels labels", "P(cat)"),
        ("labels.csv --nominal --cannot-tell", "cannot_tell,difficulty"),
        (
            "labels.csv --nominal --classifier probs.csv --probabilities --soft-labels s.json --missing",
            "effective_labels",
        ),
    ):
        more = [] if "sets" in words else ["can't tell", "-m", "majority_vote"]
        command = [sys.executable, "-m", "crowdrank", "aggregate", *words.split(), *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert says in done.stdout
    assert set(json.loads((tmp_path / "s.json").read_text())) == {"x", "y"}


def test_spans_written_as_text_are_refused_with_the_tool_that_does_them(tmp_path):
    cells = [f'"{{""start"": {place}, ""end"": 9}}"' for place in range(3)]
    rows = "\n".join(f"x{place},ann,{cell}" for place, cell in enumerate(cells))
    (tmp_path / "s.csv").write_text(f"item,annotator,label\n{rows}\n")
    with pytest.raises(JudgmentError, match=r"holds spans of text or sound: not supported.*Potato"):
        cr.read_judgments(tmp_path / "s.csv")
