"""The widgets in JupyterLab itself, driven in Chromium: kernel, messages and keys are the real ones."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("anywidget", reason="needs anywidget: pip install 'crowdrank[notebook]'")
pytest.importorskip("jupyterlab", reason="needs JupyterLab: pip install jupyterlab")

CELLS = [
    'import crowdrank as cr\nasked = cr.widget({"item": list("abcd")}, annotator="ann")\nasked',
    'votes = {"item": ["x", "y"] * 3, "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}\n'
    'cr.widget(cr.aggregate(votes, "mean_grade"))',
    'print("order", "".join(asked.consensus.order()), len(asked.judgments))',
]


@pytest.fixture(name="lab")
def _lab(tmp_path):
    cells = [
        {"cell_type": "code", "id": f"c{n}", "source": one, "metadata": {}, "outputs": [], "execution_count": None}
        for n, one in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "votes.ipynb").write_text(json.dumps(book), encoding="utf-8")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    homes = {"JUPYTER_CONFIG_DIR": "c", "JUPYTER_DATA_DIR": "d", "JUPYTER_RUNTIME_DIR": "r", "IPYTHONDIR": "i"}
    env = {**os.environ, **{name: str(tmp_path / folder) for name, folder in homes.items()}}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--port-retries=0",
               "--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}", "--LabApp.news_url=None",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5)
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/lab/tree/votes.ipynb?reset"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_one_judges_and_sorts_in_jupyterlab(lab):
    if shutil.which("chromium") is None:
        pytest.skip("there is no Chromium here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1400})
        page.set_default_timeout(120_000)
        page.goto(lab)

        def run(number):
            cell = page.locator(".jp-CodeCell").nth(number)
            prompt = cell.locator(".jp-InputArea-prompt").first
            # a key that is pressed while the page is still made is lost
            while not re.fullmatch(r"\[(\*|\d+)\]:", prompt.inner_text().strip()):
                cell.locator(".cm-content").click()
                page.keyboard.press("Control+Enter")
                page.wait_for_timeout(2000)

        page.wait_for_selector(".jp-Notebook-cell .cm-content")
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        run(0)
        asks = page.locator(".crowdrank-ask")
        asks.wait_for()
        for number in range(6):
            left, right = asks.locator(".item").evaluate_all("nodes => nodes.map((node) => node.dataset.item)")
            asks.focus()
            page.keyboard.press("1" if left < right else "2")
            asks.locator(f"[role=status]:has-text('{number + 1} judged')").wait_for()
        run(1)
        table = page.locator(".crowdrank-board")
        table.wait_for()
        assert table.locator("tbody tr:first-child td:first-child").inner_text() == "x"
        for _ in range(2):
            table.locator("th button:text-is('score')").click()
        assert table.locator("tbody tr:first-child td:first-child").inner_text() == "y"
        run(2)
        told = page.locator(".jp-OutputArea-output pre", has_text=re.compile("^order"))
        told.wait_for()
        assert told.inner_text().split() == ["order", "abcd", "6"]
        assert page.locator(".jp-CodeCell").count() == 3, "the keys of the widget reached the notebook too"
        browser.close()
