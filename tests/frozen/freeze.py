"""What users rely on, written down: ``python -m tests.frozen.freeze`` writes what there is, tests compare with it.

Signatures, help pages, values of every method, readings of all samples of exports, and the output of whole commands. A
change of one of them is a change for users: write it down anew, and say in the commit why.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import crowdrank as cr
from crowdrank.demo import FILE as DEMO
from crowdrank.registry import FAMILIES, card, make, names

FOLDER = Path(__file__).parent
VERBS = (
    "", "aggregate", "compare", "evaluate", "diagnose", "features", "train", "rank", "propose", "simulate", "study",
    "methods", "datasets", "demo", "inspect", "export", "pack", "serve",
)  # fmt: skip
MODULES = (
    "aggregators",
    "datasets",
    "errors",
    "features",
    "joint",
    "metrics",
    "rankers",
    "report",
    "schemes",
    "simulate",
)

HOOKS = {"over_blocks", "refits", "scores_by_weight", "reread", "lay_out", "get_params", "set_params"}
"""Methods by which the package calls itself, and those that rankers have of scikit-learn once that is loaded."""

COMMANDS = {
    "aggregate": "aggregate votes.csv --across-queries",
    "aggregate-json": "aggregate votes.csv --across-queries --format json --quiet",
    "aggregate-annotators": "aggregate votes.csv --across-queries --quiet -o best.csv --annotators -",
    "aggregate-crowd-bt": "aggregate votes.csv --across-queries --method crowd_bt --set ties=davidson",
    "aggregate-control": "aggregate sided.csv --across-queries --control length --robust query",
    "aggregate-bootstrap": "aggregate votes.csv --across-queries --method bradley_terry --bootstrap 20 --quiet",
    "aggregate-grades": "aggregate grades.csv --want grade --method dawid_skene",
    "aggregate-levels": "aggregate words.csv --levels bad,fair,good",
    "aggregate-rating": "aggregate votes.csv --across-queries --method bradley_terry --rating anchor=juniper --quiet",
    "aggregate-rankings": "aggregate rankings.csv --method plackett_luce",
    "aggregate-mistake": "aggregate missing.csv",
    "aggregate-wrong-option": "aggregate votes.csv --method bradley_tery",
    "compare": "compare grades.csv --methods mean_grade,borda --truth truth.csv",
    "evaluate": "evaluate scores.csv truth.csv --metrics ndcg@10,map,tau",
    "diagnose": "diagnose votes.csv",
    "diagnose-grades": "diagnose grades.csv",
    "inspect": "inspect votes.csv",
    "inspect-words": "inspect words.csv",
    "propose": "propose grades.csv --scheme k-overlap --set k=8 --budget 5",
    "propose-pairs": "propose votes.csv --scheme information --budget 5",
    "simulate": "simulate truth.csv --annotators 4 --noise flip(0.2) --seed 2 --out -",
    "train": "train grades.csv features.csv --ranker list_net --aggregator mean_grade --out model",
    "rank": "rank model features.csv",
    "pack": "pack votes.csv --out packed",
    "aggregate-packed": "aggregate packed --across-queries --method bradley_terry --quiet",
    "export": "export scores.csv --to qrels --threshold 2",
    "methods": "methods",
    "methods-one": "methods crowd_bt",
}
"""Whole commands by name; they run one after the other in one folder, and later ones read what earlier ones wrote."""


def signatures() -> dict[str, str]:
    """Parameters and defaults of all public functions, classes and their methods."""
    homes = [("cr", cr), *((name, importlib.import_module(f"crowdrank.{name}")) for name in MODULES)]
    listed = {}
    for home, module in homes:
        for name in dir(module):
            if name.startswith("_") or (home != "cr" and name not in getattr(module, "__all__", dir(module))):
                continue
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not callable(thing) or not thing.__module__.startswith("crowdrank"):
                continue
            listed[f"{home}.{name}"] = parameters(thing)
            if inspect.isclass(thing):
                own = (base for base in thing.__mro__ if base.__module__.startswith("crowdrank"))
                for key in sorted({key for base in own for key in vars(base) if not key.startswith("_")} - HOOKS):
                    member = inspect.getattr_static(thing, key)
                    if isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
                        listed[f"{home}.{name}.{key}"] = parameters(getattr(thing, key))
                    elif isinstance(member, property) or hasattr(member, "func"):
                        listed[f"{home}.{name}.{key}"] = "property"
    return dict(sorted(listed.items()))


def parameters(thing: object) -> str:
    """Names, kinds and defaults; no types, which say the same in many ways."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return "?"
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def judgments() -> dict[str, object]:
    """Judgments of each kind over three queries with annotators of different quality, one of them reversed."""
    rng = np.random.default_rng(7)
    noise = {"ann": 0.4, "bob": 0.6, "cid": 0.8, "dan": 1.0, "eve": 0.5, "fay": 2.5}
    grades, preferences, rankings = [], [], []
    for query in ("q1", "q2", "q3"):
        worth = dict(zip("abcdefg", rng.normal(0, 1.2, 7), strict=True))
        for annotator, spread in noise.items():
            sign = -1.0 if annotator == "eve" else 1.0
            seen = {item: sign * value + rng.normal(0, spread) for item, value in worth.items()}
            grades += [(annotator, query, item, int(np.clip(round(value + 2), 0, 4))) for item, value in seen.items()]
            order = sorted(seen, key=lambda item: -seen[item])
            rankings += [(annotator, query, item, place + 1) for place, item in enumerate(order)]
            for left in worth:
                for right in worth:
                    if left < right:
                        gap = seen[left] - seen[right]
                        winner = "tie" if abs(gap) < 0.1 else "left" if gap > 0 else "right"
                        preferences.append((annotator, query, left, right, winner))
    return {
        "grade": cr.Grades.from_rows(grades),
        "preference": cr.Preferences.from_rows(preferences),
        "ranking": cr.Rankings.from_rows(rankings),
    }


