"""What a reader must not guess: which way numbers count, the order of words, who was shown first."""

import json
import shlex

import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.data.words import bad_word
from crowdrank.errors import JudgmentError
from crowdrank.io.inspection import inspect
from crowdrank.io.judgments import read_files
from crowdrank.io.read_options import read_options
from crowdrank.wording import on_command_line

MODELS = ("oak", "elm", "ash", "yew")
JUDGES = ("g", "c", "d")
"""The best one first; judges mostly agree."""


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else "\n".join(map(json.dumps, text)), encoding="utf-8")
        return path

    return write


def graded(name, cell, *, prompts=6):
    """A table of grades in which ``cell(place, n)`` is what a model of a place (0 is the best) gets."""
    rows = [
        f"{model},p{prompt},{judge},{cell(place, prompt + number)}"
        for place, model in enumerate(MODELS) for prompt in range(prompts) for number, judge in enumerate(JUDGES)
    ]  # fmt: skip
    return "\n".join([f"model,prompt_id,judge,{name}", *rows]) + "\n"


def first(path, *words):
    """The first and the last model of what the command line makes of a file, with all that was said."""
    out = path.with_suffix(".out.csv")
    code = main(["aggregate", str(path), "--across-queries", "--quiet", "-o", str(out), *words])
    if code:
        return None
    ranked = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    return ranked[0], ranked[-1]


def asked(path, **options):
    """What is asked of a file, in the words of the command line."""
    with on_command_line(), pytest.raises(JudgmentError) as error:
        read_files([path], read_options(**options))
    return str(error.value)


# which way numbers count ---------------------------------------------------------------------------------------------

BAD = (
    "risk_score error_score bias_score wer_score toxicity harmfulness refusal severity bias toxicity/v1/score "
    "errorRate TOXICITY SEVERE_TOXICITY IDENTITY_ATTACK sexually_explicit self-harm hate_unfairness "
    "SelfHarmScore isToxic is_toxic hallucination hallucination_rate hallucinated_score noise_sensitivity "
    "pii_leakage num_errors mistakes n_bugs word_error_rate riskscore errorscore meanToxicity harm_rating "
    "violence insult profanity threat spamminess riskiness refused refusals policy_violation violations "
    "misleading repetitiveness redundancy irrelevance incorrect inaccuracy unsafe unhelpfulness frustration "
    "customer_effort_score workload offensiveness abusive blurriness noisiness distortion artifacts "
    "contradiction inconsistency incoherence unfaithfulness stereotyping sycophancy evasiveness deception "
    "Fehlerzahl Risiko perplexity ppl cer val_loss cross_entropy latency_ms rmse MAE fid edit_distance "
    "brier_score TTFT failure_rate missing_info racism rudeness complaints dislikes downvotes penalty "
    "confusing omissions plagiarism negativity "
)

GOOD = (
    "rating score quality helpfulness accuracy correctness safety harmlessness harmonic_mean several "
    "faithfulness groundedness relevance fluency coherence overall grade label value stars honesty "
    "truthfulness clarity naturalness MOS similarity bleu rouge f1 likes upvotes reward confidence feedback "
    "conciseness completeness creativity relief reliability tier certainty painting campaign lossless "
    "tolerance attraction costume badge performance personality effortless faultless Antwort der "
)


@pytest.mark.parametrize("name", BAD.split())
def test_a_word_for_something_bad_is_found_whatever_surrounds_it(name):
    assert bad_word(name)


def test_other_words_are_no_reason_to_ask():
    assert [name for name in GOOD.split() if bad_word(name)] == []


@pytest.mark.parametrize("name", ["error_score", "harmfulness", "Severity (1-5)", "meanRisk", "wer", "is refused"])
def test_tables_ask_which_way_a_bad_thing_counts(write, name):
    path = write(graded(name, lambda place, n: 1 + place + n % 2))
    column = {"grade": name}
    said = asked(path, columns=column)
    assert said.endswith(f"small numbers of {name!r} are likely the good ones: --small-is-good; if large ones are: "
                         "--large-is-good")  # fmt: skip
    words = ("--column", f"grade={name}")
    assert first(path, *words) is None
    assert first(path, *words, "--small-is-good") == ("oak", "yew")
    assert first(path, *words, "--large-is-good") == ("yew", "oak")


