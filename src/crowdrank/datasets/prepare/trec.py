"""Topics of the relevance feedback items, which their source left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from ...errors import JudgmentError
from ...protocols import Bools, Counts
from ..trec import BROKEN
from .work import Work

GOLD_FOLDER = "trec-rf10-crowd-gold"


def item_topics(work: Work) -> None:
    """Take labels and gold as they are, and find the topic of every item.

    The items stand in order of topic and document, so the gold ones align in sequence with the gold questions of
    ``trec-rf10-crowd-gold``, which carry topic and document. Items between two of one topic are of that topic. Between
    two topics the cut goes where the items' annotators fit best: those before it were labelled by annotators seen in
    the first topic, those after it by annotators seen in the second.
    """
    for file in ("label.csv", "truth.csv"):
        work.write(file, work.read(work.terms.files[file]))
    labels = _numbers(work, "label.csv", ("item", "annotator", "label"))
    gold = _numbers(work, "truth.csv", ("item", "label"))
    questions = _questions(work)
    usable = labels.filter(pl.col("label") != BROKEN)["item"].unique()
    known = gold.filter((pl.col("label") != BROKEN) & pl.col("item").is_in(usable.implode())).sort("item")
    if len(known) != len(questions) or not (questions["relevant"] == (known["label"] > 0)).all():
        raise JudgmentError(
            f"the {len(known)} gold items do not align with the {len(questions)} questions of {GOLD_FOLDER}; "
            "both must be complete and of the commits named in the data set's source"
        )
    known = known.with_columns(questions["topic"], questions["document"])
    items = labels["item"].unique().sort()
    topic, exact = _topics(items.to_numpy(), known, labels)
    frame = pl.DataFrame({"item": items, "topic": topic, "exact": exact.astype(np.int64)})
    documents = known.select("item", doc="document")
    work.write_table("item_topic.csv", frame.join(documents, on="item", how="left", maintain_order="left"))


def _numbers(work: Work, file: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """A table of whole numbers of the source."""
    return work.table(work.terms.files[file], columns).with_columns(pl.all().cast(pl.Int64))


def _questions(work: Work) -> pl.DataFrame:
    """Topic, document and relevance of the gold questions, in order; from the source or from the prepared folder."""
    prepared = work.root / GOLD_FOLDER
    inside: Path = prepared if (prepared / "map_question_integer.txt").is_file() else work.source
    other = Work(GOLD_FOLDER, inside, work.root)
    names = other.table(other.terms.files["map_question_integer.txt"], ("name", "number"), separator=" ", header=False)
    truth = other.table(other.terms.files["responses_gt.txt"], ("number", "category"), separator=" ", header=False)
    return (
        names.join(truth, on="number")
        .sort("name")
        .select(
            topic=pl.col("name").str.slice(0, 5).cast(pl.Int64),
            document=pl.col("name").str.slice(5),
            relevant=pl.col("category") == "2",
        )
    )


def _topics(items: Counts, known: pl.DataFrame, labels: pl.DataFrame) -> tuple[Counts, Bools]:
    """Topic of each item, and whether the known items around it leave no doubt."""
    place = np.searchsorted(items, known["item"].to_numpy())
    topics = known["topic"].to_numpy()
    here = np.arange(len(items))
    before = topics[np.maximum(np.searchsorted(place, here, side="right") - 1, 0)]
    after = topics[np.minimum(np.searchsorted(place, here), len(topics) - 1)]
    exact: Bools = before == after
    fit = _fit(items, before, after, exact, labels)
    topic = before.copy()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~exact, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        gain = np.concatenate([[0], np.cumsum(fit[start:stop])])
        topic[start + int(np.argmax(gain)) : stop] = after[start]
    return topic, exact


def _fit(items: Counts, before: Counts, after: Counts, exact: Bools, labels: pl.DataFrame) -> Counts:
    """Labels of each doubtful item by annotators seen in the topic before it, less those by annotators of the next."""
    row = np.searchsorted(items, labels["item"].to_numpy())
    annotator = labels["annotator"].to_numpy()
    seen = set(zip(before[row][exact[row]].tolist(), annotator[exact[row]].tolist(), strict=True))
    fit = np.zeros(len(items), np.int64)
    for place, who in zip(row[~exact[row]].tolist(), annotator[~exact[row]].tolist(), strict=True):
        fit[place] += ((int(before[place]), who) in seen) - ((int(after[place]), who) in seen)
    return fit
