"""The owner's page in a real browser, and both pages for people who see, hear or point in other ways."""

import json
from pathlib import Path

import pytest
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


def opened(server, watched, **settings):
    page = watched(**settings)
    page.goto(f"{server.url}/owner/#{server.token}")
    page.get_by_role("heading", name="Annotators").wait_for()
    assert "cro_" not in page.url
    return page


def test_the_owner_watches_and_steers(busy, watched):
    page = opened(busy, watched, viewport={"width": 1200, "height": 800})
    page.get_by_role("heading", name="Consensus").wait_for()
    items = busy.owner("GET", "/consensus").json()["items"]
    assert page.locator("section[data-name=Consensus] tbody tr").count() == len(items) > 20
    assert page.get_by_text("Agreement (alpha)").is_visible()
    assert page.locator("section[data-name=Annotators] tbody tr").count() == 3
    pause = page.locator(".bar").first.get_by_role("button", name="Pause")
    pause.click()
    page.get_by_role("button", name="Go on", exact=True).click()
    pause.wait_for()
    # what happens elsewhere comes by itself, and whoever is on a button stays there
    page.get_by_role("button", name="Pause robot").focus()
    with Client.join(busy.url, busy.invite(), "late") as client:
        before = busy.owner("GET", "/campaign").json()["judgments"]["n"]
        client.submit([Judgment(one.id, {"grade": 1}) for one in client.requests(1)])
    page.locator(".tile", has_text="Judgments").get_by_text(str(before + 1), exact=True).wait_for()
    assert page.evaluate("document.activeElement.dataset.key") == "Pause robot"
    page.get_by_role("button", name="Pause robot").click()
    page.get_by_role("button", name="Go on robot").click()
    page.get_by_role("button", name="Remove late").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    until(lambda: "removed" in page.locator("tr", has_text="late").inner_text())
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_label("How many").fill("3")
    page.get_by_role("button", name="Make it").click()
    assert "/j/#cri_" in page.locator("#links code").inner_text()


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
    assert tabbed(page, 4) == ["Pause", "Close", "Invite", "Full report"]
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
    assert tabbed(page, 3) == ["Bad 1", "skip", "help"]
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
    section = page.locator("section", has=page.get_by_role("heading", name="Consensus"))
    section.locator("td").first.wait_for()
    assert section.locator("#stale").count() == (words is not None)
    if words is not None:
        assert words in section.locator("#stale").inner_text()
    assert section.get_by_role("columnheader", name="Since the fit").count() == ("updated_seq" in fit)


def test_the_pages_are_small_and_hold_nothing_inline():
    files = [path for path in PAGES.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 60_000
    for path in files:
        text = path.read_text()
        assert "innerHTML" not in text
        if path.suffix == ".html":
            assert "onclick" not in text
            assert "<style" not in text
            assert "<script>" not in text
