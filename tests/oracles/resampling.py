"""Slow, obviously right twins of what is done with resamples."""

import numpy as np


def counted(rows, copies, n_items):
    """{(lower, higher): contests} and the wins of each item, of rows (lower, higher, unit, weight, won)."""
    contests, wins = {}, np.zeros(n_items)
    for low, high, unit, weight, won in rows:
        number = weight * copies[unit]
        contests[low, high] = contests.get((low, high), 0.0) + number
        wins[low] += won * number
        wins[high] += (1 - won) * number
    return contests, wins


def is_apart(pairs, whole, n_items):
    """Whether two items that pairs of the whole connect, and that both have pairs of their own, are not connected."""
    here, there = walk(pairs, n_items), walk(whole, n_items)
    met = {item for pair in pairs for item in pair}
    return any(there[a] == there[b] and here[a] != here[b] for a in met for b in met)


def walk(pairs, n_items):
    """Lowest item that each item can be reached from."""
    lowest = list(range(n_items))
    for _ in range(n_items):
        for a, b in pairs:
            lowest[a] = lowest[b] = min(lowest[a], lowest[b])
    return lowest
