"""A small network that learns to put gain at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError, ParameterError
from ..kernels.threads import one_blas_thread
from ..protocols import Floats
from ..wording import expect_above, expect_at_least, expect_choices
from .estimator import GAINS, Ranker, Watch, gains
from .saving import weights_of, whole_number
from .training_rows import SCALES, Design, Lists, Matrix, learn_scaling, scoring_design

_LOSSES = ("lambda_rank", "list_net", "list_mle")
_MOST_LAYERS = len(ascii_lowercase)
_DECAY, _LEAST_SCALE = (0.9, 0.999), 1e-8
"""How slowly Adam forgets gradients and their squares, and what keeps its steps finite: its usual choice."""

Layers = tuple[Floats, ...]
"""Weights and offsets of each hidden layer, then the weights of the output."""


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(Ranker):
    r"""LambdaRank: a small neural network on LambdaRank gradients.

    The score of an item with features :math:`x` is :math:`s = v \cdot \tanh(W x + b)`. A pair of items whose gains
    :math:`g_i > g_j` differ pulls its scores apart by

    .. math:: \lambda_{ij} = \frac{|g_i - g_j| \, |D(r_i) - D(r_j)|}{\text{ideal DCG}}
              \cdot \frac{\sigma}{1 + e^{\sigma (s_i - s_j)}}, \qquad D(r) = \frac{1}{\log_2(1 + r)},

    what nDCG would lose if the two swapped their ranks :math:`r`, times how surely the scores have them the wrong way
    round [Burges10]_. More than one hidden layer needs torch: ``pip install 'crowdrank[neural]'``; predicting does not.

    When to use
    -----------
    Use it where a smooth non-linear score is wanted. ``lambda_mart`` usually needs less tuning; linear rankers need
    fewer labels.

    Parameters
    ----------
    loss
        ``"lambda_rank"``, or the losses of the linear rankers of these names: ``"list_net"``, ``"list_mle"``.
    n_hidden
        Units of each hidden layer; raise it for a more flexible score, which needs more labels.
    n_layers
        Number of hidden layers; one is trained by numpy, more by torch.
    n_epochs
        Passes over the training queries, the most there may be where ``patience`` is set.
    learning_rate
        Length of Adam's steps; raise it to learn in fewer epochs, lower it where the curve jumps.
    batch
        Queries per step; raise it for steadier and fewer steps.
    ridge
        Pull of the network's weights towards 0, against a mean over queries; raise it where queries are few.
    truncation
        Pairs count where at least one item is among this many first ranks; ``None`` for all pairs.
    sigma
        How steeply the pull falls with the difference of scores; raise it to leave pairs alone that are in order.
    gain
        ``"exponential"``: :math:`2^y - 1` of the target :math:`y`, any number from 0 on; ``"linear"`` or ``"given"``:
        the target itself.
    scale
        ``"overall"``: features less their mean, by their standard deviation; ``"query"``: from 0 to 1 within each
        query, so ``predict`` needs ``qid`` too; ``"none"``: as they are.
    patience
        Stop after this many epochs without a better nDCG on the validation queries; ``None`` runs all epochs. In either
        case the best epoch is kept where there is an ``eval_set``.
    k
        Places of the nDCG that validation queries are measured by.
    seed
        Seed of the random draws: first weights, and which queries make a batch.

    Attributes
    ----------
    layers_
        Weights and offsets of each hidden layer, and the weights of the output, as arrays.
    n_epochs_
        The epoch that was kept.
    scaling_, curve_
        The scaling that was learned, and the learning curve.
    n_features_in_, feature_names_in_
        Number of features, and their names where X had any.

    Notes
    -----
    Queries of a batch stand one after the other, whatever their lengths, and a compiled kernel goes over the pairs:
    nothing is padded. Slopes go back through one hidden layer by hand, in double precision. Queries are put into
    batches once, and the batches are shuffled in every epoch.

    Weights stand as :math:`w_i w_j` before every pair, relative to the query's mean weight of an item. Where items have
    several rows (``item=``), ranks, truncation and ideal DCG count items, rows of one item form no pair, slopes do not
    grow with the number of copies, and validation is measured on items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.random((400, 3)), np.repeat(np.arange(20), 20)
    >>> y = np.floor(3 * X[:, 0])
    >>> ranker = LambdaRank(n_epochs=30).fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid) > 0.9
    True
    """

    loss: str = "lambda_rank"
    n_hidden: int = 10
    n_layers: int = 1
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
    _steps: ClassVar[str] = "epochs"
    _most_steps: ClassVar[str] = "n_epochs"

    def check(self) -> None:
        """Refuse parameters outside their range."""
        expect_choices(self, loss=_LOSSES, gain=GAINS, scale=SCALES)
        expect_at_least(self, 1, "n_hidden", "n_layers", "n_epochs", "batch", "k", "patience", "truncation")
        if self.n_layers > _MOST_LAYERS:
            raise ParameterError(f"n_layers={self.n_layers} must be at most {_MOST_LAYERS}")
        expect_above(self, 0, "learning_rate", "sigma")
        expect_at_least(self, 0, "ridge")

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Train the network, keeping the best epoch."""
        lists = lists.best_first() if self.loss == "list_mle" else lists
        # what a feature differs by between queries does not cancel in a network, and would saturate it
        self.scaling_ = learn_scaling(self.scale, matrix, lists, within=False)
        rng = np.random.default_rng(self.seed)
        drawn = np.array_split(rng.permutation(lists.n_queries), -(-lists.n_queries // self.batch))
        parts = [lists.take(queries) for queries in drawn]
        batches = [(_features(matrix, part, self), _slopes(self, part)) for part in parts]
        held = None if watch.held is None else _features(watch.held.matrix, watch.held.lists, self)
        # weights of all layers begin at random, offsets at 0
        first: list[Floats] = []
        for width in [matrix.n_features, *[self.n_hidden] * (self.n_layers - 1)]:
            wide = 1.0 / np.sqrt(width)
            first += [rng.uniform(-wide, wide, (self.n_hidden, width)), np.zeros(self.n_hidden)]
        narrow = 1.0 / np.sqrt(self.n_hidden)
        first.append(rng.uniform(-narrow, narrow, self.n_hidden))
        network = (_Network if self.n_layers == 1 else _DeepNetwork)(first, self.learning_rate, self.ridge)
        with one_blas_thread():
            for epoch in range(1, self.n_epochs + 1):
                for number in rng.permutation(len(batches)):
                    network.step(*batches[number])
                layers = network.layers()
                scores = None if held is None else _forward(layers, held)
                if watch.note(epoch, scores=scores):
                    self.layers_, self.n_epochs_ = layers, epoch
                if watch.is_exhausted:
                    break

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Output of the network for each row."""
        design = scoring_design(matrix, qid, self.scaling_)
        of_rows = np.empty(matrix.n_rows)
        for begin, end, block in design.blocks():
            places = slice(begin, end) if design.rows is None else design.rows[begin:end]
            of_rows[places] = _forward(self.layers_, block)
        return of_rows

    def _importance(self) -> Floats:
        """How far the output moves with each feature where all features are at their mean."""
        values, slopes = np.zeros(self.n_features_in_), np.eye(self.n_features_in_)
        for weights, shift in zip(self.layers_[:-1:2], self.layers_[1::2], strict=True):
            values = np.tanh(weights @ values + shift)
            slopes = (1.0 - values**2)[:, None] * (weights @ slopes)
        return self.layers_[-1] @ slopes

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The layers."""
        return {"n_epochs": self.n_epochs_}, dict(zip(_names(self.n_layers), self.layers_, strict=True))

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """The layers."""
        n_hidden, layers, width = len(numbers["inner"]), [], self.n_features_in_
        for number in range(self.n_layers):
            weights, shift = _names(self.n_layers)[2 * number : 2 * number + 2]
            layers += [weights_of(numbers, weights, n_hidden, width), weights_of(numbers, shift, n_hidden)]
            width = n_hidden
        self.layers_ = (*layers, weights_of(numbers, "outer", n_hidden))
        self.n_epochs_ = whole_number(facts["n_epochs"])


def _names(n_layers: int) -> list[str]:
    """Names of the arrays of all layers, as files have them."""
    # names in files have no digits
    ends = ["", *(f"_{letter}" for letter in ascii_lowercase[1:n_layers])]
    return [*(f"{part}{end}" for end in ends for part in ("inner", "shift")), "outer"]


def _slopes(method: LambdaRank, lists: Lists) -> Callable[[Floats], Floats]:
    """What gives the slopes of the loss, of the mean over the batch's queries, at scores of its places."""
    from .kernels.losses import best_of_query, better_first, swap_gains

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
    """One hidden layer of tanh units and a linear output, trained by given slopes with Adam [Kingma15]_."""

    def __init__(self, first: Sequence[Floats], rate: float, ridge: float) -> None:
        self._layers, self._rate, self._ridge = list(first), rate, ridge
        self._mean, self._square = ([np.zeros_like(layer) for layer in first] for _ in range(2))
        self._n_steps = 0

    def step(self, features: Floats, slopes_at: Callable[[Floats], Floats]) -> None:
        """Go one step down the slopes of a batch."""
        inner, shift, outer = self._layers
        hidden = np.tanh(features @ inner.T + shift)
        slopes = slopes_at(hidden @ outer)
        back = slopes[:, None] * outer * (1.0 - hidden**2)
        gradients = (
            back.T @ features + self._ridge * inner,
            back.sum(axis=0),
            hidden.T @ slopes + self._ridge * outer,
        )
        self._n_steps += 1
        fresh, steady = (1.0 - decay**self._n_steps for decay in _DECAY)
        for place, gradient in enumerate(gradients):
            self._mean[place] += (1.0 - _DECAY[0]) * (gradient - self._mean[place])
            self._square[place] += (1.0 - _DECAY[1]) * (gradient**2 - self._square[place])
            scale = np.sqrt(self._square[place] / steady) + _LEAST_SCALE
            self._layers[place] -= self._rate * (self._mean[place] / fresh) / scale

    def layers(self) -> Layers:
        """The weights as they are, copied."""
        return tuple(layer.copy() for layer in self._layers)


class _DeepNetwork:
    """Several hidden layers, trained by torch."""

    def __init__(self, first: Sequence[Floats], rate: float, ridge: float) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError(
                "lambda_rank with several layers needs torch; set n_layers=1, or install it with pip install "
                "'crowdrank[neural]'"
            ) from None
        self._torch, self._ridge = torch, ridge
        self._layers = [self._torch.tensor(layer, requires_grad=True) for layer in first]
        self._adam = self._torch.optim.Adam(self._layers, lr=rate, betas=_DECAY, eps=_LEAST_SCALE)

    def step(self, features: Floats, slopes_at: Callable[[Floats], Floats]) -> None:
        """Go one step down the slopes of a batch."""
        values, penalty = self._torch.from_numpy(features), self._torch.zeros(())
        for weights, shift in zip(self._layers[:-1:2], self._layers[1::2], strict=True):
            values = self._torch.tanh(values @ weights.T + shift)
            penalty = penalty + 0.5 * self._ridge * weights.square().sum()
        scores = values @ self._layers[-1]
        penalty = penalty + 0.5 * self._ridge * self._layers[-1].square().sum()
        slopes = slopes_at(scores.detach().numpy())
        self._adam.zero_grad(set_to_none=True)
        ones = self._torch.ones((), dtype=penalty.dtype)
        self._torch.autograd.backward([scores, penalty], [self._torch.from_numpy(slopes), ones])
        self._adam.step()

    def layers(self) -> Layers:
        """The weights as they are, copied."""
        return tuple(layer.detach().numpy().copy() for layer in self._layers)


def _forward(layers: Layers, features: Floats) -> Floats:
    """Scores of scaled features."""
    values = features
    for weights, shift in zip(layers[:-1:2], layers[1::2], strict=True):
        values = np.tanh(values @ weights.T + shift)
    return values @ layers[-1]


def _features(matrix: Matrix, lists: Lists, method: LambdaRank) -> Floats:
    """Scaled features of the lists' places."""
    blocks = Design(matrix, lists.rows, lists.offsets, method.scaling_).blocks()
    return np.concatenate([block for _, _, block in blocks])
