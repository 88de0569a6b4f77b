"""One function for each form of public data set: from its files to judgments, truth and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from ..data.features import Features
from ..data.index import Index
from ..data.judgments import Grades, Preferences, Rankings
from ..data.truth import Truth
from ..io.letor import read_letor
from ..io.preflib import read_preflib
from .catalog import Dataset, Fold, Store, quietly

SITES = ("G", "P", "R", "X")
"""Levels of the adult-site ratings; a larger grade means more adult."""


def answers(
    store: Store, *, files: Sequence[str] = ("answer.csv", "truth.csv"), table: str = "answers", nominal: bool = False
) -> Dataset:
    """Items labelled on a numeric scale or by classes, and their truth, in two tables of one layout."""
    given, truth = store.table(files[0], table), store.table(files[1], f"{table}_truth")
    given = given.with_columns(pl.col("grade").cast(pl.Int64 if nominal else pl.Float64))
    return store.dataset(judgments=Grades.from_frame(given, nominal=nominal), truth=truth)


def adult(store: Store) -> Dataset:
    """Web sites rated G, P, R or X; the gold covers more sites than the crowd saw."""
    given = store.table("labels.tsv", "sites")
    gold = store.table("gold.tsv", "sites_gold")
    for file, frame in (("labels.tsv", given), ("gold.tsv", gold)):
        strange = frame.filter(~pl.col("grade").is_in(SITES))
        if len(strange):
            store.refuse_damaged(file, f"{strange['grade'][0]!r} is none of {', '.join(SITES)}")
    positions = {level: float(position) for position, level in enumerate(SITES)}
    gold = gold.with_columns(pl.col("grade").replace_strict(positions, return_dtype=pl.Float64))
    labelled = int(gold["item"].is_in(given["item"].unique().implode()).sum())
    covered = f"{len(gold):,} sites have gold, {labelled:,} of them were graded"
    grades, truth = quietly(Grades.from_frame, given, levels=SITES), replace(Truth.from_frame(gold), levels=SITES)
    return store.dataset(judgments=grades, truth=truth, notes=(_repeats(given, "annotator", "item"), covered))


def _repeats(given: pl.DataFrame, *columns: str) -> str:
    """How many grades are by the same annotator of the same item."""
    n_repeats = len(given) - given.n_unique(columns)
    return f"{n_repeats:,} of the {len(given):,} grades repeat an annotator on an item; all are kept"


def peer_grading(store: Store, *, file: str = "peer.csv") -> Dataset:
    """Students' grades of group submissions; the truth is the mean grade of the teaching assistants."""
    given, assistants = store.table(file, "peer_grades"), store.table("ta.csv", "peer_grades")
    truth = assistants.group_by("query", "item", maintain_order=True).agg(pl.col("grade").mean())
    return store.dataset(judgments=Grades.from_frame(given), truth=truth)


JUDGES = ("gpt3", "gpt4")


def mirex(store: Store) -> Dataset:
    """Which of two melodies is more similar to the query; the truth is the crowd's own grouping."""
    given = store.table("judgments.csv", "melodies")
    answered = given.filter(pl.col("winner").is_in(["left", "right", "tie"]))
    answered = answered.with_columns(pl.col("time").str.to_datetime("%a %b %d %H:%M:%S GMT %Y"))
    groups = store.table("MTurk.qrel", "melody_groups").drop("run")
    notes = (f"{len(given) - len(answered)} of {len(given):,} answers are blank and left out",)
    return store.dataset(judgments=Preferences.from_frame(answered), truth=groups, notes=notes)


def arguments(store: Store, *, pairs: bool = False) -> Dataset:
    """Which argument is more convincing; the truth is a ranking of the arguments, or with ``pairs`` the gold pairs."""
    votes, texts = store.table("votes.csv", "argument_votes"), store.table("arguments.csv", "argument_texts")
    if pairs:
        truth = store.table("gold_pairs.csv", "argument_pairs")
    else:
        # the source's score falls as an argument convinces more
        truth = store.table("gold_ranking.csv", "argument_scores").with_columns(-pl.col("grade"))
    return store.dataset(judgments=Preferences.from_frame(votes), truth=truth, details=texts)


