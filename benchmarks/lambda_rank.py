"""Epochs of LambdaRank on one fold of OHSUMED, against a network of the same size whose batches are padded.

The peer is written the way the usual libraries for neural ranking do it: lists are padded to the longest of their
batch, and all pairs of a batch are tensors of (queries, length, length) with masks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .list_net import WORKLOAD as ONE_FOLD
from .workload import Call, Size, Workload, faster, no_lower

N_EPOCHS, BATCH, N_HIDDEN, RATE = 10, 8, 10, 0.01


def _rows(folder: Path) -> tuple[Any, Any, Any]:
    import numpy as np

    rows = np.load(folder / "rows.npz")
    return rows["X"], rows["y"], rows["qid"]


def _ours(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.rankers import LambdaRank

    X, y, qid = _rows(folder)
    settings = {"n_hidden": N_HIDDEN, "batch": BATCH, "learning_rate": RATE, "n_epochs": N_EPOCHS}
    return lambda: LambdaRank(**settings).fit(X, y, qid=qid)


class Padded:
    """A network whose batches are padded to their longest list."""

    def __init__(self, X: Any, y: Any, qid: Any) -> None:
        import numpy as np
        import torch

        centre, spread = X.mean(0), X.std(0)
        self.scale = (centre, np.where(spread > 0, spread, 1.0))
        _, starts, sizes = np.unique(qid, return_index=True, return_counts=True)
        order = np.random.default_rng(0).permutation(len(starts))
        scaled = ((X - centre) / self.scale[1]).astype(np.float32)
        self.batches = []
        for queries in np.array_split(order, -(-len(order) // BATCH)):
            longest = int(sizes[queries].max())
            features = np.zeros((len(queries), longest, X.shape[1]), np.float32)
            grade = np.full((len(queries), longest), -1.0, np.float32)
            for row, query in enumerate(queries):
                part = slice(starts[query], starts[query] + sizes[query])
                features[row, : sizes[query]], grade[row, : sizes[query]] = scaled[part], y[part]
            self.batches.append((torch.from_numpy(features), torch.from_numpy(grade)))
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], N_HIDDEN), torch.nn.Tanh(), torch.nn.Linear(N_HIDDEN, 1)
        )
        self.adam = torch.optim.Adam(self.network.parameters(), lr=RATE)

    def fit(self, n_epochs: int = N_EPOCHS) -> Padded:
        """Run this many more epochs."""
        for _ in range(n_epochs):
            for features, grade in self.batches:
                self.adam.zero_grad()
                _padded_loss(self.network(features).squeeze(-1), grade).backward()
                self.adam.step()
        return self

    def predict(self, X: Any) -> Any:
        """Scores of rows."""
        import numpy as np
        import torch

        with torch.no_grad():
            scaled = torch.from_numpy(((X - self.scale[0]) / self.scale[1]).astype(np.float32))
            return self.network(scaled).squeeze(-1).numpy().astype(float)


def _padded_loss(scores: Any, grade: Any) -> Any:
    """The pairs' log-losses, each weighed by what nDCG would lose by a swap."""
    import torch

    there = grade >= 0
    gain = torch.where(there, torch.pow(2.0, grade) - 1, torch.zeros(()))
    with torch.no_grad():
        order = torch.argsort(torch.where(there, scores, torch.full((), -torch.inf)), dim=1, descending=True)
        rank = torch.argsort(order, dim=1)
        discount = 1 / torch.log2(rank + 2.0)
        best = torch.sort(gain, dim=1, descending=True).values
        ideal = (best / torch.log2(torch.arange(best.shape[1]) + 2.0)).sum(1).clamp(min=1e-9)
        change = (gain[:, :, None] - gain[:, None, :]).abs() * (discount[:, :, None] - discount[:, None, :]).abs()
        pairs = (grade[:, :, None] > grade[:, None, :]) & there[:, :, None] & there[:, None, :]
        weight = torch.where(pairs, change / ideal[:, None, None], torch.zeros(()))
    difference = scores[:, :, None] - scores[:, None, :]
    return (weight * torch.nn.functional.softplus(-difference)).sum() / len(scores)


def _padded(folder: Path, size: Size) -> Callable[[], Any]:
    rows = _rows(folder)
    return lambda: Padded(*rows).fit()


def _ndcg(result: Any, folder: Path) -> float:
    from crowdrank.metrics import ndcg

    X, y, qid = _rows(folder)
    return float(ndcg(y, result.predict(X), qid=qid, k=10))


WORKLOAD = Workload(
    name="lambda_rank",
    what="LambdaRank on one fold of OHSUMED, {n_queries} queries, 10 epochs",
    sizes=ONE_FOLD.sizes,
    prepare=ONE_FOLD.prepare,
    sides={
        "lambda_rank": Call("crowdrank", _ours, _ndcg),
        "padded": Call("torch, padded batches", _padded, _ndcg),
    },
    floors=(faster("lambda_rank", "padded", 3), no_lower("lambda_rank", "padded", 0.02)),
    figure="nDCG@10",
    needs=("torch",),
)