def test_frames_ask_it_too():
    frame = {"item": ["x", "y"], "error_score": [1, 3]}
    columns = {"grade": "error_score"}
    with pytest.raises(JudgmentError, match="small numbers of 'error_score' are likely the good ones"):
        cr.Grades.from_frame(frame, columns=columns)
    assert cr.Grades.from_frame(frame, columns=columns, small_is_good=True).grade.tolist() == [-1, -3]
    assert cr.Grades.from_frame(frame, columns=columns, small_is_good=False).grade.tolist() == [1, 3]


def test_words_for_a_bad_thing_are_turned_round(write):
    path = write(graded("harmful", lambda place, n: "yes" if place + n % 2 > 1 else "no"))
    columns = {"grade": "harmful"}
    said = asked(path, columns=columns)
    assert "if 'no' is the best grade: --small-is-good; if 'yes' is: --large-is-good" in said
    assert cr.read_judgments(path, columns=columns, small_is_good=True).levels == ("yes", "no")
    assert cr.read_judgments(path, columns=columns, small_is_good=False).levels == ("no", "yes")
    assert cr.read_judgments(path, columns=columns, levels=["yes", "no"]).levels == ("yes", "no")
    assert cr.read_judgments(path, columns=columns, nominal=True).nominal


def test_the_metric_may_stand_in_another_column(write):
    head = "model,prompt_id,judge,metric,score\n"
    rows = [f"{model},p{p},g,{metric},{place}" for place, model in enumerate(MODELS) for p in range(3)
            for metric in ("toxicity", "quality")]  # fmt: skip
    path = write(head + "\n".join(rows) + "\n")
    assert "'toxicity'" in asked(path, where={"metric": "toxicity"})
    assert cr.read_judgments(path, where={"metric": "quality"}).n_judgments == 12
    only = write(head + "\n".join(row for row in rows if "toxicity" in row) + "\n", "only.csv")
    assert "'toxicity'" in asked(only)


def test_numbers_beside_a_few_words_are_asked_about(write):
    path = write("model,judge,risk_score\n" + "".join(f"m{n},j,{n}\n" for n in range(20)) + "m1,k,oops\n")
    assert "--small-is-good" in asked(path, invalid="drop")
    with pytest.warns(cr.errors.DataWarning, match="left out 1 of 21"):
        assert cr.read_judgments(path, invalid="drop", small_is_good=True).grade.tolist()[:3] == [0, -1, -2]


_LANGFUSE = [
    {"id": str(n), "timestamp": "2025-05-01T10:00:00Z", "name": "NAME", "value": n / 9, "source": "EVAL",
     "trace_id": f"t{n % 5}", "data_type": "NUMERIC", "string_value": None, "author_user_id": f"u{n}"}
    for n in range(10)
]  # fmt: skip
_FORM = "Timestamp,Email Address,NAME [Oak],NAME [Elm]\n" + "".join(
    f"2025/05/0{n} 10:11:12 AM GMT+2,p{n}@example.org,{n % 5 + 1},{n % 3 + 1}\n" for n in range(1, 8)
)
_LABELS = "item,annotator,NAME\n" + "".join(f"x{n % 4},a{n},{n % 3}\n" for n in range(12))
_EVALS = [{"spec": {"completion_fns": ["gpt"]}}] + [
    {"run_id": "r", "event_id": n, "sample_id": f"s{n}", "type": "metrics", "data": {"NAME": n / 5}} for n in range(5)
]
_INSIDE = {
    "langfuse.jsonl": _LANGFUSE, "form.csv": _FORM, "labels.csv": _LABELS, "evals.jsonl": _EVALS,
}  # fmt: skip


@pytest.mark.parametrize("name", _INSIDE)
@pytest.mark.parametrize("metric", ["toxicity", "bias score", "How harmful was it?"])
def test_every_importer_asks_the_same(write, name, metric):
    held = _INSIDE[name]
    text = held if isinstance(held, str) else json.dumps(held)
    text = text.replace("NAME", metric)
    path = write(text if isinstance(held, str) else json.loads(text), name)
    columns = {"columns": {"grade": metric}} if name == "labels.csv" else {}
    said = asked(path, **columns)
    assert "--small-is-good" in said
    assert "--large-is-good" in said
    down, up = (cr.read_judgments(path, small_is_good=small, **columns) for small in (True, False))
    assert down.grade.tolist() == [-value for value in up.grade.tolist()]


# the order of words --------------------------------------------------------------------------------------------------