def model_answers(store: Store, *, who: str = "crowd") -> Dataset:
    """Answers of language models to prompts, compared by the ``crowd``, by two ``judges`` or by ``all``."""
    parts = [store.table("crowd-comparisons.csv", "model_votes")] if who != "judges" else []
    if who != "crowd":
        judged = [(judge, store.table(f"{judge}-comparisons.csv", "model_verdicts")) for judge in JUDGES]
        parts += [table.with_columns(annotator=pl.lit(judge)) for judge, table in judged]
    votes = pl.concat(parts)
    if who == "all":
        family = pl.when(pl.col("annotator").is_in(JUDGES)).then(pl.lit("llm")).otherwise(pl.lit("crowd"))
        votes = votes.with_columns(group=family)
    answers = store.rows("results.jsonl").select(query=pl.col("prompt").cast(pl.String), item="name", text="result")
    return store.dataset(judgments=Preferences.from_frame(votes), details=answers)


def web_pages(store: Store) -> Dataset:
    """Which of two home pages is more attractive; the truth is the source's own Bradley-Terry score of these votes."""
    votes = store.table("calista_votes.csv", "home_pages")
    answered = votes.filter(pl.col("winner").is_in(["left", "right"]))
    pages = store.table("calista_clutter.csv", "page_appeal")
    notes = (f"{len(votes) - len(answered)} of {len(votes):,} answers choose neither page and are left out",)
    # the clutter measures of the screenshots, where the stored table has them
    header = store.text("calista_clutter.csv").split("\n", 1)[0].strip().split(",")
    details = store.table("calista_clutter.csv", "page_measures") if set(MEASURES) <= set(header) else None
    return store.dataset(judgments=Preferences.from_frame(answered), truth=pages, details=details, notes=notes)


SYSTEMS = range(1, 6)


def translations(store: Store, *, file: str = "sample-fr-en-train.csv") -> Dataset:
    """Rankings of five translations of a segment, with ties, by turkers and researchers."""
    wide = store.table(file, "translations")
    wide = wide.with_row_index("ranking").with_columns(group=pl.col("annotator").str.split("_").list.first())
    meta = ("ranking", "query", "annotator", "group")
    long = pl.concat([wide.select(*meta, item=f"item{n}", rank=f"rank{n}") for n in SYSTEMS])
    again = len(wide) - wide.n_unique([word for word in wide.columns if word != "ranking"])
    notes = (f"{again} rankings are exact repeats; all are kept",) if again else ()
    return store.dataset(judgments=Rankings.from_frame(long), notes=notes)


