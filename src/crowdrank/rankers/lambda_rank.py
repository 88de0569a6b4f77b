"""A small network that learns to put gain at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError, ParameterError
from ..protocols import Floats, Progress
from ..wording import one_of
from .design import Design
from .estimator import Ranker, scored_groups
from .lists import Lists
from .losses import best_of_query, better_first, swap_gains
from .matrix import Matrix
from .saving import weights_of, whole_number
from .scaling import SCALES, learn_scaling
from .stopping import GAINS, ValidationRows, Watch, gains

_LOSSES = ("lambda_rank", "list_net", "list_mle")


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(Ranker):
    r"""LambdaRank: a neural network with one hidden layer on LambdaRank gradients.

    The score of an item with features :math:`x` is :math:`s = v \cdot \tanh(W x + b)`. A pair of items whose gains
    :math:`g_i > g_j` differ pulls its scores apart by

    .. math:: \lambda_{ij} = \frac{|g_i - g_j| \, |D(r_i) - D(r_j)|}{\text{ideal DCG}}
              \cdot \frac{\sigma}{1 + e^{\sigma (s_i - s_j)}}, \qquad D(r) = \frac{1}{\log_2(1 + r)},

    what nDCG would lose if the two swapped their ranks :math:`r`, times how surely the scores have them the wrong way
    round [Burges10]_. Needs torch: ``pip install 'crowdrank[neural]'``; predicting does not.

    When to use
    -----------
    Use it where a smooth non-linear score is wanted and torch can be installed for training. ``lambda_mart`` usually
    needs less tuning; linear rankers need fewer labels.

    Parameters
    ----------
    loss
        ``"lambda_rank"``, or the losses of the linear rankers of these names: ``"list_net"``, ``"list_mle"``.
    n_hidden
        Units of the hidden layer.
    n_epochs
        Passes over the training queries, the most there may be where ``patience`` is set.
    learning_rate
        Length of Adam's steps.
    batch
        Queries a step.
    ridge
        Pull of the network's weights towards 0, against a mean over queries.
    truncation
        Pairs count where at least one item is among so many first ranks; ``None`` for all pairs.
    sigma
        How steeply the pull falls with the difference of scores.
    gain
        ``"exponential"``: :math:`2^y - 1` of the target :math:`y`, any number from 0 on; ``"linear"`` or ``"given"``:
        the target itself.
    scale
        ``"overall"``: features less their mean, by their standard deviation; ``"query"``: from 0 to 1 within each
        query, so that ``predict`` needs ``qid`` too; ``"none"``: as they are.
    patience
        Stop after so many epochs without a better nDCG on the validation queries; ``None`` runs all epochs. In either
        case the best epoch is kept where there is an ``eval_set``.
    k
        Places of the nDCG that validation queries are measured by.
    seed
        Start of the random draws: first weights, and which queries make a batch.

    Attributes
    ----------
    layers_
        Weights and offsets of the two layers, as arrays.
    n_epochs_
        The epoch that was kept.
    scaling_, curve_
        The scaling that was learned, and the learning curve.
    n_features_in_, feature_names_in_
        Number of features, and their names where X had any.

    Notes
    -----
    Queries of a batch stand one after the other, whatever their lengths, and a compiled kernel goes over the pairs:
    nothing is padded. Queries are put into batches once, and the batches are shuffled in every epoch.

    Weights stand as :math:`w_i w_j` before every pair, relative to the query's mean weight of an item. Where items have
    several rows (``item=``), ranks, truncation and ideal DCG count items, rows of one item form no pair, slopes do not
    grow with the number of copies, and validation is measured on items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.random((400, 3)), np.repeat(np.arange(20), 20)
    >>> y = np.floor(3 * X[:, 0])
    >>> ranker = LambdaRank(n_epochs=30).fit(X, y, qid=qid)  # doctest: +SKIP
    >>> ranker.score(X, y, qid=qid) > 0.9  # doctest: +SKIP
    True
    """

    loss: str = "lambda_rank"
    n_hidden: int = 10
    n_epochs: int = 100
    learning_rate: float = 0.01
    batch: int = 8
    ridge: float = 1e-3
    truncation: int | None = None
    sigma: float = 1.0
    gain: str = "exponential"
    scale: str = "overall"
    patience: int | None = None
    k: int = 10
    seed: int = 0

    _scales: ClassVar[bool] = True

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        for name, known in (("loss", _LOSSES), ("gain", GAINS), ("scale", SCALES)):
            one_of(getattr(self, name), known, name)
        for name in ("n_hidden", "n_epochs", "batch", "k", "patience", "truncation"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(f"{name}={value} must be at least 1")
        for name in ("learning_rate", "sigma"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")
        if not self.ridge >= 0:
            raise ParameterError(f"ridge={self.ridge} must not be below 0")

    def _watch(self, held: ValidationRows | None, progress: Progress | None) -> Watch:
        """Validation by nDCG@k of the chosen gain."""
        if held is None and self.patience is not None:
            raise ParameterError("patience= counts epochs without a better nDCG on validation queries; give eval_set=")
        return Watch(
            held, k=self.k, gain=self.gain, patience=self.patience, n_steps=self.n_epochs, progress=progress,
            what="lambda_rank",
        )  # fmt: skip

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Train the network, keeping the best epoch."""
        torch = _torch()
        lists = lists.best_first() if self.loss == "list_mle" else lists
        # what a feature differs by between queries does not cancel in a network, and would saturate it
        self.scaling_ = learn_scaling(self.scale, matrix, lists, within=False)
        rng = np.random.default_rng(self.seed)
        batches = [_Batch.of(self, matrix, lists, queries) for queries in _split(lists.n_queries, self.batch, rng)]
        held = None if watch.held is None else _features(watch.held.matrix, watch.held.lists, self)
        network = _Network(torch, matrix.n_features, self.n_hidden, rng)
        adam = torch.optim.Adam(network.parameters, lr=self.learning_rate)
        for epoch in range(1, self.n_epochs + 1):
            for number in rng.permutation(len(batches)):
                network.step(adam, batches[number], self.ridge)
            layers = network.layers()
            scores = None if held is None else _forward(layers, held)
            if watch.note(epoch, scores=scores):
                self.layers_, self.n_epochs_ = layers, epoch
            if watch.exhausted:
                break

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Output of the network for each row."""
        rows, offsets = scored_groups(self.scaling_, matrix, qid)
        found = np.empty(matrix.n_rows)
        for begin, end, block in Design(matrix, rows, offsets, self.scaling_).blocks():
            places = slice(begin, end) if rows is None else rows[begin:end]
            found[places] = _forward(self.layers_, block)
        return found

    def _importance(self) -> Floats:
        """How far the output moves with each feature where all features are at their mean."""
        inner, shift, outer = self.layers_
        importance: Floats = (outer * (1.0 - np.tanh(shift) ** 2)) @ inner
        return importance

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The layers."""
        inner, shift, outer = self.layers_
        return {"n_epochs": self.n_epochs_}, {"inner": inner, "shift": shift, "outer": outer}

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """The layers."""
        n_hidden = len(numbers["inner"])
        inner = weights_of(numbers, "inner", n_hidden, self.n_features_in_)
        self.layers_ = (inner, weights_of(numbers, "shift", n_hidden), weights_of(numbers, "outer", n_hidden))
        self.n_epochs_ = whole_number(facts["n_epochs"])


