"""Logs of OpenAI Evals with metrics in place of right and wrong."""

import json

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError


@pytest.fixture(name="save")
def _save(tmp_path):
    def save(*events):
        first = {"spec": {"completion_fns": ["gpt-4"], "eval_name": "e.dev.v0", "base_eval": "e"}}
        rows = [first, *({"sample_id": f"s{n}", "event_id": n, **event} for n, event in enumerate(events))]
        path = tmp_path / "log.jsonl"
        path.write_text("\n".join(map(json.dumps, [*rows, {"final_report": {"score": 0.5}}])))
        return path

    return save


def _metrics(**data):
    return {"type": "metrics", "data": data}


def test_the_only_metric_is_the_grade(save):
    path = save(
        {"type": "sampling", "data": {"sampled": ["x"]}}, _metrics(score=0.5, choice="B"), _metrics(score=1, choice="A")
    )
    assert cr.read_judgments(path).grade.tolist() == [0.5, 1.0]


def test_one_of_several_metrics_is_chosen(save):
    path = save(_metrics(accuracy=1, edits=4), _metrics(accuracy=0, edits=9))
    with pytest.raises(JudgmentError, match="the metrics 'accuracy' and 'edits'; choose one"):
        cr.read_judgments(path)
    assert cr.read_judgments(path, answer="accuracy").grade.tolist() == [1.0, 0.0]
    with pytest.raises(JudgmentError, match="the file does not say whether large values of 'edits' are good"):
        cr.read_judgments(path, answer="edits")
    assert cr.read_judgments(path, answer="edits", small_is_good=True).grade.tolist() == [-4.0, -9.0]


def test_a_log_without_any_number_says_what_it_lacks(save):
    with pytest.raises(JudgmentError, match="the file has no metrics; write it with them"):
        cr.read_judgments(save(_metrics(choice="A"), _metrics(choice="B")))


def test_right_and_wrong_go_before_metrics(save):
    path = save({"type": "match", "data": {"correct": True}}, _metrics(bleu=3.5), _metrics(bleu=7.5))
    assert cr.read_judgments(path).grade.tolist() == [1.0]
    assert cr.read_judgments(path, answer="bleu").grade.tolist() == [3.5, 7.5]


def test_samples_alone_are_refused(save):
    with pytest.raises(JudgmentError, match="no match or metrics events, only 'sampling'"):
        cr.read_judgments(save({"type": "sampling", "data": {"sampled": ["x"]}}))
