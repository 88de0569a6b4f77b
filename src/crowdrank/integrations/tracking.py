"""Results in the experiment trackers MLflow and Weights & Biases, by one call."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import crowdrank as cr
from crowdrank.errors import MissingExtraError, ParameterError, UnknownNameError

MOST_ITEMS = 100
"""Items whose scores are metrics of their own, the best first; the table holds all."""

_NOT_A_NAME = re.compile(r"[^\w\-. /]")


def log(result: Any, to: str, *, name: str = "crowdrank", step: int | None = None, report: str | None = None) -> None:
    """Log a result to the run of an experiment tracker that is open, or to a new one.

    Parameters and figures become the run's parameters and metrics, tables become tables, and what was found in words
    and the report are kept beside them.

    Parameters
    ----------
    result
        A consensus, or what :func:`crowdrank.audit` or :func:`crowdrank.changed` found.
    to
        ``"mlflow"`` or ``"wandb"``; each needs its package, ``pip install 'crowdrank[mlflow]'`` or ``[wandb]``.
    name
        What the names of metrics and files begin with.
    step
        Of the metrics, where a run is logged more than once.
    report
        Path of a report, as of ``--report``, to keep with the run.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> cr.log(cr.aggregate(votes), "comet")
    Traceback (most recent call last):
        ...
    crowdrank.errors.UnknownNameError: there is no tracker 'comet'; known: mlflow, wandb
    """
    if to not in ("mlflow", "wandb"):
        raise UnknownNameError(f"there is no tracker {to!r}; known: mlflow, wandb")
    if not hasattr(result, "frame"):
        raise ParameterError(
            f"a {type(result).__name__} is not a result; log a consensus, or what audit or changed found"
        )
    try:
        tracker = import_module(to)
    except ImportError:
        raise MissingExtraError(
            f"results are logged by the package {to}; install it with pip install 'crowdrank[{to}]'"
        ) from None
    settings, figures = _settings_and_figures(result)
    tables = {type(result).__name__.lower(): result.frame()}
    quality = getattr(result, "quality", None)
    if quality is not None:
        tables["annotators"] = quality.frame()
    words = "\n".join(getattr(result, "sentences", None) or [repr(result)]) + "\n"
    shown: dict[str, Any] = {f"{name}/{key}": value for key, value in figures.items()}
    if to == "mlflow":
        tracker.log_params({f"{name}.{key}": value for key, value in settings.items()})
        tracker.log_metrics(shown, step=step)
        for key, table in tables.items():
            tracker.log_text(table.write_csv(), f"{name}/{key}.csv")
        tracker.log_text(words, f"{name}/summary.txt")
        if report is not None:
            tracker.log_artifact(report, name)
        return
    run = tracker.run or tracker.init()
    run.config.update({name: settings}, allow_val_change=True)
    for key, table in tables.items():
        # lists and the like stand there as text
        cells = [
            [cell if isinstance(cell, str | int | float | None) else str(cell) for cell in row]
            for row in table.iter_rows()
        ]
        shown[f"{name}/{key}"] = tracker.Table(columns=table.columns, data=cells)
    if report is not None:
        with open(report, encoding="utf-8") as page:
            shown[f"{name}/report"] = tracker.Html(page.read(), inject=False)
    run.summary[f"{name}/words"] = words
    run.log(shown, step=step)


def _settings_and_figures(result: Any) -> tuple[dict[str, Any], dict[str, float]]:
    """What a run's parameters are, and its metrics by names that both trackers take."""
    if isinstance(result, cr.Consensus):
        settings = {"method": result.method, **result.params}
        figures: dict[str, float] = {
            "n_items": len(result), "converged": float(result.trace.converged), "n_iter": result.trace.n_iter,
        }  # fmt: skip
        if result.quality is not None:
            figures |= {"n_annotators": len(result.quality), "mean_quality": float(result.quality.quality.mean())}
        values = ["score"]
    else:
        settings = {key: getattr(result, key) for key in ("level", "looks", "margin", "kind") if hasattr(result, key)}
        figures = {"n_rows": len(result)}
        if hasattr(result, "counts"):
            figures |= result.counts().row(0, named=True)
        values = ["winning_rate", "advantage", "quality"] if hasattr(result, "verdicts") else ["difference"]
    rows = result.frame().head(MOST_ITEMS)
    keys = [key for key in ("query", "criterion", "program", "item") if key in rows.columns]
    for row in rows.iter_rows(named=True):
        for value in values:
            label = _NOT_A_NAME.sub("_", "/".join([value, *(str(row[key]).replace("/", "_") for key in keys)]))
            while label in figures:  # ids that differ only in signs that trackers refuse
                label += "_"
            if row[value] is not None:
                figures[label] = float(row[value])
    return settings, figures
