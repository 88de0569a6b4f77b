"""A consensus back into the project that the votes came from: predictions of Label Studio, suggestions of Argilla."""

from __future__ import annotations

from typing import Any

from crowdrank.errors import CrowdrankError, JudgmentError, ParameterError

_AT_ONCE = 500
"""Predictions sent in one call."""


def push(exported: Any, to: Any) -> int:
    """Send predictions or suggestions to the server, by the tool's own client, and return how many.

    A second push replaces what the first one left there; answers of people are never touched.

    Parameters
    ----------
    exported
        What :func:`crowdrank.export` made for ``"label-studio"`` or ``"argilla"``.
    to
        Where to: the client of Label Studio (``LabelStudio(base_url=..., api_key=...)``), or the data set of Argilla
        (``client.datasets("name")``).

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxy"), "annotator": list("aabb"), "grade": [2, 0, 2, 0]}
    >>> push(cr.export(cr.aggregate(votes), "qrels", threshold=1), None)
    Traceback (most recent call last):
        ...
    crowdrank.errors.ParameterError: an export to qrels is a file; only those to label-studio and argilla are pushed
    """
    send = {"label-studio": _predict, "argilla": _suggest}.get(exported.to)
    if send is None:
        raise ParameterError(f"an export to {exported.to} is a file; only those to label-studio and argilla are pushed")
    if not hasattr(to, "predictions" if exported.to == "label-studio" else "records"):
        what = "the client LabelStudio(...)" if exported.to == "label-studio" else "a data set, client.datasets('name')"
        raise ParameterError(f"a {type(to).__name__} does not take what goes to {exported.to}; give {what}")
    try:
        return send(exported.records, to)
    except CrowdrankError:
        raise
    except Exception as error:  # whatever its client raises; a body or a message says it best
        said = " ".join(str(getattr(error, "body", None) or error or type(error).__name__).split())
        raise CrowdrankError(
            f"{exported.to} did not take everything: {said[:300]}; push again when it does: what is there is replaced"
        ) from error


def _predict(records: list[dict[str, Any]], client: Any) -> int:
    """Predictions of the tasks; those of the same method are changed in place, since Label Studio would keep both."""
    wanted = {int(record["id"]): record["predictions"][0] for record in records}
    version = records[0]["predictions"][0]["model_version"]
    project = client.tasks.get(str(min(wanted))).project
    for one in client.predictions.list(task_project=project):
        if one.model_version == version and one.task in wanted:
            made = wanted.pop(one.task)
            client.predictions.update(one.id, result=made["result"], score=made.get("score"))
    new = [{"task": task, **made} for task, made in wanted.items()]
    for start in range(0, len(new), _AT_ONCE):
        client.projects.import_predictions(project, request=new[start : start + _AT_ONCE])
    return len(records)


def _suggest(records: list[dict[str, Any]], dataset: Any) -> int:
    """Suggestions, added to the records as they are there, so that their fields and metadata stay what they are."""
    from argilla import Suggestion

    wanted = {record["id"]: record["suggestions"] for record in records}
    changed = []
    for record in dataset.records(with_responses=False):
        for question, one in wanted.pop(str(record.id), {}).items():
            record.suggestions.add(Suggestion(question, **one))
            changed.append(record)
    if wanted:
        raise JudgmentError(
            f"record {next(iter(wanted))!r} is not in the data set {dataset.name}, and nothing was pushed; push to the "
            "data set that the votes came from"
        )
    dataset.records.log(changed)
    return len(changed)
