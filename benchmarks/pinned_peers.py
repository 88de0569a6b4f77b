"""Peers that pin other versions, in their own interpreter: ``python -m benchmarks.pinned_peers SIDE FOLDER``.

It answers requests as :mod:`benchmarks.side` does, and imports nothing of crowdrank.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .side import answer_requests


def _arena_rank(folder: Path) -> Callable[[], Any]:
    """Contextual Bradley-Terry with sandwich errors; its default penalty would leave a tenth of each coefficient."""
    import numpy as np
    import pandas as pd
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset

    rows = np.load(folder / "rows.npz")
    names = [f"x{place}" for place in range(rows["x"].shape[1])]
    table = pd.DataFrame({
        "model_a": rows["left"].astype(str), "model_b": rows["right"].astype(str),
        "winner": np.where(rows["won"], "model_a", "model_b"),
        **dict(zip(names, rows["x"].T, strict=True)), "side": 1.0,
    })  # fmt: skip
    # covariates as they are, neither centred nor weighed by pair
    dataset = ContextualPairDataset.from_pandas(
        table, feature_cols=[*names, "side"], reweighted=False, normalize_features=False
    )
    n_items = len(dataset.competitors)

    def fit() -> Any:
        model = ContextualBradleyTerry(n_items, len(names) + 1, reg=1e-15)
        model.compute_ratings_and_cis(dataset)
        return model

    return fit


def _arena_length(model: Any) -> float:
    return float(model.params["coeffs"][0])


def _ppi_python(folder: Path) -> Callable[[], Any]:
    """Prediction-powered mean of the same shares."""
    import numpy as np
    from ppi_py import ppi_mean_ci

    shares = np.load(folder / "shares.npz")
    return lambda: ppi_mean_ci(shares["people"], shares["judge"], shares["elsewhere"], alpha=0.05)


def _lower(interval: Any) -> float:
    return float(interval[0].ravel()[0])


SIDES: dict[str, tuple[Callable[[Path], Callable[[], Any]], Callable[[Any], float]]] = {
    "arena-rank": (_arena_rank, _arena_length),
    "ppi-python": (_ppi_python, _lower),
}

if __name__ == "__main__":
    setup, figure = SIDES[sys.argv[1]]
    answer_requests(lambda: setup(Path(sys.argv[2])), figure)
