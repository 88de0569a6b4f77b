"""``crowdrank inspect``, ``export``, ``pack`` and ``serve``: files of other tools, packed judgments, the service."""

from __future__ import annotations

import dataclasses
import json
from importlib import import_module
from typing import Any

import typer

from .. import api, io
from ..errors import ParameterError
from ..wording import counted
from .outputs import report_written, write_wanted
from .talk import Talk
from .votes import Asked, packed_in_words, refuse_unpackable


def inspect(asked: Asked) -> None:
    """Say what each column is taken for, and what to type next.

    Reads files as aggregate does, without aggregating them. Exits with 0 if all files would be
    read, with 2 if not. E-mails and addresses are never shown.

    Examples
    --------
    # what a file would be read as, and the command to type next
    crowdrank inspect votes.csv
    # the same for programs
    crowdrank inspect export.json --format json
    # with a choice of columns tried out
    crowdrank inspect votes.csv --column item=orig_id
    """

    if asked.format not in ("text", "json"):
        raise ParameterError(f"--format {asked.format} is not known; choose text or json")
    options = asked.reading.options()
    looks = [io.inspect(name, options, given=asked.reading.words) for name in asked.files]
    if asked.format == "json":
        plain: Any = [dataclasses.asdict(one) for one in looks]
        typer.echo(json.dumps(plain[0] if len(plain) == 1 else plain, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n\n".join(str(one) for one in looks))
    if not all(one.would_read for one in looks):
        raise typer.Exit(2)


def export(asked: Asked, talk: Talk) -> None:
    """Write a result as the file that another tool imports.

    Label Studio gets predictions, Argilla suggestions, each with the confidence of the consensus. Pairs are JSON lines
    of prompt, chosen, rejected, margin and confidence. Qrels, Quepid's CSV and RRE's ratings have a grade for each
    item; letor writes features with these labels to FILE, sizes of queries to FILE.query and, if the method gives a
    confidence, weights to FILE.weight, where LightGBM looks for them.

    Examples
    --------
    # predictions for the Label Studio project the votes came from
    crowdrank export ranks.json --to label-studio --votes export.json -o pre.json
    # suggestions for an Argilla data set
    crowdrank export ranks.csv --to argilla --votes records.json
    # chosen and rejected answers to train on
    crowdrank export ranks.json --to pairs --texts answers.csv -o dpo.jsonl
    # relevance judgments for trec_eval
    crowdrank export grades.csv --to qrels -o news.qrels
    # ratings for Quepid, with the words of queries
    crowdrank export grades.csv --to quepid --queries words.csv
    # labels and weights for LightGBM, XGBoost or RankLib
    crowdrank export g.json --to letor --features f.csv --grades expected -o train.txt
    """

    out = asked.out
    if asked.to == "letor" and out in (None, "-"):
        raise ParameterError("letor writes several files; give --out FILE")
    exported = api.export(**asked.arguments(api.export))
    for note in exported.notes:
        talk.say(note)
    sure = exported.confidence
    if sure is not None:
        write_wanted(asked.confidence, lambda: sure, talk)
    if exported.features is not None and out is not None:
        for name in io.write_training(exported.features, exported.weight, out):
            report_written(name, talk)
        return
    talk.say(f"{counted(len(exported.records), 'record')} for {asked.to}")
    io.write_records(exported.records, exported.to, out)
    report_written(out, talk)


def pack(asked: Asked, talk: Talk) -> None:
    """Pack votes of any size in parts that aggregate reads in turn.

    Files of any size are read some rows at a time, so that memory stays below 1 GB. The same votes give the same bytes
    in any order, and every file has a checksum.

    Examples
    --------
    # files of any size into parts, then a ranking of them
    crowdrank pack votes.parquet --out packed
    # one large query, as in an arena
    crowdrank pack battles.csv --out packed --by annotator
    # add what came in since
    crowdrank pack today.csv --out packed --append
    """

    reading = asked.reading
    refuse_unpackable(reading, "leave it out, or change the file first")
    how = {"options": reading.options(asked.control), "across_queries": reading.across_queries}
    with talk.working("packing the votes") as progress:
        packed = api.pack(**asked.arguments(api.pack), **how, progress=progress)
    talk.say(f"{packed_in_words(packed)}, in {asked.out}")
    talk.say(f"next: crowdrank aggregate {asked.out}")


def serve(asked: Asked) -> None:
    """Collect judgments from people in a browser and from programs.

    They get requests that a scheme chooses. The first start sets the campaign up and prints the owner's token
    once; later starts continue it.

    Examples
    --------
    # see it work on made-up items, in your browser
    crowdrank serve --demo
    # collect what a campaign file asks for
    crowdrank serve campaign.toml
    # several campaigns in one service
    crowdrank serve pairs.toml grades.toml
    # behind a proxy
    crowdrank serve campaign.toml --public-url https://votes.example.org
    # on PostgreSQL, two processes
    crowdrank serve campaign.toml --db postgresql:///votes --workers 2
    # check all totals by counting again
    crowdrank serve campaign.toml --check
    # keep a copy of everything, while it runs
    crowdrank serve campaign.toml --backup campaign-backup.db
    """
    from ..web import expect_extra

    expect_extra()
    from ..web import demo, server, upkeep

    kept = [name for name in ("check", "copy_to", "backup", "restore") if getattr(asked, name)]
    if not asked.campaign and not asked.demo:
        raise ParameterError("name a campaign file, as in crowdrank serve campaign.toml, or see one with --demo")
    if asked.demo and asked.campaign:
        raise ParameterError(f"--demo has campaigns of its own; leave it or {asked.campaign[0]} out")
    if asked.demo and kept:
        raise ParameterError("--demo has nothing to check or copy; name a campaign file")
    if asked.demo:
        demo.serve_demo(**asked.arguments(demo.serve_demo))
        return
    first, *others = asked.campaign
    how = asked.arguments(server.Options) | {"campaign": first, "others": tuple(others), "log_calls": not asked.quiet}
    options = server.Options(**how)
    if kept:
        if others and asked.db is None:
            raise ParameterError("each campaign has a database of its own; name one campaign at a time")
        works = {"copy_to": upkeep.copy, "backup": upkeep.backup, "restore": upkeep.restore}
        typer.echo(upkeep.check(options) if asked.check else works[kept[0]](options, getattr(asked, kept[0])))
        return
    server.check_url(options)
    server.expect_port(options)
    server.announce(options, asked.token_file, new_token=asked.new_token)
    server.run(options)


def mcp(asked: Asked) -> None:
    """Serve agents over standard input and output.

    Speaks the Model Context Protocol: inspect, aggregate, audit, propose, explain. Files are named relative to FOLDER,
    and nothing outside it is read.

    Examples
    --------
    # what an agent's settings should start
    crowdrank mcp ./votes
    """
    # above the command line, since it is one of those that call us
    import_module("crowdrank.integrations.mcp").serve(asked.folder, write=asked.write)
