"""The annotator's page in a real browser: by keyboard alone, by touch, offline, in two tabs, with hostile content."""

import json
import re
import sqlite3
import struct
import subprocess
import sys
import zlib
from contextlib import closing, suppress

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.serving import PATIENCE, Server, free_port, until

from crowdrank.web.app import PAGES

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) مرحبا"
PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
CONTENT_TYPES = ("text", "markdown", "html")


def png(width, height):
    """A grey picture."""
    rows = b"".join(b"\x00" + b"\x80" * width for _ in range(height))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows))]
    chunks = [(name, data) for name, data in [*parts, (b"IEND", b"")]]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def hostile_items(n):
    rows = [f'q,i{k},"{HOSTILE} {k}",{CONTENT_TYPES[k % 3]},"{HOSTILE}"' for k in range(n)]
    return "query,item,content,content_type,query_content\n" + "\n".join(rows) + "\n"


KINDS = {
    "grade": (60, {"scheme": '"single"'}),
    "preference": (14, {"scheme": '"single"'}),
    "ranking": (20, {"scheme": '"2-overlap"', "set_size": "3", "sets_per_item": "6"}),
}


@pytest.fixture(scope="module", params=KINDS)
def served(request, tmp_path_factory):
    """A campaign of each kind whose items mean harm, and its kind."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "guide.md").write_text(f"# Guide\n\n- be fair\n\n{HOSTILE}")
    n_items, keys = KINDS[request.param]
    given = {"kind": f'"{request.param}"', "consent": '"guide.md"', "name": f'"Judge: {request.param}"', **keys}
    with Server(folder, items=hostile_items(n_items), options=("--quiet",), **given) as running:
        yield running, request.param


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A campaign of preferences for what is not about their kind."""
    folder = tmp_path_factory.mktemp("pages")
    with Server(folder, items=hostile_items(14), options=("--quiet",), kind='"preference"', scheme='"single"') as made:
        yield made


def joined(server, page, name):
    page.goto(f"{server.url}/j/#{server.invite('person')}")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Take part").click()
    page.get_by_text("0 judged", exact=True).wait_for()
    assert "cri_" not in page.url


def saved(page, number):
    """The service has acknowledged so many judgments, and the page is ready for the next."""
    page.get_by_text(f"{number} judged", exact=True).wait_for()
    until(lambda: page.locator("#answers button:disabled").count() == 0)
    ready(page)


def ready(page):
    """The page takes an answer: what it shows has been there for a moment."""
    page.locator("#answers button").first.wait_for()
    until(lambda: page.locator("#answers[aria-busy]").count() == 0)


def press_when_ready(page, key):
    ready(page)
    page.keyboard.press(key)


def drawn(page):
    """The screen shows what the page holds; before that, a touch may still meet the frame of an item that was there."""
    page.screenshot()


def move_first_down(page):
    """Tap until the first item is the second: a touch that met the frame of an item that was there is lost."""

    def is_second():
        return page.locator("ol.order > li").nth(1).get_attribute("aria-label") == "Place 2: item A"

    for _ in range(3):
        drawn(page)
        page.get_by_role("button", name="Move down").first.tap()
        with suppress(AssertionError):
            return until(is_second, 20)
    return until(is_second)


def answers_of(server, name):
    """Answers as the owner gets them, and the order in which items were shown."""
    rows = (json.loads(line) for line in server.owner("GET", "/export?format=native").text.splitlines())
    return [row for row in rows if row["annotator"] == name and not row["skipped"]]


def press(page, kind, number):
    """Answer by keys alone; return what the export should hold."""
    if kind == "grade":
        page.keyboard.press(str(number % 4 + 1))
        return number % 4
    if kind == "preference":
        page.keyboard.press("120"[number % 3])
        return ("a", "b", "tie")[number % 3]
    # the first item goes one place down and is tied there; every third time nothing moves
    if number % 3:
        for key in ("Space", "ArrowDown", "Space", "t"):
            page.keyboard.press(key)
        assert (
            page.locator("ol.order > li").nth(1).get_attribute("aria-label").endswith("item A, tied with the one above")
        )
    page.keyboard.press("Enter")
    return bool(number % 3)


def given(row, kind):
    """The answer of an exported judgment in the words of :func:`press`."""
    if kind == "grade":
        return row["grade"]
    if kind == "preference":
        return {"left": "a", "right": "b", "tie": "tie"}[row["winner"]]
    return any(len(group) > 1 for group in row["order"])


