"""A copy of a public source on one side, the folder to fill on the other."""

from __future__ import annotations

import bz2
import gzip
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import polars as pl

from ...errors import JudgmentError, MissingDataError, ParameterError
from ..sources import FOLDERS, Folder

LARGE = 1_000_000
"""Files larger than this are stored gzipped."""

UNPACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}


@dataclass(frozen=True)
class Work:
    """What one preparation reads and writes; nothing is written before everything is read."""

    folder: str
    source: Path
    root: Path
    made: dict[str, bytes] = field(default_factory=dict)

    @property
    def terms(self) -> Folder:
        """Source, licence and files of the folder."""
        return FOLDERS[self.folder]

    @property
    def place(self) -> Path:
        """Folder that is filled."""
        return self.root / (self.terms.directory or self.folder)

    def find(self, *names: str) -> Path:
        """Return the source's file of one of these names: at its path, at the top, or the only one anywhere below."""
        for name in names:
            for path in (self.source / name, self.source / PurePosixPath(name).name):
                if stored := _find_file(path):
                    return stored
        wanted = {PurePosixPath(name).name.lower() for name in names}
        below = sorted(path for path in self.source.rglob("*") if _plain(path).lower() in wanted and path.is_file())
        if len(below) == 1:
            return below[0]
        if below:
            raise MissingDataError(
                f"{names[0]} stands several times below {self.source} ({below[0]}, {below[1]}); give the folder of one"
            )
        raise MissingDataError(f"{self.source} has no {names[0]}; it should be a copy of {self.terms.source}")

    def read(self, *names: str) -> bytes:
        """Return the unpacked content of a file of the source."""
        return read(self.find(*names))

    def text(self, *names: str) -> str:
        """Return the text of a file of the source."""
        return text(self.find(*names))

    def table(self, name: str, columns: Sequence[str], *, separator: str = ",", header: bool = True) -> pl.DataFrame:
        """Return the first columns of a table of the source as text, under the given names."""
        path = self.find(name)
        try:
            frame = pl.read_csv(
                io.BytesIO(text(path).encode()),
                separator=separator,
                has_header=header,
                infer_schema=False,
                truncate_ragged_lines=True,
                quote_char='"' if header else None,
            )
        except pl.exceptions.PolarsError as error:
            raise JudgmentError(f"{path} cannot be read ({str(error).splitlines()[0]}); get it again") from None
        if frame.width < len(columns):
            raise JudgmentError(f"{path} has {frame.width} columns instead of {len(columns)}; is it the right file?")
        frame = frame.select(frame.columns[: len(columns)])
        frame.columns = list(columns)
        return frame.with_columns(pl.all().str.strip_chars())

    def write(self, file: str, content: bytes | str) -> None:
        """Note a file to be written."""
        self.made[file] = content.encode() if isinstance(content, str) else content

    def write_table(self, file: str, frame: pl.DataFrame, *, separator: str = ",", header: bool = True) -> None:
        """Note a table to be written."""
        self.write(file, frame.write_csv(separator=separator, include_header=header))

    def check_free(self) -> None:
        """Refuse to write over files that are there."""
        for file in self.terms.files:
            if existing := _find_file(self.place / file):
                raise ParameterError(f"{existing} exists already; delete it to make it again")

    def finish(self) -> tuple[Path, ...]:
        """Write what was noted, each file under another name first, and return where the files are."""
        self.place.mkdir(parents=True, exist_ok=True)
        written = []
        for file, content in self.made.items():
            path = self.place / file
            if len(content) > LARGE:
                path, content = path.with_name(f"{file}.gz"), gzip.compress(content, mtime=0)
            half = path.with_name(f".{path.name}.part")
            half.write_bytes(content)
            os.replace(half, path)
            written.append(path)
        return tuple(written)


def read(path: Path) -> bytes:
    """Return the unpacked content of a file."""
    try:
        return UNPACK.get(path.suffix, bytes)(path.read_bytes())
    except (OSError, EOFError) as error:
        raise JudgmentError(f"{path} is damaged ({error}); get it again") from None


def text(path: Path) -> str:
    """Return the text of a file, without a byte order mark and with plain line ends."""
    try:
        content = read(path).decode()
    except UnicodeDecodeError as error:
        raise JudgmentError(f"{path} is not UTF-8 (byte {error.start + 1}); get it again") from None
    return content.removeprefix("\ufeff").replace("\r\n", "\n")


def pseudonyms(values: pl.Series, prefix: str) -> pl.Series:
    """Return invented ids in place of real ones, numbered from 0001 in order of first appearance.

    Examples
    --------
    >>> pseudonyms(pl.Series(["kim", "lee", "kim"]), "w").to_list()
    ['w0001', 'w0002', 'w0001']
    """
    known = values.unique(maintain_order=True)
    invented = [f"{prefix}{number:04d}" for number in range(1, len(known) + 1)]
    return values.replace_strict(known, pl.Series(invented))


def _plain(path: Path) -> str:
    """Name of a file without the suffix of its packing."""
    return path.stem if path.suffix in UNPACK else path.name


def _find_file(path: Path) -> Path | None:
    """A file under this name, plain or packed."""
    return next((each for each in (path, path.with_name(f"{path.name}.gz")) if each.is_file()), None)
