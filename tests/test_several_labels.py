"""Several labels per item, soft labels, classifiers as annotators, and answers that say that nobody can tell."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api import difficulty
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
    assert np.mean(ours) > np.mean(majority) + 0.05
    assert abs(np.mean(ours) - np.mean(said)) < 0.05


def test_the_set_of_largest_expected_f1_is_that_of_all_sets():
    from crowdrank.api.several_labels import _best_sets, _by_threshold

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
    np.testing.assert_array_equal(_by_threshold(chances, 0.5)[0], chances >= 0.5)


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
