"""Gupta and Narayanan 2016: rankings from noisy pairwise comparisons."""

from __future__ import annotations

from .entries import Entry, Erratum, Paper

_ENTRIES = (
    Entry(
        "baseline",
        "majority vote (MV)",
        "section 3.1",
        (
            "crowdrank_studies.joint_annotators.schemes:fuse",
            "study:wine",
        ),
        "The sign of the votes of each pair; a tie is a coin.",
    ),
    Entry(
        "baseline",
        "independent annotators (IAM)",
        "section 3.2, Eq. 2 to 4",
        (
            "joint:iam-paper",
            "joint:iam",
        ),
        "A support vector ranker per annotator, scores added.",
        "The default has the logistic loss and draws rankers of few judgments together.",
    ),
    Entry(
        "model",
        "joint annotators (JAM)",
        "section 3.3, Eq. 5 to 19",
        (
            "joint:jam-paper",
            "joint:jam",
        ),
        "EM over the better item, a ranker by hinge loss and a flip rate per annotator, random start.",
        (
            "Begins with the majority vote, since mirror solutions are equally likely; logistic loss, which makes it "
            "an exact EM; priors; features standardised within queries. The default adds item effects."
        ),
    ),
    Entry(
        "model",
        "variable reliability (VRJAM)",
        "section 3.4, Eq. 20 to 25",
        (
            "joint:vrjam-paper",
            "joint:vrjam",
        ),
        (
            "A flip rate per annotator and cluster of feature differences, k-means as it stands; D raised until two "
            "centres are close."
        ),
        "A difference and its negative are one cluster, eight clusters, rates shrunk towards the annotator's own.",
    ),
    Entry(
        "model",
        "support vector ranker",
        "Eq. 3, appendix 3",
        (
            "ranker:rank_svm",
            "ranker:rank-logistic",
        ),
        "Smoothed hinge, gradient descent.",
        "To the minimum, with a ridge.",
    ),
    Entry(
        "simulation",
        "flips with probability k / 20",
        "section 4.1",
        (
            "crowdrank.simulate:Flips",
            "study:wine",
        ),
        "Six annotators, or 3 to 9, noise raised by 10 %.",
    ),
    Entry(
        "metric",
        "right pairs",
        "section 4",
        ("crowdrank.metrics:preference_accuracy",),
        "Share of pairs in the right order.",
    ),
    Entry(
        "metric",
        "McNemar's test",
        "section 4.2.1",
        ("crowdrank.metrics:mcnemar",),
        "Over 370k pairs, 5 %.",
        "Pairs share items, so the study draws items again; the test is given too.",
    ),
    Entry(
        "data set",
        "wine quality",
        "section 4.1",
        (
            "data:wine-quality/red",
            "data:wine-quality/white",
        ),
        "Red and white.",
    ),
    Entry(
        "data set",
        "pen digits",
        "section 4.2.1",
        ("data:pendigits",),
        "1,000 of them, five classifiers on 3 or 4 features.",
    ),
    Entry(
        "data set",
        "Safari Bob",
        "section 4.2.2",
        (
            "study:rated-speech",
            "study:codec-listening",
        ),
        "Speech of 105 children, rated by five; never published.",
        "Public sets in its place, as notes.",
    ),
    Entry(
        "table",
        "tables 1 and 2",
        "section 4.1.1",
        ("study:wine",),
        "Flip rates and accuracies on wine.",
    ),
    Entry(
        "figure",
        "figures 2 to 4",
        "section 4.1 and appendix 3",
        ("study:wine",),
        "By noise, by number of annotators, hinge against logistic.",
    ),
    Entry(
        "table",
        "tables 3 and 4",
        "section 4.2.1",
        ("study:digits",),
        "Classifiers and fusion schemes on digits.",
    ),
    Entry(
        "table",
        "table 5",
        "section 4.2.2",
        ("study:rated-speech",),
        "Typically developing children above those with autism.",
    ),
)

_ERRATA = (
    Erratum(
        "Eq. 6",
        "the sum over z stands before the logarithm",
        "The likelihood of what was observed sums over the hidden order: log sum p(z, votes), not sum log.",
    ),
    Erratum(
        "Eq. 15 to 18, 34, 37",
        "no sum over pairs",
        "The expected log-likelihood is of all pairs; without the sum there is one pair.",
    ),
    Erratum(
        "Eq. 19 and 24",
        "arg min over r",
        (
            "The expected log-likelihood falls to minus infinity at r = 0 and 1; its maximum is the expected share of "
            "flipped preferences."
        ),
    ),
    Erratum(
        "Eq. 10 and 26",
        "divided by p(z^1 .. z^K)",
        "The normaliser is conditional on features and parameters; two bars stand in one probability of Eq. 26.",
    ),
    Erratum(
        "table 2",
        "MV 95.9 on red wine, over all pairs",
        (
            "Exactly 96.37 % of votes are right for b_k = k / 20; 95.9 is 23 standard errors away for 821,581 pairs. "
            "About 1,600 pairs would explain it."
        ),
    ),
    Erratum(
        "section 4.2.1",
        "370k comparisons of 1,000 digits",
        "Ten digits of about equal frequency give 1000 * 999 / 2 * 0.9 = 449,550 unequal pairs.",
    ),
)

PAPER = Paper(
    "gupta",
    "Gupta16",
    "Inferring object rankings based on noisy pairwise comparisons from multiple annotators",
    _ENTRIES,
    _ERRATA,
    (
        "wine",
        "digits",
        "rated-speech",
        "codec-listening",
    ),
)
