"""A study run from start to end, and its files written."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from crowdrank.data.files import PathLike, refusal, whole_file
from crowdrank.errors import ParameterError
from crowdrank.protocols import Progress
from crowdrank.wording import option

from .catalog import STUDIES, Study, study
from .outcomes import OVER, Outcome
from .work import Work

_LIBRARIES = ("crowdrank", "numpy", "scipy", "numba", "polars", "scikit-learn", "lightgbm")


@dataclass(frozen=True)
class Ran:
    """A study that was run: what it is, what it found, and what was written where.

    ``seconds`` counts the work of a former run too, of which ``n_resumed`` cells were taken over.
    """

    study: Study
    outcome: Outcome
    scope: str
    seconds: float
    cores: int
    n_resumed: int
    files: tuple[Path, ...]


def run_study(
    name: str,
    scope: str = "default",
    *,
    n_seeds: int | None = None,
    out: PathLike | None = None,
    folder: PathLike | None = None,
    progress: Progress | None = None,
    pages: PathLike | None = None,
) -> Ran:
    """Run a study and return what it found.

    Parameters
    ----------
    name
        One of ``STUDIES``.
    scope
        ``"quick"`` to see that it runs, ``"default"``, or ``"full"`` for the paper's whole grid.
    n_seeds
        Number of repetitions, in place of the study's own.
    out
        Folder to write the numbers, the pictures and the protocol to; finished parts are kept there too, so a run
        that was stopped goes on where it was. ``None`` writes nothing.
    folder
        Where data sets lie, if not in ``CROWDRANK_DATA``.
    progress
        Called with (parts done, parts in all, the study).
    pages
        Folder of web pages that ``visual-clutter`` renders and measures in place of its data sets.
    """
    chosen = study(name)
    if pages is not None and not chosen.takes_pages:
        takers = " or ".join(one.name for one in STUDIES.values() if one.takes_pages)
        raise ParameterError(f"the study {chosen.name} is not about web pages; {option('pages')} goes with {takers}")
    place = None if out is None else _make_folder(Path(out))
    stem = f"{chosen.name}{'' if scope == 'default' else f'-{scope}'}{'' if pages is None else '-pages'}"
    work = Work(
        scope, n_seeds=n_seeds, folder=folder, kept=None if place is None else place / f"{stem}.cells.jsonl",
        stamp={"study": chosen.name, "crowdrank": _versions()["crowdrank"]}, progress=progress,
        pages=pages,
    )  # fmt: skip
    n_resumed, former, began = work.n_resumed, work.seconds, time.perf_counter()
    outcome = chosen.leave_proxies(chosen.run(work))
    if work.quick or not outcome.is_repeated:
        why = "A quick run decides nothing." if work.quick else "One repetition decides nothing."
        outcome = outcome.leave_undecided(why)
    seconds = former + time.perf_counter() - began
    files = () if place is None else _write_results(chosen, outcome, work, seconds, place, stem)
    return Ran(chosen, outcome, scope, seconds, os.cpu_count() or 1, n_resumed, files)


def _make_folder(folder: Path) -> Path:
    """The folder, made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(refusal(str(folder), folder, error)) from None
    return folder


def _write_results(
    chosen: Study, outcome: Outcome, work: Work, seconds: float, place: Path, stem: str
) -> tuple[Path, ...]:
    """Write numbers, protocol and pictures."""
    table, told = place / f"{stem}.csv", place / f"{stem}.json"
    with whole_file(table) as handle:
        outcome.frame().write_csv(handle)
    with whole_file(told) as handle:
        handle.write(json.dumps(_protocol(chosen, outcome, work, seconds), indent=1).encode())
    return (table, told, *_draw_figures(outcome, place, stem))


def _draw_figures(outcome: Outcome, place: Path, stem: str) -> list[Path]:
    """Draw each figure in both formats."""
    from matplotlib import rc_context

    files = []
    for name, draw in outcome.figures.items():
        figure = draw()
        for suffix in ("png", "svg"):
            target = place / f"{stem}-{name}.{suffix}"
            # neither the time of day nor random names, so the same numbers give the same file
            with whole_file(target) as handle, rc_context({"svg.hashsalt": stem}):
                figure.savefig(handle, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
            files.append(target)
    return files


def _protocol(chosen: Study, outcome: Outcome, work: Work, seconds: float) -> dict[str, Any]:
    """What was done, with which versions, and how each claim fared."""
    return {
        "study": chosen.name,
        "title": chosen.title,
        "reference": chosen.reference,
        "protocol": chosen.protocol,
        "data": list(chosen.data) if work.pages is None else [f"pages of {work.pages}"],
        "scope": work.scope,
        "seconds": round(seconds, 1),
        "spread": {over: OVER[over] for over in dict.fromkeys(row.over for row in outcome.rows)},
        "verdicts": [{"claim": v.claim, "verdict": v.verdict, "reason": v.reason} for v in outcome.verdicts],
        "notes": list(outcome.notes),
        "figures": list(outcome.figures),
        "versions": _versions(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def _versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    versions = {}
    for library in _LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            versions[library] = "?"
    return versions
