"""Listwise rank aggregation in crowdsourcing [Niu15]_: its tables and figures."""

from .comparison_tables import mirex, trec
from .spam import spammers
from .times import timing

__all__ = ["mirex", "spammers", "timing", "trec"]
