"""The latent-score model on public sets, other methods beside it: ``python -m benchmarks.real_latent_score``.

The sets are looked for in ``CROWDRANK_DATA``. The tables go to ``docs/evidence/latent-score.md``.
:mod:`benchmarks.held_out` says how held-out answers are predicted.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from . import latent_features
from .held_out import log_likelihood

ROOT = Path(__file__).parents[1]
SEEDS = (0, 1, 2)

Cells = dict[str, float | tuple[float, float]]
"""Method -> figure, or figure and its standard deviation over seeds."""


@dataclass(frozen=True)
class Set:
    """A public set, the measures of its truth, and what is done to its judgments first."""

    name: str
    title: str
    measures: tuple[str, ...] = ()
    prepare: Callable[[Any], Any] = lambda judgments: judgments


def in_quarters(grades: Any) -> Any:
    """Return grades from -100 to 100 cut into four levels."""
    return replace(grades, grade=np.searchsorted((-50, 0, 50), grades.grade).astype(np.float64), declared=None)


GRADE_SETS = (
    Set("web-search-relevance5", "web, 5 levels", ("tau", "grade")),
    Set("trec-rf10-labels-full", "TREC, 3 levels", ("ndcg@10", "tau", "grade")),
    Set("trec2011-stage2-labels", "TREC, 2 levels", ("auc", "grade")),
    Set("trec2011-crowd", "TREC 2011, 2 levels", ("ndcg@10", "auc")),
    Set("crowd-truth-inference/emotion", "emotion, 4 bins", ("tau",), in_quarters),
    Set("adult-content2", "adult, 4 levels", ("tau", "grade")),
    Set("peer-grading", "peer grading, 13 levels", ("tau",)),
)
PREFERENCE_SETS = (
    Set("llmbar-judges", "LLMBar judges", ("pairs",)),
    Set("llmfao", "LLMFAO, models over prompts", (), lambda judgments: judgments.across_queries()),
    Set("ukpconvarg1-crowd/pairs", "UKP (truth is the crowd's own)", ("pairs",)),
    Set("mirex2005-crowd", "MIREX (truth is the crowd's own)", ("tau",)),
    Set("wmt13-fr-en-rankings", "WMT13 rankings of systems", (), lambda judgments: judgments.across_queries()),
)
GRADE_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "latent_score": ("latent_score", {}),
    "its lapse off": ("latent_score", {"lapse": False}),
    "its annotators alike": ("latent_score", {"annotators": False}),
    "dawid_skene": ("dawid_skene", {}),
    "majority or mean": ("mean_grade", {}),
}
PREFERENCE_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "latent_score": ("latent_score", {}),
    "its annotators alike": ("latent_score", {"annotators": False}),
    "bradley_terry": ("bradley_terry", {}),
    "crowd_bt": ("crowd_bt", {}),
}


def likelihoods(judgments: Any, methods: dict[str, tuple[str, dict[str, Any]]]) -> Cells:
    """The mean log-likelihood of held-out answers of each method that predicts any."""
    means: Cells = {}
    for title, (name, params) in methods.items():
        if name == "mean_grade":
            continue
        each = [log_likelihood(name, judgments, seed, **params) for seed in SEEDS]
        means[title] = (float(np.mean(each)), float(np.std(each)))
        sys.stderr.write(f"  {title}: {means[title][0]:.4f}\n")
    return means


def fitted(judgments: Any, name: str, params: dict[str, Any]) -> Any:
    """The consensus of a method; ``annotators=False`` takes everybody for the same."""
    from crowdrank.registry import make

    from .held_out import without_annotators

    given = dict(params)
    if not given.pop("annotators", True):
        judgments = without_annotators(judgments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make("aggregator", name, given).fit(judgments)


def measured(consensus: Any, judgments: Any, truth: Any, measure: str) -> float:
    """How near a consensus is to the truth."""
    import crowdrank as cr

    if measure == "pairs":
        return float(cr.evaluate(consensus, truth, metrics=["preference_accuracy"])["value"][0])
    known = truth.align(consensus.items)
    use = np.isfinite(known) & judgments.judged_items
    query, scores = consensus.items.query[use], consensus.scores[use]
    if measure == "grade":
        code = np.searchsorted(judgments.level_values, known[use])
        return float((consensus.grade[use] == code).mean())
    if measure == "auc":
        return float(cr.metrics.pair_accuracy(known[use] > 0, scores))
    if measure == "tau":
        return float(cr.metrics.kendall_tau(known[use], scores, query))
    return float(cr.metrics.ndcg(known[use] - min(known[use].min(), 0), scores, query, k=10))


def against_truth(
    judgments: Any, truth: Any, measures: tuple[str, ...], methods: dict[str, tuple[str, dict[str, Any]]]
) -> dict[str, Cells]:
    """Measure -> that of each method's consensus."""
    by_measure: dict[str, Cells] = {measure: {} for measure in measures}
    for title, (name, params) in methods.items():
        fits: dict[str, Any] = {}
        for measure in measures:
            # where the exact grade counts, the majority takes the place of the mean
            chosen = "majority_vote" if name == "mean_grade" and measure == "grade" else name
            if chosen not in fits:
                fits[chosen] = fitted(judgments, chosen, params)
            by_measure[measure][title] = measured(fits[chosen], judgments, truth, measure)
    return by_measure