CODES = [
    ("👎", "👍"), ("thumbs_down", "thumbs_up"), ("THUMBS_DOWN", "THUMBS_UP"), (":thumbsdown:", ":thumbsup:"),
    ("down", "up"), ("downvote", "upvote"), ("dislike", "like"), ("fail", "pass"), ("FAILED", "PASSED"), ("I", "C"),
    ("I", "P", "C"), ("no", "yes"), ("N", "Y"), ("no", "partly", "yes"), ("FALSE", "TRUE"), ("bad", "good"),
    ("incorrect", "correct"), ("wrong", "right"), ("incorrect", "partially correct", "correct"), ("lose", "win"),
    ("loss", "tie", "win"), ("reject", "accept"), ("✗", "✓"), ("❌", "✅"), ("★☆☆", "★★☆", "★★★"),
    ("⭐", "⭐⭐", "⭐⭐⭐"),
    ("unhelpful", "helpful"), ("irrelevant", "relevant"), ("Not relevant", "Partially relevant", "Relevant"),
    ("unsafe", "safe"), ("hallucinated", "factual"), ("poor", "fair", "good", "excellent"), ("worse", "same", "better"),
    ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"),
    ("never", "rarely", "sometimes", "often", "always"), ("very low", "low", "medium", "high", "very high"),
    ("Not at all important", "Slightly important", "Moderately important", "Very important", "Extremely important"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("stimme gar nicht zu", "stimme eher nicht zu", "teils/teils", "stimme eher zu", "stimme voll zu"),
    ("Stimme überhaupt nicht zu", "Stimme nicht zu", "Neutral", "Stimme zu", "Stimme voll und ganz zu"),
    ("trifft nicht zu", "trifft eher nicht zu", "trifft eher zu", "trifft zu"), ("nein", "vielleicht", "ja"),
    ("mangelhaft", "ausreichend", "befriedigend", "gut", "sehr gut"), ("nie", "selten", "manchmal", "oft", "immer"),
    ("unwichtig", "wichtig", "sehr wichtig"), ("falsch", "richtig"), ("Daumen runter", "Daumen hoch"),
]  # fmt: skip


@pytest.mark.parametrize("scale", CODES, ids=lambda scale: "-".join(scale[:2]))
def test_known_codes_are_read_in_their_order(write, scale):
    top = len(scale) - 1
    path = write(graded("rating", lambda place, n: scale[max(top - place - (n % 5 == 0), 0)]))
    assert cr.read_judgments(path).levels == scale


@pytest.mark.parametrize("scale", [("👎", "👍"), ("I", "C"), ("stimme nicht zu", "teils/teils", "stimme voll zu")])
def test_known_codes_put_the_best_model_first(write, scale):
    top = len(scale) - 1
    path = write(graded("verdict", lambda place, n: scale[max(top - round(place / 3 * top) - (n % 6 == 0), 0)]))
    best, worst = first(path, "--column", "grade=verdict")
    assert (best in MODELS[:2], worst in MODELS[2:]) == (True, True)


def test_spellings_of_one_word_are_one_level(write):
    path = write("item,rater,rating\nx,a,Yes\ny,a,no\nx,b,YES\ny,b,No\nx,c,yes \ny,c, NO\n")
    assert cr.read_judgments(path).grade.tolist() == [1, 0, 1, 0, 1, 0]
    assert cr.read_judgments(path, levels=["No", "Yes"]).grade.tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("words", [("alef", "bet"), ("toxic", "not toxic"), ("spam", "ham"), ("X", "O")])
def test_two_other_words_are_asked_with_both_readings(write, words):
    path = write(graded("label", lambda place, n: words[(place + n) % 2]))
    said, (one, other) = asked(path), sorted(words)
    for worse, better in ((one, other), (other, one)):
        assert f"if {worse!r} is the worse one: --levels {shlex.quote(f'{worse},{better}')}" in said
        assert cr.read_judgments(path, levels=[worse, better]).levels == (worse, better)
    assert said.endswith("if they have no order: --nominal")


@pytest.mark.parametrize("words", [("alef", "bet", "gimel"), ("great", "very good", "poor"), ("red", "green", "blue")])
def test_no_order_is_printed_that_is_not_known(write, words):
    path = write(graded("label", lambda place, n: words[(place + n) % 3]))
    said = asked(path)
    assert "give their order, worst first, with --levels; if they have no order: --nominal" in said
    assert ",".join(sorted(words)) not in said


@pytest.mark.parametrize("words", [("negative", "neutral", "positive"), ("small", "medium", "large"), ("C", "B", "A")])
def test_words_that_may_be_classes_are_asked_in_their_order(write, words):
    path = write(graded("label", lambda place, n: words[(place + n) % 3]))
    assert f"if this is their order, worst first: --levels {','.join(words)}; if they have no order" in asked(path)


@pytest.mark.parametrize(
    "scale", [CODES[33], CODES[34], CODES[36], CODES[38], ("Disagree", "Agree"), ("Bad", "Good"), ("Nein", "Ja")]
)
def test_forms_use_the_order_of_their_words(write, scale):
    rows = [
        f"2025/05/{n % 28 + 1:02} 10:11:12 AM GMT+2,p{n}@example.org,{scale[-1 - (n % 4 == 0)]},{scale[n % 4 == 0]}\n"
        for n in range(24)
    ]
    path = write("Timestamp,Email Address,The answer was helpful [Oak],The answer was helpful [Yew]\n" + "".join(rows))
    grades = cr.read_judgments(path)
    assert not grades.nominal
    assert list(grades.levels) == [word for word in scale if any(word in row.split(",")[2:] for row in
                                                                 map(str.strip, rows))]  # fmt: skip
    assert first(path) == ("Oak", "Yew")


# in which order answers were shown -----------------------------------------------------------------------------------


def compared(name, cell, *, winner="A", others="", rows=48):
    """Pairs whose verdict is in the order shown: ``cell(turned, left, right)`` tells it, oak is the best throughout."""
    lines = []
    for n in range(rows):
        low, high = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][n % 6]
        left, right = (MODELS[low], MODELS[high]) if n % 4 < 2 else (MODELS[high], MODELS[low])
        turned = n // 6 % 2 == 1
        shown = (right, left) if turned else (left, right)
        # now and then the worse one wins
        best = MODELS[low] if n % 11 else MODELS[high]
        verdict = {"A": "AB", "left": ("left", "right"), "model_a": ("model_a", "model_b")}[winner][shown.index(best)]
        lines.append(f"{n},{left},{right},{verdict},j{n % 3},{cell(turned, left, right)}")
    return f"prompt,model_a,model_b,winner,judge,{name}\n" + "\n".join(lines) + "\n"


