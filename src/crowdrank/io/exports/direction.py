"""Whether large values of a metric are good: told from the file or asked, never assumed."""

from __future__ import annotations

from ...errors import JudgmentError
from ...wording import option
from .imported import Collector


def settle_direction(rows: Collector, metric: str, small_is_good: bool | None) -> None:
    """Say in the options which way a metric counts: as the user says, else as the file tells."""
    from dataclasses import replace

    if rows.options.small_is_good is not None:
        return
    if small_is_good is None:
        raise JudgmentError(
            f"whether large values of {metric!r} are good is not in the file; say {option('small_is_good', False)} "
            f"or {option('small_is_good', True)}"
        )
    rows.options = replace(rows.options, small_is_good=small_is_good)
