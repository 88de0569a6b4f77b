"""Every data set by name: what it is, the folder it lies in and the function that loads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnknownNameError
from ..wording import did_you_mean
from .sources import FOLDERS


@dataclass(frozen=True)
class Entry:
    """One data set: its folder, its loader as ``module:function`` with options, and what it is."""

    folder: str
    loader: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)


CIRCULAR = "The truth was estimated from this crowd, so it measures agreement, not correctness."

DIMENSIONS = (
    "correctness_topical",
    "coherence_logical",
    "coherence_stylistic",
    "coverage_broad",
    "coverage_deep",
    "consistency_internal",
)
"""Dimensions of the retrieval-augmented answers besides overall quality."""


def _survey(name: str, description: str, *, nominal: bool = True) -> dict[str, Entry]:
    """An entry of the truth inference survey."""
    full = f"crowd-truth-inference/{name}"
    return {full: Entry(full, "crowd_labels:answers", description, {"nominal": nominal})}


def _rag(dimension: str) -> dict[str, Entry]:
    """One dimension of the retrieval-augmented answers."""
    what = f"which of two is better in {dimension}, by 420 annotators"
    text = f"Retrieval-augmented answers to 65 queries, {what}. {CIRCULAR}"
    return {
        f"webis-rag-crowd/{dimension}": Entry("webis-rag-crowd", "judges:rag_answers", text, {"dimension": dimension})
    }


ENTRIES: dict[str, Entry] = {
    "letor-ohsumed": Entry(
        "letor-ohsumed",
        "letor:load_graded",
        "LETOR 3.0 OHSUMED: 106 queries, 16,140 items graded 0 to 2, 45 features scaled to 0..1 per query.",
    ),
    "letor2-ohsumed": Entry(
        "letor2-ohsumed",
        "letor:load_graded",
        "LETOR 2.0 OHSUMED: the queries, items and grades of letor-ohsumed with 25 raw features.",
    ),
    "letor-mq2008": Entry(
        "letor-mq2008",
        "letor:load_graded",
        "LETOR 4.0 MQ2008: 784 queries, 15,211 items graded 0 to 2, 46 features normalised per query.",
    ),
    "letor-mq2007-agg": Entry(
        "letor-mq2007-agg",
        "letor:aggregation",
        "LETOR 4.0 MQ2007-agg: 1,692 queries, 69,623 items graded 0 to 2, ranked by 21 rankers.",
    ),
    "letor-mq2008-agg": Entry(
        "letor-mq2008-agg",
        "letor:aggregation",
        "LETOR 4.0 MQ2008-agg: the queries and items of letor-mq2008 ranked by 25 rankers.",
    ),
    "lightgbm-rank-sample": Entry(
        "lightgbm-rank-sample",
        "letor:sample",
        "Small web-search style sample that ships with LightGBM: grades 0 to 4, up to 300 features, 201 + 50 queries.",
    ),
    "wine-quality/red": Entry(
        "wine-quality",
        "feature_tables:wine",
        "UCI Wine Quality: 1,599 red wines, 11 features, quality 3 to 8.",
        {"colour": "red"},
    ),
    "wine-quality/white": Entry(
        "wine-quality",
        "feature_tables:wine",
        "UCI Wine Quality: 4,898 white wines, 11 features, quality 3 to 9.",
        {"colour": "white"},
    ),
    "pendigits": Entry(
        "pendigits",
        "feature_tables:digits",
        "UCI pen-based digits: 7,494 + 3,498 handwritten digits as 16 coordinates.",
    ),
    "trec-rf10-labels-full": Entry(
        "trec-rf10-labels-full",
        "trec:relevance_feedback",
        "TREC 2010 Relevance Feedback crowd grades 0 to 2, as the CS-TREC2011 set: 19,033 items of 100 queries.",
    ),
    "trec-rf10-labels-full/all": Entry(
        "trec-rf10-labels-full",
        "trec:relevance_feedback",
        "The same with nothing left out: four codes as classes, of which 3 means broken link.",
        {"every": True},
    ),
    "trec-rf10-crowd-gold": Entry(
        "trec-rf10-crowd-gold",
        "trec:relevance_feedback_gold",
        "The part of trec-rf10-labels-full that has gold, binary, with real query and item ids.",
    ),
    "trec2011-stage2-labels": Entry(
        "trec2011-stage2-labels",
        "crowd_labels:labels",
        "TREC 2011 Crowdsourcing Track task 2: the items of trec-rf10-labels-full with binary grades, no queries.",
    ),
    "trec2011-crowd": Entry(
        "trec2011-crowd",
        "trec:crowdsourcing",
        "TREC 2011 Crowdsourcing Track task 1: binary grades of eight teams, groups own and others; NIST gold 0 to 2.",
    ),
    "trec2011-crowd/own": Entry(
        "trec2011-crowd",
        "trec:crowdsourcing",
        "The grades of the publishing team alone; time is the order in which an item's grades came.",
        {"teams": "own"},
    ),
    "trec2011-crowd/others": Entry(
        "trec2011-crowd", "trec:crowdsourcing", "The grades of the seven other teams alone.", {"teams": "others"}
    ),
    "trec2011-crowd-uc3m": Entry(
        "trec2011-crowd-uc3m",
        "trec:uc3m",
        "The same track, run 1 of the UC3M team: grades 0 to 2 with times; NIST gold from trec2011-crowd.",
    ),
    "trec2011-crowd-uc3m/run2": Entry(
        "trec2011-crowd-uc3m", "trec:uc3m", "Run 2 of the UC3M team: a slider from 0 to 100.", {"run": 2}
    ),
    "trec2011-crowd-uc3m/run3": Entry(
        "trec2011-crowd-uc3m", "trec:uc3m", "Run 3 of the UC3M team: a slider from 0 to 100.", {"run": 3}
    ),
    "web-search-relevance5": Entry(
        "web-search-relevance5",
        "crowd_labels:labels",
        "Web search relevance on five grades: 2,665 items (no query ids), 177 annotators, expert gold.",
    ),
    "adult-content2": Entry(
        "adult-content2",
        "crowd_labels:adult",
        "11,040 web sites rated G, P, R or X by 825 annotators; a larger grade means more adult.",
    ),
    "peer-grading": Entry(
        "peer-grading",
        "crowd_labels:peer_grading",
        "Students grade group submissions from 0 to 12; the truth is the mean of the teaching assistants.",
    ),
    "peer-grading/self": Entry(
        "peer-grading",
        "crowd_labels:peer_grading",
        "The students' grades of their own group's submissions; the truth is the mean of the teaching assistants.",
        {"file": "self.csv"},
    ),
    **_survey(
        "emotion", "Emotion of 700 headlines scored from -100 to 100 by 38 annotators, expert gold.", nominal=False
    ),
    **_survey("dog", "Breed of 807 dogs, four classes, 109 annotators, gold for all."),
    **_survey("face-sentiment", "Sentiment of 584 faces, four classes, 27 annotators, gold for all."),
    **_survey("duck", "Whether 108 pictures show a duck, 39 annotators, gold for all."),
    **_survey("product", "Whether 8,315 pairs are the same product, 176 annotators, gold for all."),
    "mirex2005-crowd": Entry(
        "mirex2005-crowd",
        "preferences:mirex",
        f"Which of two melodies is more similar to the query: 281 pairs of 11 queries, 79 annotators. {CIRCULAR}",
    ),
    "ukpconvarg1-crowd": Entry(
        "ukpconvarg1-crowd",
        "preferences:arguments",
        f"Which of two arguments convinces more: 1,052 of 32 queries, with texts, 3,815 annotators. {CIRCULAR}",
    ),
    "ukpconvarg1-crowd/pairs": Entry(
        "ukpconvarg1-crowd",
        "preferences:arguments",
        f"The same judgments with gold pairs as truth instead of a ranking. {CIRCULAR}",
        {"pairs": True},
    ),
    "llmfao": Entry(
        "llmfao",
        "preferences:model_answers",
        "Answers of 59 language models to 13 queries, compared by 124 annotators; no truth.",
    ),
    "llmfao/judges": Entry(
        "llmfao",
        "preferences:model_answers",
        "Answers of 70 language models to 19 queries, compared by two language models (gpt3, gpt4); no truth.",
        {"who": "judges"},
    ),
    "llmfao/all": Entry(
        "llmfao",
        "preferences:model_answers",
        "The crowd's and the language models' comparisons together, groups crowd and llm; no truth.",
        {"who": "all"},
    ),
    "pandalm-testset": Entry(
        "pandalm-testset",
        "judges:pandalm",
        "Answers of five models to 170 instructions, judged by three people (group human) and two models (group llm); "
        "the truth is the people's majority, so it is independent of the models only.",
    ),
    "pandalm-testset/humans": Entry(
        "pandalm-testset",
        "judges:pandalm",
        "The verdicts of the three people alone; the truth is their own majority.",
        {"who": "humans"},
    ),
    "pandalm-testset/judges": Entry(
        "pandalm-testset",
        "judges:pandalm",
        "The verdicts of the two models alone; the truth is the majority of three people.",
        {"who": "judges"},
    ),
    "llmbar-judges": Entry(
        "llmbar-judges",
        "judges:llmbar",
        "Verdicts of 65 judges (six models x prompting strategies; the group is the model) on 1,200 pairs of outputs, "
        "each asked in both orders, with objective or human gold.",
    ),
    "webis-rag-crowd": Entry(
        "webis-rag-crowd",
        "judges:rag_answers",
        f"Retrieval-augmented answers to 65 queries, which of two is better overall, by 420 annotators. {CIRCULAR}",
    ),
    **{name: entry for dimension in DIMENSIONS for name, entry in _rag(dimension).items()},
    "webis-rag-crowd/judges": Entry(
        "webis-rag-crowd",
        "judges:rag_judges",
        "The same answers compared overall by a language model with two ways of prompting; the truth is the crowd's.",
    ),
    "webis-rag-crowd/pointwise": Entry(
        "webis-rag-crowd",
        "judges:rag_grades",
        "410 other answers graded overall on -3, -1, 1, 3 by 15 annotators; no truth.",
    ),
    "wmt13-fr-en-rankings": Entry(
        "wmt13-fr-en-rankings",
        "rankings:translations",
        "WMT13 French-English: 9,996 rankings of five translations of a segment by 218 annotators, groups turker and "
        "researcher; no truth.",
    ),
    "wmt13-fr-en-rankings/test": Entry(
        "wmt13-fr-en-rankings",
        "rankings:translations",
        "The source's test file: 200 rankings, all of which are in the other file too.",
        {"file": "sample-fr-en-test.csv"},
    ),
    "preflib/dots": Entry(
        "preflib/dots",
        "rankings:preflib",
        "Annotators order four pictures by their number of dots, fewest first; each file (noise level) is a query. The "
        "true order is known.",
        {"ordered": True},
    ),
    "preflib/puzzle": Entry(
        "preflib/puzzle",
        "rankings:preflib",
        "Annotators order four sliding puzzles by their number of moves, fewest first; each file (noise level) is a "
        "query. The true order is known.",
        {"ordered": True},
    ),
    "preflib/skate": Entry(
        "preflib/skate",
        "rankings:preflib",
        "Figure skating judges rank 14 to 30 skaters; each file (event) is a query. No truth.",
    ),
    "visual-clutter": Entry(
        "visual-clutter",
        "feature_tables:clutter",
        "Web pages ranked by three measures of image clutter, least cluttered first, with cheap features; no truth.",
    ),
    "visual-clutter-first-screen": Entry(
        "visual-clutter-first-screen",
        "feature_tables:first_screens",
        "119 template pages, one per site, counted over the whole page and over the first screen, with two numbers of "
        "the screenshot, ranked by three measures of clutter; no truth.",
    ),
    "neural-codec-mushra": Entry(
        "neural-codec-mushra",
        "feature_tables:codecs",
        "Sentences through seven speech codecs, graded 0 to 100 by 21 listeners (MUSHRA), with 76 columns measured on "
        "the recordings; no truth.",
    ),
    "visual-clutter/calista": Entry(
        "visual-clutter/calista",
        "preferences:web_pages",
        "Which of two home pages is more attractive: 100 pages, 282 sessions, groups accepted (finished and "
        f"consistent) and other. {CIRCULAR}",
    ),
}
"""Name -> what it is and how it is loaded."""


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    Examples
    --------
    >>> "mirex2005-crowd" in names()
    True
    """
    return tuple(ENTRIES)


def entry(name: str) -> Entry:
    """Return the entry of a name, or say which name is nearest."""
    if name in ENTRIES:
        return ENTRIES[name]
    inside = [known for known in ENTRIES if known.startswith(f"{name}/")]
    if inside:
        raise UnknownNameError(f"there are several data sets in {name!r}: {', '.join(inside)}; name one of them")
    hint = did_you_mean(name, ENTRIES, cutoff=0.3)
    raise UnknownNameError(f"there is no data set {name!r}; {hint}known: {', '.join(ENTRIES)}")


def folder_of(name: str) -> str:
    """Return the folder that a data set, or a folder, goes by."""
    return name if name in FOLDERS else entry(name).folder
