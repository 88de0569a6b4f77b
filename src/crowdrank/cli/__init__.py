"""The command line: one short function per verb, over the verbs of :mod:`crowdrank.api`."""

from .running import main, run

__all__ = ["main", "run"]
