"""Pairs of annotators who agree more than their qualities explain, their families, and what a crowd is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judged import pairs_within
from ..data.judgments import Grades, Judgments
from ..data.truth import Truth
from ..errors import JudgmentError
from ..kernels.threads import even_bounds, over_bounds, read_only, total
from ..protocols import Bools, Counts, Floats, Ints
from .coded_judgments import CodedJudgments

MIN_COMMON = 10
"""Annotators with fewer things in common are not compared."""

FALSE_DISCOVERY = 0.02
"""Share of false alarms allowed among the pairs that are named; the rest to five in a hundred is for what the model of
independent annotators does not know, such as things that are hard in ways of their own."""

MIN_CORRELATION = 0.1
"""Less correlation of errors than this is not spoken of, however sure it is."""

# threshold (sample): pairs of annotators looked at for dependence
MOST_PAIRS = 200_000
"""Most pairs of annotators to compare, those with the most things in common."""

# threshold (sample): work for dependence
_MOST_WORK = 2e8
# threshold (equal): cells of common judgments held at once
_MAX_TABLE_CELLS = 1 << 24
_N_ROUNDS = 4
_JOINED = 0.25
_MIN_STANDARD_ERRORS = 3.0
_FEWEST_FOR_LEVEL = 10
_LEAST_SKEW = 1e-3
_MAX_FITS = 100
_MOST_PARTS = 5
# threshold (sample): common events whose distribution is exact
_FEW_EVENTS = 50_000
_PART_JUDGMENTS = 30
_FEWEST_RIVALS = 8.0


@dataclass(frozen=True, eq=False)
class Dependence:
    """What two annotators have in common beyond what independent ones would, (n_pairs,) each.

    Parameters
    ----------
    one, other
        The two annotators, ``one < other``.
    sums
        Sums over the things both answered.
    excess, std_error
        Agreement beyond that of independent annotators, as a share of the things, and its standard error.
    correlation
        Correlation of the errors; 1 for copies.
    p_value, false_discovery
        Of so large an excess by chance; and the share of false alarms among all pairs as clear as this one.
    dependent
        Whether the pair is named.
    family
        Family of each annotator, (n_annotators,), -1 where there is none.
    n_things, n_looked_at
        Things that two annotators or more answered, and how many of them were looked at.
    """

    one: Ints
    other: Ints
    sums: Sums
    excess: Floats
    std_error: Floats
    correlation: Floats
    p_value: Floats
    false_discovery: Floats
    dependent: Bools
    family: Ints
    n_things: int
    n_looked_at: int


def dependence(
    judgments: Judgments, coded: CodedJudgments, consensus: Consensus, truth: Truth | None
) -> Dependence | None:
    r"""Return which annotators are not independent, or ``None`` where none have enough in common.

    For each thing that annotators :math:`a` and :math:`b` both answered, the answers of all others and the confusions
    of the annotators give the probability of each class :math:`k`, and so of the answers of the two. For independent
    annotators the deviations :math:`d_a, d_b` of the answers (as indicators) from these probabilities have

    .. math:: \mathrm{E}\,\langle d_a, d_b \rangle = \mathrm{Cov}_k(c_{ak}, c_{bk}),

    :math:`c_{ak}` being the row of the confusion for class :math:`k`. The excess over this is summed; its variance and
    skewness under independence follow from the same probabilities, and a gamma distribution with these gives the
    p value. It is the correlation of residuals that shows dependent items of a test [Yen84]_, annotators being in the
    place of the items. Errors that *all* pairs share are laid to the things being hard: the median correlation, where
    it is above 0, is taken off. False discoveries are controlled over all pairs [Benjamini95]_.

    Annotators found to depend on each other form a family, which counts as one voice when classes are estimated, and is
    left out whole when two of its members are looked at. This is repeated until nothing changes. The first
    families are guessed from agreement alone, since copies in number would otherwise pass for the truth.

    With ``truth`` nothing is estimated, and no common level is taken off.
    """
    if judgments.n_annotators < 2 or not len(judgments):
        return None
    panel = panel_of(judgments, coded, consensus, truth)
    # things that several annotators answered, a part of them where they are very many
    size = np.bincount(panel.thing, minlength=panel.n_things)
    use = size > 1 if panel.known is None else (size > 1) & (panel.known >= 0)
    n_things = int(use.sum())
    work = float((size * (size - 1.0) / 2.0)[use].sum()) * (panel.n_classes**3 + 30)
    if work > _MOST_WORK:
        use &= np.random.default_rng(0).random(len(use)) < _MOST_WORK / work
    panel = panel.keep(use)
    listed = _events(panel) if panel.n_classes > 1 else None
    if listed is None:
        return None
    one, other, events = listed
    n, learned = panel.n_annotators, panel.known is None
    # parts of the things, from unclear to clear, as many as answers allow; each has confusions of its own
    part, n_parts = np.zeros(panel.n_things, np.int32), min(_MOST_PARTS, len(panel.thing) // (_PART_JUDGMENTS * n))
    if panel.clear is not None and n_parts > 1:
        edges = np.unique(np.quantile(panel.clear, np.linspace(0, 1, n_parts + 1)[1:-1]))
        part = np.searchsorted(edges, panel.clear, side="right").astype(np.int32)
    few = len(panel.thing) <= FEW and len(events.pair) <= _FEW_EVENTS
    family = _first_families(panel, one, other, events) if learned else np.arange(n, dtype=np.int32)
    inflation, dependent = None, np.zeros(len(one), bool)
    seen: list[Bools] = []
    for _ in range(_N_ROUNDS if learned else 1):
        of_parts = []
        for number in range(int(part.max(initial=0)) + 1):
            inside = part[panel.thing] == number
            row, some = (np.cumsum(inside) - 1).astype(np.int32), inside[events.first]
            chosen = Events(row[events.first[some]], row[events.second[some]], events.pair[some])
            things = panel.keep(part == number)
            of_parts.append(add_up(chosen, things, expected_classes(things, family), len(one), few=few))
        sums = Sums(*(np.sum(columns, axis=0) for columns in zip(*of_parts, strict=True)))
        inflation = _inflation(sums, events, panel) if inflation is None else inflation
        tested = _test_pairs(sums, inflation, level=learned, named=dependent)
        dependent = (tested["false_discovery"] <= FALSE_DISCOVERY) & (tested["correlation"] >= MIN_CORRELATION)
        if any((dependent == before).all() for before in seen):
            break
        seen.append(dependent)
        family = _families(one, other, dependent, tested["correlation"], n)
    named = np.where(np.bincount(family, minlength=n)[family] > 1, family, -1).astype(np.int32)
    tested |= {"dependent": dependent, "family": named, "n_things": n_things, "n_looked_at": panel.n_things}
    return Dependence(one=one, other=other, sums=sums, **tested)


def effective_number(n: int, correlation: float) -> float:
    """Return what ``n`` annotators are worth whose errors have this correlation on average, a pair with the other."""
    return n / (1.0 + (n - 1) * min(max(correlation, 0.0), 1.0))


def _events(panel: Panel) -> tuple[Ints, Ints, Events] | None:
    """Pairs of annotators with enough things in common, and the answers of either to each of these."""
    n = panel.n_annotators
    ends = np.cumsum(np.bincount(panel.thing, minlength=panel.n_things))[panel.thing]
    first, second = pairs_within(np.arange(len(panel.thing)), ends)
    keys = panel.annotator[first].astype(np.int64) * n + panel.annotator[second]
    if n * n <= _MAX_TABLE_CELLS:
        counts = np.bincount(keys, minlength=n * n)
        pairs = np.flatnonzero(counts)
        number, place = counts[pairs], (np.cumsum(counts > 0) - 1)[keys]
    else:
        pairs, place, number = np.unique(keys, return_inverse=True, return_counts=True)
    enough = number >= MIN_COMMON
    if int(enough.sum()) > MOST_PAIRS:
        enough[np.argsort(-number, kind="stable")[MOST_PAIRS:]] = False
    if not enough.any():
        return None
    pair = np.where(enough, np.cumsum(enough) - 1, -1).astype(np.int32)[place]
    use = np.flatnonzero(pair >= 0)
    events = Events(first[use].astype(np.int32), second[use].astype(np.int32), pair[use])
    return (pairs[enough] // n).astype(np.int32), (pairs[enough] % n).astype(np.int32), events


def _test_pairs(sums: Sums, inflation: Floats, *, level: bool, named: Bools) -> dict[str, Any]:
    """Excess, its standard error, correlation, p value and false discovery rate of each pair."""
    from scipy.special import gammaincc

    variance = np.maximum(sums.variance * inflation, 1e-12)
    scale = np.maximum(sums.scale, 1e-12)
    shared = 0.0
    if level and int((~named).sum()) >= _FEWEST_FOR_LEVEL:
        # the correlation that the middle pair has is no matter of two annotators
        correlation = sums.excess / scale
        order = np.flatnonzero(~named)[np.argsort(correlation[~named], kind="stable")]
        climbed = np.cumsum((scale**2 / variance)[order])
        shared = max(0.0, float(correlation[order[np.searchsorted(climbed, 0.5 * climbed[-1])]]))
    excess = sums.excess - shared * scale
    skew = np.maximum(sums.third * inflation / variance**1.5, _LEAST_SKEW)
    shape = 4.0 / skew**2
    p_value = gammaincc(shape, np.maximum(shape + np.sqrt(shape / variance) * excess, 0.0))
    tested = {"excess": excess / sums.number, "std_error": np.sqrt(variance) / sums.number}
    tested |= {"correlation": excess / scale, "p_value": p_value}
    return tested | {"false_discovery": false_discovery_rates(p_value)}


def false_discovery_rates(p_value: Floats) -> Floats:
    """Return the share of false alarms to expect if all pairs are named whose p value is no larger [Benjamini95]_.

    Examples
    --------
    >>> false_discovery_rates(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_value, kind="stable")
    rates = p_value[order] * len(p_value) / np.arange(1, len(p_value) + 1)
    rates[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1.0)
    return rates


