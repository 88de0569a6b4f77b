"""Whatever is wrong with the input or the options: exit 2, one line that says what to do, and nothing written."""

import gzip
import json
import os

import pytest

HEADER = "item,annotator,grade\n"
PAIRS = "left,right,annotator,winner\n"
RANKS = "item,annotator,rank\n"

BAD_FILES = {
    "empty file": ("v.csv", "", "v.csv is empty"),
    "blank lines only": ("v.csv", "\n\n", "v.csv"),
    "header only": ("v.csv", HEADER, "no rows"),
    "missing column": ("v.csv", "item,annotator\nx,ann\n", "lacks grade"),
    "doubled column": ("v.csv", "item,grade,grade\nx,1,2\n", "'grade' appears 2 times"),
    "two columns for one word": ("v.csv", "item,rating,label\nx,1,2\n", "--column grade=rating"),
    "grade and rank": ("v.csv", "item,annotator,grade,rank\nx,ann,1,1\n", "--kind"),
    "blank grade": ("v.csv", HEADER + "x,ann,1\ny,ann,\n", "row 2"),
    "NaN grade": ("v.csv", HEADER + "x,ann,1\ny,ann,NaN\n", "row 2"),
    "infinite grade": ("v.csv", HEADER + "x,ann,1\ny,ann,inf\n", "row 2"),
    "one grade in words": ("v.csv", HEADER + "x,ann,1\ny,ann,2\nz,ann,good\n", "row 3"),
    "grades in words": ("v.csv", HEADER + "x,ann,alef\ny,ann,bet\n", "--levels"),
    "blank item": ("v.csv", HEADER + ",ann,1\ny,ann,2\n", "row 1"),
    "item against itself": ("v.csv", PAIRS + "x,y,ann,x\nz,z,ann,z\n", "row 2"),
    "winner is neither": ("v.csv", PAIRS + "x,y,ann,x\nx,y,bob,w\n", "row 2"),
    "blank winner": ("v.csv", PAIRS + "x,y,ann,x\nx,y,bob,\n", "row 2"),
    "winners 0 and 1": ("v.csv", PAIRS + "x,y,ann,0\nx,y,bob,1\n", "--winner-codes"),
    "winners 1 and 2": ("v.csv", PAIRS + "x,y,ann,1\nx,y,bob,2\n", "--winner-codes"),
    "negative weight": ("v.csv", "item,annotator,grade,weight\nx,ann,1,-1\n", "row 1"),
    "zero weight": ("v.csv", "item,annotator,grade,weight\nx,ann,1,0\n", "row 1"),
    "NaN weight": ("v.csv", "item,annotator,grade,weight\nx,ann,1,nan\n", "row 1"),
    "rank in words": ("v.csv", RANKS + "x,ann,1\ny,ann,second\n", "row 2"),
    "item ranked twice": ("v.csv", RANKS + "x,ann,1\nx,ann,2\n", "'x'"),
    "time in words": ("v.csv", "item,annotator,grade,time\nx,ann,1,noon\n", "row 1"),
    "a broken spreadsheet": ("v.xlsx", b"PK\x03\x04rest", "damaged Excel file"),
    "a zip archive": ("v.zip", b"PK\x03\x04rest", "zip archive"),
    "truncated gzip": ("v.csv.gz", gzip.compress(HEADER.encode() + b"x,ann,1\n" * 999)[:40], "gzip"),
    "no Parquet": ("v.parquet", HEADER, "Parquet"),
    "broken Parquet": ("v.parquet", b"PAR1 and nothing else", "Parquet"),
    "broken JSON line": ("v.jsonl", '{"item": "x", "grade": 1}\n{"item": \n', "line 2"),
    "ids of two types": ("v.jsonl", '{"item": 7, "grade": 1}\n{"item": "x", "grade": 2}\n', "numbers and text"),
    "ragged rows": ("v.csv", HEADER + "x,ann,1,9,9\n", "v.csv"),
    "PrefLib without orders": ("v.soc", "# NUMBER ALTERNATIVES: 2\n", "v.soc"),
}  # fmt: skip


