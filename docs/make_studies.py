"""Make studies.md from the files of a run: ``python docs/make_studies.py FOLDER``.

``FOLDER`` is where ``crowdrank study NAME --out FOLDER`` wrote every study in its default scope. Tables, verdicts and
notes go to studies.md, and the pictures, with fewer colours, to images/studies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.studies import STUDIES, VERDICTS

DOCS = Path(__file__).parent
PAGE, IMAGES = DOCS / "studies.md", DOCS / "images" / "studies"
SMALL = 40
"""Tables of so many figures of ours alone are shown; larger ones are in the pictures."""

NARROW, WIDEST = 6, 12
"""Up to so many columns leave room for the spread; no table has more of them than this."""

COLOURS = 64
FIGURES = ("paper", "ours", "spread", "difference", "n", "over")


def page(folder: Path) -> str:
    """The whole page."""
    told = {name: json.loads((folder / f"{name}.json").read_text()) for name in STUDIES}
    parts = [
        "# The papers' tables and figures, measured again",
        "Made by `docs/make_studies.py` from a run of every study in its default scope. `crowdrank study NAME` runs "
        "one and shows the same, `--out DIR` writes all numbers, `--full` runs the paper's whole grid; without a name "
        "`crowdrank study` lists them with the data they need.",
        "A claim is *reproduced*, shows the *same trend*, is *not reproduced*, or is *not reproducible* for want of "
        "something that was never published. Verdicts follow from the numbers by rules in the code. In tables the "
        "printed figure stands in brackets. Papers are in [references.md](references.md).",
        overview(told),
        *(section(folder, name, told[name]) for name in STUDIES),
        "## Versions",
        versions(told),
    ]
    return "\n\n".join(parts) + "\n"


def overview(told: dict[str, Any]) -> str:
    """How many claims of each study fared how, and its minutes."""
    lines = [
        f"| Study | Reproduces | {' | '.join(VERDICTS)} | minutes | full |",
        "|---|---|" + "--:|" * (len(VERDICTS) + 2),
    ]
    totals = dict.fromkeys(VERDICTS, 0)
    for name, known in STUDIES.items():
        counts = {verdict: sum(v["verdict"] == verdict for v in told[name]["verdicts"]) for verdict in VERDICTS}
        totals = {verdict: totals[verdict] + counts[verdict] for verdict in VERDICTS}
        cells = [str(counts[verdict] or "") for verdict in VERDICTS]
        minutes = [f"{known.minutes[scope]:g}" for scope in ("default", "full")]
        lines.append(f"| [{name}](#{name}) | {known.title} | {' | '.join([*cells, *minutes])} |")
    whole = sum(known.minutes["default"] for known in STUDIES.values())
    lines.append(f"| | all | {' | '.join(str(totals[verdict]) for verdict in VERDICTS)} | {whole:.0f} | |")
    return "\n".join(lines)


def section(folder: Path, name: str, told: dict[str, Any]) -> str:
    """One study: what was done, how its claims fared, its tables and pictures."""
    known = STUDIES[name]
    data = ", ".join(f"`{one}`" for one in known.data)
    facts = f"{known.title} [{known.reference}](references.md). {known.protocol}{f' Data: {data}.' if data else ''}"
    parts = [f"## {name}", facts, verdicts(told)]
    if told["notes"]:
        parts += ["Besides:", "\n".join(f"- {note}" for note in told["notes"])]
    frame = pl.read_csv(folder / f"{name}.csv", infer_schema_length=None, schema_overrides=labels_as_text(folder, name))
    for place in frame.partition_by("place", maintain_order=True):
        if place["paper"].is_not_null().any() or len(place) <= SMALL:
            parts += tables(place)
    parts += [f"![{name}, {figure}](images/studies/{name}-{figure}.png)" for figure in told["figures"]]
    return "\n\n".join(parts)


def verdicts(told: dict[str, Any]) -> str:
    """A line for each claim."""
    return "\n".join(f"- **{v['verdict']}**: {v['claim']}. {v['reason']}" for v in told["verdicts"])


def labels_as_text(folder: Path, name: str) -> dict[str, Any]:
    """Columns that say what a figure is of."""
    header = (folder / f"{name}.csv").open().readline().strip().split(",")
    return {column: pl.String for column in header if column not in FIGURES}


def tables(place: pl.DataFrame) -> list[str]:
    """A place of the paper as a table under its heading, printed figures in brackets."""
    shown = place.filter(pl.col("paper").is_not_null()) if len(place) > SMALL else place
    labels = [c for c in shown.columns if c not in (*FIGURES, "place", "p") and shown[c].null_count() < len(shown)]
    several = [label for label in labels if shown[label].n_unique() > 1]
    if not several:
        return [f"**{place['place'][0]}**", table(shown, [], labels[-1])]
    across = max(several, key=lambda label: crossing(shown, label))
    rows = [label for label in several if label != across]
    said = [f"{label} {shown[label][0]}" if label != "measure" else shown[label][0] for label in labels
            if label not in several]  # fmt: skip
    over = shown["over"].unique(maintain_order=True).to_list()
    head = f"**{place['place'][0]}**" + (f" ({', '.join(said)})" if said else "")
    return [f"{head}, over {' and '.join(over)}:" if over != ["once"] else f"{head}:", table(shown, rows, across)]


def crossing(frame: pl.DataFrame, label: str) -> tuple[int, bool]:
    """How well the values of a label stand beside each other: many, but not too many, measures first."""
    n = frame[label].n_unique()
    return n if n <= WIDEST else -n, label == "measure"


def table(frame: pl.DataFrame, rows: list[str], across: str) -> str:
    """Figures with the printed ones in brackets."""
    columns = frame[across].unique(maintain_order=True).to_list()
    spread = len(columns) <= NARROW
    lines = [f"| {' | '.join([*rows, *columns])} |", "|" + "---|" * len(rows) + "--:|" * len(columns)]
    groups = frame.partition_by(rows, maintain_order=True, as_dict=True) if rows else {(): frame}
    for names, group in groups.items():
        cells = {row[across]: figure(row, spread=spread) for row in group.iter_rows(named=True)}
        found = [cells.get(column, "") for column in columns]
        lines.append(f"| {' | '.join([*(str(name or '') for name in names), *found])} |")
    return "\n".join(lines)


def figure(row: dict[str, Any], *, spread: bool) -> str:
    """Ours, its spread, a p value, and the printed figure."""
    digits = 1 if max(abs(row["ours"]), abs(row["paper"] or 0.0)) >= 10 else 3
    text = f"{row['ours']:.{digits}f}"
    if spread and row["spread"] is not None:
        text += f" ± {row['spread']:.{digits}f}"
    if row.get("p"):
        text += ", p < 0.001" if float(row["p"]) == 0.0 else f", p {row['p']}"
    return text if row["paper"] is None else f"{text} ({row['paper']:g})"


def versions(told: dict[str, Any]) -> str:
    """What the numbers were measured with."""
    first = next(iter(told.values()))
    libraries = ", ".join(f"{name} {number}" for name, number in first["versions"].items())
    return f"Python {first['python']}, {libraries}; {first['cores']} cores."


def pictures(folder: Path) -> None:
    """Copy the pictures, with fewer colours."""
    from PIL import Image

    IMAGES.mkdir(parents=True, exist_ok=True)
    wanted = set()
    for name in STUDIES:
        for one in json.loads((folder / f"{name}.json").read_text())["figures"]:
            target = IMAGES / f"{name}-{one}.png"
            with Image.open(folder / target.name) as picture:
                picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)
            wanted.add(target)
    for stale in set(IMAGES.glob("*.png")) - wanted:
        stale.unlink()


def main() -> int:
    """Write the page and its pictures."""
    if len(sys.argv) != 2:
        sys.stderr.write("python docs/make_studies.py FOLDER, where the folder has the files of every study\n")
        return 2
    folder = Path(sys.argv[1])
    missing = [name for name in STUDIES if not (folder / f"{name}.json").exists()]
    if missing:
        sys.stderr.write(f"{folder} lacks {', '.join(missing)}; run crowdrank study NAME --out {folder}\n")
        return 1
    PAGE.write_text(page(folder))
    pictures(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