def _inflation(sums: Sums, events: Events, panel: Panel) -> Floats:
    """What sharing items raises the variance by, for pairs of annotators whose excess could be one.

    Two comparisons of three items by an annotator who guesses an order have a correlation of a third, and the products
    of two such annotators one of a ninth. A sixth is taken: with a ninth, independent annotators who find the same
    pairs hard were named in 8 % of simulated crowds, with a sixth in 3 %.
    """
    if panel.items is None:
        return np.ones(len(sums.number))
    use = np.flatnonzero((sums.excess > np.sqrt(sums.variance))[events.pair])
    thing, pair = panel.thing[events.first[use]], events.pair[use].astype(np.int64)
    n_items = int(panel.items.max(initial=0)) + 1
    keys = np.sort((pair * n_items + panel.items[:, thing]).ravel())
    begin = np.flatnonzero(np.diff(keys, prepend=-1))
    times = np.diff(begin, append=len(keys)).astype(np.float64)
    sharing = np.bincount(keys[begin] // n_items, times * (times - 1.0), len(sums.number))
    return 1.0 + sharing / np.maximum(sums.number, 1.0) / 6.0


def _families(one: Ints, other: Ints, joined: Bools, correlation: Floats, n: int) -> Ints:
    """Family of each annotator, (n,): all that are joined by clear correlations, but never most of the crowd.

    A family that is the majority cannot be distinguished from the truth, so it is made smaller until it is none.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    most, least = max(2.0, 0.5 * len(np.unique([one, other]))), _JOINED
    while True:
        use = joined & (correlation >= least)
        graph = csr_array((np.ones(int(use.sum()), np.int8), (one[use], other[use])), shape=(n, n))
        family: Ints = connected_components(graph, directed=False)[1]
        if np.bincount(family).max(initial=1) <= most or not use.any():
            return family
        least *= 1.25


def _first_families(panel: Panel, one: Ints, other: Ints, events: Events) -> Ints:
    """Families by agreement alone: pairs far above what either one's agreement with all others lets expect.

    Agreement beyond chance is taken as a product of two numbers, one of each annotator, fitted without outliers.
    """
    n, n_pairs = panel.n_annotators, len(one)
    habits = np.zeros((n, panel.n_classes))
    np.add.at(habits, (panel.annotator, panel.code), 1.0)
    habits = habits + habits[:, ::-1] if panel.mirrored else habits
    habits /= np.maximum(habits.sum(axis=1, keepdims=True), 1.0)
    number = np.bincount(events.pair, minlength=n_pairs).astype(np.float64)
    same = np.bincount(events.pair, panel.code[events.first] == panel.code[events.second], n_pairs) / number
    chance = (habits[one] * habits[other]).sum(axis=1)
    most = np.sqrt(np.maximum(1.0 - (habits**2).sum(axis=1), 1e-3))
    # numbers of annotators whose products are near the agreement of most pairs beyond chance
    own, partner, seen = np.append(one, other), np.append(other, one), np.tile(same - chance, 2)
    weights, by_chance = np.tile(number, 2), np.tile(chance, 2)
    order = np.lexsort((seen, own))
    counts = np.bincount(own, minlength=n)
    some = counts > 0
    middle = (np.cumsum(counts) - counts + (counts - 1) // 2)[some]
    strength = np.zeros(n)
    strength[some] = np.minimum(np.sqrt(np.maximum(seen[order][middle], 1e-3)), most[some])
    for _ in range(_MAX_FITS):
        guess = np.clip(by_chance + strength[own] * strength[partner], 0.01, 0.99)
        far = np.abs(seen + by_chance - guess) / np.sqrt(guess * (1.0 - guess) / weights)
        weight = weights * np.where(far > _MIN_STANDARD_ERRORS + 1.0, 0.05, 1.0) / np.maximum(far, 1.0)
        total = np.bincount(own, weight * strength[partner] ** 2, n)
        fitted = np.bincount(own, weight * seen * strength[partner], n) / np.maximum(total, 1e-9)
        change = np.clip(fitted, -most, most) * some - strength
        strength = strength + 0.5 * change
        if np.abs(change).max(initial=0.0) < 1e-4:
            break
    expected = np.clip(chance + strength[one] * strength[other], 0.01, 0.99)
    far = (same - expected) / np.sqrt(expected * (1.0 - expected) / number)
    return _families(one, other, far > _MIN_STANDARD_ERRORS, (same - expected) / (1.0 - expected), n)


ALPHA = 4.0
"""Answers that the crowd's confusion counts for in that of an annotator."""

# threshold (sample): judgments from which classes are learned alone
FEW = 5_000
"""Up to this many answers arrays will do, and no compiled pass is loaded."""

_TOL = 1e-4
_MAX_ITER = 60
_TIE = 1
_WITHOUT_TIES = np.array([0, -1, 1, -1], np.int32)
"""Class among two of the classes 0, 1, 2 and -1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Answers of annotators to things, by thing and then annotator.

    Parameters
    ----------
    thing, annotator, code, wrong
        Thing, annotator and answer of each row, and whether it is wrong by the truth or else by the consensus,
        (n_rows,).
    n_things, n_annotators, n_classes
        How many of each there are; answers are the names of classes.
    mirrored
        Whether classes mean the same from the other end, as where two items are compared.
    known
        Class of each thing, (n_things,), or -1; ``None`` where nothing is known.
    items
        The two items of each thing, (2, n_things), where things are pairs: answers about pairs that share an item are
        not independent where an annotator has an order in mind, and the variance is raised as for rankings.
    clear
        How clear each thing is, such as the distance of two items, (n_things,), where that is known from more than the
        answers to it: annotators then have a confusion for each of some parts of the things, from unclear to clear.
    """

    thing: Ints
    annotator: Ints
    code: Ints
    wrong: Bools
    n_things: int
    n_annotators: int
    n_classes: int
    mirrored: bool
    known: Ints | None = None
    items: Ints | None = None
    clear: Floats | None = None

    def keep(self, things: Bools) -> Panel:
        """Return some of the things only, renumbered."""
        number = (np.cumsum(things) - 1).astype(np.int32)
        rows = things[self.thing]
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("annotator", "code", "wrong")}
        for name in ("known", "items", "clear"):
            values = getattr(self, name)
            columns[name] = None if values is None else values[..., things]
        return replace(self, thing=number[self.thing[rows]], n_things=int(things.sum()), **columns)


