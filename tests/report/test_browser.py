"""Reports in a real browser: tables sort and search, nothing from the data runs, nothing is fetched.

Debian's ``chromium`` with Playwright for Python; skipped with a reason where one of them is missing. The environment
variable ``CROWDRANK_BROWSER`` names another browser of that family.
"""

import os
import shutil
import warnings

import polars as pl
import pytest
from tests.report.crowds import HOSTILE, grades, preferences

import crowdrank as cr
from crowdrank.demo import FILE

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    path = os.environ.get("CROWDRANK_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no browser among {', '.join(NAMES)}; install Debian's chromium")
    with playwright.sync_playwright() as running:
        try:
            # without a sandbox, since tests may run as root
            opened = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        except playwright.Error as error:
            pytest.skip(f"the browser {path} does not start: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of the demo, of next to nothing, and of names that mean harm."""
    folder = tmp_path_factory.mktemp("reports")
    methods = {"demo": "bradley_terry", "empty": "mean_grade", "hostile": "bradley_terry", "classes": "dawid_skene"}
    sets = {
        "demo": cr.read_judgments(FILE).across_queries(),
        "empty": cr.Grades.from_rows([("ann", "q", "x", 1)]),
        "hostile": preferences(HOSTILE, HOSTILE, 900, queries=HOSTILE[:2], guess=HOSTILE[:2], seed=1),
        "classes": grades([f"i{k}" for k in range(40)], HOSTILE[:6], words=HOSTILE[:4], nominal=True),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, judged in sets.items():
            cr.report.write(
                cr.aggregate(judged, methods[name]),
                judged,
                folder / f"{name}.html",
                title=f"{name} {HOSTILE[0]}",
                command=HOSTILE[2],
            )
        cr.report.write_evaluation(hostile_runs(), folder / "runs.html", title=f"runs {HOSTILE[0]}", command=HOSTILE[2])
    return folder


def hostile_runs():
    """Two runs whose names, queries, items and slices mean harm."""
    truth = [(query, item, place % 3) for query in HOSTILE for place, item in enumerate(HOSTILE)]
    frame = pl.DataFrame(truth, schema=["query", "item", "grade"], orient="row")
    runs = {
        name: frame.select("query", "item", score=(pl.int_range(pl.len()) * step) % 7)
        for name, step in ((HOSTILE[0], 3), (HOSTILE[1], 5))
    }
    slices = pl.DataFrame({"query": HOSTILE, HOSTILE[2]: [HOSTILE[n % 2] for n in range(len(HOSTILE))]})
    return cr.evaluate_runs(runs, frame.gather_every(2), ["ndcg@3"], baseline=HOSTILE[1], slices=slices)


class Opened:
    """A page that was opened, and what happened while it was."""

    def __init__(self, browser, path, **settings):
        self.context = browser.new_context(viewport={"width": 1200, "height": 900}, **settings)
        self.page = self.context.new_page()
        self.said, self.asked, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def check(self, path):
        """Nothing was said, asked for or run."""
        assert self.said == []
        assert self.dialogs == []
        assert self.asked == [path.as_uri()]
        self.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["demo", "empty", "hostile", "classes", "runs"])
def test_nothing_fails_runs_or_is_fetched(browser, reports, name, scheme):
    path = reports / f"{name}.html"
    opened = Opened(browser, path, color_scheme=scheme)
    page = opened.page
    assert page.title() == f"{name} {HOSTILE[0]}"
    for box in page.locator(".table").all():
        for button in box.locator("th button").all():
            button.click()
        box.locator("input").fill("<script>")
        box.locator("input").fill("")
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back.strip("rgb()").split(", "))) < 200) == (scheme == "dark")
    # the page is no wider than the window
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    opened.check(path)


def cells(box, column):
    """The texts of a column as shown."""
    return box.locator(f"tbody tr td:nth-child({column + 1})").all_text_contents()


def test_tables_are_sorted(browser, reports):
    path = reports / "demo.html"
    opened = Opened(browser, path)
    box = opened.page.locator("#items")
    best = cells(box, 1)
    assert cells(box, 0) == [str(rank) for rank in range(1, 13)]
    box.get_by_role("button", name="score").click()
    assert cells(box, 1) == best
    assert box.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    box.get_by_role("button", name="score").click()
    assert cells(box, 1) == best[::-1]
    assert box.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    box.get_by_role("button", name="item").click()
    assert cells(box, 1) == sorted(best)
    opened.check(path)


def test_tables_are_searched_and_paged(browser, reports):
    path = reports / "demo.html"
    opened = Opened(browser, path)
    box = opened.page.locator("#annotator-table")
    assert len(cells(box, 0)) == 25
    assert box.locator(".count").text_content() == "1–25 of 30"
    box.locator(".next").click()
    assert len(cells(box, 0)) == 5
    assert box.locator(".next").is_disabled()
    box.locator(".former").click()
    box.locator("input").fill("OLG")
    assert cells(box, 0) == ["olga"]
    box.locator("input").fill("nobody of that name")
    assert cells(box, 0) == []
    assert box.locator(".count").text_content() == "nothing found"
    box.locator("input").fill("")
    assert len(cells(box, 0)) == 25
    opened.check(path)


def test_hostile_names_are_shown_as_they_are(browser, reports):
    path = reports / "hostile.html"
    opened = Opened(browser, path)
    box = opened.page.locator("#items")
    box.locator("input").fill("<SCRIPT>alert(1)</script>")
    assert HOSTILE[0] in set(cells(box, 0)) | set(cells(box, 2))
    box.locator("input").fill("onerror=alert(2)")
    assert HOSTILE[1] in set(cells(box, 0)) | set(cells(box, 2))
    assert opened.page.locator("pre").last.text_content() == HOSTILE[2]
    box.locator("input").fill("example.org")
    link = box.locator("tbody a").first
    assert link.get_attribute("href") == HOSTILE[12]
    assert "noopener" in link.get_attribute("rel")
    assert opened.page.locator("img, iframe, object, embed, base").count() == 0
    assert opened.page.locator("script").count() == 1 + opened.page.locator(".table").count()
    opened.check(path)


def test_pictures_can_be_read_in_light_and_dark(browser, reports):
    path = reports / "demo.html"
    for scheme, dark in (("light", False), ("dark", True)):
        opened = Opened(browser, path, color_scheme=scheme)
        colours = opened.page.evaluate(
            "Array.from(document.querySelectorAll('figure svg text')).map((text) => getComputedStyle(text).fill)"
        )
        brightness = [sum(map(int, colour.strip("rgb()").split(", "))) / 765 for colour in set(colours)]
        # text within heat maps has a colour of its own, fit for its cell
        assert (max(brightness) > 0.8) if dark else (min(brightness) < 0.2)
        assert opened.page.locator("figure svg").count() >= 5
        opened.check(path)


def test_without_scripts_the_first_rows_are_there(browser, reports):
    path = reports / "demo.html"
    opened = Opened(browser, path, java_script_enabled=False)
    box = opened.page.locator("#items")
    assert len(cells(box, 0)) == 12
    assert not box.locator("input").is_visible()
    opened.check(path)


def test_it_prints(browser, reports):
    path = reports / "demo.html"
    opened = Opened(browser, path, color_scheme="dark")
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not opened.page.locator("nav").is_visible()
    assert opened.page.pdf(format="A4")[:4] == b"%PDF"
    opened.check(path)


def test_it_fits_a_telephone(browser, reports):
    path = reports / "demo.html"
    opened = Opened(browser, path)
    opened.page.set_viewport_size({"width": 390, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.check(path)
