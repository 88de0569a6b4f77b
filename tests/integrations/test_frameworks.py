"""Inspect, lm-eval-harness and promptfoo call us, each itself; no model is asked."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import crowdrank as cr
from crowdrank.integrations import frameworks


@pytest.mark.filterwarnings("ignore")
def test_inspect_reports_consensus_and_quality_of_graders(tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai", reason="needs Inspect: pip install inspect-ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, exact, scorer
    from inspect_ai.solver import solver

    @scorer(metrics=[])
    def reversed_grader():
        async def score(state, target):
            return Score(value="I" if state.output.completion == target.text else "C")

        return score

    @scorer(metrics=[])
    def seldom():
        async def score(state, target):
            return Score(value="C" if state.output.completion == target.text else "I") if state.epoch == 1 else None

        return score

    samples = [Sample(id=n, input=f"{n}", target="yes" if n % 4 else "no") for n in range(40)]

    @solver
    def says_yes():
        async def solve(state, generate):
            # the second answer is wrong in every eighth sample besides
            said = "yes" if state.epoch == 1 or int(state.sample_id) % 8 != 1 else "no"
            state.output = ModelOutput.from_content("none", said)
            return state

        return solve

    def run(epochs):
        made = frameworks.inspect_graders(first=exact(), second=exact(), wrong=reversed_grader(), rare=seldom())
        task = inspect_ai.Task(dataset=samples, solver=says_yes(), scorer=made, epochs=epochs)
        (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none", log_format="eval")
        return log

    def metrics(log):
        assert log.status == "success", log.error
        return {name: one.value for score in log.results.scores for name, one in score.metrics.items()}

    found = metrics(run(1))
    assert found["consensus"] == pytest.approx(0.75)
    assert found["wrong"] < 0.3 < 0.9 < found["first"]
    # 30 and 25 of 40 answers are right
    again = run(inspect_ai.Epochs(2, frameworks.inspect_reducer()))
    assert metrics(again)["consensus"] == pytest.approx(55 / 80)
    assert again.eval.config.epochs_reducer == ["crowdrank"]
    lost = run(inspect_ai.Epochs(2, "mean"))
    assert lost.status == "error"
    assert "give Epochs(n, inspect_reducer())" in lost.error.message
    # our own reader takes the log that was written
    judgments = cr.read_judgments(again.location)
    assert (judgments.n_judgments, judgments.n_items) == (80, 40)
    gc.collect()  # streams that a run which ends with an error leaves open


@pytest.mark.filterwarnings("ignore")
def test_lm_eval_runs_a_task_that_aggregates_by_consensus(tmp_path):
    lm_eval = pytest.importorskip("lm_eval", reason="needs lm-eval-harness: pip install lm-eval")
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask

    class SaysYes(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return ["yes"] * len(requests)

        loglikelihood = loglikelihood_rolling = None

    rows = [json.dumps({"question": str(n), "right": "yes" if n % 4 else "no"}) for n in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    frameworks.register_lm_eval("crowdrank_consensus")

    def graded(doc, results):
        right = float(results[0] == doc["right"])
        return {"graders": {"first": right, "second": right, "wrong": 1 - right}}

    config = {
        "task": "graded", "dataset_path": "json", "dataset_kwargs": {"data_files": str(tmp_path / "rows.jsonl")},
        "test_split": "train", "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "right",
        "process_results": graded, "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "graders", "aggregation": "crowdrank_consensus", "higher_is_better": True}],
    }  # fmt: skip
    task = ConfigurableTask(config=config)
    found = lm_eval.simple_evaluate(SaysYes(), tasks=[task], bootstrap_iters=0, cache_requests=False)
    assert found["results"]["graded"]["graders,none"] == pytest.approx(0.75)
    assert len(found["samples"]["graded"]) == 40


@pytest.mark.slow
def test_promptfoo_itself_asks_for_the_assertion(tmp_path):
    promptfoo = shutil.which("promptfoo")
    if promptfoo is None:
        pytest.skip("needs promptfoo: npm install --global promptfoo")
    (tmp_path / "v.csv").write_text("item,annotator,grade\n" + "x,a,3\ny,a,1\nx,b,3\ny,b,0\nx,c,3\ny,c,1\n", "utf-8")
    checks = [
        {"type": "python", "value": f"file://{frameworks.__file__}",
         "config": {"votes": str(tmp_path / "v.csv"), "order": order}}
        for order in (["x", "y"], ["y", "x"])
    ]  # fmt: skip
    config = {"prompts": ["{{text}}"], "providers": ["echo"], "tests": [
        {"vars": {"text": "hello"}, "assert": [one]} for one in checks]}  # fmt: skip
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(tmp_path),
             "PROMPTFOO_PYTHON": sys.executable, "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true"}  # fmt: skip
    subprocess.run(
        [promptfoo, "eval", "-c", "promptfooconfig.json", "-o", "found.json", "--no-cache", "--no-table"],
        cwd=tmp_path, env={**os.environ, **quiet}, capture_output=True, check=False, timeout=240,
    )  # fmt: skip
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]["results"]
    right, wrong = sorted(results, key=lambda one: one["testIdx"])
    assert right["success"]
    assert right["score"] > 0.95
    assert "'y' above 'x' is not shown" in wrong["gradingResult"]["reason"]
    # and what it wrote is read
    assert cr.read_judgments(tmp_path / "found.json").n_judgments == 2


def test_promptfoo_calls_the_file_as_it_calls_any(tmp_path):
    (tmp_path / "v.csv").write_text("item,annotator,grade\n" + "x,a,3\ny,a,1\nx,b,3\ny,b,0\nx,c,3\ny,c,1\n", "utf-8")
    program = (
        "import importlib.util, json, sys\n"
        "spec = importlib.util.spec_from_file_location('user', sys.argv[1])\n"
        "user = importlib.util.module_from_spec(spec); spec.loader.exec_module(user)\n"
        "order = lambda *o: user.get_assert('', {'vars': {}, 'config': {'votes': sys.argv[2], 'order': o}})\n"
        "print(json.dumps([order('x', 'y'), order('y', 'x'), order('x', 'w'), order('x')]))\n"
    )
    given = [sys.executable, "-c", program, str(Path(frameworks.__file__)), str(tmp_path / "v.csv")]
    right, wrong, unknown, few = json.loads(subprocess.run(given, capture_output=True, check=True).stdout)
    assert right["pass"]
    assert right["score"] > 0.95
    assert not wrong["pass"]
    assert "'y' above 'x' is not shown" in wrong["reason"]
    assert "'w'" in unknown["reason"]
    assert "order" in few["reason"]
