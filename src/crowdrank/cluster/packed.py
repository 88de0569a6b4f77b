"""Packed judgments: a folder of parts that are loaded one at a time, whatever the number of judgments.

Methods in parts rely on this of a :class:`PackedJudgments`:

- ``kind``, ``by`` (``"query"`` or ``"annotator"``), ``n_parts``, ``rows`` (judgments in all), ``rows_of_parts``,
  ``levels`` (of all grades, worst first; ``None`` for other kinds), ``nominal``;
- ``annotators``: the :class:`~crowdrank.data.index.Index` of all annotators, with ``groups`` and ``group``;
- ``part(k)``: the frozen grades, preferences or rankings of part ``k``. Their annotator codes are the global ones, in
  every part. By query, items are numbered within the part and a query never spans parts; by annotator, items are
  numbered over all parts and an annotator never spans parts. Grades have the levels of the whole as ``declared``, so
  that level codes mean the same everywhere, unless there are more than class methods take;
- ``items``: all items, sorted, and ``item_codes(k)``: the place there of each item of part ``k``;
- it is pickled by its folder, so that another process opens the same parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.covariates import split_labels
from ..data.files import PathLike, plain
from ..data.grades import MAX_LEVELS
from ..data.index import NO_QUERY, Index, Items, factorize
from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..data.parted import MANY_ITEMS
from ..errors import JudgmentError
from ..protocols import Bools, Floats, Ints
from ..wording import counted

MANIFEST = "manifest.json"
VERSION = 1
"""Number of the layout; a reader refuses a higher one."""


def scan_judgments(path: PathLike) -> PackedJudgments:
    """Return the packed judgments of a folder that ``crowdrank pack`` wrote; parts are loaded when they are used.

    Examples
    --------
    >>> import tempfile
    >>> from crowdrank.cluster.packing import pack_judgments
    >>> rows = [("ann", "q", "x", 3), ("ann", "q", "y", 1), ("bob", "r", "z", 2)]
    >>> packed = pack_judgments([Grades.from_rows(rows)], tempfile.mkdtemp(), part_rows=2)
    >>> scan_judgments(packed.path)
    PackedJudgments(3 grades, 3 items, 2 queries, 2 annotators, 2 parts)
    >>> [len(part) for part in packed.parts()]
    [1, 2]
    """
    folder = Path(path)
    return PackedJudgments(folder, read_manifest(folder))


def is_packed(path: Any) -> bool:
    """Return whether a path is a folder of packed judgments."""
    try:
        return path != "-" and (Path(path) / MANIFEST).is_file()
    except (TypeError, ValueError, OSError):
        return False


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a folder of packed judgments says of itself."""
    name = plain(str(folder))
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        what = "is not a folder" if not folder.is_dir() else f"has no {MANIFEST}"
        raise JudgmentError(
            f"{name} {what} of packed judgments; make one with crowdrank pack VOTES --out DIR"
        ) from None
    except (OSError, ValueError):
        raise JudgmentError(f"{name}/{MANIFEST} cannot be read or is damaged; pack the judgments again") from None
    if not isinstance(manifest, dict) or not {"version", "kind", "parts"} <= set(manifest):
        raise JudgmentError(f"{name}/{MANIFEST} is not that of packed judgments; pack the judgments again")
    if manifest["version"] > VERSION:
        raise JudgmentError(f"{name} was packed by a later crowdrank; update this one, or pack the judgments again")
    return manifest


