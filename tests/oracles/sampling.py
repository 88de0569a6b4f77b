"""Slow, obviously right twins of the sampling kernels."""

from itertools import pairwise

import numpy as np


def distinct_draws(uniform, offsets, sizes):
    drawn = []
    for start, stop, size in zip(offsets[:-1], offsets[1:], sizes, strict=True):
        order = list(range(size))
        for first, number in enumerate(uniform[start:stop]):
            second = first + int(number * (size - first))
            order[first], order[second] = order[second], order[first]
            drawn.append(order[first])
    return np.array(drawn, np.int64)


def insert_all(displacement, offsets):
    placed = []
    for start, stop in pairwise(offsets):
        order = []
        for element, steps in enumerate(displacement[start:stop]):
            order.insert(len(order) - steps, element)
        placed.extend(order)
    return np.array(placed, np.int64)


def swap_all(first, second, swap_offsets, offsets):
    placed = []
    for group, (start, stop) in enumerate(pairwise(offsets)):
        order = list(range(stop - start))
        for swap in range(swap_offsets[group], swap_offsets[group + 1]):
            one, other = first[swap], second[swap]
            order[one], order[other] = order[other], order[one]
        placed.extend(order)
    return np.array(placed, np.int64)
