"""Crowd labels whose account ids and addresses are replaced by invented ones."""

from __future__ import annotations

import polars as pl

from .work import Work, pseudonyms


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
