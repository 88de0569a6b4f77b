"""What a command says on standard error: what it understood, warnings, how far it is."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ..io.notices import Notice, hear

if TYPE_CHECKING:
    from ..protocols import Progress

PATIENCE = 2.0
"""Seconds that a step may take before it is spoken of."""

LINE_SECONDS = 10.0
"""Seconds between two lines about a step where there is no terminal."""

_POLL_SECONDS = 0.2
_COMPILING = "compiling once for this run and later ones"

_RED, _YELLOW = "1;31", "33"


def one_line(text: str) -> str:
    """Return text on one line, characters that would steer a terminal as a question mark.

    Examples
    --------
    >>> one_line("two\\nlines and \\x1b[31mred")
    'two lines and ?[31mred'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def complain(text: str) -> None:
    """Say what went wrong, in the one line that a failing command leaves."""
    _write(f"{_colour('crowdrank:', _RED)} {one_line(text)}")


def _write(line: str) -> None:
    """Write a line to standard error, if that still listens."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        return


def _colour(text: str, colour: str) -> str:
    """The text in a colour where standard error is a terminal that wants colours."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


class Talk:
    """What one command says while it works; a context that also takes in what readers say, and warnings.

    What is said is held back until a step lasts, a result is shown or the command ends, and is dropped when the command
    fails: a mistake then leaves the one line that says what to do.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._held: list[str] | None = []
        self._said: dict[str, bool] = {}
        self._undo = ExitStack()
        self._said_compiling = False

    def __enter__(self) -> Talk:
        self._undo.enter_context(hear(self.hear))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._undo.close()
        if kind is None:
            self.flush()

    def flush(self) -> None:
        """Say what was held back; whatever comes from now on is said at once."""
        held, self._held = self._held or [], None
        for line in held:
            _write(line)

    def hear(self, notice: Notice) -> None:
        """Say a notice in one line, or hold it back: a warning once, and a note unless silence was asked for."""
        line = one_line(notice.text)
        known = line in self._said
        self._said[line] = notice.text != notice.text.lstrip()
        if (notice.level == "warning" and known) or (notice.level == "note" and self.quiet):
            return
        if notice.level == "warning":
            line = f"{_colour('warning:', _YELLOW)} {line}"
        elif notice.level == "note" and self._said[line]:
            line = f"  {line}"
        if self._held is None:
            _write(line)
        else:
            self._held.append(line)

    def say(self, text: str, *, needed: bool = False) -> None:
        """Say something that is good to know, or ``needed`` also by those who asked for silence."""
        self.hear(Notice(text, "needed" if needed else "note"))

    def was_said(self, text: str) -> bool:
        """Return whether a warning, or a former word, said the same."""
        return one_line(text) in self._said

    def sentences(self) -> list[tuple[str, bool]]:
        """Return what was said, or held back for silence, each once, and whether it belongs to the one before."""
        return list(self._said.items())

    @contextmanager
    def working(self, what: str) -> Iterator[Progress]:
        """Show what is being done once it lasts; the function given can be told how far it is."""
        shown, ended = _Shown(what, sys.stderr.isatty()), threading.Event()

        def begin() -> None:
            self.flush()
            shown.begin()
            if not self._said_compiling and _is_compiling(ended):
                self._said_compiling = True
                shown.say_compiling()

        timer = threading.Timer(PATIENCE, begin)
        timer.daemon = True
        if not self.quiet:
            timer.start()
        try:
            yield shown.advance
        finally:
            timer.cancel()
            ended.set()
            shown.end()


def _is_compiling(ended: threading.Event) -> bool:
    """Wait until something is compiled, or until the end; return whether it is."""
    events: Any = None
    while not hasattr(events, "register"):
        # numba is loaded by the methods that need it, maybe while this lasts
        if ended.wait(_POLL_SECONDS):
            return False
        events = sys.modules.get("numba.core.event")
    recorded = events.RecordingListener()
    events.register("numba:compile", recorded)
    while not recorded.buffer and not ended.wait(_POLL_SECONDS):
        pass
    events.unregister("numba:compile", recorded)
    return bool(recorded.buffer)


class _Shown:
    """A step as it is shown: a moving bar on a terminal, otherwise a line now and then."""

    def __init__(self, what: str, moving: bool) -> None:
        self.what = what
        self.moving = moving
        self._bar: Any = None
        self._task: Any = None
        self._told: float | None = None
        self._lock = threading.Lock()
        self._over = False

    def begin(self) -> None:
        """Show it, unless it is over already."""
        with self._lock:
            if self._over:
                return
            if not self.moving:
                _write(f"{self.what} ...")
                self._told = time.monotonic()
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            described = TextColumn("{task.description}", markup=False)
            columns = (SpinnerColumn(), described, BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.what, total=None)
            self._bar.start()

    def say_compiling(self) -> None:
        """Say that something is compiled, which takes seconds the first time."""
        with self._lock:
            if self._over:
                return
            if self._bar is not None:
                self._bar.update(self._task, description=f"{self.what} ({_COMPILING})")
            else:
                _write(f"{_COMPILING} ...")

    def advance(self, done: int, total: int, name: str) -> None:
        """Take note of how far the step is; without a terminal a line says so every few seconds."""
        what = self.what if name == self.what else f"{self.what}: {name}"
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=what)
        elif self._told is not None and not self._over and time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            _write(what + (f", {done:,} of {total:,} done" if done and total else ""))

    def end(self) -> None:
        """Take it off the terminal."""
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()
