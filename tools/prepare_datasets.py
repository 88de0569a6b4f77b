"""Make the stored files of a data set from its public source's: ``python tools/prepare_datasets.py NAME SOURCE``."""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import polars as pl

from crowdrank.datasets.catalog import FOLDERS, Folder, data_folder, entry
from crowdrank.datasets.loaders import BROKEN
from crowdrank.errors import CrowdrankError, JudgmentError, MissingDataError, ParameterError
from crowdrank.protocols import Bools, Counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description="Make a data set's stored files from its public source's.")
    parser.add_argument("name", metavar="NAME", help="name of the data set")
    parser.add_argument("source", metavar="SOURCE", help="folder with a copy of the public repository")
    parser.add_argument("--out", metavar="FOLDER", help="folder that holds the data sets (default: $CROWDRANK_DATA)")
    chosen = parser.parse_args(arguments)
    try:
        for path in prepare(chosen.name, chosen.source, chosen.out):
            sys.stdout.write(f"{path}\n")
    except CrowdrankError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def prepare(name: str, source: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Make the stored files of a data set and return where they are.

    Parameters
    ----------
    name
        Name of a data set or of a data folder.
    source
        Folder with the public repository's files; its top folder or the folder that holds the files.
    out
        Folder that holds all data sets, by default the one that loading looks in; files in it are never replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> source, out = (pathlib.Path(tempfile.mkdtemp()) for _ in range(2))
    >>> _ = (source / "label.csv").write_text("item,worker,label\\na,kim,4\\n")
    >>> _ = (source / "truth.csv").write_text("item,truth\\na,4\\n")
    >>> [path.name for path in prepare("web-search-relevance5", source, out)]
    ['label.csv', 'truth.csv']
    """
    folder = name if name in FOLDERS else entry(name).folder
    work = Work(folder, Path(source).expanduser(), data_folder(out))
    if not work.terms.source.repository:
        raise ParameterError(f"{folder!r} cannot be made from public files: it is {work.terms.source}")
    if not work.source.is_dir():
        raise MissingDataError(f"there is not a folder {work.source}; it should be a copy of {work.terms.source}")
    work.check_free()
    globals()[work.terms.prepare](work)
    return work.finish()


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


def copy(work: Work) -> None:
    """Take every file as it is in the source."""
    for file, origin in work.terms.files.items():
        work.write(file, work.read(origin))


def answers(work: Work) -> None:
    """Replace the workers of ``answer.csv``; take ``truth.csv`` as it is."""
    given = work.table(f"{work.terms.source.path}/answer.csv", ("question", "worker", "answer"))
    work.write_table("answer.csv", given.with_columns(pseudonyms(given["worker"], "w")))
    work.write("truth.csv", work.read(work.terms.files["truth.csv"]))


def adult(work: Work) -> None:
    """Replace workers and sites; sites that only have gold are numbered after the labelled ones."""
    path = work.terms.source.path
    labels = work.table(f"{path}/labels.txt", ("worker", "site", "label"), separator="\t", header=False)
    gold = work.table(f"{path}/gold.txt", ("site", "label"), separator="\t", header=False)
    sites = pseudonyms(pl.concat([labels["site"], gold["site"]]), "site")
    labels = labels.with_columns(pseudonyms(labels["worker"], "w"), sites[: len(labels)].alias("site"))
    gold = gold.with_columns(sites[len(labels) :].alias("site"))
    work.write_table("labels.tsv", labels, separator="\t", header=False)
    work.write_table("gold.tsv", gold, separator="\t", header=False)


def wine(work: Work) -> None:
    """Put back the semicolons and the name of the last column that the original files have."""
    for file in work.terms.files:
        header, *rows = work.text(file).splitlines()
        header = header.replace(",", ";").replace('"class"', '"quality"')
        work.write(file, "\n".join([header, *(row.replace(",", ";") for row in rows)]) + "\n")


N_PARTS = 5


def from_folds(work: Work) -> None:
    """Write each fold's test file as a partition: the test part of fold 1 is the fifth, that of fold 2 the first."""
    seen: dict[str, int] = {}
    for fold in range(1, N_PARTS + 1):
        part = (fold + 3) % N_PARTS + 1
        names = [f"Fold{fold}/{name}" for name in ("test.txt", "testset.txt", "testset.TXT")]
        inner = [f"{work.terms.source.path}/{name}" for name in names]
        content = work.text(*names, *inner)
        for query in {line.split()[1] for line in content.splitlines() if line.strip()}:
            if seen.setdefault(query, part) != part:
                raise JudgmentError(
                    f"the test files of two folds share {query}; these are not the folds of one LETOR set"
                )
        work.write(f"S{part}.txt", content)
    _write_folds(work, "S")


def from_partitions(work: Work) -> None:
    """Take the five partitions as they are and add the table of folds."""
    for file, origin in work.terms.files.items():
        if origin:
            work.write(file, work.read(origin))
    _write_folds(work, next(iter(work.terms.files))[0])


def _write_folds(work: Work, letter: str) -> None:
    """Three partitions in a row to train on, the next for tuning, the one after it to test, and round again."""
    folds = {}
    for fold in range(N_PARTS):
        parts = [f"{letter}{(fold + step) % N_PARTS + 1}" for step in range(N_PARTS)]
        folds[f"Fold{fold + 1}"] = {"train": parts[:3], "vali": parts[3:4], "test": parts[4:]}
    work.write("folds.json", json.dumps(folds, indent=1))


def convincing_arguments(work: Work) -> None:
    """One row per vote, the texts once, and the workers under invented ids."""
    votes = _rows(_folder(work, "UKPConvArgCrowd"), ("pair", "worker", "label", "text1", "text2"))
    pair = pl.col("pair").str.split_exact("_", 1).struct.rename_fields(["arg1", "arg2"])
    votes = votes.with_columns(pair.alias("pair")).unnest("pair")
    votes = votes.with_columns(pseudonyms(votes["worker"], "w"))
    work.write_table("votes.csv", votes.select("topic", "arg1", "arg2", "worker", "label"))
    gold = _rows(_folder(work, "UKPConvArgAll"), ("pair", "label")).with_columns(pair.alias("pair")).unnest("pair")
    work.write_table("gold_pairs.csv", gold.select("topic", "arg1", "arg2", "label"))
    sides = votes.with_row_index().select(
        "topic",
        arg=pl.concat_list("arg1", "arg2"),
        text=pl.concat_list("text1", "text2"),
    )
    texts = sides.explode("arg", "text").unique(["topic", "arg"], keep="first", maintain_order=True)
    scores = _rows(_folder(work, "UKPConvArg1-Ranking"), ("arg", "score")).select("arg", "score")
    ranking = scores.join(texts.select("topic", "arg"), on="arg", maintain_order="left")
    work.write_table("gold_ranking.csv", ranking.select("topic", "arg", "score"))
    work.write_table("arguments.csv", texts)


def _folder(work: Work, prefix: str) -> Path:
    """The folder whose name starts so; the sample and the copies that lie beside it are passed over."""
    tops = (work.source, work.source / work.terms.source.path)
    folders = sorted(path for top in tops if top.is_dir() for path in top.iterdir() if path.name.startswith(prefix))
    plain = [path for path in folders if path.is_dir() and not any(word in path.name for word in ("Sample", "copy"))]
    if not plain:
        raise MissingDataError(f"{work.source} has no folder {prefix}*; it should be a copy of {work.terms.source}")
    return plain[0]


def _rows(folder: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    """The tab-separated lines of all files of a folder, with the file's name as topic."""
    rows = []
    for path in sorted(folder.glob("*.csv")):
        for number, line in enumerate(text(path).splitlines(), 1):
            cells = line.split("\t")
            if line.startswith("#") or not line.strip():
                continue
            if len(cells) < len(columns):
                raise JudgmentError(
                    f"{path} has {len(cells)} cells in line {number} instead of {len(columns)}; get it again"
                )
            rows.append((path.stem, *(cell.strip() for cell in cells[: len(columns)])))
    return pl.DataFrame(rows, schema=dict.fromkeys(("topic", *columns), pl.String), orient="row")


def llmbar(work: Work) -> None:
    """Collect items and verdicts.

    A subset's folder holds ``dataset.json`` and, for every judge, ``evaluators/<model>/<strategy>/result.json``.
    """
    top = next((path for path in (work.source / "Dataset", work.source) if any(path.glob("**/dataset.json"))), None)
    if top is None:
        raise MissingDataError(f"{work.source} has no dataset.json; it should be a copy of {work.terms.source}")
    items, verdicts = [], []
    for path in sorted(top.glob("**/dataset.json")):
        subset = path.parent.relative_to(top).as_posix()
        for number, item in enumerate(_json(path)):
            items.append((subset, number, item["label"], item["input"], item["output_1"], item["output_2"]))
        for result in sorted(path.parent.glob("evaluators/*/*/result.json"), key=lambda each: each.as_posix()):
            model, strategy = result.parts[-3:-1]
            verdicts += [(subset, number, model, strategy, *row) for number, *row in _verdicts(result)]
    names = ["subset", "item", "judge_model", "strategy", "swapped", "winner"]
    work.write_table("judgments.csv", pl.DataFrame(verdicts, schema=names, orient="row"))
    work.write_table(
        "items.csv",
        pl.DataFrame(items, schema=["subset", "item", "gold", "input", "output_1", "output_2"], orient="row"),
    )


def _verdicts(path: Path) -> Iterator[tuple[int, int, str | None]]:
    """Item number, order and winner of every verdict of a judge; of several rounds the last counts."""
    for number, item in enumerate(_json(path)):
        rounds = [each for each in item["results"] if isinstance(each, dict) and "swap = False" in each]
        for swapped, key in enumerate(("swap = False", "swap = True")):
            winner = str(rounds[-1].get(key, {}).get("winner")) if rounds else ""
            yield number, swapped, winner if winner in ("1", "2") else None


def _json(path: Path) -> Any:
    """The content of a JSON file of the source."""
    try:
        return json.loads(text(path))
    except json.JSONDecodeError as error:
        raise JudgmentError(f"{path} is damaged ({error}); get it again") from None


def calista(work: Work) -> None:
    """Flatten the sessions into votes, and keep the source's score; the clutter measures need the screenshots."""
    path = work.terms.source.path
    rows = []
    for number, session in enumerate(csv.DictReader(io.StringIO(work.text(f"{path}/data/votesessions.csv"))), 1):
        for vote in json.loads(session["vot"]):
            side = {vote["imL"]: "left", vote["imR"]: "right"}.get(vote["imC"])
            rows.append((f"s{number:03d}", int(session["acc"] == "true"), vote["imL"], vote["imR"], side))
    names = ["annotator", "accepted", "left", "right", "chosen"]
    work.write_table("calista_votes.csv", pl.DataFrame(rows, schema=names, orient="row"))
    scores = work.table(f"{path}/website_scores.csv", ("website", "score"))
    pages = [
        (int(website.removeprefix("image")), float(f"{float(score):.5g}")) for website, score in scores.iter_rows()
    ]
    work.write_table("calista_clutter.csv", pl.DataFrame(sorted(pages), schema=["item", "appeal"], orient="row"))


GOLD_FOLDER = "trec-rf10-crowd-gold"


def item_topics(work: Work) -> None:
    """Take labels and gold as they are, and find the topic of every item.

    The items stand in order of topic and document, so the gold ones align in sequence with the gold questions of
    ``trec-rf10-crowd-gold``, which carry topic and document. Items between two of one topic are of that topic. Between
    two topics the cut goes where the items' annotators fit best: those before it were labelled by annotators seen in
    the first topic, those after it by annotators seen in the second.
    """
    for file in ("label.csv", "truth.csv"):
        work.write(file, work.read(work.terms.files[file]))
    labels = _numbers(work, "label.csv", ("item", "annotator", "label"))
    gold = _numbers(work, "truth.csv", ("item", "label"))
    questions = _questions(work)
    usable = labels.filter(pl.col("label") != BROKEN)["item"].unique()
    known = gold.filter((pl.col("label") != BROKEN) & pl.col("item").is_in(usable.implode())).sort("item")
    if len(known) != len(questions) or not (questions["relevant"] == (known["label"] > 0)).all():
        raise JudgmentError(
            f"the {len(known)} gold items do not align with the {len(questions)} questions of {GOLD_FOLDER}; "
            "both must be complete and of the commits named in the data set's source"
        )
    known = known.with_columns(questions["topic"], questions["document"])
    items = labels["item"].unique().sort()
    topic, exact = _topics(items.to_numpy(), known, labels)
    frame = pl.DataFrame({"item": items, "topic": topic, "exact": exact.astype(np.int64)})
    documents = known.select("item", doc="document")
    work.write_table("item_topic.csv", frame.join(documents, on="item", how="left", maintain_order="left"))


def _numbers(work: Work, file: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """A table of whole numbers of the source."""
    return work.table(work.terms.files[file], columns).with_columns(pl.all().cast(pl.Int64))


def _questions(work: Work) -> pl.DataFrame:
    """Topic, document and relevance of the gold questions, in order; from the source or from the prepared folder."""
    prepared = work.root / GOLD_FOLDER
    inside: Path = prepared if (prepared / "map_question_integer.txt").is_file() else work.source
    other = Work(GOLD_FOLDER, inside, work.root)
    names = other.table(other.terms.files["map_question_integer.txt"], ("name", "number"), separator=" ", header=False)
    truth = other.table(other.terms.files["responses_gt.txt"], ("number", "category"), separator=" ", header=False)
    return (
        names.join(truth, on="number")
        .sort("name")
        .select(
            topic=pl.col("name").str.slice(0, 5).cast(pl.Int64),
            document=pl.col("name").str.slice(5),
            relevant=pl.col("category") == "2",
        )
    )


def _topics(items: Counts, known: pl.DataFrame, labels: pl.DataFrame) -> tuple[Counts, Bools]:
    """Topic of each item, and whether the known items around it leave no doubt."""
    place = np.searchsorted(items, known["item"].to_numpy())
    topics = known["topic"].to_numpy()
    here = np.arange(len(items))
    before = topics[np.maximum(np.searchsorted(place, here, side="right") - 1, 0)]
    after = topics[np.minimum(np.searchsorted(place, here), len(topics) - 1)]
    exact: Bools = before == after
    fit = _fit(items, before, after, exact, labels)
    topic = before.copy()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~exact, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        gain = np.concatenate([[0], np.cumsum(fit[start:stop])])
        topic[start + int(np.argmax(gain)) : stop] = after[start]
    return topic, exact


def _fit(items: Counts, before: Counts, after: Counts, exact: Bools, labels: pl.DataFrame) -> Counts:
    """Labels of each doubtful item by annotators seen in the topic before it, less those by annotators of the next."""
    row = np.searchsorted(items, labels["item"].to_numpy())
    annotator = labels["annotator"].to_numpy()
    seen = set(zip(before[row][exact[row]].tolist(), annotator[exact[row]].tolist(), strict=True))
    fit = np.zeros(len(items), np.int64)
    for place, who in zip(row[~exact[row]].tolist(), annotator[~exact[row]].tolist(), strict=True):
        fit[place] += ((int(before[place]), who) in seen) - ((int(after[place]), who) in seen)
    return fit


if __name__ == "__main__":
    sys.exit(main())
