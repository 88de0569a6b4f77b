"""Public data sets by name, and their files: what they are and on what terms (``catalog.toml``), where they lie.

A missing or damaged file says what to do about it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tomllib
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import polars as pl

from ..data.features import Features
from ..data.judgments import Grades, Preferences, Rankings
from ..data.truth import Truth
from ..errors import DataWarning, JudgmentError, MissingDataError, UnknownNameError
from ..wording import counted, did_you_mean

Judged = TypeVar("Judged", Grades, Preferences, Rankings)


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
    """One data set: its folder, its function in ``loaders`` with options, and what it is."""

    folder: str
    loader: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)


_CATALOG = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

FOLDERS = {
    name: Folder(**{**terms, "source": Source(**terms["source"])}) for name, terms in _CATALOG["folders"].items()
}
"""Folder of files -> its source, terms and files."""

TABLES: dict[str, dict[str, Any]] = _CATALOG["tables"]
"""Name of a layout -> columns of a table and how it is written, as :meth:`Store.table` takes them."""

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


@dataclass(frozen=True)
class Fold:
    """One split of a data set, as ids of its queries.

    Parameters
    ----------
    name
        Name of the split in its source, such as ``Fold1``.
    train, vali, test
        Query ids to train on, to tune on and to report on; ``vali`` is empty where the source has none.

    Examples
    --------
    >>> Fold("Fold1", ("1", "2", "3"), ("4",), ("5",)).test
    ('5',)
    """

    name: str
    train: tuple[str, ...]
    vali: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset:
    """One public data set as judgments, truth and features; a field is ``None`` where the set has nothing for it.

    Parameters
    ----------
    name
        Name it was loaded by.
    judgments
        What annotators said: grades, preferences or rankings.
    truth
        What is known to be right, for all items or for a part of them.
    features
        One row of numbers for each item; the labels of a learning-to-rank set are its truth.
    folds
        Splits that come with the set, as query ids.
    details
        What else is known of the items: ``query`` (where there are several), ``item``, then ``text``, ``source`` and
        other columns that a study may need.
    notes
        What loading left out or decided, one sentence each.
    description
        What the set is.
    source
        The public repository it comes from (owner/name), the commit and the path inside it.
    licence
        Terms of the source.

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 2), ("bob", "q", "y", 1)])
    >>> Dataset(name="tiny", judgments=grades, truth=Truth.from_frame({"item": ["x"], "grade": [2]}))
    <Dataset tiny: 2 grades by 2 annotators on 2 items of 1 query; truth of 1 item>
    """

    name: str
    judgments: Grades | Preferences | Rankings | None = None
    truth: Truth | None = None
    features: Features | None = None
    folds: tuple[Fold, ...] | None = None
    details: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    description: str = ""
    source: str = ""
    licence: str = ""

    def __repr__(self) -> str:
        parts = []
        if (given := self.judgments) is not None:
            by = f" by {counted(given.n_annotators, 'annotator')}" if given.n_annotators else ""
            of = f"{counted(given.n_items, 'item')} of {counted(given.n_queries, 'query')}"
            parts.append(f"{counted(len(given), given.kind)}{by} on {of}")
        if self.truth is not None:
            parts.append(f"truth of {counted(len(self.truth), 'pair' if self.truth.form == 'pairs' else 'item')}")
        if self.features is not None:
            n_features = counted(self.features.matrix.shape[1], "feature")
            parts.append(f"{n_features} of {counted(len(self.features), 'item')}")
        if self.folds is not None:
            parts.append(counted(len(self.folds), "fold"))
        return f"<Dataset {self.name}: {'; '.join(parts)}>"


ENVIRONMENT = "CROWDRANK_DATA"
"""Environment variable that names the folder holding all data sets."""


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds the data sets: the given one, ``$CROWDRANK_DATA``, or the user's cache.

    Examples
    --------
    >>> data_folder("somewhere").name
    'somewhere'
    """
    if folder is not None:
        return Path(folder).expanduser()
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(cache) if cache else Path.home() / ".cache") / "crowdrank" / "data"


