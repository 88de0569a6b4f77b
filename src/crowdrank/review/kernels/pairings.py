"""Whether two annotators judge alike more often than independent ones would, summed over what both judged.

Annotator ``a`` gives judgment ``y`` to a thing of class ``k`` with probability ``confusion[a, k, y]``. The judgments of
all others say how probable each class is, and that gives the probabilities of either one's judgment. What is summed is
the product of the two judgments' deviations from these probabilities, less what the common class explains of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...kernels.threads import even_bounds, over_bounds, read_only, total
from ...protocols import Floats, Ints

_EVENTS_PER_THREAD = 20_000


class Events(NamedTuple):
    """Two judgments to one thing by two annotators, (n_events,) each.

    ``first`` and ``second`` are the rows of the two judgments, ``pair`` the number of the pair of annotators.
    """

    first: Ints
    second: Ints
    pair: Ints


class Rows(NamedTuple):
    """Judgments by thing, (n_rows,) each.

    ``cell`` is the part of the thing's log-likelihood that a judgment belongs to: what is left out with it.
    """

    thing: Ints
    annotator: Ints
    code: Ints
    cell: Ints
    wrong: Ints


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


def add_up(
    events: Events, rows: Rows, confusion: Floats, whole: Floats, parts: Floats, n_pairs: int, *, few: bool = False
) -> Sums:
    """Return the sums of each pair of annotators.

    ``confusion`` (n_annotators, n_classes, n_classes); ``whole`` (n_things, n_classes) is the log-likelihood of each
    class of a thing, prior included, and ``parts`` (n_cells, n_classes) what the judgments of each cell add to it.
    ``few`` events are summed before a compiled pass is even loaded.
    """
    if few:
        return _add_few(events, rows, confusion, whole, parts, n_pairs)
    from .pairing_pass import add_events

    columns = [read_only(column) for column in (*events, *rows, confusion, whole, parts)]
    run: Any = add_events

    def work(begin: int, end: int) -> Floats:
        sums = np.zeros((n_pairs, len(Sums._fields)))
        run(*columns, begin, end, sums)
        return sums

    pair_sums = total(over_bounds(work, even_bounds(len(events.pair), max(_EVENTS_PER_THREAD, 8 * n_pairs))))
    return Sums(*(np.ascontiguousarray(column) for column in pair_sums.T))


def _add_few(events: Events, rows: Rows, confusion: Floats, whole: Floats, parts: Floats, n_pairs: int) -> Sums:
    """The same by arrays over events."""
    one, other = events.first, events.second
    a, b = confusion[rows.annotator[one]], confusion[rows.annotator[other]]
    log = whole[rows.thing[one]] - parts[rows.cell[one]]
    log = log - np.where((rows.cell[one] != rows.cell[other])[:, None], parts[rows.cell[other]], 0.0)
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    joint = np.einsum("ek,eky,ekz->eyz", chance, a, b)
    of_one, of_other = joint.sum(axis=2), joint.sum(axis=1)
    deviation = np.eye(confusion.shape[1]) - of_one[:, None, :] - of_other[:, :, None]
    deviation += (2.0 * (of_one * of_other).sum(axis=1) - np.einsum("eyy->e", joint))[:, None, None]
    y, z, event = rows.code[one], rows.code[other], np.arange(len(one))
    spread = (1.0 - np.einsum("ek,eky->e", chance, a**2)) * (1.0 - np.einsum("ek,eky->e", chance, b**2))
    wrong_one, wrong_other = rows.wrong[one] > 0, rows.wrong[other] > 0
    columns = (
        np.ones(len(one)), y == z, deviation[event, y, z], (joint * deviation**2).sum(axis=(1, 2)),
        (joint * deviation**3).sum(axis=(1, 2)), np.sqrt(np.maximum(spread, 0.0)), wrong_one | wrong_other,
        wrong_one & wrong_other & (y == z),
    )  # fmt: skip
    return Sums(*(np.bincount(events.pair, column, n_pairs).astype(np.float64) for column in columns))
