"""Saved rankers read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data.files import PathLike, plain
from ..errors import JudgmentError, ParameterError, UnknownNameError
from ..registry import FITTED, blank_ranker

if TYPE_CHECKING:
    from ..rankers.estimator import Ranker
    from ..rankers.saving import Saved


def load_ranker(path: PathLike) -> Ranker:
    """Return the fitted ranker that was saved to a file by its ``save``.

    The file holds numbers and JSON only, so that reading one runs no code of its writer, and a checksum, which is
    compared first. A file of a newer version, a damaged one and one that is no ranker at all are refused with a
    :class:`~crowdrank.errors.JudgmentError`; one of an older version is read with a
    :class:`~crowdrank.errors.DataWarning`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdrank.rankers import ListNet
    >>> ranker = ListNet().fit([[1.0], [0.0]], [1, 0], qid=[1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(Path(folder) / "model")
    ...     again = load_ranker(Path(folder) / "model")
    >>> bool((again.predict([[3.0], [2.0]]) == ranker.predict([[3.0], [2.0]])).all())
    True
    """
    from ..rankers.saving import damage_error, read_saved

    saved = read_saved(path)
    name = plain(str(path))
    try:
        return _rebuild(saved)
    except UnknownNameError:
        raise JudgmentError(
            f"{name} holds a ranker {plain(saved.method[:50])!r}, which this version does not know; install a newer one"
        ) from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ParameterError):
            raise JudgmentError(f"{name}: {error}; the file was saved by another version, or is damaged") from None
        raise damage_error(name, error) from None


def _rebuild(saved: Saved) -> Ranker:
    """The fitted ranker, of parts that are rebuilt first where it has any."""
    ranker: Ranker = blank_ranker(saved.method, saved.params)
    if saved.method not in FITTED:
        ranker._check()
    if saved.parts:
        ranker.parts_ = tuple(_rebuild(part) for part in saved.parts)
    return ranker.restore(saved)
