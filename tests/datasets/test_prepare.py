"""Stored files made from a few invented rows in the layout of the public sources, and loaded again."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tools.prepare_datasets import main, prepare

from crowdrank import datasets
from crowdrank.errors import JudgmentError, MissingDataError, ParameterError


def put(root: Path, **files: str | bytes) -> Path:
    """Write files of a source, given as path=content, and return its folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("name", "inside", "file"),
    [
        ("letor-ohsumed", "data/OHSUMED/QueryLevelNorm/", "test.txt"),
        ("letor-ohsumed", "", "test.txt"),
        ("letor2-ohsumed", "benchmarks/OHSUMED/Data/", "testset.TXT"),
    ],
)
def test_partitions_from_the_test_files_of_the_folds(
    source: Path, out: Path, name: str, inside: str, file: str
) -> None:
    lines = {fold: f"{fold % 3} qid:{fold} 1:0.{fold} 2:1 #docid = d{fold}\n" for fold in range(1, 6)}
    put(source, **{f"{inside}Fold{fold}/{file}": line for fold, line in lines.items()})
    written = prepare(name, source, out)
    assert sorted(path.name for path in written) == ["S1.txt", "S2.txt", "S3.txt", "S4.txt", "S5.txt", "folds.json"]
    assert (out / name / "S5.txt").read_text() == lines[1]
    dataset = datasets.load(name, out)
    assert [fold.test for fold in dataset.folds] == [("1",), ("2",), ("3",), ("4",), ("5",)]
    assert dataset.folds[0].train == ("2", "3", "4")
    assert dataset.folds[0].vali == ("5",)
    assert dataset.truth.grade.tolist() == [1, 2, 0, 1, 2]


def test_folds_that_share_a_query(source: Path, out: Path) -> None:
    put(source, **{f"Fold{fold}/test.txt": "0 qid:7 1:0 #docid = d\n" for fold in range(1, 6)})
    with pytest.raises(JudgmentError, match="two folds share qid:7"):
        prepare("letor-ohsumed", source, out)
    assert not out.exists()


def test_lists_of_rankers(source: Path, out: Path) -> None:
    rows = (
        "1 qid:{0} 1:40 2:NULL #docid = a inc = 1\n0 qid:{0} 1:7 2:3 #docid = b\n2 qid:{0} 1:NULL 2:NULL #docid = c\n"
    )
    put(source, **{f"MQ2008-agg/A{part}.txt": rows.format(part) for part in range(1, 6)})
    prepare("letor-mq2008-agg", source, out)
    dataset = datasets.load("letor-mq2008-agg", out)
    first = dataset.judgments.frame().filter(query="1")
    assert first.select("annotator", "item", "rank").rows() == [
        ("ranker01", "b", 1),
        ("ranker01", "a", 2),
        ("ranker02", "b", 1),
    ]
    assert dataset.judgments.n_items == 15
    assert dataset.truth.align(dataset.judgments.items).tolist() == [1, 0, 2] * 5
    assert dataset.folds[0].train == ("1", "2", "3")


def test_account_ids_are_replaced(source: Path, out: Path) -> None:
    folder = "datasets/s4_Dog data"
    answer = "question,worker,answer\n7,ZED,1\n7,AMY,0\n8,ZED,1\n"
    put(source, **{f"{folder}/answer.csv": answer, f"{folder}/truth.csv": "question,truth\n8,1\n7,0\n"})
    prepare("crowd-truth-inference/dog", source, out)
    stored = (out / "crowd-truth-inference/dog/answer.csv").read_text()
    assert stored == "question,worker,answer\n7,w0001,1\n7,w0002,0\n8,w0001,1\n"
    dataset = datasets.load("crowd-truth-inference/dog", out)
    assert dataset.judgments.nominal
    assert dataset.truth.align(dataset.judgments.items).tolist() == [0, 1]


