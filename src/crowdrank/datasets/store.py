"""Where data sets lie, and reading their files; a missing or damaged file says what to do about it."""

from __future__ import annotations

import gzip
import io
import json
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from ..errors import DataWarning, JudgmentError, MissingDataError
from .catalog import FOLDERS, Folder
from .dataset import Dataset

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


@contextmanager
def quietly() -> Iterator[None]:
    """Silence warnings about what is known of a set and stands in its notes, such as repeated judgments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


@dataclass(frozen=True)
class Store:
    """The files of one data set below the data folder."""

    name: str
    folder: str
    root: Path
    description: str = ""

    def dataset(self, **fields: Any) -> Dataset:
        """Return the data set with these fields and what is known of its source."""
        terms = self.terms
        return Dataset(
            name=self.name, description=self.description, source=str(terms.source), licence=terms.licence, **fields
        )

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
        place = self.find(file)
        if place is None:
            raise MissingDataError(self._missing(file))
        return place

    def neighbour(self, folder: str) -> Store:
        """Return the store of another folder of the same place."""
        return Store(self.name, folder, self.root)

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
        columns: Mapping[str, str] | Sequence[str],
        *,
        numbers: Sequence[str] = (),
        separator: str = ",",
        encoding: str = "utf-8",
        skip: int = 0,
    ) -> pl.DataFrame:
        """Return columns of a table as text.

        Parameters
        ----------
        file
            File of the set.
        columns
            Our word -> name in the header; or, where the file has no header, the words of its first columns.
        numbers
            Words whose cells must be numbers.
        separator, encoding
            How the file is written.
        skip
            Lines to pass over at the top of a file without a usable header.
        """
        header = isinstance(columns, Mapping)
        content = self.text(file, encoding).encode()
        try:
            frame = pl.read_csv(
                io.BytesIO(content),
                separator=separator,
                has_header=header,
                skip_rows=skip,
                columns=None if header else list(range(len(columns))),
                infer_schema=False,
                truncate_ragged_lines=not header,
            )
        except pl.exceptions.PolarsError as error:
            self.refuse_damaged(file, str(error).splitlines()[0])
        if isinstance(columns, Mapping):
            if lost := [name for name in columns.values() if name not in frame.columns]:
                self.refuse_damaged(file, f"its header lacks {lost[0]!r}")
            frame = frame.select([pl.col(name).alias(word) for word, name in columns.items()])
        else:
            frame.columns = list(columns)
        return self._numbers(file, frame.with_columns(pl.all().str.strip_chars()), numbers)

    def rows(self, file: str) -> pl.DataFrame:
        """Return a file of JSON lines as a table."""
        try:
            return pl.read_ndjson(io.BytesIO(self.read(file)), infer_schema_length=None)
        except pl.exceptions.PolarsError as error:
            self.refuse_damaged(file, str(error).splitlines()[0])

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

    def _numbers(self, file: str, frame: pl.DataFrame, words: Sequence[str]) -> pl.DataFrame:
        """The frame with some columns as numbers."""
        for word in words:
            cells = frame[word].cast(pl.Float64, strict=False)
            if cells.null_count():
                row = int(cells.is_null().arg_true()[0])
                self.refuse_damaged(file, f"row {row + 1} has {frame[word][row]!r} where a number should stand")
            frame = frame.with_columns(cells)
        return frame

    def _missing(self, file: str) -> str:
        """The sentence for a file that is not there."""
        place = self.place
        terms = self.terms
        head = f"data set {self.name!r} lacks {place / file} (or {file}.gz)"
        command = f"python tools/prepare_datasets.py {self.folder} SOURCE --out {self.root}"
        if not terms.source.repository:
            return f"{head}; it is {terms.source}: copy that folder to {place}"
        if terms.files.get(file):
            return f"{head}: put {terms.files[file]} there, or run `{command}` on a copy of {terms.source}"
        return f"{head}, which is made from public files: get {terms.source} and run `{command}` with SOURCE its folder"