@dataclass(frozen=True, eq=False, repr=False)
class PackedJudgments:
    """Judgments of one kind in a folder; see the head of this file for what methods may rely on.

    Examples
    --------
    >>> import tempfile
    >>> from crowdrank.cluster.packing import pack_judgments
    >>> rows = [("ann", "q", "x", "y", "left"), ("bob", "q", "y", "x", "right")]
    >>> packed = pack_judgments([Preferences.from_rows(rows)], tempfile.mkdtemp())
    >>> packed.kind, packed.n_parts, list(packed.annotators), packed.part(0).n_items
    ('preference', 1, ['ann', 'bob'], 2)
    """

    keeps_ranking: ClassVar[bool] = False
    """Whether the judgments are in memory, and their ranking is, however many items it has."""

    path: Path
    manifest: dict[str, Any]
    _checked: set[str] = field(default_factory=set)
    sample: tuple[float, Judgments] | None = field(default=None, init=False)
    """Share of the judgments by which annotators are judged, and a sample of them; drawn when it is first used."""
    given: Floats | None = field(default=None, init=False)
    """Judgments of each annotator; counted when they are first used."""
    _kept_items: dict[str, Items] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return scan_judgments, (str(self.path),)

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        counts = {self.kind: self.rows, "item": self.n_items}
        counts |= {} if self.manifest["single"] else {"query": self.n_queries}
        counts |= {"annotator": self.n_annotators} if self.n_annotators else {}
        counts |= {"part": self.n_parts}
        return f"PackedJudgments({', '.join(counted(n, word) for word, n in counts.items())})"

    kind = property(lambda self: str(self.manifest["kind"]))
    """``"grade"``, ``"preference"`` or ``"ranking"``."""

    by = property(lambda self: str(self.manifest["by"]))
    """What no part shares with another: ``"query"`` or ``"annotator"``."""

    n_parts = property(lambda self: len(self.manifest["parts"]))
    """Number of parts."""

    rows = n_judgments = property(lambda self: int(self.manifest["rows"]))
    """Number of judgments; a ranking is one."""

    rows_of_parts = property(lambda self: [int(part["rows"]) for part in self.manifest["parts"]])
    """Number of judgments of each part."""

    n_items = property(lambda self: int(self.manifest["items"]))
    """Number of items, over all queries."""

    n_queries = property(lambda self: int(self.manifest["queries"]))
    """Number of queries."""

    n_annotators = property(lambda self: int(self.manifest["annotators"]))
    """Number of annotators; 0 where the judgments do not say who gave them."""

    nominal = property(lambda self: bool(self.manifest["nominal"]))
    """Whether grades are classes without an order."""

    declared = property(lambda self: _tuple(self.manifest["declared"]))
    """Levels that the user gave, worst first."""

    levels = property(lambda self: _tuple(self.manifest["levels"]))
    """Distinct grades of all parts in the user's own values, worst first; ``None`` for other kinds."""

    @cached_property
    def annotators(self) -> Index:
        """All annotators; the place of an id is its code in every part."""
        if not self.n_annotators:
            return Index.empty()
        return Index(self._table("annotators")["id"])

    @cached_property
    def groups(self) -> Index | None:
        """Families of annotators."""
        return None if self.manifest["groups"] is None else Index(pl.Series("id", self.manifest["groups"]))

    @cached_property
    def group(self) -> Ints | None:
        """Family of each annotator."""
        return None if self.manifest["groups"] is None else self._table("annotators")["group"].to_numpy()

    @cached_property
    def blocks(self) -> Index | None:
        """Former queries of judgments that were packed across queries."""
        return None if self.manifest["files"].get("blocks") is None else Index(self._table("blocks")["id"])

    @cached_property
    def items(self) -> Items:
        """All items, sorted by query and then item."""
        return self._item_numbers[0]

    @property
    def judged_items(self) -> Bools:
        """Mask of the items that somebody judged, which all packed ones were."""
        return np.ones(self.n_items, bool)

    def item_codes(self, number: int) -> Ints:
        """Return the place among :attr:`items` of each item of a part."""
        return self._item_numbers[1][number]

    @cached_property
    def _item_numbers(self) -> tuple[Items, list[Ints]]:
        """All items, and the place there of each item of each part."""
        if self.by == "annotator":
            whole = self._items_in(self.manifest["files"]["items"])
            return whole, [np.arange(len(whole), dtype=np.int32)] * self.n_parts
        parts = [self._items_in(part["items_file"]) for part in self.manifest["parts"]]
        if self.manifest["single"]:
            whole_parts = [part for part in parts if len(part)]
            return (whole_parts or parts)[0], [np.arange(len(part), dtype=np.int32) for part in parts]
        (codes,), ids = factorize([pl.concat([part.queries.ids for part in parts])])
        # a query stands in one part, so the places of its items follow from its own
        starts = np.concatenate([[0], np.cumsum([part.n_queries for part in parts])])
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        ranked = np.zeros(len(ids) + 1, np.int64)
        ranked[codes + 1] = sizes
        begin = np.cumsum(ranked)[codes]
        places = [
            (np.repeat(begin[start : start + part.n_queries] - part.offsets[:-1], np.diff(part.offsets))
             + np.arange(len(part))).astype(np.int32)
            for part, start in zip(parts, starts[:-1], strict=True)
        ]  # fmt: skip
        order = np.argsort(np.concatenate(places), kind="stable")
        item_ids = pl.concat([part.ids for part in parts]).gather(order)
        return Items(Index(ids), np.repeat(np.arange(len(ids), dtype=np.int32), ranked[1:]), item_ids), places

    def part(self, number: int) -> Judgments:
        """Return the judgments of one part."""
        if not 0 <= number < self.n_parts:
            raise JudgmentError(f"there is no part {number}; {plain(str(self.path))} has {self.n_parts}, from 0 on")
        described = self.manifest["parts"][number]
        table = self._read(described["file"], described["checksum"])
        if self.by == "annotator":
            items = self.items
        elif self.n_items <= MANY_ITEMS:
            items = self._items_in(described["items_file"])
        else:
            # too many to be kept; they are read when they are used, if ever
            load = partial(self._items_in, described["items_file"])
            items = StoredItems(load, described["items"], described["queries"])
        return self.judgments_of(table, items, described)

    def judgments_of(self, table: pl.DataFrame, items: Items, part: dict[str, Any]) -> Judgments:
        """Return the judgments in the table of a part."""
        columns: dict[str, Any] = {name: table[name].to_numpy() for name in table.columns}
        shared: dict[str, Any] = {
            "items": items, "annotators": self.annotators, "groups": self.groups, "group": self.group,
            "blocks": self.blocks,
        }  # fmt: skip
        columns.setdefault("annotator", np.empty(0, np.int32))
        if self.kind == "grade":
            codes, levels = columns["grade"], part["levels"]
            if levels is not None:
                columns["grade"] = _values_of_codes(np.array(levels, np.float64), codes)
            declared = self.declared
            if declared is None and self.levels is not None and len(self.levels) <= MAX_LEVELS:
                # every part has the levels of all, where class methods take that many
                declared = self.levels
            grades = Grades(**shared, **columns, declared=declared, nominal=self.nominal)
            if levels is not None and grades.declared is not None:
                # the codes are at hand, and passes ask for them again and again
                places = np.searchsorted(grades.level_values, levels).astype(np.int32)
                grades.__dict__["level_place"] = _values_of_codes(places, codes)
            return grades
        if self.kind == "preference":
            names, transforms = split_labels(self.manifest["covariates"])
            covariates = [columns.pop(f"covariate_{place}") for place in range(len(names))]
            if names:
                columns |= {"covariates": np.column_stack(covariates), "covariate_names": names}
                columns["covariate_transforms"] = transforms
            return Preferences(**shared, **columns, strength_levels=self.manifest["strength_levels"])
        number = columns.pop("ranking")
        first = np.flatnonzero(np.diff(number, prepend=-1))
        offsets = np.append(first, len(number)).astype(np.int64)
        own = {name: columns.pop(name) for name in ("item", "rank")}
        per_ranking = {name: column[first] if len(column) else column for name, column in columns.items()}
        return Rankings(**shared, **own, **per_ranking, offsets=offsets)

    def parts(self) -> Iterator[Judgments]:
        """Yield the judgments of each part in turn."""
        for number in range(self.n_parts):
            yield self.part(number)

    def _items_in(self, file: dict[str, str]) -> Items:
        """The items of a file, which passes need again and again; kept as far as a consensus is held."""
        name = file["file"]
        if name in self._kept_items:
            return self._kept_items[name]
        items = items_of(self._read(name, file["checksum"]))
        if self.n_items <= MANY_ITEMS:
            self._kept_items[name] = items
        return items

    def _table(self, name: str) -> pl.DataFrame:
        """A table of ids that all parts share."""
        file = self.manifest["files"][name]
        return self._read(file["file"], file["checksum"])

    def _read(self, name: str, checksum: str) -> pl.DataFrame:
        """A table of the folder, its bytes compared with the manifest when they are first read."""
        target, shown = self.path / name, plain(str(self.path / name))
        try:
            if name not in self._checked:
                actual = file_checksum(target)
                if actual != checksum:
                    raise JudgmentError(
                        f"{shown} is damaged: its checksum is {actual} and the manifest has {checksum}; restore that "
                        "file from a copy, or pack the judgments again"
                    )
                self._checked.add(name)
            return pl.read_parquet(target, glob=False)
        except FileNotFoundError:
            raise JudgmentError(
                f"{shown} is missing, though the manifest names it; restore that file from a copy, or pack the "
                "judgments again"
            ) from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise JudgmentError(
                f"{shown} cannot be read ({plain(str(error))[:80]}); pack the judgments again"
            ) from None