def test_sites_are_replaced(source: Path, out: Path) -> None:
    labels = "KIM\thttp://b.org\tG\nLEE\thttp://a.org\tX\nKIM\thttp://a.org\tX\nKIM\thttp://a.org\tR\n"
    gold = 'http://z.org/"q"\tP\nhttp://a.org\tX\n'
    put(source, **{"data/AdultContent2/labels.txt": labels, "data/AdultContent2/gold.txt": gold})
    prepare("adult-content2", source, out)
    place = out / "adult-content2"
    assert (place / "labels.tsv").read_text().splitlines()[1] == "w0002\tsite0002\tX"
    assert (place / "gold.tsv").read_text() == "site0003\tP\nsite0002\tX\n"
    dataset = datasets.load("adult-content2", out)
    assert dataset.judgments.grade.tolist() == [0, 3, 3, 2]
    assert dataset.notes[0].startswith("1 of the 4 grades")


def test_wine_gets_its_semicolons_back(source: Path, out: Path) -> None:
    names = '"fixed acidity","volatile acidity","citric acid","residual sugar","chlorides","free sulfur dioxide"'
    rest = '"total sulfur dioxide","density","pH","sulphates","alcohol","class"'
    row = "7.4,0.7,0,1.9,0.076,11,34,0.9978,3.51,0.56,9.4,5"
    content = f"{names},{rest}\n{row}\n"
    put(source, **{"winequality-red.csv": content, "winequality-white.csv": content})
    prepare("wine-quality/red", source, out)
    dataset = datasets.load("wine-quality/red", out)
    assert dataset.features.names[-1] == "alcohol"
    assert dataset.features.matrix[0, -1] == 9.4
    assert dataset.truth.grade.tolist() == [5]


def test_topics_of_unnamed_items(source: Path, out: Path) -> None:
    # gold: items 0 and 2 of topic 20001, 5 and 7 of topic 20002; items 3 and 4 lie between, cut by who labelled them
    gold = {0: 0, 2: 1, 5: 2, 7: 0, 8: 3}
    who = {0: "10", 1: "10", 2: "11", 3: "11", 4: "20", 5: "20", 6: "21", 7: "21", 8: "21"}
    labels = "".join(f"{item},{each},{3 if item == 8 else 1}\n" for item, each in who.items())
    questions = {
        "20001clueweb09-a": (4, 1),
        "20001clueweb09-b": (3, 2),
        "20002clueweb09-c": (2, 2),
        "20002clueweb09-d": (1, 1),
    }
    put(
        source,
        **{
            "relevance/label.csv": "item,worker,label\n" + labels,
            "relevance/truth.csv": "item,truth\n" + "".join(f"{item},{grade}\n" for item, grade in gold.items()),
            "HCB/map_question_integer.txt": "".join(f"{name} {number}\n" for name, (number, _) in questions.items()),
            "HCB/responses_gt.txt": "".join(f"{number} {category}\n" for number, category in questions.values()),
        },
    )
    prepare("trec-rf10-labels-full", source, out)
    stored = (out / "trec-rf10-labels-full/item_topic.csv").read_text().splitlines()
    assert stored[0] == "item,topic,exact,doc"
    assert [line.split(",")[1] for line in stored[1:]] == ["20001"] * 4 + ["20002"] * 5
    assert [line.split(",")[2] for line in stored[1:]] == list("111001111")
    assert stored[3] == "2,20001,1,clueweb09-b"
    dataset = datasets.load("trec-rf10-labels-full", out)
    assert dataset.judgments.n_items == 8
    assert dataset.truth.frame()["grade"].to_list() == [0, 1, 2, 0]


def test_gold_that_does_not_align(source: Path, out: Path) -> None:
    put(
        source,
        **{
            "label.csv": "item,worker,label\n0,0,1\n",
            "truth.csv": "item,truth\n0,1\n",
            "map_question_integer.txt": "20001a 1\n",
            "responses_gt.txt": "1 1\n",
        },
    )
    with pytest.raises(JudgmentError, match="the 1 gold items do not align with the 1 questions"):
        prepare("trec-rf10-labels-full", source, out)


