"""What there is to say of a consensus: the right sentence for each case, with its numbers and ids."""

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.errors import ParameterError
from crowdrank.review.crowd_agreement import contested_items
from crowdrank.review.findings import Finding, Findings, facts_of, name_ids
from crowdrank.wording import of_all, percent


@pytest.fixture(scope="module")
def demo():
    """The demo's judgments over all prompts, and their consensus."""
    votes = cr.read_judgments(FILE).across_queries()
    return cr.aggregate(votes, "bradley_terry"), votes


@pytest.fixture(scope="module")
def found(demo):
    return cr.findings(*demo)


def grades(rows):
    """Grades from (annotator, item, grade)."""
    return cr.Grades.from_frame(pl.DataFrame(rows, schema=["annotator", "item", "grade"], orient="row"))


def test_the_demo_is_told_in_full(found):
    kinds = [one.kind for one in found]
    assert kinds[0] == "winner"
    assert {"reversed", "guessing", "agreement", "divided", "judgments", "converged"} <= set(kinds)
    assert len(kinds) == len(set(kinds))
    guessing = found.of("guessing")
    assert guessing.sentence == "3 of 30 annotators are not distinguishable from guessing: tariq, bruno and ines"
    assert (guessing.severity, guessing.numbers, set(guessing.ids)) == (
        "problem", {"n": 3, "n_annotators": 30}, {"tariq", "bruno", "ines"},
    )  # fmt: skip
    assert found.of("reversed").ids == ("olga",)


def test_the_winner_comes_with_its_probability(demo, found):
    consensus, _ = demo
    first, second = consensus.order()[:2]
    winner = found.of("winner")
    assert winner.ids == (first, second)
    assert winner.numbers["probability"] == pytest.approx(consensus.beats(first, second))
    assert winner.severity == "warning"
    more = found.of("more_judgments")
    # the lead in standard errors grows with the root of the number of judgments
    from statistics import NormalDist

    lead = NormalDist().inv_cdf(winner.numbers["probability"])
    assert lead * np.sqrt(more.numbers["times"]) == pytest.approx(NormalDist().inv_cdf(0.95))


def test_findings_are_data_too(found):
    table = found.frame()
    assert table.columns == ["kind", "about", "severity", "sentence", "numbers", "ids"]
    assert len(table) == len(found)
    assert json.loads(json.dumps(found.plain(), allow_nan=False))[0]["kind"] == "winner"
    assert found.worst_first()[0].severity == "problem"
    assert {one.about for one in found.about("annotators")} == {"annotators"}
    assert "problem: 1 of 30 annotators answers the wrong way round: olga" in repr(found)
    with pytest.raises(ParameterError, match="not about 'weather'"):
        found.about("weather")


def test_sure_winners_are_good_news():
    rows = [(who, item, grade) for who in "abcdefgh" for item, grade in (("x", 9), ("y", 1), ("z", 0))]
    votes = grades([(a, i, g + 0.1 * k) for k, (a, i, g) in enumerate(rows)])
    winner = cr.findings(cr.aggregate(votes, "mean_grade"), votes).of("winner")
    assert winner.severity == "good"
    assert winner.sentence.startswith("x is first of 3 items: better than the next, y")


def test_equals_are_not_to_be_told_apart_by_more_judgments():
    votes = cr.Preferences.from_rows([(f"a{k}", "q", "x", "y", "x" if k % 2 else "y") for k in range(41)])
    found = cr.findings(cr.aggregate(votes, "bradley_terry"), votes)
    assert found.of("equals").sentence == "more judgments would hardly distinguish y from x: treat them as equal"


@pytest.mark.parametrize(
    ("rows", "kind", "sentence"),
    [
        ([("a", "x", 1), ("b", "x", 2)], "only_item", "x is the only item"),
        ([(a, i, 2) for a in "ab" for i in "xyz"], "all_tied", "all 3 items have the same score"),
        ([("a", "x", 2), ("a", "y", 2), ("a", "z", 0)], "shared_first", "2 of 3 items share the first place: x and y"),
        ([("a", "x", 2), ("a", "y", 1)], "one_annotator", "a gave all judgments; with only one annotator"),
        ([("a", "x", 2), ("b", "y", 1)], "no_overlap", "no item was judged twice"),
        ([(a, i, 2) for a in "ab" for i in "xyz"], "nothing_to_order", "annotators give all items"),
        ([("a", "x", 1), ("b", "x", 2)], "nothing_to_order", "no query has two items, so nothing shows which of the 2"),
    ],
)
def test_small_cases(rows, kind, sentence):
    votes = grades(rows)
    assert cr.findings(cr.aggregate(votes, "mean_grade"), votes).of(kind).sentence.startswith(sentence)


