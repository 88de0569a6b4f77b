"""Slow twins of what diagnostics count: leads, triads, and products of two annotators' deviations."""

from itertools import combinations

import numpy as np


def leads(rows, n):
    """(thing, annotator, lead with the lower item left, lead with the higher one left) of rows; 2 where not asked."""
    answers = {}
    for thing, annotator, turned, outcome in rows:
        answers.setdefault((thing, annotator), ([], []))[int(turned)].append(outcome)
    return [
        (thing, annotator, *(np.float32(np.mean(part)) if part else np.float32(2) for part in both))
        for (thing, annotator), both in sorted(answers.items())
    ]


def triads(chosen):
    """Number of triads and of circular ones among {(low, high): whether the lower item was chosen}."""
    items = sorted({item for pair in chosen for item in pair})
    number = circular = 0
    for i, j, k in combinations(items, 3):
        if {(i, j), (j, k), (i, k)} <= chosen.keys():
            number += 1
            circular += chosen[i, j] == chosen[j, k] != chosen[i, k]
    return number, circular


def pair_sums(rows, confusion, whole, parts, one, other):
    """The sums of two annotators over the things both answered; rows are (thing, annotator, code, cell, wrong)."""
    n = confusion.shape[1]
    sums = np.zeros(8)
    for a in (row for row in rows if row[1] == one):
        for b in (row for row in rows if row[1] == other and row[0] == a[0]):
            log = whole[a[0]] - sum(parts[cell] for cell in {a[3], b[3]})
            chance = np.exp(log - log.max())
            chance /= chance.sum()
            joint = np.einsum("k,ky,kz->yz", chance, confusion[one], confusion[other])
            first, second = joint.sum(axis=1), joint.sum(axis=0)
            deviations = np.eye(n)[:, None, :] - first, np.eye(n)[None, :, :] - second
            product = (deviations[0] * deviations[1]).sum(axis=2)
            excess = product - (joint * product).sum()
            spread = [1 - (chance[:, None] * confusion[who] ** 2).sum() for who in (one, other)]
            sums += [
                1, a[2] == b[2], excess[a[2], b[2]], (joint * excess**2).sum(), (joint * excess**3).sum(),
                np.sqrt(spread[0] * spread[1]), a[4] or b[4], a[4] and b[4] and a[2] == b[2],
            ]  # fmt: skip
    return sums
