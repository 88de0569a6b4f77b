"""What a reader must not guess: which way numbers count, the order of words, who was shown first."""

import json
import shlex

import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.data.directions import bad_word
from crowdrank.errors import JudgmentError
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