def _flag(yes, no):
    return lambda turned, *_: yes if turned else no


ORDERS = {
    "swapped": _flag(1, 0), "is_swapped": _flag("True", "False"), "is_flipped": _flag(1, 0),
    "reversed": _flag("yes", "no"),
    "positions_swapped": _flag("TRUE", "FALSE"), "flip": _flag("y", "n"), "order_switched": _flag(1.0, 0.0),
    "order": _flag("BA", "AB"), "presentation_order": _flag("b-a", "a-b"), "shown_order": _flag("B then A", "A then B"),
    "display order": _flag("B/A", "A/B"), "ordering": _flag("swapped", "original"),
    "answer_order": _flag("reversed", "normal"),
    "first_shown": _flag("model_b", "model_a"), "shownFirst": _flag("B", "A"),
    "presented_first": _flag("right", "left"),
    "first": lambda turned, left, right: right if turned else left,
    "displayed_first": lambda turned, left, right: right if turned else left,
    "a_first": _flag(0, 1), "model_a_first": _flag("false", "true"), "b_first": _flag(1, 0),
    "left_is_b": _flag("yes", "no"),
    "left_is_a": _flag(0, 1), "aIsLeft": _flag("False", "True"), "position_a": _flag(2, 1), "position_b": _flag(1, 2),
    "position": _flag("second", "first"), "shown_first": _flag(2, 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "winner"),
    [
        *((name, "A") for name in ORDERS),
        *((n, w) for n in ("is_flipped", "order", "a_first") for w in ("left", "model_a")),
    ],
)
def test_the_order_shown_is_asked_for_and_turned_back(write, name, winner):
    path = write(compared(name, ORDERS[name], winner=winner))
    said = asked(path)
    assert "may say which of two was shown first" in said
    option = f"--swapped {shlex.quote(name)}"
    assert f"'model_b' was first in 24 of 48 rows: {option}; if 'winner' is about" in said
    assert said.endswith("'model_a' and 'model_b' as they stand: --swapped none")
    turned = cr.read_judgments(path, swapped=name)
    shown = cr.read_judgments(path, swapped="none")
    assert turned.shown.all()
    assert not shown.shown.any()
    wins = dict.fromkeys(MODELS, 0)
    for row in turned.frame().iter_rows(named=True):
        wins[row[row["winner"]]] += 1
    assert sorted(wins, key=lambda model: -wins[model]) == list(MODELS)
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    left = [row[2] if str(ORDERS[name](True, row[1], row[2])) == row[-1] else row[1] for row in rows]
    assert turned.frame()["left"].to_list() == left


