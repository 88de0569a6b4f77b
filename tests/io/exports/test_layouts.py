"""Older and newer layouts of the tools, odd values in them, and what has to be asked."""

import json
import re

import polars as pl
import pytest
from benchmarks.export_samples import SAMPLES, lines, table
from benchmarks.platform_samples import eval_archive
from hypothesis import given
from hypothesis import strategies as st

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.io import listen
from crowdrank.io.exports import EXPORTS, detect, read
from crowdrank.io.exports.imported import Imported
from crowdrank.io.read_options import ReadOptions

BY_NAME = {f"{sample.importer}/{sample.name}": sample for sample in SAMPLES}


@pytest.fixture(name="save")
def _save(tmp_path):
    """Write a file and return its path; objects become lines or an array by the file's name."""

    def save(name, what):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        if not isinstance(what, bytes):
            what = lines(what) if name.endswith(".jsonl") else json.dumps(what).encode()
        path.write_bytes(what)
        return path

    return save


def _read(path, **options) -> Imported:
    return read(path, detect(path), ReadOptions(**options))


def _sample(key):
    found = BY_NAME[key]
    return (
        [json.loads(line) for line in found.data.splitlines()] if found.name.endswith("l") else json.loads(found.data)
    )


# properties ---------------------------------------------------------------------------------------------------------


