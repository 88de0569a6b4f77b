"""The owner's page in a real browser, and both pages for people who see, hear or point in other ways."""

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.serving import Server, until

from crowdrank.client import Client, Judgment
from crowdrank.web.app import PAGES

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> مرحبا"
CHECKS = (Path(__file__).parent / "page_checks.js").read_text().partition("\n")[2]
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const name = one.id || one.getAttribute("aria-label") || one.textContent.trim();
  return [one === document.body ? "" : name, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}"""


def expect_accessible(page):
    """Names for everything, one heading of the first rank, enough contrast, nothing cut off."""
    assert page.evaluate(CHECKS) == {"nameless": [], "faint": [], "wide": False, "titles": 1}
    assert page.locator("[role=status][aria-live=polite]").count() == 1


def tabbed(page, number):
    """What Tab reaches, one after the other, each with a visible outline."""
    found = []
    for _ in range(number):
        page.keyboard.press("Tab")
        name, seen = page.evaluate(FOCUSED)
        assert seen or not name, name
        found.append(name)
    return found


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A campaign that two programs have judged, with a fit, a skip, a spare and hostile names."""
    folder = tmp_path_factory.mktemp("busy")
    rows = [f'q,i{n},"{HOSTILE} {n}",{n % 4 if n < 8 else ""}' for n in range(30)]
    items = "query,item,content,truth\n" + "\n".join(rows) + "\n"
    # enough seats for everybody who comes in these tests
    keys = {"scheme": '"9-overlap"', "checks": "0.2", "cost": "{person = 4, program = 1}"}
    with Server(folder, items=items, options=("--quiet",), **keys) as server:
        for name in ("robot", f"evil {HOSTILE[:30]}", "third"):
            with Client.join(server.url, server.invite(), name) as client:
                (first, *rest) = client.requests(24)
                client.skip(first.id, HOSTILE)
                client.submit([Judgment(one.id, {"grade": one.seed % 4}, 1.0) for one in rest])
        until(lambda: server.owner("GET", "/campaign").json()["fit"]["as_of_seq"])
        yield server


PARTS = ("overview", "items", "review", "people", "pay", "settings", "log")


def opened(server, watched, part="overview", **settings):
    page = watched(**settings)
    page.goto(f"{server.url}/owner/#{server.token}")
    page.locator("nav a").first.wait_for()
    assert "cro_" not in page.url
    turn(page, part)
    return page


def turn(page, part):
    """Go to a part of the page, and wait until it is drawn."""
    page.locator(f"nav a[href='#{part}']").click()
    page.locator(f"nav a[href='#{part}'][aria-current]").wait_for()
    page.locator("main section").first.wait_for()


def test_the_owner_watches_and_steers(busy, watched):
    page = opened(busy, watched, viewport={"width": 1200, "height": 800})
    assert "judgments are in" in page.locator(".lead").inner_text()
    page.locator(".findings li").first.wait_for()
    assert page.get_by_text("agreement (alpha)").is_visible()
    assert page.locator("figure svg[aria-label*='after 100 more judgments']").count() == 1
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="Go on", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).wait_for()
    # what happens elsewhere comes by itself, and whoever is on a button stays there
    page.get_by_role("button", name="Full report").focus()
    before = busy.owner("GET", "/campaign").json()["judgments"]["n"]
    with Client.join(busy.url, busy.invite(), "late") as client:
        client.submit([Judgment(one.id, {"grade": 1}) for one in client.requests(1)])
    page.locator(".cards b", has_text=str(before + 1)).first.wait_for()
    assert page.evaluate("document.activeElement.dataset.key") == "Full report"
    # items: content, search, order by the service; a click shows who said what
    turn(page, "items")
    rows = page.locator("section[data-name=Items] tbody tr")
    assert rows.count() == 30
    page.get_by_role("button", name="Score").click()
    page.locator("th[aria-sort=descending]", has_text="Score").wait_for()
    page.get_by_label("Search").fill("i17")
    page.get_by_role("button", name="Find").click()
    until(lambda: rows.count() == 1)
    page.get_by_role("button", name="Item i17").click()
    assert HOSTILE in page.get_by_role("dialog").inner_text()
    assert page.get_by_role("dialog").locator("tbody tr").count() > 1
    page.get_by_role("button", name="Close", exact=True).click()
    # a decision is written down
    turn(page, "review")
    page.locator(".case .badge.problem").first.wait_for()
    page.get_by_role("button", name="Good (case 1)").click()
    until(lambda: busy.owner("GET", "/review").json()["n_decided"])
    # one menu for an annotator
    turn(page, "people")
    page.get_by_role("button", name="Actions on robot").click()
    page.get_by_role("dialog").get_by_role("button", name="Message").click()
    page.get_by_label("Shown on their page").fill("Thank you!")
    page.get_by_role("button", name="Send").click()
    until(lambda: busy.owner("GET", "/people").json()["annotators"][0]["message"] == "Thank you!")
    page.get_by_role("button", name="Actions on late").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    until(lambda: "removed" in page.locator("section[data-name=Annotators] tr", has_text="late").inner_text())
    # settings are in force at once
    turn(page, "settings")
    page.get_by_label("Question").fill("How good is it?")
    page.get_by_role("button", name="Put into force").click()
    until(lambda: busy.owner("GET", "/settings").json()["settings"]["question"] == "How good is it?")
    turn(page, "log")
    page.get_by_text("settings", exact=True).first.wait_for()
    turn(page, "overview")
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_label("How many").fill("3")
    page.get_by_role("button", name="Make it").click()
    page.locator("#links code").wait_for()
    assert "/j/#cri_" in page.locator("#links code").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (360, 640)])
