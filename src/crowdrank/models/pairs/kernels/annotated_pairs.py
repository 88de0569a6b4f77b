"""Models of preferences in which every annotator has a parameter, evaluated on answers sorted by pair.

Two items with scores ``u`` and ``v`` have a gap ``t``, and an annotator with parameter ``a`` prefers the first of them
with a probability that depends on ``x = a t`` only:

- ``"mixture"``: ``t = tanh((u - v) / 2)`` and probability ``(1 + x) / 2``, which is Crowd-BT with ``a = 2 eta - 1``;
- ``"slope"``: ``t = u - v`` and probability ``1 / (1 + exp(-x))``.

A tie counts half for each side.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.answers import Answers
from ....kernels.threads import over_bounds, read_only, total
from ....protocols import Bools, Counts, Floats

_TINY = 1e-200


class Curve(NamedTuple):
    """The log-likelihood at one point, its gradient, and the curvature of the negated log-likelihood.

    In the scores the curvature is the graph Laplacian with weight ``bend`` (n_pairs,), whose diagonal is ``degree``
    (n_items,); in the parameters it is the diagonal ``own_bend`` (n_annotators,). What lies between the two is
    ``cross`` (n_items, n_annotators), or else, where that is empty, ``tie_in`` (n_answers,): what an answer adds to
    the entry of its lower item, and takes from that of the higher one.
    """

    log_likelihood: float
    gradient: Floats
    own_gradient: Floats
    bend: Floats
    degree: Floats
    own_bend: Floats
    cross: Floats
    tie_in: Floats


def evaluate_answers(answers: Answers, model: str, scores: Floats, own: Floats, *, dense: bool) -> Curve:
    """Return the log-likelihood of answers with all that Newton's method needs.

    ``scores`` (n_items,) and ``own`` (n_annotators,), between -1 and 1 for the mixture, are the parameters; ``dense``
    tells whether to fill in the matrix ``cross`` or the list ``tie_in``.
    """
    n_items, n_annotators, mixture = len(scores), len(own), model == "mixture"
    bend, tie_in = np.empty(len(answers.second)), np.empty(0 if dense else len(answers.code))
    # exponentials of items and not of pairs; scores are centred, so that they stay in range
    level, parameter, run = read_only(np.exp(scores) if mixture else scores), read_only(own), _pass_for(mixture)

    def work(begin: int, end: int) -> list[Floats]:
        sums = [np.zeros(1), np.zeros((2, n_items)), np.zeros((2, n_annotators))]
        cross = np.zeros((n_items if dense else 0, n_annotators))
        run(*answers[:5], level, parameter, begin, end, bend, tie_in, *sums, cross)
        return [*sums, cross]

    threads = over_bounds(work, answers.parts)
    value, (gradient, degree), (slope, own_bend), cross = (
        total([parts[place] for parts in threads]) for place in range(4)
    )
    return Curve(float(value[0]), gradient, slope, bend, degree, own_bend, cross, tie_in)


@cache
def _pass_for(mixture: bool) -> Any:
    """The pass over answers of one of the two models."""

    @njit(cache=True, nogil=True)
    def run(
        starts: Any, second: Any, bounds: Any, code: Any, weight: Any, level: Any, own: Any, begin: int, end: int,
        bend: Any, tie_in: Any, value: Any, of_items: Any, of_annotators: Any, cross: Any,
    ) -> None:  # fmt: skip
        """Fill bend and tie_in and add to the rest what the pairs of items begin to end have."""
        logs, product, weighted, dense = 0.0, 1.0, weight.size > 0, cross.shape[0] > 0
        for i in range(begin, end):
            for pair in range(starts[i], starts[i + 1]):
                j = np.uint32(second[pair])
                gap, turn = _gap(mixture, level[i], level[j])
                slope = bent = 0.0
                for row in range(bounds[pair], bounds[pair + 1]):
                    k, won = np.uint32(code[row] >> 2), (code[row] & 3) - 1.0
                    a, amount = own[k], weight[row] if weighted else 1.0
                    x = a * gap
                    chance, push, pull = _answer(mixture, won, x)
                    # one logarithm for many answers
                    product *= 1.0 if weighted else chance
                    if weighted or product < _TINY:
                        logs += amount * np.log(chance) if weighted else np.log(product)
                        product = 1.0
                    push, pull = amount * push, amount * pull
                    slope += a * push
                    bent += a * a * pull
                    of_annotators[0, k] += gap * push
                    of_annotators[1, k] += gap * gap * pull
                    joint = (x * pull - push) * turn
                    if dense:
                        cross[i, k] += joint
                        cross[j, k] -= joint
                    else:
                        tie_in[row] = joint
                slope *= turn
                bent = bent * turn * turn + (gap * slope if mixture else 0.0)
                bend[pair] = bent
                of_items[0, i] += slope
                of_items[0, j] -= slope
                of_items[1, i] += bent
                of_items[1, j] += bent
        value[0] += logs + np.log(product)

    return run


@njit(cache=True, nogil=True)
def _gap(mixture: bool, one: float, other: float) -> tuple[float, float]:
    """The gap between two levels, and its derivative by the first score."""
    if not mixture:
        return one - other, 1.0
    share = 1.0 / (one + other)
    return (one - other) * share, 2.0 * one * other * share * share


@njit(cache=True, nogil=True)
def _answer(mixture: bool, won: float, x: float) -> tuple[float, float, float]:
    """The probability of an answer and, of its logarithm, the slope in x and the negated second derivative."""
    if mixture:
        share = 1.0 / (1.0 - x * x)
        chance = 0.5 + 0.5 * won * x if won != 0.0 else np.sqrt(0.25 / share)
        return chance, (won - x) * share, (1.0 - 2.0 * won * x + x * x) * share * share
    up = 1.0 / (1.0 + np.exp(-x))
    pull = up * (1.0 - up)
    chance = up if won > 0.0 else 1.0 - up if won < 0.0 else np.sqrt(pull)
    return chance, 0.5 * (1.0 + won) - up, pull


def joint_product(answers: Answers, curve: Curve, bend: Floats, items: Floats, own: Floats) -> tuple[Floats, Floats]:
    """Return the product of the curvature, without its diagonal, with a vector of items and one of annotators.

    The curvature between the two is that of ``curve.tie_in``, that of the pairs is ``bend`` (n_pairs,).
    """
    columns = (answers.starts, answers.second, answers.bounds, answers.code, read_only(curve.tie_in), read_only(bend))
    vectors = (read_only(items), read_only(own))

    def work(begin: int, end: int) -> list[Floats]:
        image = [np.zeros(len(items)), np.zeros(len(own))]
        _joint_product(*columns, *vectors, begin, end, *image)
        return image

    threads = over_bounds(work, answers.parts)
    to_items, to_own = (total([parts[place] for parts in threads]) for place in range(2))
    return to_items, to_own


@njit(cache=True, nogil=True)
def _joint_product(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, bend: Any, items: Any, own: Any, begin: int,
    end: int, to_items: Any, to_own: Any,
) -> None:  # fmt: skip
    """Add to both images what the pairs of items begin to end have."""
    for i in range(begin, end):
        value, received = items[i], 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            gap, sent = value - items[j], 0.0
            for row in range(bounds[pair], bounds[pair + 1]):
                k = np.uint32(code[row] >> 2)
                sent += tie_in[row] * own[k]
                to_own[k] += tie_in[row] * gap
            received += sent - bend[pair] * items[j]
            to_items[j] -= sent + bend[pair] * value
        to_items[i] += received


def turned_margins(answers: Answers, turned: Bools) -> Floats:
    """Return by how much the margin of each pair grows when the answers of some annotators are turned, (n_pairs,)."""
    change = np.zeros(len(answers.second))
    columns = (answers.starts, answers.bounds, answers.code, answers.weight, read_only(turned))

    def work(begin: int, end: int) -> None:
        _turned_margins(*columns, begin, end, change)

    over_bounds(work, answers.parts)
    return change


@njit(cache=True, nogil=True)
def _turned_margins(
    starts: Any, bounds: Any, code: Any, weight: Any, turned: Any, begin: int, end: int, change: Any
) -> None:
    """Fill in the changes of the pairs of items begin to end."""
    for pair in range(starts[begin], starts[end]):
        for row in range(bounds[pair], bounds[pair + 1]):
            if turned[code[row] >> 2]:
                change[pair] -= 2.0 * ((code[row] & 3) - 1.0) * (weight[row] if weight.size else 1.0)


def explained_curvature(answers: Answers, tie_in: Floats, room: Floats, firsts: Counts, size: int) -> Floats:
    """Return what annotators who adapt take off the curvature of the scores, (n_queries, size, size).

    That is, for each query of ``size`` items from ``firsts[q]`` on, the sum over annotators of ``room c c'``, where
    ``room`` is the variance of the annotator's parameter and ``c`` (size,) has what the annotator's answers in this
    query tie to each item.
    """
    blocks = np.zeros((len(firsts), size, size))
    place = np.full(len(room), -1, np.int64)
    columns = (answers.starts, answers.second, answers.bounds, answers.code, read_only(tie_in))
    most = int(
        np.max(answers.bounds[answers.starts[firsts + size]] - answers.bounds[answers.starts[firsts]], initial=0)
    )
    rows = np.zeros((min(most, len(room)), size))
    who = np.empty(len(rows), np.int64)
    _explain(*columns, read_only(room), read_only(firsts), place, rows, who, blocks)
    return blocks


@njit(cache=True, nogil=True)
def _explain(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, room: Any, firsts: Any,
    place: Any, rows: Any, who: Any, blocks: Any,
) -> None:  # fmt: skip
    """Add to the block of each query; ``place`` (n_annotators,) is -1 and ``rows`` 0, before and after."""
    size = blocks.shape[1]
    for query in range(firsts.size):
        first, n_rows = firsts[query], 0
        for i in range(first, first + size):
            for pair in range(starts[i], starts[i + 1]):
                for row in range(bounds[pair], bounds[pair + 1]):
                    k = code[row] >> 2
                    if place[k] < 0:
                        place[k] = n_rows
                        who[n_rows] = k
                        n_rows += 1
                    rows[place[k], i - first] += tie_in[row]
                    rows[place[k], second[pair] - first] -= tie_in[row]
        for number in range(n_rows):
            for i in range(size):
                if rows[number, i] != 0.0:
                    scaled = room[who[number]] * rows[number, i]
                    for j in range(size):
                        blocks[query, i, j] += scaled * rows[number, j]
            rows[number] = 0.0
            place[who[number]] = -1