def test_twenty_judgments_by_keyboard_alone(served, watched):
    """From the invite link on, nothing but keys."""
    server, kind = served
    page = watched(viewport={"width": 1000, "height": 700})
    page.goto(f"{server.url}/j/#{server.invite('person')}")
    page.get_by_label("Your name").wait_for()
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="I have read this").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("0 judged", exact=True).wait_for()
    ready(page)
    expected = []
    for number in range(20):
        expected.append(press(page, kind, number))
        saved(page, number + 1)
    page.keyboard.press("z")
    page.get_by_text("Taken back").wait_for()
    page.get_by_text("19 judged", exact=True).wait_for()
    ready(page)
    if kind == "ranking":
        page.keyboard.press("Enter")
    else:
        # the old answer is marked, and given again
        page.locator("[aria-checked=true]").focus()
        page.keyboard.press("Enter")
    saved(page, 20)
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("be fair").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    page.get_by_label("In your words").wait_for()
    page.keyboard.type(HOSTILE[:60])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Skipped.").wait_for()
    rows = answers_of(server, "Ann")
    assert [given(row, kind) for row in rows] == [*expected, expected[-1]]
    assert [row["withdrawn"] for row in rows] == [False] * 19 + [True, False]
    assert rows[-1]["replaces"] == rows[-2]["submission"]


