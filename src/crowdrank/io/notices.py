"""The one channel to the user: what readers and verbs have to tell, and warnings; the library by itself stays silent.

A command, the service and programs hear the same notices through :func:`hear`; each shows them in its own way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..errors import ConvergenceWarning, DataWarning


class Notice(NamedTuple):
    """Something said to the user: a ``note``, what is ``needed`` by those who want silence too, or a ``warning``."""

    text: str
    level: str = "note"


Listener = Callable[[Notice], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def say(text: str, *, needed: bool = False) -> None:
    """Tell the listener, if there is one, what was understood or done; ``needed`` is said to quiet users too."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(Notice(text, "needed" if needed else "note"))


def listen(sink: Callable[[str], None] | None) -> None:
    """Send the text of what is said to ``sink`` from now on; ``None`` makes the library silent again.

    Examples
    --------
    >>> heard = []
    >>> listen(heard.append)
    >>> say("read as grades: item, grade")
    >>> listen(None)
    >>> say("nobody hears this")
    >>> heard
    ['read as grades: item, grade']
    """
    _LISTENER.set(None if sink is None else lambda notice: sink(notice.text))


@contextmanager
def hear(listener: Listener, *, warned: bool = True) -> Iterator[None]:
    """Send all notices to one listener while this lasts, and nobody else hears them.

    Where ``warned``, warnings about data and convergence are among them, and what else Python warns of is left out.
    That is a setting of the whole process, which a service with many callers leaves alone.

    Examples
    --------
    >>> heard = []
    >>> with hear(heard.append):
    ...     say("read as grades: item, grade")
    ...     warnings.warn("2 rows were left out", DataWarning)
    >>> [notice.level for notice in heard]
    ['note', 'warning']
    """
    former = _LISTENER.set(listener)
    try:
        with warnings.catch_warnings():
            if warned:
                warnings.simplefilter("ignore")
                for category in (DataWarning, ConvergenceWarning):
                    warnings.simplefilter("always", category)
                warnings.showwarning = lambda message, *_, **__: listener(Notice(str(message), "warning"))
            yield
    finally:
        _LISTENER.reset(former)


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the texts of what is said while this lasts, warnings aside; nobody else hears it.

    Examples
    --------
    >>> with collect_notices() as heard:
    ...     say("read as grades: item, grade")
    >>> heard
    ['read as grades: item, grade']
    """
    texts: list[str] = []
    with hear(lambda notice: texts.append(notice.text), warned=False):
        yield texts
