"""Options are named as the reader would write them, and the command line understands what it names."""

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.options import BY_NAME
from crowdrank.wording import (
    call,
    counted,
    first_few,
    nearest,
    of_all,
    on_command_line,
    one_of,
    option,
    percent,
    plural,
)

PREFERENCES = {"left": list("xyxz"), "right": list("yzzx")}


@pytest.mark.parametrize(
    ("given", "python", "shell"),
    [
        (("want", "grade"), "want='grade'", "--want grade"),
        (("levels",), "levels=", "--levels"),
        (("levels", ["Bad", "Good"]), "levels=['Bad', 'Good']", "--levels Bad,Good"),
        (("nominal", True), "nominal=True", "--nominal"),
        (("invalid", "drop"), "invalid='drop'", "--drop-invalid"),
        (("columns", {"item": ...}), "columns={'item': ...}", "--column item=NAME"),
        (("params", {"ties": "davidson"}), "params={'ties': 'davidson'}", "--set ties=davidson"),
        (("winner_codes", {1: "left"}), "winner_codes={1: 'left'}", "--winner-codes 1=left"),
        (("intervals", 95.0), "intervals=95.0", "--intervals 95"),
        (("levels", ["so so", "Good"]), "levels=['so so', 'Good']", "--levels 'so so,Good'"),
    ],
)
def test_an_option_has_two_spellings(given, python, shell):
    assert option(*given) == python
    with on_command_line():
        assert option(*given) == shell
    assert option(*given) == python


def test_the_spelling_comes_back_after_an_error():
    with on_command_line():
        assert call("as_rankings") == "--as-rankings"
    with pytest.raises(ParameterError), on_command_line():
        cr.aggregate({}, want="money")
    assert call("as_rankings") == ".as_rankings()"


def test_every_option_that_is_spelt_otherwise_is_one_of_the_command_line():
    from typer.main import get_command

    from crowdrank.cli.app import app

    known = {flag for verb in get_command(app).commands.values() for one in verb.params for flag in one.opts}
    assert {one.flags[0].partition("/")[0] for one in BY_NAME.values()} <= known


def test_winners_in_words_are_asked_about_by_their_own_codes():
    # a proposal that is typed as it stands must not choose a side by the alphabet
    with pytest.raises(JudgmentError, match=r"given as 'up' and 'yo'.* winner_codes=\{'up': \.\.\., 'yo': \.\.\.\}"):
        cr.Preferences.from_frame({**PREFERENCES, "winner": ["up", "yo", "up", "yo"]})
    with on_command_line(), pytest.raises(JudgmentError, match="--winner-codes up=NAME,yo=NAME"):
        cr.Preferences.from_frame({**PREFERENCES, "winner": ["up", "yo", "up", "tie"]})
    with on_command_line(), pytest.raises(JudgmentError, match="--winner-codes 1=left,2=right,0=tie"):
        cr.Preferences.from_frame({**PREFERENCES, "winner": ["1.0", "2.0", "0.0", "1.0"]})


def test_a_strange_winner_among_others_is_no_code():
    with pytest.raises(JudgmentError, match=r"the winner \('A'\) is neither of the two items.*; correct them"):
        cr.Preferences.from_frame({**PREFERENCES, "winner": ["A", "A", "x", "left"]})


@pytest.mark.parametrize(
    "winner", [["1.0", "2.0", "0.0", "1.0"], [1.0, 2.0, 0.0, 1.0], [1, 2, 0, 1], ["1", "2", "0", "1"]]
)
@pytest.mark.parametrize("codes", [{1: "left", 2: "right", 0: "tie"}, {"1": "left", "2.0": "right", 0.0: "tie"}])
def test_codes_match_by_value(winner, codes):
    found = cr.Preferences.from_frame({**PREFERENCES, "winner": winner}, winner_codes=codes)
    assert found.outcome.tolist() == [1, -1, 0, 1]


def test_dropping_is_not_advised_where_every_row_would_go():
    with pytest.raises(JudgmentError) as caught:
        cr.Grades.from_frame({"item": ["", " "], "grade": [1, 2]})
    assert "drop" not in str(caught.value)
    with pytest.raises(JudgmentError, match="invalid='drop'"):
        cr.Grades.from_frame({"item": ["", *"abcdefghijk"], "grade": [1] * 12})
    # one row in ten is no slip any more
    with pytest.raises(JudgmentError, match=r"correct them$"):
        cr.Grades.from_frame({"item": ["", *"abcdefghi"], "grade": [1] * 10})
    # two complaints that take all rows between them
    with pytest.raises(JudgmentError) as caught:
        cr.Grades.from_frame({"item": ["", "x"], "grade": [1, None]})
    assert "drop" not in str(caught.value)


def test_all_columns_that_could_serve_are_listed():
    table = {"worker": ["ann"], **{f"column{n}": [n] for n in range(40)}}
    with pytest.raises(JudgmentError) as caught:
        cr.Grades.from_frame(table)
    text = str(caught.value)
    assert all(repr(f"column{n}") in text for n in range(40))
    assert "columns that could serve: 'column0'" in text
    assert "columns={'item': ...}" in text
    with on_command_line(), pytest.raises(JudgmentError, match=r"--column item=NAME$"):
        cr.Grades.from_frame(table)


