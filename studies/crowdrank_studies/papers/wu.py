"""Wu, Hu and Gao 2011: learning to rank under multiple annotators."""

from __future__ import annotations

from .entries import Entry, Erratum, Paper

_ENTRIES = (
    Entry(
        "model",
        "Mallows model of a crowd",
        "section 2.2, Eq. 1 to 5",
        (
            "aggregator:mallows-paper",
            "aggregator:mallows",
        ),
        "A central ranking and a dispersion per annotator; the distance is right-invariant.",
        (
            "Exact sums up to 8 items, carried chains beyond, a prior of the dispersions; Kendall, Cayley, footrule "
            "and Spearman distances."
        ),
    ),
    Entry(
        "model",
        "Plackett-Luce, ListMLE",
        "sections 2.2 and 2.3, Eq. 6 to 9",
        (
            "aggregator:plackett_luce",
            "ranker:list_mle",
        ),
        "Stochastic gradient descent; steps are not given.",
        "To the maximum by Newton steps, with a ridge.",
    ),
    Entry(
        "algorithm",
        "LTRMA-D",
        "section 3.1",
        (
            "joint:ltrma-d-paper",
            "joint:ltrma-d",
        ),
        "Mallows consensus by random swaps from a random start, then ListMLE.",
        "Chains go on from iteration to iteration and begin with Borda.",
    ),
    Entry(
        "algorithm",
        "LTRMA-ML, Alg. 1 and 2",
        "sections 3.2 and 4",
        (
            "joint:ltrma-paper",
            "joint:ltrma-ml",
        ),
        "EM with 500 swaps from a random ranking in each iteration, ListMLE on the best of them.",
        "Carried chains, soft steps, averaged parameters.",
    ),
    Entry(
        "algorithm",
        "solution of Eq. 23",
        "section 4.2",
        ("crowdrank.models.rankings.kernels.dispersion:solve_dispersions",),
        "Binary search.",
        "A stable form near 0, tabulated.",
    ),
    Entry(
        "simulation",
        "2i + 1 swaps",
        "section 5.2",
        (
            "crowdrank.simulate:Swaps",
            "study:ltrma-synthetic",
        ),
        "Annotator i swaps two random places 2i + 1 times.",
    ),
    Entry(
        "metric",
        "NDCG and MAP",
        "section 5.1",
        (
            "crowdrank.metrics:ndcg",
            "crowdrank.metrics:average_precision",
        ),
        "Gain and discount are not given.",
        "Exponential gain; linear beside it.",
    ),
    Entry(
        "data set",
        "points of the unit square",
        "section 5.2",
        ("study:ltrma-synthetic",),
        "Truth x1 + 10 x2 and a little noise.",
    ),
    Entry(
        "data set",
        "OHSUMED",
        "section 5.3",
        (
            "data:letor2-ohsumed",
            "data:letor-ohsumed",
        ),
        "LETOR, a random perfect order of each query.",
    ),
    Entry(
        "data set",
        "2,000 home pages",
        "section 5.4",
        (
            "data:visual-clutter",
            "study:visual-clutter",
        ),
        "Scored by seven volunteers; never published.",
        "251 pages that could be rendered.",
    ),
    Entry(
        "model",
        "page features and image clutter",
        "section 5.4",
        ("crowdrank.features:pages",),
        "Eight features of the source; subband entropy, feature congestion and segments as annotators.",
    ),
    Entry(
        "figure",
        "figure 2",
        "section 5.2",
        ("study:ltrma-synthetic",),
        "NDCG, MAP and expertise on points, G = 3 to 15.",
    ),
    Entry(
        "figure",
        "figure 3",
        "section 5.3",
        ("study:ltrma-ohsumed",),
        "The same on OHSUMED.",
    ),
    Entry(
        "figure",
        "figure 4",
        "section 5.4",
        ("study:visual-clutter",),
        "Clutter of web pages.",
    ),
)

_ERRATA = (
    Erratum(
        "Eq. 9",
        "upper limits N and M",
        "Both are the number of items of the query; a bracket is missing.",
    ),
    Erratum(
        "Eq. 14",
        "the denominator is P(y_1, ..., y_G)",
        "It has to be conditional on x, w and theta, as the numerator is.",
    ),
    Erratum(
        "Eq. 15",
        "theta_j outside the product over j",
        "The likelihood of all annotators depends on all dispersions.",
    ),
    Erratum(
        "Eq. 19",
        "P(y_1 | y, ...)",
        "The weight of a truth is P(y | y_1, ..., y_G, x, w, theta), its posterior.",
    ),
    Erratum(
        "Eq. 20 and 23",
        "one n for all queries",
        "With queries of different length the sum over queries of E(theta; n_i) equals that of the distances.",
    ),
    Erratum(
        "Eq. 23",
        "n e^t / (1 - e^t) - sum l e^lt / (1 - e^lt)",
        (
            "Right, but 0 / 0 at t = 0, where it is n (n - 1) / 4, and useless near it: at n = 15 and t = -1e-10 it "
            "gives -9534 for 52.5."
        ),
    ),
    Erratum(
        "section 4.2",
        "both distributions have only one maximum",
        "Not the Mallows part: rankings at equal total distance tie, as in a cycle of three.",
    ),
    Erratum(
        "Algorithm 1",
        "R annotators",
        "It is G.",
    ),
)

PAPER = Paper(
    "wu",
    "Wu11",
    "Learning to rank under multiple annotators",
    _ENTRIES,
    _ERRATA,
    (
        "ltrma-synthetic",
        "ltrma-ohsumed",
        "visual-clutter",
    ),
)
