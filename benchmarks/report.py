"""What was measured, as text, Markdown or JSON.

``python -m benchmarks.report FILE.json ... > docs/evidence/floors.md`` makes a page of what ``python -m benchmarks
NAME ... --out FILE.json`` measured.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .workload import Failed, Floor, Measured, Workload

PACKAGES = ("crowdrank", "numpy", "polars", "numba", "pandas", "evalica", "crowd-kit", "scikit-learn")


NOISE = 1.25
"""Times by which a figure may be worse than recorded: peers differ by a quarter from run to run."""

Recorded = Mapping[tuple[str, str, str], float]
"""Value of each floor of an earlier run, by workload, size and the floor's text."""


def recorded(path: Path | None) -> Recorded:
    """Return the figures of an earlier run's JSON, none without a file."""
    workloads = [] if path is None else json.loads(path.read_text(encoding="utf-8"))["workloads"]
    return {
        (workload["name"], workload["size"], floor["text"]): floor["value"]
        for workload in workloads
        for floor in workload["floors"]
        if floor["value"] is not None
    }


@dataclass(frozen=True)
class Outcome:
    """A workload that ran, or the reason why it did not, and the figures of an earlier run."""

    workload: Workload
    size: str
    sides: Mapping[str, Measured | Failed]
    skipped: str | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    before: Recorded = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether this is the size that the floors are about."""
        return self.workload.sizes[self.size] == self.workload.sizes["full"]

    @property
    def well(self) -> bool:
        """Whether every side ran and, at full size, every floor was reached; a skipped workload is well."""
        if any(isinstance(side, Failed) for side in self.sides.values()):
            return False
        return not self.full or all(
            reached and "SLOWER" not in self.beside(floor, value) for floor, value, reached in self.verdicts()
        )

    def beside(self, floor: Floor, value: float | None) -> str:
        """Return what was recorded of a floor, and whether the value is worse beyond noise; accuracies have no unit."""
        before = self.before.get((self.workload.name, self.size, floor.text))
        if before is None or value is None:
            return ""
        worse, better = (before, value) if floor.at_least else (value, before)
        slower = bool(floor.unit) and min(before, value) > 0 and worse > NOISE * better
        return f", {shown(floor, before)} before{': SLOWER' if slower else ''}"

    def verdicts(self) -> list[tuple[Floor, float | None, bool]]:
        """Each floor, its value (None where a side failed), and whether it was reached."""
        measured = {name: side for name, side in self.sides.items() if isinstance(side, Measured)}
        reached: list[tuple[Floor, float | None, bool]] = []
        for floor in self.workload.floors if self.sides else ():
            if set(floor.sides) <= set(measured):
                value = floor.value(measured)
                reached.append((floor, value, floor.reached(value)))
            else:
                reached.append((floor, None, floor.limit is None or any(side in self.absent for side in floor.sides)))
        return reached


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores, "load": round(os.getloadavg()[0], 2), "python": platform.python_version(), **versions}


def sentence(about: Mapping[str, Any]) -> str:
    """Return the machine in one sentence; a load above 0 before the first run says that the machine was busy."""
    versions = ", ".join(f"{name} {value}" for name, value in about.items() if name not in ("cores", "load"))
    return f"{about['cores']} cores, load {about['load']} at the start; {versions}"


def as_text(outcome: Outcome) -> str:
    """Return one workload as a paragraph with a table of sides and a line for each floor."""
    lines = [f"{outcome.workload.name} ({outcome.size}): {outcome.workload.title(outcome.size)}"]
    if outcome.skipped:
        return "\n".join([*lines, f"  skipped: {outcome.skipped}"])
    rows = [("", "seconds", "CPU", "peak MB", outcome.workload.figure), *_side_rows(outcome)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    lines += [f"  {name}: {reason}" for name, reason in outcome.absent.items()]
    lines += [f"  {name}: FAILED: {side.reason}" for name, side in outcome.sides.items() if isinstance(side, Failed)]
    for floor, value, _ in outcome.verdicts():
        said = f"{shown(floor, value)} {verdict(outcome, floor, value)}".rstrip()
        lines.append(f"  {floor.text}: {said}{outcome.beside(floor, value)}")
    return "\n".join(lines)


def as_markdown(outcomes: list[Outcome], about: Mapping[str, Any]) -> str:
    """Return a table of sides and a table of floors."""
    lines = [
        sentence(about) + ".",
        "",
        "| Workload | Side | Seconds | CPU | Peak MB | Figure |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for outcome in outcomes:
        title = f"{outcome.workload.name}: {outcome.workload.title(outcome.size)}"
        if outcome.skipped:
            lines.append(f"| {title} | skipped: {outcome.skipped} | | | | |")
        for place, (side, seconds, cpu, peak, figure) in enumerate(_side_rows(outcome)):
            named = f"{outcome.workload.figure} {figure}" if figure else ""
            lines.append(f"| {title if place == 0 else ''} | {side} | {seconds} | {cpu} | {peak} | {named} |")
    lines += ["", "| Workload | Floor | Measured | |", "|---|---|--:|---|"]
    for outcome in outcomes:
        for floor, value, _ in outcome.verdicts():
            cells = (outcome.workload.name, floor.text, shown(floor, value), verdict(outcome, floor, value))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def as_json(outcomes: list[Outcome], about: Mapping[str, Any]) -> str:
    """Return everything that was measured."""
    workloads = [
        {
            "name": outcome.workload.name,
            "what": outcome.workload.title(outcome.size),
            "size": outcome.size,
            "skipped": outcome.skipped,
            "absent": dict(outcome.absent),
            "figure": outcome.workload.figure,
            "sides": {
                name: {"title": outcome.workload.sides[name].title, **asdict(side)}
                for name, side in outcome.sides.items()
            },
            "floors": [
                {"text": floor.text, "value": value, "limit": floor.limit, "unit": floor.unit, "reached": reached}
                for floor, value, reached in outcome.verdicts()
            ],
        }
        for outcome in outcomes
    ]
    return json.dumps({"machine": dict(about), "workloads": workloads}, indent=1) + "\n"


def write(path: Path, outcomes: list[Outcome], about: Mapping[str, Any]) -> None:
    """Write Markdown or JSON, by the file's ending."""
    make = {".json": as_json, ".md": as_markdown}[path.suffix]
    path.write_text(make(outcomes, about), encoding="utf-8")


