"""Layouts that no sample has: what would be read wrongly is read rightly or asked about, and the command works."""

import json
import shlex

import polars as pl
import pytest
from benchmarks.export_samples import lines, table

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.errors import JudgmentError
from crowdrank.io.exports import detect, read
from crowdrank.io.inspection import inspect
from crowdrank.io.read_options import ReadOptions


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


def _read(path, **options):
    return read(path, detect(path), ReadOptions(**options))


def _follow(path, folder):
    """Type the command that inspect prints for a file that is not read as it is."""
    found = inspect(path)
    assert not found.would_read
    command = shlex.split(found.next)[1:]
    assert main([*command, "-o", str(folder / "ranks.csv"), "--quiet"]) == 0, found.problem
    return found


def _task(number, data, *results):
    """A Label Studio task with one annotation for each list of results."""
    return {
        "id": number,
        "data": data,
        "annotations": [
            {"completed_by": place, "result": found, "was_cancelled": False} for place, found in enumerate(results, 1)
        ],
    }


def _result(kind, value, name="q", **more):
    return {"from_name": name, "to_name": "x", "type": kind, "value": {kind: value}, **more}


# Label Studio --------------------------------------------------------------------------------------------------------


def test_choices_that_say_which_response_is_better_are_preferences(save):
    words = ["Response 1 is better", "Response 2 is much better", "About the same"]
    rows = [
        _task(i, {"prompt": f"p{i}", "response1": f"x{i}", "response2": f"y{i}"}, [_result("choices", [word])])
        for i, word in enumerate(words)
    ]
    found = _read(save("a.json", rows))
    assert (found.kind, found.frame["winner"].to_list()) == ("preference", ["left", "right", "tie"])


def test_choices_that_name_a_side_now_and_then_are_asked_about(save, tmp_path):
    words = ["left", "right", "cannot say"]
    rows = [
        _task(i, {"text1": f"x{i}", "text2": f"y{i}"}, [_result("choices", [word])]) for i, word in enumerate(words)
    ]
    path = save("a.json", rows)
    found = _follow(path, tmp_path)
    assert "'cannot say' names none" in found.problem
    read_so = cr.read_judgments(path, winner_codes={"left": "left", "right": "right", "cannot say": "tie"})
    assert read_so.outcome.tolist() == [1, -1, 0]


def test_each_image_of_a_task_is_an_item_where_each_was_rated(save):
    results = [_result("rating", place + 1, item_index=place) for place in range(3)]
    found = _read(save("a.json", [_task(7, {"images": ["a", "b", "c"]}, results, results)]))
    assert sorted(set(found.frame["item"])) == ["7[0]", "7[1]", "7[2]"]
    assert (found.frame.height, found.n_read) == (6, 6)


def test_tasks_that_nobody_annotated_do_not_hide_the_tool(save):
    empty = [{"id": i, "data": {"text": "t"}, "annotations": []} for i in range(30)]
    path = save("a.json", [*empty, _task(99, {"text": "t"}, [_result("rating", 4)], [_result("rating", 2)])])
    assert _read(path).frame["grade"].to_list() == [4.0, 2.0]
    with pytest.raises(JudgmentError, match="no answers to any question"):
        _read(save("b.json", empty))


@pytest.mark.parametrize(
    "data", [{"prompt": "p", "responses": [{"id": "m"}, {"id": "n"}]}, {"text1": "x", "text2": "y", "n1": 3, "n2": 4}]
)
def test_paths_proposed_for_two_sides_lead_somewhere(save, tmp_path, data):
    rows = [_task(1, data, [_result("pairwise", "left") | {"value": {"selected": "left"}}])]
    assert "--column left=data." in _follow(save("a.json", rows), tmp_path).problem