class _Batch(NamedTuple):
    """Scaled features of some queries, as torch has them, and what gives the slopes at their scores."""

    features: Any
    slopes: Callable[[Floats], Floats]
    n_queries: int

    @classmethod
    def of(cls, method: LambdaRank, matrix: Matrix, lists: Lists, queries: NDArray[np.int64]) -> _Batch:
        """The batch of some queries."""
        part = _part(lists, queries)
        features = _torch().from_numpy(_features(matrix, part, method).astype(np.float32))
        return cls(features, _slopes(method, part), len(queries))


def _slopes(method: LambdaRank, lists: Lists) -> Callable[[Floats], Floats]:
    """What gives the slopes of the loss, of the mean over the batch's queries, at scores of its places."""
    if method.loss == "list_net":
        entropy = best_of_query(lists)
        return lambda scores: entropy(scores).slopes
    if method.loss == "list_mle":
        choices = better_first(lists)
        return lambda scores: choices(scores).slopes
    pulls = swap_gains(
        lists, gains(lists.target, method.gain), truncation=method.truncation, sigma=method.sigma, normalize=False
    )
    share = 1.0 / float(lists.item_weights().sum())
    return lambda scores: share * pulls(scores)[0]


class _Network:
    """One hidden layer of tanh units and a linear output, trained by given slopes."""

    def __init__(self, torch: Any, n_features: int, n_hidden: int, rng: np.random.Generator) -> None:
        self.torch = torch
        wide, narrow = 1.0 / np.sqrt(n_features), 1.0 / np.sqrt(n_hidden)
        starts = (
            rng.uniform(-wide, wide, (n_hidden, n_features)),
            np.zeros(n_hidden),
            rng.uniform(-narrow, narrow, n_hidden),
        )
        self.parameters = [torch.tensor(start, dtype=torch.float32, requires_grad=True) for start in starts]

    def step(self, adam: Any, batch: _Batch, ridge: float) -> None:
        """Go one step down the slopes of a batch."""
        inner, shift, outer = self.parameters
        scores = self.torch.tanh(batch.features @ inner.T + shift) @ outer
        slopes = batch.slopes(scores.detach().numpy().astype(np.float64))
        penalty = 0.5 * ridge * (inner.square().sum() + outer.square().sum())
        adam.zero_grad(set_to_none=True)
        self.torch.autograd.backward(
            [scores, penalty], [self.torch.from_numpy(slopes.astype(np.float32)), self.torch.ones(())]
        )
        adam.step()

    def layers(self) -> tuple[Floats, Floats, Floats]:
        """The weights as they are, copied."""
        inner, shift, outer = (parameter.detach().numpy().astype(np.float64) for parameter in self.parameters)
        return inner, shift, outer