def test_twenty_judgments_by_touch_on_a_phone(served, watched):
    server, kind = served
    page = watched(**PHONE, color_scheme="dark")
    page.goto(f"{server.url}/j/#{server.invite('person')}")
    name = f"Bob {HOSTILE[:40]}"
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Take part").tap()
    page.get_by_role("button", name="I have read this").tap()
    ready(page)
    for number in range(20):
        if kind == "ranking":
            move_first_down(page)
            page.get_by_role("button", name="Send").tap()
        else:
            page.get_by_role("radio").nth(number % 3).tap()
        saved(page, number + 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Take it back").wait_for(state="hidden")
    for button in page.get_by_role("button").all() + page.get_by_role("radio").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
    page.get_by_role("button", name="Undo").tap()
    page.get_by_text("19 judged", exact=True).wait_for()
    ready(page)
    page.get_by_role("button", name="Skip").tap()
    page.get_by_role("button", name="Broken").wait_for()
    drawn(page)
    page.get_by_role("button", name="Broken").tap()
    page.get_by_text("Skipped.").wait_for()
    assert sum(not row["withdrawn"] for row in answers_of(server, name)) == 19


def test_slips_store_nothing(tmp_path, watched):
    """Arrows, keys that are held, and presses on a request that nobody can have seen."""
    items = "item,content\n" + "".join(f'i{n},"{"word " * 3000}{n}"\n' for n in range(6))
    keys = {"kind": '"preference"', "scheme": '"single"'}
    with Server(tmp_path, items=items, options=("--quiet",), **keys) as server:
        page = watched(viewport={"width": 1000, "height": 700})
        joined(server, page, "Ann")
        ready(page)
        for key in ("ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "Space", "PageDown"):
            page.keyboard.press(key)
        # in the row of answers arrows mark another one, and only that
        page.get_by_role("radio", name="A is better").focus()
        for key in ("ArrowRight", "ArrowDown", "Space"):
            page.keyboard.press(key)
        assert page.locator("[aria-checked=true]").all_inner_texts() == ["B is better\n2"]
        assert page.locator("#answers [tabindex='0']").count() == 1
        # the second press comes before the next request has been there for a moment
        page.evaluate("""() => {
          const press = () => document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }));
          new MutationObserver(press).observe(document.getElementById('main'), { childList: true });
          press();
        }""")
        page.get_by_text("Saved: A over B").wait_for()
        saved(page, 1)
        page.reload()
        ready(page)
        page.keyboard.down("2")
        page.keyboard.down("2")
        page.get_by_text("Saved: B over A").wait_for()
        saved(page, 2)
        page.keyboard.down("2")
        page.keyboard.up("2")
        for _ in range(4):
            page.keyboard.down("z")
            page.wait_for_timeout(400)
        page.keyboard.up("z")
        page.get_by_text("1 judged", exact=True).wait_for()
        press_when_ready(page, "0")
        page.get_by_text("Saved: a tie").wait_for()
        page.get_by_role("button", name="Take it back").click()
        page.get_by_text("Taken back").wait_for()
        assert not page.get_by_role("button", name="Take it back").is_visible()
        press_when_ready(page, "2")
        saved(page, 2)
        until(lambda: not page.get_by_text("Saved: B over A").count(), 30)
        rows = answers_of(server, "Ann")
        assert [(given(row, "preference"), row["withdrawn"]) for row in rows] == [
            ("a", False), ("b", True), ("tie", True), ("b", False),
        ]  # fmt: skip


def test_undo_after_the_last_judgment(tmp_path, watched):
    """Whoever has judged everything can still take the last answer back."""
    with Server(tmp_path, items="item,content\nx,One\n", options=("--quiet",), scheme='"single"') as server:
        page = watched()
        joined(server, page, "Ann")
        ready(page)
        page.get_by_role("radio", name="Good").click()
        page.get_by_text("Everything is judged").wait_for()
        page.keyboard.press("z")
        page.get_by_text("0 judged", exact=True).wait_for()
        press_when_ready(page, "1")
        page.get_by_text("Everything is judged").wait_for()
        assert [row["grade"] for row in answers_of(server, "Ann") if row["counted"]] == [0]


def test_offline_reload_and_a_second_tab(server, watched):
    page = watched()
    joined(server, page, "Cy")
    second = page.context.new_page()
    second.goto(f"{server.url}/j/")
    second.locator("#question").wait_for()
    # the other tab goes on by itself: what was answered here is not asked there again
    with second.expect_response("**/api/v1/requests"):
        press_when_ready(page, "1")
    saved(page, 1)
    page.context.set_offline(True)
    press_when_ready(page, "0")
    page.get_by_text("kept on this device").wait_for()
    page.get_by_text("1 judged, 1 waiting", exact=True).wait_for()
    second.get_by_text("1 waiting").wait_for()
    second.close()
    # nothing says saved before the service has it
    assert len(answers_of(server, "Cy")) == 1
    context = page.context
    page.close()
    page = context.new_page()
    context.set_offline(False)
    page.goto(f"{server.url}/j/")
    saved(page, 2)
    assert [given(row, "preference") for row in answers_of(server, "Cy")] == ["a", "tie"]
    assert page.evaluate("localStorage.getItem('crowdrank.outbox')") == "[]"


def test_two_tabs_answer_one_request_once(server, watched):
    page = watched()
    joined(server, page, "Deb")
    second = page.context.new_page()
    second.goto(f"{server.url}/j/")
    second.locator("#question").wait_for()
    # both answer before either hears of the other
    page.context.set_offline(True)
    press_when_ready(page, "1")
    page.get_by_text("kept on this device").wait_for()
    press_when_ready(second, "2")
    second.get_by_text("kept on this device").wait_for()
    page.context.set_offline(False)
    until(lambda: len(answers_of(server, "Deb")) == 1)
    page.get_by_role("radio").first.wait_for()
    second.get_by_role("radio").first.wait_for()
    until(lambda: page.evaluate("localStorage.getItem('crowdrank.outbox')") == "[]")
    # undo takes back what was stored, whichever tab asks
    press_when_ready(second, "z")
    second.get_by_text("Taken back").wait_for()
    assert [row["withdrawn"] for row in answers_of(server, "Deb")] == [True]


def test_an_answer_after_the_lease_is_kept_as_a_spare(tmp_path, watched):
    items = "item,content\nx,One\n"
    with Server(tmp_path, items=items, options=("--quiet",), scheme='"single"', lease_seconds="600") as server:
        page = watched()
        joined(server, page, "Eve")
        page.get_by_role("radio", name="Good").wait_for()
        with closing(sqlite3.connect(server.db, timeout=60)) as connection, connection:
            connection.execute("UPDATE request SET lease_until = 0")
        other = watched()
        joined(server, other, "Fay")
        press_when_ready(other, "1")
        other.get_by_text("Everything is judged").wait_for()
        press_when_ready(page, "3")
        page.get_by_text("1 judged", exact=True).wait_for()
        rows = {row["annotator"]: row["counted"] for row in map(json.loads, server.owner(
            "GET", "/export?format=native").text.splitlines())}  # fmt: skip
        assert rows == {"Eve": False, "Fay": True}


def test_an_annotator_who_was_removed_is_told_once(server, watched):
    page = watched()
    joined(server, page, "Gil")
    page.get_by_role("radio").first.wait_for()
    number = next(one["id"] for one in server.owner("GET", "/annotators").json()["annotators"] if one["name"] == "Gil")
    server.owner("POST", f"/annotators/{number}", {"state": "removed"})
    press_when_ready(page, "1")
    page.get_by_text("you are no longer part of this campaign").wait_for()
    assert not page.get_by_role("button", name="Skip").is_visible()


def test_keys_work_after_a_click_into_an_item_in_html(tmp_path, watched):
    items = 'item,content,content_type\nx,"<p>One</p>",html\n'
    with Server(tmp_path, items=items, options=("--quiet",), scheme='"single"') as server:
        page = watched()
        joined(server, page, "Hal")
        page.frame_locator("iframe").get_by_text("One").click()
        until(lambda: page.evaluate("document.activeElement.id") == "main")
        press_when_ready(page, "2")
        page.get_by_text("Everything is judged").wait_for()


def test_pictures_sounds_and_long_texts(tmp_path, watched):
    """What an item is shows as what it is, no wider than the screen, and answers stay in sight."""
    (tmp_path / "wide.png").write_bytes(png(1200, 300))
    (tmp_path / "a.wav").write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
    arabic = "مرحبا بالعالم " * 300
    items = f'item,content,content_type\nx,wide.png,image\ny,a.wav,audio\nz,"{arabic}",text\n'
    items += 'w,"# Title\n\n- **one**\n- [link](https://example.org/)\n\n`code` <b>no</b>\n\n'
    items += '| a | b |\n|---|--:|\n| **1** | <i>2</i> |\n| lone",markdown\n'
    with Server(tmp_path, items=items, options=("--quiet",), scheme='"single"') as server:
        page = watched(**PHONE)
        joined(server, page, "Ida")
        seen = set()
        for number in range(4):
            page.locator(".item").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            last = page.get_by_role("radio").last.bounding_box()
            assert last["y"] + last["height"] <= 640
            if page.locator("img").count():
                seen.add("image")
                until(lambda: page.evaluate("document.querySelector('img').naturalWidth") == 1200)
            elif page.locator("audio[controls]").count():
                seen.add("audio")
            elif page.locator(".markdown").count():
                seen.add("markdown")
                assert page.locator(".markdown li strong").inner_text() == "one"
                assert page.locator(".markdown a").get_attribute("rel") == "noopener noreferrer"
                assert "<b>no</b>" in page.locator(".markdown").inner_text()
                assert page.locator(".markdown th").all_inner_texts() == ["a", "b"]
                assert page.locator(".markdown td").all_inner_texts() == ["1", "<i>2</i>", "lone"]
            else:
                seen.add("text")
                assert page.locator(".text").evaluate("node => getComputedStyle(node).direction") == "rtl"
            ready(page)
            page.get_by_role("radio").nth(number).tap()
            page.get_by_text(f"{number + 1} judged", exact=True).wait_for()
        assert seen == {"image", "audio", "markdown", "text"}


@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_a_ranking_by_dragging(tmp_path, watched, by):
    items = "item,content\n" + "".join(f'{name},"{name * 30}"\n' for name in "xyz")
    keys = {"kind": '"ranking"', "set_size": "3", "scheme": '"single"'}
    with Server(tmp_path, items=items, options=("--quiet",), **keys) as server:
        page = watched(**(PHONE if by == "touch" else {}))
        joined(server, page, "Jo")
        rows = page.locator("ol.order > li .body")
        rows.first.wait_for()
        before = rows.all_inner_texts()
        drag(page, page.locator(".grip").nth(0), page.locator(".grip").nth(1), by)
        assert rows.all_inner_texts() == [before[1], before[0], before[2]]
        drag(page, page.locator(".grip").nth(2), page.locator(".grip").nth(0), by)
        expected = [before[2], before[1], before[0]]
        assert rows.all_inner_texts() == expected
        ready(page)
        page.get_by_role("button", name="Send").click()
        page.get_by_text("Everything is judged").wait_for()
        assert [group[0] * 30 for group in answers_of(server, "Jo")[0]["order"]] == expected


def drag(page, grip, goal, by):
    """Move an item onto the place of another, in small steps."""
    centres = [(box["x"] + box["width"] / 2, box["y"] + 30) for box in (grip.bounding_box(), goal.bounding_box())]
    (x, y), (_, last) = centres
    last += 40 if last > y else -40
    steps = [y + (last - y) * part / 12 for part in range(13)]
    if by == "mouse":
        page.mouse.move(x, y)
        page.mouse.down()
        for step in steps:
            page.mouse.move(x, step)
        page.mouse.up()
        return
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in steps:
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": step}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_demo_works_with_one_command(tmp_path, watched):
    port = free_port()
    command = [sys.executable, "-m", "crowdrank", "serve", "--demo", "--port", str(port), "--quiet"]
    out = tmp_path / "out.txt"
    with out.open("w") as said, subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT) as process:
        try:
            until(lambda: "stop with Ctrl-C" in out.read_text())
            links = dict(re.findall(r"(annotate pairs|annotate grades|owner's page) *: +(\S+)", out.read_text()))
            until(lambda: answers(port))
            for kind in ("pairs", "grades"):
                page = watched()
                page.goto(links[f"annotate {kind}"])
                page.get_by_role("button", name="Take part").click()
                page.get_by_role("button", name="I have read this").click()
                page.locator("#question" if kind == "pairs" else ".fields").wait_for()
                if kind == "pairs":
                    press_when_ready(page, "1")
                else:
                    # several questions, of which one is only asked of what is not good
                    ready(page)
                    page.locator("input[name=q-help]").nth(3).check()
                    page.locator("#answers button.main").click()
                saved(page, 1)
            # one token opens the list of both campaigns, and from there each
            for place in range(2):
                page = watched()
                page.goto(links["owner's page"])
                page.locator(".campaigns a").nth(1).wait_for()
                assert page.locator(".campaigns a").count() == 2
                page.locator(".campaigns a").nth(place).click()
                page.locator("nav a[href='#people']").click()
                page.locator("section[data-name=Annotators] tbody tr", has_text=re.compile(r"person \d+")).wait_for()
        finally:
            process.terminate()


def answers(port):
    """Whether a service answers."""
    with suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=10).status_code == 200
    return False


