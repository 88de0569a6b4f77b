"""jsPsych trials with two things on the screen are preferences or a question, never grades of the page."""

import json
from itertools import combinations

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.io.inspection import inspect

PICTURES = ("cat.png", "cow.png", "dog.png", "owl.png")
PAIRS = [(left, right) if n % 2 else (right, left) for n, (left, right) in enumerate(combinations(PICTURES, 2))]


@pytest.fixture(name="save")
def _save(tmp_path):
    """Write the trials of two participants, each of whom prefers what comes first in the alphabet."""

    def save(fields, answer, *, plugin="html-button-response"):
        path = tmp_path / "trials.json"
        trials = [
            {
                "trial_type": plugin, "trial_index": n, "time_elapsed": 900 * n, "rt": 400 + n, "subject": who,
                "stimulus": "Which is nicer?", "response": answer(left, right), **fields(left, right),
            }
            for who in ("s1", "s2")
            for n, (left, right) in enumerate(PAIRS)
        ]  # fmt: skip
        path.write_text(json.dumps(trials))
        return path

    return save


def _number(left, right):
    return int(right < left)


def _best(path, **options):
    preferences = cr.read_judgments(path, **options)
    assert preferences.kind == "preference"
    assert len(preferences) == 2 * len(PAIRS)
    frame = preferences.frame()
    sides = zip(frame["left"], frame["right"], preferences.outcome, strict=True)
    return [left if outcome == 1 else right for left, right, outcome in sides]


def test_buttons_that_are_the_items_say_who_won(save):
    path = save(lambda left, right: {"choices": [left, right]}, _number)
    assert _best(path) == [min(pair) for pair in PAIRS] * 2


def test_buttons_in_a_csv_cell_say_who_won(save, tmp_path):
    import polars as pl

    trials = json.loads(save(lambda left, right: {"choices": [left, right]}, _number).read_text())
    rows = [trial | {"choices": json.dumps(trial["choices"])} for trial in trials]
    pl.DataFrame(rows).write_csv(tmp_path / "trials.csv")
    assert _best(tmp_path / "trials.csv") == [min(pair) for pair in PAIRS] * 2


@pytest.mark.parametrize(
    "fields",
    [
        lambda left, right: {"left_image": left, "right_image": right},
        lambda left, right: {"stimulus": f'<img src="{left}" width=90><img src="{right}">'},
        lambda left, right: {"stimulus": [left, right]},
    ],
)
def test_numbers_of_buttons_are_asked_about(save, fields):
    path = save(fields, _number)
    with pytest.raises(JudgmentError, match=r"response' holds 0 and 1; say what they mean"):
        cr.read_judgments(path)
    assert inspect(path).next.endswith("--winner-codes 0=left,1=right")
    assert _best(path, winner_codes={0: "left", 1: "right"}) == [min(pair) for pair in PAIRS] * 2


def test_keys_are_asked_about_and_the_command_works(save):
    path = save(
        lambda left, right: {"stim_left": left, "stim_right": right},
        lambda left, right: "fj"[_number(left, right)],
        plugin="html-keyboard-response",
    )
    assert inspect(path).next.endswith("--winner-codes f=left,j=right")
    assert _best(path, winner_codes={"f": "left", "j": "right"}) == [min(pair) for pair in PAIRS] * 2


def test_an_answer_that_is_an_item_needs_no_code(save):
    path = save(lambda left, right: {"left": left, "right": right}, min, plugin="html-keyboard-response")
    assert _best(path) == [min(pair) for pair in PAIRS] * 2


def test_trials_with_one_stimulus_for_all_are_no_grades_of_it(save):
    path = save(lambda left, right: {"picture": left}, _number)
    with pytest.raises(JudgmentError, match=r"all 12 trials have the stimulus 'Which is nicer\?'"):
        cr.read_judgments(path)
    assert inspect(path).next.endswith("--column item=picture")


def test_buttons_that_are_the_same_everywhere_are_a_scale(save):
    path = save(lambda left, right: {"choices": ["bad", "good"], "stimulus": left + right}, _number)
    assert cr.read_judgments(path).kind == "grade"


def test_more_than_two_changing_buttons_are_refused(save):
    path = save(lambda left, right: {"choices": [left, right, "fox.png"]}, _number)
    with pytest.raises(JudgmentError, match="only choices between two are read"):
        cr.read_judgments(path)