def preflib(store: Store, *, ordered: bool = False) -> Dataset:
    """Rankings of several PrefLib files, each file a query; how often an order was given is its weight.

    With ``ordered`` the items are called by a number (of dots, of moves) and the smallest is truly first.
    """
    parts = []
    for file in store.terms.files:
        rows = read_preflib(store.path(file)).frame()
        weight = pl.col("weight") if "weight" in rows.columns else pl.lit(1.0)
        parts.append(rows.select("ranking", "item", "rank", weight=weight, query=pl.lit(file.split(".")[0])))
    rows = pl.concat(parts)
    truth = None
    if ordered:
        items = rows.select("query", "item").unique().with_columns(rank=pl.col("item").cast(pl.Int64, strict=False))
        if items["rank"].null_count():
            store.refuse_damaged(next(iter(store.terms.files)), "its alternatives are not numbered")
        truth = Truth.from_frame(items.with_columns(pl.col("rank").rank("dense").over("query")))
    return store.dataset(judgments=Rankings.from_frame(rows), truth=truth)


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
    given, gold = store.table("label.csv", "labels"), store.table("truth.csv", "labels_truth")
    topics = store.table("item_topic.csv", "item_topics")
    notes: tuple[str, ...] = ()
    if not every:
        broken = gold.filter(pl.col("grade") == BROKEN)
        kept = given.filter(pl.col("grade") != BROKEN).join(broken, on="item", how="anti", maintain_order="left")
        once = kept.unique(["item", "annotator"], keep="first", maintain_order=True)
        broken_links = "labels that say broken link, or are of an item whose gold says so, are left out"
        repeats = "repeats of an annotator on one item are left out; the first label stays"
        notes = (f"{len(given) - len(kept):,} {broken_links}", f"{len(kept) - len(once):,} {repeats}")
        given, gold = once, gold.filter(pl.col("grade") != BROKEN)
    given = given.with_columns(pl.col("grade").cast(pl.Int64 if every else pl.Float64))
    gold, described = (table.join(given, on="item", how="semi") for table in (gold, topics))
    of_item = topics.select("item", "query")
    given, gold = (store.match(table, of_item, "item", "item_topic.csv") for table in (given, gold))
    grades = quietly(Grades.from_frame, given, nominal=every)
    details = described.select("query", "item", pl.col("exact") == "1", pl.col("document").replace("", None))
    return store.dataset(judgments=grades, truth=gold, details=details, notes=notes)


def relevance_feedback_gold(store: Store) -> Dataset:
    """The gold-labelled part, binary, with real topic and document ids."""
    given, gold = store.table("responses_eval.txt", "gold_votes"), store.table("responses_gt.txt", "gold_grades")
    names, file = store.table("map_question_integer.txt", "gold_names"), "map_question_integer.txt"
    names = names.select("number", query=pl.col("name").str.slice(0, 5), item=pl.col("name").str.slice(5))
    notes = (_repeats(given, "number", "annotator"),)
    # categories 1 and 2 are not relevant and relevant
    given, gold = (store.match(one, names, "number", file).with_columns(pl.col("grade") - 1) for one in (given, gold))
    judgments = quietly(Grades.from_frame, given.drop("number"))
    return store.dataset(judgments=judgments, truth=gold.drop("number"), notes=notes)


def crowdsourcing(store: Store, *, teams: str = "all") -> Dataset:
    """Binary votes of one team (``own``), of the seven others (``others``) or of ``all``, with NIST's gold."""
    parts, notes = [], []
    if teams != "others":
        own = store.table("votes.tsv", "own_votes")
        parts.append(own.with_columns(group=pl.lit("own")) if teams == "all" else own)
    if teams != "own":
        others = store.table("otherparticipantsvotes.tsv", "other_votes")
        repeats = len(others) - others.n_unique(["name", "annotator"])
        notes.append(f"{repeats:,} of the other teams' votes repeat an annotator on an item; all are kept")
        parts.append(others.with_columns(group=pl.lit("others")) if teams == "all" else others)
    common = [word for word in parts[0].columns if all(word in part.columns for part in parts)]
    votes, name = pl.concat([part.select(common) for part in parts]), pl.col("name").str.split("_")
    votes = votes.with_columns(query=name.list.first(), item=name.list.last()).drop("name")
    return store.dataset(judgments=quietly(Grades.from_frame, votes), truth=nist_gold(store), notes=tuple(notes))


def nist_gold(store: Store) -> Truth:
    """NIST's grades 0, 1, 2 from the track's sheet."""
    sheet = store.table(SHEET, "nist_sheet")
    return Truth.from_frame(sheet.filter(pl.col("grade") >= 0).select("query", "item", "grade"))