QUESTIONS = """
[[question]]
name = "help"
kind = "grade"
text = "How helpful is it?"
grades = ["Bad", "Fair", "Good"]
cant_tell = true
[[question]]
name = "faults"
kind = "choice"
text = "What is wrong with it?"
choices = ["facts", "tone"]
several = true
when = {help = ["Bad", "Fair"]}
[[question]]
name = "why"
kind = "text"
text = "Why?"
required = false
"""


@pytest.mark.parametrize(("language", "theme", "size"), [("en", "light", (360, 640)), ("ar", "dark", (640, 360))])
def test_from_a_panel_through_practice_and_questions_to_the_code(tmp_path, browser, language, theme, size):
    """A person comes from a panel, practises, answers, comments, changes an answer, and gets a code; axe watches."""
    text = (
        "مرحبا **بكم**\n\n- واحد\n  - اثنان"
        if language == "ar"
        else "Sum $\\\\sum_{i=1}^n i = \\\\frac{n(n+1)}{2}$\n\n```python\nx = 1  # one\n```"
    )
    rows = "".join(f'i{n},"{text} {n}",markdown,{"2,Look closely." if n < 2 else ","}\n' for n in range(5))
    keys = {
        "training": "2",
        "pass_mark": "0",
        "per_person": "2",
        "completion": '{code = "C1A2", url = "https://x.example/{code}"}',
    }
    server = Server(
        tmp_path, items=f"item,content,content_type,truth,explanation\n{rows}", options=("--quiet",), **keys
    )
    file = tmp_path / "campaign.toml"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("grades")]
    file.write_text("\n".join(kept) + QUESTIONS)
    words = json.loads((PAGES / f"words-{language}.json").read_text())
    # a colour on its way to another has the contrast of neither
    context = browser.new_context(
        locale=language, color_scheme=theme, bypass_csp=True, viewport={"width": size[0], "height": size[1]},
        reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)

    def looks_right(what):
        # answers are faint for the moment in which none is taken yet
        until(lambda: page.locator("#answers[aria-busy]").count() == 0)
        found = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
        assert not found, (what, found)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), what
        assert page.evaluate("document.documentElement.dir") == ("rtl" if language == "ar" else "ltr")

    def answer(place):
        page.locator(".fields").wait_for()
        ready(page)
        page.locator("input[name=q-help]").nth(place).check()
        # what is wrong is asked of what is not good, and only then
        assert page.locator("input[name=q-faults]").first.is_visible() == (place < 2)
        if place < 2:
            page.locator("#answers button.main").click()
            page.get_by_text("What is wrong with it?").last.wait_for()
            page.locator("input[name=q-faults]").first.check()
        # the bar of answers is in sight, however small the screen is
        box = page.locator("#answers button.main").bounding_box()
        assert 0 <= box["y"] <= size[1] - 30

    try:
        with server:
            page.goto(f"{server.url}/j/?PROLIFIC_PID=p7#{server.invite('person')}")
            page.get_by_role("button", name=words["join"]).wait_for()
            looks_right("join")
            page.get_by_role("button", name=words["join"]).click()
            for _ in range(2):
                answer(2)
                looks_right("practice")
                page.locator("#answers button.main").click()
                page.locator(".feedback.right").get_by_text("Look closely.").wait_for()
                page.locator("#answers button.main").click()
            answer(1)
            looks_right("questions")
            page.locator("#comment").click()
            page.locator("#remark").fill("strange")
            page.locator("dialog button.main").click()
            page.locator("#answers button.main").click()
            page.locator("#total").get_by_text("1", exact=False).wait_for()
            answer(2)
            page.locator("#answers button.main").click()
            page.get_by_text("C1A2", exact=True).wait_for()
            assert page.get_by_role("link", name=words["way_back"]).get_attribute("href") == "https://x.example/C1A2"
            looks_right("done")
            page.locator("#history").click()
            page.locator(".past li").nth(1).wait_for()
            looks_right("history")
            page.locator("#find").fill("strange")
            page.locator("#find").press("Enter")
            until(lambda: page.locator(".past li").count() == 1)
            page.locator(".past li button").first.click()
            page.locator(".fields").wait_for()
            ready(page)
            assert page.locator("input[name=q-help]").nth(1).is_checked()
            page.locator("input[name=q-help]").nth(3).check()
            page.locator("#answers button.main").click()
            page.get_by_text("C1A2", exact=True).wait_for()
            rows = [json.loads(line) for line in server.owner("GET", "/export?format=native").text.splitlines()]
            assert [(row["grade"], row["withdrawn"], row["cant_tell"]) for row in rows] == [
                (1, True, False), (2, False, False), (None, False, True),
            ]  # fmt: skip
            assert (rows[0]["comment"], rows[2]["comment"]) == ("strange", "strange")
    finally:
        context.close()


