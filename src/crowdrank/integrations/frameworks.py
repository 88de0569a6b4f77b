"""Evaluation frameworks: several graders in Inspect, an aggregation of lm-eval-harness, an assertion of promptfoo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from math import isnan
from typing import Any

import crowdrank as cr
from crowdrank.errors import CrowdrankError, JudgmentError, MissingExtraError, ParameterError

_KEY = "crowdrank"
_ROUNDING = 1e-9


def consensus_of_graders(rows: Sequence[Mapping[str, float]]) -> cr.Consensus:
    """Return the consensus of several graders on the samples of an evaluation.

    Parameters
    ----------
    rows
        The grade of each grader, sample by sample; a grader may be missing from some.

    Examples
    --------
    >>> rows = [{"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1}, {"a": 1, "b": 1, "c": 1}] * 20
    >>> consensus_of_graders(rows).quality.frame()["annotator"].to_list()[-1]
    'c'
    """
    cells = [(who, n, float(grade)) for n, row in enumerate(rows) for who, grade in row.items()]
    if not cells:
        raise JudgmentError("no grader gave a grade; there is nothing to find a consensus of")
    annotators, items, grades = zip(*cells, strict=True)
    return cr.aggregate({"annotator": annotators, "item": items, "grade": grades}, want="grade")


def mean_of_consensus(rows: Sequence[Mapping[str, float]]) -> float:
    """Return the mean over samples of the grade that the graders' consensus gives: the aggregation of lm-eval.

    Examples
    --------
    >>> rows = [{"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1}, {"a": 1, "b": 1, "c": 1}] * 20
    >>> round(mean_of_consensus(rows), 2)
    0.67
    """
    consensus = consensus_of_graders(rows)
    if consensus.grade is None:
        return float(consensus.scores.mean())
    grades: list[float] = consensus.labels().cast(float).to_list()
    return sum(grades) / len(grades)


def register_lm_eval(name: str = _KEY) -> None:
    """Register the aggregation with lm-eval-harness under a name that a task's ``aggregation`` can give.

    The task's ``process_results`` returns the grades of a document as a dict of grader and number.
    """
    registry = _package("lm_eval.api.registry", "lm-eval")
    registry.register_aggregation(name)(mean_of_consensus)


def inspect_graders(**graders: Any) -> Any:
    """Return a scorer of Inspect that asks several scorers, and whose metrics are their consensus and their quality.

    With epochs give :func:`inspect_reducer` along: each epoch is an answer of its own, which the consensus is found of.

    Parameters
    ----------
    graders
        Scorers by name; their values have to be numbers, or the letters and words that Inspect counts as numbers.
    """
    scoring = _package("inspect_ai.scorer", "inspect-ai")
    to_number = scoring.value_to_float()

    def rows(scores: Any) -> list[Mapping[str, float]]:
        # older versions give metrics the scores themselves
        found = [getattr(one, "score", one) for one in scores]
        kept = [row for one in found for row in (one.metadata or {}).get(_KEY, ())]
        if any(abs(one.as_float() - _mean((one.metadata or {}).get(_KEY, ()))) > _ROUNDING for one in found):
            raise ParameterError(
                "epochs were reduced to one score before the consensus; give Epochs(n, inspect_reducer())"
            )
        return kept

    @scoring.metric(name="consensus")  # type: ignore[untyped-decorator]
    def consensus() -> Any:
        return lambda scores: mean_of_consensus(rows(scores))

    @scoring.metric(name="quality")  # type: ignore[untyped-decorator]
    def quality() -> Any:
        def measure(scores: Any) -> dict[str, float]:
            table = consensus_of_graders(rows(scores)).quality
            return {} if table is None else dict(table.frame().select("annotator", "quality").rows())

        return measure

    @scoring.scorer(metrics=[consensus(), quality()], name="graders")  # type: ignore[untyped-decorator]
    def scorer() -> Any:
        async def score(state: Any, target: Any) -> Any:
            given = {name: one for name, ask in graders.items() if (one := await ask(state, target)) is not None}
            grades = {name: grade for name, one in given.items() if not isnan(grade := to_number(one.value))}
            if not grades:
                return None
            told = {name: one.explanation for name, one in given.items()}
            return scoring.Score(value=_mean([grades]), metadata={_KEY: [grades], "explanations": told})

        return score

    return scorer()


def inspect_reducer() -> Any:
    """Return the reducer of epochs for :func:`inspect_graders`: ``Epochs(5, inspect_reducer())``.

    The value is the mean over epochs and graders, as Inspect's own would be; the grades of all epochs stay beside it.
    """
    scoring = _package("inspect_ai.scorer", "inspect-ai")

    @scoring.score_reducer(name=_KEY)  # type: ignore[untyped-decorator]
    def reducer() -> Any:
        def reduce(scores: list[Any]) -> Any:
            kept = [row for one in scores for row in (one.metadata or {}).get(_KEY, ())]
            return scoring.Score(value=_mean(kept), metadata={_KEY: kept})

        return reduce

    return reducer()


def _mean(rows: Sequence[Mapping[str, float]]) -> float:
    """The mean of all grades in rows."""
    grades = [grade for row in rows for grade in row.values()]
    return sum(grades) / max(len(grades), 1)


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether votes show an order: the assertion of promptfoo, whose ``config`` names votes and items.

    In ``promptfooconfig.yaml``: ``type: python``, ``value: file://.../crowdrank/integrations/frameworks.py`` and
    ``config: {votes: votes.csv, order: [prompt-2, prompt-1], level: 0.95}``.

    Examples
    --------
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 3, 0, 3, 1]}
    >>> get_assert("", {"config": {"votes": votes, "order": ["x", "y"]}})["pass"]
    True
    """
    from crowdrank.integrations.pytest_plugin import assert_ranked

    config = dict(context.get("config") or {})
    if "votes" not in config or len(config.get("order") or ()) < 2:
        return {"pass": False, "score": 0.0, "reason": "config needs votes, a file, and order, two items or more"}
    try:
        consensus = cr.aggregate(config["votes"])
        assert_ranked(consensus, *config["order"], level=float(config.get("level", 0.95)))
    except (AssertionError, CrowdrankError) as error:
        return {"pass": False, "score": 0.0, "reason": str(error)}
    least = min(consensus.beats(a, b) for a, b in pairwise(config["order"]))
    return {"pass": True, "score": float(least), "reason": f"the votes show it with a probability of {least:.3f}"}


def _package(module: str, package: str) -> Any:
    """A module of a framework, or which package to install."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(f"this needs {package}; install it with pip install {package}") from None
