"""Every verb does what its help says: data on standard output, talk on standard error, files that read back."""

import csv
import gzip
import io
import json

import numpy as np
import polars as pl
import pytest

from crowdrank.api.aggregation import METHODS
from crowdrank.cli import talk as talking
from crowdrank.io import read_consensus, read_judgments, read_table


def rows(text):
    """The rows of CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def test_aggregate_writes_a_ranking_and_names_the_bad_annotators(run, votes):
    ran = run("aggregate", "votes.csv", "--across-queries")
    assert ran.code == 0
    found = rows(ran.out)
    assert list(found[0]) == ["item", "score", "rank", "std_error"]
    assert [row["rank"] for row in found] == [str(rank) for rank in range(1, 13)]
    assert found[0]["item"] == "larch-pro"
    assert "read as preferences" in ran.err
    assert "1,800 preferences by 30 annotators on 12 items, over 20 queries taken together" in ran.lines
    assert f"method latent_score, since {METHODS['learned'].reason}" in ran.lines
    assert "4 of 30 annotators are worth a look (quality 0.5 is guessing):" in ran.lines
    verdicts = {line.split(":")[0].strip(): line.rsplit(", ", 1)[1] for line in ran.lines if line.startswith("  ")}
    assert verdicts.pop("olga").startswith("reversed with ")
    assert verdicts.keys() == {"bruno", "ines", "tariq"}
    assert all(one.startswith("not distinguishable from guessing with ") for one in verdicts.values())


def test_quiet_says_nothing(run, votes):
    ran = run("aggregate", "votes.csv", "--across-queries", "--quiet")
    assert ran.code == 0
    assert ran.err == ""
    assert len(rows(ran.out)) == 12


def test_warnings_are_a_line_each_also_when_quiet(run, tmp_path):
    (tmp_path / "v.csv").write_text("left,right,annotator,winner\nx,y,ann,x\nx,y,ann,x\ny,z,bob,y\n")
    ran = run("aggregate", "v.csv", "--quiet")
    assert ran.code == 0
    assert len(ran.lines) >= 2
    assert all(line.startswith("warning: ") for line in ran.lines)
    assert sum("repeat one by the same annotator" in line for line in ran.lines) == 1


def test_standard_input_gzip_and_file_give_the_same(run, votes, tmp_path):
    plain = run("aggregate", "votes.csv", "--across-queries", "-q").out
    content = votes.read_bytes()
    assert run("aggregate", "-", "--across-queries", "-q", stdin=content).out == plain
    assert run("aggregate", "-", "--across-queries", "-q", stdin=gzip.compress(content)).out == plain
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(content))
    assert run("aggregate", "v.csv.gz", "--across-queries", "-q").out == plain


def test_several_files_are_one_set_of_votes(run, votes, tmp_path):
    head, *lines = votes.read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text(head + "".join(lines[:900]))
    (tmp_path / "b.csv").write_text(head + "".join(lines[900:]))
    ran = run("aggregate", "a.csv", "b.csv", "--across-queries")
    whole = run("aggregate", "votes.csv", "--across-queries", "-q")
    assert ran.out == whole.out
    assert "1,800 preferences by 30 annotators" in ran.err


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.json", "r.parquet", "r.csv.gz", "r.jsonl"])
def test_results_read_back(run, votes, name):
    ran = run("aggregate", "votes.csv", "--across-queries", "--out", name, "--intervals", "0.9")
    assert ran.code == 0
    assert ran.out == ""
    assert f"wrote {name}" in ran.lines
    direct = rows(run("aggregate", "votes.csv", "--across-queries", "-q", "--intervals", "0.9").out)
    assert read_consensus(name).order() == [row["item"] for row in direct]
    if not name.endswith(".json"):
        table = read_table(name)
        assert {"lower", "upper", "rank_lower", "rank_upper"} <= set(table.columns)
        shown = [float(row["lower"]) for row in direct]
        assert [float(value) for value in table["lower"]] == pytest.approx(shown, rel=1e-5)


def test_json_and_parquet_hold_the_annotators_too(run, votes):
    document = json.loads(
        run("aggregate", "votes.csv", "--across-queries", "-q", "--format", "json", "--intervals", "0.9").out
    )
    assert document["method"] == "latent_score"
    assert len(document["quality"]["annotators"]) == 30
    assert {"lower", "rank_upper"} <= set(document["items"][0])
    assert run("aggregate", "votes.csv", "--across-queries", "-q", "-o", "r.parquet").code == 0
    assert len(read_consensus("r.parquet").quality.frame()) == 30


def test_the_annotator_table(run, votes):
    assert run("aggregate", "votes.csv", "--across-queries", "-q", "--annotators", "who.csv").code == 0
    table = read_table("who.csv", text_ids=False)
    assert table.columns[:3] == ["annotator", "quality", "n_judgments"]
    assert table["annotator"][-1] == "olga"
    assert table["n_judgments"].sum() == 1800


def test_annotators_can_be_left_out(run, votes):
    ran = run("aggregate votes.csv --across-queries --without olga,tariq --without bruno --annotators who.csv")
    assert "by 27 annotators" in ran.err
    assert set(read_table("who.csv")["annotator"]).isdisjoint({"olga", "tariq", "bruno"})
    assert "1 of 27 annotators is worth a look" in ran.err


def test_an_annotator_whose_name_has_a_comma_can_be_left_out(run, tmp_path):
    (tmp_path / "v.csv").write_text('item,annotator,grade\nx,"Lee, A",9\ny,"Lee, A",1\nx,bob,1\ny,bob,2\n')
    assert rows(run("aggregate", "v.csv", "-q", "--without", "Lee, A").out)[0]["item"] == "y"


def test_grades_in_words(run, tmp_path):
    (tmp_path / "v.csv").write_text("worker,task,label\nann,x,Good\nann,y,Bad\nbob,x,Fair\nbob,y,Bad\ncy,x,Good\n")
    ran = run("aggregate", "v.csv", "--levels", "Bad,Fair,Good", "--want", "grade")
    assert ran.code == 0
    assert {row["item"]: row["grade"] for row in rows(ran.out)} == {"x": "Good", "y": "Bad"}
    assert "item = 'task', grade = 'label', annotator = 'worker'" in ran.err
    nominal = run("aggregate", "v.csv", "--nominal", "-q")
    assert {row["item"]: row["grade"] for row in rows(nominal.out)} == {"x": "Good", "y": "Bad"}


def test_grades_as_preferences(run, grades):
    ran = run("aggregate", "grades.csv", "--as-preferences", "--method", "bt")
    assert ran.code == 0
    assert [row["item"] for row in rows(ran.out)] == ["z", "y", "x", "w"]
    assert "18 preferences by 3 annotators" in ran.err


def test_grades_as_rankings(run, grades):
    ran = run("aggregate", "grades.csv", "--as-rankings", "--method", "mallows")
    assert ran.code == 0
    assert [row["item"] for row in rows(ran.out)] == ["z", "y", "x", "w"]
    assert "3 rankings by 3 annotators" in ran.err


def test_options_of_reading(run, tmp_path):
    (tmp_path / "v.csv").write_text("Who,a,b,won\nann,x,y,1\nann,y,z,2\nbob,x,z,0\nbob,x,y,\n")
    (tmp_path / "items.csv").write_text("item\nx\ny\nz\nnever\n")
    words = ["--column", "annotator=Who", "--column", "winner=won", "--winner-codes", "1=left,2=right,0=tie"]
    ran = run(
        "aggregate", "v.csv", *words, "--drop-invalid", "--items", "items.csv", "--kind", "preference", "-m", "borda"
    )
    assert ran.code == 0, ran.err
    assert {row["item"] for row in rows(ran.out)} == {"x", "y", "z", "never"}
    assert any(line.startswith("warning: left out 1 of 4 rows") for line in ran.lines)
    assert "method borda" in ran.lines


def test_parameters_reach_the_method(run, votes):
    ran = run("aggregate votes.csv -q --across-queries -m bt --set ridge=3 --set ties=ignore --format json")
    params = json.loads(ran.out)["params"]
    assert (params["ridge"], params["ties"]) == (3.0, "ignore")


def test_votes_without_annotators(run, tmp_path):
    (tmp_path / "v.csv").write_text("item,grade\nx,1\ny,2\nx,3\n")
    ran = run("aggregate", "v.csv")
    assert ran.code == 0
    assert "the judgments name no annotators, so nothing can be said about them" in ran.lines


def test_few_judgments_accuse_nobody(run, tmp_path):
    (tmp_path / "v.csv").write_text("left,right,annotator,winner\nx,y,ann,x\nx,y,bob,y\nx,y,cy,tie\n")
    ran = run("aggregate", "v.csv")
    assert "worth a look" not in ran.err
    assert "judged too little to rule out guessing" in ran.err


def test_compare_without_truth(run, votes):
    ran = run("compare", "votes.csv", "--across-queries", "--methods", "borda,bt")
    assert ran.code == 0
    found = rows(ran.out)
    assert [row["method"] for row in found] == ["borda", "bradley_terry"]
    assert all(0.7 < float(row["pair_accuracy"]) < 0.85 for row in found)
    assert "no truth given" in ran.err


def test_compare_with_truth(run, grades):
    ran = run(
        "compare", "grades.csv", "--methods", "mean_grade,highest_grade", "--truth", "truth.csv", "--metrics", "tau"
    )
    assert [float(row["tau"]) > 0.5 for row in rows(ran.out)] == [True, True]


def test_evaluate_from_a_pipe(run, grades):
    ranking = run("aggregate", "grades.csv", "-q").out
    ran = run("evaluate", "-", "truth.csv", "--metrics", "ndcg@2(linear, ties=first),tau", stdin=ranking.encode())
    assert ran.code == 0
    assert [row["metric"] for row in rows(ran.out)] == ["ndcg@2(linear, ties=first)", "tau"]
    assert [float(row["value"]) for row in rows(ran.out)] == [1.0, pytest.approx(1.0)]


def test_evaluate_runs_tests_them_in_pairs(run, tmp_path):
    qrels, good, bad = [], [], []
    for query in range(12):
        for place in range(5):
            qrels.append(f"q{query} 0 d{place} {4 - place}")
            good.append(f"q{query} Q0 d{place} {place + 1} {9 - place} good")
            bad.append(f"q{query} Q0 d{place} {5 - place} {place} bad")
    for name, lines in (("t.qrels", qrels), ("good.run", good), ("bad.run", bad)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    ran = run("evaluate good.run bad.run t.qrels --metrics map,ndcg@3 --tests t.csv --per-query q.csv")
    assert ran.code == 0, ran.err
    assert {row["run"]: float(row["value"]) for row in rows(ran.out) if row["metric"] == "ndcg@3"}["good"] == 1.0
    assert len(read_table("q.csv")) == 2 * 2 * 12
    tests = read_table("t.csv", text_ids=False)
    added = ["lower", "upper", "p_t", "wins", "losses", "ties", "n_queries"]
    assert tests.columns == ["metric", "run", "other", "difference", "p_value", "p_holm", *added]
    assert tests.select("wins", "losses", "ties").rows() == [(12, 0, 0)] * 2
    assert any(line.startswith("ndcg@3: good - bad = +") and "Holm" in line for line in ran.lines)


def test_evaluate_over_queries_of_both_and_against_a_baseline(run, tmp_path):
    qrels = [f"q{query} 0 d{place} {2 - place}" for query in range(9) for place in range(3)]
    (tmp_path / "t.qrels").write_text("\n".join(qrels) + "\n")
    for name, best in (("a", 0), ("b", 1), ("c", 2), ("d", 2), ("e", 1), ("f", 0)):
        scores = [(place == best) + place / 9 for place in range(3)]
        lines = [f"q{query} Q0 d{place} 1 {scores[place]} {name}" for query in range(3) for place in range(3)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    files = "a.run b.run c.run d.run e.run f.run t.qrels --metrics ndcg@1"
    ran = run(f"evaluate {files}")
    assert [row["n_queries"] for row in rows(ran.out)] == ["3"] * 6
    assert float(rows(ran.out)[0]["value"]) == 1.0
    said = "all 6 runs: 6 of 9 queries of the truth are not ranked and are left out (--all-queries counts them as 0)"
    assert said in ran.lines
    assert sum(" - " in line for line in ran.lines) == 12
    assert ran.lines[-1].startswith("and 3 more tests; --tests FILE")
    named = run("evaluate a.run b.run --truth t.qrels --metrics ndcg@1 --baseline a --report page.html --tests u.csv")
    assert named.code == 0, named.err
    assert read_table("u.csv").select("run", "other").rows() == [("b", "a")]
    assert "largest losses of b by ndcg@1: q0" in named.err
    assert "b against a" in (tmp_path / "page.html").read_text()
    ran = run(f"evaluate {files} --all-queries --baseline b.run --tests t.csv")
    assert float(rows(ran.out)[0]["value"]) == pytest.approx(1 / 3)
    assert read_table("t.csv").select("run", "other").rows() == [(name, "b") for name in "acdef"]
    (tmp_path / "x.qrels").write_text("z1 0 d1 1\nz2 0 d1 1\n")
    ran = run("evaluate a.run x.qrels")
    assert (ran.code, len(ran.lines)) == (2, 1)
    assert "a and the truth share no query" in ran.err


def test_simulate_aggregate_evaluate(run, grades, tmp_path):
    draw = ["simulate", "truth.csv", "-n", "20", "--noise", "flip(0.05)", "--per-item", "40"]
    ran = run(*draw, "-o", "v.csv", "--quality", "w.csv")
    assert ran.code == 0
    assert "80 preferences by 20 annotators on 4 items" in ran.lines
    assert read_judgments("v.csv").kind == "preference"
    assert read_table("w.csv", text_ids=False)["quality"].to_list() == [0.95] * 20
    again = run(*draw, "-q")
    assert again.out == (tmp_path / "v.csv").read_text()
    assert again.out != run(*draw, "-q", "--seed", "1").out
    assert run("aggregate", "v.csv", "-q", "-o", "r.csv").code == 0
    assert rows(run("evaluate", "r.csv", "truth.csv", "--metrics", "tau").out)[0]["value"] == "1.0"


def test_simulate_lists_its_noises(run):
    ran = run("simulate", "--noises")
    assert ran.code == 0
    assert "plackett_luce(slope)" in ran.out


def test_methods_lists_the_registry(run):
    from crowdrank.registry import FAMILIES, names

    listed = rows(run("methods").out)
    assert [row["method"] for row in listed] == [name for family in FAMILIES for name in names(family)]
    assert [row["kinds"] for row in listed if row["method"] in FAMILIES["ranker"]] == ["features"] * len(
        FAMILIES["ranker"]
    )


def test_methods_are_those_that_python_lists(run):
    import crowdrank as cr

    frame = cr.methods()
    assert rows(run("methods").out) == frame.rows(named=True)
    assert "crowd-bt" in frame.filter(method="crowd_bt")["aliases"][0]
    told = json.loads(run("methods", "crowd-bt", "--format", "json").out)
    assert told == cr.methods("crowd-bt").frame().drop("family").rows(named=True)
    assert "takes preferences" in repr(cr.methods("crowd_bt"))
    assert {card.family for card in cr.methods("latent_score").cards} == {"aggregator", "joint"}


def test_methods_tells_of_a_ranker(run):
    ran = run("methods", "ListNet")
    assert ran.code == 0
    assert "takes features" in ran.out
    assert "crowdrank train votes.csv features.csv --ranker list_net --out model" in ran.out


def test_methods_tells_of_one(run):
    ran = run("methods", "bt")
    assert ran.code == 0
    for word in ("bradley_terry", "preferences", "ridge", "0.1", "BradleyTerry52", "crowdrank aggregate votes.csv"):
        assert word in ran.out
    table = json.loads(run("methods", "bt", "--format", "json").out)
    assert {"ties", "ridge"} <= {row["parameter"] for row in table}


def test_datasets_lists_what_is_there(run, tmp_path):
    ran = run("datasets", "--folder", tmp_path)
    assert {row["present"] for row in rows(ran.out)} == {"missing"}
    assert str(tmp_path) in ran.err
    one = run("datasets", "mirex2005-crowd", "--folder", tmp_path)
    assert one.code == 0
    assert "Licence: CC BY-SA 4.0." in one.out
    assert "Missing: " in one.out


def test_a_long_step_is_spoken_of_once_in_plain_words(run, votes, monkeypatch):
    import time

    from crowdrank import api

    fit = api.aggregate

    def slow(*words, **options):
        time.sleep(0.3)
        return fit(*words, **options)

    monkeypatch.setattr("crowdrank.api.aggregate", slow)
    monkeypatch.setattr(talking, "PATIENCE", 0.15)
    ran = run("aggregate", "votes.csv", "--across-queries")
    assert ran.lines.count("finding the consensus ...") == 1
    assert ran.lines[0].startswith("votes.csv: read as")
    assert run("aggregate", "votes.csv", "--across-queries", "-q").err == ""


def test_the_talk_of_a_failing_command_is_dropped(capsys):
    talk = talking.Talk()
    talk.__enter__()
    talk.say("heard by nobody")
    talk.__exit__(ValueError, ValueError("no"), None)
    assert capsys.readouterr().err == ""


def test_odd_ids_survive(run, tmp_path):
    ids = ["", " ", "a,b", 'a"b', "línea\nnueva", "日本", "007", "x" * 5000]
    kept = [name for name in ids if name.strip()]
    pl.DataFrame(
        {"item": kept * 2, "annotator": ["ann"] * len(kept) + ["bob"] * len(kept), "grade": [*range(len(kept))] * 2}
    ).write_csv("v.csv")
    ran = run("aggregate", "v.csv")
    assert ran.code == 0
    assert {row["item"] for row in rows(ran.out)} == set(kept)


def arena(models, *, n_prompts=40):
    """One vote for each prompt between two of the models."""
    pairs = [(models[n % len(models)], models[(n + 1 + n // len(models)) % len(models)]) for n in range(n_prompts)]
    lines = [f"p{n},{a},{b},{('model_a', 'model_b')[n % 3 == 0]}" for n, (a, b) in enumerate(pairs) if a != b]
    return "prompt,model_a,model_b,winner\n" + "\n".join(lines) + "\n"


def test_models_over_prompts_are_told_of_across_queries(run, tmp_path):
    (tmp_path / "arena.csv").write_text(arena(["alpha", "beta", "gamma", "delta"]))
    said = "; to rank them over all: --across-queries"
    assert run("aggregate arena.csv").err.count(said) == 1
    assert said not in run("aggregate arena.csv --across-queries").err


@pytest.mark.parametrize(
    ("models", "n_prompts"),
    [
        (["1", "2", "3", "4"], 40),  # may be numbers within the query
        (["alpha", "beta", "gamma", "delta"], 4),
        ([f"document{n}" for n in range(30)], 60),
    ],
)
def test_across_queries_is_not_suggested_where_it_may_not_be_meant(run, tmp_path, models, n_prompts):
    (tmp_path / "arena.csv").write_text(arena(models, n_prompts=n_prompts))
    assert "--across-queries" not in run("aggregate arena.csv").err


def test_well_judged_queries_are_not_told_of_across_queries(run, tmp_path):
    lines = [
        f"q{query},{item},a{who},{grade}"
        for query in range(8)
        for grade, item in enumerate(("alpha", "beta", "gamma"))
        for who in range(4)
    ]
    (tmp_path / "grades.csv").write_text("query,item,annotator,grade\n" + "\n".join(lines) + "\n")
    assert "--across-queries" not in run("aggregate grades.csv").err


@pytest.mark.parametrize("people", [("human-1", "human-2"), ("Ann Lee", "bob")])
def test_the_option_that_trusts_people_can_be_pasted(run, tmp_path, people):
    rng = np.random.default_rng(0)
    lines = ["query,left,right,winner,annotator"]
    for row in range(200):
        left, right = rng.permutation(4)[:2]
        who = "gpt-4o" if row % 20 else people[row // 20 % 2]
        lines.append(f"{row},m{left},m{right},{'left' if (left < right) == (rng.random() < 0.8) else 'right'},{who}")
    (tmp_path / "v.csv").write_text("\n".join(lines))
    command = "aggregate v.csv --across-queries"
    said = next(line for line in run(command).lines if "95 % of the judgments are by 1 program (gpt-4o)" in line)
    option = said[said.index("--trusted") :]
    ran = run(f"{command} {option} --annotators who.csv")
    assert (ran.code, "program" in ran.err) == (0, False)


def test_items_of_all_queries_are_listed_once_without_one(run, votes, tmp_path):
    listed = sorted({*pl.read_csv(votes)["left"], *pl.read_csv(votes)["right"], "nobody-judged-it"})
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in listed))
    ran = run("aggregate", votes, "--across-queries", "--items", "items.csv")
    assert ran.code == 0, ran.err
    assert "nobody-judged-it" in ran.out
    assert "no query column" in run("aggregate", votes, "--items", "items.csv").err