def test_arguments_are_collected(source: Path, out: Path) -> None:
    top = "data/argument_data"
    votes = '# #id    turkerid    label    a1    a2\na7_a3\tZED\ta2\tshort\tlong, and "good"\n'
    votes += "a7_a3\tAMY\tequal\tshort\tlong\n"
    ranks = "#id\trank\targument\n"
    put(
        source,
        **{
            f"{top}/UKPConvArgCrowd-new-CSV/tea.csv": votes,
            f"{top}/UKPConvArgCrowdSample-new-CSV/tea.csv": "# not this one\n",
            f"{top}/UKPConvArgCrowd-new-CSV/coffee.csv": "#id\nb1_b2\tAMY\ta1\tblack\tmilk\n",
            f"{top}/UKPConvArgAll-new-CSV/tea.csv": "#id\tlabel\ta1\ta2\na3_a7\ta1\tlong\tshort\n",
            f"{top}/UKPConvArg1-Ranking-CSV/tea.csv": f"{ranks}a3\t0.1\tlong\na7\t0.7\tshort\n",
            f"{top}/UKPConvArg1-Ranking-CSV/coffee-and-more.csv": f"{ranks}b2\t0.2\tmilk\nb1\t0.1\tblack\n",
        },
    )
    prepare("ukpconvarg1-crowd", source, out)
    dataset = datasets.load("ukpconvarg1-crowd", out)
    frame = dataset.judgments.frame().sort("query", "annotator")
    assert frame.select("query", "annotator", "left", "right", "winner").rows() == [
        ("coffee", "w0001", "b1", "b2", "left"),
        ("tea", "w0001", "a7", "a3", "tie"),
        ("tea", "w0002", "a7", "a3", "right"),
    ]
    assert dataset.truth.frame().rows() == [
        ("coffee", "b1", -0.1),
        ("coffee", "b2", -0.2),
        ("tea", "a3", -0.1),
        ("tea", "a7", -0.7),
    ]
    assert dataset.details.filter(item="a3")["text"].to_list() == ['long, and "good"']
    pairs = datasets.load("ukpconvarg1-crowd/pairs", out).truth
    assert pairs.frame().rows() == [("tea", "a3", "a7", "left")]


def result(*rounds: tuple[str, str]) -> dict[str, object]:
    """One item of a judge's file: a comment, then rounds of winners in both orders."""
    told = [{"swap = False": {"winner": one}, "swap = True": {"winner": other}} for one, other in rounds]
    return {"results": [["a comment", "stop"], *told]}


def test_verdicts_are_collected(source: Path, out: Path) -> None:
    items = [
        {"input": "2 + 2?", "output_1": "4", "output_2": "5", "label": 1},
        {"input": "?", "output_1": "x", "output_2": "y", "label": 2},
    ]
    judge = [result(("1", "2"), ("1", "1")), result(("2", "none"))]
    put(
        source,
        **{
            "Dataset/LLMBar/Natural/dataset.json": json.dumps(items),
            "Dataset/LLMBar/Natural/evaluators/GPT-4/Swap/result.json": json.dumps(judge),
            "Dataset/LLMBar/Natural/evaluators/GPT-4/Swap/statistics.json": "{}",
        },
    )
    prepare("llmbar-judges", source, out)
    dataset = datasets.load("llmbar-judges", out)
    assert dataset.judgments.frame().select("query", "left", "right", "winner", "annotator").rows() == [
        ("LLMBar/Natural/0", "output_1", "output_2", "left", "GPT-4/Swap"),
        ("LLMBar/Natural/0", "output_2", "output_1", "right", "GPT-4/Swap"),
        ("LLMBar/Natural/1", "output_1", "output_2", "right", "GPT-4/Swap"),
    ]
    assert dataset.notes == ("1 of 4 verdicts name no winner and are left out",)
    assert dataset.truth.outcome.tolist() == [1, -1]
    assert dataset.details.filter(query="LLMBar/Natural/0")["text"].to_list() == ["4", "5"]


