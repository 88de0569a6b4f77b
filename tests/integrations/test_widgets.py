"""The widgets in Chromium, through anywidget's own protocol: the model that the page talks to is the real widget."""

from __future__ import annotations

import shutil

import pytest

import crowdrank as cr

anywidget = pytest.importorskip("anywidget", reason="needs anywidget: pip install 'crowdrank[notebook]'")
PAGE = """
<div id="cell"></div><script type="module">
  const source = await window.source();
  const { default: widget } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const state = await window.state(), heard = {};
  const model = {
    get: (name) => state[name], on: (event, f) => { heard[event] = f; }, off: () => {},
    send: async (message) => { state.question = await window.send(message); heard["change:question"](); },
  };
  widget.render({ model, el: document.getElementById("cell") });
  document.body.dataset.ready = "yes";
</script>"""


@pytest.fixture
def show():
    if shutil.which("chromium") is None:
        pytest.skip("there is no Chromium here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()

        def open_page(made):
            def send(message):
                made._handle_custom_msg(message, [])
                return made.question

            page.expose_function("source", lambda: made._esm)
            page.expose_function(
                "state", lambda: {n: getattr(made, n) for n in made.keys if n in ("asks", "rows", "question")}
            )
            page.expose_function("send", send)
            page.set_content(PAGE)
            page.wait_for_selector("body[data-ready]", timeout=20_000)
            return page

        yield open_page
        browser.close()


@pytest.mark.filterwarnings("default")
def test_a_leaderboard_sorts(show):
    votes = {"item": ["<b>x</b>", "y", "z"] * 3, "annotator": list("aaabbbccc"), "grade": [3, 1, 2, 2, 1, 2, 3, 2, 2]}
    page = show(cr.widget(cr.aggregate(votes, "mean_grade")))
    first = "tbody tr:first-child td:first-child"
    assert page.inner_text(first) == "<b>x</b>"
    assert page.locator("tbody .bar i").count() == 3
    page.click("th button:text-is('score')")
    page.click("th button:text-is('score')")
    assert page.inner_text(first) == "y"
    assert page.get_attribute("th:nth-child(2)", "aria-sort") == "ascending"


@pytest.mark.filterwarnings("default")
def test_pairs_are_judged_by_keys_and_propose_chooses(show):
    names = [f"i{n}" for n in range(6)]
    made = cr.widget({"item": names, "text": [f"answer <i>{n}</i>" for n in range(6)]}, annotator="ann")
    page = show(made)
    seen = set()
    for number in range(12):
        left, right = page.locator(".item").evaluate_all("nodes => nodes.map((node) => node.dataset.item)")
        assert frozenset((left, right)) not in seen
        seen.add(frozenset((left, right)))
        page.press(".crowdrank-ask", "1" if left < right else "2")
        page.wait_for_function(
            "n => document.querySelector('[role=status]').textContent.startsWith(n)", arg=f"{number + 1} judged"
        )
    assert made.consensus.order() == names
    page.press(".crowdrank-ask", "u")
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.startsWith('11 judged')")
    page.click("text=equal [0]")
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.startsWith('12 judged')")
    assert isinstance(made.judgments, cr.Preferences)
    assert made.judgments.annotators.ids.to_list() == ["ann"]
    assert (made.judgments.frame()["winner"] == "tie").sum() == 1
    made._handle_custom_msg({"answer": "left", "number": 3}, [])
    assert len(made.judgments) == 12
    assert "not kept" in made.question["message"]


@pytest.mark.filterwarnings("default")
def test_grades_are_judged_until_nothing_is_left(show):
    made = cr.widget({"item": ["x", "y"], "query": ["q", "q"]}, levels=["bad", "fair", "good"])
    page = show(made)
    for number in (1, 2):
        item = page.get_attribute(".item", "data-item")
        page.press(".crowdrank-ask", "3" if item == "x" else "1")
        page.wait_for_function(
            "n => document.querySelector('[role=status]').textContent.startsWith(n)", arg=f"{number} judged"
        )
    assert page.inner_text("[role=status]") == "2 judged; nothing is left to ask"
    assert sorted(made.judgments.frame().select("item", "grade").rows()) == [("x", "good"), ("y", "bad")]
