"""Learning to rank from a noisy crowd [KumarLease11]_: single labelling against consensus."""

from .study import noisy_crowd

__all__ = ["noisy_crowd"]
