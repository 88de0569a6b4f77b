"""Seconds that every method takes by number of judgments, for the pages of methods: ``python -m benchmarks.costs``.

Judgments are simulated: 100 annotators, ten judgments per item, preferences between random pairs, rankings of five.
Rankers learn from 20 features in queries of ten items. Each figure is the better of two fits in a process that is
warm; a size whose predecessor took more than ``MOST_SECONDS`` is left out. All methods are measured at one size before
the next one, and ``docs/evidence/costs.csv`` is written after every figure, so a run may be stopped at any time.
``--warm`` only compiles what the figures need.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZES = (10_000, 100_000, 1_000_000)
WARM_UP = 1_000
MOST_SECONDS = 1.0


@cache
def grades(n: int) -> Any:
    """``n`` grades on five levels, ten for each item, in queries of 100 items."""
    import numpy as np

    import crowdrank as cr

    rng = np.random.default_rng(0)
    n_items = n // 10
    item, annotator = np.arange(n) % n_items, rng.integers(0, 100, n)
    truth, noise = rng.normal(size=n_items), rng.gamma(2.0, 0.4, 100)
    grade = np.clip(np.round(truth[item] + noise[annotator] * rng.normal(size=n) + 2), 0, 4)
    return cr.Grades.from_frame({"query": item // 100, "item": item, "annotator": annotator, "grade": grade})


@cache
def preferences(n: int) -> Any:
    """``n`` preferences between random items of one query, 100 for each item."""
    import numpy as np

    import crowdrank as cr

    rng = np.random.default_rng(0)
    n_items = max(n // 100, 50)
    left, annotator = rng.integers(0, n_items, n), rng.integers(0, 100, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    truth, quality = rng.normal(size=n_items), rng.uniform(0.3, 1.0, 100)
    right_way = rng.random(n) < quality[annotator]
    better = rng.random(n) < 1 / (1 + np.exp(truth[right] - truth[left]))
    winner = np.where(better == right_way, "left", "right")
    columns = {"query": np.zeros(n, int), "left": left, "right": right, "annotator": annotator, "winner": winner}
    return cr.Preferences.from_frame(columns)


@cache
def rankings(n: int) -> Any:
    """``n`` ranked items in rankings of five, in queries of 20 items."""
    import numpy as np

    import crowdrank as cr

    rng = np.random.default_rng(0)
    n_rankings = n // 5
    n_queries = max(n_rankings // 40, 1)
    query, annotator = rng.integers(0, n_queries, n_rankings), rng.integers(0, 100, n_rankings)
    truth = rng.normal(size=(n_queries, 20))
    chosen = np.argsort(rng.random((n_rankings, 20)), axis=1)[:, :5]
    noisy = truth[query[:, None], chosen] + rng.gumbel(size=chosen.shape)
    rank = np.argsort(np.argsort(-noisy, axis=1), axis=1) + 1
    columns = {"ranking": np.arange(n_rankings), "query": query, "annotator": annotator}
    rows = {name: np.repeat(values, 5) for name, values in columns.items()}
    return cr.Rankings.from_frame({**rows, "item": chosen.ravel(), "rank": rank.ravel()})


def features(judgments: Any) -> Any:
    """Twenty features of every item."""
    import numpy as np

    import crowdrank as cr

    rng = np.random.default_rng(1)
    names = tuple(f"f{k:02d}" for k in range(20))
    return cr.Features.from_arrays(
        judgments.items.query_ids(), judgments.items.ids, rng.normal(size=(judgments.n_items, 20)), names=names
    )


MAKERS = {"grade": grades, "preference": preferences, "ranking": rankings}
UNITS = {"grade": "grades", "preference": "preferences", "ranking": "ranked items"}


def aggregating(name: str, n: int) -> tuple[Any, str]:
    """What fits an aggregator to ``n`` judgments of the first kind that it takes."""
    from crowdrank.registry import card, make

    kind = card("aggregator", name).kinds[0]
    judgments, method = MAKERS[kind](n), make("aggregator", name)
    return lambda: method.fit(judgments), UNITS[kind]


def ranking(name: str, n: int) -> tuple[Any, str]:
    """What trains a ranker on ``n`` rows."""
    import numpy as np

    from crowdrank.registry import make

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(n, 20)).astype(np.float32), np.arange(n) // 10
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n) + 1), 0, 4)
    return lambda: make("ranker", name).fit(X, y, qid=qid), "rows of 20 features"


def joining(name: str, n: int) -> tuple[Any, str]:
    """What fits a joint method to ``n`` judgments of the first kind that it takes, with features."""
    from crowdrank.registry import card, make

    kind = card("joint", name).kinds[0]
    judgments = MAKERS[kind](n)
    described = features(judgments)
    parts = {"two_stage": {"aggregator": "mean_grade", "ranker": "list_net"}}.get(name, {})
    method = make("joint", name, parts)
    return lambda: method.fit(judgments, described), f"{UNITS[kind]} and 20 features per item"


def proposing(name: str, n: int) -> tuple[Any, str]:
    """What proposes 1,000 requests after ``n`` judgments, the consensus included."""
    import crowdrank as cr
    from crowdrank.registry import card

    kind = card("scheme", name).kinds[0]
    judgments = MAKERS[kind](n)
    return lambda: cr.propose(judgments, scheme=name, budget=1000), f"{UNITS[kind]} so far, 1,000 requests"


FAMILIES = {"aggregator": aggregating, "ranker": ranking, "joint": joining, "scheme": proposing}


def best_seconds(run: Any) -> float:
    """The better of two runs; of a slow one the first counts."""
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
        if times[-1] > MOST_SECONDS:
            break
    return min(times)


def main(names: list[str], *, warm: bool = False) -> None:
    """Measure the methods that are named, or all, and write the table."""
    import polars as pl

    from crowdrank.registry import names as known

    warnings.simplefilter("ignore")
    path = ROOT / "docs" / "evidence" / "costs.csv"
    kept = pl.read_csv(path).rows(named=True) if path.exists() else []
    wanted = [(family, name) for family in FAMILIES for name in known(family) if not names or name in names]
    for family, name in wanted:
        FAMILIES[family](name, WARM_UP)[0]()
    kept = [row for row in kept if (row["family"], row["method"]) not in wanted]
    for n in () if warm else SIZES:
        for maker in MAKERS.values():
            maker.cache_clear()
        slow = []
        for family, name in wanted:
            run, unit = FAMILIES[family](name, n)
            seconds = best_seconds(run)
            row = {"family": family, "method": name, "n": n, "unit": unit, "seconds": float(f"{seconds:.2g}")}
            kept.append(row)
            print(f"{family} {name} {n:,}: {seconds:.3g} s", file=sys.stderr, flush=True)
            pl.DataFrame(kept).sort("family", "method", "n").write_csv(path)
            slow += [(family, name)] if seconds > MOST_SECONDS else []
        wanted = [one for one in wanted if one not in slow]


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word != "--warm"], warm="--warm" in sys.argv)
