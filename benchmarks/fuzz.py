"""Mutated files of every kind through readers and commands: each is read, or refused in one sentence.

    python -m benchmarks.fuzz --minutes 5 --seed 1

Sensible files are changed at the level of bytes, cells, columns and types. Counts files tried, read and refused; an
error of any other class, a message of several lines or a result with NaN ends the run with the file kept for a look.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import io
import json
import math
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crowdrank as cr
import crowdrank.io as cio
from benchmarks.more_samples import ALL_SAMPLES as SAMPLES
from crowdrank.errors import CrowdrankError

CELLS = (
    "", " ", "nan", "inf", "-inf", "1e308", "-1e20", "1e-320", "0", "-1", "1.5", "x", "left", "tie", "=1+1", "\u00e9",
    "null", "None", "true", "9" * 40, "2026-01-31", "[1]", "{}", '"', "a,b", "0x10", "1e999", "\u202e", "a" * 300,
)  # fmt: skip
BYTES = (b"\n", b'"', b",", b"\0", b"{", b"}", b"[", b"\xff", b"\xc3", b":", b"\r", b"1e999", b"-", b"\t", b"#", b";")
ODD: tuple[Any, ...] = (
    None, "", [], {}, "x", 0, -1, 1.5, True, "null", 10**30, [None], {"a": None}, [[1]], "1", "\ud800", ["a", 1, None],
    [{"user_id": None}], {"value": {}}, "2020-13-45", 1e308,
)  # fmt: skip
TYPES = (
    pl.String,
    pl.Categorical,
    pl.Binary,
    pl.Float32,
    pl.Int8,
    pl.Boolean,
    pl.Date,
    pl.Duration,
    pl.Null,
    pl.UInt64,
)


def tables(rng: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Sensible tables, small."""
    n = int(rng.integers(3, 12))
    item, other = rng.integers(0, 4, n), rng.integers(4, 8, n)
    shared = {
        "query": [f"q{code}" for code in rng.integers(0, 2, n)],
        "annotator": [f"w{c}" for c in rng.integers(0, 3, n)],
    }
    more = {"weight": rng.choice([0.5, 1.0, 2.0], n), "time": np.arange(n)}
    sorted_items = [f"i{code}" for code in range(n)]
    return {
        "grades": pl.DataFrame({**shared, "item": [f"i{c}" for c in item], "grade": rng.integers(0, 4, n), **more}),
        "preferences": pl.DataFrame(
            {**shared, "left": [f"i{c}" for c in item], "right": [f"i{c}" for c in other],
             "winner": rng.choice(["left", "right", "tie"], n), **more}
        ),
        "rankings": pl.DataFrame({"annotator": ["w1"] * n, "item": sorted_items, "rank": np.arange(1, n + 1)}),
        "consensus": pl.DataFrame(
            {"item": sorted_items, "score": rng.normal(size=n), "rank": np.arange(1, n + 1),
             "grade": rng.integers(0, 3, n)}
        ),
        "features": pl.DataFrame({"item": sorted_items, "f1": rng.normal(size=n), "f2": rng.normal(size=n)}),
        "truth": pl.DataFrame({"query": ["q0"] * n, "item": sorted_items, "grade": rng.integers(0, 3, n)}),
    }  # fmt: skip


def text_files(rng: np.random.Generator) -> dict[str, bytes]:
    """Sensible files that are no plain tables."""
    n = int(rng.integers(2, 8))
    grades = cr.Grades.from_frame({"item": ["x", "y", "z"], "annotator": ["a", "b", "a"], "grade": [1, 2, 3]})
    document = cio.to_json(cr.aggregate(grades, "majority_vote"))
    names = "".join(f"# ALTERNATIVE NAME {number}: item {number}\n" for number in range(1, 4))
    return {
        ".letor": "".join(f"{i % 3} qid:{i // 3} 1:{i}.5 3:0.25 #docid = D{i}\n" for i in range(n)).encode(),
        ".qrels": "".join(f"q{i // 3} 0 D{i} {i % 3}\n" for i in range(n)).encode(),
        ".run": "".join(f"q1 Q0 D{i} {i + 1} {9.5 - i} bm25\n" for i in range(n)).encode(),
        ".soc": f"# NUMBER ALTERNATIVES: 3\n{names}2: 1,2,3\n1: 3,1,2\n".encode(),
        ".toi": f"# NUMBER ALTERNATIVES: 3\n{names}2: 1,{{2,3}}\n1: 3\n".encode(),
        ".json": json.dumps(document).encode(),
    }


