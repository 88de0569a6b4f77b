"""Draw the pictures of the documentation from the demo's votes: ``python docs/pictures.py``.

The picture of the whole report needs Playwright and Debian's chromium, and is left as it is where they are missing.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.report import AgreementDisplay, BeatsDisplay, ConsensusDisplay, QualityDisplay, TimeDisplay, save_display

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1120, 690


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    votes, consensus = demo()
    draw_displays(votes, consensus, IMAGES)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        cr.report.write(consensus, votes, page, command="crowdrank aggregate votes.csv --report report.html")
        photograph(page)
    photograph_clutter()
    for path in IMAGES.glob("*.png"):
        shrink(path)


def demo() -> tuple[cr.Preferences, cr.Consensus]:
    """The demo's votes and their consensus, which the pictures show."""
    votes = cr.read_judgments(FILE).across_queries()
    return votes, cr.aggregate(votes, "bradley_terry")


def draw_displays(votes: cr.Preferences, consensus: cr.Consensus, folder: Path) -> list[Path]:
    """Draw the pictures made by displays into a folder."""
    displays = {
        "consensus": ConsensusDisplay.from_consensus(consensus),
        "beats": BeatsDisplay.from_consensus(consensus),
        "quality": QualityDisplay.from_consensus(consensus),
        "agreement": AgreementDisplay.from_judgments(votes),
        "time": TimeDisplay.from_judgments(votes, consensus),
    }
    for name, display in displays.items():
        save_display(display, folder / f"{name}.png")
    return [folder / f"{name}.png" for name in displays]


def photograph_clutter() -> None:
    """Run the program about clutter on its page, and keep the first screens of the least and most cluttered pages."""
    from crowdrank.features.page_rendering import Rendered, render_pages, rendering_problem
    from crowdrank.features.raw_items import RawItem

    problem = rendering_problem()
    if problem is not None:
        sys.stderr.write(f"{problem}: the pictures of clutter are left as they are\n")
        return
    program = re.findall(r"^```py\n(.*?)^```$", (IMAGES.parent / "raw-items.md").read_text(), re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        known: dict[str, Any] = {}
        exec(program[0], known)  # our own page
        order = cr.rank(known["fit"], known["features"]).sort("score", descending=True)["item"].to_list()
        for name, item in (("least", order[0]), ("most", order[-1])):
            shown = render_pages([RawItem(item, path=Path("sites", item), root=Path("sites"))])[0]
            assert isinstance(shown, Rendered), shown
            (IMAGES / f"clutter-{name}.png").write_bytes(shown.screenshot)


def photograph(page: Path) -> None:
    """Take a picture of the top of a report, light and dark."""
    browser = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        sys.stderr.write("no browser: the pictures of the report are left as they are\n")
        return
    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            shown = opened.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            shown.goto(page.as_uri())
            shown.screenshot(path=IMAGES / f"report-{scheme}.png")
        opened.close()


def shrink(path: Path) -> None:
    """Write a picture with 128 colours, which is a third of its size and looks the same."""
    from PIL import Image, PngImagePlugin

    about = PngImagePlugin.PngInfo()
    with Image.open(path) as image:
        for key, text in image.info.items():
            if isinstance(text, str):
                about.add_text(key, text)
        small = image.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True, pnginfo=about)


if __name__ == "__main__":
    main()