class Expected(NamedTuple):
    """What independent annotators would do.

    ``confusion`` (n_annotators, n_classes, n_classes); ``whole`` (n_things, n_classes) is the log-likelihood of each
    class of a thing, ``parts`` (n_cells, n_classes) what each cell adds to it, and ``cell`` (n_rows,) the cell of a
    row: the answers of one family to one thing.
    """

    confusion: Floats
    whole: Floats
    parts: Floats
    cell: Ints


def expected_classes(panel: Panel, family: Ints) -> Expected:
    """Return the confusions of annotators whose families, (n_annotators,), count as one voice each."""
    cells, sizes = np.arange(len(panel.thing)), np.ones(len(panel.thing), np.int64)
    if len(np.unique(family)) < panel.n_annotators:
        keys = panel.thing.astype(np.int64) * panel.n_annotators + family[panel.annotator]
        cells, sizes = np.unique(keys, return_inverse=True, return_counts=True)[1:]
    cell = cells.astype(np.int32)
    weight = None if sizes.max(initial=1) == 1 else 1.0 / sizes[cell]
    # confusions and shares of the classes, from the vote shares on
    packed = None
    if len(panel.thing) > FEW:
        from ..kernels.confusion import pack_grades

        numbers = (panel.n_things, panel.n_annotators, panel.n_classes)
        packed = pack_grades(panel.thing, panel.annotator, panel.code, weight, *numbers)
    confusion, prior = _learn_confusions(*_count_classes(panel, weight, packed, None), panel.mirrored)
    for _ in range(_MAX_ITER if panel.known is None else 0):
        before, counts = confusion, _count_classes(panel, weight, packed, (confusion, prior))
        confusion, prior = _learn_confusions(*counts, panel.mirrored)
        if float(np.abs(confusion - before).max(initial=0.0)) <= _TOL:
            break
    if panel.known is not None:
        certain = np.where(np.arange(panel.n_classes) == panel.known[:, None], 0.0, -np.inf)
        return Expected(confusion, certain, np.zeros((1, panel.n_classes)), np.zeros(len(cell), np.int32))
    voice = np.log(confusion)[panel.annotator, :, panel.code]
    if weight is not None:
        voice *= weight[:, None]
    parts, whole = _sums(voice, cell, len(sizes)), _sums(voice, panel.thing, panel.n_things)
    return Expected(confusion, whole + np.log(prior), parts, cell)