def uc3m(store: Store, *, run: int = 1) -> Dataset:
    """Labels of one UC3M run: grades 0 to 2 in run 1, a slider from 0 to 100 in runs 2 and 3."""
    assignments = store.table("assignments.txt", "assignments")
    assignments = assignments.filter((pl.col("run") == str(run)) & pl.col("status").is_in(["Accepted", "Rejected"]))
    wide = store.match(assignments, store.table("hits.txt", "hits"), "set", "hits.txt")
    meta = ("query", "annotator", pl.col("time").str.to_datetime("%d/%m/%Y %H:%M:%S"))
    long = pl.concat([wide.select(*meta, item=f"item{n}", grade=f"grade{n}") for n in DOCUMENTS])
    rejected = int((assignments["status"] == "Rejected").sum()) * len(DOCUMENTS)
    sheet = replace(store, folder="trec2011-crowd")
    truth = nist_gold(sheet) if sheet.find(SHEET) else None
    notes = [f"{rejected:,} grades come from assignments that the requester rejected; they are kept"]
    if truth is None:
        notes.append(f"no truth: it is in {SHEET} of the folder trec2011-crowd, which is not there")
    return store.dataset(judgments=Grades.from_frame(long), truth=truth, notes=tuple(notes))


PEOPLE = ("annotator1", "annotator2", "annotator3")
PANDALM = {"0": "tie", "1": "left", "2": "right", "tie": "tie"}
OVERALL = "quality_overall"
VALIDITY = {"correctness_topical": "validity"}
"""Dimensions that the crowd's own file calls otherwise."""


def pandalm(store: Store, *, who: str = "all") -> Dataset:
    """Two answers to an instruction, judged by three people and two models; the truth is the people's majority."""
    kept = ("idx", "cmp_key", "instruction", "input", "response1", "response2")
    cases = store.json("testset-v1.json")
    pairs = pl.DataFrame([{name: row[name] for name in kept} for row in cases])
    pairs = pairs.with_columns(pl.Series(person, [str(row[person]) for row in cases]) for person in PEOPLE)
    first = pl.col("idx").first().over("instruction", "input")
    models = pl.col("cmp_key").str.split("_")
    pairs = pairs.with_columns(query=first.cast(pl.String), left=models.list.first(), right=models.list.last())
    given = [(pairs.select("idx", winner=person), person, "human") for person in PEOPLE]
    for judge, field in (("gpt-3.5-turbo", "gpt_result"), ("pandalm-7b", "pandalm_result")):
        answers = [(row["idx"], str(row[field]).lower()) for row in store.json(f"{judge}-testset-v1.json")]
        given.append((pl.DataFrame(answers, ["idx", "winner"], orient="row"), judge, "llm"))
    verdicts = [table.with_columns(annotator=pl.lit(who), group=pl.lit(group)) for table, who, group in given]
    chosen = {"all": verdicts, "humans": verdicts[:3], "judges": verdicts[3:]}[who]
    every = store.match(pl.concat(chosen), pairs.select("idx", "query", "left", "right"), "idx", "testset-v1.json")
    usable = every.filter(pl.col("winner").is_in(list(PANDALM))).with_columns(pl.col("winner").replace_strict(PANDALM))
    dropped = len(every) - len(usable)
    majority = pl.concat_list(PEOPLE).list.eval(pl.element().mode(maintain_order=True).first()).list.first()
    truth = pairs.select("query", "left", "right", winner=majority.replace_strict(PANDALM))
    # some models answer an instruction differently from pair to pair, then the first answer stands
    sides = [("left", "response1"), ("right", "response2")]
    texts = pl.concat([pairs.select("query", "instruction", "input", item=side, text=text) for side, text in sides])
    texts = texts.unique(["query", "item"], keep="first", maintain_order=True)
    texts = texts.select("query", "item", "text", "instruction", "input")
    notes = (f"{dropped} verdicts that could not be parsed are left out",) if dropped else ()
    judgments = Preferences.from_frame(usable.drop("idx", *(["group"] if who != "all" else [])))
    return store.dataset(judgments=judgments, truth=truth, details=texts, notes=notes)


