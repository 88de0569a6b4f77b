"""How often pairs that a consensus calls sure are right by independent gold: ``python -m benchmarks.sure_pairs``.

The sets are looked for in ``CROWDRANK_DATA``. The table goes into ``docs/uncertainty.md``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from .real_latent_score import GRADE_SETS, PREFERENCE_SETS, fitted

PAGE = Path(__file__).parents[1] / "docs" / "uncertainty.md"
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


def row(name: str) -> tuple[int, float, float, float]:
    """Number of gold pairs, share of them called sure, what these are said to be on average, and how many are right."""
    import numpy as np
    from scipy.special import ndtr

    from crowdrank import datasets

    loaded = datasets.load(name)
    prepare = {case.name: case.prepare for case in (*GRADE_SETS, *PREFERENCE_SETS)}
    judgments = prepare[name](loaded.judgments) if name in prepare else loaded.judgments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus = fitted(judgments, "latent_score", {})
    better, worse = gold_pairs(consensus, loaded.truth)
    query, blocks = consensus.items.query, consensus.covariance
    begin = consensus.items.offsets[query]
    chance = np.empty(len(better))
    for number, (one, other) in enumerate(zip(better.tolist(), worse.tolist(), strict=True)):
        block = None if blocks is None else blocks[int(query[one])]
        if block is None:
            spread = float(np.hypot(consensus.std_error[one], consensus.std_error[other]))
        else:
            i, j = one - begin[one], other - begin[one]
            spread = float(np.sqrt(max(block[i, i] + block[j, j] - 2.0 * block[i, j], 1e-300)))
        chance[number] = ndtr((consensus.scores[one] - consensus.scores[other]) / spread)
    sure = np.maximum(chance, 1.0 - chance) >= SURE
    said = np.maximum(chance, 1.0 - chance)[sure]
    return len(chance), float(sure.mean()), float(said.mean()), float((chance[sure] > 0.5).mean())


def table(rows: dict[str, tuple[int, float, float, float]]) -> str:
    """The rows as a table, the worst first."""
    lines = ["| Set and gold | pairs | said .95 or more | said on average | right |", "|---|--:|--:|--:|--:|"]
    for name, (n, share, said, right) in sorted(rows.items(), key=lambda entry: entry[1][3]):
        cells = [f"{value:.3f}".lstrip("0") for value in (said, right)]
        lines.append(f"| {SETS[name]} | {n:,} | {share:.0%} | {cells[0]} | {cells[1]} |".replace("%", " %"))
    return "\n".join(lines)


if __name__ == "__main__":
    found = {}
    for name in SETS:
        found[name] = row(name)
        sys.stderr.write(f"{name}: {found[name]}\n")
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table(found)}\n\n{END}{rest.split(END)[1]}")