def _tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """A list of a manifest as a tuple, if there is one."""
    return None if values is None else tuple(values)


class StoredItems(Items):
    """Items that stay in their file until somebody asks for more than how many there are, as passes seldom do."""

    def __init__(self, load: Callable[[], Items], n_items: int, n_queries: int) -> None:
        self.__dict__.update(_load=load, _n_items=n_items, _n_queries=n_queries)

    def __len__(self) -> int:
        return int(self.__dict__["_n_items"])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self.__dict__["_n_queries"])

    def __getattr__(self, name: str) -> Any:
        if name not in ("queries", "query", "ids"):
            raise AttributeError(name)
        whole = self.__dict__["_load"]()
        self.__dict__.update(queries=whole.queries, query=whole.query, ids=whole.ids)
        return self.__dict__[name]


def items_of(table: pl.DataFrame) -> Items:
    """Return the items of a sorted table of query and item; without a query column there is only the unnamed one."""
    if "query" not in table.columns:
        return Items(Index(pl.Series("id", [NO_QUERY])), np.zeros(len(table), np.int32), table["item"])
    query = table["query"]
    new = (query != query.shift(1)).fill_null(True)
    codes = (new.cast(pl.Int32).cum_sum() - 1).to_numpy()
    return Items(Index(query.filter(new).alias("id")), codes, table["item"])


def _values_of_codes(values: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """The value that each code stands for; where values count up by one it is the code plus the first."""
    if len(values) and (values == values[0] + np.arange(len(values))).all():
        counted_up: NDArray[Any] = codes.astype(values.dtype)
        return counted_up + values[0] if values[0] else counted_up
    return values[codes]


def file_checksum(path: Path) -> str:
    """Return 16 hexadecimal digits that tell whether a file was changed."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
