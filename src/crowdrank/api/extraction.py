"""From raw items to features: the verb behind ``crowdrank features``, and raw items where a ranker wants features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.features import Extractor, Features
from ..data.files import PathLike
from ..data.frames import to_frame
from ..data.judgments import Rankings
from ..errors import ParameterError
from ..protocols import Progress
from ..wording import one_of, option

if TYPE_CHECKING:
    from collections.abc import Mapping

_ONLY_FOR = {
    "words": "text", "embed": "text", "screen": "page", "first": "page", "clutter_measures": "page",
    "subset_size": "page", "seed": "page",
}  # fmt: skip
"""Arguments that one kind alone takes."""


def make_features(
    items: Any,
    of: str | None = None,
    *,
    like: Any = None,
    clutter_measures: bool = False,
    query: str | None = None,
    encoding: str = "utf-8",
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Features, Rankings | None]:
    """Return features of raw items, and rankings of pages by measures of clutter where they are asked for.

    Parameters
    ----------
    items, query, encoding, n_jobs, cache, on_error, progress
        As ``cr.features.texts``, ``pages`` and ``speech`` take them.
    of
        ``"text"``, ``"page"`` or ``"speech"``; what ``like`` is of by default.
    like
        A fit, model or features whose columns are made; then ``options`` are its own.
    clutter_measures
        Whether pages are ranked by three measures of clutter too.
    options
        What else the function of that kind takes, such as ``words``; ``None`` as a value stands for its own.
    """
    from .. import features as functions

    given = {name: value for name, value in (options or {}).items() if value is not None}
    check_extraction(of, like=like, clutter_measures=clutter_measures, options=given)
    run: dict[str, Any] = {
        "query": query, "n_jobs": n_jobs, "cache": cache, "on_error": on_error, "progress": progress
    }  # fmt: skip
    if like is not None:
        return functions.like(like, items, of=of, encoding=encoding, **run), None
    if of == "text":
        return functions.texts(items, encoding=encoding, **run, **given), None
    if of == "speech":
        return functions.speech(items, **run, **given), None
    if not clutter_measures:
        return functions.pages(items, **run, **given), None
    features: tuple[Features, Rankings] = functions.pages_with_measures(items, **run, **given)
    return features


def check_extraction(
    of: str | None, *, like: Any = None, clutter_measures: bool = False, options: Mapping[str, Any] | None = None
) -> None:
    """Refuse what :func:`make_features` would refuse whatever the items are."""
    if of is None and like is None:
        raise ParameterError(f"say what the items are: {option('of', 'text')}, page or speech")
    if of is not None:
        one_of(of, ("text", "page", "speech"), "of", of_verb=True)
    given = [*(options or {}), *(["clutter_measures"] if clutter_measures else [])]
    if like is not None and given:
        raise ParameterError(f"{option('like')} makes the columns of that model; leave {option(given[0])} out")
    for name in given:
        if name in _ONLY_FOR and _ONLY_FOR[name] != of:
            raise ParameterError(f"{option(name)} goes with {option('of', _ONLY_FOR[name])}; leave it out")


def described_items(
    given: Any, extractor: Extractor | None, names: Sequence[str] | None, of: str | None, **how: Any
) -> Any:
    """Return features of raw items where a ranker has an extractor for them; what is a table of features stays.

    ``how`` are further arguments of ``cr.features.like``.
    """
    if of is not None and extractor is None:
        raise ParameterError(
            f"the ranker learned from a table of features, so {option('of', of)} cannot be made into its columns; give "
            "such a table"
        )
    if extractor is None or isinstance(given, Features):
        return given
    if isinstance(given, str) and given == "-":
        from ..io.tables import read_table

        given = read_table("-")
    if of is None and _has_columns(given, names or ()):
        return given
    from ..features import like

    return like(extractor, given, of=of, **how)


def _has_columns(given: Any, names: Sequence[str]) -> bool:
    """Whether a table, or the file of one, has all of some columns."""
    if isinstance(given, str | os.PathLike):
        if os.path.isdir(given):
            return False
        from ..io.tables import read_table

        given = read_table(given)
    return set(names) <= set(to_frame(given).columns)
