"""Items as they are named in sentences, and annotators as users name them: by id, pattern, group or file."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError, UnknownNameError
from ..protocols import Bools
from ..wording import SHOWN, first_few, option
from .index import Index, Items
from .intake import short


def first_ids(items: Items, chosen: Bools) -> str:
    """Return the ids of the first five items chosen, then how many more there are."""
    codes = np.flatnonzero(chosen)
    ids, queries = items.ids.gather(codes[:SHOWN]).to_list(), items.query_ids().gather(codes[:SHOWN]).to_list()
    shown = [short(i) if items.single else f"{short(i)} (query {short(q)})" for i, q in zip(ids, queries, strict=True)]
    return first_few(shown, len(codes))


def named_annotators(judged: Any, names: Any, argument: str, *, absent: bool = False) -> Bools:
    """Return which annotators are named, (n_annotators,).

    Parameters
    ----------
    judged
        What has annotators, and where they have one their groups.
    names
        A name or several: an id; ``human-*``, a pattern of ids; ``group=human``, all of a group; ``@people.txt`` or the
        path of a file, one id per line or a table with a column annotator; or some of these with commas between them.
        What is an id is taken for it, whatever else it may look like.
    argument
        The argument of the verb that names them, for messages.
    absent
        Whether names that nobody has are left out rather than refused.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> table = {"item": [1, 1, 1], "grade": [1, 2, 1], "annotator": ["h-1", "h-2", "gpt"], "group": ["a", "b", "b"]}
    >>> grades = Grades.from_frame(table)
    >>> list(grades.annotators), named_annotators(grades, ["h-*"], "trusted").tolist()
    (['gpt', 'h-1', 'h-2'], [False, True, True])
    >>> named_annotators(grades, "group=b", "trusted").tolist(), named_annotators(grades, "gpt,h-1", "without").tolist()
    ([True, False, True], [True, True, False])
    """
    annotators: Index = judged.annotators
    mask = np.zeros(len(annotators), bool)
    if not len(annotators):
        what = f"{option(argument)} names annotators, but the judgments do not say who gave them"
        raise ParameterError(f"{what}; leave it out")
    known = {str(one): code for code, one in enumerate(annotators)}
    waiting = [names] if isinstance(names, str | int | os.PathLike) else list(names)
    while waiting:
        name = str(waiting.pop(0))
        column, equals, value = name.partition("=")
        if name in known:
            mask[known[name]] = True
        elif "," in name and not Path(name.removeprefix("@")).is_file():
            waiting = [part.strip() for part in name.split(",") if part.strip()] + waiting
        elif equals:
            mask |= _of_group(judged, column.strip(), value.strip(), option(argument, name), absent=absent)
        elif any(letter in name for letter in "*?["):
            alike = [code for text, code in known.items() if fnmatch.fnmatchcase(text, name)]
            if not alike and not absent:
                some = first_few(map(repr, known))
                raise UnknownNameError(f"{option(argument, name)}: none of {some} is like {name!r}; name others")
            mask[alike] = True
        else:
            listed = name.startswith("@") or Path(name).is_file()
            ids = _ids_in_file(name.removeprefix("@")) if listed else [name]
            mask[[annotators.code(one, "annotator") for one in ids if one in known or not absent]] = True
    return mask


def _of_group(judged: Any, column: str, value: str, given: str, *, absent: bool) -> Bools:
    """Who is of a group; the one column about annotators that judgments keep."""
    groups, group = getattr(judged, "groups", None), getattr(judged, "group", None)
    if column != "group" or groups is None or group is None:
        own = column == "group"
        lacking, more = ("no group", "") if own else (f"no {column!r}", f" and write group={value}")
        source: Any = ... if own else column
        remedy = f"read the column that says it as their group with {option('columns', {'group': source})}{more}"
        raise ParameterError(f"{given}: the judgments have {lacking} of annotators; {remedy}")
    if absent and value not in set(map(str, groups)):
        return np.zeros(len(judged.annotators), bool)
    return np.asarray(group) == groups.code(value, "group")


def _ids_in_file(path: str) -> list[str]:
    """The ids in a text file, one per line, or in the column annotator of a table."""
    try:
        if path.endswith((".parquet", ".pq")):
            return pl.read_parquet(path)["annotator"].cast(pl.String).drop_nulls().to_list()
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        mark = next((mark for mark in ",\t;" if lines and "annotator" in lines[0].split(mark)), None)
        if mark is not None:
            return pl.read_csv(path, separator=mark, infer_schema=False)["annotator"].drop_nulls().to_list()
    except OSError as error:
        raise ParameterError(f"{path}: {error.strerror}; check the path of the file of annotators") from None
    except (UnicodeDecodeError, pl.exceptions.PolarsError):
        raise ParameterError(f"{path} is no text; write the id of an annotator on each line") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise ParameterError(f"{path} is empty; write an id of an annotator on each line")
    return ids
