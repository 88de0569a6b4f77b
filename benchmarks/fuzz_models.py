"""Damaged files of rankers: each is read to a ranker that predicts numbers, or refused in one sentence.

``python -m benchmarks.fuzz_models --rounds 100000 --seed 1`` says how many mutations were read and refused, the longest
time and how much memory was taken; anything else than a sentence ends it with the file beside its report.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import io
import json
import re
import resource
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "models"
FEATURES = np.random.default_rng(5).normal(size=(7, 3))
_DIGITS = 64
_ODD = [
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    1 << 40,
    10**30,
    0.5,
    1e308,
    -1e308,
    "",
    "x",
    "none",
    "list_net",
    "\ud800",
    [],
    [1],
    {},
    {"a": 1},
]
_ODD_NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 3e9]
_TOKENS = [
    b"nan",
    b"inf",
    b"-inf",
    b"1e999",
    b"-1",
    b"99999999999",
    b"0",
    b"",
    b"x",
    b"4294967296",
    b"0x10",
    b"1_0",
    b"2147483647",
]


def make_files() -> dict[str, bytes]:
    """Return a file of every kind of ranker, by name; those of the format before end in ``.format1``."""
    import crowdrank as cr
    from crowdrank.models.staged.added_scores import AddedScores
    from crowdrank.rankers import LambdaMART, ListMLE, ListNet, RankSVM

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(240, 3)), np.repeat(np.arange(24), 10)
    y = np.digitize(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=240), [-0.5, 0.5, 1.5])
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    trees = LambdaMART(n_trees=4, n_leaves=6, min_leaf=5, n_threads=1).fit(holes, y, qid=qid)
    fitted = {"lambda_mart": trees, "list_net": ListNet(scale="query").fit(X, y, qid=qid)}
    fitted |= {name: method().fit(X, y, qid=qid) for name, method in (("list_mle", ListMLE), ("rank_svm", RankSVM))}
    fitted["added_scores"] = AddedScores.of([fitted["rank_svm"], trees, fitted["list_mle"]], [0.2, 0.3, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cr.errors.DataWarning)
        fitted["lambda_rank"] = cr.load_ranker(GOLDEN / "lambda_rank.format1")
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, ranker in fitted.items():
            ranker.save(Path(folder) / name)
            files[name] = (Path(folder) / name).read_bytes()
    return files | {path.name: path.read_bytes() for path in sorted(GOLDEN.glob("*.format1"))}


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the members of an undamaged file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], old: bool) -> bytes:
    """Return a file of members with a checksum that fits, or one of the format before."""
    from crowdrank.rankers.saving import seal

    if not old:
        return seal(members)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return memory.getvalue()


def flipped(data: bytes, rng: np.random.Generator, most: int = 4) -> bytes:
    """Return the bytes with a few of them changed, in one bit or altogether."""
    changed = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, most + 1)) if data else ():
        changed[place] = changed[place] ^ (1 << rng.integers(8)) if rng.random() < 0.5 else rng.integers(256)
    return bytes(changed)


def _flip(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    return flipped(data, rng)


def _cut(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    begin, end = np.sort(rng.integers(0, len(data) + 1, 2))
    return [data[:end], data[begin:], data[:begin] + data[end:], data + data[:end]][rng.integers(4)]


def _flip_and_seal(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    """Bytes of the archive itself, under a checksum that fits."""
    if old:
        return flipped(data, rng)
    tail = 400 if rng.random() < 0.5 else len(data)
    body = data[:-tail] + flipped(data[-tail:-_DIGITS], rng)
    return body + hashlib.sha256(body).hexdigest().encode()


def _swap(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    """Members lost, renamed, exchanged, or those of another file."""
    members, foreign = members_of(data), members_of(other)
    names = list(members)
    first, second = (names[number] for number in rng.integers(0, len(names), 2))
    match rng.integers(5):
        case 0:
            del members[first]
        case 1:
            members[str(rng.choice([f"../{first}", "0/weights.npy", "extra.npy", "trees.txt", "/etc/passwd"]))] = (
                members.pop(first)
            )
        case 2:
            members[first], members[second] = members[second], members[first]
        case 3:
            name = list(foreign)[rng.integers(len(foreign))]
            members[name] = foreign[name]
        case 4:
            members = dict.fromkeys(names, members[first])
    return packed(members, old)


def _edit_card(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    """An entry of the JSON replaced, lost, or given twice."""
    members = members_of(data)
    card = json.loads(members["ranker.json"])
    for _ in range(rng.integers(1, 3)):
        where: Any = card
        while True:
            keys = list(where) if isinstance(where, dict) else list(range(len(where)))
            if not keys:
                break
            key = keys[rng.integers(len(keys))]
            if isinstance(where[key], dict | list) and where[key] and rng.random() < 0.7:
                where = where[key]
                continue
            odd = copy.deepcopy(_ODD[rng.integers(len(_ODD))])
            if rng.random() < 0.15:
                del where[key]
            else:
                where[key] = [where[key]] * 3 if rng.random() < 0.1 else odd
            break
    members["ranker.json"] = json.dumps(card).encode()
    if rng.random() < 0.1:
        members["ranker.json"] = flipped(members["ranker.json"], rng)
    return packed(members, old)


def _edit_array(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    """An array of another shape, type or content, or with another header."""
    members = members_of(data)
    arrays = [name for name in members if name.endswith(".npy")]
    if not arrays:
        return _edit_card(data, other, old, rng)
    name = arrays[rng.integers(len(arrays))]
    values = np.load(io.BytesIO(members[name])).copy()
    match rng.integers(6):
        case 0:
            members[name] = flipped(members[name][:128], rng) + members[name][128:]
        case 1:
            members[name] = re.sub(
                rb"\(\d+", b"(%d" % [10**14, 0, 1, len(values) + 1][rng.integers(4)], members[name], count=1
            )
        case 2:
            members[name] = _npy(values.astype([np.float32, np.int64, ">f8", "S3", "c16", "?"][rng.integers(6)]))
        case 3:
            members[name] = _npy([values[:-1], values[None], np.repeat(values, 2), values[::-1]][rng.integers(4)])
        case 4:
            members[name] = members[name][:128] + flipped(members[name][128:], rng)
        case 5 if values.size:
            with np.errstate(all="ignore"):
                odd = _ODD_NUMBERS[rng.integers(len(_ODD_NUMBERS))]
                values.flat[rng.integers(values.size)] = odd if values.dtype.kind == "f" else rng.integers(-9, 9) % 256
            members[name] = _npy(values)
    return packed(members, old)


def _edit_text(data: bytes, other: bytes, old: bool, rng: np.random.Generator) -> bytes:
    """LightGBM's text with numbers or lines replaced, lost or repeated."""
    members = members_of(data)
    if "trees.txt" not in members:
        return _edit_array(data, other, old, rng)
    lines = members["trees.txt"].split(b"\n")
    end = lines.index(b"end of trees") + 1
    for _ in range(rng.integers(1, 4)):
        number = int(rng.integers(end))
        match rng.integers(5):
            case 0:
                del lines[number]
            case 1:
                lines.insert(number, lines[rng.integers(len(lines))])
            case 2:
                lines[number] = flipped(lines[number], rng)
            case _:
                name, sign, value = lines[number].partition(b"=")
                tokens = value.split(b" ")
                tokens[rng.integers(len(tokens))] = _TOKENS[rng.integers(len(_TOKENS))]
                lines[number] = name + sign + b" ".join(tokens)
    members["trees.txt"] = b"\n".join(lines)
    return packed(members, old)


