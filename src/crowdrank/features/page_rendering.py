"""Pages in a browser: without a network, from their own folder; numbers counted in them and their first screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import MissingExtraError
from ..wording import option
from .page_source import HOST, MAX_ELEMENTS, MAX_TEXTS, SCREEN_HEIGHT, SCREEN_WIDTH, Site, read_page, site_of
from .raw_items import LISTS, ItemError, RawItem

_HEIGHT = (
    "Math.max(...[document.documentElement, document.body].filter(element => element)"
    ".map(element => element.scrollHeight))"
)
"""The height of the page alone, as page_counting.js counts it."""

BROWSER = "CROWDRANK_BROWSER"
"""Environment variable that names the browser to use."""

DEADLINE = 12.0
"""Seconds for one page; then the browser is closed, and the page is tried again without its scripts."""

_LOAD_MILLISECONDS, _SETTLE_MILLISECONDS, _CLOSE_SECONDS, _LEAVE_SECONDS = 8_000, 250, 5.0, 4.0


class Rendered(NamedTuple):
    """What the browser shows of a page: numbers counted in it, and the first screen as PNG."""

    numbers: dict[str, float]
    screenshot: bytes
    unstable: bool
    """Whether its height was another one when it was read again."""


@cache
def rendering_problem() -> str | None:
    """Return why no page can be rendered here, with the remedy; ``None`` where that works."""
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        return "pages are rendered by the package playwright; install crowdrank[pages] and Chromium"
    if browser_path() is None:
        lacking = "there is no Chromium to render pages with"
        return f"{lacking}; install Debian's chromium, or run playwright install chromium"
    if not _is_root():
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(["unshare", "-n", "true"], capture_output=True, timeout=10, check=True)
        return None
    unsafe = "Chromium has no sandbox when root runs it, and no network namespace can be made here"
    return f"{unsafe}; render pages as an ordinary user"


@cache
def browser_path() -> str | None:
    """Return where the browser is: the one named by the environment, that of the system, or playwright's own."""
    named = os.environ.get(BROWSER) or next(filter(None, map(shutil.which, LISTS["browser"]["commands"])), None)
    if named is not None:
        return named
    own = sorted(Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome"))
    return str(own[-1]) if own else None


def _is_root() -> bool:
    """Whether the system's administrator runs this."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def render_pages(raws: Sequence[RawItem]) -> list[Rendered | str]:
    """Return what a browser shows of each page, or why it shows nothing.

    A thread of its own runs it: that of a notebook has an event loop already.
    """
    outcome = Future[list[Rendered | str]]()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(_render_all(raws)))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result()


async def _render_all(raws: Sequence[RawItem]) -> list[Rendered | str]:
    """The pages one after the other, in one browser as long as none hangs."""
    from playwright.async_api import async_playwright

    pages: list[Rendered | str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with async_playwright() as running:
            browser = _Browser(running, Path(folder))
            for raw in raws:
                try:
                    pages.append(await _render(browser, raw))
                except ItemError as error:
                    pages.append(str(error))
            await browser.close()
    return pages


class _Browser:
    """A browser that is started when it is needed, and anew after a page that hung."""

    def __init__(self, running: Any, folder: Path) -> None:
        self.running, self.folder = running, folder
        self.browser: Any = None

    async def get(self) -> Any:
        """Return the browser."""
        from playwright.async_api import Error

        if self.browser is not None:
            return self.browser
        command: Path | str | None = browser_path()
        if _is_root():
            # started in a network namespace without a route
            command = self.folder / "browser"
            if not command.exists():
                command.write_text(f'#!/bin/sh\nexec unshare -n -- "{browser_path()}" "$@"\n')
                command.chmod(0o700)
        try:
            how = {"chromium_sandbox": not _is_root(), "args": LISTS["browser"]["flags"]}
            self.browser = await self.running.chromium.launch(executable_path=command, headless=True, **how)
        except Error as error:
            said, why = str(error).lower(), f"does not start; run it by hand to see why, or name another in {BROWSER}"
            if "sandbox" in said and "usable" in said:
                why = "has no sandbox here, as this user may not make namespaces; allow user namespaces"
            source = f"or count in the source of pages: {option('screen', 'no')}"
            raise MissingExtraError(f"the browser {browser_path()} {why}, {source}") from None
        return self.browser

    async def close(self) -> None:
        """Close it, however it hangs."""
        browser, self.browser = self.browser, None
        if browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(browser.close(), _CLOSE_SECONDS)


async def _render(browser: _Browser, raw: RawItem) -> Rendered:
    """One page; without its scripts where they keep it from being done in time."""
    from playwright.async_api import Error

    read_page(raw)
    site = site_of(raw)
    reason = f"not done within {DEADLINE:.0f} s"
    for scripts in (True, False):
        try:
            return await asyncio.wait_for(_show(await browser.get(), site, scripts), DEADLINE)
        except TimeoutError:
            await browser.close()
        except Error as error:
            await browser.close()
            reason = f"the browser could not show it ({type(error).__name__})"
    raise ItemError(reason)


async def _show(browser: Any, site: Site, scripts: bool) -> Rendered:
    """The numbers and the picture of a page in a context of its own, once it is loaded, or has had its time."""
    context = await browser.new_context(
        viewport={"width": SCREEN_WIDTH, "height": SCREEN_HEIGHT}, device_scale_factor=1, java_script_enabled=scripts,
        service_workers="block", accept_downloads=False, reduced_motion="reduce", locale="en-US", timezone_id="UTC",
    )  # fmt: skip
    try:
        page = await context.new_page()
        visit = _Visit(site, page, scripts)
        await context.route("**/*", visit.answer)
        await context.route_web_socket("**/*", lambda socket: socket.close())
        context.on("page", lambda other: asyncio.ensure_future(other.close()))
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
        await visit.load()
        await page.wait_for_timeout(_SETTLE_MILLISECONDS)
        _expect_own_site(page)
        script = Path(__file__).with_name("page_counting.js").read_text(encoding="utf-8")
        counts = await _evaluate(
            context, page, f"({script})({SCREEN_WIDTH}, {SCREEN_HEIGHT}, {MAX_ELEMENTS}, {MAX_TEXTS})"
        )
        if not isinstance(counts, dict) or "too_large" in counts:
            raise ItemError(f"more than {MAX_ELEMENTS:,} elements or {MAX_TEXTS:,} texts")
        numbers = {str(name): float(value) for name, value in counts.items()}
        clip = {"x": 0, "y": 0, "width": SCREEN_WIDTH, "height": SCREEN_HEIGHT}
        picture = await page.screenshot(animations="disabled", caret="hide", clip=clip, timeout=DEADLINE * 1000)
        if visit.site.has_scripts:
            await page.wait_for_timeout(_SETTLE_MILLISECONDS)
        again = await _evaluate(context, page, _HEIGHT)
        # on a busy machine a page may leave as late as this, and what was counted be the browser's own page
        _expect_own_site(page)
        return Rendered(numbers, picture, unstable=again != numbers["height"])
    finally:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(context.close(), _CLOSE_SECONDS)


class _Visit:
    """A page that was asked for, and whether it has led on to another one."""

    def __init__(self, site: Site, page: Any, scripts: bool) -> None:
        self.site, self.page, self.scripts = site, page, scripts
        self.is_opened, self.leads_on = False, asyncio.Event()

    async def answer(self, route: Any) -> None:
        """Answer a request from the page's folder, or not at all.

        A page that opens itself again, or another page of its site, by a refresh or a script, goes on being shown.
        """
        with contextlib.suppress(Exception):  # the page may be gone by now
            request = route.request
            file = self.site.file(request.url) if request.method == "GET" else None
            opens = request.is_navigation_request() and request.frame == self.page.main_frame
            if opens and self.is_opened and urlsplit(request.url).hostname == HOST:
                self.leads_on.set()
                await route.abort("aborted")
            else:
                self.is_opened = self.is_opened or opens
                await (route.abort() if file is None else route.fulfill(path=file))

    async def load(self) -> None:
        """Wait until the page is loaded, or has had its time.

        One whose script leads on while it is being loaded stays unfinished, and has to be shown without scripts.
        """
        from playwright.async_api import TimeoutError as TookTooLong

        with contextlib.suppress(TookTooLong):
            opening = self.page.goto(self.site.address, wait_until="load", timeout=_LOAD_MILLISECONDS)
            loading = asyncio.ensure_future(opening)
            leading = asyncio.ensure_future(self.leads_on.wait())
            await asyncio.wait({loading, leading}, return_when=asyncio.FIRST_COMPLETED)
            leading.cancel()
            await asyncio.wait_for(loading, _LEAVE_SECONDS if self.scripts and self.leads_on.is_set() else None)


def _expect_own_site(page: Any) -> None:
    """Refuse a page that has led to somewhere else."""
    if not page.url.startswith(f"http://{HOST}/"):
        raise ItemError("it leads to another site")


async def _evaluate(context: Any, page: Any, expression: str) -> Any:
    """The value of an expression in a world of its own that scripts of the page cannot reach."""
    session = await context.new_cdp_session(page)
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "counting"})
    call = {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True}
    answer = await session.send("Runtime.evaluate", call)
    return answer.get("result", {}).get("value")
