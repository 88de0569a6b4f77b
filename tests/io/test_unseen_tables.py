"""Plain tables of habits that no sample has: read as they were meant, or asked about with a command that works."""

import contextlib
import io
import json
import shlex

import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.errors import JudgmentError
from crowdrank.io.inspection import inspect

PEOPLE = ("ann", "bob", "cid", "dee")
MODELS = ("gpt-4", "claude", "llama", "qwen")
PAIRS = [(a, m, n) for a in PEOPLE for place, m in enumerate(MODELS) for n in MODELS[place + 1 :]]
GRID = [(a, m) for m in MODELS for a in PEOPLE]
NUMBERED = tuple(enumerate(MODELS))
LISTED = tuple(enumerate(PAIRS))
SIDES = {"a_is_worse": "model_a,model_b", "b_is_worse": "model_a,model_b", "rejected": "response_1,response_2"}
_WRITING = {"-o", "--annotators", "--want"}


@pytest.fixture(name="save")
def _save(tmp_path):
    """Write a table of a header and a row for each of some keys, or objects as JSON lines."""

    def save(header, rows=None, name="t.csv"):
        path = tmp_path / name
        if rows is None:
            path.write_text("\n".join(json.dumps(one) for one in header))
        else:
            lines = [header, *(",".join(map(str, row)) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
        return path

    return save


def _follow(path, most=4):
    """Type what inspect proposes until it would be read; return the last inspection and its command."""
    arguments = ["inspect", str(path)]
    for _ in range(most):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = main([*arguments, "--format", "json"])
        found = json.loads(out.getvalue())
        if code == 0:
            return found, arguments
        assert found["next"] is not None, found["problem"]
        words = shlex.split(found["next"])[2:]
        skipped = {place + more for place, word in enumerate(words) if word in _WRITING for more in (0, 1)}
        arguments = ["inspect", *(word for place, word in enumerate(words) if place not in skipped)]
    raise AssertionError(found["problem"])


def _outcomes(path, **options):
    return cr.read_judgments(path, **options).outcome.tolist()


# winners -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "tie"),
    [("links", "rechts", "gleich"), ("gauche", "droite", "égalité"), ("izquierda", "derecha", "empate")],
)
def test_sides_in_other_languages(save, left, right, tie):
    words = [(left, 1), (right, -1), (tie, 0)]
    path = save("rater,model_a,model_b,winner", [(*pair, words[i % 3][0]) for i, pair in enumerate(PAIRS)])
    assert _outcomes(path) == [words[i % 3][1] for i in range(len(PAIRS))]


def test_winners_that_are_ids_in_capital_letters(save):
    path = save("judge,model_a,model_b,winner", [(a, m, n, (m, n)[i % 2].upper()) for i, (a, m, n) in enumerate(PAIRS)])
    assert _outcomes(path) == [(1, -1)[i % 2] for i in range(len(PAIRS))]


def test_capital_letters_count_between_items(tmp_path, save):
    rows = [("ann", "m", "M", "M"), ("bob", "m", "M", "m")]
    assert _outcomes(save("judge,model_a,model_b,winner", rows)) == [-1, 1]


def test_words_nobody_knows_get_no_side_by_chance(save):
    words = ("alef", "bet", "gimel")
    path = save("rater,model_a,model_b,winner", [(*pair, words[i % 3]) for i, pair in enumerate(PAIRS)])
    found = inspect(path)
    assert "say left, right or tie for each of them: --winner-codes alef=NAME,bet=NAME,gimel=NAME" in found.problem
    assert found.next is None


def test_none_may_be_a_tie_and_is_asked_about(save):
    path = save("rater,model_a,model_b,winner", [(*pair, ("A", "B", "None")[i % 3]) for i, pair in enumerate(PAIRS)])
    found, _ = _follow(path)
    assert found["n_judgments"] == len(PAIRS)
    read = _outcomes(path, winner_codes={"A": "left", "B": "right", "None": "tie"})
    assert read == [(1, -1, 0)[i % 3] for i in range(len(PAIRS))]


def test_a_named_winner_of_bare_numbers_is_asked_about_by_its_own_name(save):
    rows = [{"prompt": i, "response_0": f"x{i}", "response_1": f"y{i}", "better_response_id": i % 2} for i in range(20)]
    path = save(rows, name="t.jsonl")
    found, arguments = _follow(path)
    assert found["kind"] == "preference"
    assert "winner=better_response_id" in " ".join(arguments)
    # of sides called 0 and 1 the number is the side
    assert arguments[-1] == "0=left,1=right"


@pytest.mark.parametrize(
    ("name", "yes", "no", "sign"),
    [("a_wins", 1, 0, 1), ("left_is_better", "True", "False", 1), ("prefer_b", "yes", "no", -1)],
)
def test_a_flag_of_one_side_is_asked_about(save, name, yes, no, sign):
    path = save(f"rater,model_a,model_b,{name}", [(*pair, (yes, no)[i % 2]) for i, pair in enumerate(PAIRS)])
    found, arguments = _follow(path)
    assert (found["kind"], arguments[3]) == ("preference", f"winner={name}")
    codes = dict(one.split("=") for one in arguments[5].split(","))
    assert _outcomes(path, columns={"winner": name}, winner_codes=codes) == [(sign, -sign)[i % 2] for i in range(24)]


# scores and scales of two sides --------------------------------------------------------------------------------------


def test_a_score_of_either_side_makes_graded_preferences(save):
    rows = [(*pair, i % 4, i % 3) for i, pair in enumerate(PAIRS)]
    path = save("judge,model_a,model_b,score_a,score_b", rows)
    with pytest.raises(JudgmentError, match="with a score each, 'score_a' and 'score_b'; if the larger one is better"):
        cr.read_judgments(path)
    read = cr.read_judgments(path, strength={"score_a-score_b": "left"})
    margins = [a - b for *_, a, b in rows]
    assert read.outcome.tolist() == [(m > 0) - (m < 0) for m in margins]
    assert read.strength.tolist() == [abs(m) for m in margins]
    assert _outcomes(path, strength={"score_a-score_b": "right"}) == [(m < 0) - (m > 0) for m in margins]
    assert _follow(path)[0]["kind"] == "preference"


def test_teams_at_home_and_away_are_two_sides(save):
    path = save(
        "home_team,away_team,home_score,away_score", [(m, n, i % 3, i % 2) for i, (_, m, n) in enumerate(PAIRS)]
    )
    found, arguments = _follow(path)
    assert (found["kind"], found["n_judgments"]) == ("preference", len(PAIRS))
    assert arguments[2:] == ["--column", "left=home_team,right=away_team", "--strength", "home_score-away_score=left"]


def test_a_scale_around_its_middle_keeps_how_much(save):
    path = save("rater,model_a,model_b,preference", [(*pair, i % 7 + 1) for i, pair in enumerate(PAIRS)])
    read = cr.read_judgments(path, strength={"preference-4": "right"})
    assert read.outcome.tolist() == [(i % 7 < 3) - (i % 7 > 3) for i in range(len(PAIRS))]
    assert set(read.strength.tolist()) == {0.0, 1.0, 2.0, 3.0}
    with pytest.raises(JudgmentError, match=r"never negative.*preference-4"):
        cr.read_judgments(path, strength={"preference": "right"})


def test_a_column_with_a_dash_in_its_name_is_no_difference(save):
    path = save("rater,model_a,model_b,pre-4", [(*pair, i % 5 - 2) for i, pair in enumerate(PAIRS)])
    assert _outcomes(path, strength={"pre-4": "left"}) == [(i % 5 > 2) - (i % 5 < 2) for i in range(len(PAIRS))]


# what is graded ------------------------------------------------------------------------------------------------------


def test_three_or_more_items_a_row_are_no_pair(save):
    rows = [(a, *MODELS, MODELS[i % 2], MODELS[3]) for a in PEOPLE for i in range(4)]
    with pytest.raises(JudgmentError, match="each row shows several items, 'item1', 'item2', 'item3' and 'item4'"):
        cr.read_judgments(save("annotator,item1,item2,item3,item4,liked,disliked", rows))


def test_an_answer_beside_its_prompt_may_be_what_is_graded(save):
    rows = [{"prompt": f"p{i // 2}", "response": f"an answer {i}", "helpfulness": i % 5} for i in range(20)]
    path = save(rows, name="t.jsonl")
    with pytest.raises(JudgmentError, match="'response' and 'prompt' could both be the item"):
        cr.read_judgments(path, columns={"grade": "helpfulness"})
    read = cr.read_judgments(path, columns={"grade": "helpfulness", "item": "response"})
    assert (read.n_items, read.n_queries) == (20, 10)


@pytest.mark.parametrize("header", ["model,elo,votes", "model,votes,elo"])
def test_a_number_of_votes_is_no_grade(save, header):
    rows = [(m, 1000 + 50 * i, 1200 - 70 * i) for i, m in enumerate(MODELS)]
    with pytest.raises(JudgmentError, match=r"name the column with columns=\{'grade': 'elo'\}"):
        cr.read_judgments(save(header, rows))


def test_a_model_is_what_is_graded_and_not_its_answer(save):
    rows = [(a, f"p{i}", m, f"words {i} {m}", i % 5) for i in range(3) for a, m in GRID]
    read = cr.read_judgments(save("judge,prompt,model,response,score", rows))
    assert (read.n_items, read.n_queries, read.n_annotators) == (12, 3, 4)


@pytest.mark.parametrize(
    "header",
    ["Worker ID,Item Name,Quality Score", "Rater Name,Document Title,Overall Rating", "judge,model,star_rating"],
)
def test_words_in_longer_names(save, header):
    read = cr.read_judgments(save(header, [(a, m, i % 5) for i, (a, m) in enumerate(GRID)]))
    assert (read.kind, read.n_annotators, read.n_items) == ("grade", 4, 4)


@pytest.mark.parametrize("name", ["mean_score", "score_std", "n_ratings", "toxicity_score"])
def test_a_longer_name_never_takes_the_place_of_a_listed_one(save, name):
    rows = [(a, m, i % 2, i % 5) for i, (a, m) in enumerate(GRID)]
    read = cr.read_judgments(save(f"worker,task,{name},rating", rows))
    assert read.grade.tolist() == [float(i % 5) for i in range(len(GRID))]


def test_ranks_by_any_name_are_no_grades(save):
    path = save("participant_id,model,Rank (1 = best)", [(a, m, i // 4 + 1) for i, (a, m) in enumerate(GRID)])
    assert cr.read_judgments(path).kind == "ranking"


@pytest.mark.parametrize("name", ["loss", "error_rate", "WER", "mean_error"])
def test_numbers_that_count_downwards_are_asked_about(save, name):
    path = save(f"judge,model,{name}", [(a, m, i / 10) for i, (a, m) in enumerate(GRID)])
    found, arguments = _follow(path)
    assert found["kind"] == "grade"
    assert arguments[-1] == "--small-is-good"
    assert cr.read_judgments(path, columns={"grade": name}, small_is_good=False).grade.max() == 1.5


# who, and several judgments of the same ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["listener", "grader", "annotation_agent", "rated_by"])
def test_annotators_by_other_names(save, name):
    assert cr.read_judgments(save(f"{name},item,score", [(a, m, 1) for a, m in GRID])).n_annotators == 4


def test_a_person_and_a_clip_together_tell_grades_apart(save):
    rows = [(a, m, f"c{k}", k) for a, m in GRID for k in range(3)]
    path = save("panelist,system,clip,score", rows)
    with pytest.raises(JudgmentError, match="12 grades and no annotator is named; if 'panelist' names the annotator"):
        cr.read_judgments(path)
    assert _follow(path)[0]["n_annotators"] == 4


def test_a_model_inside_an_object_tells_grades_apart(save):
    rows = [{"id": p, "judge": a, "run": {"model": m}, "score": p % 3} for p in range(4) for a, m in GRID]
    path = save(rows, name="t.jsonl")
    assert "'run.model' distinguishes them: --column item=run.model" in inspect(path).problem
    found, _ = _follow(path)
    # ids tell queries apart, of which none is to be left out
    assert (found["n_items"], found["n_queries"], found["n_annotators"]) == (16, 4, 4)
    assert found["n_judgments"] == len(rows)


def test_entries_of_a_list_are_proposed_with_what_they_grade(save):
    answers = [{"model": m, "rank": place, "answer": "words"} for place, m in enumerate(MODELS, 1)]
    ranked = [{"prompt": f"p{i}", "answers": answers} for i in range(6)]
    found, arguments = _follow(save(ranked, name="ranked.jsonl"))
    assert arguments[3] == "rank=answers[].rank,item=answers[].model"
    assert (found["kind"], found["n_judgments"], found["n_queries"]) == ("ranking", 6, 6)
    completions = [{"model": m, "overall_score": place} for place, m in enumerate(MODELS)]
    graded = [{"instruction": f"p{i}", "models": MODELS, "completions": completions} for i in range(6)]
    found, arguments = _follow(save(graded, name="graded.jsonl"))
    assert arguments[3] == "grade=completions[].overall_score,item=completions[].model"
    # models that recur in queries are compared over all of them
    assert not any("nothing to aggregate" in note for note in found["notes"])


def test_predictions_are_no_judgments(save):
    told = [{"model_version": "m", "result": [{"value": {"rating": 4}}]}]
    found = inspect(save([{"id": i, "data": {"text": "t"}, "predictions": told} for i in range(6)], name="t.jsonl"))
    assert not found.would_read
    assert "predictions" not in (found.next or "")


# words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale",
    [
        ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"),
        ("very poor", "poor", "fair", "good", "excellent"),
        ("never", "rarely", "sometimes", "often", "always"),
        ("low", "medium", "high"),
        ("No", "Yes"),
        ("thumbs_down", "thumbs_up"),
    ],
)
def test_scales_in_words_are_read_in_their_order(save, scale):
    path = save("rater,item,rating", [(a, m, scale[i % len(scale)]) for i, (a, m) in enumerate(GRID)])
    assert cr.read_judgments(path).levels == scale
    found, arguments = _follow(path)
    assert arguments == ["inspect", str(path)]
    assert f"worst first {', '.join(map(repr, scale))}" in found["notes"][0]


def test_words_without_a_known_order_are_classes(save):
    path = save("rater,item,label", [(a, m, ("cat", "dog", "owl")[i % 3]) for i, (a, m) in enumerate(GRID)])
    assert _follow(path)[1][-1] == "--nominal"


def test_the_next_command_does_not_overwrite_the_file(save):
    path = save("voter,candidate,rank", [(a, m, i // 4 + 1) for i, (a, m) in enumerate(GRID)], name="ranks.csv")
    words = shlex.split(inspect(path).next)
    assert words[words.index("-o") + 1] == "new-ranks.csv"


def test_inspect_says_what_aggregate_says(tmp_path, save):
    path = save("model,item,rating", [(m, m, i) for i, m in enumerate(MODELS)])
    assert any("nothing to aggregate" in note for note in inspect(path).notes)
    repeated = save("rater,item,rating", [("ann", "x", 1), ("ann", "x", 2), ("bob", "x", 3), ("bob", "y", 3)], "r.csv")
    assert any("1 of 4 judgments repeat" in note for note in inspect(repeated).notes)
    foreign = tmp_path / "f.csv"
    foreign.write_bytes("rater,item,rating\nJürgen,x,1\nann,x,2\n".encode("cp1252"))
    assert inspect(foreign).encoding == "Windows-1252"


@pytest.mark.parametrize("times", [(1700000000, 1700000600), (1700000000000, 1700000600000)])
def test_times_in_seconds_and_milliseconds_are_shown_as_days(save, times):
    path = save("rater,item,rating,timestamp", [("ann", "x", 1, times[0]), ("bob", "x", 2, times[1])])
    assert [role.holds for role in inspect(path).roles if role.word == "time"] == ["14 Nov 2023"]


@pytest.mark.parametrize("column", ["anchor", "reference_image"])
def test_what_triplets_are_compared_with_is_not_left_out_in_silence(column, save):
    triplets = [(a, m, n) for a in MODELS for m in MODELS for n in MODELS if len({a, m, n}) == 3]
    path = save(f"{column},left,right,winner", [(*one, "left") for one in triplets])
    found = inspect(path)
    assert any(note.startswith(f"{column!r} is not used") and f"query={column}" in note for note in found.notes)
    assert cr.read_judgments(path, columns={"query": column}).n_queries == len(MODELS)


def test_a_column_of_references_that_are_no_items_is_no_anchor(save):
    path = save("reference,left,right,winner", [(f"gold {n}", m, w, "left") for n, (_, m, w) in enumerate(PAIRS)])
    assert not any("is not used" in note for note in inspect(path).notes)


def test_a_survey_that_names_nobody_is_asked_about_and_the_command_works(save):
    rows = [(f"5/{n + 1}/2024 15:12:1{n}", 4 + n % 2, 1 + n % 3, 3, 20 + n % 4) for n in range(6)]
    path = save("Timestamp,Logo 1,Logo 2,Logo 3,Your age", rows)
    found, arguments = _follow(path)
    assert (found["n_judgments"], found["n_annotators"], found["n_items"]) == (18, 6, 3), arguments


def test_letor_files_are_for_training(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{n % 3} qid:{n // 4} 1:{n / 7:.3f} 2:{n % 5} # d{n}\n" for n in range(12)))
    found = inspect(path)
    assert found.next == f"crowdrank train {path} -o model"
    assert main([*shlex.split(found.next)[1:-1], str(tmp_path / "model"), "-q"]) == 0


def test_one_column_per_item_with_ranks_is_not_read_upside_down(save):
    orders = [(1, 2, 3, 4), (2, 1, 3, 4), (1, 2, 4, 3)]
    path = save(",".join(["voter", *MODELS]), [(who, *order) for who, order in zip(PEOPLE, orders, strict=False)])
    with pytest.raises(JudgmentError, match="every respondent gives 1 to 4 once"):
        cr.read_judgments(path, wide=MODELS)
    found, arguments = _follow(path)
    assert (found["kind"], found["n_judgments"]) == ("ranking", 3), arguments
    assert cr.aggregate(cr.read_judgments(path, wide=MODELS, kind="ranking"), "borda").order() == [*MODELS]
    assert cr.read_judgments(path, wide=MODELS, kind="grade").kind == "grade"


def test_one_column_per_annotator_with_ranks_is_asked_about(save):
    path = save("model,rater1,rater2", [(model, n, 5 - n) for n, model in enumerate(MODELS, 1)])
    with pytest.raises(JudgmentError, match="every annotator gives 1 to 4 once"):
        cr.read_judgments(path, wide=["rater1", "rater2"])


def test_what_is_ranked_is_the_item_and_not_what_it_answers(save):
    rows = [
        {
            "message_id": f"m{n}",
            "parent_id": f"q{n // 3}",
            "text": f"words {n}",
            "rank": n % 3,
            "user_id": PEOPLE[n % 3],
        }
        for n in range(12)
    ]
    found, arguments = _follow(save(rows, name="replies.jsonl"))
    roles = {role["word"]: role["column"] for role in found["roles"]}
    assert roles == {"rank": "rank", "item": "message_id", "query": "parent_id"}, arguments
    assert found["n_judgments"] == 4, "what one person wrote is no ranking of one item"


def test_texts_of_which_each_is_another_are_no_grades(save):
    rows = [{"prompt": f"p{n // 2}", "response": f"r{n}", "helpfulness": n % 5, "clarity": n % 4} for n in range(12)]
    found, arguments = _follow(save(rows, name="steer.jsonl"))
    roles = {role["word"]: role["column"] for role in found["roles"]}
    assert roles == {"grade": "helpfulness", "item": "response", "query": "prompt"}, arguments


def test_lists_in_cells_are_no_classes(save):
    path = save("text;labels", [(f"t{n};[1, 0, {n % 2}]",) for n in range(8)])
    with pytest.raises(JudgmentError, match=r"'labels' holds lists such as '\[1, 0, 0\]'; write one row per entry"):
        cr.read_judgments(path, nominal=True)


def test_who_gave_an_answer_is_not_proposed_as_the_answer(save):
    rows = [
        {"object": f"o{n}", "annotations": [{"workerId": who, "data": {"label": "cat"}} for who in PEOPLE]}
        for n in range(3)
    ]
    assert "grade=annotations[].workerId" not in inspect(save(rows, name="w.jsonl")).next


def test_toxicity_counts_downwards_whatever_it_is_called(save):
    path = save("model,toxicity/v1/score", [(m, n / 10) for n, m in enumerate(MODELS)])
    with pytest.raises(JudgmentError, match="small numbers of 'toxicity/v1/score' are likely the good ones"):
        cr.read_judgments(path)
    assert inspect(path).next.endswith("--small-is-good")


def test_tables_of_columns_and_data_are_read(tmp_path):
    rows = [["p", model, n % 5, who] for n, (who, model) in enumerate(GRID)]
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"columns": ["prompt", "model", "score", "rater"], "data": rows}))
    grades = cr.read_judgments(path)
    assert (grades.n_judgments, grades.n_annotators, grades.n_items) == (16, 4, 4)


def test_names_with_equals_signs_and_commas_can_be_typed(save):
    answer = "which is better (1=a .. 8=b)"
    rows = [(m, n, 1 + place % 8, a) for place, (a, m, n) in enumerate(PAIRS)]
    found, arguments = _follow(save(f"model_a,model_b,{answer},worker", rows))
    assert found["n_judgments"] == len(PAIRS), arguments
    path = save('who,"tea, hot","milk, cold"', [(who, 1 + n % 3, 3 + n % 2) for n, who in enumerate(PEOPLE)], "s.csv")
    assert main(["inspect", str(path), "--wide", "tea, hot,milk, cold", "--column", "annotator=who"]) == 0


# which way, by names that say it -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "quality_score (lower is better)",
        "score_1_is_excellent",
        "Rating (1 = best, 5 = worst)",
        "Note: 1 = sehr gut",
        "Schulnote",
        "Priority",
    ],
)
def test_a_name_that_says_that_small_is_good_is_asked_about(save, name):
    path = save(f'annotator,item,"{name}"', [(who, model, place + 1) for who in PEOPLE for place, model in NUMBERED])
    with pytest.raises(JudgmentError, match=r"small numbers of .* are likely the good ones"):
        cr.read_judgments(path, columns={"grade": name})


@pytest.mark.parametrize("name", ["Rating (1 = worst, 5 = best)", "errors (higher is better)", "rating (0=worst)"])
def test_a_name_that_says_that_large_is_good_is_believed(save, name):
    path = save(f'annotator,item,"{name}"', [(who, model, place + 1) for who in PEOPLE for place, model in NUMBERED])
    assert cr.aggregate(cr.read_judgments(path, columns={"grade": name})).order()[0] == MODELS[-1]


def test_an_order_of_preference_is_a_rank(save):
    path = save("annotator,item,preference_order", [(who, m, place + 1) for who in PEOPLE for place, m in NUMBERED])
    assert cr.aggregate(path).order() == list(MODELS)


def test_ranks_with_endings_are_numbers(save):
    ends = ("1st", "2nd", "3rd", "4th")
    path = save("judge,item,Place", [(who, m, ends[place]) for who in PEOPLE for place, m in NUMBERED])
    assert cr.aggregate(path).order() == list(MODELS)


@pytest.mark.parametrize(
    "words",
    [
        ("Bad", "Poor", "Fair", "Good"),
        ("Very annoying", "Annoying", "Slightly annoying", "Imperceptible"),
        ("Trifft gar nicht zu", "trifft eher nicht zu", '"Teils, teils"', "Trifft voll zu"),
    ],
)
def test_scales_of_listening_tests_and_surveys_have_their_order(save, words):
    path = save("annotator,item,rating", [(who, model, words[place]) for who in PEOPLE for place, model in NUMBERED])
    judgments = cr.read_judgments(path)
    assert not judgments.nominal
    assert list(judgments.levels) == [word.strip('"') for word in words]


def test_a_column_of_what_is_preferred_least_is_no_winner(save):
    rows = [(who, m, n, "right") if place % 2 else (who, n, m, "left") for place, (who, m, n) in LISTED]
    path = save("annotator,left,right,least_preferred", rows)
    with pytest.raises(JudgmentError, match="if 'least_preferred' names the worse one"):
        cr.read_judgments(path)
    found, _ = _follow(path)
    assert found["would_read"]
    assert cr.aggregate(cr.read_judgments(path, columns={"loser": "least_preferred"})).order() == list(MODELS)


@pytest.mark.parametrize(
    ("name", "cells"), [("a_is_worse", ("0", "1")), ("b_is_worse", ("1", "0")), ("rejected", ("2", "1"))]
)
def test_hints_on_columns_of_the_worse_side_do_not_reverse(save, name, cells):
    rows = [(who, m, n, cells[0]) if place % 2 else (who, n, m, cells[1]) for place, (who, m, n) in LISTED]
    found, arguments = _follow(save(f"annotator,{SIDES[name]},{name}", rows))
    assert found["would_read"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["aggregate", *arguments[1:]]) == 0
    assert out.getvalue().splitlines()[1].startswith(MODELS[0])
