"""A ranking for each category, and the mean of several criteria."""

import csv
import io

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import crowdrank as cr


@pytest.fixture
def votes(tmp_path):
    """Votes in three categories: the first two alike, items 0 and 5 exchange their places in the third."""
    rng = np.random.default_rng(0)
    scores = np.linspace(-1, 1, 6)
    rows = ["query,left,right,winner,annotator,category"]
    for place in range(3600):
        category = ("code", "maths", "verse")[place % 3]
        own = scores[::-1] if category == "verse" else scores
        left, right = rng.choice(6, 2, replace=False)
        won = rng.uniform() < expit(own[left] - own[right])
        rows.append(f"q{place},m{left},m{right},{'left' if won else 'right'},a{place % 5},{category}")
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "votes.csv"


def test_categories_are_shrunk(run, votes):
    ran = run(f"aggregate {votes} --across-queries --by category -m bradley_terry --format csv")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    best = {row["category"]: row["item"] for row in rows if row["rank"] == "1"}
    assert (best["code"], best["maths"], best["verse"]) == ("m5", "m5", "m0")
    spread = {row["category"]: float(row["sd"]) for row in rows}
    assert spread["verse"] > spread["code"]
    assert spread["all"] == 0.0
    assert all(float(row["std_error"]) > 0 for row in rows)


def test_a_small_category_is_near_all(run, votes):
    table = pl.read_csv(votes)
    few = table.with_columns(
        category=pl.when(pl.col("query").is_in(["q0", "q3", "q6"])).then(pl.lit("few")).otherwise(pl.lit("rest"))
    )
    few.write_csv(votes)
    ran = run(f"aggregate {votes} --across-queries --by category -m bradley_terry --format csv -q")
    scores = {(row["category"], row["item"]): float(row["score"]) for row in csv.DictReader(io.StringIO(ran.out))}
    far = [abs(scores["few", f"m{i}"] - scores["all", f"m{i}"]) for i in range(6)]
    assert max(far) < 0.3


def test_criteria_and_their_mean(run, tmp_path):
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 1, 30)
    rows = ["item,annotator,fluent,right"]
    for item in range(30):
        for who in range(4):
            fluent, right = np.clip(np.round(3 + truth[item] + rng.normal(0, 0.5, 2)), 1, 5)
            rows.append(f"i{item},w{who},{fluent:.0f},{right:.0f}")
    (tmp_path / "grades.csv").write_text("\n".join(rows) + "\n")
    ran = run(f"aggregate {tmp_path}/grades.csv --criteria fluent,right -m mean_grade --format csv")
    assert ran.code == 0, ran.err
    assert "correlations of scores by criterion: fluent and right 0.9" in ran.err
    for row in csv.DictReader(io.StringIO(ran.out)):
        assert float(row["score"]) == pytest.approx((float(row["fluent"]) + float(row["right"])) / 2)


def test_mistakes_are_said(run, votes):
    for text, says in (
        ("--across-queries --by kind", "has no column 'kind'"),
        ("--across-queries --by query", "name a column with 2 to 100"),
        ("--by category -m bradley_terry", "needs covariances of the scores of one query"),
        ("--by category --criteria a,b", "give only one of them"),
        ("--by category --report r.html", "--report applies to one ranking"),
        ("--across-queries --reweight items", "'pairs'"),
    ):
        ran = run(f"aggregate {votes} {text} -q")
        assert (ran.code, "Traceback" in ran.err) == (2, False), text
        assert says in ran.err, ran.err


def test_pairs_weigh_alike(votes):
    preferences = cr.read_judgments(votes).across_queries()
    again = cr.aggregate(preferences, "bradley_terry", reweight="pairs")
    assert again.estimates["robust"]["by"] == "judgment"
    plain = cr.aggregate(preferences, "bradley_terry", robust="none")
    assert again.scores == pytest.approx(plain.scores, abs=0.15)
    rows = preferences.frame()
    often = pl.concat([rows, *[rows.filter((pl.col("left") == "m0") & (pl.col("right") == "m1"))] * 20])
    crowded = cr.Preferences.from_frame(often.drop("annotator")).across_queries()
    weight = np.asarray(cr.aggregate(crowded, "bradley_terry", reweight="pairs").scores)
    assert np.isfinite(weight).all()


