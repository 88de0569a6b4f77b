"""Kumar and Lease 2011: learning to rank from a noisy crowd."""

from __future__ import annotations

from .entries import Entry, Erratum, Paper

_ENTRIES = (
    Entry(
        "algorithm",
        "single labelling (SL)",
        "section 1",
        (
            "aggregator:single",
            "scheme:single",
        ),
        "One grade for each item, more items with more grades.",
    ),
    Entry(
        "baseline",
        "majority vote (MV)",
        "section 1",
        ("aggregator:mv",),
        "The most frequent grade; the rule for ties is not given.",
        "Ties are broken at random in the study, by the better middle by default.",
    ),
    Entry(
        "baseline",
        "naive Bayes (NB)",
        "section 1",
        ("aggregator:nb",),
        "Weighs grades by annotators' accuracies; where they come from is not said.",
        "Accuracies given (accuracies=) or learned by EM; both are shown.",
    ),
    Entry(
        "algorithm",
        "fix for annotators below 1/C",
        "section 1",
        (
            "crowdrank.models.averages.adversaries:exchange_levels",
            "aggregator:mv",
            "aggregator:single",
        ),
        (
            'A random other grade in place of an adversarial annotator\'s: adversaries="exchange" of majority_vote and '
            "single."
        ),
        "Who is adversarial is given, or inferred from agreement with the others.",
    ),
    Entry(
        "model",
        "ListNet",
        "section 1",
        (
            "ranker:listnet-paper",
            "ranker:list_net",
        ),
        "Linear, validated by expert grades; steps and passes are not given.",
        (
            'The default is the minimum by Newton steps; solver="stochastic" takes a step for each query, '
            'solver="paper" full-batch steps.'
        ),
    ),
    Entry(
        "simulation",
        "pool of 100 annotators",
        "section 1",
        (
            "crowdrank.simulate:OneCoin",
            "crowdrank.simulate:normal",
            "crowdrank.simulate:log_normal",
            "crowdrank.simulate:uniform",
            "crowdrank.simulate:RoundRobin",
        ),
        "Each right with a probability of their own, else one of the other two grades; five distributions.",
        "lnN(0.4, 0.2) has these as mean and standard deviation.",
    ),
    Entry(
        "metric",
        "rank and label accuracy",
        "table 1",
        (
            "crowdrank.metrics:ndcg",
            "crowdrank.metrics:average_precision",
            "crowdrank.metrics:accuracy",
        ),
        "Rank accuracy is not named.",
        "nDCG@10, MAP beside it: MAP of a random order is above the lowest printed figures.",
    ),
    Entry(
        "data set",
        "OHSUMED, MQ2007, MQ2008",
        "section 1",
        (
            "data:letor-ohsumed",
            "data:letor-mq2008",
        ),
        "LETOR, five folds.",
        "MQ2007 is not run.",
    ),
    Entry(
        "table",
        "table 1",
        "page 2",
        ("study:noisy-crowd",),
        "SL, MV and NB under five noises, L up to 6400.",
    ),
    Entry(
        "figure",
        "figure 1",
        "page 2",
        ("study:noisy-crowd",),
        "Label against rank accuracy.",
    ),
)

_ERRATA = (
    Erratum(
        "table 1, MV label",
        "61.8 % with two grades and N(0.7, 0.2)",
        (
            "With two grades and ties at random the vote is right exactly as often as one grade: with the mean "
            "accuracy, 69 to 70 %."
        ),
    ),
    Erratum(
        "table 1, MV label",
        "falls with more grades at mean accuracy 0.4",
        (
            "If errors fall on both other grades alike, a vote rises with the number of grades wherever the mean "
            "accuracy is above 1/3. It falls only if an item's wrong grades coincide."
        ),
    ),
    Erratum(
        "table 1, MV label",
        "39.5 for N(0.4, 0.2) and 23.9 for U(0.2, 0.6) at nine grades",
        (
            "Both have the mean 0.4, and the vote depends on accuracies almost through their mean alone, so both must "
            "be about 48."
        ),
    ),
    Erratum(
        "caption",
        "ln N(0.4, 0.2)",
        "As parameters of the logarithm the median accuracy would be exp(0.4) = 1.49: everybody perfect.",
    ),
)

PAPER = Paper(
    "kumar",
    "KumarLease11",
    "Learning to rank from a noisy crowd",
    _ENTRIES,
    _ERRATA,
    (
        "noisy-crowd",
        "argument-features",
    ),
)