@pytest.mark.parametrize(("name", "yes", "no"), [("order", 2, 1), ("presented_first", 1, 0), ("position", 1, 2)])
def test_numbers_that_may_mean_either_order_are_asked_with_both(write, name, yes, no):
    path = write(compared(name, _flag(yes, no)))
    said = asked(path)
    for value in (yes, no):
        assert f"if 'model_b' was first where it is {value}: --swapped {name}={value}" in said
    assert first(path, "--swapped", f"{name}={yes}") == ("oak", "yew")
    assert first(path, "--swapped", f"{name}={no}") == ("yew", "oak")
    assert "which may mean anything" in asked(path, swapped=name)
    assert "no row has '7'" in asked(path, swapped={name: 7})
    assert "names no column" in asked(path, swapped="ordre")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("trial_order", lambda turned, left, right: len(left) * 7 + len(right) * 3 + turned * 5),
        ("first_name", _flag("Ann", "Bob")), ("order_id", _flag(1, 2)), ("swapped", _flag(0, 0)),
        ("side", _flag("u", "v")),
        ("left_text", _flag("yes", "no")),
    ],
)  # fmt: skip
def test_other_columns_are_not_asked_about(write, name, cell):
    rows = [(a, b) for a in MODELS for b in MODELS if a != b] * 2
    lines = [f"{n},{a},{b},{'AB'[n % 2]},j,{cell(n % 3 == 0, a * (n % 5), b)}" for n, (a, b) in enumerate(rows)]
    path = write(f"prompt,model_a,model_b,winner,judge,{name}\n" + "\n".join(lines) + "\n")
    assert cr.read_judgments(path).n_judgments == len(rows)


def test_ids_of_winners_are_in_no_order(write):
    rows = [f"{n},{MODELS[n % 3]},{MODELS[3]},{MODELS[n % 3]},j,{n % 2}" for n in range(20)]
    path = write("prompt,model_a,model_b,winner,judge,is_flipped\n" + "\n".join(rows) + "\n")
    kept, turned = cr.read_judgments(path), cr.read_judgments(path, swapped="is_flipped")
    assert (kept.outcome == 1).all()
    assert turned.outcome.tolist() == [1 - 2 * (n % 2) for n in range(20)]


def test_frames_and_covariates_follow_the_order_shown():
    frame = {"model_a": ["x", "x", "y"], "model_b": ["y", "y", "x"], "winner": ["A", "B", "A"], "flipped": [0, 1, 1],
             "length_a": [5, 5, 3], "length_b": [3, 3, 5]}  # fmt: skip
    with pytest.raises(JudgmentError, match="swapped='flipped'; if 'winner' is about"):
        cr.Preferences.from_frame(frame)
    found = cr.Preferences.from_frame(frame, swapped="flipped", covariates="length:difference")
    assert found.frame().rows() == [("x", "y", "left", 2.0), ("y", "x", "right", -2.0), ("x", "y", "left", 2.0)]


def test_exports_know_their_own_order(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"question_id": 1, "model_1": "x", "model_2": "y", "g1_winner": "tie", "g2_winner": "tie"}')
    with pytest.raises(cr.errors.ParameterError, match="applies to plain tables"):
        cr.read_judgments(path, swapped="g1_winner")