def quietly(build: Callable[..., Judged], frame: pl.DataFrame, **options: Any) -> Judged:
    """Return judgments of a table without warnings about what stands in the notes of a set, such as repeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return build(frame, **options)


@dataclass(frozen=True)
class Store:
    """The files of one data set below the data folder."""

    name: str
    folder: str
    root: Path
    description: str = ""

    def dataset(self, truth: Truth | pl.DataFrame | None = None, **fields: Any) -> Dataset:
        """Return the data set with these fields and what is known of its source."""
        terms = self.terms
        known = {"name": self.name, "description": self.description, "licence": terms.licence}
        truth = Truth.from_frame(truth) if isinstance(truth, pl.DataFrame) else truth
        return Dataset(truth=truth, source=str(terms.source), **{**known, **fields})

    @property
    def terms(self) -> Folder:
        """Source, licence and files of the folder this set lies in."""
        return FOLDERS[self.folder]

    @property
    def place(self) -> Path:
        """Folder that the files lie in."""
        return self.root / (self.terms.directory or self.folder)

    def find(self, file: str) -> Path | None:
        """Return where a file lies, plain or gzipped; ``None`` where it does not."""
        for path in (self.place / file, self.place / f"{file}.gz"):
            if path.is_file():
                return path
        return None

    def path(self, file: str) -> Path:
        """Return where a file lies, or say how to get it."""
        path, terms = self.find(file), self.terms
        if path is not None:
            return path
        head = f"data set {self.name!r} lacks {self.place / file} (or {file}.gz)"
        command = f"python tools/prepare_datasets.py {self.folder} SOURCE --out {self.root}"
        if not terms.source.repository:
            how = f"; it is {terms.source}: copy that folder to {self.place}"
        elif terms.files.get(file):
            how = f": put {terms.files[file]} there, or run `{command}` on a copy of {terms.source}"
        else:
            how = f", which is made from public files: get {terms.source} and run `{command}` with SOURCE its folder"
        raise MissingDataError(head + how)

    def read(self, file: str) -> bytes:
        """Return the content of a file, unzipped."""
        path = self.path(file)
        try:
            content = path.read_bytes()
            return gzip.decompress(content) if path.suffix == ".gz" else content
        except (OSError, EOFError, zlib.error) as error:
            self.refuse_damaged(file, str(error))

    def text(self, file: str, encoding: str = "utf-8") -> str:
        """Return the text of a file."""
        try:
            return self.read(file).decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            self.refuse_damaged(file, f"byte {error.start + 1} is not {encoding}")

    def table(
        self,
        file: str,
        columns: str | Mapping[str, str] | Sequence[str],
        *,
        numbers: Sequence[str] = (),
        measured: Sequence[str] = (),
        encoding: str = "utf-8",
        codes: Mapping[str, Mapping[str, str]] | None = None,
        **form: Any,
    ) -> pl.DataFrame:
        """Return columns of a table as text.

        Parameters
        ----------
        file
            File of the set.
        columns
            Our word -> name in the header; or, where the file has no header, the words of its first columns; or the
            name of a layout of the catalogue, which says all of this.
        numbers
            Words whose cells must be numbers.
        measured
            Further columns, which keep their names and must hold numbers.
        encoding
            How the file is written.
        codes
            Word -> what cells stand for; others are kept as they are.
        form
            How polars is to read it: ``separator``, and ``skip_rows`` at the top of a file without a usable header.
        """
        if isinstance(columns, str):
            return self.table(file, **TABLES[columns])
        if header := isinstance(columns, Mapping):
            columns = {**columns, **{name: name for name in measured}}
        content, chosen = io.BytesIO(self.text(file, encoding).encode()), None if header else list(range(len(columns)))
        form |= {"has_header": header, "truncate_ragged_lines": not header, "infer_schema": False}
        try:
            frame = pl.read_csv(content, columns=chosen, **form)
        except pl.exceptions.PolarsError as error:
            self.refuse_damaged(file, str(error).splitlines()[0])
        if isinstance(columns, Mapping):
            if lost := [name for name in columns.values() if name not in frame.columns]:
                self.refuse_damaged(file, f"its header lacks {lost[0]!r}")
            frame = frame.select([pl.col(name).alias(word) for word, name in columns.items()])
        else:
            frame.columns = list(columns)
        frame = frame.with_columns(pl.all().str.strip_chars())
        frame = frame.with_columns(pl.col(word).replace(own) for word, own in (codes or {}).items())
        for word in (*measured, *numbers):
            cells = frame[word].cast(pl.Float64, strict=False)
            if cells.null_count():
                row = int(cells.is_null().arg_true()[0])
                self.refuse_damaged(file, f"row {row + 1} has {frame[word][row]!r} where a number should stand")
            frame = frame.with_columns(cells)
        return frame

    def rows(self, file: str, layout: str | None = None, **more: str) -> pl.DataFrame:
        """Return a file of JSON lines as a table; by a layout of the catalogue, with ``more`` of its columns."""
        try:
            frame = pl.read_ndjson(io.BytesIO(self.read(file)), infer_schema_length=None)
        except pl.exceptions.PolarsError as error:
            self.refuse_damaged(file, str(error).splitlines()[0])
        if layout is None:
            return frame
        codes = TABLES[layout].get("codes", {})
        named = frame.select(pl.col(name).alias(word) for word, name in (TABLES[layout]["columns"] | more).items())
        return named.with_columns(pl.col(word).replace_strict(own) for word, own in codes.items())

    def json(self, file: str) -> Any:
        """Return the content of a JSON file."""
        try:
            return json.loads(self.text(file))
        except json.JSONDecodeError as error:
            self.refuse_damaged(file, str(error))

    def match(self, table: pl.DataFrame, other: pl.DataFrame, word: str, file: str) -> pl.DataFrame:
        """Return the table with the columns of another, which ``file`` holds and must have for every row."""
        joined = table.join(other, on=word, how="inner", maintain_order="left")
        if len(joined) != len(table):
            lost = table.join(other, on=word, how="anti", maintain_order="left")[word]
            self.refuse_damaged(file, f"it lacks {word} {lost[0]!r}" if len(lost) else f"a {word} stands in it twice")
        return joined

    def refuse_damaged(self, file: str | None, what: str) -> NoReturn:
        """Say that a file, or ``None`` for one of them, is damaged, how, and where to get it again."""
        named = self.path(file) if file else f"a file in {self.place}"
        raise JudgmentError(f"{named} is damaged ({what}); get it again from {self.terms.source}")


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
    known = entry(name)
    store = Store(name, known.folder, data_folder(folder), known.description)
    loader: Callable[..., Dataset] = getattr(import_module(".loaders", __package__), known.loader)
    try:
        return loader(store, **known.options)
    except JudgmentError as error:
        if store.place.name in str(error):
            raise
        store.refuse_damaged(None, str(error))
    except (LookupError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        store.refuse_damaged(None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def present(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Return whether all files of a data set are there."""
    store = Store(name, entry(name).folder, data_folder(folder))
    return all(store.find(file) for file in store.terms.files)
