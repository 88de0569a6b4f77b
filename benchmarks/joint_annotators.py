"""Joint annotators on all pairs of wines of unequal quality, and with thousands of annotators.

Six annotators judge every pair of wines and flip the true order of one pair in 20, two in 20 and so on. No peer fits
such a model, so that floors are in seconds, in memory beyond the preferences themselves (the side ``held`` holds them
and does nothing), and in pairs put right. Wines are looked for in ``CROWDRANK_DATA``.

The crowd of thousands judges random pairs of 20,000 items, nearly all of them once. Items have normal scores, a half of
whose variance 50 features explain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Floor, Measured, Size, Workload, peak_under, seconds_under

N_VOTERS = 6
N_FEATURES = 50


def _prepare_wine(colour: str) -> Callable[[Path, Size], None]:
    """Write features, preferences and the truth of evenly chosen pairs."""

    def prepare(folder: Path, size: Size) -> None:
        import numpy as np

        from crowdrank.datasets import load

        wine, rng = load(f"wine-quality/{colour}"), np.random.default_rng(SEED)
        quality = wine.truth.align(wine.features.items)
        first, second = np.triu_indices(len(quality), 1)
        pairs = np.flatnonzero(quality[first] != quality[second])
        pairs = pairs[np.linspace(0, len(pairs), min(size["n_pairs"], len(pairs)), endpoint=False).astype(np.int64)]
        first, second = first[pairs].astype(np.int32), second[pairs].astype(np.int32)
        better = np.where(quality[first] > quality[second], 1, -1).astype(np.int8)
        votes = np.repeat(better, N_VOTERS)
        votes[rng.random(len(votes)) < np.tile(np.arange(1, N_VOTERS + 1) / 20, len(pairs))] *= -1
        np.savez(
            folder / "votes.npz", left=np.repeat(first, N_VOTERS), right=np.repeat(second, N_VOTERS), outcome=votes,
            annotator=np.tile(np.arange(N_VOTERS, dtype=np.int32), len(pairs)),
        )  # fmt: skip
        np.savez(folder / "items.npz", matrix=wine.features.matrix, n_annotators=N_VOTERS)
        np.save(folder / "better.npy", better > 0)

    return prepare


def _prepare_crowd(folder: Path, size: Size) -> None:
    """Write features, preferences and true scores."""
    import numpy as np

    rng, n_items, n_rows = np.random.default_rng(SEED), size["n_items"], size["n_rows"]
    matrix = rng.normal(size=(n_items, N_FEATURES))
    scores = matrix @ rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES) + rng.normal(size=n_items)
    left, who = rng.integers(0, n_items, n_rows), rng.integers(0, size["n_annotators"], n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    won = rng.random(n_rows) < 1 / (1 + np.exp(scores[right] - scores[left]))
    flipped = rng.random(n_rows) < rng.beta(2, 6, size["n_annotators"])[who]
    np.savez(
        folder / "votes.npz", left=left.astype(np.int32), right=right.astype(np.int32),
        outcome=np.where(won != flipped, 1, -1).astype(np.int8), annotator=who.astype(np.int32),
    )  # fmt: skip
    np.savez(folder / "items.npz", matrix=matrix, n_annotators=size["n_annotators"])
    np.save(folder / "scores.npy", scores)


def _data(folder: Path) -> tuple[Any, Any]:
    """Preferences and features from columns of codes."""
    import numpy as np
    import polars as pl

    from crowdrank import Features, Preferences
    from crowdrank.data.index import Index, Items

    about = np.load(folder / "items.npz")
    matrix, n_annotators = about["matrix"], int(about["n_annotators"])
    items = Items(
        Index(pl.Series("id", [""])), np.zeros(len(matrix), np.int32),
        pl.Series("item", [f"item-{number:05d}" for number in range(len(matrix))]),
    )  # fmt: skip
    annotators = Index(pl.Series("id", [f"annotator-{number:04d}" for number in range(n_annotators)]))
    features = Features(items, matrix, tuple(f"x{number}" for number in range(matrix.shape[1])))
    return Preferences(items=items, annotators=annotators, **np.load(folder / "votes.npz")), features


def _fit(name: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to preferences that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank.registry import make

        (preferences, features), method = _data(folder), make("joint", name)
        return lambda: method.fit(preferences, features)

    return setup


def _held(folder: Path, size: Size) -> Callable[[], Any]:
    """Setup of a side that but holds the data, with the libraries of a fit loaded."""
    from crowdrank.registry import make

    (preferences, features), method = _data(folder), make("joint", "joint_annotators")
    few = preferences.select(preferences.left < preferences.n_items // 50)
    method.fit(few, features)
    return lambda: preferences


def _accuracy(fit: Any, folder: Path) -> float:
    """Share of pairs whose better item is the likelier one."""
    import numpy as np

    return float(((fit.pairs.probability > 0.5) == np.load(folder / "better.npy")).mean())


def _worst_rate(fit: Any, folder: Path) -> float:
    """Largest error of a flip rate."""
    import numpy as np

    return float(np.max(np.abs(fit.quality.parameters["flip"] - np.arange(1, N_VOTERS + 1) / 20)))


def _tau(fit: Any, folder: Path) -> float:
    """Kendall's tau with the true scores."""
    import numpy as np
    from scipy.stats import kendalltau

    return float(kendalltau(fit.consensus.scores, np.load(folder / "scores.npy")).statistic)