def test_unjudged_items_are_named():
    votes = cr.Grades.from_frame(
        {"item": ["x", "y", "x"], "annotator": ["a", "b", "b"], "grade": [1, 2, 3]}, items={"item": ["x", "y", "z"]}
    )
    unjudged = cr.findings(cr.aggregate(votes, "mean_grade"), votes).of("unjudged")
    assert (unjudged.sentence, unjudged.ids) == ("1 of 3 items was never judged: z", ("z",))


def test_without_annotators_nothing_is_said_of_them():
    votes = cr.Grades.from_frame({"item": ["x", "y", "x"], "grade": [1, 2, 3]})
    found = cr.findings(cr.aggregate(votes, "mean_grade"), votes)
    assert found.of("no_annotators").severity == "info"
    assert found.of("agreement").sentence.startswith("two judgments of the same item agree in 0 % of cases")


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_queries_are_counted():
    votes = cr.read_judgments(FILE)
    winners = cr.findings(cr.aggregate(votes, "bradley_terry"), votes).of("winners")
    assert winners.numbers["n_queries"] == 20
    assert len(winners.ids) == 20 - winners.numbers["n_sure"]


def test_classes_have_no_order():
    rows = [(a, f"i{k}", "cat" if k % 3 else "dog") for a in "abc" for k in range(12)]
    votes = cr.Grades.from_frame(pl.DataFrame(rows, schema=["annotator", "item", "grade"], orient="row"), nominal=True)
    found = cr.findings(cr.aggregate(votes, "dawid_skene"), votes)
    assert found.of("classes").sentence == "12 items in 2 classes: 8 cat and 4 dog"
    assert found.of("winner", "order") is None


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_one_sided_annotators_are_found():
    rng = np.random.default_rng(0)
    strength = np.arange(8) / 2
    rows = []
    for who in range(6):
        for _ in range(60):
            i, j = rng.choice(8, 2, replace=False)
            won = who == 0 or rng.random() < 1 / (1 + np.exp(strength[j] - strength[i]))
            rows.append((f"a{who}", "q", f"i{i}", f"i{j}", "left" if won else "right"))
    votes = cr.Preferences.from_rows(rows)
    assert cr.findings(cr.aggregate(votes, "bradley_terry"), votes).of("one_side").ids == ("a0",)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_where_the_crowd_disagrees():
    rows = [("q", "x", "y", w) for w in "xxxyyy"] + [("q", "x", "z", "x")] * 6 + [("q", "y", "z", "y")] * 2
    votes = cr.Preferences.from_rows([(f"a{k}", *row) for k, row in enumerate(rows)])
    table = contested_items(votes, cr.aggregate(votes, "bradley_terry"))
    assert table.select("n_item", "n_other", "n_answers").rows() == [(3, 3, 6), (6, 0, 6)]
    assert set(table.row(0, named=True).values()) >= {"x", "y"}
    marks = grades(
        [(a, i, g) for i, gs in (("x", (0, 4, 2)), ("y", (1, 1, 1))) for a, g in zip("abc", gs, strict=True)]
    )
    spread = contested_items(marks, cr.aggregate(marks, "mean_grade"))
    assert spread.select("item", "lowest", "highest").rows() == [("x", 0.0, 4.0), ("y", 1.0, 1.0)]
    assert spread["spread"][0] == pytest.approx(np.std([0, 4, 2]))


def test_a_stopped_fit_is_told(demo):
    from dataclasses import replace

    from crowdrank.data.consensus import Trace

    consensus, votes = demo
    stopped = replace(consensus, trace=Trace(7, False, 1.0))
    assert cr.findings(stopped, votes).of("not_converged").sentence.startswith("bradley_terry stopped after 7 rounds")


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_what_is_no_consensus_is_refused(demo):
    consensus, votes = demo
    with pytest.raises(ParameterError, match="not about a str"):
        cr.findings("x", votes)
    other = grades([("a", "x", 1), ("a", "y", 2)])
    with pytest.raises(
        ParameterError, match="12 items and the judgments 2, which are not the same; give the judgments"
    ):
        cr.findings(consensus, other)
    renamed = votes.frame().with_columns(pl.col("left", "right").str.replace("larch-pro", "zebra"))
    with pytest.raises(ParameterError, match="which are not the same"):
        cr.findings(consensus, cr.Preferences.from_frame(renamed, duplicates="first"))
    assert facts_of(consensus, None).agreement is None
    assert cr.findings(consensus).of("winner") is not None


def test_words():
    assert name_ids(["a b", 7]) == "'a b' and 7"
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0 %",
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    ]
    assert [of_all(n, m, "query") for n, m in ((1, 1), (2, 2), (3, 3), (1, 3))] == [
        "the one query", "both queries", "all 3 queries", "1 of 3 queries",
    ]  # fmt: skip
    assert Findings([]).of("winner") is None
    assert Finding("x", "items", "info", "y").plain()["ids"] == []