def test_a_choice_in_plain_text_beside_a_rating_is_a_question_too(save):
    keys = {"created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z", "lead_time": 1.0}
    rows = [
        {"id": k, "text": f"t{k}", "mood": ("glad", "sad")[(k + w) % 2], "why": f"since {k} {w}", **keys}
        | {"quality": [{"rating": (k + w) % 5 + 1}], "annotator": w, "annotation_id": 10 * k + w}
        for k in range(6) for w in (1, 2, 3)
    ]  # fmt: skip
    path = save("a.json", rows)
    with pytest.raises(JudgmentError, match="the file has answers to 'quality' and 'mood'; choose one"):
        _read(path)
    assert _read(path, answer="quality").frame["grade"].to_list()[:3] == [2.0, 3.0, 4.0]
    assert set(_read(path, answer="mood").frame["grade"]) == {"glad", "sad"}


@pytest.mark.parametrize("names", [("left_text", "right_text"), ("first", "second")])
def test_sides_by_the_beginning_of_a_name_or_the_only_two_fields(save, names):
    data = dict(zip(names, ("x", "y"), strict=True)) | {"prompt": "p"}
    path = save("a.json", [_task(1, data, [_result("pairwise", "left") | {"value": {"selected": "left"}}])])
    left, right = names
    found = (
        _read(path) if left == "left_text" else _read(path, columns={"left": f"data.{left}", "right": f"data.{right}"})
    )
    assert found.frame.select("query", "left", "right", "winner").rows() == [("p", "x", "y", "left")]
    if left == "first":
        assert inspect(path).next.endswith("--column left=data.first,right=data.second")


# Argilla and doccano -------------------------------------------------------------------------------------------------


def _records(values):
    return [
        {"id": f"r{i}", "fields": {}, "suggestions": {}, "responses": {"q": [{"value": value, "user_id": "u"}]}}
        for i, value in enumerate(values)
    ]


def _pairs(values):
    """Records with two answers to a prompt, nested and flat."""
    nested, flat = [], []
    for i, value in enumerate(values):
        shown = {"prompt": f"p{i}", "response1": f"x{i}", "response2": f"y{i}"}
        responses = {"better": [{"value": value, "user_id": "u"}]}
        nested.append({"id": f"r{i}", "fields": shown, "suggestions": {}, "responses": responses})
        told = {"better.responses": [value], "better.responses.users": ["u"], "better.responses.status": ["submitted"]}
        flat.append({"id": f"r{i}", **shown, **told})
    return nested, flat


@pytest.mark.parametrize("layout", [0, 1])
def test_labels_that_name_a_side_of_a_record_are_preferences(save, layout):
    found = _read(save("a.json", _pairs(["response1", "response2", "tie"])[layout]))
    assert found.kind == "preference"
    assert found.frame.select("query", "left", "right", "winner").rows() == [
        ("p0", "x0", "y0", "left"), ("p1", "x1", "y1", "right"), ("p2", "x2", "y2", "tie")
    ]  # fmt: skip


@pytest.mark.parametrize("layout", [0, 1])
def test_preferences_of_records_go_back_as_the_label_of_the_better_field(save, layout):
    votes = save("a.json", _pairs(["response1", "response2", "response1"])[layout])
    with pytest.warns(cr.errors.DataWarning, match="(won|lost) every preference"):
        consensus = cr.aggregate(cr.read_judgments(votes), method="bradley_terry")
    made = list(cr.export(consensus, "argilla", votes).records)
    assert [one["suggestions"]["better"]["value"] for one in made] == ["response1", "response2", "response1"]
    assert all(0.5 < one["suggestions"]["better"]["score"] < 1 for one in made)


def test_labels_that_are_numbers_of_sides_are_asked_about_and_no_grades(save, tmp_path):
    path = save("a.json", _pairs(["1", "2", "2"])[0])
    found = _follow(path, tmp_path)
    assert "'better' chooses between 'response1' and 'response2', but neither is called '1' and '2'" in found.problem
    assert cr.read_judgments(path, winner_codes={"1": "left", "2": "right"}).outcome.tolist() == [1, -1, -1]
    assert cr.read_judgments(path, columns={"item": "id"}).kind == "grade"


def test_labels_about_two_fields_that_name_none_are_classes(save):
    found = _read(save("a.json", _pairs(["safe", "unsafe", "safe"])[0]))
    assert (found.kind, found.nominal) == ("grade", True)