def _count_classes(
    panel: Panel, weight: Floats | None, packed: Any, model: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """Expected counts by annotator, class and answer, and of the classes: by votes, or by confusions and shares.

    Many answers are packed for a compiled pass, which would take longer to load than arrays over few of them.
    """
    shape = (panel.n_annotators, panel.n_classes, panel.n_classes)
    if packed is not None:
        from ..kernels.confusion import confusion_pass, vote_pass

        known = np.full(panel.n_things, -1, np.int32) if panel.known is None else panel.known
        tallies = vote_pass(packed, *shape[:2], known) if model is None else confusion_pass(packed, *model, known)
        return tallies.counts, tallies.shares
    amount = np.ones((len(panel.thing), 1)) if weight is None else weight[:, None]
    certain = np.eye(panel.n_classes)
    if panel.known is not None:
        classes = certain[panel.known]
    elif model is None:
        votes = _sums(certain[panel.code] * amount, panel.thing, panel.n_things)
        classes = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)
    else:
        voice = np.log(model[0])[panel.annotator, :, panel.code] * amount
        log = _sums(voice, panel.thing, panel.n_things) + np.log(model[1])
        classes = np.exp(log - log.max(axis=1, keepdims=True))
        classes /= classes.sum(axis=1, keepdims=True)
    cell = panel.annotator.astype(np.int64) * panel.n_classes + panel.code
    given = _sums(classes[panel.thing] * amount, cell, shape[0] * shape[1])
    return given.reshape(shape).transpose(0, 2, 1), classes.sum(axis=0)