def llmbar(store: Store) -> Dataset:
    """Verdicts of model and prompting strategy on two outputs, each pair asked in both orders.

    ``left`` and ``right`` stand as the judge saw them, so an annotator's position bias is the share of left wins. Asked
    in the swapped order, ``output_2`` stands left.
    """
    verdicts = store.table("judgments.csv", "verdicts")
    usable = verdicts.filter(pl.col("winner").is_in(["1", "2"]))
    one, two = pl.lit("output_1"), pl.lit("output_2")
    shown = pl.when(pl.col("swapped") == "1")
    query, judge = (pl.concat_str(*names, separator="/") for names in (("subset", "number"), ("model", "strategy")))
    sides = {"left": shown.then(two).otherwise(one), "right": shown.then(one).otherwise(two)}
    given = usable.select(query=query, **sides, winner="output_" + pl.col("winner"), annotator=judge, group="model")
    judgments = Preferences.from_frame(given, winner_codes={"output_1": "item", "output_2": "item"})
    items = store.table("items.csv", "verdict_items")
    items = items.with_columns(query=pl.concat_str("subset", "item", separator="/"))
    truth = items.select("query", left=one, right=two, winner="output_" + pl.col("gold"))
    about = ("query", "subset", "input")
    texts = pl.concat([items.select(*about, item=pl.lit(side), text=side) for side in ("output_1", "output_2")])
    texts = texts.select("query", "item", "text", "subset", "input")
    notes = (f"{len(verdicts) - len(usable)} of {len(verdicts):,} verdicts name no winner and are left out",)
    return store.dataset(judgments=judgments, truth=truth, details=texts, notes=notes)


