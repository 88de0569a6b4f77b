"""Standard output and error as they were given to us: closed ones, and those that take ASCII only."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Any, NoReturn

from ..errors import ParameterError

_PLAINER = {"─": "-", "━": "-", "╶": "-", "╴": "-", "│": "|", "●": "*", "–": "-", "—": "-", "…": ".", "×": "x"}
_ERRORS = "crowdrank.plainer"


def mend_streams() -> None:
    """Make standard output and error usable, whatever state the caller left them in.

    A closed descriptor would be given to the next file that is opened, and whatever a library prints would end up in
    it; so closed ones lead nowhere. What is to be printed on a closed standard output is an error in one sentence,
    what is said on a closed standard error is not.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_ERRORS, _plain_characters)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding not in ("utf8", "utf8sig", "utf16", "utf32") and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def _plain_characters(error: UnicodeError) -> tuple[str, int]:
    """What to write in place of characters that a stream cannot take."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAINER.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


class _Closed(io.TextIOBase):
    """A standard output that was closed."""

    @property
    def buffer(self) -> Any:
        """What takes bytes: itself, since neither can be written."""
        return self

    def isatty(self) -> bool:
        """Nobody looks on."""
        return False

    def flush(self) -> None:
        """There is nothing to flush."""

    def write(self, _: Any) -> NoReturn:
        """Refuse."""
        raise ParameterError("standard output is closed; write to a file with --out FILE")
