"""What commands say to somebody who meets them for the first time: true of the data, in the right number, once."""

import re

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.cli.talk import _Shown


def compare(path, pairs, who="me"):
    """Write preferences of one annotator, the first of each pair winning, sides in turn."""
    lines = ["left,right,winner,annotator"]
    for row, (better, worse) in enumerate(pairs):
        lines.append(f"{better},{worse},left,{who}" if row % 2 else f"{worse},{better},right,{who}")
    path.write_text("\n".join(lines))


def test_one_annotator_is_not_told_about_others(run, tmp_path):
    scripts = [f"s{number:02}" for number in range(20)]
    rng = np.random.default_rng(0)
    compare(tmp_path / "v.csv", [sorted(rng.choice(scripts, 2, replace=False)) for _ in range(80)])
    ran = run("aggregate v.csv -q --set ridge=0.1 --method bradley_terry --annotators who.csv -o r.csv")
    said = run("aggregate v.csv --method bradley_terry")
    assert ran.code == said.code == 0
    assert any(
        "me gave all judgments; with only one annotator neither quality nor error can be seen" in x for x in said.lines
    )
    assert "others" not in said.err.replace("the others of their query", "")
    assert "too little" not in said.err


def test_a_script_that_won_everything_is_told_once_and_without_the_model(run, tmp_path):
    rest = [f"s{number:02}" for number in range(1, 40)]
    # a circle, so all others won and lost, and the best of them all won against two of these
    circle = [(one, other) for one, other in zip(rest, [*rest[1:], rest[0]], strict=True)]
    compare(tmp_path / "v.csv", [*circle, ("s00", "s01"), ("s00", "s20")])
    for verb in ("aggregate", "diagnose"):
        told = [line for line in run(f"{verb} v.csv").lines if "every preference" in line]
        assert len(told) == 1
        assert "'s00' won every preference, so how far ahead it is remains open" in told[0]
        assert "ridge" not in told[0]


def test_nobody_is_dropped_for_having_judged_too_little():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, 30)
    rows = [
        (f"g{who}", f"d{item}", int(np.clip(truth[item] + rng.integers(-1, 2), 0, 4)))
        for who in range(6)
        for item in range(30)
    ]
    rows += [("lazy", f"d{item}", 2) for item in range(30)]
    grades = cr.Grades.from_frame(pl.DataFrame(rows, schema=["annotator", "item", "grade"], orient="row"))
    table = cr.actions(cr.aggregate(grades, "mean_grade"), grades).frame()
    lazy = table.filter(pl.col("annotator") == "lazy").row(0, named=True)
    assert lazy["action"] == "drop"
    assert lazy["reason"].startswith("gives one grade nearly always")
    assert not table.filter(pl.col("action") == "drop")["reason"].str.contains("too little").any()


@pytest.mark.parametrize(("n_items", "said"), [(1, "1 item recurs in 12 queries"), (2, "2 items recur in 12 queries")])
def test_items_recur_in_the_right_number(run, tmp_path, n_items, said):
    lines = ["query,item,grade,annotator"]
    lines += [f"q{q},model-{item},{(q + item) % 3},a{q % 2}" for q in range(12) for item in range(n_items)]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    assert said in run("inspect v.csv").out


def test_progress_counts_what_is_done(capsys, monkeypatch):
    shown = _Shown("training", moving=False)
    shown.begin()
    for done, total, name in ((0, 13, "comparing list_mle"), (3, 13, "comparing lambda_mart"), (0, 2, "training")):
        monkeypatch.setattr(shown, "_told", -1e9)
        shown.advance(done, total, name)
    assert capsys.readouterr().err.splitlines() == [
        "training ...", "training: comparing list_mle", "training: comparing lambda_mart, 3 of 13 done", "training",
    ]  # fmt: skip


def test_a_side_bias_in_both_orders_is_not_told_to_ask_both(run, tmp_path):
    rng = np.random.default_rng(2)
    lines = ["query,left,right,winner,annotator"]
    for query in range(150):
        one, other = rng.permutation(4)[:2]
        for left, right in ((one, other), (other, one)):
            for who, bias in (("ann", 0.0), ("bob", 1.5)):
                felt = 0.8 * (right - left) + bias + rng.logistic()
                lines.append(f"q{query},m{left},m{right},{'left' if felt > 0 else 'right'},{who}")
    (tmp_path / "v.csv").write_text("\n".join(lines))
    told = next(line for line in run("aggregate v.csv --across-queries").lines if "leans to one side" in line)
    assert "'bob'" in told
    assert told.endswith("; take a pair with two different answers as a tie")


def test_counts_agree_with_their_nouns(run, votes):
    said = run("aggregate votes.csv --across-queries").err + run("diagnose votes.csv").err
    assert not re.findall(r"\b1 (?:annotators|items|pairs|queries|judgments|grades|programs)\b", said)
