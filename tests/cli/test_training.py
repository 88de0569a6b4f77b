"""``crowdrank train`` and ``crowdrank rank``: models, tables, pictures and mistakes."""

import csv
import io
import json
import os
import zipfile

import numpy as np
import pytest

import crowdrank as cr


@pytest.fixture
def files(tmp_path):
    """Grades and preferences of 24 items of 4 queries, and features of these and 6 more."""
    rng = np.random.default_rng(2)
    votes, pairs = "query,item,annotator,grade\n", "query,left,right,annotator,winner\n"
    features = "query,item,length,age\n"
    for query in range(5):
        x = rng.normal(size=(6, 2)).round(3)
        for item in range(6):
            features += f"q{query},d{item},{x[item, 0]},{x[item, 1]}\n"
            for annotator in ("ann", "bob", "cy"):
                grade = int(np.clip(round(1 + x[item, 0] + 0.4 * rng.normal()), 0, 3))
                votes += f"q{query},d{item},{annotator},{grade}\n" if query < 4 else ""
                other = (item + 1) % 6
                winner = "left" if x[item, 0] + 0.4 * rng.normal() > x[other, 0] else "right"
                pairs += f"q{query},d{item},d{other},{annotator},{winner}\n" if query < 4 else ""
    for name, text in (("votes.csv", votes), ("pairs.csv", pairs), ("features.csv", features)):
        (tmp_path / name).write_text(text)
    return tmp_path