def test_intervals_of_categories_cover():
    from benchmarks.judge_coverage import category_coverage

    for differ in (0.0, 0.4):
        # 90 % intervals; shrinking to all judgments, the category's own among them, covers .73 where they differ
        assert np.mean([category_coverage(seed, differ) for seed in range(6)]) > 0.83


@pytest.fixture
def styled(votes):
    """The same votes with lengths, headers in two of the categories, and families of annotators and items."""
    rng = np.random.default_rng(2)
    table = pl.read_csv(votes)
    n = len(table)
    headers = [pl.when(pl.col("category") == "maths").then(0).otherwise(pl.Series(rng.poisson(1, n))) for _ in "lr"]
    table.with_columns(
        group=pl.col("annotator").replace_strict({f"a{i}": f"f{i % 3}" for i in range(5)}),
        length_left=pl.Series(rng.integers(100, 900, n)), length_right=pl.Series(rng.integers(100, 900, n)),
        headers_left=headers[0], headers_right=headers[1],
    ).write_csv(votes)  # fmt: skip
    votes.with_name("families.csv").write_text("item,family\n" + "".join(f"m{i},f{i % 4}\n" for i in range(6)))
    return votes


def test_options_reach_every_fit(run, styled):
    ask = f"aggregate {styled} --across-queries --by category -m bradley_terry --format csv"

    def table(more, *, code=0):
        ran = run(f"{ask} {more}")
        assert ran.code == code, ran.err
        return {(r["category"], r["item"]): r for r in csv.DictReader(io.StringIO(ran.out))}, ran.err

    plain, _ = table("")
    robust, said = table("--robust query")
    assert "standard errors by query are" in said
    assert all(robust[key]["std_error"] != plain[key]["std_error"] for key in plain)
    own, said = table(f"--control length,headers,self --families {styled.with_name('families.csv')}")
    assert "category maths: headers is 0 in all preferences and makes no difference there" in said
    assert "category verse: between equals, the answer of the annotator's own family" in said
    assert all(own[key]["score"] != plain[key]["score"] for key in plain)
    assert said.count("read as preferences") == 1
    # an annotator who judged one category only is trusted there and in the table of all
    rows = pl.read_csv(styled)
    who = pl.when((pl.col("category") == "code") & (pl.col("annotator") == "a4")).then(pl.lit("ann"))
    rows.with_columns(annotator=who.otherwise("annotator")).write_csv(styled)
    ran = run(f"aggregate {styled} --across-queries --by category -m latent_score --trusted ann,a0 --format csv -q")
    assert ran.code == 0, ran.err


def test_options_of_one_ranking_are_refused(run, styled):
    for text, says in (
        ("--known k.csv", "--known applies to one ranking"),
        ("--stream", "--stream applies to one ranking"),
        ("--swaps none", "choose one of 'keep', 'tie', 'drop'"),
        (f"--families {styled.with_name('families.csv')}", "families are for --control self"),
        ("--control self", "give a table of item and family with"),
        ("--control length --trusted nobody -m latent_score", "nobody"),
    ):
        styled.with_name("k.csv").write_text("item,score\nm1,2\n")
        ran = run(
            f"aggregate {styled} --across-queries --by category {text.replace('k.csv', str(styled.with_name('k.csv')))}"
        )
        assert (ran.code, "Traceback" in ran.err) == (2, False), text
        assert says in ran.err, ran.err
    ran = run("aggregate - --by category")
    assert (ran.code, "standard input can be read only once" in ran.err) == (2, True)
