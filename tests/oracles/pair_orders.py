"""Slow, obviously right twins of the methods that order items by pairs, on dense matrices and plain lists."""

from collections import Counter
from fractions import Fraction
from math import ceil, exp, log

import numpy as np


def lead_matrix(counts, n_items):
    """Share of wins less share of losses of each item against each other, 0 where they have not met."""
    lead = np.zeros((n_items, n_items))
    for (i, j), (wins, losses, ties) in counts.items():
        lead[i, j] = (wins - losses) / (wins + losses + ties)
        lead[j, i] = -lead[i, j]
    return lead


def exact_leads(counts):
    """The same as fractions, {(i, j): lead of i}, both ways."""
    leads = {}
    for (i, j), (wins, losses, ties) in counts.items():
        share = Fraction(wins - losses) / Fraction(wins + losses + ties)
        leads[i, j], leads[j, i] = share, -share
    return leads


def greedy_places(counts, items):
    """Lists of items that share a place, best first: all of the largest potential at once, by leads over each other."""
    leads, left, order = exact_leads(counts), set(items), []
    while left:
        potential = {i: sum(leads.get((i, j), 0) for j in left) for i in left}
        top = {i for i in left if potential[i] == max(potential.values())}
        inner = {i: sum(leads.get((i, j), 0) for j in top) for i in top}
        order += [sorted(i for i in top if inner[i] == value) for value in sorted(set(inner.values()), reverse=True)]
        left -= top
    return order


def greedy_one_by_one(lead):
    """Items best first as Cohen, Schapire and Singer have it, and whether the largest potential was ever shared."""
    left, order, shared = list(range(len(lead))), [], False
    while left:
        potential = [lead[i, left].sum() for i in left]
        best = int(np.argmax(potential))
        shared |= sum(value > potential[best] - 1e-6 for value in potential) > 1
        order.append(left.pop(best))
    return order, shared


def colours(labels, n_items):
    """Number of each item so that two have the same one if their labelled links look alike, however far followed.

    ``labels`` maps (i, j) to what i sees of its link with j.
    """
    colour, n_known = [0] * n_items, 0
    while len(set(colour)) > n_known:
        n_known = len(set(colour))
        seen = [Counter() for _ in range(n_items)]
        for (i, j), label in labels.items():
            seen[i][label, colour[j]] += 1
        keys = [(colour[i], tuple(sorted(seen[i].items()))) for i in range(n_items)]
        numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
        colour = [numbers[key] for key in keys]
    return colour


def mixed(value):
    """The mixing of 64 bits, in whole numbers without end."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def majority_order(lead, numbers, salt, items):
    """Lists of items that share a place, best first: quicksort by majority with pivots and coins from numbers."""
    if not items:
        return []
    pivot = min({numbers[i] for i in items}, key=lambda number: mixed(number ^ salt))
    middle = [i for i in items if numbers[i] == pivot]
    ahead, behind = [], []
    for i in items:
        if numbers[i] != pivot:
            votes = sum(np.sign(lead[i, j]) for j in middle)
            coin = mixed((mixed(pivot ^ salt) + mixed((numbers[i] + salt) % 2**64)) % 2**64) % 2 == 1
            (ahead if votes > 0 or (votes == 0 and coin) else behind).append(i)
    rest = (majority_order(lead, numbers, salt, part) for part in (ahead, behind))
    return [*next(rest), middle, *next(rest)]


def standings(places, n_items):
    """(Items below - items above) / (items - 1) from lists of items that share a place."""
    total, above, scores = sum(map(len, places)), 0, [0.0] * n_items
    for together in places:
        below = total - above - len(together)
        for i in together:
            scores[i] = (below - above) / (total - 1) if total > 1 else 0.0
        above += len(together)
    return scores


def one_coin(answers, prior, n_annotators, rounds=20_000):
    """Qualities and {pair: probability that the lower item is better}, by plain EM.

    ``answers`` are (pair, annotator, whether the lower item won, weight); ``prior`` two numbers for each annotator.
    """
    eta = [right / (right + wrong) for right, wrong in prior]
    for _ in range(rounds):
        odds = Counter()
        for pair, who, lower, weight in answers:
            odds[pair] += (1 if lower else -1) * weight * log(eta[who] / (1 - eta[who]))
        better = {pair: 1 / (1 + exp(-value)) for pair, value in odds.items()}
        right, number = [0.0] * n_annotators, [0.0] * n_annotators
        for pair, who, lower, weight in answers:
            right[who] += weight * (better[pair] if lower else 1 - better[pair])
            number[who] += weight
        new = [(a + r) / (a + b + n) for (a, b), r, n in zip(prior, right, number, strict=True)]
        eta, before = new, eta
        if max(abs(x - y) for x, y in zip(eta, before, strict=True)) < 1e-13:
            break
    return eta, better


def play(batches, kin, n_items, gain):
    """Scores after one pass: the (winner, loser, weight) games of a batch are played at once in small steps.

    ``kin`` numbers items that look alike. A batch takes as many steps as one item has games at most among those of two
    kinds, added up over the kinds.
    """
    scores = [0.0] * n_items
    for batch in batches:
        kinds = {}
        for winner, loser, weight in batch:
            kinds.setdefault((kin[winner], kin[loser]), []).append((winner, loser, weight))
        n_steps = 0
        for games in kinds.values():
            n_steps += max(max(Counter(game[side] for game in games).values()) for side in (0, 1))
        for _ in range(ceil(n_steps)):
            moves = [gain * w / (1 + exp(scores[i] - scores[j])) / n_steps for i, j, w in batch]
            for (i, j, _), move in zip(batch, moves, strict=True):
                scores[i] += move
                scores[j] -= move
    return scores


def singular_scores(lead, met, groups, *, balanced):
    """Direction in the plane of the two largest singular values at a right angle to the ones, by a dense SVD."""
    scores = np.zeros(len(lead))
    for group in set(groups):
        part = np.flatnonzero(np.array(groups) == group)
        block, degree = lead[np.ix_(part, part)], met[np.ix_(part, part)].sum(axis=1)
        if len(part) < 2 or np.allclose(block.sum(axis=1), 0):
            continue
        root = np.sqrt(degree) if balanced else np.ones(len(part))
        vectors = np.linalg.svd(block / np.outer(root, root))[0][:, :2]
        along = vectors.T @ (1 / root)
        direction = root * (vectors @ np.array([-along[1], along[0]]))
        direction -= direction.mean()
        gaps = np.subtract.outer(direction, direction) * met[np.ix_(part, part)]
        scores[part] = direction * (gaps * block).sum() / (gaps**2).sum()
    return scores


def walk_scores(counts, n_items, alpha, groups):
    """Centred logarithms of the stationary shares of each group's walk, by a dense system."""
    rates = np.zeros((n_items, n_items))
    for (i, j), (wins, losses, ties) in counts.items():
        total = wins + losses + ties + 2 * alpha
        rates[j, i], rates[i, j] = (wins + ties / 2 + alpha) / total, (losses + ties / 2 + alpha) / total
    scores = np.zeros(n_items)
    for group in set(groups):
        part = np.flatnonzero(np.array(groups) == group)
        block = rates[np.ix_(part, part)]
        balance = block.T - np.diag(block.sum(axis=1))
        balance[0] = 1.0
        shares = np.linalg.solve(balance, np.eye(len(part))[0])
        scores[part] = np.log(shares) - np.log(shares).mean()
    return scores