def test_a_draft_does_not_make_labels_of_rankings(save, tmp_path):
    path = save("a.json", _records([["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"], ["a"]]))
    assert "are they rankings" in _follow(path, tmp_path).problem
    found = _read(path, kind="ranking")
    assert (found.kind, found.n_judgments, found.dropped) == ("ranking", 3, {"with an incomplete ranking": 1})
    assert _read(path, kind="grade").frame.height == 12


def test_free_text_is_no_class(save):
    path = save("a.json", _records([f"a remark, the {i}th" for i in range(20)]))
    with pytest.raises(JudgmentError, match="free text: not supported"):
        _read(path)
    assert _read(path, nominal=True).nominal
    with pytest.raises(JudgmentError, match="20 different texts and not classes"):
        _read(save("b.json", _records([f"p{i}@example.org" for i in range(20)])))


def test_labels_of_doccano_are_classes_and_never_spans(save):
    old = [{"id": i, "text": "t", "annotations": [{"label": 1 + i % 2, "user": u} for u in (1, 2)]} for i in range(3)]
    assert _read(save("old.jsonl", old)).nominal
    spans = [{"id": 1, "text": "t", "entities": [{"label": "P", "start_offset": 0}], "relations": [], "Comments": []}]
    with pytest.raises(JudgmentError, match="spans of text"):
        _read(save("spans.jsonl", spans))


# platforms and surveys -----------------------------------------------------------------------------------------------


def _turk(columns, rows):
    """A batch of two workers for each row of inputs and answers."""
    header = ["HITId", "AssignmentId", "WorkerId", *columns, "Approve", "Reject"]
    return table(header, [[f"H{i}", f"A{i}{w}", w, *row] for i, row in enumerate(rows) for w in "pq"])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", _turk(["Input.x", "Answer.t.a", "Answer.t.b"], [["u", "true", "true"], ["v", "false", "true"]])),
        (
            "a.tsv",
            table(
                ["INPUT:x", "OUTPUT:t", "ASSIGNMENT:worker_id"],
                [["u", '["a", "b"]', "p"], ["v", '["b"]', "p"], ["u", '["a", "b"]', "q"], ["v", '["b"]', "q"]],
                "\t",
            ),
        ),
        (
            "b.csv",
            table(
                ["_unit_id", "_worker_id", "tags"],
                [["u", "p", "a\nb"], ["v", "p", "b"], ["u", "q", "a\nb"], ["v", "q", "b"], ["u", "r", "a"]],
            ),
        ),
    ],
    ids=["boxes of Mechanical Turk", "lists of Toloka", "lines of Appen"],
)
def test_answers_that_name_several_labels_are_a_query_each(save, name, data):
    found = _read(save(name, data))
    assert found.roles["query"] == "the label"
    one = found.frame.filter(pl.col("annotator") == "p").select("item", "query", "grade")
    assert set(one.rows()) == {("u", "a", 1.0), ("u", "b", 1.0), ("v", "a", 0.0), ("v", "b", 1.0)}


def test_signed_answers_about_two_inputs_have_a_strength(save, tmp_path):
    rows = [[f"l{i}", f"r{i}", number] for i, number in enumerate((-2, -1, 0, 1, 2))]
    path = save("a.csv", _turk(["Input.a", "Input.b", "Answer.pref"], rows))
    assert "--strength Answer.pref=left" in _follow(path, tmp_path).problem
    read_so = cr.read_judgments(path, strength={"Answer.pref": "right"})
    assert read_so.outcome[::2].tolist() == [1, 1, 0, -1, -1]
    assert read_so.strength[::2].tolist() == [2, 1, 0, 1, 2]


def test_words_of_a_platform_about_two_inputs_get_a_code_each(save, tmp_path):
    rows = [[f"l{i}", f"r{i}", word] for i, word in enumerate(("lhs", "rhs", "meh", "lhs"))]
    path = save("a.csv", _turk(["Input.a", "Input.b", "Answer.pref"], rows))
    assert "--winner-codes" in _follow(path, tmp_path).problem


