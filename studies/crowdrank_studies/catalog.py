"""Every study by name: what it reproduces, the data it needs, how long it takes and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from crowdrank.errors import UnknownNameError
from crowdrank.wording import did_you_mean

from .outcomes import Outcome
from .work import Work

CORES = 2
"""Cores of the machine that minutes were measured on; it had other work besides."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study.

    Parameters
    ----------
    name, title
        Its name, and what it reproduces.
    reference
        Key of the paper in docs/references.md.
    home
        The function that runs it, as ``module:function``.
    protocol
        What is done, in words.
    data
        Names of the data sets it needs.
    minutes
        Scope -> minutes it took, as measured on a machine of ``CORES`` cores.
    takes_pages
        Whether it works on a folder of web pages too.
    """

    name: str
    title: str
    reference: str
    home: str
    protocol: str
    data: tuple[str, ...] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)
    takes_pages: bool = False

    def run(self, work: Work) -> Outcome:
        """Do the work."""
        module, _, function = self.home.partition(":")
        run_study: Callable[[Work], Outcome] = getattr(import_module(f".{module}", __package__), function)
        return run_study(work)


def study(name: str) -> Study:
    """Return a study by name, or say which known one is nearest."""
    plain = name.strip().lower().replace("_", "-")
    if plain in STUDIES:
        return STUDIES[plain]
    hint = did_you_mean(plain, STUDIES)
    raise UnknownNameError(f"there is no study {name!r}; {hint}known: {', '.join(STUDIES)}")


_ALL = (
    Study(
        name="crowdagg-trec",
        title="Niu et al., table 2 (a): eight methods on CS-TREC2011",
        reference="Niu15",
        home="crowdagg:trec",
        protocol="Grades of 762 annotators on 19,033 items of 100 queries, as preferences; all items of a query are "
        "ranked and those without gold count as not relevant, or only those with gold are measured; one-tailed paired "
        "t tests over queries.",
        data=("trec-rf10-labels-full", "trec-rf10-crowd-gold"),
        minutes={"quick": 0.5, "default": 2.2, "full": 2.2},
    ),
    Study(
        name="crowdagg-mirex",
        title="Niu et al., table 2 (b), figures 1 and 2, section 6.3.2: MIREX2005",
        reference="Niu15",
        home="crowdagg:mirex",
        protocol="Preferences of 79 annotators on 118 items of 11 queries. The truth was built from this crowd, so "
        "figures measure agreement, not correctness.",
        data=("mirex2005-crowd",),
        minutes={"quick": 0.1, "default": 0.1, "full": 0.1},
    ),
    Study(
        name="spammers",
        title="Niu et al., figures 3 and 4: spammers added to the crowd",
        reference="Niu15",
        home="crowdagg:spammers",
        protocol="Spammers who answer at random, or the reverse of the truth, join the crowds of MIREX2005 and of "
        "CS-TREC2011, up to as many as there are annotators; coefficients of variation over the ratios.",
        data=("mirex2005-crowd", "trec-rf10-crowd-gold"),
        minutes={"quick": 0.5, "default": 5.3, "full": 60.0},
    ),
    Study(
        name="crowdagg-time",
        title="Niu et al., section 6: running time of the methods",
        reference="Niu15",
        home="crowdagg:timing",
        protocol="Simulated binary grades of queries with more and more items, or annotators; the best of five runs "
        "after the first. Seconds differ from run to run and from machine to machine.",
        minutes={"quick": 0.2, "default": 0.8, "full": 0.8},
    ),
    Study(
        name="noisy-crowd",
        title="Kumar and Lease, table 1 and figure 1: single labelling against consensus",
        reference="KumarLease11",
        home="noisy_crowd:noisy_crowd",
        protocol="800 items graded once by a pool of 100 simulated annotators, then L further grades: on new items "
        "(SL) or on the same (MV, NB). Linear ListNet, five folds; validation and test by expert grades. Examples are "
        "whole queries or scattered items, ListNet is fitted to convergence or by a short descent query by query.",
        data=("letor-ohsumed", "letor-mq2008"),
        minutes={"quick": 0.7, "default": 22.7, "full": 200.0},
    ),
    Study(
        name="wine",
        title="Gupta and Narayanan, tables 1 and 2, figures 2 to 4: wines compared by simulated annotators",
        reference="Gupta16",
        home="joint_annotators:wine",
        protocol="Pairs of wines of unequal quality, all or few, each judged by 3 to 9 annotators who flip the truth "
        "with probability k / 20 times a factor; accuracy over pairs, and of the order of all wines.",
        data=("wine-quality/red", "wine-quality/white"),
        minutes={"quick": 0.1, "default": 5.5, "full": 40.0},
    ),
    Study(
        name="digits",
        title="Gupta and Narayanan, tables 3 and 4: digits labelled by five classifiers",
        reference="Gupta16",
        home="joint_annotators:digits",
        protocol="1,000 digits drawn for each seed, labelled by five classifiers that see three or four features "
        "each, in "
        "ten-fold cross-validation, their features being those of six draws that are nearest to table 3; differences "
        "of schemes by a bootstrap over items, McNemar's test beside it.",
        data=("pendigits",),
        minutes={"quick": 4.7, "default": 28.1, "full": 120.0},
    ),
    Study(
        name="rated-speech",
        title="Gupta and Narayanan, table 5, on public sets in place of private recordings",
        reference="Gupta16",
        home="joint_annotators:rated_speech",
        protocol="Emotions in headlines and work graded by peers, in place of speech: how often the group expected to "
        "be higher is put above the other, and how often experts agree; bounds by a bootstrap over items.",
        data=("crowd-truth-inference/emotion", "peer-grading", "peer-grading/self"),
        minutes={"quick": 0.1, "default": 0.4, "full": 1.0},
    ),
    Study(
        name="overlap",
        title="Yang et al., tables 1 to 8 and figures 1 to 6: who gets a second opinion",
        reference="Yang10",
        home="overlap:overlap",
        protocol="Nine settings of buying several grades, LambdaRank and LambdaMART, on simulated annotators in place "
        "of the paper's, tuned on the same validation queries; costs, annotators and labels on recorded grades too.",
        data=("web-search-relevance5", "trec-rf10-labels-full"),
        minutes={"quick": 0.7, "default": 44.7, "full": 320.0},
    ),
    Study(
        name="ltrma-synthetic",
        title="Wu et al., figure 2: LTRMA on random points",
        reference="Wu11",
        home="ltrma:synthetic",
        protocol="Queries of 15 random points of the unit square, ranked by x1 + 10 x2 and a little noise: 100 to "
        "learn from, 500 to test on. Annotator i of G = 3 to 15 swaps two random places 2i + 1 times; data are "
        "drawn afresh for each G and seed.",
        minutes={"quick": 0.2, "default": 5.5, "full": 20.0},
    ),
    Study(
        name="ltrma-ohsumed",
        title="Wu et al., figure 3: LTRMA on OHSUMED",
        reference="Wu11",
        home="ltrma:ohsumed",
        protocol="One perfect order of each query drawn at random; annotator i of G swaps two random places 2i + 1 "
        "times, or in proportion to the length of the list. Five folds, on LETOR 2's release with 25 features and on "
        "LETOR 3's with 45; paired tests over folds and ten noise seeds.",
        data=("letor2-ohsumed", "letor-ohsumed"),
        minutes={"quick": 0.2, "default": 37.0, "full": 320.0},
    ),
    Study(
        name="visual-clutter",
        title="Wu et al., section 5.4 and figure 4: clutter of web pages",
        reference="Wu11",
        home="visual_clutter:visual_clutter",
        protocol="251 rendered pages in subsets of ten, ranked by three measures of image clutter and described by "
        "eight cheap features; rankers learned on one half and tested on the other, against the mean of the "
        "measures and against a measure that was left out of training.",
        data=("visual-clutter", "visual-clutter-first-screen"),
        minutes={"quick": 0.1, "default": 1.2, "full": 1.7},
        takes_pages=True,
    ),
    Study(
        name="argument-features",
        title="Kumar and Lease, future work: a real crowd with features made of texts",
        reference="KumarLease11",
        home="raw_features:argument_features",
        protocol="Votes of 3,815 annotators on which of two arguments convinces more. Eight of 32 queries, a quarter "
        "of the other arguments and a quarter of the pairs are held out; latent_score learns from 1 to 100 % of the "
        "rest, with no features, with length, with style, and with style and words.",
        data=("ukpconvarg1-crowd",),
        minutes={"quick": 0.2, "default": 6.0, "full": 6.0},
    ),
    Study(
        name="codec-listening",
        title="In place of rated speech: seven speech codecs graded by 21 listeners",
        reference="Gupta16",
        home="raw_features:codec_listening",
        protocol="Grades of the same sentence as preferences; half of the listeners are learned from and the others "
        "test, on the same sentences, on new ones, and on a codec that nobody graded.",
        data=("neural-codec-mushra",),
        minutes={"quick": 0.1, "default": 0.2, "full": 0.2},
    ),
)

STUDIES = {entry.name: entry for entry in _ALL}
