"""Public data sets in the house's own terms; nothing is downloaded, and what is missing says where to get it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from polars.exceptions import PolarsError

from ..errors import JudgmentError
from . import catalog
from .catalog import Dataset, Fold, Store, data_folder, names

__all__ = ["Dataset", "Fold", "data_folder", "load", "names", "present"]


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Return a data set by name.

    Parameters
    ----------
    name
        One of :func:`names`.
    folder
        Folder that holds the data sets, each in its own folder. By default the environment variable ``CROWDRANK_DATA``,
        otherwise ``crowdrank/data`` in the user's cache.

    Raises
    ------
    MissingDataError
        A file is not there; the message says which, the public source to get it from and where to put it.

    Examples
    --------
    >>> load("mirex2005-crowd", "nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    crowdrank.errors.MissingDataError: data set 'mirex2005-crowd' lacks ...
    """
    entry = catalog.entry(name)
    store = Store(name, entry.folder, data_folder(folder), entry.description)
    loader: Callable[..., Dataset] = getattr(import_module(".loaders", __name__), entry.loader)
    try:
        return loader(store, **entry.options)
    except JudgmentError as error:
        if store.place.name in str(error):
            raise
        store.refuse_damaged(None, str(error))
    except (LookupError, TypeError, AttributeError, PolarsError) as error:
        store.refuse_damaged(None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def present(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Return whether all files of a data set are there."""
    store = Store(name, catalog.entry(name).folder, data_folder(folder))
    return all(store.find(file) for file in store.terms.files)