def test_three_inputs_are_no_pair_and_it_is_asked_which_is_meant(save):
    rows = [[f"x{i}", f"y{i}", f"z{i}", 1, 2, 3] for i in range(3)]
    columns = [*(f"Input.img{n}" for n in (1, 2, 3)), *(f"Answer.q{n}" for n in (1, 2, 3))]
    path = save("a.csv", _turk(columns, rows))
    with pytest.raises(JudgmentError, match=r"which of them 'Answer.q2' is about: columns={'item': 'Input.img2'}"):
        _read(path, answer="q2")
    found = _read(path, answer="q2", columns={"item": "Input.img2"})
    assert sorted(set(found.frame["item"])) == ["y0", "y1", "y2"]


def _survey(columns, texts, rows, status="IP Address"):
    """Qualtrics responses, one for each row of answers."""
    header = ["Status", "Finished", "ResponseId", *columns]
    imports = ['{"ImportId":"' + name + '"}' for name in header]
    answers = [[status, "True", f"R_{i}", *row] for i, row in enumerate(rows)]
    return table(header, [["Status", "Finished", "ResponseId", *texts], imports, *answers])


def test_loops_boxes_and_tests_of_qualtrics(save):
    found = _read(save("loop.csv", _survey(["1_Q3", "2_Q3"], ["Rate a", "Rate b"], [[1, 5], [2, 4]])))
    assert found.frame.sort("item")["grade"].to_list() == [1.0, 2.0, 5.0, 4.0]
    boxes = [["Cat", "", ""], ["", "Dog", "Cow"], ["", "", ""]]
    found = _read(save("box.csv", _survey(["Q4_1", "Q4_2", "Q4_3"], ["x - Cat", "x - Dog", "x - Cow"], boxes)))
    assert (found.frame.height, found.frame["grade"].sum(), found.dropped) == (6, 3, {"without an answer": 1})
    previews = save("test.csv", _survey(["Q1_1", "Q1_2"], ["a", "b"], [[1, 5], [2, 4]], status="Survey Preview"))
    with pytest.raises(JudgmentError, match=r"all 2 responses are left out \(2 Survey Preview\); .*keep="):
        _read(previews)
    assert _read(previews, keep=("Survey Preview",)).frame.height == 4


def _form(*rows):
    return table(
        ["Zeitstempel", "Wie gut? [A]", "Wie gut? [B]", "Wie gut? [C]"], [["2024/2/1 10:00:00", *r] for r in rows]
    )


def test_places_numbers_with_words_and_boxes_in_a_grid(save, tmp_path):
    places = save("a.csv", _form(["1st", "2nd", "3rd"], ["3rd", "1st", "2nd"]))
    assert "every respondent gives 1 to 3 once" in _follow(places, tmp_path).problem
    found = _read(places, kind="ranking")
    assert found.frame.filter(pl.col("annotator") == "2").sort("item")["rank"].to_list() == [3.0, 1.0, 2.0]
    found = _read(save("b.csv", _form(["1 - bad", "2 - ok", "3 - good"], ["1 - bad", "1 - bad", "2 - ok"])))
    assert (found.levels, found.nominal) == (("bad", "ok", "good"), False)
    boxes = save("c.csv", _form(["x", "x, y", "y"], ["y", "x", "x"]))
    assert "several may be ticked" in _follow(boxes, tmp_path).problem


def test_lists_of_trials_are_by_a_participant_each(save, tmp_path):
    trial = {"trial_type": "image-slider-response", "time_elapsed": 1, "rt": 1, "stimulus": "a.png"}
    rows = [[trial | {"trial_index": n, "response": n + who} for n in range(3)] for who in range(2)]
    assert _read(save("a.json", rows)).frame["annotator"].to_list() == ["1"] * 3 + ["2"] * 3
    keys = [
        trial | {"trial_index": n, "trial_type": "html-keyboard-response", "response": "fj"[n % 2]} for n in range(4)
    ]
    assert "--answer html-keyboard-response" in _follow(save("b.json", keys), tmp_path).problem


