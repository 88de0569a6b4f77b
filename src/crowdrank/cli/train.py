"""``crowdrank train``: from votes and features to a ranker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..wording import counted
from .help import examples
from .options import WHO, Quiet, Reading, Seed, spread
from .outputs import check_files, report_written
from .talk import Talk
from .votes import votes_to_learn
from .words import complete_aggregator, complete_joint, complete_ranker, pairs, split_list

if TYPE_CHECKING:
    import polars as pl

    from ..data.features import Features

EXAMPLES = examples(
    ("the ranker that does best on held-out queries", "crowdrank train votes.csv features.csv --out model"),
    (
        "a linear ranker on expected grades, and its weights",
        "crowdrank train g.csv f.csv -r list_net --aggregator ds -o m --importance w.csv",
    ),
    (
        "every grade by itself, measured on a fifth of the queries",
        "crowdrank train g.csv f.csv --aggregator none --validation .2 -o m",
    ),
    (
        "features and annotators learned together",
        "crowdrank train prefs.csv f.csv --joint jam --out model",
    ),
    ("score items that nobody judged", "crowdrank rank model new.csv -o ranks.csv"),
)

_N_FEATURES_SHOWN = 3


@spread
def train(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[VOTES...] FEATURES",
            show_default=False,
            help="Files of judgments, then the features: query, item and numbers, or LETOR; LETOR with grades may be "
            "alone.",
        ),
    ],
    ranker: Annotated[
        str | None,
        typer.Option(
            "--ranker",
            "-r",
            metavar="NAME",
            autocompletion=complete_ranker,
            help="See crowdrank methods; by default the best on held-out queries, or what the joint method has.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the ranker or joint method; repeatable."),
    ] = None,
    joint: Annotated[
        str | None,
        typer.Option(
            "--joint",
            "-j",
            metavar="NAME",
            autocompletion=complete_joint,
            help="Learn ranker, consensus and annotators together by this method.",
        ),
    ] = None,
    trusted: Annotated[
        str | None,
        typer.Option(
            "--trusted", metavar="WHO", help=f"Annotators known to be good, for methods that use them: {WHO}."
        ),
    ] = None,
    aggregator: Annotated[
        str,
        typer.Option(
            "--aggregator",
            metavar="NAME|none",
            autocompletion=complete_aggregator,
            help="Method of the consensus to learn from; none to learn from every grade.",
        ),
    ] = "auto",
    aggregator_setting: Annotated[
        list[str] | None,
        typer.Option("--aggregator-set", metavar="KEY=VALUE", help="A parameter of the aggregator; repeatable."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            metavar="A,B,C",
            help="Columns to learn from; by default all that are not named like an id, a judgment or a truth.",
        ),
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(
            "--validation",
            metavar="SHARE|FILE",
            help="Share of queries held out, measured against the votes; or a file of features with grades.",
        ),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth", metavar="FILE", help="Grades of the items of the validation file, if they are in another file."
        ),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read packed judgments anew in every pass; by default above a quarter of the free memory.",
            rich_help_panel="More than memory",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS|local:N",
            help="Run passes over packed judgments and linear rankers, and grow the trees of lambda_mart, on Dask.",
            rich_help_panel="More than memory",
        ),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="MODEL", help="Write the ranker there.", rich_help_panel="Output")
    ],
    importance: Annotated[
        str | None,
        typer.Option(
            "--importance",
            metavar="FILE",
            help="Write the importance of each feature: a table, or a picture (.png, .pdf, .svg).",
            rich_help_panel="Output",
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            "--curve",
            metavar="FILE",
            help="Write the learning curve: a table, or a picture (.png, .pdf, .svg).",
            rich_help_panel="Output",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a ranker on votes and features.

    The ranker learns what the better items have in common, and then scores items that nobody judged: see crowdrank
    rank. It learns from the consensus of the votes, or from every grade; a joint method learns who is right at the same
    time. The file holds numbers and text only.
    """
    from .. import api
    from ..errors import ParameterError
    from ..io.output import write_table

    held = _share(validation)
    if truth is not None and not isinstance(held, str):
        raise ParameterError("--truth gives the grades of a validation file; name that file with --validation FILE")
    learner: dict[str, Any] = {
        "ranker": ranker, "aggregator": None if aggregator.lower() == "none" else aggregator, "joint": joint,
        "params": pairs(setting, "--set", "n_trees=200"),
        "aggregator_params": pairs(aggregator_setting, "--aggregator-set", "alpha=2"),
        "validation": held if truth is None else (held, truth),
    }  # fmt: skip
    api.check_training(**learner)
    inputs = [*files, reading.items, held if isinstance(held, str) else None, truth]
    tables = [name for name in (importance, curve) if name and not name.lower().endswith((".png", ".pdf", ".svg"))]
    check_files(inputs, [None, out, importance, curve], tables=tables)
    with Talk(quiet=quiet) as talk:
        judgments = votes_to_learn(files[:-1], reading, talk) if files[1:] else None
        with talk.working("reading the features"):
            described = (
                api.as_features(files[-1], split_list(features))
                if files[1:]
                else _labelled_features(files[0], features)
            )
        with talk.working("training") as progress:
            fit = api.train(
                judgments,
                described,
                **learner,
                trusted=trusted,
                stream=stream,
                cluster=cluster,
                seed=seed,
                progress=progress,
            )
        table = fit.ranker.importance()
        for line in _sentences(fit, table, truth or held):
            talk.say(line)
        # before anything is written: there may be nothing to draw
        drawn = [_picture(importance, "ImportanceDisplay", fit), _picture(curve, "LearningCurveDisplay", fit)]
        fit.save(out)
        report_written(out, talk)
        for name, display, frame in zip((importance, curve), drawn, (table, fit.ranker.curve_), strict=True):
            if name is not None:
                write_table(frame, name) if display is None else _save_picture(display, name)
                report_written(name, talk)


def _labelled_features(path: str, columns: str | None) -> Features:
    """Features with grades, from one file."""
    from ..api import as_features
    from ..errors import JudgmentError, ParameterError

    remedy = "name the votes and then the features"
    try:
        features = as_features(path, split_list(columns))
    except JudgmentError as error:
        if not os.path.exists(path):
            raise
        raise ParameterError(
            f"{path!r} alone is not enough to learn from ({str(error).split(';')[0]}); {remedy}"
        ) from None
    if features.grade is None:
        raise ParameterError(f"{path!r} alone is not enough to learn from, as it has no grades; {remedy}")
    return features


def _share(text: str | None) -> float | str | None:
    """A share of the queries if the text is a number, otherwise the name of a file."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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


def _picture(name: str | None, display: str, fit: Any) -> Any:
    """The display for a file that is to be a picture, ``None`` for others."""
    if name is None:
        return None
    from .. import report

    return getattr(report, display).from_ranker(fit) if report.picture_format(name) else None


def _save_picture(display: Any, name: str) -> None:
    """Draw a display and write it."""
    from ..report import save_display

    save_display(display, name)