def _learn_confusions(counts: Floats, shares: Floats, mirrored: bool) -> tuple[Floats, Floats]:
    """Confusions drawn towards that of the crowd, and shares of the classes, both from expected counts."""
    if mirrored:
        counts, shares = counts + counts[:, ::-1, ::-1], shares + shares[::-1]
    crowd = counts.sum(axis=0) + 1.0 / len(shares)
    crowd /= crowd.sum(axis=1, keepdims=True)
    confusion = (counts + ALPHA * crowd) / (counts.sum(axis=2, keepdims=True) + ALPHA)
    return confusion, (shares + 1.0) / (shares + 1.0).sum()


def _sums(values: Floats, group: Ints | Counts, n: int) -> Floats:
    """Sum of the rows of each group, (n, n_classes)."""
    return np.stack([np.bincount(group, column, n) for column in values.T], axis=1)


def panel_of(judgments: Judgments, coded: CodedJudgments, consensus: Consensus, truth: Truth | None) -> Panel:
    """Return the answers with the classes that the truth tells; two classes where nobody tied."""
    known = None if truth is None else _known_classes(judgments, coded, truth)
    answers: dict[str, Any] = {"thing": coded.thing, "annotator": coded.annotator, "n_things": len(coded.first)}
    answers |= {"n_annotators": judgments.n_annotators, "mirrored": not isinstance(judgments, Grades)}
    code, n_classes = coded.code, coded.n_codes
    if isinstance(judgments, Grades):
        right = (_consensus_classes(judgments, coded, consensus) if known is None else known)[coded.thing]
        wrong = (right >= 0) & (code != right)
        return Panel(code=code, wrong=wrong, n_classes=n_classes, known=known, **answers)
    gap = consensus.scores[coded.first] - consensus.scores[coded.second]
    lead = np.sign(gap) if known is None else np.where(known < 0, 0, known - _TIE)
    wrong = lead[coded.thing] * (code - _TIE) < 0
    if not (code == _TIE).any():
        code, n_classes = code // 2, 2
        known = None if known is None else _WITHOUT_TIES[known]
    items = np.stack([coded.first, coded.second])
    # with few rivals the scores are made of the answers to be looked at, and against a truth hard pairs count too
    enough = known is None and 2.0 * len(coded.first) / max(len(np.unique(items)), 1) >= _FEWEST_RIVALS
    answers |= {"items": items, "clear": np.abs(gap) if enough else None}
    return Panel(code=code, wrong=wrong, n_classes=n_classes, known=known, **answers)