def rows(case: Set, methods: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Cells]:
    """Measure -> figures of a set."""
    from crowdrank import datasets

    sys.stderr.write(f"{case.name}\n")
    loaded = datasets.load(case.name)
    judgments = case.prepare(loaded.judgments)
    figures = {"held-out answers": likelihoods(judgments, methods)}
    return figures | against_truth(judgments, loaded.truth, case.measures, methods)


def table(sets: dict[str, dict[str, Cells]], methods: dict[str, Any]) -> str:
    """Sets and measures down, methods across."""
    lines = ["| Set | | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]
    for title, measures in sets.items():
        for place, (measure, cells) in enumerate(measures.items()):
            shown = [_shown(cells.get(method)) for method in methods]
            lines.append(f"| {title if place == 0 else ''} | {WORDS.get(measure, measure)} | {' | '.join(shown)} |")
    return "\n".join(lines)


WORDS = {"grade": "exact grade", "auc": "AUC", "ndcg@10": "nDCG@10", "pairs": "pairs"}


def _shown(cell: float | tuple[float, float] | None) -> str:
    """A figure without its leading 0, with its spread."""
    if cell is None:
        return "–"
    if isinstance(cell, tuple):
        return f"{_shown(cell[0])} ± {_shown(cell[1])}"
    return f"{cell:.3f}".replace("0.", ".", 1)


def with_features() -> str:
    """What features add where preferences are few, as a table."""
    from crowdrank import datasets

    loaded = datasets.load("ukpconvarg1-crowd")
    matrix = latent_features.matrix_of(loaded)
    lines = ["| Preferences learned from | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"]
    lines.append("|---|" + "---|" * len(SHARES))
    for title, features in (("without features", None), ("with five columns", matrix)):
        cells = []
        for share in SHARES:
            each = [latent_features.log_likelihood(loaded.judgments, features, share, seed) for seed in SEEDS]
            cells.append(_shown((float(np.mean(each)), float(np.std(each)))))
        lines.append(f"| {title} | {' | '.join(cells)} |")
        sys.stderr.write(f"  {title}: {cells}\n")
    return "\n".join(lines)


SHARES = (1.0, 0.1, 0.03, 0.01)

TEXT = """# Latent scores, measured

Public sets, our defaults. *Held-out answers*: mean log-likelihood of 15 % of the judgments, three random splits, ±
their standard deviation (splits of one set are not independent, so read it as noise of the split); of decided answers
for preferences and rankings. It rewards knowing the habits of an annotator, not only the truth. The other figures are
of one fit to all judgments, against a truth that is independent of the crowd unless it says otherwise; tau and nDCG are
means over queries. "Lapse off" and "annotators alike" are the same model without these parts.

{grades}

{grades_said}

{preferences}

{preferences_said}

Features: arguments of UKP described by their length, sentences and punctuation; held-out answers as above.

{features}
"""

GRADES_SAID = """Where an order is wanted `latent_score` is the best of these on the first three sets and
within .03 of the best on the others: on TREC 2011 `dawid_skene` is ahead, and on emotion, adult and peer grading, where
annotators differ little or levels are many, nothing beats the mean grade. Where one of the grades is wanted
`dawid_skene` is ahead, on TREC of two levels even."""

PREFERENCES_SAID = """LLMBar has 65 language models as judges, some of them worse than chance, and two items a query:
`latent_score` finds which annotators to trust, and that most of them favour one side. On all five sets it predicts
best, or as well as the best. On UKP and MIREX the truth was made from the same votes, and proves nothing either way."""


def page() -> str:
    """The whole page."""
    grades = {case.title: rows(case, GRADE_METHODS) for case in GRADE_SETS}
    preferences = {case.title: rows(case, PREFERENCE_METHODS) for case in PREFERENCE_SETS}
    return TEXT.format(
        grades=table(grades, GRADE_METHODS), grades_said=GRADES_SAID,
        preferences=table(preferences, PREFERENCE_METHODS), preferences_said=PREFERENCES_SAID,
        features=with_features(),
    )  # fmt: skip


if __name__ == "__main__":
    (ROOT / "docs" / "evidence" / "latent-score.md").write_text(page())
