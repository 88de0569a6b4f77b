"""Make studies.md from the files of runs: ``python docs/make_studies.py FOLDER``.

``FOLDER`` is where ``crowdrank study NAME --out FOLDER`` wrote studies in their default scope. Tables, verdicts and
notes go to studies.md, and the pictures, with fewer colours, to images/studies. Sections of studies that are not in the
folder stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "studies"))

from crowdrank_studies import CORES, STUDIES, VERDICTS, Pivot, pivots

DOCS = Path(__file__).parent
PAGE, IMAGES = DOCS / "studies.md", DOCS / "images" / "studies"
COLOURS = 64
NUMBERS = ("paper", "ours", "spread", "difference")


def page(folder: Path, former: str) -> str:
    """The whole page; ``former`` is the one that sections without files are taken from."""
    protocols = {name: file for name in STUDIES if (file := protocol(folder, name)) is not None}
    kept = sections(former)
    texts = {name: section(folder, name, protocols[name]) if name in protocols else kept[name] for name in STUDIES}
    meaning = "; ".join(f"*{verdict}*: {what}" for verdict, what in VERDICTS.items())
    parts = [
        "# The papers' tables and figures, measured again",
        "Made by `docs/make_studies.py` from runs of the studies in their default scope. `crowdrank study NAME` runs "
        "one and shows the same, `--out DIR` writes all numbers, `--full` runs the paper's whole grid; without a name "
        "`crowdrank study` lists them with the data they need. [papers.md](papers.md) has everything by paper.",
        f"How a claim may fare: {meaning}. Verdicts follow from the numbers by rules in the code. What is no claim of "
        "the paper, or not on its kind of data, is a note. In tables the printed figure stands in brackets. Papers are "
        "in [references.md](references.md).",
        overview(texts),
        *texts.values(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def protocol(folder: Path, name: str) -> dict[str, Any] | None:
    """What a run wrote about itself, if it is there."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def sections(text: str) -> dict[str, str]:
    """Study -> its section of the page."""
    parts = re.split(r"^## (\S+)$", text, flags=re.MULTILINE)
    return {name: f"## {name}{body.rstrip()}" for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def verdicts_in(text: str) -> list[tuple[str, str]]:
    """Verdict and what is said, of each claim of a section."""
    return re.findall(rf"^- \*\*({'|'.join(VERDICTS)})\*\*: (.*)$", text, flags=re.MULTILINE)


def overview(texts: dict[str, str]) -> str:
    """How many claims of each study fared how, and its minutes."""
    shown = list(VERDICTS)
    lines = [
        f"| Study | Reproduces | {' | '.join(shown)} | minutes | full |",
        "|---|---|" + "--:|" * (len(shown) + 2),
    ]
    totals = dict.fromkeys(shown, 0)
    for name, known in STUDIES.items():
        verdicts = [verdict for verdict, _ in verdicts_in(texts[name])]
        totals = {verdict: totals[verdict] + verdicts.count(verdict) for verdict in shown}
        cells = [str(verdicts.count(verdict) or "") for verdict in shown]
        minutes = [f"{known.minutes[scope]:g}" for scope in ("default", "full")]
        lines.append(f"| [{name}](#{name}) | {known.title} | {' | '.join([*cells, *minutes])} |")
    whole = sum(known.minutes["default"] for known in STUDIES.values())
    lines.append(f"| | all | {' | '.join(str(totals[verdict]) for verdict in shown)} | {whole:.0f} | |")
    return "\n".join(
        [
            *lines,
            "",
            f"Minutes are those of one run each on a machine of {CORES} cores, which also did other work; those of "
            "full scopes that were not run are estimates.",
        ]
    )


def section(folder: Path, name: str, run: dict[str, Any]) -> str:
    """One study: what was done, how its claims fared, its tables and pictures."""
    known = STUDIES[name]
    data = ", ".join(f"`{one}`" for one in known.data)
    facts = f"{known.title} [{known.reference}](references.md). {known.protocol}{f' Data: {data}.' if data else ''}"
    parts = [f"## {name}", facts]
    if run["verdicts"]:
        parts.append("\n".join(f"- **{v['verdict']}**: {v['claim']}. {v['reason']}" for v in run["verdicts"]))
    if run["notes"]:
        parts += ["Besides:", "\n".join(f"- {note}" for note in run["notes"])]
    frame = pl.read_csv(folder / f"{name}.csv", infer_schema_length=None, schema_overrides=columns(folder, name))
    parts += [text for table in pivots(frame) for text in markdown(table)]
    parts += [f"![{name}, {figure}](images/studies/{name}-{figure}.png)" for figure in run["figures"]]
    return "\n\n".join([*parts, measured(run)])


def measured(run: dict[str, Any]) -> str:
    """How long the run took, and with what."""
    libraries = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    minutes = f"{run['seconds'] / 60:.1f} minutes on {run['cores']} cores"
    return f"*Took {minutes} that other work may have shared; Python {run['python']}, {libraries}.*"


def columns(folder: Path, name: str) -> dict[str, Any]:
    """Columns of numbers, and columns that say what a figure is of."""
    header = (folder / f"{name}.csv").open().readline().strip().split(",")
    return {column: pl.Float64 if column in NUMBERS else pl.Int64 if column == "n" else pl.String for column in header}


def markdown(table: Pivot) -> list[str]:
    """A table under its heading."""
    head = f"**{table.place}**" + (f" ({', '.join(table.said)})" if table.said else "")
    over = "" if table.over == ("once",) else f", over {' and '.join(table.over)}"
    n_figures = len(table.heads) - table.n_labels
    lines = [f"| {' | '.join(table.heads)} |", "|" + "---|" * table.n_labels + "--:|" * n_figures]
    return [f"{head}{over}:", "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in table.rows)])]


def pictures(folder: Path) -> None:
    """Copy the pictures of the runs, with fewer colours; those of studies that were not run stay."""
    from PIL import Image

    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in STUDIES:
        run = protocol(folder, name)
        if run is None:
            continue
        wanted = {IMAGES / f"{name}-{one}.png" for one in run["figures"]}
        for target in wanted:
            with Image.open(folder / target.name) as picture:
                picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)
        for stale in set(IMAGES.glob(f"{name}-*.png")) - wanted:
            stale.unlink()


def main() -> int:
    """Write the page and its pictures."""
    if len(sys.argv) != 2:
        sys.stderr.write("python docs/make_studies.py FOLDER, where the folder has the files of studies\n")
        return 2
    folder, former = Path(sys.argv[1]), PAGE.read_text() if PAGE.exists() else ""
    missing = [name for name in STUDIES if protocol(folder, name) is None and name not in sections(former)]
    if missing:
        sys.stderr.write(f"{folder} lacks {', '.join(missing)}; run crowdrank study NAME --out {folder}\n")
        return 1
    PAGE.write_text(page(folder, former))
    pictures(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
