"""Rankings drawn from known scores."""

import numpy as np
import polars as pl

from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Rankings


def simulated(n_items, n_rankings, size, *, seed=0, adherence=None, sizes=None, spread=1.0):
    """Rankings of known scores, by annotators of given adherence, and those scores, centred in each query."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes or [n_items])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(0, spread, offsets[-1])
    query = rng.integers(0, len(sizes), n_rankings)
    item = np.array([offsets[q] + rng.choice(sizes[q], size, replace=False) for q in query])
    annotator = np.empty(0, np.int32) if adherence is None else rng.integers(0, len(adherence), n_rankings)
    times = 1.0 if adherence is None else np.asarray(adherence)[annotator][:, None]
    order = np.argsort(-(times * scores[item] + rng.gumbel(size=item.shape)), axis=1)
    names = [] if adherence is None else [f"a{k:02d}" for k in range(len(adherence))]
    queries = Index(pl.Series("id", [f"q{k}" for k in range(len(sizes))]))
    ids = pl.Series("item", [f"i{k:05d}" for k in range(offsets[-1])])
    items = Items(queries, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), ids)
    rankings = Rankings(
        items=items, annotators=Index(pl.Series("id", names, dtype=pl.String)), annotator=annotator.astype(np.int32),
        item=np.take_along_axis(item, order, axis=1).ravel().astype(np.int32),
        rank=np.tile(np.arange(1, size + 1, dtype=np.int32), n_rankings), offsets=np.arange(n_rankings + 1) * size,
    )  # fmt: skip
    return rankings, scores - (np.add.reduceat(scores, offsets[:-1]) / sizes)[items.query]