def test_pairs_can_be_compared_on_any_keyboard(tmp_path, watched):
    """Differences are marked, code and formulas are drawn, and keys of other layouts mean what stands there."""
    texts = ["Pick a pivot: $x^2$\n\n```python\nreturn 1\n```", "Choose a pivot: $x^2$\n\n```python\nreturn 2\n```"]
    rows = "".join(f'i{n},"{text}",markdown,Sort it **well**\n' for n, text in enumerate(texts))
    keys = {"kind": '"preference"', "scheme": '"single"'}
    with Server(
        tmp_path, items=f"item,content,content_type,query_content\n{rows}", options=("--quiet",), **keys
    ) as server:
        page = watched(viewport={"width": 1920, "height": 1080})
        joined(server, page, "Ann")
        ready(page)
        boxes = [page.locator("section.item").nth(place).bounding_box() for place in (0, 1)]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[1]["x"] + boxes[1]["width"] <= 1860
        assert page.locator(".query strong").inner_text() == "well"
        assert page.locator("math msup").count() == 2
        assert page.locator(".code-keyword").all_inner_texts() == ["return"] * 2
        page.get_by_label("Mark differences").check()
        assert sorted(page.locator("mark").all_inner_texts()) == ["1", "2", "Choose", "Pick"]
        page.get_by_label("Mark differences").uncheck()
        assert page.locator("mark").count() == 0
        page.locator("main").focus()
        # the first key of the row of digits gives & on a French keyboard
        page.evaluate(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '&', code: 'Digit1', bubbles: true }))"
        )
        page.get_by_text("Saved: A over B").wait_for()
        page.evaluate(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'я', code: 'KeyZ', bubbles: true }))"
        )
        page.get_by_text("Taken back").wait_for()


def test_the_page_is_light_and_speaks_every_language_whole():
    words = {path.name: json.loads(path.read_text()) for path in PAGES.glob("words-*.json")}
    english = words["words-en.json"]
    assert {name: sorted(english.keys() ^ own.keys()) for name, own in words.items()} == {name: [] for name in words}
    marks = {
        name: {key: sorted(re.findall(r"{\w+}", text)) for key, text in own.items()} for name, own in words.items()
    }
    assert all(own == marks["words-en.json"] for own in marks.values())
    files = [path for path in PAGES.iterdir() if path.name.startswith(("owner", "campaigns", "words-")) is False]
    assert (
        sum(path.stat().st_size for path in files) + 2 * max(len(json.dumps(own)) for own in words.values()) < 150_000
    )
