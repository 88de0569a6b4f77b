"""Length, headers, bold and lists of two answers, out of conversations, prompts of judges and counts of arenas."""

import json

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api.aggregation import read_covariates_of
from crowdrank.errors import CrowdrankError, JudgmentError
from crowdrank.io.exports import detect
from crowdrank.io.judgments import read_files
from crowdrank.io.read_options import read_options

SHORT, LONG = "# Yes\n\n- **one**", "No, and that is a rather long answer.\n\n1. first\n2. second"
NAMES = ("length", "headers", "bold", "lists")
# (l - r) / (l + r) of characters, headers, bold and lists
EXPECTED = [(len(SHORT) - len(LONG)) / (len(SHORT) + len(LONG)), 1.0, 1.0, -1 / 3]


def _talk(text, parts=False):
    said = [{"type": "text", "text": text}] if parts else text
    return [{"role": "user", "content": "# Why\n\n**?**"}, {"role": "assistant", "content": said}]


def _prompt(first, second, marks="[]"):
    def shown(side, text):
        start, end = (f"{marks[0]}The {word} of Assistant {side}'s Answer{marks[-1]}" for word in ("Start", "End"))
        return f"{start}\n{text}\n{end}"

    return f"Why?\n\n{shown('A', first)}\n\n{shown('B', second)}"


def _turns(first, second):
    def shown(side, text):
        start, end = (f"<|The {w} of Assistant {side}'s Conversation with User|>" for w in ("Start", "End"))
        return f"{start}\n\n### User:\n# Why?\n\n### Assistant {side}:\n{text}\n\n{end}"

    return f"{shown('A', first)}\n\n\n{shown('B', second)}"


