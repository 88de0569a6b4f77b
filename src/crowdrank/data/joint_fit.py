"""What joint methods return: a ranker with the consensus and the annotators it was learned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError
from ..protocols import AnyFloats, Floats, Ints, method_name
from .consensus import Consensus, Quality, Trace
from .features import Features
from .files import PathLike
from .index import Items
from .judged import judged_frame


@dataclass(frozen=True, eq=False)
class PairPosteriors:
    """How sure each judged pair of items is, given votes and features.

    Parameters
    ----------
    items
        Items within their queries.
    left, right
        Codes of both items of each pair, each pair once.
    probability
        Probability that left is the better.
    cluster
        Number of each pair's cluster, from 0, where pairs were clustered (VRJAM): the column of ``cluster_flip`` of the
        quality that its preferences count for.
    """

    items: Items
    left: Ints
    right: Ints
    probability: Floats
    cluster: Ints | None = None

    def __len__(self) -> int:
        return len(self.probability)

    def frame(self) -> pl.DataFrame:
        """Return a table of query, left, right, probability and, where there are any, cluster."""
        rest: dict[str, Any] = {"probability": self.probability}
        rest |= {} if self.cluster is None else {"cluster": self.cluster}
        return judged_frame(self.items, {"left": self.left, "right": self.right}, rest)


@dataclass(frozen=True, eq=False, kw_only=True)
class JointFit:
    """A ranker with the consensus that was learned with it, or that it was trained on.

    Parameters
    ----------
    method
        Name of the joint method.
    ranker
        The fitted ranker; ``None`` where there were no features to learn from.
    consensus
        The consensus of the judgments, ``None`` where every grade was learned from by itself.
    n_items, n_queries
        How many items, of how many queries, were learned from; those that were held out are not among them.
    n_unjudged
        How many items have features but were not judged.
    pairs
        How sure each judged pair is, where the method says so.
    choice, reason
        Rankers that were compared on held-out queries, and why this one was taken, where one was chosen.
    """

    method: str
    ranker: Any
    consensus: Consensus | None
    n_items: int
    n_queries: int
    n_unjudged: int = 0
    pairs: PairPosteriors | None = None
    choice: pl.DataFrame | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        learned = "no features" if self.ranker is None else type(self.ranker).__name__
        if self.method == "two_stage":
            source = "every grade" if self.consensus is None else f"the consensus of {self.consensus.method}"
            learned += f" from {source}"
        return f"JointFit({self.method}: {learned}, {self.n_items:,} items, {self.n_queries:,} queries)"

    @property
    def learner(self) -> str:
        """Name of what learned: the ranker after an aggregator, or the joint method."""
        return method_name(self.ranker) if self.method == "two_stage" else self.method

    @property
    def quality(self) -> Quality | None:
        """Quality of each annotator; ``None`` where there is no consensus, or nobody is named."""
        return None if self.consensus is None else self.consensus.quality

    @property
    def trace(self) -> Trace | None:
        """How the fit of the consensus went; ``None`` where there is none."""
        return None if self.consensus is None else self.consensus.trace

    def predict(self, features: Any, qid: Any = None) -> pl.DataFrame | AnyFloats:
        """Return the score of each item, larger is better, whether it was judged or not.

        :class:`~crowdrank.Features`, or a frame with item [, query] and numbers, give a table of query, item and score
        in the order of :class:`~crowdrank.Features`; features are found by their names, and other columns are left
        alone. A matrix, or a frame of the features alone, gives an array; ``qid`` are its queries, for rankers that
        scale features within queries.
        """
        ranker = self._expect_ranker()
        columns = getattr(features, "columns", None)
        if columns is not None and list(columns) != ranker.feature_names_in_.tolist():
            features = Features.from_frame(features, features=ranker.feature_names_in_.tolist())
        if isinstance(features, Features):
            return features.items.frame().with_columns(score=pl.Series(item_scores(ranker, features)))
        return ranker.predict(features, qid)

    def save(self, path: PathLike) -> None:
        """Write the ranker to a file that :func:`crowdrank.load_ranker` reads; consensus and quality are not in it."""
        self._expect_ranker().save(path)

    def _expect_ranker(self) -> Any:
        """The ranker, if there is one."""
        if self.ranker is None:
            raise ParameterError(f"{self.method} was fitted without features, so it scores no other items; give some")
        return self.ranker


def takes_missing(ranker: Any) -> bool:
    """Return whether a ranker takes missing features; ours say so without scikit-learn, which is slow to load."""
    own = getattr(ranker, "takes_missing", None)
    if own is not None:
        return bool(own)
    from sklearn.utils import get_tags

    return bool(get_tags(ranker).input_tags.allow_nan)


def item_scores(ranker: Any, features: Features) -> Floats:
    """Return a fitted ranker's score of each item, in the order of the features."""
    learned_from = getattr(ranker, "feature_names_in_", None)
    features = features if learned_from is None else features.select(list(learned_from))
    features.expect_numbers(missing=takes_missing(ranker))
    return ranker.predict(features).astype(np.float64, copy=False)
