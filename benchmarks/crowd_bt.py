"""Crowd-BT of 1,000 items by 200 annotators, from 10k to 10M preferences, against scikit-learn and crowd-kit.

The items' true scores are normal. Annotators flip the true order of a pair with a probability of their own, between
0.1 and 0.45 evenly, and every tenth of them is reversed, so that the probability is that of not flipping. Pairs are
drawn at random and connect all items.

Scikit-learn fits the plain Bradley-Terry model, which knows no annotators, as a logistic regression without intercept,
its matrix built before; crowd-kit's NoisyBradleyTerry fits a model of the same kind as ours to the smallest data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Floor, Measured, Size, Workload, at_most_times, faster

N_ITEMS, N_ANNOTATORS, N_REVERSED = 1_000, 200, 20
LEAST_TAU = {"few": 0.57, "some": 0.89, "many": 0.96, "most": 0.985}
"""Side -> Kendall's tau with the true scores that it has to reach."""


def _prepare(folder: Path, size: Size) -> None:
    """Write the columns of each number of preferences, the true scores, and a frame of the fewest."""
    import numpy as np

    from crowdrank import simulate

    rng = np.random.default_rng(SEED)
    scores, flip = rng.normal(size=N_ITEMS), rng.uniform(0.1, 0.45, N_ANNOTATORS)
    flip[:N_REVERSED] = 1 - flip[:N_REVERSED]
    truth = {"item": [f"item-{number:04d}" for number in range(N_ITEMS)], "grade": scores}
    np.save(folder / "scores.npy", scores)
    for side, n_rows in size.items():
        design = simulate.ConnectedPairs(per_item=2 * n_rows / N_ITEMS)
        drawn = simulate.preferences(truth, simulate.Flips(flip), design, seed=SEED).judgments
        columns = {name: getattr(drawn, name) for name in ("left", "right", "annotator", "outcome")}
        np.savez(folder / f"{side}.npz", **columns)
        if side == "few":
            drawn.frame().write_parquet(folder / "few.parquet")


def _preferences(folder: Path, side: str) -> Any:
    """Preferences from columns of codes."""
    import numpy as np
    import polars as pl

    from crowdrank import Preferences
    from crowdrank.data.index import Index, Items

    items = Items(
        Index(pl.Series("id", [""])), np.zeros(N_ITEMS, np.int32),
        pl.Series("item", [f"item-{number:04d}" for number in range(N_ITEMS)]),
    )  # fmt: skip
    names = Index(pl.Series("id", [f"annotator-{number:03d}" for number in range(N_ANNOTATORS)]))
    return Preferences(items=items, annotators=names, **np.load(folder / f"{side}.npz"))


def _built(side: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of our fit to preferences that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank.aggregators import CrowdBT

        preferences = _preferences(folder, side)
        return lambda: CrowdBT().fit(preferences)

    return setup


def _from_frame(folder: Path, size: Size) -> Callable[[], Any]:
    """Setup of our fit to the frame that crowd-kit gets."""
    import pandas as pd

    from crowdrank import Preferences
    from crowdrank.aggregators import CrowdBT

    frame = pd.read_parquet(folder / "few.parquet")
    return lambda: CrowdBT().fit(Preferences.from_frame(frame))


def _sklearn(folder: Path, size: Size) -> Callable[[], Any]:
    """Setup of scikit-learn's fit."""
    import numpy as np
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    columns = np.load(folder / "many.npz")
    n_rows = len(columns["left"])
    sides = np.stack([columns["left"], columns["right"]], axis=1).ravel()
    matrix = csr_array((np.tile([1.0, -1.0], n_rows), sides, np.arange(0, 2 * n_rows + 1, 2)), shape=(n_rows, N_ITEMS))
    return lambda: LogisticRegression(fit_intercept=False).fit(matrix, columns["outcome"]).coef_[0]


def _crowd_kit(folder: Path, size: Size) -> Callable[[], Any]:
    """Setup of crowd-kit's fit to the same frame, in its own words."""
    import pandas as pd
    from crowdkit.aggregation import NoisyBradleyTerry

    frame = pd.read_parquet(folder / "few.parquet").rename(columns={"annotator": "worker"})
    frame["label"] = frame["left"].where(frame["winner"] == "left", frame["right"])
    return lambda: NoisyBradleyTerry().fit_predict(frame).sort_index().to_numpy()


def _tau(scores: Any, folder: Path) -> float:
    """Kendall's tau with the true scores."""
    import numpy as np
    from scipy.stats import kendalltau

    return float(kendalltau(scores, np.load(folder / "scores.npy")).statistic)


def _our_tau(consensus: Any, folder: Path) -> float:
    return _tau(consensus.scores, folder)


def _at_least(side: str, limit: float) -> Floor:
    """Kendall's tau with the true scores."""

    def value(sides: Mapping[str, Measured]) -> float:
        figure = sides[side].figure
        assert figure is not None
        return figure

    return Floor(f"{side}: tau", value, limit, True, "", (side,))


def _ahead(ours: str, peer: str) -> Floor:
    """By how much our tau is above a peer's."""

    def value(sides: Mapping[str, Measured]) -> float:
        one, other = sides[ours].figure, sides[peer].figure
        assert one is not None
        assert other is not None
        return one - other

    return Floor(f"{ours} tau above {peer}'s by", value, 0.0, True, "", (ours, peer))


WORKLOAD = Workload(
    name="crowd_bt",
    what="Crowd-BT, 1,000 items, 200 annotators, 10 % reversed; {few:,}, {some:,}, {many:,} and {most:,} preferences",
    sizes={
        "tiny": {"few": 2_000, "some": 3_000, "many": 4_000, "most": 5_000},
        "small": {"few": 5_000, "some": 20_000, "many": 100_000, "most": 500_000},
        "full": {"few": 10_000, "some": 100_000, "many": 1_000_000, "most": 10_000_000},
    },
    prepare=_prepare,
    sides={
        "few": Call("crowdrank, the fewest", _built("few"), _our_tau),
        "some": Call("crowdrank, ten times as many", _built("some"), _our_tau),
        "many": Call("crowdrank, a hundred times as many", _built("many"), _our_tau),
        "most": Call("crowdrank, a thousand times as many", _built("most"), _our_tau),
        "frame": Call("crowdrank, the fewest, from the pandas frame", _from_frame, _our_tau),
        "sklearn": Call("scikit-learn, plain Bradley-Terry, a hundred times as many", _sklearn, _tau),
        "crowd_kit": Call("crowd-kit NoisyBradleyTerry, the fewest", _crowd_kit, _tau),
    },
    floors=(
        *(_at_least(side, tau) for side, tau in LEAST_TAU.items()),
        at_most_times("many", "sklearn", 3),
        at_most_times("most", "many", 12),
        faster("few", "crowd_kit", 200),
        faster("frame", "crowd_kit", None),
        _ahead("few", "crowd_kit"),
    ),
    figure="tau",
    needs=("crowdkit", "pandas", "pyarrow", "sklearn"),
)
