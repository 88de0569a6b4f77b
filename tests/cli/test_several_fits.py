"""A ranking for each category, and the mean of several criteria."""

import csv
import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import crowdrank as cr
from crowdrank.api import category_table, fit_category


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


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("design", ["a person per vote", "5 judges with tastes, both orders"])
def test_intervals_of_categories_cover(design):
    from benchmarks.judge_coverage import DESIGNS, category_figures

    def figures(differ):
        return np.mean([category_figures(seed, differ=differ, **DESIGNS[design]) for seed in range(6)], axis=0)

    (covers, correlation, sd, off), (far_covers, far_correlation, far_sd, far_off) = figures(0.0), figures(0.4)
    # 90 % intervals; without what annotators have in common they cover .84 and .80 of two judgments of a pair
    assert min(covers, far_covers) > 0.83
    # categories without differences are nearly equal; the weights of singular covariances made them 3 apart
    assert min(correlation, far_correlation) > 0.9
    assert off < 0.15 < far_off
    assert sd < far_sd < 0.6


def test_robust_errors_do_not_decide_how_far_categories_shrink(run, data_folder):
    votes, truth = data_folder / "misread" / "by_category_votes.csv", np.linspace(1.2, -1.2, 12)

    def tables(more):
        ran = run(f"aggregate {votes} --across-queries --by category --format csv {more}")
        assert ran.code == 0, ran.err
        found = pl.read_csv(io.StringIO(ran.out)).sort("category", "item")
        return {one[0]: part for one, part in found.group_by("category")}

    unasked, model = tables(""), tables("--robust none")
    for category, own in unasked.items():
        agrees, usual = (np.corrcoef(table[category]["score"], truth)[0, 1] for table in (unasked, model))
        assert agrees > usual - 0.05
        assert own["sd"].max() < 0.6
        # annotators who judged all of them have tastes, which make each of the categories wrong
        assert (own["std_error"] > 0.9 * model[category]["std_error"]).all()
        assert own["std_error"].mean() > 1.3 * model[category]["std_error"].mean()


def test_a_category_that_is_surer_than_all_is_shrunk_too():
    from benchmarks.judge_coverage import category_votes

    votes, _ = category_votes(2, 0.0, judges=5, pairs=400)

    def fit(rows):
        return fit_category(cr.Preferences.from_frame(rows.drop("category")).across_queries(), method="crowd_bt")

    whole, parts = fit(votes), {str(c): fit(votes.filter(pl.col("category") == c)) for c in range(4)}
    # annotators who contradict themselves between categories leave less known of all than of each
    unsure = whole._replace(consensus=replace(whole.consensus, covariance=(6 * whole.consensus.covariance[0],)))
    table = category_table(unsure, parts)
    found = table.pivot("category", index="item", values="score")
    assert table["sd"].max() < 1
    for category in parts:
        assert (found[category] - found["all"]).pow(2).mean() < 0.4**2


def test_an_sd_at_its_bound_is_said(run, tmp_path):
    rows = ["query,left,right,winner,category"]
    rng = np.random.default_rng(3)
    for place in range(3000):
        category = ("plain", "turned")[place % 2]
        low, high = np.sort(rng.choice(8, 2, replace=False))
        won = "right" if category == "plain" else "left"
        rows.append(f"q{place},m{low},m{high},{won},{category}")
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    ran = run(f"aggregate {tmp_path}/votes.csv --across-queries --by category -m bradley_terry --format csv")
    assert ran.code == 0, ran.err
    assert "the scores of category turned differ from those of the others by more than" in ran.err
    assert "read the right way round" in ran.err


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
    for key in plain:
        if key[0] == "all":
            assert robust[key]["std_error"] != plain[key]["std_error"]
        assert key[0] == "all" or float(robust[key]["std_error"]) >= float(plain[key]["std_error"])
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


def criteria_votes(rng, *, halo=0.0, pairs=False):
    """A file of two criteria and an overall that is three parts content; annotators' errors share ``halo``."""
    truth = rng.normal(0, 1.5, (60, 2))
    worth = np.column_stack([truth, truth @ [0.75, 0.25]])
    rows = ["left,right,annotator,content,style,overall" if pairs else "item,annotator,content,style,overall"]
    for place in range(1800):
        item, other, who = rng.choice(60), rng.choice(59), place % 9
        other += other >= item
        shared = rng.normal()
        noise = np.sqrt(halo) * shared + np.sqrt(1 - halo) * rng.normal(size=3)
        if pairs:
            won = worth[item] - worth[other] + 1.5 * noise > 0
            rows.append(f"i{item},i{other},w{who}," + ",".join(np.where(won, "left", "right")))
        elif place < 540:
            graded = np.clip(np.round(4 + worth[place % 60] + noise), 1, 7)
            rows.append(f"i{place % 60},w{place // 60}," + ",".join(f"{one:.0f}" for one in graded))
    return "\n".join(rows) + "\n"


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("halo", [0.0, 0.6])
def test_criteria_have_weights_and_halo(run, tmp_path, pairs, halo):
    path = tmp_path / "criteria.csv"
    path.write_text(criteria_votes(np.random.default_rng(3), halo=halo, pairs=pairs))
    parts, judgments = {}, {}
    for name in ("content", "style", "overall"):
        answer = "winner" if pairs else "grade"
        judgments[name] = cr.read_judgments(path, columns={answer: name}, duplicates="keep")
        parts[name] = cr.aggregate(judgments[name], "bradley_terry" if pairs else "mean_grade", robust="none")
    overall = parts.pop("overall")
    found = cr.rubric(parts, judgments, overall=overall)
    learned = {row[0]: row[1:] for row in found.weights.rows()}
    assert learned["content"][1] < 0.75 < learned["content"][2]
    assert learned["content"][2] - learned["content"][1] < 0.3
    row = found.correlations.row(0, named=True)
    assert row["lower"] < row["correlation"] < row["upper"]
    assert (row["halo_lower"] > 0.1) == (halo > 0)
    assert abs(row["corrected"]) >= abs(row["correlation"])
    assert len(found.annotators) == 9
    stated = cr.rubric(parts, weights={"content": 3, "style": 1}).table
    expected = (3 * stated["content"] + stated["style"]) / 4
    assert stated["score"].to_list() == pytest.approx(expected.to_list())


def test_criteria_on_the_command_line(run, tmp_path):
    path = tmp_path / "criteria.csv"
    path.write_text(criteria_votes(np.random.default_rng(4)))
    ran = run(f"aggregate {path} --criteria content,style --overall overall -m mean_grade --format csv")
    assert ran.code == 0, ran.err
    assert "weights by the overall judgment: content 0.7" in ran.err
    assert "halo: errors of one annotator" in ran.err
    for text, says in (
        ("--criteria content,tone", "has no column 'tone'"),
        ("--criteria content=1,style", "'style' has no weight"),
        ("--criteria content=x", "is not a number"),
        ("--overall overall", "--overall goes with --criteria"),
    ):
        ran = run(f"aggregate {path} {text} -q")
        assert (ran.code, "Traceback" in ran.err) == (2, False), text
        assert says in ran.err, ran.err
