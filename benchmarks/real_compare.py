"""Whether held-out judgments name a good method, on public sets with gold: ``python -m benchmarks.real_compare``.

The sets are looked for in ``CROWDRANK_DATA``. Every method that takes the judgments is compared without the gold, by
``crowdrank.compare_methods``, and then measured against it. The tables go to ``docs/evidence/compare.md``.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .real_grades import accuracy_of

ROOT = Path(__file__).parents[1]
POINT = 0.01
"""A method this close to the best counts as good."""

USUAL = "latent_score"
"""The method that is first on most sets: without it there is more to choose."""


@dataclass(frozen=True)
class Case:
    """A public set whose gold does not come from its own crowd, and what methods are measured by there.

    ``order`` is for measures about pairs, ``grade`` for those about grades; methods in ``skip`` take minutes there.
    """

    name: str
    title: str
    order: str | None
    grade: str | None = None
    skip: tuple[str, ...] = ()


CASES = (
    Case("web-search-relevance5", "web search, 5 levels", "pair_accuracy", "accuracy"),
    Case("trec-rf10-labels-full", "TREC, 3 levels", "ndcg@10", "accuracy"),
    Case("trec-rf10-crowd-gold", "TREC gold part, 2 levels", "ndcg@10"),
    Case("trec2011-crowd", "TREC 2011, 2 levels", "ndcg@10"),
    Case("adult-content2", "adult content, 4 levels", "pair_accuracy", "accuracy"),
    Case("peer-grading", "peer grading, 13 levels", "pair_accuracy"),
    Case("crowd-truth-inference/emotion", "emotion, 94 values", "pair_accuracy"),
    Case("crowd-truth-inference/dog", "dog, 4 classes", None, "accuracy"),
    Case("crowd-truth-inference/face-sentiment", "face, 4 classes", None, "accuracy"),
    Case("crowd-truth-inference/duck", "duck, 2 classes", None, "accuracy"),
    Case("crowd-truth-inference/product", "product, 2 classes", None, "accuracy"),
    Case("llmbar-judges", "LLMBar, preferences", "preference_accuracy"),
    Case("letor-mq2008-agg", "MQ2008-agg, rankings", "ndcg@10", skip=("latent_score", "mallows")),
    Case("preflib/dots", "dots, rankings", "pair_accuracy"),
    Case("preflib/puzzle", "puzzle, rankings", "pair_accuracy"),
)


@dataclass(frozen=True)
class Choice:
    """The method that is first by a measure, and how far it is behind the best that the measure fits.

    ``behind_rest`` is the same where `USUAL` does not take part.
    """

    method: str
    behind: float
    behind_rest: float


@dataclass(frozen=True)
class Measured:
    """One set: by metric the figure of each method against the gold, and the choice of each measure."""

    gold: dict[str, dict[str, float]]
    choices: dict[str, Choice]


def measured(case: Case) -> Measured:
    """What the held-out measures choose on a set, and what the gold says of it."""
    import crowdrank as cr
    from crowdrank import datasets
    from crowdrank.api.aggregation import methods_for

    loaded = datasets.load(case.name)
    names = [name for name in methods_for(loaded.judgments) if name not in case.skip]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        comparison = cr.compare_methods(loaded.judgments, names if case.skip else None, progress=_progress)
    gold = {
        metric: _against_gold(comparison, loaded, metric)
        for metric in dict.fromkeys((case.order, case.grade))
        if metric is not None
    }
    choices = {}
    for measure in comparison.measures:
        metric = case.order if measure.of == "pairs" else case.grade
        if metric is not None:
            choices[measure.name] = chosen(comparison, measure.name, gold[metric])
    return Measured(gold, choices)


def _against_gold(comparison: Any, loaded: Any, metric: str) -> dict[str, float]:
    """The figure of each method that a metric fits."""
    from crowdrank.api import evaluate_runs

    fitted = comparison.fitted
    if metric == "accuracy":
        chosen = {name: one for name, one in fitted.items() if one.grade is not None}
        return {name: accuracy_of(one, loaded.judgments, loaded.truth) for name, one in chosen.items()}
    table = evaluate_runs(fitted, loaded.truth, [metric]).table
    return dict(zip(table["run"], table["value"], strict=True))


def chosen(comparison: Any, measure: str, gold: dict[str, float]) -> Choice:
    """The choice of a measure, among the methods it fits."""
    rows = comparison.scores().rows(named=True)
    names = [row["method"] for row in rows if row["measure"] == measure]  # the best first
    rest = [name for name in names if name != USUAL]
    behind, behind_rest = (max(gold[name] for name in part) - gold[part[0]] for part in (names, rest))
    return Choice(names[0], behind, behind_rest)


def _progress(done: int, of: int, what: str) -> None:
    """Say which fit is done."""
    sys.stderr.write(f"  {done} of {of}: {what}\n")


def choices_table(by_case: dict[Case, Measured], measures: tuple[str, ...], of: str) -> str:
    """A line for each set: the best method, and what each measure chooses; ``of`` names the field with the metric."""
    lines = ["| Set | Best by gold | " + " | ".join(measures) + " |", "|---|---|" + "---|" * len(measures)]
    for case, one in by_case.items():
        if not any(name in one.choices for name in measures):
            continue
        metric = getattr(case, of)
        gold = one.gold[metric]
        best = max(gold, key=lambda name, gold=gold: gold[name])
        cells = [_cell(one.choices.get(name)) for name in measures]
        lines.append(f"| {case.title} | {best} ({metric} {gold[best]:.3f}) | {' | '.join(cells)} |")
    counts = [[one.choices[name] for one in by_case.values() if name in one.choices] for name in measures]
    for title, field in (("", "behind"), (f", without {USUAL}", "behind_rest")):
        behind = [[getattr(choice, field) for choice in part] for part in counts]
        good = [f"{sum(value <= POINT for value in part)} of {len(part)}" for part in behind]
        worst = [f"{100 * max(part):.1f}" for part in behind]
        lines.append(f"| **Within a point of the best{title}** | | {' | '.join(good)} |")
        lines.append(f"| **Farthest behind, points{title}** | | {' | '.join(worst)} |")
    return "\n".join(lines)


def _cell(choice: Choice | None) -> str:
    """What a measure chooses, and how many points it is behind."""
    return "–" if choice is None else f"{choice.method}, {100 * choice.behind:.1f}"


def page(by_case: dict[Case, Measured]) -> str:
    """The tables with what they show."""
    pairs = ("pair_accuracy", "log_loss", "annotator_log_loss")
    grades = ("grade_accuracy", "grade_log_loss")
    return TEXT.format(pairs=choices_table(by_case, pairs, "order"), grades=choices_table(by_case, grades, "grade"))


TEXT = """# Methods chosen by held-out judgments, measured

