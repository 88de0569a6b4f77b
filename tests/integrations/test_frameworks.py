"""Inspect and lm-eval-harness call us, the real packages; no model is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from crowdrank.integrations import frameworks


@pytest.mark.filterwarnings("default")
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

    samples = [Sample(input=f"{n}", target="yes" if n % 4 else "no") for n in range(40)]

    @solver
    def says_yes():
        async def solve(state, generate):
            state.output = ModelOutput.from_content("none", "yes")
            return state

        return solve

    made = frameworks.inspect_graders(first=exact(), second=exact(), wrong=reversed_grader())
    task = inspect_ai.Task(dataset=samples, solver=says_yes(), scorer=made)
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none", log_format="json")
    assert log.status == "success", log.error
    metrics = {name: one.value for score in log.results.scores for name, one in score.metrics.items()}
    assert metrics["consensus"] == pytest.approx(0.75)
    assert metrics["wrong"] < 0.3 < 0.9 < metrics["first"]


@pytest.mark.filterwarnings("default")
def test_lm_eval_aggregates_by_consensus():
    pytest.importorskip("lm_eval", reason="needs lm-eval-harness: pip install lm-eval")
    from lm_eval.api.registry import get_aggregation

    frameworks.register_lm_eval("crowdrank_consensus")
    rows = [{"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1}] * 20
    assert get_aggregation("crowdrank_consensus")(rows) == pytest.approx(0.5)


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