@given(
    outcomes=st.lists(st.tuples(*[st.sampled_from(["model_1", "model_2", "tie", "error"])] * 2), min_size=1, max_size=6)
)
def test_mt_bench_games_exchanged_with_models_exchanged_are_the_same(outcomes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    swap = {"model_1": "model_2", "model_2": "model_1"}
    rows = [
        {
            "question_id": n,
            "turn": 1,
            "model_1": "x",
            "model_2": "y",
            "g1_winner": one,
            "g2_winner": two,
            "judge": ["j", "t"],
        }
        for n, (one, two) in enumerate(outcomes)
    ]
    other = [
        row | {"model_1": "y", "model_2": "x", "g1_winner": swap.get(row["g2_winner"], row["g2_winner"]),
               "g2_winner": swap.get(row["g1_winner"], row["g1_winner"])}
        for row in rows
    ]  # fmt: skip
    if all(outcome == "error" for pair in outcomes for outcome in pair):
        return
    found = []
    for number, layout in enumerate((rows, other)):
        path = folder / f"{number}.jsonl"
        path.write_bytes(lines(layout))
        found.append(set(map(tuple, _read(path).frame.select("query", "left", "right", "winner").rows())))
    assert found[0] == found[1]


def test_fastchat_counts_agreeing_games_only(save):
    path = save("pair.jsonl", _sample("mt-bench/pair.jsonl"))
    imported = _read(path, agreeing=True)
    assert imported.frame.select("left", "right", "winner").rows() == [("x", "y", "tie"), ("x", "y", "right")]
    assert imported.dropped == {"error": 2}


def test_label_studio_json_and_json_min_agree_but_for_gold(data_folder):
    folder = data_folder / "exports" / "label-studio"
    frames = [
        _read(folder / name).frame.sort(pl.all()) for name in ("pairwise.json", "pairwise_min.json", "pairwise.csv")
    ]
    shared = ["query", "left", "right", "winner", "annotator", "time", "duration"]
    full, short, cells = (frame.select(shared) for frame in frames)
    assert short.equals(cells)
    assert full.equals(short.filter(pl.col("annotator") != "9"))


def test_shares_of_a_judgment_add_up_to_one(save):
    path = save("annotations.json", _sample("alpaca-eval/annotations.json"))
    frame = _read(path).frame
    sums = frame.group_by("judgment").agg(pl.col("weight").sum())["weight"]
    assert sums.to_list() == pytest.approx([1.0] * 3)
    preferences = cr.read_judgments(path)
    assert preferences.n_judgments == 3
    right = preferences.row_weight[preferences.outcome == -1].sum()
    assert right == pytest.approx(0.25 + 1.0)
    # outputs are written back in one order, so that nothing is told of sides
    assert preferences.recorded.all()


@pytest.mark.parametrize(
    "name", ["arena/battles.jsonl", "chosen-rejected/chat.jsonl", "argilla/hub.jsonl", "alpaca-eval/annotations.json"]
)
def test_json_lines_arrays_and_parquet_are_the_same(save, tmp_path, name):
    rows = _sample(name)
    paths = [save("a.jsonl", rows), save("b.json", rows), tmp_path / "c.parquet"]
    pl.DataFrame(rows).write_parquet(paths[2])
    first, *others = (_read(path).frame for path in paths)
    assert all(first.equals(other) for other in others)


def test_swapping_sides_and_winners_mirrors(save):
    rows = [row | {"conversation_a": []} for row in _sample("arena/battles.jsonl")]
    swap = {"model_a": "model_b", "model_b": "model_a"}
    mirrored = [
        r | {"model_a": r["model_b"], "model_b": r["model_a"], "winner": swap.get(r["winner"], r["winner"])}
        for r in rows
    ]
    one, other = (cr.read_judgments(save(f"{n}.jsonl", what)) for n, what in enumerate((rows, mirrored)))
    assert (one.outcome == -other.outcome).all()


# layouts ------------------------------------------------------------------------------------------------------------


def test_choices_of_a_side_in_label_studio_are_preferences(save):
    tasks = [
        {"id": n, "data": {"text_a": f"x{n}", "text_b": "y"}, "annotations": [
            {"completed_by": who, "result": [{"from_name": "better", "type": "choices", "value": {"choices": [word]}}]}
            for who, word in ((1, "A"), (2, "Tie"))]}
        for n in (1, 2)
    ]  # fmt: skip
    imported = _read(save("t.json", tasks))
    assert imported.kind == "preference"
    assert imported.frame["winner"].to_list() == ["left", "tie"] * 2


def test_annotations_in_a_target_storage_are_read(save):
    rows = [
        {
            "id": n,
            "completed_by": {"id": n, "email": f"p{n}@example.org"},
            "result": [{"from_name": "s", "type": "rating", "value": {"rating": n}}],
            "task": {"id": 7, "data": {"text": "t"}},
        }
        for n in (1, 2)
    ]
    imported = _read(save("stored.jsonl", rows))
    assert imported.frame.select("item", "grade", "annotator").rows() == [
        ("7", 1.0, "p1@example.org"), ("7", 2.0, "p2@example.org")
    ]  # fmt: skip


def test_what_was_drawn_by_hand_in_prodigy_is_refused(save):
    row = {"text": "t", "_input_hash": 1, "_task_hash": 2, "answer": "accept", "_view_id": "ner_manual", "spans": []}
    with pytest.raises(JudgmentError, match="spans of text or sound: not supported"):
        _read(save("spans.jsonl", [row]))


def test_buckets_are_grades_once_their_order_is_given(save):
    value = {"ranker": {"good": ["a"], "bad": ["b", "c"], "_": ["d"]}}
    task = {
        "id": 1,
        "annotations": [{"completed_by": 1, "result": [{"from_name": "r", "type": "ranker", "value": value}]}],
    }
    path = save("t.json", [task])
    with pytest.raises(JudgmentError, match="levels="):
        _read(path)
    grades = cr.read_judgments(path, levels=["bad", "good"])
    assert dict(zip(grades.items.ids, grades.grade, strict=True)) == {"a": 1.0, "b": 0.0, "c": 0.0}


def test_answers_about_a_part_of_a_task_are_left_out(save):
    tasks = _sample("label-studio/ratings.json")
    tasks[0]["annotations"][0]["result"][0]["value"] |= {"start": 0, "end": 4}
    assert _read(save("t.json", tasks)).dropped == {"about a part of the task": 1}


def test_boxes_and_json_answers_of_mechanical_turk(save):
    head = ["HITId", "AssignmentId", "WorkerId", "Input.image", "Answer.mood.bad", "Answer.mood.good", "Answer.comment"]
    rows = [["h1", "a1", "W1", "x.png", "true", "false", "so so"], ["h1", "a2", "W2", "x.png", "false", "true", ""]]
    imported = _read(save("boxes.csv", table(head, rows)))
    assert imported.frame["grade"].to_list() == ["bad", "good"]
    head = ["HITId", "AssignmentId", "WorkerId", "Input.image", "Answer.taskAnswers"]
    rows = [
        ["h1", f"a{n}", f"W{n}", "x.png", json.dumps([{"stars": n, "mood": {"bad": n == 1, "good": n != 1}}])]
        for n in (1, 2)
    ]
    path = save("new.csv", table(head, rows))
    with pytest.raises(JudgmentError, match="which Answer column"):
        _read(path)
    assert _read(path, answer="stars").frame["grade"].to_list() == [1.0, 2.0]
    assert _read(path, answer="mood").frame["grade"].to_list() == ["bad", "good"]


def test_pairs_whose_answers_name_no_side_are_asked_about(save):
    head = ["HITId", "AssignmentId", "WorkerId", "Input.text1", "Input.text2", "Answer.best"]
    rows = [["h1", "a1", "W1", "x", "y", 1], ["h1", "a2", "W2", "x", "y", 2]]
    path = save("numbers.csv", table(head, rows))
    with pytest.raises(
        JudgmentError, match=r"'Answer.best' holds 1 and 2; say what they mean: .* if it grades the pair"
    ):
        _read(path)
    told = cr.read_judgments(path, winner_codes={1: "left", 2: "right"})
    assert told.outcome.tolist() == [1, -1]
    whole = cr.read_judgments(path, columns={"item": "HITId"})
    assert whole.kind == "grade"


def test_statuses_to_keep_are_the_users_choice(save):
    path = save("batch.csv", BY_NAME["mturk/batch.csv"].data)
    assert _read(path, keep=["Rejected"]).frame.height == 1
    assert _read(path, keep=["Approved", "Rejected", "Submitted"]).dropped == {}


def test_the_aggregated_reports_of_platforms_are_refused(save):
    path = save("agg.csv", table(["_unit_id", "_trusted_judgments", "rel"], [[1, 3, 2]]))
    with pytest.raises(JudgmentError, match="download the full report"):
        _read(path)
    path = save("agg.tsv", table(["INPUT:x", "OUTPUT:y", "CONFIDENCE:y"], [["a", "b", "90%"]], "\t"))
    with pytest.raises(JudgmentError, match="download the assignments"):
        _read(path)


def test_appen_weights_and_items_on_wish(save):
    sample = BY_NAME["appen/full.csv"]
    path = save("full.csv", sample.data)
    assert set(_read(path).frame["item"]) == {"u1", "u2"}
    assert set(_read(path, columns={"item": "_unit_id"}).frame["item"]) == {"1", "2"}


def test_ranks_in_a_survey_are_asked_about(save):
    names = ["ResponseId", "Q1_1", "Q1_2", "Q1_3"]
    ids = [json.dumps({"ImportId": name}) for name in names]
    path = save(
        "ranks.csv",
        table(names, [["Id", "Order - x", "Order - y", "Order - z"], ids, ["R1", 1, 2, 3], ["R2", 2, 1, 3]]),
    )
    with pytest.raises(JudgmentError, match="1 to 3 once"):
        _read(path)
    rankings = cr.read_judgments(path, kind="ranking")
    assert rankings.n_judgments == 2
    assert cr.aggregate(rankings, "borda").order()[-1] == "z"
    assert cr.read_judgments(path, kind="grade").n_judgments == 6


def test_two_matrices_of_a_survey_need_a_choice(save):
    names = ["ResponseId", "Q1_1", "Q1_2", "Q2_1", "Q2_2"]
    ids = [json.dumps({"ImportId": name}) for name in names]
    path = save("two.csv", table(names, [names, ids, ["R1", 1, 2, 3, 3]]))
    with pytest.raises(JudgmentError, match="answers to 'Q1' and 'Q2'; choose one"):
        _read(path)
    assert _read(path, answer="Q2").frame["grade"].to_list() == [3.0, 3.0]


def test_scales_of_jspsych_and_one_file_for_each_participant(save):
    trials = [
        {
            "trial_type": "survey-likert",
            "trial_index": n,
            "time_elapsed": n,
            "rt": 1500,
            "response": {"taste": n, "smell": 3},
        }
        for n in (0, 1)
    ]
    imported = _read(save("p7.json", trials))
    assert imported.frame.select("item", "grade", "annotator", "duration").rows()[0] == ("taste", 0.0, "p7", 1.5)
    runs = [trial | {"run_id": 1, "id": who} for who in ("a", "b") for trial in trials]
    assert _read(save("runs.json", runs)).frame["annotator"].unique().sort().to_list() == ["a", "b"]
    nested = _read(save("all.json", [[trial | {"subject": who} for trial in trials] for who in ("a", "b")]))
    assert nested.frame["annotator"].n_unique() == 2


def test_human_judgments_of_mt_bench_are_told_apart_by_turn(save):
    rows = [
        {
            "question_id": 81,
            "model_a": "x",
            "model_b": "y",
            "winner": "model_a",
            "judge": "e1",
            "turn": turn,
            "conversation_a": [],
        }
        for turn in (1, 2)
    ]
    assert cr.read_judgments(save("human.jsonl", rows)).n_queries == 2


def test_battles_without_exactly_one_winner_are_refused(save):
    head = ["id", "model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"]
    path = save("hot.csv", table(head, [[1, "x", "y", 1, 0, 0], [2, "x", "y", 1, 1, 0]]))
    with pytest.raises(JudgmentError, match="battle 2 has 2 winners"):
        _read(path)


def test_dialogues_in_one_text_are_split_before_the_last_answer(save):
    rows = [{"chosen": "\n\nHuman: hi\n\nAssistant: good", "rejected": "\n\nHuman: hi\n\nAssistant: bad"}]
    assert _read(save("hh.jsonl", rows)).frame.select("query", "winner", "loser").rows() == [
        ("Human: hi", "good", "bad")
    ]


def test_old_arena_hard_files_need_the_other_model(save):
    rows = [
        {name: value for name, value in row.items() if name != "baseline"} for row in _sample("arena-hard/hard.jsonl")
    ]
    path = save("old.jsonl", rows)
    with pytest.raises(JudgmentError, match="baseline_model="):
        _read(path)
    frame = _read(path, baseline_model="x").frame
    assert frame.select("left", "right", "winner", "strength").rows() == [
        ("x", "y", "left", 2.0), ("y", "x", "right", 1.0), ("x", "y", "tie", 0.0)
    ]  # fmt: skip


def test_directions_are_told_or_asked_never_assumed(save):
    run = _sample("deepeval/run.json")
    assert sorted(_read(save("run.json", run)).frame["grade"].to_list()) == [-0.9, -0.1]
    for case in run["testCases"]:
        case["metricsData"][0] |= {"threshold": None}
    path = save("unknown.json", run)
    with pytest.raises(JudgmentError, match="the file does not say whether large values of 'Bias' are good"):
        _read(path)
    assert sorted(_read(path, small_is_good=False).frame["grade"].to_list()) == [0.1, 0.9]
    rows = [
        row | {"metrics": ["odd_one"], "odd_one": 1}
        for row in _sample("lm-eval/samples_task_2024-05-01T10-00-00.1.jsonl")
    ]
    path = save("model/samples_t.jsonl", rows)
    with pytest.raises(JudgmentError, match="'odd_one'"):
        _read(path)
    assert _read(path, small_is_good=True).frame["grade"].to_list() == [-1.0] * 3
    rows = [row | {"metrics": ["word_perplexity"], "word_perplexity": 7.5} for row in rows]
    assert _read(save("model/samples_p.jsonl", rows)).frame["grade"].to_list() == [-7.5] * 3


def test_samples_of_two_tasks_do_not_share_queries(save):
    rows = _sample("lm-eval/samples_task_2024-05-01T10-00-00.1.jsonl")
    paths = [save(f"m/samples_{task}_2024-05-01T10-00-00.1.jsonl", rows) for task in ("one", "two")]
    assert cr.read_judgments(paths).n_queries == 6


def test_parts_of_a_score_and_archives_of_inspect(save):
    log = _sample("inspect/log.json")
    for sample in log["samples"][:3]:
        sample["scores"]["match"]["value"] = {"style": 1, "facts": 0.5}
    path = save("log.json", log)
    with pytest.raises(JudgmentError, match="'style' and 'facts'"):
        _read(path)
    assert _read(path, answer="facts").frame["grade"].to_list() == [0.5] * 3
    with pytest.raises(JudgmentError, match="the log has no samples"):
        _read(save("log.eval", eval_archive({"header.json": {"eval": {}}})))


def test_scores_of_assertions_and_older_results_of_promptfoo(save):
    results = _sample("promptfoo/results.json")
    assert _read(save("r.json", results), answer="contains").frame["grade"].to_list() == [1.0] * 3
    old = [
        {"provider": {"id": name}, "prompt": {"raw": "p"}, "vars": {"x": n}, "score": 1, "success": True}
        for n in (1, 2) for name in ("a", "b")
    ]  # fmt: skip
    frame = _read(save("old.json", {"results": {"version": 2, "results": old}})).frame
    assert frame["query"].to_list() == ["0", "0", "1", "1"]
    assert frame["item"].to_list() == ["a | p", "b | p"] * 2


def test_scores_of_the_langfuse_api_name_who_scored(save):
    page = {
        "data": [
            {
                "traceId": "t1",
                "name": "help",
                "value": 1,
                "dataType": "NUMERIC",
                "source": "ANNOTATION",
                "authorUserId": "u1",
            }
        ]
    }
    imported = _read(save("page.json", page))
    assert imported.frame.select("item", "grade", "annotator").rows() == [("t1", 1.0, "u1")]


def test_scores_in_camel_case_of_langfuse_are_found_without_words(save):
    scores = [
        {"id": f"{n}{name}", "timestamp": "2025-01-01T00:00:00Z", "name": name, "value": n, "source": "API",
         "traceId": f"t{n}", "dataType": "NUMERIC", "authorUserId": "u1"}
        for n in (1, 2) for name in ("help", "tone")
    ]  # fmt: skip
    path = save("scores.jsonl", scores)
    with pytest.raises(JudgmentError, match=re.escape("where={'name': 'help'}")):
        _read(path)
    for chosen in ({"where": {"name": "help"}}, {"answer": "help"}):
        assert _read(path, **chosen).frame.select("item", "grade", "annotator").rows() == [
            ("t1", 1.0, "u1"), ("t2", 2.0, "u1"),
        ]  # fmt: skip


FEEDBACK = {
    "langsmith": (
        lambda n, metric: {"run_id": f"r{n}", "key": metric, "score": n, "value": None, "session_id": f"e{n}",
                           "feedback_source": {"type": "model", "user_id": f"u{n}"}, "trace_id": f"r{n}"},
        "key", ("r1", 1.0, "u1"),
    ),
    "phoenix": (
        lambda n, metric: {"span_id": f"s{n}", "name": metric, "annotator_kind": "HUMAN", "user_id": f"u{n}",
                           "result": {"label": "good", "score": n, "explanation": ""}},
        "name", ("s1", 1.0, "u1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", FEEDBACK)
def test_metrics_are_chosen_and_never_annotators(save, tool):
    make, field, first = FEEDBACK[tool]
    rows = [make(n, metric) for n in (1, 2) for metric in ("correctness", "style")]
    path = save("feedback.json", {"data": rows} if tool == "phoenix" else rows)
    assert detect(path) == tool
    with pytest.raises(JudgmentError, match=f"where={{'{field}': 'correctness'}}"):
        _read(path)
    found = _read(path, where={field: "correctness"}).frame
    assert found.select("item", "grade", "annotator").row(0) == first
    assert found.height == 2


def _inspect_log(scores):
    samples = [{"id": n, "scores": {name: {"value": values[n]} for name, values in scores.items()}} for n in range(2)]
    return {"status": "success", "eval": {"model": "m", "task": "t"}, "samples": samples}


def test_scorers_of_inspect_are_asked_for_and_scales_never_pooled(save):
    path = save("log.json", _inspect_log({"accuracy": "CI", "verbosity": [9, 0], "toxicity": [0.1, 0.9]}))
    for options in ({}, {"columns": {"annotator": "scorer"}}):
        with pytest.raises(JudgmentError, match=r"on different scales; choose one with where={'scorer': 'accuracy'}$"):
            _read(path, **options)
    assert _read(path, where={"scorer": "verbosity"}).frame["grade"].to_list() == [9.0, 0.0]
    path = save("log.json", _inspect_log({"match": "CI", "includes": "CC"}))
    with pytest.raises(JudgmentError, match="or take all as annotators of the same thing"):
        _read(path)
    pooled = _read(path, columns={"annotator": "scorer"}).frame
    assert pooled["annotator"].unique().sort().to_list() == ["includes", "match"]
    # the same grader several times
    path = save("log.json", _inspect_log({"model_graded_qa": "CI", "model_graded_qa1": "II"}))
    assert _read(path).frame.height == 4


def _prodigy(tasks):
    return [
        {"text": f"p{n}", "options": options, "accept": chosen, "answer": "accept", "_input_hash": n, "_task_hash": n,
         "_annotator_id": "ann", "_view_id": "choice"}
        for n, (options, chosen) in enumerate(tasks)
    ]  # fmt: skip


def _options(*pairs):
    return [{"id": key, "text": text} for key, text in pairs]


def test_options_of_prodigy_that_name_things_are_compared(save):
    pairs = [(("x", "y"), "B"), (("y", "z"), "A")]
    coded = _prodigy([(_options(*zip("AB", pair, strict=True), ("tie", "Tie")), [won]) for pair, won in pairs])
    found = _read(save("a.jsonl", [*coded, *_prodigy([(_options(("A", "x"), ("B", "z"), ("tie", "Tie")), ["tie"])])]))
    assert found.kind == "preference"
    assert found.frame.select("left", "right", "winner").rows() == [
        ("x", "y", "right"), ("y", "z", "left"), ("x", "z", "tie"),
    ]  # fmt: skip
    # ids that are names stand for what their texts, which differ, are by
    texts = [_options(("gpt", f"text {n}"), ("llama", f"words {n}"), ("qwen", str(n))) for n in (1, 2)]
    by_model = _read(save("b.jsonl", _prodigy([(options, ["llama"]) for options in texts]))).frame
    assert by_model.select("left", "right", "winner").rows() == 2 * [
        ("gpt", "llama", "right"), ("llama", "qwen", "left"),
    ]  # fmt: skip


def test_options_of_prodigy_that_recur_are_classes(save):
    tone = [("pos", "Good"), ("neg", "Bad")]
    more = [*tone, ("x", "?")]
    tasks = _prodigy([(_options(*tone), ["pos"]), (_options(*tone[::-1]), ["neg"]), (_options(*more), ["x"])])
    found = _read(save("a.jsonl", tasks))
    assert (found.kind, found.frame["grade"].to_list()) == ("grade", ["pos", "neg", "x"])
    other = _prodigy([(_options(("A", "x"), ("B", "y")), ["A"]), (_options(("A", "z"), ("B", "y")), ["A"])])
    assert _read(save("b.jsonl", other), kind="grade").frame["grade"].to_list() == ["A", "A"]


def test_a_sheet_of_google_forms_is_found_and_read(tmp_path):
    pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    import datetime

    path = tmp_path / "form.xlsx"
    times = [datetime.datetime(2024, 5, 1, 10, 0, n) for n in range(3)]
    pl.DataFrame({"Zeit": times, "How? [A]": [1, 2, 3], "How? [B]": [3, 2, None]}).write_excel(path)
    assert detect(path) == "google-forms"
    assert cr.read_judgments(path).n_judgments == 5


# odd values ---------------------------------------------------------------------------------------------------------


def test_people_nobody_names_count_as_one_and_that_is_said(save):
    imported = _read(save("hub.jsonl", _sample("argilla/hub.jsonl")))
    assert set(imported.frame["annotator"]) == {"ann", "unknown"}
    assert any("'unknown'" in note for note in imported.notes)


def test_ids_are_text_whatever_they_were(save):
    tasks = _sample("label-studio/ratings.json")
    tasks[0]["id"], tasks[1]["id"] = 10**30, "ünï"
    assert set(_read(save("t.json", tasks)).frame["item"]) == {"1" + "0" * 30, "ünï", "3"}


def test_a_broken_record_is_named(save):
    rows = lines(_sample("arena/battles.jsonl"))
    path = save("b.jsonl", rows[:-20])
    with pytest.raises(JudgmentError, match="record 3 is broken JSON"):
        read(path, "arena")
    path = save("c.jsonl", rows.replace(b'"model_b": "y"', b'"model_b" "y"', 1) + rows * 2000)
    with pytest.raises(JudgmentError, match="record 1 is broken JSON"):
        read(path, "arena")


def test_more_than_half_left_out_is_a_warning(save):
    rows = [row | {"answer": "ignore"} for row in _sample("prodigy/binary.jsonl")[:3]] + _sample(
        "prodigy/binary.jsonl"
    )[3:]
    with pytest.warns(cr.errors.DataWarning, match="more than half"):
        cr.read_judgments(save("p.jsonl", rows))


def test_unknown_importers_and_fields_are_refused(save):
    path = save("b.jsonl", _sample("arena/battles.jsonl"))
    with pytest.raises(cr.errors.CrowdrankError, match="did you mean 'arena'"):
        read(path, "areena")
    with pytest.raises(JudgmentError, match="no record has 'languages'"):
        _read(path, where={"languages": "English"})
    assert _read(path, where={"judge": "u1"}).frame.height == 2


def test_columns_on_wish_are_found_or_said_to_be_missing(save):
    path = save("ratings.json", _sample("label-studio/ratings.json"))
    assert set(_read(path, columns={"item": "data.text"}).frame["item"]) == {"t1", "t2", "t3"}
    assert _read(path, columns={"annotator": "lead_time"}).frame["annotator"].to_list()[:2] == ["3.5", "4.5"]
    with pytest.raises(JudgmentError, match="no record has what columns="):
        _read(path, columns={"annotator": "nobody"})
    path = save("grid.csv", BY_NAME["google-forms/grid.csv"].data)
    assert "group" in _read(path, columns={"group": "Email Address"}).frame.columns
    with pytest.raises(JudgmentError, match="names no column of respondents"):
        _read(path, columns={"group": "Age"})


def test_preferences_of_0_and_1_are_no_alpaca_eval(save):
    rows = [
        row | {"preference": number % 2, "instruction": f"do {number}"}
        for number, row in enumerate(_sample("alpaca-eval/annotations.json") * 2)
    ]
    path = save("annotations.json", rows)
    with pytest.raises(JudgmentError, match=r"never 2.*--winner-codes 0=left,1=right"):
        cr.read_judgments(path)
    read = cr.read_judgments(
        path, source="table", winner_codes={0: "left", 1: "right"},
        columns={"left": "generator_1", "right": "generator_2", "winner": "preference", "query": "instruction"},
    )  # fmt: skip
    assert read.outcome.tolist() == [1 - 2 * (number % 2) for number in range(len(rows))]


def test_nearly_certain_probabilities_are_certain(save):
    rows = [row | {"preference": 2 - 1e-15} for row in _sample("alpaca-eval/annotations.json")]
    assert _read(save("a.json", rows)).frame["winner"].to_list() == ["right"] * 4


def test_two_signatures_are_an_error_that_names_both(save):
    row = {
        "generator_1": "x",
        "generator_2": "y",
        "preference": 1,
        "instruction": "i",
        "games": [],
        "judge": "j",
        "model": "m",
    }
    with pytest.raises(JudgmentError, match="alpaca-eval and arena-hard"):
        detect(save("both.jsonl", [row]))


def test_nothing_but_the_importer_that_is_needed_is_loaded(tmp_path):
    import subprocess
    import sys

    (tmp_path / "v.csv").write_text("item,annotator,grade\nx,a,1\ny,a,2\n")
    code = "import sys, crowdrank as cr; cr.read_judgments(sys.argv[1]); print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "v.csv")], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {f"crowdrank.io.exports.{export.reader.split('.')[0]}" for export in EXPORTS.values()}


def test_detection_is_quick_for_a_large_file(save):
    import time

    row = _sample("arena/battles.jsonl")[0] | {"conversation_a": [{"content": "x" * 200_000}]}
    small = {name: value for name, value in row.items() if name != "conversation_a"} | {"conversation_a": []}
    paths = [save("wide.jsonl", [row] * 200), save("long.json", [small] * 100_000)]
    for path in paths:
        best = min(_timed(time.process_time, path) for _ in range(5))
        assert best < 0.02


def _timed(clock, path):
    start = clock()
    assert detect(path) == "arena"
    return clock() - start


# privacy ------------------------------------------------------------------------------------------------------------

PRIVATE = ("203.0.113.9", "eve@example.net")


def test_no_address_or_e_mail_is_told_or_read(save):
    heard = []
    listen(heard.append)
    try:
        path = save("matrix.csv", BY_NAME["qualtrics/matrix.csv"].data)
        imported = _read(path)
        judgments = cr.read_judgments(path)
        inspected = str(cr.inspect(path)) if hasattr(cr, "inspect") else ""
    finally:
        listen(None)
    said = "\n".join(
        [*heard, *imported.sentences(), imported.frame.write_csv(), judgments.frame().write_csv(), inspected]
    )
    assert not any(secret in said for secret in PRIVATE)
