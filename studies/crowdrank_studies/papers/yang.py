"""Yang et al. 2010: high quality overlapping labels at low cost."""

from __future__ import annotations

from .entries import Entry, Erratum, Paper

_ENTRIES = (
    Entry(
        "algorithm",
        "k-overlap",
        "section 4.1.1",
        (
            "scheme:3-overlap",
            "joint:two_stage",
        ),
        "A row for each grade: two_stage without an aggregator.",
        "The ranker is told which rows are of one item, so places count items; plain copies are shown too.",
    ),
    Entry(
        "algorithm",
        "majority vote, Mv-k",
        "section 4.1.2",
        ("aggregator:majority_vote",),
        "Ties by the better middle.",
    ),
    Entry(
        "algorithm",
        "highest labels",
        "section 4.1.3",
        ("aggregator:highest_grade",),
        "The best of k grades.",
    ),
    Entry(
        "algorithm",
        "weights of Good+ labels",
        "section 4.2",
        ("crowdrank.data.judgments:Grades",),
        "Rows of Good+ grades weigh three times (If-good-x3): Grades.weighted.",
    ),
    Entry(
        "algorithm",
        "If-good-k",
        "section 5.2.1",
        ("scheme:if-good-3",),
        "Further grades only where the first is Good+.",
    ),
    Entry(
        "algorithm",
        "Good-till-bad",
        "section 5.2.2",
        ("scheme:good_till_bad",),
        "Grades until the first Fair-, eleven at most.",
    ),
    Entry(
        "baseline",
        "single labelling",
        "section 4.1.1",
        (
            "aggregator:single",
            "scheme:single",
        ),
        "One grade for each item.",
    ),
    Entry(
        "model",
        "LambdaRank",
        "section 3.1",
        ("ranker:lambda_rank",),
        "A neural network; its size is not given.",
        "One hidden layer of ten units, trained without torch.",
    ),
    Entry(
        "model",
        "LambdaMART",
        "section 3.1",
        ("ranker:lambda_mart",),
        "Boosted trees.",
    ),
    Entry(
        "simulation",
        "120 judges, eleven for each query",
        "section 3.2",
        (
            "crowdrank.simulate:profile",
            "crowdrank.simulate:PerItem",
        ),
        "Recorded, proprietary.",
        "Simulated: profiles, as noisy and strict as table 6 implies.",
    ),
    Entry(
        "metric",
        "NDCG",
        "section 6.2, Eq. 1",
        ("crowdrank.metrics:ndcg",),
        "At 1, 3, 5 and 10.",
    ),
    Entry(
        "metric",
        "labelling and training cost",
        "sections 5.2 and 6.6",
        ("crowdrank.api:scheme_costs",),
        "Formulas and counts.",
    ),
    Entry(
        "data set",
        "Clean07, Clean08, Clean+",
        "section 6.1",
        (
            "study:overlap",
            "crowdrank.simulate:draw_corpus",
        ),
        "Proprietary.",
        "Corpora drawn in their place.",
    ),
    Entry(
        "data set",
        "recorded overlapping grades",
        "not in the paper",
        (
            "data:web-search-relevance5",
            "data:trec-rf10-labels-full",
        ),
        "None.",
        "Public sets for costs and labels, as notes.",
    ),
    Entry(
        "table",
        "tables 1 to 5",
        "section 6.4",
        ("study:overlap",),
        "Retrieval accuracy of the settings.",
    ),
    Entry(
        "table",
        "tables 6 to 8",
        "section 6.6",
        ("study:overlap",),
        "Costs of the settings.",
    ),
    Entry(
        "figure",
        "figures 1 to 3",
        "sections 1, 3.2 and 4.2",
        ("study:overlap",),
        "Best judge, featured judges, label distribution.",
    ),
    Entry(
        "figure",
        "figures 4 to 6",
        "section 6.5",
        ("study:overlap",),
        "If-good-k by k.",
    ),
)

_ERRATA = (
    Erratum(
        "tables 3 and 4",
        "the same eight values under different settings",
        (
            "Of two training and two test sets all eight figures agree to 0.03, 3-overlap with Highest-3, Mv3 with the "
            "baseline: one table was copied from the other."
        ),
    ),
    Erratum(
        "tables 6 and 7",
        "Fair- : Good+ of 11-overlap 4.37 and 4.17",
        (
            "All eleven grades have the ratio of single ones in expectation, 3.72 and 3.51; printed are those of the "
            "vote."
        ),
    ),
    Erratum(
        "tables 6 and 7",
        "Fair- : Good+ of If-good-x3 2.24 and 2.09",
        "A weight of 3 on Good+ divides the baseline's ratio by 3: 1.24 and 1.17. Table 8 has it so.",
    ),
    Erratum(
        "tables 6 and 7",
        "Fair- : Good+ of Good-till-bad 1.38 and 1.23",
        (
            "Asking stops at the first Fair-, so an item has one at most and cost - 1 Good+ at least; the ratio is at "
            "most 1 / (cost - 1) = 1 / 0.87 = 1.15 and 1 / 0.98 = 1.02."
        ),
    ),
    Erratum(
        "table 8 and section 6.1",
        "17,800 further grades of 49,785 items, overhead 1.48",
        "17,800 / 49,785 = 0.36, an overhead of 1.36; a ratio of 3.18 needs 2 * 49,785 / 4.18 = 23,800.",
    ),
    Erratum(
        "section 6.1",
        "Clean08 has 287,903 urls",
        "It is a part of 39,268 graded pairs; probably 28,790.",
    ),
)

PAPER = Paper(
    "yang",
    "Yang10",
    "Collecting high quality overlapping labels at low cost",
    _ENTRIES,
    _ERRATA,
    ("overlap",),
)