ARENA = {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "ann"}
HOT = {"id": 1, "model_a": "x", "model_b": "y", "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}
PAIR = {
    "question_id": 1,
    "model_1": "x",
    "model_2": "y",
    "g1_winner": "model_1",
    "g2_winner": "model_1",
    "judge": ["j"],
}
METADATA = {
    "sum_assistant_a_tokens": len(SHORT), "sum_assistant_b_tokens": len(LONG), "turns": 1,
    "header_count_a": {"h1": 1, "h2": 0}, "header_count_b": {"h1": 0, "h2": 0},
    "bold_count_a": {"**": 1, "__": 0}, "bold_count_b": {"**": 0, "__": 0},
    "list_count_a": {"ordered": 0, "unordered": 1}, "list_count_b": {"ordered": 2, "unordered": 0},
}  # fmt: skip
FILES = {
    "arena": ("a.jsonl", [ARENA | {"conversation_a": _talk(SHORT), "conversation_b": _talk(LONG)}]),
    "arena, parts": ("a.jsonl", [ARENA | {"conversation_a": _talk(SHORT, True), "conversation_b": _talk(LONG, True)}]),
    "arena, counted": ("a.jsonl", [ARENA | {"conv_metadata": METADATA}]),
    "arena, 55k": ("a.csv", [HOT | {"response_a": json.dumps([SHORT]), "response_b": json.dumps([LONG])}]),
    "alpaca-eval": (
        "a.json",
        [{"instruction": "q", "generator_1": "x", "generator_2": "y", "output_1": SHORT, "output_2": LONG,
          "annotator": "j", "preference": 1.0}],
    ),
    "mt-bench": ("a.jsonl", [PAIR | {"g1_user_prompt": _prompt(SHORT, LONG), "g2_user_prompt": _prompt(LONG, SHORT)}]),
    "mt-bench, turns": (
        "a.jsonl", [PAIR | {"turn": 2, "g1_user_prompt": _turns(SHORT, LONG), "g2_user_prompt": _turns(LONG, SHORT)}],
    ),
    "arena-hard": (
        "a.jsonl",
        [{"uid": "q", "judge": "j", "model": "y", "baseline": "x", "games": [
            {"score": "A>B", "prompt": [{"role": "user", "content": _prompt(SHORT, LONG, ("<|", "|>"))}]},
            {"score": "A>B", "user_prompt": _prompt(LONG, SHORT, ("<|", "|>"))},
        ]}],
    ),
}  # fmt: skip


def _write(path, rows):
    if path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
    elif path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text(json.dumps(rows) if path.suffix == ".json" else "\n".join(map(json.dumps, rows)))
    return path


def _style(path, control="style", **options):
    return read_files([path], read_options(**read_covariates_of(control), **options))


@pytest.mark.parametrize("form", FILES)
def test_style_is_read_out_of_every_layout(tmp_path, form):
    name, rows = FILES[form]
    path = _write(tmp_path / name, rows)
    assert detect(path) == form.partition(",")[0]
    votes = _style(path)
    assert votes.covariate_names == NAMES
    # the second game of a pair has the sides exchanged
    signs = [1, -1][: len(votes)]
    assert np.allclose(votes.covariates, np.outer(signs, EXPECTED))
    assert cr.read_judgments(path).covariates is None


def test_a_parquet_file_and_fields_of_ones_own(tmp_path):
    rows = [FILES["arena"][1][0] | {"effort_a": 3, "effort_b": 1, "meta": {"n": {"a": 3.0, "b": 1.0}}}]
    path = _write(tmp_path / "a.parquet", rows)
    assert np.allclose(_style(path).covariates, [EXPECTED])
    assert _style(path, "effort").covariates.tolist() == [[0.5]]
    columns = {"length_left": "meta.n.a", "length_right": "meta.n.b"}
    for source in (None, "table"):
        assert _style(path, "length", columns=columns, source=source).covariates.tolist() == [[0.5]]
    plain = _style(path, "lists", source="table", columns={"lists_left": "meta.n", "lists_right": "effort_b"})
    assert plain.covariates.tolist() == [[(4 - 1) / (4 + 1)]]
    with pytest.raises(CrowdrankError, match="is about a covariate; add control='length'"):
        cr.read_judgments(path, columns=columns)


def test_what_cannot_be_counted_is_said(tmp_path):
    bare = {"question_id": "q", "judge": "j", "model": "y", "baseline": "x", "games": [{"score": "A>B"}]}
    with pytest.raises(JudgmentError, match="holds neither 'length' of both answers nor their texts to count it in"):
        _style(_write(tmp_path / "a.jsonl", [bare]))
    some = [FILES["arena"][1][0], ARENA | {"question_id": "q2", "conversation_a": _talk(SHORT), "conversation_b": None}]
    path = _write(tmp_path / "b.jsonl", some)
    with pytest.raises(JudgmentError, match="'length_right' is blank in row 2"):
        _style(path)
    with pytest.warns(cr.errors.DataWarning, match="left out"):
        assert len(_style(path, invalid="drop")) == 1


def test_control_finds_the_models_in_an_arena_dump(tmp_path):
    rng = np.random.default_rng(0)
    models, quality, usual = "wxyz", [1.0, 0.3, -0.3, -1.0], [40, 60, 100, 180]
    rows = []
    for n in range(1500):
        left, right = rng.choice(4, 2, replace=False)
        sizes = [int(usual[side] * np.exp(rng.normal(0, 0.6))) + 1 for side in (left, right)]
        liking = quality[left] - quality[right] + 2 * (sizes[0] - sizes[1]) / sum(sizes)
        rows.append({
            "question_id": n, "model_a": models[left], "model_b": models[right], "judge": f"j{n % 3}",
            "winner": "model_a" if rng.logistic() + liking > 0 else "model_b",
            "conversation_a": _talk("a" * sizes[0]), "conversation_b": _talk("b" * sizes[1]),
        })  # fmt: skip
    path = _write(tmp_path / "a.jsonl", rows)
    fair, plain = (
        cr.aggregate(_style(path, "length").across_queries(), "bradley_terry", **given)
        for given in ({"control": ["length"]}, {})
    )
    assert fair.order() == list(models)
    assert np.abs(fair.scores - quality).max() < 0.35 < np.abs(plain.scores - quality).max()
