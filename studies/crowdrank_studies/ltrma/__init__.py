"""Learning to rank under multiple annotators [Wu11]_: figures 2 and 3."""

from .ohsumed_study import ohsumed
from .points import synthetic

__all__ = ["ohsumed", "synthetic"]