def features() -> cr.Features:
    """Features of the items of :func:`judgments`, two of them."""
    rng = np.random.default_rng(8)
    rows = [(query, item) for query in ("q1", "q2", "q3") for item in "abcdefg"]
    matrix = rng.normal(0, 1, (len(rows), 2))
    return cr.Features.from_arrays(*zip(*rows, strict=True), matrix, names=("near", "far"))


def values(family: str, name: str) -> dict[str, object]:
    """What a method makes of the judgments of every kind it takes, as plain numbers."""
    given, made = judgments(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "aggregator":
            for kind in card(family, name).kinds:
                if kind in given:
                    made[kind] = consensus_values(make(family, name, seed=3).fit(given[kind]))
        elif family == "joint":
            for kind in card(family, name).kinds:
                if kind in given:
                    parts = {"aggregator": "borda", "ranker": "list_net"} if name == "two_stage" else {}
                    fit = make(family, name, parts, seed=3).fit(given[kind], features())
                    predicted = plain(fit.predict(features())["score"])
                    made[kind] = {"predicted": predicted, **consensus_values(fit.consensus)}
        elif family == "ranker":
            fit = cr.train(given["grade"], features(), ranker=name, aggregator="mean_grade")
            made["grade"] = {"predicted": plain(fit.predict(features())["score"])}
        else:
            kinds = [kind for kind in card(family, name).kinds if kind in given]
            for kind in kinds:
                requests = cr.propose(given[kind], scheme=name, budget=6)
                made[kind] = {column: plain(requests[column]) for column in requests.columns if column != "reason"}
    return made


def consensus_values(consensus: cr.Consensus) -> dict[str, object]:
    """Scores, errors, grades and quality."""
    frame = consensus.frame()
    made = {name: plain(frame[name]) for name in frame.columns if name not in ("query", "item")}
    made["item"] = ["/".join(map(str, row)) for row in frame.select(pl.col("^query$|^item$")).rows()]
    if consensus.quality is not None:
        made["annotators"] = {name: plain(column) for name, column in consensus.quality.frame().to_dict().items()}
    return made


def plain(column: pl.Series) -> list[object]:
    """A column as JSON has it, numbers to twelve digits."""
    if column.dtype.is_float():
        return [None if one is None else digits(one) for one in column]
    return column.to_list() if column.dtype.is_integer() else list(map(str, column))


def digits(number: float) -> float:
    """A number to twelve digits, noise around 0 left out."""
    return 0.0 if abs(number) < 1e-12 else float(f"{number:.12g}")


def reading(path: Path, **options: object) -> dict[str, object]:
    """What is read out of a file: kind, counts and a digest of the rows; or the sentence that refuses it."""
    said: list[str] = []
    cr_io = importlib.import_module("crowdrank.io")
    cr_io.listen(said.append)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = cr.read_judgments(path, **options)
    except cr.errors.CrowdrankError as error:
        return {"refused": without_folder(str(error), path)}
    finally:
        cr_io.listen(None)
    parts = read.kinds if isinstance(read, cr.Mixed) and hasattr(read, "kinds") else None
    counts = {} if parts is not None else {"items": read.n_items, "annotators": read.n_annotators, "kind": read.kind}
    return {
        **counts,
        "judgments": read.n_judgments,
        "rows": digest(read),
        "said": [without_folder(line, path) for line in said],
    }


def digest(read: object) -> str:
    """A short text that differs where the rows do, whatever their order."""
    frame = read.frame()
    frame = frame.with_columns(
        pl.col(pl.Float64, pl.Float32).round(9).cast(pl.String), (~pl.selectors.float()).cast(pl.String, strict=False)
    )
    rows = sorted(map(repr, frame.select(sorted(frame.columns)).rows()))
    return hashlib.sha256("\n".join([*sorted(frame.columns), *rows]).encode()).hexdigest()[:16]


def without_folder(text: str, path: Path) -> str:
    """A sentence without the folder of the file."""
    return text.replace(f"{path.parent}{os.sep}", "")


def sample_readings() -> dict[str, object]:
    """Readings of the samples of every importer that are made here."""
    from benchmarks.more_samples import ALL_SAMPLES

    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(ALL_SAMPLES):
            place = Path(folder) / str(number)
            place.mkdir()
            (place / sample.name).write_bytes(sample.data)
            made[f"{sample.importer}/{sample.name}"] = reading(place / sample.name, **sample.options)
    return made


def hashed(read: dict[str, object]) -> dict[str, object]:
    """A reading with digests for its sentences, which may quote the file."""
    texts = {name: json.dumps(read[name]) for name in ("refused", "said") if name in read}
    return {**read, **{name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}}


def public_readings(folder: Path) -> dict[str, object]:
    """Readings of the public files of exports, without an option."""
    files = sorted(path for name in ("exports", "misread") for path in (folder / name).rglob("*") if path.is_file())
    kinds = {".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".zip", ".txt", ".parquet"}
    return {
        str(path.relative_to(folder)): hashed(reading(path))
        for path in files if path.suffix in kinds and path.name != "expected.json"
    }  # fmt: skip


def write_inputs(folder: Path) -> None:
    """The files that the commands read."""
    (folder / "votes.csv").write_bytes(DEMO.read_bytes())
    given = judgments()
    given["grade"].frame().write_csv(folder / "grades.csv")
    given["ranking"].frame().write_csv(folder / "rankings.csv")
    words = pl.col("grade").cast(pl.Int64).clip(1, 3).replace_strict({1: "bad", 2: "fair", 3: "good"}).alias("rating")
    given["grade"].frame().select("query", "item", "annotator", words).write_csv(folder / "words.csv")
    sides = given["preference"].frame()
    rng = np.random.default_rng(4)
    lengths = {name: pl.Series(rng.integers(20, 400, sides.height)) for name in ("length_left", "length_right")}
    sides.with_columns(**lengths).write_csv(folder / "sided.csv")
    features().frame().write_csv(folder / "features.csv")
    mean = given["grade"].frame().group_by("query", "item", maintain_order=True).agg(pl.col("grade").mean().round(0))
    mean.write_csv(folder / "truth.csv")
    cr.aggregate(given["grade"], "mean_grade").frame().write_csv(folder / "scores.csv")


def commands() -> dict[str, dict[str, object]]:
    """Exit code, output and talk of whole commands."""
    from crowdrank.cli import main

    made = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write_inputs(Path(folder))
            for name, line in COMMANDS.items():
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    code = main(shlex.split(line))
                lines = out.getvalue().splitlines()
                # what is under way is only said where it takes long, and the time a method took is the last column
                talk = [one for one in err.getvalue().splitlines() if not one.endswith(" ...")]
                if name == "compare":
                    lines = [line.rpartition(",")[0] for line in lines]
                made[name] = {"command": line, "code": code, "out": lines, "talk": talk}
        finally:
            os.chdir(before)
    return made


def help_text(verb: str) -> str:
    """The help page of a command."""
    from crowdrank.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main([*([verb] if verb else []), "--help"])
    return out.getvalue()


def write(name: str, content: object) -> None:
    """Write one file of what is frozen."""
    (FOLDER / name).write_text(
        json.dumps(content, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8"
    )


def main(parts: list[str]) -> None:
    """Write the parts that are named, or all."""
    os.environ.setdefault("COLUMNS", "80")
    wanted = set(parts or ("signatures", "help", "values", "readings", "public", "commands"))
    if "signatures" in wanted:
        write("signatures.json", signatures())
    if "help" in wanted:
        for verb in VERBS:
            (FOLDER / "help" / f"{verb or 'crowdrank'}.txt").write_text(help_text(verb), encoding="utf-8")
    if "values" in wanted:
        write("values.json", {family: {name: values(family, name) for name in names(family)} for family in FAMILIES})
    if "readings" in wanted:
        write("readings.json", sample_readings())
    if "public" in wanted and os.environ.get("CROWDRANK_DATA"):
        write("public_readings.json", public_readings(Path(os.environ["CROWDRANK_DATA"])))
    if "commands" in wanted:
        write("commands.json", commands())


if __name__ == "__main__":
    main(sys.argv[1:])