def shown(floor: Floor, value: float | None) -> str:
    """Return a floor's value with its unit."""
    if value is None:
        return "not measured"
    number = f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{number} {floor.unit}".strip()


def verdict(outcome: Outcome, floor: Floor, value: float | None) -> str:
    """Return whether a floor was reached, with the floor; at other sizes than full there is none."""
    if floor.limit is None:
        return "(no floor)"
    limit = f"{'at least' if floor.at_least else 'at most'} {floor.limit:g} {floor.unit}".strip()
    if value is None or not outcome.full:
        return f"({limit}{'' if outcome.full else ' at full size'})"
    return f"PASS ({limit})" if floor.reached(value) else f"SHORT OF {limit}"


def _side_rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """Title, seconds by the clock and of all cores, peak and figure of each side that ran."""
    rows: list[tuple[str, ...]] = []
    for name, side in outcome.sides.items():
        title = f"{name}: {outcome.workload.sides[name].title}"
        if isinstance(side, Failed):
            rows.append((title, "failed", "", "", ""))
        else:
            figure = "" if side.figure is None else f"{side.figure:.9g}"
            rows.append((title, f"{side.seconds:.4g}", f"{side.cpu:.4g}", f"{side.peak / 1e6:,.0f}", figure))
    return rows


def page(files: list[Path]) -> str:
    """Return a page of the floors in files of earlier runs, each with its machine; later runs of a workload count."""
    lines = [
        "# Floors, measured",
        "",
        "What `python -m benchmarks NAME --out FILE.json` measured at full size, each side in its own process, best of",
        "three; made by `python -m benchmarks.report`. The machine did nothing else, unless its load says so.",
    ]
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    last = {workload["name"]: number for number, run in enumerate(runs) for workload in run["workloads"]}
    for number, run in enumerate(runs):
        lines += ["", f"{sentence(run['machine'])}.", ""]
        lines += ["| Workload | Floor | Measured | Limit | |", "|---|---|--:|--:|---|"]
        for workload in [workload for workload in run["workloads"] if last[workload["name"]] == number]:
            for floor in workload["floors"]:
                unit = f" {floor['unit']}".rstrip()
                limit = "" if floor["limit"] is None else f"{floor['limit']:g}{unit}"
                reached = "" if floor["limit"] is None else "reached" if floor["reached"] else "MISSED"
                cells = (workload["what"], floor["text"], f"{floor['value']:.3g}{unit}", limit, reached)
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page([Path(name) for name in sys.argv[1:]]))
