"""What rankers share: lists of rows, scaling, the estimator itself, early stopping, scoring and saving.

A ranker is a file in :mod:`crowdrank.rankers` with a dataclass (``kw_only=True, eq=False, repr=False``) over
:class:`Ranker`, or over :class:`LinearRanker` where scores are linear and the loss is convex; :class:`LinearScore` is
made of weights that were found elsewhere. The base reads X, y, qid, item and weights, checks them once, and calls

``_check(self)``
    to refuse parameters outside their range (scikit-learn wants that in ``fit``, not in ``__init__``);
``_learn(self, matrix, lists, watch)``
    to fit: ``matrix`` is a :class:`Matrix` (``.values`` a numpy array or a sparse matrix in compressed rows, of 32 or
    64 bits, never copied), ``lists`` are its rows query after query (:class:`Lists`: ``rows``, ``offsets``, ``target``,
    ``weight``, ``item``, ``n_items``, ``query_weights()``, ``best_first()``, ``on_items()``), and ``watch`` is told of
    every step (:class:`Watch`: ``note(iteration, objective=, train=, valid=)``, or ``note(..., scores=)`` with scores
    of the places of ``watch.held.lists``, returns whether this step is the best so far; ``watch.exhausted`` says when
    to stop, ``watch.best_iteration`` which step to keep);
``_score_rows(self, matrix, qid)``
    to predict, one 64-bit score for each row of the matrix;
``_importance(self)``, ``_saved(self)``, ``_restore(self, facts, numbers)``
    for the table of weights and for files without pickle.

``_watch(self, held, progress)`` may be overridden to set cutoff, gain, patience and number of steps of the watch, and
the class variables ``_takes_missing`` and ``_takes_sparse`` to say what X may be. :func:`learn_scaling` gives a
:class:`Scaling` that is kept as ``scaling_`` (and saved); :class:`Design` multiplies scaled features a block at a time.
:class:`ItemGain` measures nDCG on items, however many rows they have.
"""

from .design import Design
from .estimator import Ranker
from .linear import LinearRanker, WeightedFeatures, penalised, usual_ridge
from .linear_score import LinearScore
from .lists import Lists, group_queries
from .losses import ScoreLoss, best_of_query, better_first, likely_orders, likely_sets, swap_gains
from .luce import LuceWeights
from .matrix import Matrix
from .saving import Saved, read_saved, write_saved
from .scaling import SCALES, Scaling, learn_scaling
from .scoring import NDCGScorer, ndcg_scorer
from .stopping import GAINS, Held, ItemGain, Watch, gains

__all__ = [
    "GAINS",
    "SCALES",
    "Design",
    "Held",
    "ItemGain",
    "LinearRanker",
    "LinearScore",
    "Lists",
    "LuceWeights",
    "Matrix",
    "NDCGScorer",
    "Ranker",
    "Saved",
    "Scaling",
    "ScoreLoss",
    "Watch",
    "WeightedFeatures",
    "best_of_query",
    "better_first",
    "gains",
    "group_queries",
    "learn_scaling",
    "likely_orders",
    "likely_sets",
    "ndcg_scorer",
    "penalised",
    "read_saved",
    "swap_gains",
    "usual_ridge",
    "write_saved",
]
