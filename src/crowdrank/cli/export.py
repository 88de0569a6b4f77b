"""``crowdrank export``: a result as the file that another tool imports."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import ParameterError
from ..wording import counted
from .help import examples
from .options import Quiet
from .outputs import check_files, report_written
from .talk import Talk

EXAMPLES = examples(
    (
        "predictions for the Label Studio project the votes came from",
        "crowdrank export ranks.json --to label-studio --votes export.json -o pre.json",
    ),
    ("suggestions for an Argilla data set", "crowdrank export ranks.csv --to argilla --votes records.json"),
    (
        "chosen and rejected answers to train on",
        "crowdrank export ranks.json --to pairs --texts answers.csv -o dpo.jsonl",
    ),
    ("relevance judgments for trec_eval", "crowdrank export grades.csv --to qrels -o news.qrels"),
    ("ratings for Quepid, with the words of queries", "crowdrank export grades.csv --to quepid --queries words.csv"),
    (
        "labels and weights for LightGBM, XGBoost or RankLib",
        "crowdrank export g.json --to letor --features f.csv --grades expected -o train.txt",
    ),
)


def export(
    *,
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="What crowdrank aggregate wrote.", show_default=False)
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME",
            help="label-studio, argilla, pairs, qrels, quepid, rre, run or letor.",
            show_default=False,
        ),
    ],
    votes: Annotated[
        str | None, typer.Option("--votes", metavar="FILE", help="The tool's export that the votes were read from.")
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="NAME", help="Which question of that export, where it has several."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="WORD=NAME",
            help="Columns that the votes were read with, such as left=data.x; repeatable.",
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option("--texts", metavar="FILE", help="Item and text [, query], to write texts for ids in pairs."),
    ] = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", metavar="P", help="Least probability that the chosen item is better.")
    ] = 0.9,
    pairs_per_query: Annotated[
        int, typer.Option("--pairs-per-query", metavar="N", help="Most pairs of a query, the largest margin first.")
    ] = 1,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="X", help="Write grade 1 from this score on, and 0 below.")
    ] = None,
    grades: Annotated[
        str,
        typer.Option("--grades", metavar="whole|expected", help="Chosen grades, or those of the expected gains."),
    ] = "whole",
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="FILE", help="Query and text, for Quepid and RRE.")
    ] = None,
    features: Annotated[
        str | None, typer.Option("--features", metavar="FILE", help="Features of the items, for letor.")
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            "--confidence",
            metavar="FILE",
            help="Write query, item, grade and confidence too.",
            rich_help_panel="Output",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write there and not to standard output.", rich_help_panel="Output"
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a result as the file that another tool imports.

    Label Studio gets predictions, Argilla suggestions, each with the confidence of the consensus. Pairs are JSON lines
    of prompt, chosen, rejected, margin and confidence. Qrels, Quepid's CSV and RRE's ratings have a grade for each
    item; letor writes features with these labels to FILE, sizes of queries to FILE.query and, if the method gives a
    confidence, weights to FILE.weight, where LightGBM looks for them.
    """
    from .. import api
    from ..io.letor import write_training
    from ..io.output import write_records, write_table
    from .votes import column_names

    if to == "letor" and out in (None, "-"):
        raise ParameterError("letor writes several files; give --out FILE")
    check_files([result, votes, texts, queries, features], [out, confidence], format="json", tables=[confidence])
    with Talk(quiet=quiet) as talk:
        exported = api.export(
            result, to, votes, answer=answer, columns=column_names(column), texts=texts, min_confidence=min_confidence,
            pairs_per_query=pairs_per_query, threshold=threshold, grades=grades, queries=queries, features=features,
        )  # fmt: skip
        for note in exported.notes:
            talk.say(note)
        if confidence is not None and exported.confidence is not None:
            write_table(exported.confidence, confidence)
            report_written(confidence, talk)
        if exported.features is not None and out is not None:
            for name in write_training(exported.features, exported.weight, out):
                report_written(name, talk)
            return
        talk.say(f"{counted(len(exported.records), 'record')} for {to}")
        write_records(exported.records, exported.to, out)
        report_written(out, talk)