def rows(text):
    """The rows of CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def test_votes_and_features_become_a_model_that_ranks(run, files):
    ran = run("train votes.csv features.csv -r list_net --aggregator dawid_skene -o model")
    assert (ran.code, ran.out) == (0, "")
    assert "72 grades by 3 annotators on 24 items of 4 queries" in ran.lines
    assert "list_net learned from 24 items of 4 queries; 6 more items with features, not judged" in ran.lines
    assert any(line.startswith("features that count most: length (") for line in ran.lines)
    assert ran.lines[-1] == "wrote model"
    ranked = run("rank model features.csv")
    assert ranked.code == 0
    found = rows(ranked.out)
    assert list(found[0]) == ["query", "item", "score", "rank"]
    assert len(found) == 30
    assert ranked.lines == ["30 items of 5 queries ranked by model"]
    expected = cr.rank(cr.train("votes.csv", "features.csv", "list_net", "dawid_skene"), "features.csv")
    assert [row["item"] for row in found] == expected["item"].to_list()


def test_the_choice_of_a_ranker_says_what_its_figures_are_measured_against(run, files):
    said = next(line for line in run("train votes.csv features.csv -o model").lines if line.startswith("ranker "))
    assert said.endswith("; these figures are against the crowd's own consensus, not against a truth")
    grades = (files / "features.csv").read_text().splitlines()
    (files / "graded.csv").write_text(
        "\n".join([f"{grades[0]},grade", *(f"{row},{len(row) % 3}" for row in grades[1:])])
    )
    said = run("train votes.csv features.csv -o model --validation graded.csv").lines
    assert not any("not against a truth" in line for line in said if line.startswith("ranker "))


@pytest.mark.parametrize("options", ["", "--aggregator none", "--validation 0.25 --set patience=3", "--seed 4"])
def test_trees_by_default(run, files, options):
    ran = run(f"train votes.csv features.csv -o model --set n_trees=9 --set min_leaf=2 {options}")
    assert ran.code == 0
    assert ("validation queries: mean nDCG" in ran.err) == ("validation" in options)
    assert ("method mean_grade" in ran.err) == ("none" not in options)
    assert len(rows(run("rank model features.csv -q").out)) == 30


def test_preferences_and_several_files_of_votes(run, files):
    head, *lines = (files / "pairs.csv").read_text().splitlines(keepends=True)
    (files / "a.csv").write_text(head + "".join(lines[:30]))
    (files / "b.csv").write_text(head + "".join(lines[30:]))
    assert run("train a.csv b.csv features.csv -r list_mle --aggregator borda -o both -q").code == 0
    assert run("train pairs.csv features.csv -r list_mle --aggregator borda -o one -q").code == 0
    assert run("rank both features.csv -q").out == run("rank one features.csv -q").out


def test_weights_and_curve_as_tables_and_pictures(run, files):
    ran = run("train votes.csv features.csv -r list_net -o m --importance w.csv --curve c.json --validation 0.5")
    assert ran.lines[-3:] == ["wrote m", "wrote w.csv", "wrote c.json"]
    weights = rows((files / "w.csv").read_text())
    assert [row["feature"] for row in weights] == ["length", "age"]
    assert set(json.loads((files / "c.json").read_text())[0]) == {"iteration", "objective", "train", "valid"}
    ran = run("train votes.csv features.csv -r list_net -o m --importance w.png --curve c.svg")
    assert ran.code == 0
    assert (files / "w.png").read_bytes().startswith(b"\x89PNG")
    assert (files / "c.svg").read_bytes().startswith(b"<?xml")


def test_runs_and_other_formats(run, files):
    run("train votes.csv features.csv -r list_net -o model -q")
    ran = run("rank model features.csv -o ours.run")
    assert (ran.out, ran.lines[-1]) == ("", "wrote ours.run")
    first = (files / "ours.run").read_text().split("\n", 1)[0].split()
    assert (first[0], first[1], first[3], first[5]) == ("q0", "Q0", "1", "model")
    table = rows(run("rank model features.csv -q").out)
    assert json.loads(run("rank model features.csv --format json -q").out)[0]["item"] == table[0]["item"]
    (files / "truth.csv").write_text("query,item,grade\nq0,d0,1\nq0,d1,0\n")
    assert run("evaluate ours.run truth.csv -q").code == 0
    assert (
        run("rank", "model", "-", "-q", stdin=(files / "features.csv").read_bytes()).out
        == run("rank model features.csv -q").out
    )


def test_a_table_for_people(run, files, monkeypatch):
    run("train votes.csv features.csv -r list_net -o model -q")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = run("rank model features.csv")
    assert "and 10 more rows; --out FILE writes all of them" in ran.out


def test_a_grade_column_is_no_feature_but_may_be_named_as_one(run, files):
    head, *lines = (files / "features.csv").read_text().splitlines()
    (files / "labelled.csv").write_text(
        "\n".join([f"{head},grade", *(f"{line},{place % 4}" for place, line in enumerate(lines))]) + "\n"
    )
    ran = run("train votes.csv labelled.csv -r list_net -o model")
    assert ran.code == 0
    assert [line for line in ran.lines if "left out" in line] == [
        "warning: left out of the features: 'grade' (named like a judgment or truth); "
        "features= (--features a,b,c) names those to use"
    ]
    assert "grade" not in ran.lines[-2]
    ranked = run("rank model labelled.csv")
    assert ranked.lines == ["30 items of 5 queries ranked by model"]
    run("train votes.csv features.csv -r list_net -o plain -q")
    assert ranked.out == run("rank plain features.csv").out
    ran = run("train votes.csv labelled.csv -r list_net -o model --features age,grade")
    assert not any("left out" in line for line in ran.lines)
    assert cr.load_ranker(files / "model").feature_names_in_.tolist() == ["age", "grade"]


def test_what_validation_is_measured_against(run, files):
    train = "train votes.csv features.csv -r list_net -o model"
    said = run(f"{train} --validation .25").err
    assert ", against the consensus of the crowd, not against a truth" in said
    said = run(f"{train} --validation .25 --aggregator none").err
    assert ", against the crowd's grades, not against a truth" in said
    head, *lines = (files / "features.csv").read_text().splitlines()
    labelled = [f"{head},label", *(f"{line},{place % 3}" for place, line in enumerate(lines))]
    (files / "vali.csv").write_text("\n".join(labelled))
    assert ", against the grades in vali.csv" in run(f"{train} --validation vali.csv").err
    truth = ["query,item,grade", *(f"{','.join(line.split(',')[:2])},{place % 3}" for place, line in enumerate(lines))]
    (files / "gold.csv").write_text("\n".join(truth))
    apart = run(f"{train} --validation features.csv --truth gold.csv --curve apart.csv")
    assert ", against the grades in gold.csv" in apart.err
    run(f"{train} --validation vali.csv --curve beside.csv")
    assert (files / "apart.csv").read_text() == (files / "beside.csv").read_text()


def newer(path):
    """Let a model say that it was saved in a later format."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(members["ranker.json"]) | {"format": 99, "crowdrank": "9.0"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (members | {"ranker.json": json.dumps(card).encode()}).items():
            archive.writestr(name, data)