def test_sessions_become_votes(source: Path, out: Path) -> None:
    def session(accepted: str, *votes: tuple[int, int, int]) -> str:
        told = json.dumps([{"imL": left, "imR": right, "imC": chosen} for left, right, chosen in votes])
        quoted = told.replace('"', '""')
        return f'"ObjectId(""5d"")",{accepted},"2019-07-21T23:46:15.325Z","{quoted}",0\n'

    sessions = '"_id","acc","d","vot","__v"\n' + session("true", (3, 0, 0), (0, 3, -1)) + session("false")
    sessions += session("false", (0, 3, 0))
    scores = '"website","score"\n"image3",1.25271496\n"image0",10\n'
    put(
        source,
        **{
            "comparison-based-dataset/data/votesessions.csv": sessions,
            "comparison-based-dataset/website_scores.csv": scores,
        },
    )
    prepare("visual-clutter/calista", source, out)
    votes = (out / "visual-clutter/calista_votes.csv").read_text()
    assert votes == "annotator,accepted,left,right,chosen\ns001,1,3,0,right\ns001,1,0,3,\ns003,0,0,3,left\n"
    dataset = datasets.load("visual-clutter/calista", out)
    assert dataset.judgments.outcome.tolist() == [-1, 1]
    assert list(dataset.judgments.groups) == ["accepted", "other"]
    assert dataset.truth.grade.tolist() == [10, 1.2527]
    assert dataset.details is None


def test_packed_sources_are_copied(source: Path, out: Path) -> None:
    sheet = "SetId\tTopicId\tDocId\tG-Truth\tmore\t\t\n1\t20690\tclueweb09-a\t1\t1\t0.9\n1\t20690\tclueweb09-b\t-1\t2\n"
    put(
        source,
        **{
            "data/JeroenVuurens/votes": "1\t20690_clueweb09-a\t685\t0\n2\t20690_clueweb09-a\t703\t1\n",
            "data/JeroenVuurens/otherparticipantsvotes": "20690_clueweb09-b\tworker_1  \t1\n",
            "data/JeroenVuurens/task1_unlabeled_g_truth_cons_public.txt.bz2": bz2.compress(sheet.encode()),
        },
    )
    prepare("trec2011-crowd", source, out)
    dataset = datasets.load("trec2011-crowd", out)
    assert list(dataset.judgments.annotators) == ["685", "703", "worker_1"]
    assert np.isnan(dataset.truth.align(dataset.judgments.items)).tolist() == [False, True]
    assert datasets.load("trec2011-crowd/own", out).judgments.time.tolist() == [1, 2]


def test_gzipped_sources_are_copied(source: Path, out: Path) -> None:
    row = {"worker": "u", "query_id": "q", "response_a": "r1", "response_b": "r2", "quality_overall": "A"}
    grades = '{"response":"r1","quality_overall":2}\n{"response":"r2","quality_overall":1}\n'
    put(
        source,
        **{
            "data/raw/study2_responses.jsonl.gz": gzip.compress(json.dumps(row).encode() + b"\n"),
            "data/raw/study2_pointwise.jsonl.gz": gzip.compress(b"{}\n"),
            "data/artifacts/grades.jsonl.gz": gzip.compress(grades.encode()),
            "data/artifacts/llm_ratings.jsonl.gz": gzip.compress(b"{}\n"),
        },
    )
    prepare("webis-rag-crowd", source, out)
    dataset = datasets.load("webis-rag-crowd", out)
    assert dataset.judgments.outcome.tolist() == [1]
    assert dataset.truth.grade.tolist() == [2, 1]


