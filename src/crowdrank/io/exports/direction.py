"""Whether large values of a metric are good: told from the file or asked, never assumed."""

from __future__ import annotations

import re

from ...errors import JudgmentError
from ...wording import option
from .imported import Collector

_LARGE_IS_GOOD = re.compile(
    r"acc|acc_norm|acc_\w+|accuracy|exact_match.*|em|f1.*|.*_f1|bleu.*|rouge.*|chrf.*|pass@.*|mcc|score|"
    r"prompt_level_\w+_acc|inst_level_\w+_acc|likelihood_diff|correct|is_correct|mc[12]|math_verify|flexible_match|contains"
)
_SMALL_IS_GOOD = re.compile(r"(word_|byte_)?perplexity|bits_per_byte|ter|brier_score")
"""Metrics of the harness itself, which says so of them."""


def is_small_good(metric: str) -> bool | None:
    """Return whether small values of a well-known metric are good; ``None`` where it is not known.

    Examples
    --------
    >>> is_small_good("acc_norm,none"), is_small_good("perplexity"), is_small_good("edits") is None
    (False, True, True)
    """
    if _LARGE_IS_GOOD.fullmatch(metric.lower().split(",")[0]):
        return False
    return True if _SMALL_IS_GOOD.fullmatch(metric.lower()) else None


def settle_direction(rows: Collector, metric: str, small_is_good: bool | None) -> None:
    """Say in the options which way a metric counts: as the user says, else as the file tells."""
    from dataclasses import replace

    if rows.options.small_is_good is not None:
        return
    if small_is_good is None:
        raise JudgmentError(
            f"the file does not say whether large values of {metric!r} are good; give "
            f"{option('small_is_good', False)} or {option('small_is_good', True)}"
        )
    rows.options = replace(rows.options, small_is_good=small_is_good)
