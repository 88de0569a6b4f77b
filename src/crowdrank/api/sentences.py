"""What the verbs refuse and remark, in words: the sentences of ``sentences.toml`` by their codes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..wording import option

SENTENCES: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Code -> sentence, with what is given in braces; ``{option:want=grade}`` is an argument as a reader would write it."""


class _Option:
    """An argument of a verb within a sentence."""

    def __format__(self, written: str) -> str:
        name, _, value = written.partition("=")
        return option(name, int(value) if value.isdigit() else value or None)


def words_of(code: str, **given: Any) -> str:
    """Return a sentence with what is given.

    Examples
    --------
    >>> words_of("no_names", to="argilla")
    'argilla needs names and data that are not in the result; name the export it came from with votes='
    """
    return SENTENCES[code].format(option=_Option(), **given)