MUTATIONS: tuple[Callable[[bytes, bytes, bool, np.random.Generator], bytes], ...] = (
    _flip, _cut, _flip_and_seal, _swap, _edit_card, _edit_card, _edit_array, _edit_array, _edit_text,
)  # fmt: skip


def _npy(values: Any) -> bytes:
    memory = io.BytesIO()
    np.save(memory, values)
    return memory.getvalue()


def mutated(files: dict[str, bytes], rng: np.random.Generator) -> bytes:
    """Return one of the files, damaged."""
    names = list(files)
    name, other = (names[number] for number in rng.integers(0, len(names), 2))
    mutate = MUTATIONS[rng.integers(len(MUTATIONS))]
    return mutate(files[name], files[other], name.endswith(".format1"), rng)


def outcome(path: Path) -> str:
    """Return ``"read"`` or ``"refused"``; whatever else a file does is an error."""
    import crowdrank as cr
    from crowdrank.errors import JudgmentError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cr.errors.DataWarning)
            ranker = cr.load_ranker(path)
    except JudgmentError as error:
        said = str(error)
        if str(path) not in said or not said.isprintable() or len(said) > len(str(path)) + 400:
            raise AssertionError(f"no sentence: {said[:1000]!r}") from error
        return "refused"
    width = ranker.n_features_in_
    if width > 1000:
        raise AssertionError(f"{width} features from a file of {path.stat().st_size} bytes")
    scores = ranker.predict(np.resize(FEATURES, (7, width)), qid=[1, 1, 1, 2, 2, 2, 2])
    if not np.isfinite(scores).all() or len(ranker.importance()) != width:
        raise AssertionError(f"scores {scores}")
    ranker.save(path)
    return "read"


def main() -> int:
    """Return 0, or 1 where a file did anything but be read or refused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_models", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("error")
    files, rng, counts, longest = make_files(), np.random.default_rng(asked.seed), Counter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for data in files.values():
            path.write_bytes(data)
            outcome(path)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(asked.rounds):
            data = mutated(files, rng)
            path.write_bytes(data)
            begin = time.perf_counter()
            try:
                counts[outcome(path)] += 1
            except Exception as error:
                kept = Path(tempfile.gettempdir()) / f"model-{asked.seed}-{number}"
                kept.write_bytes(data)
                print(f"{kept}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                counts["wrong"] += 1
            longest = max(longest, time.perf_counter() - begin)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{asked.rounds:,} files: {dict(counts)}; longest {longest:.2f} s, {more:.0f} MB more than before")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
