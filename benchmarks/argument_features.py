"""What columns of style have to be worth on ukpconvarg1: ``python -m benchmarks.argument_features``.

Three divisions of the votes, with 1 % of those that are learned from and with all; a floor that is missed ends with 1.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

SEEDS = range(3)
FLOORS = (
    ("accuracy on judged arguments, 1 % of the votes", 0.01, "style|judged arguments|accuracy", 0.66),
    ("accuracy on new queries, 1 % of the votes", 0.01, "style|new queries|accuracy", 0.65),
    ("gain in log-likelihood by style, 1 % of the votes", 0.01, "style|judged arguments|gain in log-likelihood", 0.04),
    ("accuracy by style less without features, all votes", 1.0, None, -0.005),
)
"""What is measured, with which share of the votes, its name in the study (the last: a difference), and the least."""


def measure() -> dict[float, list[dict[str, float]]]:
    """Share of the votes -> what each seed comes to."""
    from crowdrank.cli.study import studies
    from crowdrank.datasets import load

    arguments = studies(".raw_features.arguments")
    ways = (arguments.NONE, arguments.STYLE)
    data: Any = load("ukpconvarg1-crowd")
    texts = data.details.select("query", "item", "text")
    return {
        share: [arguments.run_division(data.judgments, texts, seed, share, ways) for seed in SEEDS]
        for share in (0.01, 1.0)
    }


def table(cells_by_share: dict[float, list[dict[str, float]]]) -> tuple[str, bool]:
    """The floors as a table, and whether all are reached."""
    lines, well = ["| Seeds 0 to 2 | measured | at least | |", "|---|--:|--:|---|"], True
    for what, share, name, least in FLOORS:
        style, none = "style|judged arguments|accuracy", "none|judged arguments|accuracy"
        values = [cell[style] - cell[none] if name is None else cell[name] for cell in cells_by_share[share]]
        reached = float(np.mean(values)) >= least
        well &= reached
        spread = f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"
        lines.append(f"| {what} | {spread} | {least:g} | {'reached' if reached else 'MISSED'} |")
    return "\n".join(lines), well


def main() -> int:
    """Print the table."""
    warnings.simplefilter("ignore")
    made, well = table(measure())
    print(made)
    return int(not well)


if __name__ == "__main__":
    raise SystemExit(main())