def test_large_files_are_gzipped(source: Path, out: Path) -> None:
    rows = "".join(f"{number},0,{number % 5}\n" for number in range(150_000))
    truth = "item,truth\n0,0\n"
    put(source, **{"label.csv": "item,worker,label\n" + rows, "truth.csv": truth})
    written = prepare("web-search-relevance5", source, out)
    assert [path.name for path in written] == ["label.csv.gz", "truth.csv"]
    assert len(datasets.load("web-search-relevance5", out).judgments) == 150_000


def test_nothing_is_replaced_or_half_written(source: Path, out: Path) -> None:
    put(source, **{"label.csv": "item,worker,label\na,w,1\n", "truth.csv": "item,truth\na,1\n"})
    (path, _) = prepare("web-search-relevance5", source, out)
    with pytest.raises(ParameterError, match=r"label\.csv exists already; delete it"):
        prepare("web-search-relevance5", source, out)
    path.unlink()
    with pytest.raises(ParameterError, match=r"truth\.csv exists already"):
        prepare("web-search-relevance5", source, out)
    assert not list(out.rglob("*.part"))


def test_sources_that_cannot_be_used(source: Path, out: Path) -> None:
    with pytest.raises(MissingDataError, match=r"there is not a folder .*; it should be a copy of data of the public"):
        prepare("mirex2005-crowd", source, out)
    source.mkdir()
    with pytest.raises(MissingDataError, match=r"has no data/judgments\.csv; it should be a copy of"):
        prepare("mirex2005-crowd", source, out)
    put(source, **{"a/judgments.csv": "", "b/judgments.csv": ""})
    with pytest.raises(MissingDataError, match="stands several times below"):
        prepare("mirex2005-crowd", source, out)
    with pytest.raises(ParameterError, match="cannot be made from public files"):
        prepare("visual-clutter", source, out)


def test_the_command_prepares(source: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(source, **{"label.csv": "item,worker,label\na,w,1\n", "truth.csv": "item,truth\na,1\n"})
    assert not datasets.present("web-search-relevance5", out)
    assert main(["web-search-relevance5", str(source), "--out", str(out)]) == 0
    assert capsys.readouterr().out.split() == [
        str(out / "web-search-relevance5" / file) for file in ("label.csv", "truth.csv")
    ]
    assert [name for name in datasets.names() if datasets.present(name, out)] == ["web-search-relevance5"]


def test_the_command_says_what_is_wrong_in_one_line(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-set", "."]) == 2
    assert main(["llmfao", str(out / "nowhere"), "--out", str(out)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 2


@pytest.mark.data
def test_stored_topics_come_out_again(dataset_folder: Path, tmp_path: Path) -> None:
    stored = dataset_folder / "trec-rf10-labels-full"
    gold = dataset_folder / "trec-rf10-crowd-gold"
    if not (stored.is_dir() and gold.is_dir()):
        pytest.skip("the relevance feedback sets are not there")
    for folder, files in (
        (stored, ("label.csv.gz", "truth.csv")),
        (gold, ("map_question_integer.txt", "responses_gt.txt")),
    ):
        put(tmp_path / "source", **{file: (folder / file).read_bytes() for file in files})
    prepare("trec-rf10-labels-full", tmp_path / "source", tmp_path / "data")
    assert (tmp_path / "data/trec-rf10-labels-full/item_topic.csv").read_text() == (
        stored / "item_topic.csv"
    ).read_text()


@pytest.mark.data
def test_stored_wines_come_out_again(dataset_folder: Path, tmp_path: Path) -> None:
    stored = dataset_folder / "wine-quality"
    if not stored.is_dir():
        pytest.skip("the wines are not there")
    for path in stored.iterdir():
        put(tmp_path / "source", **{path.name: path.read_text().replace(";", ",").replace('"quality"', '"class"')})
    for made in prepare("wine-quality", tmp_path / "source", tmp_path / "data"):
        assert made.read_bytes() == (stored / made.name).read_bytes()
