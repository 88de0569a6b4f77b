"""Crowd judgments of relevance from the TREC 2010 Relevance Feedback and 2011 Crowdsourcing tracks."""

from __future__ import annotations

import polars as pl

from ..data.judgments import Grades
from ..data.truth import Truth
from .dataset import Dataset
from .store import Store, quietly

BROKEN = 3
"""Code of a broken link among the relevance feedback labels."""

SHEET = "task1_unlabeled_g_truth_cons_public.txt"
DOCUMENTS = range(1, 6)
"""Documents of one assignment of the UC3M runs."""


def relevance_feedback(store: Store, *, every: bool = False) -> Dataset:
    """Labels 0 to 2 of the 2010 documents with their topics, as the CS-TREC2011 set has them.

    Broken links (label 3, gold 3) go out, then an annotator's repeats on one item, of which the first stays.
    ``every`` keeps all labels, the four codes taken as classes.
    """
    given = store.table("label.csv", {"item": "item", "annotator": "worker", "grade": "label"}, numbers=["grade"])
    gold = store.table("truth.csv", {"item": "item", "grade": "truth"}, numbers=["grade"])
    topics = store.table("item_topic.csv", {"item": "item", "query": "topic", "exact": "exact", "document": "doc"})
    notes: tuple[str, ...] = ()
    if not every:
        given, gold, notes = _without_broken(given, gold)
    judged = given.select("item").unique()
    gold = gold.join(judged, on="item", how="semi")
    of_item = topics.select("item", "query")
    given, gold = (store.match(table, of_item, "item", "item_topic.csv") for table in (given, gold))
    if every:
        given = given.with_columns(pl.col("grade").cast(pl.Int64))
    with quietly():
        grades = Grades.from_frame(given, nominal=every)
    details = topics.join(judged, on="item", how="semi").select(
        "query", "item", pl.col("exact") == "1", pl.col("document").replace("", None)
    )
    return store.dataset(judgments=grades, truth=Truth.from_frame(gold), details=details, notes=notes)


def _without_broken(given: pl.DataFrame, gold: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    """Labels and gold without broken links, the labels also without repeats, and what was left out."""
    broken = gold.filter(pl.col("grade") == BROKEN)
    kept = given.filter(pl.col("grade") != BROKEN).join(broken, on="item", how="anti", maintain_order="left")
    once = kept.unique(["item", "annotator"], keep="first", maintain_order=True)
    notes = (
        f"{len(given) - len(kept):,} labels that say broken link, or are of an item whose gold says so, are left out",
        f"{len(kept) - len(once):,} repeats of an annotator on one item are left out; the first label stays",
    )
    return once, gold.filter(pl.col("grade") != BROKEN), notes


def relevance_feedback_gold(store: Store) -> Dataset:
    """The gold-labelled part, binary, with real topic and document ids."""
    given = store.table("responses_eval.txt", ("number", "annotator", "grade"), numbers=["grade"], separator=" ")
    gold = store.table("responses_gt.txt", ("number", "grade"), numbers=["grade"], separator=" ")
    names = store.table("map_question_integer.txt", ("name", "number"), separator=" ").select(
        "number", query=pl.col("name").str.slice(0, 5), item=pl.col("name").str.slice(5)
    )
    tables = [
        # categories 1 and 2 are not relevant and relevant
        store.match(table, names, "number", "map_question_integer.txt").with_columns(pl.col("grade") - 1).drop("number")
        for table in (given, gold)
    ]
    with quietly():
        grades = Grades.from_frame(tables[0])
    repeats = len(given) - given.n_unique(["number", "annotator"])
    notes = (f"{repeats:,} of the {len(given):,} grades repeat an annotator on an item; all are kept",)
    return store.dataset(judgments=grades, truth=Truth.from_frame(tables[1]), notes=notes)


def crowdsourcing(store: Store, *, teams: str = "all") -> Dataset:
    """Binary votes of one team (``own``), of the seven others (``others``) or of ``all``, with NIST's gold."""
    parts, notes = [], []
    if teams != "others":
        own = store.table(
            "votes.tsv", ("time", "name", "annotator", "grade"), numbers=["time", "grade"], separator="\t"
        )
        parts.append(own.with_columns(group=pl.lit("own")) if teams == "all" else own)
    if teams != "own":
        others = store.table(
            "otherparticipantsvotes.tsv", ("name", "annotator", "grade"), numbers=["grade"], separator="\t"
        )
        repeats = len(others) - others.n_unique(["name", "annotator"])
        notes.append(f"{repeats:,} of the other teams' votes repeat an annotator on an item; all are kept")
        parts.append(others.with_columns(group=pl.lit("others")) if teams == "all" else others)
    common = [word for word in parts[0].columns if all(word in part.columns for part in parts)]
    votes = pl.concat([part.select(common) for part in parts])
    votes = votes.with_columns(
        query=pl.col("name").str.split("_").list.first(), item=pl.col("name").str.split("_").list.last()
    ).drop("name")
    with quietly():
        grades = Grades.from_frame(votes)
    return store.dataset(judgments=grades, truth=nist_gold(store), notes=tuple(notes))


def nist_gold(store: Store) -> Truth:
    """NIST's grades 0, 1, 2 from the track's sheet."""
    sheet = store.table(SHEET, ("set", "query", "item", "grade"), numbers=["grade"], separator="\t", skip=1)
    return Truth.from_frame(sheet.filter(pl.col("grade") >= 0).select("query", "item", "grade"))


def uc3m(store: Store, *, run: int = 1) -> Dataset:
    """Labels of one UC3M run: grades 0 to 2 in run 1, a slider from 0 to 100 in runs 2 and 3."""
    labels = {f"grade{n}": f"doc{n}rel" for n in DOCUMENTS}
    columns = {"run": "run", "set": "set", "annotator": "worker", "status": "status", "time": "tssend", **labels}
    assignments = store.table("assignments.txt", columns, separator="\t", encoding="latin-1")
    assignments = assignments.filter((pl.col("run") == str(run)) & pl.col("status").is_in(["Accepted", "Rejected"]))
    hits = store.table(
        "hits.txt",
        {"set": "set", "query": "topic", **{f"item{n}": f"doc{n}" for n in DOCUMENTS}},
        separator="\t",
        encoding="latin-1",
    )
    wide = store.match(assignments, hits, "set", "hits.txt")
    meta = ("query", "annotator", pl.col("time").str.to_datetime("%d/%m/%Y %H:%M:%S"))
    long = pl.concat([wide.select(*meta, item=f"item{n}", grade=f"grade{n}") for n in DOCUMENTS])
    rejected = int((assignments["status"] == "Rejected").sum()) * len(DOCUMENTS)
    sheet = store.neighbour("trec2011-crowd")
    truth = nist_gold(sheet) if sheet.find(SHEET) else None
    notes = [f"{rejected:,} grades come from assignments that the requester rejected; they are kept"]
    if truth is None:
        notes.append(f"no truth: it is in {SHEET} of the folder trec2011-crowd, which is not there")
    return store.dataset(judgments=Grades.from_frame(long), truth=truth, notes=tuple(notes))
