"""Listwise rank aggregation in crowdsourcing [Niu15]_: its tables and figures."""

from .spam import spammers
from .tables import mirex, trec
from .times import timing

__all__ = ["mirex", "spammers", "timing", "trec"]
