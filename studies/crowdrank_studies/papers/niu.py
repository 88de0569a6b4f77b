"""Niu et al. 2015: listwise rank aggregation in crowdsourcing."""

from __future__ import annotations

from .entries import Entry, Erratum, Paper

_ENTRIES = (
    Entry(
        "model",
        "listwise mapping",
        "section 4.1, Eq. 5 to 7",
        (
            "aggregator:crowdagg-printed",
            "aggregator:crowdagg-paper",
        ),
        (
            "The pairs that each item won give the probability that an annotator puts one item above another; grades "
            "become preferences first."
        ),
        (
            "Eq. 6 is printed with its cases exchanged; crowdagg-printed has it as printed, crowdagg-paper "
            "corrected. The default takes preferences as they are, and grades by the corrected rule only where "
            "annotators judged few items."
        ),
    ),
    Entry(
        "model",
        "annotator quality",
        "section 4.1.2, Eq. 8 and 9",
        (
            "aggregator:crowdagg-paper",
            "aggregator:crowd_agg",
        ),
        "The share of preferences that agree with the consensus, mixed into the probabilities.",
        (
            "By default the consensus that judges an annotator is made without the annotator, with a prior; in sample "
            "it confirms itself."
        ),
    ),
    Entry(
        "algorithm",
        "rank distribution, Alg. 1 and 2",
        "section 4.1.3",
        ("crowdrank.models.crowd_agg.kernels.poisson_binomial:Discounts",),
        "Convolution over all pairs, or divide and conquer with FFT.",
        (
            "Pairs that were not judged are coin flips, summed in closed form; RBP needs no distribution. Equal "
            "to the convolution to 13 digits."
        ),
    ),
    Entry(
        "algorithm",
        "CrowdAgg, Alg. 3",
        "sections 5.2 to 5.4",
        (
            "aggregator:crowdagg-paper",
            "aggregator:crowdagg-rbp-paper",
            "aggregator:crowd_agg",
        ),
        "Sort by the expected discount summed over annotators; alternate with quality until the order stays.",
        "The paper's rounds are kept; a cycle of orders is detected and reported.",
    ),
    Entry(
        "baseline",
        "CondorcetFuse",
        "section 6.1",
        ("aggregator:condorcet",),
        "Quicksort by majorities.",
        "A seed decides pairs that nobody judged.",
    ),
    Entry(
        "baseline",
        "GreedyOrder",
        "section 6.1",
        ("aggregator:greedy_order",),
        "Takes the item with the largest surplus of preferences, again and again.",
    ),
    Entry(
        "baseline",
        "BradleyTerry",
        "section 6.1",
        ("aggregator:bradley_terry",),
        "Gradient steps of rate 0.1.",
        "Fitted to convergence with a small ridge; printed accuracies on TREC lie where steps did not converge.",
    ),
    Entry(
        "baseline",
        "MPM",
        "section 6.1",
        ("aggregator:mpm",),
        "Multinomial preference model with an adherence per annotator, gradient steps.",
        'Fitted to convergence; model="logistic" is the form given the pairs.',
    ),
    Entry(
        "baseline",
        "Crowd-BT",
        "section 6.1",
        ("aggregator:crowd_bt",),
        "Bradley-Terry with a quality per annotator, gradient steps of 0.01.",
        "Fitted to convergence, with a prior of the quality.",
    ),
    Entry(
        "baseline",
        "EMEloRating",
        "section 6.1",
        (
            "aggregator:em-elo-paper",
            "aggregator:em_elo",
        ),
        "EM over confusion matrices, a filter by quality, then Elo.",
        (
            "The default has one quality per annotator and no filter; em-elo-paper has the matrix and leaves out "
            "annotators below 0.5. Prior, threshold and passes are not printed."
        ),
    ),
    Entry(
        "baseline",
        "Borda count, median rank, Plackett-Luce, singular vectors",
        "section 2.2",
        (
            "aggregator:borda",
            "aggregator:median_rank",
            "aggregator:plackett_luce",
            "aggregator:singular_vector",
        ),
        "Named as related methods, not measured.",
    ),
    Entry(
        "simulation",
        "random and malicious spammers",
        "section 6.4",
        (
            "study:spammers",
            "crowdrank.simulate:Flips",
        ),
        "Spammers answer a coin, or the reverse of the truth, up to as many as there are annotators.",
    ),
    Entry(
        "metric",
        "NDCG, precision, MAP, RBP",
        "section 2.3",
        (
            "crowdrank.metrics:ndcg",
            "crowdrank.metrics:precision",
            "crowdrank.metrics:average_precision",
            "crowdrank.metrics:rbp",
        ),
        "At 3, 5, 7, 9 and 10; RBP with 0.95.",
    ),
    Entry(
        "metric",
        "divergence of quality distributions",
        "section 6.3.2",
        ("crowdrank.metrics:quality_divergence",),
        "Kullback-Leibler; bins are not given.",
        "Ten bins with half an annotator added to each.",
    ),
    Entry(
        "metric",
        "coefficient of variation",
        "section 6.4",
        ("crowdrank.metrics:coefficient_of_variation",),
        "Standard deviation by mean over shares of spammers.",
    ),
    Entry(
        "data set",
        "CS-TREC2011",
        "section 6.1",
        (
            "data:trec-rf10-labels-full",
            "data:trec-rf10-crowd-gold",
        ),
        "100 queries of 190 items.",
        "The paper does not say which items have gold; 3,275 do here.",
    ),
    Entry(
        "data set",
        "MIREX2005",
        "section 6.1",
        ("data:mirex2005-crowd",),
        "11 queries, preferences, expert grades of five levels.",
        "The expert grades of 2005 are not public; the truth at hand was made from this crowd.",
    ),
    Entry(
        "table",
        "table 2 (a)",
        "section 6.2",
        ("study:crowdagg-trec",),
        "Eight methods and twelve measures on CS-TREC2011.",
    ),
    Entry(
        "table",
        "table 2 (b)",
        "section 6.2",
        ("study:crowdagg-mirex",),
        "The same on MIREX2005.",
    ),
    Entry(
        "figure",
        "figures 1 and 2",
        "section 6.3",
        ("study:crowdagg-mirex",),
        "With and without quality; distributions of quality.",
    ),
    Entry(
        "figure",
        "figures 3 and 4",
        "section 6.4",
        ("study:spammers",),
        "Robustness against spammers.",
    ),
    Entry(
        "table",
        "running time",
        "section 6",
        ("study:crowdagg-time",),
        "Announced, without figures.",
    ),
)

