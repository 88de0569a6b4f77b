"""Every data set by name: what it is, where its files come from and on what terms; read from ``catalog.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UnknownNameError
from ..wording import did_you_mean


@dataclass(frozen=True)
class Source:
    """A place in a public repository; no repository where the numbers are the project's own."""

    repository: str = ""
    commit: str = ""
    path: str = ""
    remark: str = ""

    def __str__(self) -> str:
        if not self.repository:
            return self.remark
        remark = f" ({self.remark})" if self.remark else ""
        return f"{self.path} of the public repository {self.repository} at commit {self.commit}{remark}"


@dataclass(frozen=True)
class Folder:
    """One folder of data: its source, licence and files.

    Parameters
    ----------
    source
        Where the files come from.
    licence
        Terms of the source.
    files
        Stored file -> file of the source, relative to the repository; empty where the stored file is derived.
    prepare
        function of ``tools/prepare_datasets.py`` that makes the stored files; ``copy`` takes them as they are.
    directory
        Folder below the data folder, where it is not the name itself.
    """

    source: Source
    licence: str
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: str = "copy"
    directory: str = ""


@dataclass(frozen=True)
class Entry:
    """One data set: its folder, its loader as ``module:function`` with options, and what it is."""

    folder: str
    loader: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)


_CATALOG = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

FOLDERS = {
    name: Folder(**{**terms, "source": Source(**terms["source"])}) for name, terms in _CATALOG["folders"].items()
}
"""Folder of files -> its source, terms and files."""

ENTRIES = {name: Entry(**{"folder": name, **entry}) for name, entry in _CATALOG["sets"].items()}
"""Name -> what it is and how it is loaded."""


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    Examples
    --------
    >>> "mirex2005-crowd" in names()
    True
    """
    return tuple(ENTRIES)


def entry(name: str) -> Entry:
    """Return the entry of a name, or say which name is nearest."""
    if name in ENTRIES:
        return ENTRIES[name]
    inside = [known for known in ENTRIES if known.startswith(f"{name}/")]
    if inside:
        raise UnknownNameError(f"there are several data sets in {name!r}: {', '.join(inside)}; name one of them")
    hint = did_you_mean(name, ENTRIES, cutoff=0.3)
    raise UnknownNameError(f"there is no data set {name!r}; {hint}known: {', '.join(ENTRIES)}")


def folder_of(name: str) -> str:
    """Return the folder that a data set, or a folder, goes by."""
    return name if name in FOLDERS else entry(name).folder