Public sets whose gold does not come from their own crowd. Every method with its defaults was compared on the crowd's
judgments alone, as `compare` does without a truth (five folds, seed 0), and then measured against the gold. A cell is
the method that is first by the measure, and how many points (hundredths) it is behind the best of the methods that the
measure fits.

About orders (`pair_accuracy` in the second column is against gold, nDCG@10 the mean over queries):

{pairs}

One scale for all, and plain accuracy, are misled where many annotators guess or err in the same way: on LLMBar most of
the 65 judges fall for the same wrong answers, and a method that follows the majority predicts them best. With a scale
for each annotator such judges count for what they are worth. It was chosen in view of these sets, as was the rule that
both answers of a pair are held out and the gold measure of each set, so that its figures flatter; folds of whole
annotators, scores as ranks, accuracy per annotator, and a scale fitted on what was held out but common to all did no
better than one scale. Pairs of which one answer was seen did worse by every measure. Where methods are close a point is
less than chance: with seeds 1 and 2, and without `latent_score`, `mallows`, `single`, `highest_grade` and `mean_gain`,
`annotator_log_loss` chose within a point on 8 of 9 sets, 1.2 points behind on the ninth, and one scale for all was 12
points behind on LLMBar again.

About grades, by accuracy against gold:

{grades}

That a chosen level equals most held-out grades says little: on duck most annotators are wrong together. What each
annotator makes of each level says more, if not much: with seeds 1 and 2 it chose within a point on 4 and 5 of 7 sets
and was up to 2.8 points behind, which is 3 of the 108 items of duck. Besides, a method may predict answers well for
knowing the crowd's habits and not the truth. So `auto` leaves `dawid_skene` only where another method is better by
more than chance (see [grades](grades.md)). The table is of `dawid_skene` with the crowd's prior.
"""


if __name__ == "__main__":
    results = {}
    for one in CASES:
        sys.stderr.write(f"{one.name}\n")
        results[one] = measured(one)
    (ROOT / "docs" / "evidence" / "compare.md").write_text(page(results))
