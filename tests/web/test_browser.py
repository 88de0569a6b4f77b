"""The pages in a real browser: joining, judging by keyboard and by touch, offline, a second tab, hostile content."""

import os
import shutil

import pytest
from tests.web.serving import Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) مرحبا"


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    path = os.environ.get("CROWDRANK_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no browser among {', '.join(NAMES)}; install Debian's chromium")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A campaign of preferences whose items mean harm."""
    folder = tmp_path_factory.mktemp("pages")
    kinds = ("text", "markdown", "html")
    rows = [f'q,i{n},"{HOSTILE} {n}",{kinds[n % 3]},"{HOSTILE}"' for n in range(8)]
    items = "query,item,content,content_type,query_content\n" + "\n".join(rows) + "\n"
    (folder / "guide.md").write_text(f"# Guide\n\n- be fair\n\n{HOSTILE}")
    keys = {"kind": '"preference"', "scheme": '"single"', "consent": '"guide.md"', "lease_seconds": "30"}
    with Server(folder, items=items, options=("--quiet",), **keys) as running:
        yield running


@pytest.fixture
def watched(browser):
    """New pages whose dialogs, errors and broken policies fail the test."""
    contexts, trouble = [], []

    def open_page(**settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda line: trouble.append(line.text) if "Content Security" in line.text else None)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # the sandbox of an item in HTML runs and loads nothing, and says so; everything else is silent
    assert [one for one in trouble if "sandboxed" not in one and '"img-src data:"' not in one] == []


def joined(server, page, name):
    page.goto(f"{server.url}/j/#{server.invite('person')}")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Take part").click()
    page.get_by_role("button", name="I have read this").click()
    page.get_by_role("button", name="Tie").wait_for()
    assert "cri_" not in page.url


def saved(page, number):
    page.get_by_text(f"{number} judged", exact=True).wait_for(timeout=15_000)


def test_judging_by_keyboard_undo_and_offline(server, watched):
    page = watched(viewport={"width": 360, "height": 640})
    joined(server, page, "Ann")
    for number, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown"), 1):
        page.keyboard.press(key)
        saved(page, number)
        page.get_by_role("button", name="Tie").wait_for()
    page.keyboard.press("z")
    saved(page, 2)
    page.context.set_offline(True)
    page.keyboard.press("ArrowLeft")
    page.get_by_text("kept on this device").wait_for()
    # the answer outlives a reload, and is sent from a second tab
    page.context.set_offline(False)
    second = page.context.new_page()
    second.goto(f"{server.url}/j/")
    saved(second, 3)
    assert page.evaluate("document.documentElement.scrollWidth <= 360")
    assert len(page.locator("h1").all()) == 1


def test_judging_by_touch_and_skipping_with_a_reason(server, watched):
    page = watched(viewport={"width": 360, "height": 640}, has_touch=True, color_scheme="dark")
    joined(server, page, f"Bob {HOSTILE[:40]}")
    page.get_by_role("button", name="A ←").tap()
    saved(page, 1)
    for button in page.get_by_role("button").all():
        assert button.bounding_box()["height"] >= 44
    page.get_by_role("button", name="Skip").tap()
    page.get_by_label("In your words").fill(HOSTILE)
    page.get_by_role("button", name="Broken").tap()
    page.get_by_text("Skipped.").wait_for()


def test_the_owner_watches(server, watched):
    page = watched(viewport={"width": 1000, "height": 800})
    page.goto(f"{server.url}/owner/#{server.token}")
    page.get_by_role("heading", name="Annotators").wait_for()
    assert "cro_" not in page.url
    assert page.get_by_text("Judgments").first.is_visible()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Go on").wait_for()
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Pause").wait_for()


def test_the_pages_are_small_and_hold_nothing_inline():
    from crowdrank.web.page_routes import FOLDER

    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 60_000
    for path in files:
        text = path.read_text()
        assert "innerHTML" not in text
        if path.suffix == ".html":
            assert "onclick" not in text
            assert "<style" not in text
            assert "<script>" not in text
