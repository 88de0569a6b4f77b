"""``crowdrank features``, ``train`` and ``rank``: from raw items to numbers, to a ranker, to a ranking by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import JudgmentError, ParameterError
from ..wording import counted
from .outputs import check_files, deliver, for_people, report_written, write_wanted
from .votes import Reading, votes_to_learn

if TYPE_CHECKING:
    import polars as pl

    from ..data.features import Features
    from .talk import Talk

_SHOWN_COLUMNS = 7
_N_FEATURES_SHOWN = 3


def features(
    *,
    talk: Talk,
    items: str,
    of: str | None,
    like: str | None,
    clutter_measures: str | None,
    query: str | None,
    n_jobs: int,
    cache: str | None,
    on_error: str,
    encoding: str,
    out: str | None,
    details: str | None,
    format: str | None,
    **columns: Any,
) -> None:
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
    from .. import api
    from ..io.features import extractor_file, write_features
    from .terminal_tables import show_frame

    columns["first"] = columns["first"] or None
    chosen: dict[str, Any] = {
        "like": like, "clutter_measures": clutter_measures is not None,
        "options": {name: value for name, value in columns.items() if value is not None},
    }  # fmt: skip
    api.check_extraction(of, **chosen)
    beside = None if out in (None, "-") else extractor_file(out)
    if details is not None and of != "page":
        raise ParameterError("--details applies to pages; leave it out, or give --of page")
    outputs = [out, clutter_measures, beside, details]
    check_files([items, like], outputs, format=format, tables=[clutter_measures, details])
    with talk.working("measuring the items") as progress:
        extracted, rankings = api.make_features(
            items, of, **chosen, query=query, encoding=encoding, n_jobs=n_jobs, cache=cache, on_error=on_error,
            progress=progress,
        )  # fmt: skip
    talk.say(f"{counted(len(extracted.names), 'column')} of {counted(len(extracted), 'item')}")
    if for_people(out, format):
        table = extracted.frame()
        talk.flush()
        show_frame(table.select(table.columns[:_SHOWN_COLUMNS]), bold="item", cut=("query", "item"))
    else:
        write_features(extracted, out, format)
        report_written(out, talk)
    if rankings is not None:
        write_wanted(clutter_measures, rankings.frame, talk)
    if extracted.details is not None:
        kept = extracted.details
        write_wanted(details, lambda: kept, talk)


def train(
    *,
    talk: Talk,
    files: list[str],
    aggregator: str,
    features: list[str] | None,
    validation: str | None,
    truth: str | None,
    reading: Reading,
    out: str,
    importance: str | None,
    curve: str | None,
    ranker: str | None,
    joint: str | None,
    params: dict[str, str],
    aggregator_params: dict[str, str],
    **how: Any,
) -> None:
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
    from .. import api
    from ..io.output import write_table

    held: float | str | None = validation
    with suppress(ValueError):  # the name of a file
        held = None if validation is None else float(validation)
    if truth is not None and not isinstance(held, str):
        raise ParameterError("--truth gives the grades of a validation file; name that file with --validation FILE")
    learner: dict[str, Any] = {
        "ranker": ranker, "aggregator": None if aggregator.lower() == "none" else aggregator, "joint": joint,
        "params": params, "aggregator_params": aggregator_params,
        "validation": held if truth is None else (held, truth),
    }  # fmt: skip
    api.check_training(**learner)
    inputs = [*files, reading.items, held if isinstance(held, str) else None, truth]
    tables = [name for name in (importance, curve) if name and not name.lower().endswith((".png", ".pdf", ".svg"))]
    check_files(inputs, [None, out, importance, curve], tables=tables)
    judgments = votes_to_learn(files[:-1], reading, talk) if files[1:] else None
    with talk.working("reading the features"):
        described = api.as_features(files[-1], features) if files[1:] else _labelled_features(files[0], features)
    with talk.working("training") as progress:
        fit = api.train(judgments, described, **learner, **how, progress=progress)
    table = fit.ranker.importance()
    for line in _sentences(fit, table, truth or held):
        talk.say(line)
    asked = ((importance, "ImportanceDisplay", table), (curve, "LearningCurveDisplay", fit.ranker.curve_))
    # before anything is written: there may be nothing to draw
    drawn = [(name, _picture(name, kind, fit), frame) for name, kind, frame in asked if name is not None]
    fit.save(out)
    report_written(out, talk)
    for name, save, frame in drawn:
        write_table(frame, name) if save is None else save()
        report_written(name, talk)


def _picture(name: str, kind: str, fit: Any) -> Callable[[], None] | None:
    """What draws a display into a file that is to be a picture, ``None`` for others."""
    from .. import report

    if not report.picture_format(name):
        return None
    display = getattr(report, kind).from_ranker(fit)
    return lambda: report.save_display(display, name)


def _labelled_features(path: str, columns: list[str] | None) -> Features:
    """Features with grades, from one file."""
    from ..api import as_features

    remedy = "name the votes and then the features"
    try:
        features = as_features(path, columns)
    except JudgmentError as error:
        if not os.path.exists(path):
            raise
        raise ParameterError(
            f"{path!r} alone is not enough to learn from ({str(error).split(';')[0]}); {remedy}"
        ) from None
    if features.grade is None:
        raise ParameterError(f"{path!r} alone is not enough to learn from, as it has no grades; {remedy}")
    return features


def _sentences(fit: Any, table: pl.DataFrame, measured_by: float | str | None) -> list[str]:
    """What was learned, in lines; ``measured_by`` is the share of the queries or the file with grades."""
    unjudged = f"; {counted(fit.n_unjudged, 'more item')} with features, not judged" if fit.n_unjudged else ""
    lines = [
        f"{fit.learner} learned from {counted(fit.n_items, 'item')} of {counted(fit.n_queries, 'query')}{unjudged}"
    ]
    curve = fit.ranker.curve_
    best = curve["valid"].arg_max()
    if best is not None:
        crowd = "the crowd's grades" if fit.consensus is None else "the consensus of the crowd"
        n_steps = int(curve["iteration"][best])
        when = f"after {counted(n_steps, 'step')} of learning" if n_steps else "before the first step of learning"
        against = f"the grades in {measured_by}" if isinstance(measured_by, str) else f"{crowd}, not against a truth"
        lines.append(f"validation queries: mean nDCG {curve['valid'][best]:.3f} at best, {when}, against {against}")
    most = ", ".join(f"{feature} ({weight:.3g})" for feature, weight in table.head(_N_FEATURES_SHOWN).rows())
    return [*lines, f"features that count most: {most}"]


def rank(*, talk: Talk, model: str, features: str, out: str | None, format: str | None, **how: Any) -> None:
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

    from .. import api
    from ..io.output import write_run
    from .terminal_tables import show_frame

    check_files([model, features], [out], format=format)
    if model == "-":
        raise ParameterError(
            "the model cannot be read from -; name a file that crowdrank train wrote, and read the features from -"
        )
    with talk.working("ranking") as progress:
        table = api.rank(model, features, **how, progress=progress)
    n_queries = table["query"].n_unique() if "query" in table.columns else 1
    talk.say(f"{counted(len(table), 'item')} of {counted(n_queries, 'query')} ranked by {model}")
    if format is not None or out is None or not out.lower().endswith((".run", ".run.gz")):
        deliver(table, out, format, talk, lambda: show_frame(table, bold="item", cut=("query", "item")))
        return
    if "query" not in table.columns:
        raise ParameterError(f"{out} needs a query on each line, but the features have none; write .csv instead")
    # a run is called by the model's file, without white space
    name = "_".join(Path(model).stem.split()) or "crowdrank"
    write_run(table.with_columns(pl.lit(name).alias("run")), out)
    report_written(out, talk)
