"""Control for what answers differ in besides their quality, from the command line."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest
from scipy.special import expit


@pytest.fixture
def texts(tmp_path):
    """Votes whose longer answer wins more often, with the texts that were shown."""
    rng = np.random.default_rng(0)
    lines = ["query,left,right,winner,annotator,group,left_text,right_text"]
    families = {"a": "red", "b": "red", "c": "blue", "d": "green"}
    names = list(families)
    for query in range(900):
        left, right = rng.choice(4, 2, replace=False)
        sizes = rng.integers(5, 60, 2)
        who = int(rng.integers(0, 3))
        family = ["red", "blue", "green"][who]
        own = float(families[names[left]] == family) - float(families[names[right]] == family)
        chance = expit(0.5 * (left - right) + 2.0 * (sizes[0] - sizes[1]) / sizes.sum() + 0.8 * own)
        winner = "left" if rng.uniform() < chance else "right"
        marks = ["", "# Title\n", "**bold** ", "- a list\n"]
        shown = [marks[rng.integers(0, 4)] + "word " * size for size in sizes]
        lines.append(f'q{query},{names[left]},{names[right]},{winner},j{who},{family},"{shown[0]}","{shown[1]}"')
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "families.csv").write_text("item,family\n" + "\n".join(f"{i},{f}" for i, f in families.items()) + "\n")
    return tmp_path


def test_style_is_counted_in_texts(run, texts):
    ran = run(f"aggregate {texts}/votes.csv --across-queries --control style --format json")
    assert ran.code == 0, ran.err
    assert "between equals, the answer twice as long wins 1." in ran.err
    control = json.loads(ran.out)["estimates"]["control"]
    length = control["length"]
    assert length["coefficient"] / length["unit"] == pytest.approx(2.0, abs=0.6)
    assert abs(control["headers"]["coefficient"]) < 4 * control["headers"]["std_error"]


def test_own_families_are_controlled_for(run, texts):
    ran = run(
        f"aggregate {texts}/votes.csv --across-queries --control style,self --families {texts}/families.csv "
        "--format json"
    )
    assert ran.code == 0, ran.err
    own = json.loads(ran.out)["estimates"]["control"]["self"]
    assert own["coefficient"] / own["unit"] == pytest.approx(0.8, abs=4 * own["std_error"] / own["unit"])
    assert [row["item"] for row in json.loads(ran.out)["items"]] == ["d", "c", "b", "a"]


def test_mistakes_are_said(run, texts):
    for text, says in (
        ("--across-queries --control words", "no covariate 'words'"),
        ("--across-queries --control length:cube", "transform of length"),
        ("--control style", "does not vary within pairs of items"),
        ("--across-queries --control style -m borda", "takes no --control"),
        ("--across-queries --control self", "no covariate 'self'"),
    ):
        ran = run(f"aggregate {texts}/votes.csv {text} -q")
        assert (ran.code, "Traceback" in ran.err) == (2, False), text
        assert says in ran.err
    one = (texts / "votes.csv").read_text().replace(",blue,", ",red,").replace(",green,", ",red,")
    (texts / "one.csv").write_text(one)
    ran = run(f"aggregate {texts}/one.csv --across-queries --control self --families {texts}/families.csv -q")
    assert (ran.code, "Traceback" in ran.err) == (2, False)
    assert "self does not vary within pairs of items, so scores and self are confounded; name families" in ran.err
    plain = list(csv.DictReader(io.StringIO(run(f"aggregate {texts}/votes.csv --across-queries -q").out)))
    assert len(plain) == 4


def test_report_says_what_annotators_like(run, texts):
    ran = run(
        f"aggregate {texts}/votes.csv --across-queries --control length,self --families {texts}/families.csv "
        f"--report {texts}/r.html -o {texts}/ranks.csv"
    )
    assert ran.code == 0, ran.err
    page = (texts / "r.html").read_text()
    for words in (
        "between equals, the answer twice as long", "annotators like long items", "annotators prefer their own family",
        "How far each annotator favours length", "Leaderboard", "Control asks who wins",
    ):  # fmt: skip
        assert words.lower() in page.lower(), words


def test_findings_name_those_who_like_long_answers(texts):
    import crowdrank as cr

    rows = pl.read_csv(texts / "votes.csv")
    styled = cr.style_counts(rows["left_text"])["length"], cr.style_counts(rows["right_text"])["length"]
    table = rows.with_columns(length_left=styled[0], length_right=styled[1])
    preferences = cr.Preferences.from_frame(table, covariates=["length"]).across_queries()
    plain = cr.aggregate(preferences, "bradley_terry")
    assert cr.findings(plain, preferences).of("likes_long") is None
    consensus = cr.aggregate(preferences, "latent_score", control=["length"], robust="query")
    found = cr.findings(consensus, preferences)
    assert set(found.of("likes_long").ids) == {"j0", "j1", "j2"}
    assert found.of("control_length").numbers["identified"] > 0.5
    assert "times as wide" in found.of("robust").sentence


@pytest.mark.parametrize(
    ("transform", "words"),
    [("ratio", "twice as long"), ("log", "twice as long"), ("difference", "longer by "), ("tanh", "the usual diff")],
)
def test_effects_are_worded_by_how_lengths_were_compared(run, texts, transform, words):
    ran = run(f"aggregate {texts}/votes.csv --across-queries --control length:{transform} --format json")
    assert ran.code == 0, ran.err
    assert f"between equals, the answer {'' if 'twice' in words else 'longer by '}".strip() in ran.err
    assert words in ran.err
    assert json.loads(ran.out)["estimates"]["control"]["length"]["transform"] == transform
    told = run(f"diagnose {texts}/votes.csv --across-queries --control length:{transform}")
    assert words in told.err + told.out


def test_diagnose_tells_habits_also_where_control_is_refused(run, texts):
    ran = run(f"diagnose {texts}/votes.csv --across-queries --control length --format json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)
    rows = rows["annotators"] if isinstance(rows, dict) else rows
    assert all(row["length_lower"] < row["length"] < row["length_upper"] for row in rows)
    assert "like long items" in ran.err
    ran = run(f"diagnose {texts}/votes.csv --control length --format json")
    assert ran.code == 0, ran.err
    assert "nothing is known about 'j0', 'j1' and 'j2', since nobody else judged the same pairs" in ran.err
    assert all(row["length"] is None for row in json.loads(ran.out))
    # now each pair is judged by all three
    table = pl.read_csv(texts / "votes.csv")
    rng = np.random.default_rng(1)
    turn = {"left": "right", "right": "left"}
    others = [
        table.with_columns(
            annotator=pl.lit(f"j{who}"),
            winner=pl.when(pl.Series(rng.uniform(size=len(table)) < 0.3))
            .then(pl.col("winner").replace(turn))
            .otherwise("winner"),
        )
        for who in range(3)
    ]
    pl.concat(others).drop("group").write_csv(texts / "all.csv")
    ran = run(f"diagnose {texts}/all.csv --control length --format json")
    assert ran.code == 0, ran.err
    assert "coefficients of annotators are relative to each other" in ran.err
    assert sum(row["length"] for row in json.loads(ran.out)) == pytest.approx(0, abs=1e-6)


def test_a_covariate_may_be_0_in_one_of_several_files(run, texts):
    table = pl.read_csv(texts / "votes.csv")
    plain = table.head(300).with_columns(pl.col("left_text", "right_text").str.replace_all(r"[#*-]", ""))
    plain.write_csv(texts / "plain.csv")
    table.tail(600).write_csv(texts / "marked.csv")
    ran = run(f"aggregate {texts}/plain.csv {texts}/marked.csv --across-queries --control style --format json")
    assert ran.code == 0, ran.err
    assert set(json.loads(ran.out)["estimates"]["control"]) == {"length", "headers", "bold", "lists"}
    ran = run(f"aggregate {texts}/plain.csv --across-queries --control style --format json")
    assert ran.code == 0, ran.err
    assert set(json.loads(ran.out)["estimates"]["control"]) == {"length"}


def test_diagnose_tells_of_own_families(run, texts):
    ask = f"diagnose {texts}/votes.csv --across-queries --control self"
    ran = run(f"{ask} --item-families {texts}/families.csv --format json")
    assert ran.code == 0, ran.err
    assert "prefer their own family" in ran.err
    assert all(row["self"] > 0 for row in json.loads(ran.out))
    for text, says in (
        (ask, "(--item-families FILE)"),
        (f"{ask} --item-families {texts}/families.csv -m borda", "which borda does not estimate"),
        (f"diagnose {texts}/votes.csv --item-families {texts}/families.csv", "families are for --control self"),
    ):
        ran = run(text)
        assert (ran.code, says in ran.err) == (2, True), ran.err
