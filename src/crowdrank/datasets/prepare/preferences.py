"""Preferences that their source keeps in many files, or with account ids."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from ...errors import JudgmentError, MissingDataError
from .work import Work, pseudonyms, text


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
    for number, session in enumerate(csv.DictReader(StringIO(work.text(f"{path}/data/votesessions.csv"))), 1):
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