def as_bytes(frame: pl.DataFrame, form: str) -> bytes:
    """A table in a format."""
    memory = io.BytesIO()
    if form != ".parquet":
        odd = [name for name, dtype in frame.schema.items() if dtype in (pl.Binary, pl.Duration)]
        frame = frame.with_columns(pl.lit("odd").alias(name) for name in odd)
    if form == ".parquet":
        frame.write_parquet(memory)
    elif form == ".json":
        frame.write_json(memory)
    elif form == ".jsonl":
        frame.write_ndjson(memory)
    else:
        frame.write_csv(memory, separator="\t" if form == ".tsv" else ",")
    return memory.getvalue()


def changed_table(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """The table with cells, a column or a type changed."""
    for _ in range(int(rng.integers(1, 4))):
        name = str(rng.choice(frame.columns))
        kind = rng.integers(0, 6)
        if kind <= 1:
            cells: list[Any] = [None if value is None else str(value) for value in frame[name].to_list()]
            cells[int(rng.integers(0, len(cells)))] = str(rng.choice(CELLS))
            frame = frame.with_columns(pl.Series(name, cells, dtype=pl.String))
        elif kind == 2 and frame.width > 1:
            frame = frame.drop(name)
        elif kind == 3:
            other = str(rng.choice(["Item", "label", "x y", "", "grade ", "score", "=a"]))
            frame = frame if other in frame.columns else frame.rename({name: other})
        elif kind == 4:
            dtype = TYPES[int(rng.integers(0, len(TYPES)))]
            try:
                frame = frame.with_columns(frame[name].cast(dtype, strict=False))
            except pl.exceptions.PolarsError:
                frame = frame.with_columns(pl.lit(None).alias(name))
        else:
            numbers = rng.choice([1e308, -1e20, 1e15, 5e-324, 0.0, 1e12, 1e-12], len(frame))
            frame = frame.with_columns(pl.Series(name, numbers))
    return frame


def changed_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some of them changed, cut out or put in."""
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, len(data) + 1))
        kind = rng.integers(0, 4)
        if kind == 0:
            data = data[:place] + BYTES[int(rng.integers(0, len(BYTES)))] + data[place:]
        elif kind == 1:
            data = data[:place] + bytes([int(rng.integers(0, 256))]) + data[place + 1 :]
        elif kind == 2:
            data = data[:place] + data[place + int(rng.integers(1, 20)) :]
        else:
            data = data[:place] if rng.random() < 0.3 else data[:place] + data[place : place + 9] + data[place:]
    return data


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def changed_document(value: Any, rng: np.random.Generator) -> Any:
    """The JSON value with some values taken out, doubled or put in the place of others."""
    value = json.loads(json.dumps(value))
    for _ in range(int(rng.integers(1, 4))):
        inside = places(value)[1:]
        if not inside:
            break
        path = inside[int(rng.integers(0, len(inside)))]
        around = value
        for key in path[:-1]:
            around = around[key]
        kind = rng.random()
        if kind < 0.3:
            del around[path[-1]]
        elif kind < 0.9:
            around[path[-1]] = copy.deepcopy(ODD[int(rng.integers(0, len(ODD)))])
        elif isinstance(around, list):
            around.append(around[path[-1]])
    return value


def changed_export(rng: np.random.Generator) -> tuple[str, str, bytes]:
    """A changed file of another tool: its family, its suffix and its bytes."""
    chosen = SAMPLES[int(rng.integers(0, len(SAMPLES)))]
    suffix = Path(chosen.name).suffix
    if suffix not in (".json", ".jsonl") or rng.random() < 0.3:
        return f"export {chosen.importer}", suffix, changed_bytes(chosen.data, rng)
    lines = chosen.data.splitlines() if suffix == ".jsonl" else [chosen.data]
    values = changed_document([json.loads(line) for line in lines], rng)
    return f"export {chosen.importer}", suffix, "\n".join(json.dumps(value) for value in values).encode()


def sample(rng: np.random.Generator) -> tuple[str, str, bytes]:
    """A family of files, a suffix, and the bytes of a changed file of it."""
    if rng.random() < 0.25:
        return changed_export(rng)
    if rng.random() < 0.3:
        made = text_files(rng)
        suffix = str(rng.choice(list(made)))
        family, data = f"text{suffix}", changed_bytes(made[suffix], rng)
        suffix = ".txt" if suffix == ".letor" else suffix
    else:
        made_tables = tables(rng)
        what = str(rng.choice(list(made_tables)))
        suffix = str(rng.choice([".csv", ".tsv", ".json", ".jsonl", ".parquet"]))
        frame = made_tables[what]
        if rng.random() < 0.7:
            frame = changed_table(frame, rng)
        try:
            data = as_bytes(frame, suffix)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            suffix, data = ".csv", as_bytes(made_tables[what], ".csv")
        data = changed_bytes(data, rng) if rng.random() < 0.5 else data
        family = f"{what}{suffix}"
    if rng.random() < 0.1:
        data = gzip.compress(data, mtime=0)
        data = changed_bytes(data, rng) if rng.random() < 0.5 else data
        return f"{family}.gz", f"{suffix}.gz", data
    return family, suffix, data


def finite(value: Any) -> bool:
    """Whether a result has no figure that is NaN or infinite."""
    frames = [value] if isinstance(value, pl.DataFrame) else [value.frame()] if isinstance(value, cr.Consensus) else []
    arrays = [getattr(value, name, None) for name in ("grade", "weight", "time")] if not frames else []
    # an item of a table of features may have no grade
    usable = (lambda array: ~np.isinf(array)) if isinstance(value, cr.Features) else np.isfinite
    if not all(array is None or usable(array).all() for array in arrays):
        return False
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype.is_float() and isinstance(value, cr.Consensus) and not frame[name].drop_nulls().is_finite().all():
                return False
    return True


def readers(family: str) -> list[Any]:
    """What is tried on a family of files."""
    fit = [lambda path: cr.aggregate(path), cio.read_judgments]
    by = {
        "grades": fit, "preferences": fit, "rankings": fit, "consensus": [cio.read_consensus],
        "features": [cio.read_features], "truth": [cio.read_truth], "text.letor": [cio.read_letor, cio.read_features],
        "text.qrels": [cio.read_qrels, cio.read_truth], "text.run": [cio.read_run], "text.soc": [cio.read_preflib],
        "text.toi": [cio.read_preflib], "text.json": [cio.read_consensus],
        "export": [cio.read_judgments, cio.read_truth, partial(cio.read_judgments, source=family.split(" ")[-1])],
    }  # fmt: skip
    tried = next(tried for name, tried in by.items() if family.startswith(name))
    return [*tried, cio.read_table]


def run(n: int | None, seed: int, minutes: float | None = None) -> Counter[str]:
    """Try ``n`` files, or as many as minutes allow; return counts, or raise for what is neither read nor refused."""
    counts: Counter[str] = Counter()
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = 0
        while (n is None or number < n) and time.monotonic() < until:
            rng = np.random.default_rng([seed, number])
            number += 1
            family, suffix, data = sample(rng)
            path = Path(folder) / f"input{suffix}"
            path.write_bytes(data)
            counts["files"] += 1
            for read in readers(family):
                try:
                    good = finite(read(str(path)))
                    counts["read"] += 1
                except CrowdrankError as error:
                    good = bool(str(error).strip()) and "\n" not in str(error) and len(str(error)) < 1500
                    counts["refused"] += 1
                except BaseException as error:
                    kept = Path(tempfile.mkdtemp()) / path.name
                    kept.write_bytes(data)
                    raise AssertionError(f"{family} {seed} {number}: {error!r}; the file is {kept}") from error
                if not good:
                    kept = Path(tempfile.mkdtemp()) / path.name
                    kept.write_bytes(data)
                    raise AssertionError(f"{family} {seed} {number}: NaN, or not one sentence; the file is {kept}")
    return counts


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    try:
        print(dict(run(None, chosen.seed, chosen.minutes)))
    except AssertionError:
        traceback.print_exc()
        raise SystemExit(1) from None