# the worse one -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["worse", "worst", "worse_model", "rejected", "loser"])
@pytest.mark.parametrize("form", ["model", "letter", "id"])
def test_the_worse_one_is_no_winner(write, name, form):
    lines = []
    for n in range(36):
        low, high = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][n % 6]
        pair = (MODELS[low], MODELS[high]) if n % 5 < 3 else (MODELS[high], MODELS[low])
        place = pair.index(MODELS[high])
        cell = {"model": ("model_a", "model_b")[place], "letter": "AB"[place], "id": MODELS[high]}[form]
        lines.append(f"{n},{pair[0]},{pair[1]},{'tie' if n == 7 else cell},j{n % 2}")
    path = write(f"prompt,model_a,model_b,{name},judge\n" + "\n".join(lines) + "\n")
    said = asked(path)
    assert (
        f"if {name!r} names the worse one: --column loser={name}; if it names the better one: --column winner={name}"
        in said
    )
    assert first(path, "--column", f"loser={name}") == ("oak", "yew")
    assert first(path, "--column", f"winner={name}") == ("yew", "oak")


def test_a_preference_scale_runs_from_left_to_right(write):
    rows = [{"response1": f"x{n}", "response2": f"y{n}", "overall_preference": n % 7 - 3} for n in range(21)]
    said = asked(write(rows, "steer.jsonl"))
    right, left = "--strength overall_preference=right", "--strength overall_preference=left"
    assert f"if positive means 'response2' is better, as in HelpSteer: {right}; if 'response1' is: {left}" in said


# plain tables as they come -------------------------------------------------------------------------------------------


def test_models_called_a_and_b_are_no_sides(write):
    rows = [("A", "B", "A"), ("B", "A", "A"), ("B", "A", "B"), ("A", "B", "tie")] * 5
    path = write("prompt,model_a,model_b,winner\n" + "".join(f"{n},{a},{b},{w}\n" for n, (a, b, w) in enumerate(rows)))
    said = asked(path)
    assert "if they mean the side: --winner-codes A=left,B=right; if the item: --winner-codes A=item,B=item" in said
    by_side = cr.read_judgments(path, winner_codes={"A": "left", "B": "right"})
    by_item = cr.read_judgments(path, winner_codes={"A": "item", "B": "item"})
    assert by_side.outcome.tolist()[:4] == [1, 1, -1, 0]
    assert by_item.outcome.tolist()[:4] == [1, -1, 1, 0]
    fixed = write("model_a,model_b,winner\nA,B,A\nA,B,B\n", "fixed.csv")
    assert cr.read_judgments(fixed).outcome.tolist() == [1, -1]


@pytest.mark.parametrize("value", ["-1", "99", "-9", "999"])
def test_numbers_that_mean_no_answer_are_said_and_left_out(write, value):
    path = write(graded("score", lambda place, n: value if n % 5 == 0 else 5 - place))
    heard = []
    cr.io.listen(heard.append)
    try:
        grades = cr.read_judgments(path)
        kept = cr.read_judgments(path, missing=[value])
    finally:
        cr.io.listen(None)
    assert any(f"'score' is {value} in 16 of 72 rows; if that means" in line for line in heard)
    assert any(f"16 rows left out, whose answer is '{value}'" in line for line in heard)
    assert (len(grades), len(kept)) == (72, 56)
    assert set(kept.grade.tolist()) == {2, 3, 4, 5}
    assert first(path, "--missing", value) == ("oak", "yew")


@pytest.mark.parametrize(
    "values", [(-1, 0, 1), (-2, -1, 1, 2), (1, 2, 3, 4, 5), (0, 50, 99, 100), (-1, 1), (98, 99, 100)]
)
def test_scales_with_such_numbers_say_nothing(write, values):
    found = inspect(write(graded("score", lambda place, n: values[(place + n) % len(values)])))
    assert not any("no answer" in note for note in found.notes)


def test_ids_in_several_letters_get_one_line(write):
    rows = [f"{n},{('oak', 'OAK', 'Oak')[n % 3]},{('elm', 'Elm')[n % 2]},model_a\n" for n in range(12)]
    notes = inspect(write("prompt,model_a,model_b,winner\n" + "".join(rows))).notes
    said = [note for note in notes if "capital letters" in note]
    alike = "'Elm' and 'elm' differ in capital letters only and count as 2 items, and 1 other item likewise"
    assert said == [f"{alike}; write them alike if they are the same"]


TITLES = {
    "alone": "Human eval round 2 - May 2025\n",
    "with the commas of a sheet": "Human evaluation,,,\n",
    "and a blank line": "Human eval\n\n",
    "two lines": "Human eval\nexported by ann\n",
}


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES)
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_title_above_the_header_is_passed_over(write, title, mark):
    table = graded("score", lambda place, n: 5 - place + n % 2)
    path = write((title + table).replace(",", mark))
    assert len(cr.read_judgments(path)) == 72
    assert len(cr.read_judgments(path, skip_rows=title.count("\n"))) == 72
    with pytest.raises(cr.errors.ParameterError, match="skip_rows=-1 is below 0"):
        cr.read_judgments(path, skip_rows=-1)