def _forward(layers: tuple[Floats, Floats, Floats], features: Floats) -> Floats:
    """Scores of scaled features."""
    inner, shift, outer = layers
    scores: Floats = np.tanh(features @ inner.T + shift) @ outer
    return scores


def _split(n_queries: int, batch: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """The queries in batches, drawn once."""
    return np.array_split(rng.permutation(n_queries), -(-n_queries // batch))


def _part(lists: Lists, queries: NDArray[np.int64]) -> Lists:
    """Some queries of the lists, one after the other."""
    sizes = np.diff(lists.offsets)[queries]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(int(offsets[-1])) + np.repeat(lists.offsets[queries] - offsets[:-1], sizes)
    n_items, item = lists.n_items[queries], lists.item
    if item is not None:
        first = np.concatenate([[0], np.cumsum(n_items)])[:-1] - lists.item_offsets[queries]
        item = (item[places] + np.repeat(first, sizes)).astype(np.int32)
    return replace(
        lists, rows=places if lists.rows is None else lists.rows[places], offsets=offsets, n_items=n_items, item=item,
        target=lists.target[places], weight=None if lists.weight is None else lists.weight[places],
    )  # fmt: skip


def _features(matrix: Matrix, lists: Lists, method: LambdaRank) -> Floats:
    """Scaled features of the lists' places."""
    blocks = Design(matrix, lists.rows, lists.offsets, method.scaling_).blocks()
    return np.concatenate([block for _, _, block in blocks])


def _torch() -> Any:
    """Torch, or a sentence that says how to get it."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError("lambda_rank needs torch; install it with pip install 'crowdrank[neural]'") from None
    return torch