def rag_answers(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """Which of two retrieval-augmented answers is better in one dimension, by crowd workers."""
    given = store.rows("study2_responses.jsonl", "rag_votes", winner=VALIDITY.get(dimension, dimension))
    return store.dataset(judgments=Preferences.from_frame(given), truth=_rag_truth(store, given, dimension))


def rag_judges(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """The same pairs by a language model, prompted for all dimensions at once (combined) or for each (individual)."""
    rows = store.rows("llm_ratings.jsonl", "rag_verdicts", winner=dimension)
    given = rows.drop_nulls("winner").with_columns(annotator="llm/" + pl.col("annotator"))
    repeats = len(given) - given.n_unique(["query", "left", "right", "annotator"])
    notes = [f"{repeats:,} of {len(given):,} verdicts repeat a pair in the same order; all are kept"]
    if len(given) < len(rows):
        notes.append(f"{len(rows) - len(given)} verdicts are blank and left out")
    preferences = quietly(Preferences.from_frame, given)
    return store.dataset(judgments=preferences, truth=_rag_truth(store, given, dimension), notes=tuple(notes))


def _rag_truth(store: Store, given: pl.DataFrame, dimension: str) -> Truth:
    """The source's Bradley-Terry grade of each answer, estimated from the same crowd."""
    sides = [given.select("query", item=side) for side in ("left", "right")]
    grades = store.rows("grades.jsonl").select(item="response", grade=pl.col(dimension).cast(pl.Float64))
    return Truth.from_frame(store.match(pl.concat(sides).unique(maintain_order=True), grades, "item", "grades.jsonl"))


def rag_grades(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """Other answers graded one by one on -3, -1, 1, 3."""
    rows = store.rows("study2_pointwise.jsonl", "rag_grades", grade=dimension)
    rows = rows.with_columns(pl.col("grade").cast(pl.Float64), pl.col("time") / 1000)
    return store.dataset(judgments=Grades.from_frame(rows, levels=(-3, -1, 1, 3)))


SPLITS = ("train", "test")
_ROLES = ("train", "vali", "test")


def load_graded(store: Store) -> Dataset:
    """Items with features and grades; the grades are also the truth."""
    parts = _partitions(store)
    features = _join_parts(list(parts.values()))
    return store.dataset(features=features, truth=_truth(features), folds=_folds(store, parts))


def aggregation(store: Store) -> Dataset:
    """Rankings by the input rankers of an aggregation set, one annotator each; an item not listed is not judged."""
    parts = _partitions(store)
    ranks = _join_parts(list(parts.values()))
    # straight from codes: a million rows need no ids looked up again
    item, ranker = np.nonzero(~np.isnan(ranks.matrix))
    rank = ranks.matrix[item, ranker].astype(np.int64)
    ranking = ranks.items.query[item].astype(np.int64) * ranks.matrix.shape[1] + ranker
    order = np.argsort(ranking * (rank.max() + 1) + rank, kind="stable")
    item, ranker, rank, ranking = item[order], ranker[order], rank[order], ranking[order]
    first = np.concatenate([[True], np.diff(ranking) != 0])
    starts = np.flatnonzero(first)
    offsets = np.append(starts, len(item))
    climbed = np.cumsum(first | np.concatenate([[True], np.diff(rank) != 0]))
    dense = climbed - np.repeat(climbed[starts], np.diff(offsets)) + 1
    names = pl.Series([f"ranker{number:02d}" for number in range(1, ranks.matrix.shape[1] + 1)])
    codes = {"item": item, "rank": dense, "annotator": ranker[starts]}
    given: dict[str, Any] = {name: values.astype(np.int32) for name, values in codes.items()}
    rankings = Rankings(items=ranks.items, annotators=Index.of(names), offsets=offsets, **given)
    return store.dataset(judgments=rankings, truth=_truth(ranks), folds=_folds(store, parts))


def sample(store: Store) -> Dataset:
    """The sample of LightGBM; its queries have no ids and are numbered within train and test."""
    parts = [read_letor(store.path(f"rank.{split}"), groups=store.path(f"rank.{split}.query")) for split in SPLITS]
    features = _join_parts(parts, prefixes=[f"{split}-" for split in SPLITS])
    queries = [str(query) for query in features.items.queries]
    train, test = (tuple(query for query in queries if query.startswith(split)) for split in SPLITS)
    return store.dataset(features=features, truth=_truth(features), folds=(Fold("source", train, (), test),))


def _partitions(store: Store) -> dict[str, Features]:
    """The five partitions by name."""
    files = [file for file in store.terms.files if file.endswith(".txt")]
    return {file.removesuffix(".txt"): read_letor(store.path(file)) for file in files}


def _join_parts(parts: list[Features], prefixes: list[str] | None = None) -> Features:
    """Several parts as one; a part without the last features has zeros there, as sparse files leave zeros out."""
    width = max(part.matrix.shape[1] for part in parts)
    heads = prefixes or [""] * len(parts)
    ids = pl.concat(
        [part.items.frame().with_columns(query=head + pl.col("query")) for head, part in zip(heads, parts, strict=True)]
    )
    matrix = np.concatenate([np.pad(part.matrix, ((0, 0), (0, width - part.matrix.shape[1]))) for part in parts])
    grades = [part.grade if part.grade is not None else np.full(len(part), np.nan) for part in parts]
    names = max((part.names for part in parts), key=len)
    return Features.from_arrays(ids["query"], ids["item"], matrix, names=names, grade=np.concatenate(grades))


def _truth(features: Features) -> Truth:
    """The grades that came with the features."""
    return Truth("grade", features.items, features.grade)


def _folds(store: Store, parts: dict[str, Features]) -> tuple[Fold, ...]:
    """The folds as query ids, in the order of the partitions."""
    queries = {name: [str(query) for query in part.items.queries] for name, part in parts.items()}
    table = store.json("folds.json")

    def of(roles: Any, role: str) -> tuple[str, ...]:
        return tuple(chain.from_iterable(queries[part] for part in roles[role]))

    try:
        return tuple(Fold(name, *(of(roles, role) for role in _ROLES)) for name, roles in table.items())
    except (KeyError, TypeError, AttributeError) as error:
        store.refuse_damaged("folds.json", f"no partition {error}")


DIGIT_FILES = {"train": "pendigits.tra", "test": "pendigits.tes"}
MEASURES = ("feature_congestion", "subband_entropy", "segment_measure")
CONTROLS = ("Reference", "Anchor")
BLANK = 3.0
"""Up to this standard deviation of its pixels a screenshot shows nothing."""


def wine(store: Store, *, colour: str) -> Dataset:
    """Wines by eleven measurements; the truth is the quality that tasters gave."""
    table = store.table(f"winequality-{colour}.csv", "wines")
    names = [name for name in table.columns if name != "grade"]
    table = table.with_row_index("item", 1).with_columns(pl.col("item").cast(pl.String))
    return store.dataset(features=_features(table, names), truth=table.select("item", "grade"))


def digits(store: Store) -> Dataset:
    """Handwritten digits as eight pen positions; the source's two files are two queries, and the truth is the digit."""
    tables = {split: store.table(file, "digits").with_row_index("item", 1) for split, file in DIGIT_FILES.items()}
    table = pl.concat(one.with_columns(pl.col("item").cast(pl.String), query=pl.lit(s)) for s, one in tables.items())
    names = [name for name in table.columns if name not in ("query", "item", "grade")]
    truth, folds = table.select("query", "item", "grade"), (Fold("source", ("train",), (), ("test",)),)
    return store.dataset(features=_features(table, names), truth=truth, folds=folds)


def _features(table: pl.DataFrame, names: Sequence[str]) -> Features:
    """Columns of a table of items as features."""
    query = table["query"] if "query" in table.columns else None
    return Features.from_arrays(query, table["item"], table.select(names).to_numpy(), names=names)


def clutter(store: Store) -> Dataset:
    """Web pages ranked by three measures of image clutter, with cheap features; ``details`` has source and kind too."""
    pages = store.table("features.csv", "page_counts")
    table = store.match(store.table("annotators.csv", "page_clutter"), pages, "item", "features.csv")
    names = [name for name in pages.columns if name.startswith(("dom_", "src_"))]
    kept = ["source", "kind", *MEASURES, "page_height", "pixel_sd", "bytes", "missing_css"]
    return _clutter_dataset(store, table, names, kept)


def first_screens(store: Store) -> Dataset:
    """Pages counted over the whole page and over the first screen, ranked by three measures of clutter."""
    table, kept = store.table("pages.csv", "first_screens"), ["source", *MEASURES, "pixel_sd"]
    return _clutter_dataset(store, table, [name for name in table.columns if name not in ("item", *kept)], kept)


def _clutter_dataset(store: Store, pages: pl.DataFrame, names: Sequence[str], details: Sequence[str]) -> Dataset:
    """Pages ranked by each measure, least cluttered first; blank screenshots are left out."""
    shown = pages.filter(pl.col("pixel_sd") > BLANK)
    ranks = [shown.select("item", rank=pl.col(name).rank("dense"), annotator=pl.lit(name)) for name in MEASURES]
    notes = (f"{len(pages) - len(shown)} of {len(pages)} pages have a blank screenshot and are left out",)
    rankings, features = Rankings.from_frame(pl.concat(ranks)), _features(shown, names)
    return store.dataset(judgments=rankings, features=features, details=shown.select("item", *details), notes=notes)


def codecs(store: Store) -> Dataset:
    """Grades of sentences by codec; reference and anchor, which only check the listeners, are left out."""
    grades = store.table("grades.csv", "codec_grades")
    header = store.text("features.csv").split("\n", 1)[0].strip().split(",")
    names = [name for name in header if name not in ("query", "item")]
    described = store.table("features.csv", {name: name for name in ("query", "item", *names)}, numbers=names)
    graded, described = (table.filter(~pl.col("item").is_in(CONTROLS)) for table in (grades, described))
    notes = (f"{len(grades) - len(graded)} of {len(grades):,} grades are of reference or anchor and left out",)
    return store.dataset(judgments=Grades.from_frame(graded), features=_features(described, names), notes=notes)
