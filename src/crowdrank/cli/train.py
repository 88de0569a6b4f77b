"""``crowdrank features``, ``train`` and ``rank``: from raw items to numbers, to a ranker, to a ranking by it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from .. import api, io, report
from ..errors import JudgmentError, ParameterError
from ..wording import counted
from .outputs import check_files, deliver, for_people, report_written, write_file, write_wanted
from .talk import Talk
from .votes import Asked, votes_to_learn

_SHOWN_COLUMNS = 7
_N_FEATURES_SHOWN = 3
_OF_ONE_KIND = ("words", "embed", "screen", "first", "fill", "subset_size", "seed")
"""Options of features that only some kinds of items have."""


def features(asked: Asked, talk: Talk) -> None:
    """Turn texts, web pages or recordings into features.

    Writes item [, query] and one column per feature, for crowdrank train; a model trained on them ranks raw items too.

    Examples
    --------
    # style and words of texts: item [, query], text
    crowdrank features answers.csv --of text -o features.parquet
    # then learn from votes
    crowdrank train votes.csv features.parquet --joint latent_score --out m
    # and rank texts that nobody judged
    crowdrank rank m new.csv --of text
    # recordings in a folder, four processes
    crowdrank features clips/ --of speech -o features.csv --jobs 4
    # web pages, and three measures of clutter as annotators
    crowdrank features sites/ --of page --measures m.csv --subset-size 10 -o f.csv
    """

    out, measures, details = asked.out, asked.clutter_measures, asked.details
    asked.first = asked.first or None
    given = {name: getattr(asked, name) for name in _OF_ONE_KIND if getattr(asked, name) is not None}
    chosen = {"like": asked.like, "clutter_measures": measures is not None, "options": given}
    api.check_extraction(asked.of, **chosen)
    if details is not None and asked.of != "page":
        raise ParameterError("--details applies to pages; leave it out, or give --of page")
    others = [name for name in (measures, details) if name is not None]
    check_files([asked.items], [*others, *([] if out in (None, "-") else [io.extractor_file(out)])])
    with talk.working("measuring the items") as progress:
        extracted, rankings = api.make_features(**asked.arguments(api.make_features) | chosen, progress=progress)
    talk.say(f"{counted(len(extracted.names), 'column')} of {counted(len(extracted), 'item')}")
    if for_people(out, asked.format):
        table = extracted.frame()
        deliver(table.select(table.columns[:_SHOWN_COLUMNS]), asked, talk, bold="item", cut=("query", "item"))
    else:
        io.write_features(extracted, out, asked.format)
        report_written(out, talk)
    if rankings is not None:
        write_wanted(measures, rankings.frame, talk)
    if extracted.details is not None:
        kept = extracted.details
        write_wanted(details, lambda: kept, talk)


def check_train(asked: Asked) -> None:
    """Refuse options that do not go together, whatever is in the files."""
    if asked.truth is not None and not isinstance(asked.validation, str):
        raise ParameterError("--truth gives the grades of a validation file; name that file with --validation FILE")
    asked.aggregator = None if asked.aggregator.lower() == "none" else asked.aggregator
    api.check_training(**asked.arguments(api.check_training))


def train(asked: Asked, talk: Talk) -> None:
    """Train a ranker on votes and features.

    The ranker learns what the better items have in common, and then scores items that nobody judged: see crowdrank
    rank. It learns from the consensus of the votes, or from every grade; a joint method learns who is right at the same
    time. The file holds numbers and text only.

    Examples
    --------
    # the ranker that does best on held-out queries
    crowdrank train votes.csv features.csv --out model
    # a linear ranker on expected grades, and its weights
    crowdrank train g.csv f.csv -r list_net --aggregator ds -o m --importance w.csv
    # every grade by itself, measured on a fifth of the queries
    crowdrank train g.csv f.csv --aggregator none --validation .2 -o m
    # features and annotators learned together
    crowdrank train prefs.csv f.csv --joint jam --out model
    # score items that nobody judged
    crowdrank rank model new.csv -o ranks.csv
    """

    files, truth, held = asked.files, asked.truth, asked.validation
    asked.validation = held if truth is None else (held, truth)
    judgments = votes_to_learn(files[:-1], asked.reading, talk) if files[1:] else None
    with talk.working("reading the features"):
        names, read = asked.features, api.as_features if files[1:] else _labelled_features
        asked.features = read(files[-1], names)
    with talk.working("training") as progress:
        fit = api.train(judgments, **asked.arguments(api.train), progress=progress)
    table = fit.ranker.importance()
    unjudged = f"; {counted(fit.n_unjudged, 'more item')} with features, not judged" if fit.n_unjudged else ""
    learned_from = f"{counted(fit.n_items, 'item')} of {counted(fit.n_queries, 'query')}"
    talk.say(f"{fit.learner} learned from {learned_from}{unjudged}")
    curve, measured_by = fit.ranker.curve_, truth or held
    best = curve["valid"].arg_max()
    if best is not None:
        crowd = "the crowd's grades" if fit.consensus is None else "the consensus of the crowd"
        n_steps = int(curve["iteration"][best])
        when = f"after {counted(n_steps, 'step')} of learning" if n_steps else "before the first step of learning"
        against = f"the grades in {measured_by}" if isinstance(measured_by, str) else f"{crowd}, not against a truth"
        talk.say(f"validation queries: mean nDCG {curve['valid'][best]:.3f} at best, {when}, against {against}")
    most = ", ".join(f"{feature} ({weight:.3g})" for feature, weight in table.head(_N_FEATURES_SHOWN).rows())
    talk.say(f"features that count most: {most}")
    wanted: list[tuple[str, Any]] = [(asked.out, fit.save)]
    pictures = ((asked.importance, "ImportanceDisplay", table), (asked.curve, "LearningCurveDisplay", curve))
    for name, kind, frame in pictures:
        if name is not None:
            # before anything is written: there may be nothing to draw
            write: Any = partial(io.write_table, frame)
            if report.picture_format(name):
                write = partial(report.save_display, getattr(report, kind).from_ranker(fit))
            wanted.append((name, write))
    for name, write in wanted:
        write_file(name, write, talk)


def _labelled_features(path: str, columns: list[str] | None) -> api.Features:
    """Features with grades, from one file."""
    remedy = "name the votes and then the features"
    try:
        features = api.as_features(path, columns)
    except JudgmentError as error:
        if not os.path.exists(path):
            raise
        why = str(error).split(";")[0]
        raise ParameterError(f"{path!r} alone is not enough to learn from ({why}); {remedy}") from None
    if features.grade is None:
        raise ParameterError(f"{path!r} alone is not enough to learn from, as it has no grades; {remedy}")
    return features


def rank(asked: Asked, talk: Talk) -> None:
    """Rank items, judged or not, by a trained ranker.

    Writes query, item, score and rank, best first; a TREC run where FILE ends in .run.

    Examples
    --------
    # score and rank items by a model of crowdrank train
    crowdrank rank model features.csv -o ranks.csv
    # as a TREC run
    crowdrank rank model test.txt -o test.run
    # texts, pages or recordings, by a model that learned from such
    crowdrank rank model new.csv --of text
    # straight into a measure
    crowdrank rank model test.txt | crowdrank evaluate - truth.csv
    """
    import polars as pl

    model, out = asked.model, asked.out
    if model == "-":
        remedy = "name a file that crowdrank train wrote, and read the features from -"
        raise ParameterError(f"the model cannot be read from -; {remedy}")
    with talk.working("ranking") as progress:
        table = api.rank(model, **asked.arguments(api.rank), progress=progress)
    n_queries = table["query"].n_unique() if "query" in table.columns else 1
    talk.say(f"{counted(len(table), 'item')} of {counted(n_queries, 'query')} ranked by {model}")
    if asked.format is not None or out is None or not out.lower().endswith((".run", ".run.gz")):
        deliver(table, asked, talk, bold="item", cut=("query", "item"))
        return
    if "query" not in table.columns:
        raise ParameterError(f"{out} needs a query on each line, but the features have none; write .csv instead")
    # a run is called by the model's file, without white space
    name = "_".join(Path(model).stem.split()) or "crowdrank"
    io.write_run(table.with_columns(pl.lit(name).alias("run")), out)
    report_written(out, talk)
