"""What executors hold: streaming no more than a part or two, memory all of them."""

import weakref

import numpy as np
import pytest

from crowdrank.cluster.executor import InMemory, Streamed
from crowdrank.protocols import BlockFit


class Part:
    """A part that is counted as long as somebody holds it."""

    def __init__(self, number):
        self.number = number


class Parts:
    """Parts that are made anew whenever they are asked for."""

    def __init__(self, n_parts):
        self.n_parts, self.alive, self.most = n_parts, weakref.WeakSet(), 0

    def part(self, number):
        part = Part(number)
        self.alive.add(part)
        self.most = max(self.most, len(self.alive))
        return part


def three_passes():
    """Three passes that add up the numbers of the parts and leave a state in each."""

    def add(part, state):
        found = np.full(4, float(part.number))
        return (found,), (found,)

    return BlockFit(lambda part: part, lambda blocks: [float(blocks.total(add)[0][0]) for _ in range(3)])


@pytest.mark.parametrize("n_parts", [1, 2, 9, 64])
def test_streaming_holds_two_parts_at_most(n_parts):
    parts = Parts(n_parts)
    found = Streamed().run(three_passes(), parts)
    assert found == [n_parts * (n_parts - 1) / 2] * 3
    assert parts.most <= 2


def test_memory_holds_all_parts_and_reads_each_once():
    parts = Parts(9)
    InMemory().run(three_passes(), parts)
    assert parts.most == 9