def test_a_consensus_from_a_file_will_do(demo, tmp_path):
    from crowdrank.io.results import write_consensus

    consensus, votes = demo
    write_consensus(consensus, tmp_path / "r.parquet")
    read = cr.read_consensus(tmp_path / "r.parquet")
    known = {one.kind: one.sentence for one in cr.findings(consensus, votes)}
    assert {one.kind: one.sentence for one in cr.findings(read, votes)} == known
    assert cr.report.render(read, votes).startswith("<!DOCTYPE html>")


def test_camps_that_contradict_each_other_are_not_told_to_judge_more():
    rows = [
        (f"{camp}{number}", "q", *(pair if camp == "u" else pair[::-1]), "left")
        for camp in "uv" for number in range(4) for pair in combinations("abcdefghijkl", 2)
    ]  # fmt: skip
    votes = cr.Preferences.from_rows(rows)
    found = cr.findings(cr.aggregate(votes, "bradley_terry"), votes)
    assert found.of("too_few_judgments") is None
    assert "others agree too little" in found.of("unmatched").sentence
    assert len(found.of("unmatched").ids) == 8


def verdicts_of(numbers, groups=None, items=("m1", "m2", "m3")):
    """Preferences of annotators, as many as said of each, all for the first of the items."""
    rng = np.random.default_rng(0)
    rows = []
    for who, number in numbers.items():
        for _ in range(number):
            left, right = rng.permutation(len(items))[:2]
            won = rng.random() < 0.8
            winner = "left" if (left < right) == won else "right"
            rows.append((len(rows), who, items[left], items[right], winner, (groups or {}).get(who)))
    table = pl.DataFrame(rows, schema=["query", "annotator", "left", "right", "winner", "group"], orient="row")
    return cr.Preferences.from_frame(table if groups else table.drop("group")).across_queries()


@pytest.mark.parametrize(
    ("numbers", "groups", "trusted"),
    [
        ({"j1": 90, "p1": 6, "p2": 6}, {"j1": "llm", "p1": "human", "p2": "human"}, "trusted='group=human'"),
        ({"gpt-4o": 90, "human-1": 6, "human-2": 6}, None, "trusted='human-*'"),
        ({"gpt-4o": 90, "claude-3-opus": 60, "expert": 6}, None, "trusted='expert'"),
        ({"gpt-4o": 90, "ann": 6, "bob": 6}, None, "if these are people, let them decide with trusted="),
        ({"gpt-4o": 6, "human-1": 60}, None, None),
        ({"gpt-4o": 90, "claude-3": 60}, None, None),
        ({"claude": 90, "anna": 6}, None, None),
        ({"ann": 90, "bob": 6}, {"ann": "red", "bob": "blue"}, None),
    ],
)
def test_programs_that_outvote_people_are_told_with_the_option_to_paste(numbers, groups, trusted):
    votes = verdicts_of(numbers, groups)
    finding = cr.findings(cr.aggregate(votes, "latent_score"), votes).of("mostly_programs")
    if trusted is None:
        assert finding is None
        return
    assert trusted in finding.sentence
    again = cr.aggregate(votes, "latent_score", trusted=list(finding.ids))
    assert cr.findings(again, votes).of("mostly_programs") is None


def test_students_who_judge_each_other_are_no_programs():
    votes = verdicts_of({"ann": 90, "bob": 6}, items=("ann", "bob", "cy"))
    assert cr.findings(cr.aggregate(votes, "latent_score"), votes).of("mostly_programs") is None


def test_a_method_that_trusts_nobody_is_not_told_to():
    votes = verdicts_of({"gpt-4o": 90, "human-1": 6, "human-2": 6})
    sentence = cr.findings(cr.aggregate(votes, "bradley_terry"), votes).of("mostly_programs").sentence
    assert sentence.endswith("method='latent_score' trusted='human-*'")


@pytest.mark.parametrize(
    ("names", "kind"),
    [(("gpt-4", "claude-3"), "only_programs"), (("ann", "bob"), "shared_unseen"), (("gpt-4",), "one_annotator")],
)
def test_errors_that_nothing_can_show_are_told(names, kind):
    rng = np.random.default_rng(0)
    rows = [(who, f"q{k}", "x", "y", "left" if rng.random() < 0.7 else "right") for k in range(40) for who in names]
    judged = cr.Preferences.from_rows(rows).across_queries()
    found = cr.findings(cr.aggregate(judged, "latent_score"), judged).of(kind)
    assert found is not None
    assert "would change" in found.sentence
    alone = cr.Preferences.from_rows(rows)
    assert "usual allowance" in cr.findings(cr.aggregate(alone, "latent_score"), alone).of(kind).sentence
