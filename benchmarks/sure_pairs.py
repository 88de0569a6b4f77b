"""How often pairs that a consensus calls sure are right by independent gold: ``python -m benchmarks.sure_pairs``.

The sets are looked for in ``CROWDRANK_DATA``. The table goes into ``docs/evidence/annotators.md``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from .real_latent_score import GRADE_SETS, PREFERENCE_SETS

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "annotators.md"
BEGIN, END = "<!-- sure pairs: made by python -m benchmarks.sure_pairs -->", "<!-- end of sure pairs -->"
SURE = 0.95
MOST_PAIRS = 200_000

SETS = {
    "web-search-relevance5": "web search, grades by experts",
    "trec-rf10-labels-full": "TREC 2010, grades by experts",
    "trec2011-crowd": "TREC 2011, grades by experts",
    "crowd-truth-inference/emotion": "emotion, grades by experts",
    "adult-content2": "adult content, grades by experts",
    "peer-grading": "peer grading, marks by staff",
    "llmbar-judges": "LLMBar, pairs by experts",
    "pandalm-testset/judges": "PandaLM, majority of three people",
    "preflib/dots": "dots, the number of dots",
    "preflib/puzzle": "puzzle, the distance to the goal",
}
"""Sets whose gold was not made from the crowd's own judgments, and what it is."""


def gold_pairs(consensus: Any, truth: Any) -> tuple[Any, Any]:
    """Codes of the better and the worse item of pairs of one query whose gold differs, at most MOST_PAIRS of them."""
    import numpy as np

    items = consensus.items
    if truth.grade is None:
        left, right, outcome = truth.align_pairs(items)
        better, worse = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left)
        return better[outcome != 0], worse[outcome != 0]
    grade = truth.align(items)
    rng, pairs = np.random.default_rng(0), []
    for begin, end in zip(items.offsets[:-1], items.offsets[1:], strict=True):
        one, other = np.triu_indices(end - begin, 1)
        one, other = one + begin, other + begin
        use = np.abs(grade[one] - grade[other]) > 0
        swap = grade[one[use]] < grade[other[use]]
        pairs.append(np.stack([np.where(swap, other[use], one[use]), np.where(swap, one[use], other[use])]))
    better, worse = np.concatenate(pairs, axis=1)
    keep = rng.permutation(len(better))[:MOST_PAIRS]
    return better[keep], worse[keep]


def row(name: str) -> list[float]:
    """Number of gold pairs; then, with independent annotators and with shared error, how many of them are called sure,
    what these are said to be on average, and how many are right."""
    import numpy as np

    import crowdrank as cr

    loaded = cr.datasets.load(name)
    prepare = {case.name: case.prepare for case in (*GRADE_SETS, *PREFERENCE_SETS)}
    judgments = prepare[name](loaded.judgments) if name in prepare else loaded.judgments
    cells: list[float] = []
    for shared in ("none", None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            consensus = cr.aggregate(judgments, "latent_score", shared=shared)
        better, worse = gold_pairs(consensus, loaded.truth)
        chance = consensus.beats_each(better, worse)
        said = np.maximum(chance, 1.0 - chance)
        sure = said >= SURE
        cells += [float(sure.mean()), float(said[sure].mean()), float((chance[sure] > 0.5).mean())]
    return [len(better), *cells]


def table(rows: dict[str, list[float]]) -> str:
    """The rows as a table, the worst first."""
    lines = [
        "| Set and gold | pairs | sure, if independent | said | right | sure | said | right |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, (n, *cells) in sorted(rows.items(), key=lambda entry: entry[1][3]):
        text = [
            f"{value:.0%}".replace("%", " %") if place % 3 == 0 else f"{value:.3f}".lstrip("0")
            for place, value in enumerate(cells)
        ]
        lines.append(f"| {SETS[name]} | {n:,} | {' | '.join(text)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    found = {}
    for name in SETS:
        found[name] = row(name)
        sys.stderr.write(f"{name}: {found[name]}\n")
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table(found)}\n\n{END}{rest.split(END)[1]}")