def _consensus_classes(grades: Grades, coded: CodedJudgments, consensus: Consensus) -> Ints:
    """Class of each graded item by the consensus: of the level it chose, or else nearest to the mean of its grades."""
    assert coded.classes is not None
    given, classes, values = coded.classes
    if consensus.grade is not None and consensus.levels == grades.levels:
        of_level = np.full(len(grades.levels), -1, np.int32)
        of_level[np.searchsorted(grades.level_values, given)] = classes
        chosen = consensus.grade[coded.first]
        return np.where(chosen < 0, -1, of_level[np.maximum(chosen, 0)]).astype(np.int32)
    number = np.bincount(grades.item, minlength=grades.n_items)
    means = np.bincount(grades.item, grades.grade, grades.n_items) / np.maximum(number, 1)
    return _nearest(values, means[coded.first])


def _nearest(values: Floats, wanted: Floats) -> Ints:
    """Place of the nearest of some values, -1 for NaN."""
    from ..kernels import ROUNDING

    # a mean in the middle of two goes to the lower one, whatever its last digit
    middles = 0.5 * (values[1:] + values[:-1]) + ROUNDING * np.abs(values).max(initial=0.0)
    return np.where(np.isnan(wanted), -1, np.searchsorted(middles, wanted)).astype(np.int32)


def _known_classes(judgments: Judgments, coded: CodedJudgments, truth: Truth) -> Ints:
    """Class of each thing by the truth, -1 where that does not cover it."""
    if isinstance(judgments, Grades):
        if truth.form == "pairs":
            odd = "grades are compared with known grades, not with known winners"
            raise JudgmentError(f"{odd}; give query, item, grade")
        assert coded.classes is not None
        given, classes, values = coded.classes
        grade = truth.align(judgments.items)[coded.first]
        if judgments.declared is not None:
            # levels in words are known by their names
            value_of = dict(zip(map(str, judgments.levels), judgments.level_values.tolist(), strict=True))
            by_name = truth.labels(grade).replace_strict(value_of, default=None, return_dtype=pl.Float64)
            grade = by_name.fill_null(float("nan")).to_numpy()
        if judgments.nominal:
            place = np.minimum(np.searchsorted(given, grade), len(given) - 1)
            known = np.where(given[place] == grade, classes[place], -1).astype(np.int32)
        else:
            known = _nearest(values, grade)
    elif truth.form == "pairs":
        left, right, outcome = truth.align_pairs(judgments.items)
        turned = left > right
        low, high = np.where(turned, right, left).astype(np.int64), np.where(turned, left, right)
        keys = np.append(low * judgments.n_items + high, -1)
        order = np.argsort(keys, kind="stable")
        wanted = coded.first.astype(np.int64) * judgments.n_items + coded.second
        place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
        winner = np.append(np.where(turned, -outcome, outcome), 0) + 1
        known = np.where(keys[place] == wanted, winner[place], -1).astype(np.int32)
    else:
        grade = truth.align(judgments.items)
        gap = grade[coded.first] - grade[coded.second]
        known = np.where(np.isnan(gap), -1, np.sign(np.where(np.isnan(gap), 0.0, gap)) + 1).astype(np.int32)
    if not (known >= 0).any():
        raise JudgmentError("the truth covers nothing that was judged; give truth of the same queries and items")
    return known