_ERRATA = (
    Erratum(
        "Eq. 6",
        "winner (N_s - N_t) / n, loser 1 - (N_t - N_s) / n",
        (
            "The cases are exchanged: an item that won one pair more than another would be above it with "
            "probability 1 / n, near 0. Exchanged, a narrow winner has 1 - 1 / n."
        ),
    ),
    Erratum(
        "Eq. 11 and 12",
        "the rank counts items beaten",
        (
            "Algorithm 1 begins with probability 1 at the top and moves down by each pair lost; a rank of items "
            "beaten would put the best last."
        ),
    ),
    Erratum(
        "Eq. 2 and table 1",
        "D(r) = 1 / log(1 + r) for r from 0",
        "At r = 0 this divides by zero; ranks in the measures begin at 1, so D(r) = 1 / log2(2 + r).",
    ),
    Erratum(
        "Eq. 4 and table 1",
        "p^(r - 1) for r from 0",
        "The top item would have 1 / p; it is p^r for ranks from 0.",
    ),
    Erratum(
        "text of Eq. 8",
        "a share of all pairs of the ground truth",
        (
            "The formula divides by the annotator's own pairs, as a quality of 1 for a perfect annotator of few pairs "
            "demands."
        ),
    ),
    Erratum(
        "table 2 (b)",
        "P@10 of BradleyTerry .499",
        (
            "With P@9 .424 the top nine have 3.82 relevant items on average; ten places can have 4.82 at most, P@10 at "
            "most .482. Probably .409."
        ),
    ),
    Erratum(
        "section 5.4",
        "CrowdAgg is optimal",
        "Only for fixed quality: the quality step does not raise the objective, and orders may cycle.",
    ),
)

PAPER = Paper(
    "niu",
    "Niu15",
    "Listwise approach for rank aggregation in crowdsourcing",
    _ENTRIES,
    _ERRATA,
    (
        "crowdagg-trec",
        "crowdagg-mirex",
        "spammers",
        "crowdagg-time",
    ),
)