def test_every_part_of_the_owners_page_is_accessible(busy, watched, scheme, size):
    settings = {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": scheme}
    page = opened(busy, watched, **settings)
    for part in PARTS:
        turn(page, part)
        expect_accessible(page)
        expect_no_violation(page)


def expect_no_violation(page):
    """Nothing serious that axe-core finds."""
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == []


def test_everything_can_be_downloaded(busy, watched):
    page = opened(busy, watched)
    names = ("jsonl", "csv", "parquet", "native", "label-studio", "argilla", "qrels", "pairs", "Full report")
    for name in names:
        with page.expect_download() as found:
            page.get_by_role("button", name=name, exact=True).click()
        assert found.value.path().stat().st_size > 100, name
    pairs = [json.loads(line) for line in busy.owner("GET", "/export?format=pairs&margin=0.5").text.splitlines()]
    assert min(pair["margin"] for pair in pairs) >= 0.5
    items = busy.owner("GET", "/consensus").json()["items"]
    assert len(pairs) == sum(one["score"] - other["score"] >= 0.5 for one in items for other in items)
    assert all(pair["chosen"].startswith("<img") and pair["chosen"] != pair["rejected"] for pair in pairs)
    assert busy.owner("GET", "/export?format=csv&margin=1").status_code == 422
    assert busy.owner("GET", "/export?format=pairs&margin=nan").status_code == 422


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1200, 800), (640, 400), (320, 640)])
def test_both_pages_are_accessible(busy, watched, scheme, size):
    """At a desk, at 200 % of a small window, and on the narrowest of phones, light and dark."""
    settings = {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": scheme}
    page = opened(busy, watched, **settings)
    expect_accessible(page)
    page.get_by_role("button", name="Invite", exact=True).click()
    expect_accessible(page)
    page = watched(**settings)
    page.goto(f"{busy.url}/j/#{busy.invite('person')}")
    page.get_by_label("Your name").wait_for()
    expect_accessible(page)
    page.get_by_role("button", name="Take part").click()
    page.get_by_role("radio").first.wait_for()
    expect_accessible(page)
    # a group of radios is one stop
    assert tabbed(page, 5) == ["Bad 1", "skip", "comment", "history", "help"]
    until(lambda: not page.locator("#answers[aria-busy]").count())
    page.keyboard.press("2")
    page.get_by_text("1 judged", exact=True).wait_for()
    until(lambda: not page.locator("#answers[aria-busy], #answers button:disabled").count())
    page.keyboard.press("s")
    page.get_by_label("In your words").wait_for()
    expect_accessible(page)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (
            {"newer": 3, "reads_anew": False, "method": "glad"},
            "3 newer judgments are not in these scores before the next fit",
        ),
        ({"newer": 1, "reads_anew": True}, "1 newer judgment is not in these scores yet."),
        ({"newer": 2, "reads_anew": True, "updated_seq": 71}, "with the judgments up to 71"),
        ({"newer": 0, "reads_anew": False}, None),
    ],
)
def test_the_page_says_which_judgments_its_scores_lack(busy, watched, fit, words):
    page = watched()

    def change(route):
        view = route.fetch().json()
        route.fulfill(json={**view, "fit": {**view["fit"], **fit}})

    page.route("**/api/v1/campaign", change)
    page.goto(f"{busy.url}/owner/#{busy.token}")
    page.locator("nav a").first.wait_for()
    turn(page, "items")
    section = page.locator("section[data-name=Items]")
    section.locator("td").first.wait_for()
    assert section.locator("#stale").count() == (words is not None)
    if words is not None:
        assert words in section.locator("#stale").inner_text()
    assert section.get_by_role("columnheader", name="Since the fit").count() == ("updated_seq" in fit)


def test_the_pages_are_small_and_hold_nothing_inline(busy, watched):
    """A visitor loads one page: each is under 150 kB with all that it loads, in the language with the longest words."""
    longest = max(PAGES.glob("words-*.json"), key=lambda path: path.stat().st_size).stem.removeprefix("words-")
    loaded = {}
    for name, start in (("annotate", f"/j/#{busy.invite('person')}"), ("owner", f"/owner/#{busy.token}")):
        page, sizes = watched(locale=longest), {}
        page.on("response", lambda one, sizes=sizes: "/api/" in one.url or sizes.__setitem__(one.url, len(one.body())))
        page.goto(f"{busy.url}{start}")
        if name == "owner":
            page.locator("nav a").first.wait_for()
            for part in PARTS:
                turn(page, part)
        else:
            page.locator("form button").first.click()
            page.get_by_role("radio").first.wait_for()
        loaded[name] = sizes
    assert all(100 < sum(sizes.values()) < 150_000 for sizes in loaded.values()), loaded
    for path in filter(Path.is_file, PAGES.iterdir()):
        text = path.read_text()
        assert "innerHTML" not in text
        if path.suffix == ".html":
            assert "onclick" not in text
            assert "<style" not in text
            assert "<script>" not in text
