"""Every study by name: what it reproduces, the data it needs, how long it takes and the function that runs it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from ..errors import UnknownNameError
from .outcomes import Outcome
from .work import Work


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
        Scope -> minutes it takes on two cores.
    """

    name: str
    title: str
    reference: str
    home: str
    protocol: str
    data: tuple[str, ...] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)

    def run(self, work: Work) -> Outcome:
        """Do the work."""
        module, _, function = self.home.partition(":")
        found: Callable[[Work], Outcome] = getattr(import_module(f".{module}", __package__), function)
        return found(work)


def study(name: str) -> Study:
    """Return a study by name, or say which known one is nearest."""
    plain = name.strip().lower().replace("_", "-")
    if plain in STUDIES:
        return STUDIES[plain]
    near = difflib.get_close_matches(plain, STUDIES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownNameError(f"there is no study {name!r}; {hint}known: {', '.join(STUDIES)}")


_ALL = (
    Study(
        name="crowdagg-trec",
        title="Niu et al., table 2 (a): eight methods on CS-TREC2011",
        reference="Niu15",
        home="crowdagg:trec",
        protocol="Grades of 762 annotators on 19,033 items of 100 queries, as preferences; measured on the items with "
        "gold grades, one-tailed paired t tests over queries.",
        data=("trec-rf10-labels-full", "trec-rf10-crowd-gold"),
        minutes={"quick": 0.2, "default": 0.5, "full": 0.5},
    ),
    Study(
        name="crowdagg-mirex",
        title="Niu et al., table 2 (b), figures 1 and 2, section 6.3.2: MIREX2005",
        reference="Niu15",
        home="crowdagg:mirex",
        protocol="Preferences of 79 annotators on 118 items of 11 queries. The truth was built from this crowd, so "
        "figures tell agreement and not correctness.",
        data=("mirex2005-crowd",),
        minutes={"quick": 0.2, "default": 0.2, "full": 0.2},
    ),
    Study(
        name="spammers",
        title="Niu et al., figures 3 and 4: spammers added to the crowd",
        reference="Niu15",
        home="crowdagg:spammers",
        protocol="Spammers who answer at random, or the reverse of the truth, join the crowds of MIREX2005 and of "
        "CS-TREC2011, up to as many as there are annotators; coefficients of variation over the ratios.",
        data=("mirex2005-crowd", "trec-rf10-crowd-gold"),
        minutes={"quick": 0.2, "default": 2.0, "full": 6.0},
    ),
    Study(
        name="crowdagg-time",
        title="Niu et al., section 6: running time of the methods",
        reference="Niu15",
        home="crowdagg:timing",
        protocol="Simulated binary grades of queries with more and more items, or annotators; the best of three runs "
        "after the first. Seconds differ from run to run and from machine to machine.",
        minutes={"quick": 0.2, "default": 0.8, "full": 0.8},
    ),
    Study(
        name="noisy-crowd",
        title="Kumar and Lease, table 1 and figure 1: single labelling against consensus",
        reference="KumarLease11",
        home="noisy_crowd:noisy_crowd",
        protocol="800 items graded once by a pool of 100 simulated annotators, then L further grades: on new items "
        "(SL) or on the same (MV, NB). Linear ListNet, five folds; validation and test by expert grades.",
        data=("letor-ohsumed", "letor-mq2008"),
        minutes={"quick": 0.2, "default": 8.0, "full": 12.0},
    ),
)

STUDIES = {entry.name: entry for entry in _ALL}
