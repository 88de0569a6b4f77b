"""What the readers have to tell the user, sent to the listener; the library by itself stays silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Sink = Callable[[str], None]

_sinks: list[Sink] = []


def say(text: str, *, needed: bool = False) -> None:
    """Tell the listener, if there is one, what a reader understood; what is ``needed`` is said to quiet users too."""
    if _sinks:
        _sinks[-1 if needed else 0](text)


def listen(sink: Sink | None, needed: Sink | None = None) -> None:
    """Send what is said to ``sink`` from now on; ``None`` makes the readers silent again.

    What a user has to know who asked for silence goes to ``needed``, where that is given.

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
    _sinks[:] = [] if sink is None else [sink, needed or sink]


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect what is said while this lasts; nobody else hears it.

    Examples
    --------
    >>> with collect_notices() as heard:
    ...     say("read as grades: item, grade")
    >>> heard
    ['read as grades: item, grade']
    """
    before, notices = list(_sinks), list[str]()
    _sinks[:] = [notices.append, notices.append]
    try:
        yield notices
    finally:
        _sinks[:] = before
