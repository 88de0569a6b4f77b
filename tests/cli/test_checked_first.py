"""Options are looked at before anything is read, let alone fitted; options are named as the command line has them."""

import pytest

from crowdrank.io import judgments as reading
from crowdrank.io import truth as truths


@pytest.fixture
def unread(monkeypatch):
    """Whatever opens the votes or the truth fails the test."""

    def read(*_, **__):
        raise AssertionError("a file was read before the options were looked at")

    for module in (reading, truths):
        monkeypatch.setattr(module, "open_source", read)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("aggregate votes.csv --intervals 95", "--intervals 95 must lie between 0 and 1; for 95 % write --intervals 0"),
        ("aggregate votes.csv --intervals 0", "--intervals 0 must lie between 0 and 1, as 0.95 does"),
        ("aggregate votes.csv --want best", "--want best is not known; choose one of 'order'"),
        ("aggregate votes.csv --want best -m elo", "--want best is not known; choose one of 'order'"),
        ("aggregate votes.csv --bootstrap 1", "--bootstrap 1 is not a number of resamples"),
        ("aggregate votes.csv --bootstrap 9 --resample x", "--resample x is not known; choose one of 'judgment'"),
        ("aggregate votes.csv --resample query", "--resample says what a bootstrap draws; give --bootstrap 200 too"),
        ("aggregate votes.csv -m nope", "there is no aggregator 'nope'"),
        ("aggregate votes.csv -m elo --set speed=3", "elo has no parameter 'speed'"),
        ("aggregate votes.csv -m elo --set k=fast", "k='fast' is not of the right type"),
        ("aggregate votes.csv --format xml", "--format xml is not known; did you mean 'xlsx'? choose one of 'csv'"),
        ("aggregate votes.csv -o no/where.csv", "no/where.csv"),
        ("aggregate votes.csv --annotators no/where.csv", "no/where.csv"),
        ("aggregate votes.csv --report no/where.html", "no/where.html"),
        ("aggregate votes.csv --known gold.csv", "there is no file gold.csv"),
        ("aggregate votes.csv --items all.csv", "there is no file all.csv"),
        ("aggregate votes.csv more.csv", "there is no file more.csv"),
        ("aggregate votes.csv --kind vote", "--kind vote is not known; choose one of"),
        ("aggregate votes.csv --duplicates none", "--duplicates none is not known; choose one of 'keep'"),
        ("aggregate votes.csv --levels Good", "--levels Good must name at least two different levels"),
        ("aggregate votes.csv --winner-codes 1=first", "--winner-codes maps '1' to 'first'"),
        ("aggregate votes.csv --column who=me", "--column names 'who', which is none of annotator"),
        ("aggregate votes.csv --report r.html --compare elo,nope", "there is no aggregator 'nope'"),
        ("diagnose votes.csv -m nope", "there is no aggregator 'nope'"),
        ("diagnose votes.csv --truth gold.csv", "there is no file gold.csv"),
        ("diagnose votes.csv --format xml", "--format xml is not known; did you mean 'xlsx'? choose one of 'csv'"),
        ("propose votes.csv -s nope", "there is no scheme 'nope'"),
        ("propose votes.csv -s if-good-3 --set zeal=1", "if_good_k has no parameter 'zeal'"),
        ("propose votes.csv -b -1", "--budget -1 buys nothing"),
        ("propose votes.csv --price 0", "--price 0 must be a number above 0"),
        ("propose votes.csv --price a=2,b=0", "--price 0 must be a number above 0"),
        ("propose votes.csv --least-gain -1", "--least-gain -1 must not be below 0"),
        ("propose votes.csv -m nope", "there is no aggregator 'nope'"),
        ("propose votes.csv --pool who.csv", "there is no file who.csv"),
        ("propose votes.csv --costs no/costs.csv", "no/costs.csv"),
        ("simulate votes.csv -n 3 --noise nope", "nope"),
        ("simulate votes.csv -n 3 --noise profile() --kind vote", "--kind vote is not known; choose one of 'grade'"),
        ("simulate votes.csv -n 3 --noise profile() --per-item -1", "--per-item must be at least 1, not -1"),
        ("simulate votes.csv -n 3 --noise profile() --per-item 1.5", "--per-item must be a whole number for grades"),
        ("simulate votes.csv -n 3 --noise profile() --campaign nope", "there is no scheme 'nope'"),
        ("simulate votes.csv -n 3 --noise nope --campaign single", "nope"),
        ("simulate votes.csv -n 3 --noise profile() --campaign single --metrics nope", "nope"),
        ("simulate votes.csv -n 3 --noise profile() --campaign single -m nope", "there is no aggregator 'nope'"),
        ("simulate votes.csv -n 3 --noise profile() --campaign single --budget 0", "--budget 0 buys nothing"),
        ("simulate votes.csv -n 3 --noise profile() --campaign single --picture x.doc", "not the name of a picture"),
        ("simulate votes.csv -n 3 --noise profile() --quality no/q.csv", "no/q.csv"),
        ("study crowdagg-trec --format xml", "--format xml is not known; did you mean 'xlsx'? choose one of 'csv'"),
        ("study crowdagg-trec --seeds 0", "--seeds 0 must be at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_before_anything_is_read(run, votes, unread, command, says):
    ran = run(command.replace("profile()", "'profile()'"))
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.lines) == 1


def test_names_are_looked_at_before_the_fit(run, votes, monkeypatch):
    from crowdrank.models.latent_score.latent_score import LatentScore

    def fit(*_, **__):
        raise AssertionError("a consensus was looked for")

    monkeypatch.setattr(LatentScore, "fit", fit)
    ran = run("aggregate votes.csv -m latent_score --trusted nobody")
    assert ran.code == 2
    assert "nobody" in ran.err
    ran = run("aggregate votes.csv --set speed=3")
    assert "has no parameter 'speed'" in ran.err


def test_the_truth_and_the_kind_are_looked_at_before_the_fit(run, votes, tmp_path, monkeypatch):
    from crowdrank import api

    def fit(*_, **__):
        raise AssertionError("a consensus was looked for")

    (tmp_path / "gold.csv").write_text("thing,value\na,b\n")
    for verb in ("aggregate", "requests"):
        monkeypatch.setattr(api, verb, fit)
    ran = run("diagnose votes.csv --truth gold.csv")
    assert ran.code == 2
    assert "rename the one that holds it to item" in ran.err
    ran = run("propose votes.csv -s information --costs costs.csv")
    assert ran.code == 2
    assert "--costs counts grades, but these are preferences" in ran.err