def mistaken(ran):
    """The one line that a mistake leaves."""
    assert ran.code == 2, ran
    assert ran.out == ""
    assert len(ran.lines) == 1, ran.err
    assert ran.err.startswith("crowdrank: ")
    assert "Traceback" not in ran.err
    return ran.err


@pytest.mark.parametrize(("name", "content", "said"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file(run, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert said in mistaken(run("aggregate", name, "--out", "ranks.csv", "--annotators", "who.csv"))
    assert os.listdir(tmp_path) == [name]


BAD_OPTIONS = {
    "no such file": (["aggregate", "vots.csv"], "did you mean 'votes.csv'?"),
    "a folder": (["aggregate", "."], "is a folder"),
    "nothing named": (["aggregate"], "missing argument 'VOTES...'; see crowdrank aggregate --help"),
    "no such command": (["aggregat", "votes.csv"], "aggregate"),
    "no such option": (["aggregate", "votes.csv", "--metod", "elo"], "--method"),
    "option without value": (["aggregate", "votes.csv", "--method"], "--method"),
    "no such method": (["aggregate", "votes.csv", "--method", "bradley_tery"], "did you mean 'bradley_terry'?"),
    "method for another kind": (["aggregate", "votes.csv", "--method", "mean_grade"], "not preferences"),
    "no such parameter": (["aggregate", "votes.csv", "-m", "elo", "--set", "kk=3"], "its parameters"),
    "parameter of another type": (["aggregate", "votes.csv", "-m", "bt", "--set", "ridge=much"], "ridge='much'"),
    "parameter out of range": (["aggregate", "votes.csv", "-m", "bt", "--set", "ridge=-1"], "ridge"),
    "no key=value": (["aggregate", "votes.csv", "--set", "ridge"], "--set alpha=2"),
    "key twice": (["aggregate", "votes.csv", "-m", "bt", "--set", "ridge=1", "--set", "ridge=2"], "twice"),
    "negative seed": (["aggregate", "votes.csv", "--seed", "-1"], "--seed"),
    "seed in words": (["aggregate", "votes.csv", "--seed", "x"], "--seed"),
    "no such kind": (["aggregate", "votes.csv", "--kind", "vote"], "'grade', 'preference', 'ranking'"),
    "no such column": (["aggregate", "votes.csv", "--column", "annotator=Who"], "'Who'"),
    "no such word": (["aggregate", "votes.csv", "--column", "rater=annotator"], "'rater'"),
    "no such rule": (["aggregate", "votes.csv", "--duplicates", "some"], "'keep', 'first', 'last', 'error'"),
    "levels of preferences": (["aggregate", "votes.csv", "--levels", "a,b"], "apply to grades"),
    "codes without a word": (["aggregate", "votes.csv", "--winner-codes", "1=won"], "'left', 'right', 'tie'"),
    "codes of another form": (["aggregate", "votes.csv", "--winner-codes", "1"], "--winner-codes"),
    "grades of preferences": (["aggregate", "votes.csv", "--want", "grade"], "order"),
    "nothing to want": (["aggregate", "votes.csv", "--want", "money"], "--want money is not known; choose one"),
    "no such format": (["aggregate", "votes.csv", "--format", "xml"], "'csv', 'tsv', 'json'"),
    "no such annotator": (["aggregate", "votes.csv", "--without", "olgo"], "did you mean 'olga'?"),
    "no uncertainty": (["aggregate", "votes.csv", "-m", "elo", "--intervals", "0.9"], "gives no uncertainty"),
    "one resample": (["aggregate", "votes.csv", "--bootstrap", "1"], "use 2 or more, 200 for intervals"),
    "resamples in words": (["aggregate", "votes.csv", "--bootstrap", "many"], "--bootstrap"),
    "no such unit": (["aggregate", "votes.csv", "--bootstrap", "9", "--resample", "row"], "'annotator', 'query'"),
    "unit without resamples": (["aggregate", "votes.csv", "--resample", "annotator"], "--bootstrap 200"),
    "queries as they are": (["aggregate", "votes.csv", "--bootstrap", "9", "--resample", "query"], "--across-queries"),
    "no groups to draw": (["aggregate", "votes.csv", "--bootstrap", "9", "--resample", "group"], "add a group column"),
    "level above 1": (["aggregate", "votes.csv", "--intervals", "95"], "between 0 and 1"),
    "no folder to write to": (["aggregate", "votes.csv", "--out", "no/ranks.csv"], "folder does not exist"),
    "a folder to write to": (["aggregate", "votes.csv", "--out", "."], "is a folder"),
    "no folder for annotators": (["aggregate", "votes.csv", "-o", "r.csv", "--annotators", "no/a"], "does not exist"),
    "over the input": (["aggregate", "votes.csv", "--out", "votes.csv"], "is an input"),
    "twice the same result": (["aggregate", "votes.csv", "-o", "r.csv", "--annotators", "./r.csv"], "two results"),
    "standard input twice": (["aggregate", "-", "-"], "only once"),
    "empty standard input": (["aggregate", "-"], "standard input is empty"),
    "no such items": (["aggregate", "votes.csv", "--items", "items.csv"], "items.csv"),
    "measures without truth": (["compare", "votes.csv", "--metrics", "map"], "--truth"),
    "no such method to compare": (["compare", "votes.csv", "--methods", "elo,bort"], "'bort'"),
    "truth alone": (["evaluate", "votes.csv"], "then the truth"),
    "no truth in the file": (["evaluate", "ranks.csv", "ranks.csv", "--metrics", "ndgc@10"], "did you mean 'ndcg'?"),
    "metric for pairs": (["evaluate", "ranks.csv", "truth.csv", "--metrics", "preference_accuracy"], "does not fit"),
    "truth of other items": (["evaluate", "ranks.csv", "other.csv"], "share no item"),
    "no such rule for unjudged": (["evaluate", "ranks.csv", "truth.csv", "--unjudged", "half"], "'drop' nor 'zero'"),
    "level of a measure": (["evaluate", "votes.csv", "truth.csv", "--level", "95"], "between 0 and 1"),
    "metric before files": (["evaluate", "votes.csv", "truth.csv", "--metrics", "ndgc@10"], "did you mean 'ndcg'?"),
    "no such baseline": (["evaluate", "ranks.csv", "truth.csv", "--baseline", "bm25"], "known: ranks"),
    "nothing beside a baseline": (["evaluate", "ranks.csv", "truth.csv", "--baseline", "ranks"], "the only run"),
    "baseline before files": (["compare", "truth.csv", "--methods", "elo", "--baseline", "borda"], "known: elo"),
    "measure before files": (["compare", "votes.csv", "--truth", "votes.csv", "--metrics", "ndgc"], "mean 'ndcg'?"),
    "no result in the file": (["evaluate", "votes.csv", "truth.csv"], "votes.csv"),
    "no annotators": (["simulate", "truth.csv", "--noise", "flip(0.1)"], "--annotators"),
    "no such noise": (["simulate", "truth.csv", "-n", "3", "--noise", "flop(0.1)"], "did you mean 'flip'?"),
    "noise out of range": (["simulate", "truth.csv", "-n", "3", "--noise", "flip(2)", "-o", "v.csv"], "0 to 1"),
    "none at all": (["simulate", "truth.csv", "-n", "0", "--noise", "flip(0.1)"], "--annotators"),
    "no such method to show": (["methods", "elo2"], "did you mean 'elo'?"),
    "no such data set": (["datasets", "mirex"], "mirex2005-crowd"),
    "no folder for the demo": (["demo", "--save", "no/votes.csv"], "folder does not exist"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "said"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_option(run, votes, tmp_path, words, said):
    (tmp_path / "truth.csv").write_text("item,grade\nw,0\nx,1\ny,2\n")
    (tmp_path / "other.csv").write_text("item,grade\nw2,0\nx2,1\n")
    (tmp_path / "ranks.csv").write_text("item,score,rank\nw,0.5,1\nx,0.2,2\n")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    assert said in mistaken(run(*words))
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_a_table_of_annotators_needs_annotators(run, tmp_path):
    (tmp_path / "v.csv").write_text("item,grade\nx,1\ny,2\n")
    assert "name no annotators" in mistaken(run("aggregate", "v.csv", "--annotators", "who.csv", "-o", "r.csv"))
    assert os.listdir(tmp_path) == ["v.csv"]


def test_nobody_left(run, tmp_path):
    (tmp_path / "v.csv").write_text(HEADER + "x,ann,1\ny,ann,2\n")
    assert "no judgment is left" in mistaken(run("aggregate", "v.csv", "--without", "ann"))


def test_grade_outside_the_scale(run, tmp_path):
    (tmp_path / "v.csv").write_text(HEADER + "x,ann,1\ny,ann,7\n")
    assert "row 2" in mistaken(run("aggregate", "v.csv", "--levels", "0,1,2,3"))


def test_repeated_judgments_as_an_error(run, tmp_path):
    (tmp_path / "v.csv").write_text(HEADER + "x,ann,1\nx,ann,2\n")
    assert "twice" in mistaken(run("aggregate", "v.csv", "--duplicates", "error"))


def test_ids_are_shown_on_one_line_and_cannot_steer_the_terminal(run, tmp_path):
    row = {"left": "a\n\x1b[31mb", "right": "a\n\x1b[31mb", "winner": "left"}
    (tmp_path / "v.jsonl").write_text(json.dumps(row) + "\n")
    assert "\x1b" not in mistaken(run("aggregate", "v.jsonl"))


def test_a_mistake_of_ours_says_so(run, votes, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("crowdrank.api.aggregate", broken)
    ran = run("aggregate", votes)
    assert ran.code == 1
    assert len(ran.lines) == 1
    assert "ZeroDivisionError: oh no; this is a bug" in ran.err
    assert "CROWDRANK_TRACEBACK=1" in ran.err
    monkeypatch.setenv("CROWDRANK_TRACEBACK", "1")
    from crowdrank.cli import main

    assert main(["aggregate", str(votes)]) == 1


def test_the_traceback_can_be_had(run, tmp_path, monkeypatch, capsys):
    from crowdrank.cli import main

    monkeypatch.setenv("CROWDRANK_TRACEBACK", "1")
    assert main(["aggregate", str(tmp_path / "no.csv")]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_leaves_one_line(run, votes, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("crowdrank.api.aggregate", interrupted)
    ran = run("aggregate", votes, "--out", "r.csv")
    assert ran.code == 130
    assert ran.lines == ["crowdrank: interrupted; no partial file was left"]


def test_an_option_is_no_value_of_another_one(run, votes):
    ran = run("aggregate", votes, "--rating", "--format", "latex")
    assert ran.code == 2
    assert "--rating needs a value, and --format follows it" in ran.err


def test_a_number_that_is_none_is_refused_in_our_words(run, tmp_path):
    (tmp_path / "truth.csv").write_text("item,grade\nx,1\ny,2\n")
    for words, said in (
        ("--annotators 0 --noise random()", "--annotators 0 must be a whole number of at least 1"),
        ("--annotators few --noise random()", "--annotators few must be a whole number of at least 1"),
        ("--annotators 4 --noise flip(0.1) --per-item x", "--per-item x must be a number"),
    ):
        ran = run("simulate", str(tmp_path / "truth.csv"), *words.split())
        assert (ran.code, ran.lines) == (2, [f"crowdrank: {said}"])
