"""Make the pictures of docs/serve.md: the demo is served until its pages have something to show.

    python tools/picture_serve.py [--seconds 120]

Needs Playwright for Python and a Chromium (CROWDRANK_BROWSER, or one on the path).
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> None:
    """Serve the demo, wait, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long programs judge before")
    seconds = parser.parse_args().seconds
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-u", "-m", "crowdrank", "serve", "--demo", "--quiet", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        time.sleep(seconds)
        take(said)
    finally:
        process.terminate()
        process.wait(60)


def take(said: str) -> None:
    """Take every picture of a demo that said where it is."""
    link = re.search(r"grades: +(\S+)", said)
    token = re.search(r"(http\S+)/owner/#(cro_\S+)", said)
    assert link is not None, said
    assert token is not None, said
    place = link.group(1).partition("/j/")[0]
    path = os.environ.get("CROWDRANK_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)))
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for scheme, part in (("light", "overview"), ("light", "review"), ("dark", "people")):
            page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(f"{place}/owner/#{token.group(2)}")
            page.locator("nav a").first.wait_for()
            page.goto(f"{place}/owner/#{part}")
            save(page, f"serve-{part}")
        browser.close()


def save(page: Page, name: str) -> None:
    """Save what a page shows once it is drawn."""
    page.wait_for_timeout(2500)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