def test_lines_of_several_cells_above_the_header_are_skipped_as_said(write):
    path = write("study,7\nmade by,ann\n" + graded("score", lambda place, n: 5 - place))
    assert len(cr.read_judgments(path, skip_rows=2)) == 72


def test_a_title_in_a_sheet_is_passed_over(data_folder):
    path = data_folder / "misread" / "36_human_votes.xlsx"
    found = inspect(path, read_options(invalid="drop"))
    assert (found.would_read, found.kind, found.n_rows, found.n_annotators) == (True, "preference", 80, 3)
    assert "'Human eval round 2 — May 2025' stands above the header and is not read" in found.notes
    roles = {role.word: role.column for role in found.roles}
    assert roles == {"left": "Model A", "right": "Model B", "winner": "Which is better?", "annotator": "Who voted",
                     "query": "Prompt #"}  # fmt: skip


def test_the_query_of_a_search_engineer_is_one(write):
    rows = [f"{q},d{d},Rater {r},{(d + r) % 3}\n" for q in range(5) for d in range(6) for r in range(3)]
    path = write("Search Query ID,Doc,Rater name,Relevance (0-2)\n" + "".join(rows))
    grades = cr.read_judgments(path)
    assert (grades.n_queries, grades.n_items, grades.n_annotators) == (5, 30, 3)


@pytest.mark.parametrize("name", ["response_model", "version", "model_version", "variant", "checkpoint"])
def test_names_of_what_answers(write, name):
    path = write(graded("rating", lambda place, n: 5 - place).replace("model,", f"{name},", 1))
    assert first(path) == ("oak", "yew")


@pytest.mark.parametrize("blank", ["N/A", "", "n/a"])
@pytest.mark.parametrize("share", [20, 4])
def test_blank_answers_name_the_option(write, blank, share):
    path = write(graded("rating", lambda place, n: blank if n % share == 0 else 5 - place, prompts=30))
    assert "or leave such rows out with --drop-invalid" in asked(path)
    with pytest.warns(cr.errors.DataWarning, match="left out"):
        cr.read_judgments(path, invalid="drop")
    words = write(graded("rating", lambda place, n: "skipped" if n % share == 0 else 5 - place), "w.csv")
    assert cr.read_judgments(words, missing=["skipped"]).grade.max() == 5


@pytest.mark.parametrize("name", ["erreurs", "taux_erreur", "Kosten", "défauts", "bounce_rate", "fp_rate",
                                  "not_helpful", "slowness", "riesgo", "costo_total", "Beschwerden"])  # fmt: skip
def test_something_bad_in_other_languages_is_asked_about(write, name):
    path = write(f"model,judge,{name}\noak,g,1\nelm,g,2\nash,g,3\n")
    with pytest.raises(JudgmentError, match="small numbers of"):
        cr.read_judgments(path, columns={"grade": name})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ordre", ("AB", "BA")),
        ("orden", ("AB", "BA")),
        ("seen", ("xy", "yx")),
        ("x", ("01", "10")),
        ("side", ("L", "R")),
    ],
)
def test_an_order_shown_is_asked_about_whatever_it_is_called(write, name, values):
    rows = [f"q{n},oak,elm,g,{'AB'[n % 2]},{values[n % 2]}" for n in range(6)]
    path = write("\n".join([f"prompt,model_a,model_b,judge,winner,{name}", *rows]))
    with pytest.raises(JudgmentError, match="swapped="):
        cr.read_judgments(path)


def test_a_level_that_is_called_none_is_an_answer(write):
    path = write("model,judge,defects\noak,g,none\nelm,g,minor\nash,g,major\n")
    levels = ["major", "minor", "none"]
    assert len(cr.read_judgments(path, columns={"grade": "defects"}, levels=levels)) == 3


def test_true_and_false_are_asked_about_with_both_readings(write):
    path = write("prompt,model_a,model_b,judge,winner\n1,oak,elm,g,true\n2,oak,elm,g,false\n")
    with pytest.raises(JudgmentError, match=r"'true': 'left'.* or .*'true': 'right'"):
        cr.read_judgments(path)