def _figure(side: str, limit: float, *, at_least: bool = True) -> Floor:
    """A limit of a side's figure."""

    def value(sides: Mapping[str, Measured]) -> float:
        figure = sides[side].figure
        assert figure is not None
        return figure

    return Floor(f"{side}: figure", value, limit, at_least, "", (side,))


def _memory_beyond(side: str, megabytes: float) -> Floor:
    """At most so much memory more than what holds the data takes."""
    return Floor(
        f"{side} memory beyond held", lambda sides: (sides[side].peak - sides["held"].peak) / 1e6, megabytes, False,
        "MB", (side, "held"),
    )  # fmt: skip


def _wine(colour: str, n_pairs: int, accuracy: float, seconds: float, megabytes: float) -> Workload:
    """The workload of one colour."""
    return Workload(
        name=f"joint_annotators/{colour}",
        what=f"Joint annotators, {colour} wine, {{n_pairs:,}} pairs x {N_VOTERS} annotators",
        sizes={"tiny": {"n_pairs": 2_000}, "small": {"n_pairs": 50_000}, "full": {"n_pairs": n_pairs}},
        prepare=_prepare_wine(colour),
        sides={
            "default": Call("crowdrank joint_annotators, pairs put right", _fit("joint_annotators"), _accuracy),
            "jam": Call("crowdrank jam, pairs put right", _fit("jam"), _accuracy),
            "rates": Call("crowdrank joint_annotators, worst flip rate", _fit("joint_annotators"), _worst_rate),
            "held": Call("the preferences alone", _held),
        },
        floors=(
            _figure("default", accuracy),
            _figure("jam", accuracy),
            _figure("rates", 0.003, at_least=False),
            *(seconds_under(side, seconds) for side in ("default", "jam")),
            *(_memory_beyond(side, megabytes) for side in ("default", "jam")),
        ),
        figure="pairs or rate",
    )


RED = _wine("red", 821_581, 0.987, 1.5, 300)
WHITE = _wine("white", 8_102_166, 0.986, 25, 2_000)

CROWD = Workload(
    name="joint_annotators/crowd",
    what="Joint annotators, {n_annotators:,} annotators, {n_rows:,} preferences over {n_items:,} items, 50 features",
    sizes={
        "tiny": {"n_annotators": 50, "n_rows": 5_000, "n_items": 200},
        "small": {"n_annotators": 500, "n_rows": 100_000, "n_items": 2_000},
        "full": {"n_annotators": 5_000, "n_rows": 1_000_000, "n_items": 20_000},
    },
    prepare=_prepare_crowd,
    sides={
        "default": Call("crowdrank joint_annotators", _fit("joint_annotators"), _tau),
        "jam": Call("crowdrank jam", _fit("jam"), _tau),
    },
    floors=tuple(
        floor for side in ("default", "jam") for floor in (seconds_under(side, 60), peak_under(side, 2.0))
    ),
    figure="tau",
)  # fmt: skip