BAD = {
    "votes alone": ("train votes.csv -o m", "name the votes and then the features"),
    "nowhere to write": ("train votes.csv features.csv", "--out"),
    "no such ranker": ("train votes.csv features.csv -r list_nett -o m", "did you mean 'list_net'?"),
    "no such aggregator": ("train votes.csv features.csv --aggregator dawid -o m", "'dawid_skene'"),
    "no such parameter": ("train votes.csv features.csv --set shrubs=1 -o m", "lambda_mart has no parameter 'shrubs'"),
    "parameter out of range": ("train votes.csv features.csv -r list_net --set ridge=0 -o m", "ridge=0.0 must be"),
    "parameter of no aggregator": (
        "train votes.csv features.csv --aggregator none --aggregator-set alpha=1 -o m", "name of an aggregator",
    ),
    "preferences one by one": ("train pairs.csv features.csv --aggregator none -o m", "--aggregator bradley_terry"),
    "other items": ("train votes.csv other.csv -o m", "none of the 24 judged items has features"),
    "features without queries": ("train votes.csv bare.csv -o m", "there is no query in the features"),
    "no features": ("train votes.csv none.csv -o m", "none.csv"),
    "features in words": ("train votes.csv words.csv -o m", "feature 'length' is not a number ('tall') in row 1"),
    "missing feature": ("train votes.csv gap.csv -r list_net -o m", "feature 'age' of item 'd1' (query 'q0') is"),
    "no such feature": (
        "train votes.csv features.csv --features agee -o m", "the features lack 'agee'; did you mean 'age'?",
    ),
    "truth without a validation file": ("train votes.csv features.csv --truth same.csv -o m", "--validation FILE"),
    "options before files": ("train no.csv no.csv -r list_net --set ridge=0 -o m", "ridge=0.0 must be"),
    "a share before files": ("train no.csv no.csv --validation 2 -o m", "must lie between 0 and 1"),
    "share above 1": ("train votes.csv features.csv --validation 20 -o m", "must lie between 0 and 1"),
    "no validation file": ("train votes.csv features.csv --validation vali.txt -o m", "vali.txt"),
    "no grades to validate by": ("train votes.csv features.csv --validation features.csv -o m", "no grades"),
    "nothing to draw": ("train votes.csv features.csv --set n_trees=1 -o m --curve c.png", "nothing was measured"),
    "over the votes": ("train votes.csv features.csv -o votes.csv", "is an input"),
    "twice the same file": ("train votes.csv features.csv -o m --importance m", "two results"),
    "no folder": ("train votes.csv features.csv -o no/m", "folder does not exist"),
    "one grade throughout": ("train same.csv features.csv -r list_net -o m", "nothing to learn"),
    "no model": ("rank modle features.csv", "there is no file modle; did you mean 'model'?"),
    "a model from standard input": ("rank - features.csv", "read the features from -"),
    "a table for a model": ("rank votes.csv features.csv", "is not a saved ranker: it does not begin as one"),
    "a cut model": ("rank cut features.csv", "is damaged (its end is missing)"),
    "a newer model": ("rank newer features.csv", "was saved by crowdrank 9.0 in format 99"),
    "a column too few": ("rank model other.csv", "the features lack 'age'"),
    "a missing number": ("rank model gap.csv", "feature 'age' of item 'd1' (query 'q0') is missing"),
    "over the model": ("rank model features.csv -o model", "is an input"),
    "a run without queries": ("rank single items.csv -o r.run", "needs a query on each line"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_mistakes(run, files, words, said):
    (files / "other.csv").write_text("query,item,length\nq0,x0,1\nq0,x1,2\n")
    (files / "bare.csv").write_text("item,length\nd0,1\nd1,2\n")
    (files / "words.csv").write_text("query,item,length\nq0,d0,tall\n")
    text = (files / "features.csv").read_text().splitlines()
    (files / "gap.csv").write_text(
        "\n".join(line.rsplit(",", 1)[0] + "," if "q0,d1" in line else line for line in text)
    )
    (files / "same.csv").write_text(
        "query,item,grade\n" + "".join(f"q{q},d{d},1\n" for q in range(4) for d in range(6))
    )
    (files / "items.csv").write_text("item,f\nx,1\ny,2\n")
    (files / "few.csv").write_text("item,grade\nx,1\ny,2\n")
    assert run("train votes.csv features.csv -r list_net -o model -q").code == 0
    assert run("train few.csv items.csv -r list_net -o single -q").code == 0
    (files / "cut").write_bytes((files / "model").read_bytes()[:200])
    (files / "newer").write_bytes((files / "model").read_bytes())
    newer(files / "newer")
    before = {name: (files / name).read_bytes() for name in os.listdir(files)}
    ran = run(words)
    assert ran.code == 2, ran
    assert ran.out == ""
    assert len(ran.lines) == 1, ran.err
    assert said in ran.err
    assert {name: (files / name).read_bytes() for name in os.listdir(files)} == before


def test_items_without_features_are_warned_of(run, files):
    lines = (files / "features.csv").read_text().splitlines(keepends=True)
    (files / "fewer.csv").write_text("".join(lines[:-12]))
    ran = run("train votes.csv fewer.csv -r list_net -o m -q")
    assert ran.code == 0
    assert ran.lines == [
        "warning: 6 of 24 judged items have no features and teach nothing: 'd0' (query 'q3'), 'd1' (query 'q3'), "
        "'d2' (query 'q3'), 'd3' (query 'q3'), 'd4' (query 'q3') and 1 more"
    ]


def test_a_joint_method_is_named(run, files):
    ran = run("train votes.csv features.csv --joint ltrma-d -o model")
    assert ran.code == 2
    assert "takes rankings, not grades" in ran.err
    ran = run("train votes.csv features.csv --joint two-stage -r list_net --aggregator ds -o model")
    assert ran.code == 0
    assert "list_net learned from 24 items of 4 queries; 6 more items with features, not judged" in ran.lines


def test_trusted_annotators_are_named(run, files):
    ran = run("train pairs.csv features.csv -r list_net --aggregator crowd_bt --trusted ann,bob -o model")
    assert ran.code == 0
    ran = run("train pairs.csv features.csv -r list_net --aggregator crowd_bt --trusted anm -o model")
    assert ran.code == 2
    assert "did you mean 'ann'?" in ran.err


def test_labelled_features_are_enough(run, tmp_path):
    rows = [(2, 1, 0.9), (0, 1, 0.1), (1, 1, 0.5), (1, 2, 0.8), (0, 2, 0.2)]
    lines = [f"{grade} qid:{query} 1:{x} #docid = d{number}\n" for number, (grade, query, x) in enumerate(rows)]
    (tmp_path / "train.txt").write_text("".join(lines))
    trained = run("train train.txt --ranker list_net --out model")
    assert trained.code == 0, trained.err
    assert "list_net learned from 5 items of 2 queries" in trained.err
    assert run("rank model train.txt").out.splitlines()[1].startswith("1,d0,")
    (tmp_path / "plain.csv").write_text("item,x\na,1\nb,2\n")
    refused = run("train plain.csv --out other")
    assert refused.code == 2
    assert "'plain.csv' alone is not enough to learn from, as it has no grades" in refused.err