def test_a_method_for_another_kind_names_those_that_fit():
    votes = {**PREFERENCES, "winner": ["left", "right", "left", "tie"]}
    with pytest.raises(
        JudgmentError, match=r"MeanGrade takes grades, not preferences; choose a method that takes pref.*"
    ):
        cr.aggregate(votes, "mean_grade")
    with on_command_line(), pytest.raises(JudgmentError) as caught:
        cr.aggregate({"item": ["x", "y"], "grade": [1, 2]}, "crowd_bt")
    assert str(caught.value).startswith(
        "crowd_bt takes preferences, not grades; turn them into preferences first with --as-preferences, or choose a "
        "method that takes grades: borda, "
    )
    assert "bradley_terry" not in str(caught.value)


def test_classes_and_mixtures_name_methods_too():
    classes = cr.Grades.from_frame({"item": ["x", "y"], "grade": ["a", "b"]}, nominal=True)
    with pytest.raises(
        JudgmentError, match="choose a method that takes classes: dawid_skene, ensemble, glad, mace, majority_vote"
    ):
        cr.aggregate(classes, "mean_grade")
    graded = cr.Grades.from_frame({"item": ["x", "y"], "grade": [1, 2]})
    votes = cr.Preferences.from_frame({**PREFERENCES, "winner": ["left"] * 4})
    with pytest.raises(JudgmentError, match="or choose a method that takes them together: latent_score"):
        cr.aggregate([graded, votes], "borda")


@pytest.mark.parametrize(
    ("verb", "given", "says"),
    [
        ("aggregate", {"ties": "davidson"}, r"aggregate has no argument ties=; .* into params=\{'ties': 'davidson'\}"),
        ("aggregate", {"alpha": 1, "tol": 2}, r"alpha= and tol=; parameters .* params=\{'alpha': 1, 'tol': 2\}"),
        ("aggregate", {"boostrap": 200}, r"did you mean bootstrap=\?"),
        ("aggregate", {"theta": "x" * 500}, r"params=\{'theta': \.\.\.\}"),
        ("propose", {"k": 3}, r"params=\{'k': 3\}"),
        ("compare", {"alpha": 1}, r"compare has no argument alpha=; it has judgments, methods, truth"),
        ("diagnose", {"level": 1}, "diagnose has no argument level="),
    ],
)
def test_an_argument_that_a_verb_lacks_gets_the_remedy(verb, given, says):
    with pytest.raises(ParameterError, match=says):
        getattr(cr, verb)({"item": ["x"], "grade": [1]}, **given)


def test_verbs_keep_their_signatures_for_help():
    import inspect

    assert list(inspect.signature(cr.aggregate).parameters)[:3] == ["judgments", "method", "params"]
    assert cr.aggregate.__doc__.startswith("Return the consensus of judgments.")
    assert cr.aggregate.__module__ == "crowdrank.api.aggregation"


def test_a_share_is_all_or_none_only_where_it_is():
    for place in range(1, 20_000):
        share = place / 20_000
        assert percent(share) not in ("0 %", "100 %")
        assert percent(share, sign=False) not in ("0", "100")
    assert (percent(0.0), percent(1.0)) == ("0 %", "100 %")
    assert (percent(0.9999), percent(0.0001)) == ("over 99 %", "under 1 %")
    assert (percent(0.995), percent(0.005), percent(0.994), percent(0.006)) == ("over 99 %", "under 1 %", "99 %", "1 %")
    # a difference of shares may lie below 0 by rounding
    assert percent(-1e-17) == "0 %"


def test_nouns_follow_their_number():
    assert [counted(n, "annotator") for n in (0, 1, 5, 1200)] == [
        "0 annotators", "1 annotator", "5 annotators", "1,200 annotators"
    ]  # fmt: skip
    assert counted(1.5, "judgment") == "1.5 judgments"
    assert [plural(word) for word in ("query", "day", "class", "person", "more query")] == [
        "queries", "days", "classes", "people", "more queries"
    ]  # fmt: skip
    assert [of_all(*given, "query") for given in ((1, 3), (3, 3), (2, 2), (1, 1))] == [
        "1 of 3 queries", "all 3 queries", "both queries", "the one query"
    ]  # fmt: skip


def test_the_first_five_are_named_and_the_others_counted():
    assert first_few(["a"]) == "a"
    assert first_few("abcde") == "a, b, c, d and e"
    assert first_few("abcdef") == "a, b, c, d, e and 1 more"
    assert first_few("abc", 1003, 3) == "a, b, c and 1,000 more"


def test_an_unknown_value_gets_the_nearest_and_all_known_ones():
    assert one_of("csv", ("csv", "tsv"), "format") == "csv"
    with pytest.raises(
        ParameterError, match=r"^format='cvs' is not known; did you mean 'csv'\? choose one of 'csv', 'x'$"
    ):
        one_of("cvs", ("csv", "x"), "format")
    with (
        on_command_line(),
        pytest.raises(ParameterError, match=r"^--format zzz is not known; choose one of 'csv', 'x'$"),
    ):
        one_of("zzz", ("csv", "x"), "format", of_verb=True)
    with pytest.raises(ParameterError, match=r"^start=3 is not known; choose"):
        one_of(3, ("mean",), "start")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("a0", float("inf"), "a0=inf is not finite; give a number"),
        ("b0", float("nan"), "b0=nan must be above 0"),
        ("a0", 0.0, "a0=0.0 must be above 0"),
    ],
)
def test_parameters_out_of_range_are_refused_where_a_method_is_made(name, value, says):
    with pytest.raises(ParameterError, match=says):
        cr.aggregators.NaiveBayes(**{name: value})


def test_numbers_are_not_mistaken_for_other_numbers():
    assert nearest("39", ["9", "38", "3"]) is None
    assert nearest("lenght", ["9", "length"]) == "length"