_EVENTS_PER_THREAD = 20_000


class Events(NamedTuple):
    """Two judgments to one thing by two annotators, (n_events,) each.

    ``first`` and ``second`` are the rows of the two judgments, ``pair`` the number of the pair of annotators.
    """

    first: Ints
    second: Ints
    pair: Ints


class Sums(NamedTuple):
    """Sums over the things that both annotators judged, (n_pairs,) each.

    Parameters
    ----------
    number, same
        Things, and those with the same judgment.
    excess
        Product of deviations, less its expectation for independent annotators.
    variance, third
        Second and third moment of that, for independent annotators.
    scale
        What the excess would be for copies.
    wrong, wrong_same
        Things on which either is wrong, and on which both are in the same way.
    """

    number: Floats
    same: Floats
    excess: Floats
    variance: Floats
    third: Floats
    scale: Floats
    wrong: Floats
    wrong_same: Floats


def add_up(events: Events, panel: Panel, expected: Expected, n_pairs: int, *, few: bool) -> Sums:
    """Return the sums of each pair of annotators; ``few`` events are summed before a compiled pass is even loaded."""
    if few:
        return _add_few(events, panel, expected, n_pairs)
    from .kernels.pairings import add_events

    rows = (panel.thing, panel.annotator, panel.code, expected.cell, panel.wrong)
    columns = [read_only(column) for column in (*events, *rows, expected.confusion, expected.whole, expected.parts)]
    run: Any = add_events

    def work(begin: int, end: int) -> Floats:
        sums = np.zeros((n_pairs, len(Sums._fields)))
        run(*columns, begin, end, sums)
        return sums

    pair_sums = total(over_bounds(work, even_bounds(len(events.pair), max(_EVENTS_PER_THREAD, 8 * n_pairs))))
    return Sums(*(np.ascontiguousarray(column) for column in pair_sums.T))


def _add_few(events: Events, panel: Panel, expected: Expected, n_pairs: int) -> Sums:
    """The same by arrays over events."""
    one, other = events.first, events.second
    a, b = expected.confusion[panel.annotator[one]], expected.confusion[panel.annotator[other]]
    cell, beside = expected.cell[one], expected.cell[other]
    log = expected.whole[panel.thing[one]] - expected.parts[cell]
    log = log - np.where((cell != beside)[:, None], expected.parts[beside], 0.0)
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    joint = np.einsum("ek,eky,ekz->eyz", chance, a, b)
    of_one, of_other = joint.sum(axis=2), joint.sum(axis=1)
    deviation = np.eye(panel.n_classes) - of_one[:, None, :] - of_other[:, :, None]
    deviation += (2.0 * (of_one * of_other).sum(axis=1) - np.einsum("eyy->e", joint))[:, None, None]
    y, z, event = panel.code[one], panel.code[other], np.arange(len(one))
    spread = (1.0 - np.einsum("ek,eky->e", chance, a**2)) * (1.0 - np.einsum("ek,eky->e", chance, b**2))
    wrong_one, wrong_other = panel.wrong[one], panel.wrong[other]
    moments = [(joint * deviation**2).sum(axis=(1, 2)), (joint * deviation**3).sum(axis=(1, 2))]
    columns = [np.ones(len(one)), y == z, deviation[event, y, z], *moments, np.sqrt(np.maximum(spread, 0.0))]
    columns += [wrong_one | wrong_other, wrong_one & wrong_other & (y == z)]
    return Sums(*(np.bincount(events.pair, column, n_pairs).astype(np.float64) for column in columns))