# models and their judges ---------------------------------------------------------------------------------------------


def test_numbers_that_alpaca_eval_does_not_write_are_no_shares(save, tmp_path):
    rows = [{"instruction": f"q{i}", "generator_1": "a", "generator_2": "b", "preference": 1 + i} for i in range(4)]
    with pytest.raises(JudgmentError, match="outside 1 to 2 in 2 of 4 annotations"):
        _read(save("a.json", rows))


def test_words_of_an_inspect_scorer_count_as_inspect_counts_them(save):
    samples = [{"id": i, "scores": {"m": {"value": word}}} for i, word in enumerate(("yes", "No", "C", "I"))]
    log = {"status": "success", "eval": {"model": "m", "task": "t"}, "samples": samples}
    assert _read(save("a.json", log)).frame["grade"].to_list() == [1.0, 0.0, 1.0, 0.0]


def test_scores_of_two_sources_are_said_to_be_mixed(save):
    row = {
        "trace_id": "t",
        "name": "q",
        "value": 1,
        "string_value": None,
        "data_type": "NUMERIC",
        "observation_id": "o",
    }
    found = _read(save("a.jsonl", [row | {"source": source} for source in ("EVAL", "EVAL", "ANNOTATION")]))
    assert any("scores of several sources" in note and "source" in note for note in found.notes)
    assert any("3 scores of observations" in note for note in found.notes)


def test_reward_bench_files_with_a_list_for_each_field(save):
    first = {
        "id": [1, 2, 3],
        "results": [1, 0, 0],
        "scores_chosen": [2.0, 0.1, 1.0],
        "scores_rejected": [1.0, 0.4, 1.0],
    }
    found = _read(save("a.json", first | {"model": "org/rm", "text_chosen": ["x", "y", "z"]}))
    assert found.frame["winner"].to_list() == ["left", "right", "tie"]
    assert set(found.frame["annotator"]) == {"org/rm"}
    second = {"id": ["0", "1"], "scores": [[1.0, 0.2, 0.3], [0.1, 0.5]], "num_correct": [1, 2], "results": [1, 1.0]}
    found = _read(save("b.json", second | {"model": "org/rm", "subset": ["Math", "Ties"]}))
    assert (found.kind, found.frame["grade"].to_list()) == ("grade", [1.0, 0.2, 0.3, 0.1, 0.5])
    assert found.truth["grade"].to_list() == ["1", "0", "0", "1", "1"]


def test_every_rejected_answer_of_a_list_counts(save):
    rows = [{"prompt": f"p{i}", "chosen": ["good"], "rejected": ["bad", "worse", "worst"]} for i in range(2)]
    found = _read(save("a.jsonl", rows))
    assert (found.frame.height, found.n_read, set(found.frame["loser"])) == (6, 6, {"bad", "worse", "worst"})
    turns = [{"chosen": ["hi", "hello", "yes"], "rejected": ["hi", "hello", "no"]}]
    assert _read(save("b.jsonl", turns), source="chosen-rejected").frame.select("winner", "loser").rows() == [
        ("yes", "no")
    ]


# plain tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sides", "answer"), [(("human_ref_A", "human_ref_B"), "labels"), (("essay1", "essay2"), "score")]
)
def test_two_columns_of_texts_are_never_overlooked(save, sides, answer):
    rows = [{"question": f"q{i}", sides[0]: f"x{i}", sides[1]: f"y{i}", answer: i % 2, "worker": "a"} for i in range(6)]
    path = save("a.json", rows)
    with pytest.raises(
        JudgmentError, match=f"'{sides[0]}' and '{sides[1]}' may be two sides; if '{answer}' says which"
    ):
        cr.read_judgments(path)
    columns = {"left": sides[0], "right": sides[1], "winner": answer}
    assert cr.read_judgments(path, columns=columns, winner_codes={0: "left", 1: "right"}).kind == "preference"
    assert cr.read_judgments(path, columns={"item": "question"}).kind == "grade"


