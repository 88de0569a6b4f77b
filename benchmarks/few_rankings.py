"""Few annotators, and short rankings with shared error: ``python -m benchmarks.few_rankings``.

Eight annotators rank ten items of six queries in full, with Gumbel noise as Plackett-Luce has it or by swaps as Mallows
has it. Thirty annotators rank three of thirty items, eight times each; beside their own noise all of them see the same
error in each item. Half of the lines have annotators who differ, and one in five of these guesses.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "latent-score-simulated.md"
MARKS = "<!-- rankings: made by python -m benchmarks.few_rankings -->", "<!-- end of rankings -->"
METHODS = ("latent_score", "plackett_luce", "mallows", "borda")
SEEDS = range(20)


@dataclass(frozen=True)
class Design:
    """How rankings are drawn; ``shared`` is the standard deviation of the error that all annotators see."""

    title: str
    n_annotators: int = 8
    n_queries: int = 6
    n_items: int = 10
    ranked: int = 10
    each: int = 6
    swaps: bool = False
    shared: float = 0.0
    differ: bool = False


DESIGNS = tuple(
    Design(f"{title}, {'differing' if differ else 'equal'}", differ=differ, **rest)  # type: ignore[arg-type]
    for title, rest in (
        ("8 annotators, full rankings, Gumbel noise", {}),
        ("8 annotators, full rankings, swaps", {"swaps": True}),
        (
            "short rankings, shared error",
            {"n_annotators": 30, "n_queries": 1, "n_items": 30, "ranked": 3, "each": 8, "shared": 0.7},
        ),
    )
    for differ in (False, True)
)


def draw(design: Design, seed: int) -> tuple[Any, dict[tuple[str, str], float]]:
    """Return rankings, and the true score of each query and item."""
    import crowdrank as cr

    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, 1.0, (design.n_queries, design.n_items))
    seen = scores + design.shared * rng.normal(size=scores.shape)
    sharp = (
        np.maximum(rng.normal(1.0, 0.5, design.n_annotators), 0.0) if design.differ else np.ones(design.n_annotators)
    )
    if design.differ:
        sharp[: design.n_annotators // 5] = 0.0
    rows = []
    for who in range(design.n_annotators):
        for number in range(design.each):
            query = number % design.n_queries
            items = rng.permutation(design.n_items)[: design.ranked]
            felt = seen[query, items]
            order = (
                _swapped(felt, sharp[who], rng)
                if design.swaps
                else np.argsort(-sharp[who] * felt - rng.gumbel(size=len(felt)))
            )
            rows += [
                (f"a{who:02d}", f"q{query}", f"r{who:02d}-{number}", f"i{items[place]:02d}", rank + 1)
                for rank, place in enumerate(order.tolist())
            ]
    names = ("annotator", "query", "ranking", "item", "rank")
    judged = cr.Rankings.from_frame(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    truth = {
        (f"q{query}", f"i{item:02d}"): float(scores[query, item])
        for query in range(design.n_queries)
        for item in range(design.n_items)
    }
    return judged, truth


def _swapped(felt: Any, sharp: float, rng: Any) -> Any:
    """An order of Mallows' model by repeated insertion, best first, the dispersion being that of the annotator."""
    order: list[int] = []
    for place in np.argsort(-felt).tolist():
        # places from the end; each one further costs as much
        chance = np.exp(-0.7 * sharp * np.arange(len(order) + 1))
        order.insert(len(order) - int(rng.choice(len(chance), p=chance / chance.sum())), place)
    return np.array(order)


def taus(design: Design, seed: int) -> list[float]:
    """Kendall's tau of each method with the true scores."""
    import crowdrank as cr
    from crowdrank.registry import make

    judged, truth = draw(design, seed)
    each = []
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            consensus = make("aggregator", method, seed=0).fit(judged)
        items = consensus.items
        queries = np.array(items.queries.ids.to_list())[items.query].tolist()
        true = np.array([truth[query, item] for query, item in zip(queries, items.ids.to_list(), strict=True)])
        each.append(float(cr.metrics.kendall_tau(true, consensus.scores, items.query)))
    return each


def table() -> str:
    """A line for each design: tau of each method, and its lead over ``latent_score``, with standard errors."""
    lines = ["| Rankings | " + " | ".join(f"`{name}`" for name in METHODS) + " |", "|---|" + "--:|" * len(METHODS)]
    for design in DESIGNS:
        sys.stderr.write(f"  {design.title}\n")
        each = np.array([taus(design, seed) for seed in SEEDS])
        lead = each - each[:, :1]
        error = lead.std(axis=0, ddof=1) / np.sqrt(len(each))
        cells = [f"{each[:, 0].mean():.3f}"]
        cells += [
            f"{each[:, k].mean():.3f} ({lead[:, k].mean():+.3f} ± {error[k]:.3f})" for k in range(1, len(METHODS))
        ]
        lines.append(f"| {design.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Put the table into the page."""
    before, rest = PAGE.read_text().split(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