def test_a_list_of_ratings_is_a_row_for_each(save, tmp_path):
    rows = [{"id": f"x{i}", "ratings": [{"user": who, "score": i + 1} for who in "abc"]} for i in range(3)]
    path = save("a.json", rows)
    with pytest.raises(JudgmentError, match=r"'ratings' holds objects; write the path: .*ratings\[\].score"):
        cr.read_judgments(path)
    grades = cr.read_judgments(path, columns={"grade": "ratings[].score", "annotator": "ratings[].user"})
    assert (len(grades), grades.n_annotators, grades.n_items) == (9, 3, 3)
    with pytest.raises(JudgmentError, match="holds no lists"):
        cr.read_judgments(path, columns={"grade": "id[].score"})


def test_numbered_columns_with_one_row_per_item_are_annotators(save, tmp_path):
    path = save("a.csv", table(["item", "R1", "R2", "R3"], [[f"x{i}", 1 + i % 5, 2, 3 + i % 2] for i in range(6)]))
    assert "--wide R1,R2,R3" in _follow(path, tmp_path).problem


def test_a_first_line_with_letters_for_ids_is_no_header(save, tmp_path):
    path = save("a.tsv", "".join(f"{who}\tx{i}\t{1 + i % 4}\n" for i in range(6) for who in "abc").encode())
    assert "--header annotator,item,grade" in _follow(path, tmp_path).problem


def test_a_completion_is_what_is_graded_and_not_its_prompt(save):
    rows = [{"prompt": f"p{i % 2}", "completion": f"c{i}", "label": bool(i % 2)} for i in range(4)]
    grades = cr.read_judgments(save("a.json", rows))
    assert (grades.n_items, grades.n_queries) == (4, 2)


# Prodigy and Toloka --------------------------------------------------------------------------------------------------


def _compared(answer, **more):
    hashes = {"_input_hash": 1, "_task_hash": 2, "_annotator_id": "ann", "_timestamp": 1}
    both = {"accept": {"text": "good"}, "reject": {"text": "bad"}}
    return {"id": 7, "input": {"text": "q"}, "answer": answer, **both, **hashes, **more}


def test_what_prodigy_compares_are_preferences_and_no_classes(save):
    found = _read(save("a.jsonl", [_compared("accept"), _compared("reject"), _compared("ignore")]))
    assert found.kind == "preference"
    assert found.frame.select("query", "winner", "loser").rows() == [("q", "good", "bad"), ("q", "bad", "good")]
    assert found.dropped == {"ignore": 1}
    files = {"mapping": {"A": "reject", "B": "accept"}}
    by_file = _read(save("b.jsonl", [_compared("accept", **files), _compared("reject", **files)]))
    assert by_file.frame.select("winner", "loser").rows() == [("B", "A"), ("A", "B")]


def test_assignments_as_the_api_of_toloka_returns_them(save):
    def assignment(person, status, answers):
        tasks = [
            {"id": f"t{place}", "pool_id": "1", "input_values": {"image": f"i{place}"}}
            | ({"known_solutions": [{"output_values": {"result": "cat"}}]} if place == 0 else {})
            for place, _ in enumerate(answers)
        ]
        solutions = [{"output_values": {"result": answer}} for answer in answers]
        return {
            "id": f"a{person}", "pool_id": "1", "user_id": person, "status": status, "tasks": tasks,
            "solutions": solutions, "created": "2024-01-01T00:00:00", "submitted": "2024-01-01T00:01:00",
        }  # fmt: skip

    rows = [assignment("u", "ACCEPTED", "ab"), assignment("v", "REJECTED", "bb"), assignment("w", "SUBMITTED", "ba")]
    found = _read(save("a.json", rows))
    assert found.frame.select("item", "grade", "annotator").rows() == [
        ("i0", "a", "u"), ("i1", "b", "u"), ("i0", "b", "w"), ("i1", "a", "w")
    ]  # fmt: skip
    assert (found.dropped, found.truth.rows()) == ({"REJECTED": 2}, [("i0", "cat")])
