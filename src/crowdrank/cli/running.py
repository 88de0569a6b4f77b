"""From the words on the command line to an exit code; whatever goes wrong is said in one line."""

from __future__ import annotations

import codecs
import contextlib
import contextvars
import gc
import io
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import CrowdrankError, ParameterError
from ..wording import WINDOWS, on_command_line, shell_words
from .talk import Talk, complain

TRACEBACK = "CROWDRANK_TRACEBACK"
"""Environment variable that, when set, shows where in the code an error arose."""

_SECONDS_WITHOUT_GARBAGE = 2.0

MISTAKE, BUG, BROKEN_PIPE, INTERRUPTED, FAILED = 2, 1, 1, 130, 3

_PLAINER = dict(zip("─━╶╴│●–—…×", "----|*--.x", strict=True))
_ERRORS = "crowdrank.plainer"

_BROKEN_PIPES = (109, 232) if WINDOWS else (32,)
"""What the system calls a pipe whose reader went away; 32 is on Windows a file that another program uses."""

_given: list[str] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for a mistake of the user's, 1 for one of ours, 3 for --fail-if.

    Parameters
    ----------
    arguments
        Words after ``crowdrank``; ``None`` takes those the program was started with.

    Examples
    --------
    >>> main(["--version"])
    crowdrank 1.0.0rc1
    0
    """
    _mend_streams()
    try:
        # what a command sets for what it calls ends with it
        with on_command_line():
            code = contextvars.copy_context().run(_run, arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        code = _explain(error)
    if code == INTERRUPTED:
        complain("interrupted; no partial file was left")
    return code


def command_line() -> str:
    """Return the command that is being run, as it could be given to a shell."""
    return shell_words(["crowdrank", *_given])


def run() -> None:
    """Run the command this program was started with, and leave.

    The process ends at once: taking apart what numba and polars hold costs a sixth of a second and serves nobody. Nor
    does looking for garbage while they are loaded, which is a tenth of a short command; a longer one begins it later.
    """
    gc.disable()
    later = threading.Timer(_SECONDS_WITHOUT_GARBAGE, gc.enable)
    later.daemon = True
    later.start()
    code = main()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Exit code of the command, as typer's own handling would have it."""
    from typer.main import get_command

    from .app import app

    _given[:] = sys.argv[1:] if arguments is None else arguments
    try:
        status: Any = get_command(app).main(arguments, prog_name="crowdrank", standalone_mode=False)
    except SystemExit as leaving:
        status = leaving.code
    return status if isinstance(status, int) else 0


def say_failed(error: Exception, what: str, *, fatal: bool) -> None:
    """Say that something besides the result failed; raise the error where that was asked for."""
    if fatal:
        raise error
    _show_traceback(error)
    complain(f"{what}, but the result is not affected: {_sentence(error)}")


def fail_where(holding: Sequence[str], talk: Talk) -> None:
    """End with the code of --fail-if where some of its conditions hold, which are given in words."""
    if holding:
        from typer import Exit

        talk.flush()
        complain(f"--fail-if: {'; '.join(holding)}")
        raise Exit(FAILED)


def _show_traceback(error: Exception) -> None:
    """Show where an error arose, to anyone who asked for that."""
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error)


def _explain(error: Any) -> int:
    """Say what went wrong, and return the exit code for it."""
    _show_traceback(error)
    # the reader of our output went away; polars says so in words only
    if isinstance(error, BrokenPipeError) or (
        isinstance(error, OSError) and any(f"os error {number}" in str(error) for number in _BROKEN_PIPES)
    ):
        # the rest goes nowhere, so that the interpreter does not complain at exit either
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return BROKEN_PIPE
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    # typer's usage errors: their class moved between its versions, what they can do did not
    if hasattr(error, "format_message"):
        text = error.format_message().strip().rstrip(".")
        command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "crowdrank"
        complain(f"{text[:1].lower()}{text[1:]}; see {command} --help")
        return MISTAKE
    complain(_sentence(error))
    return MISTAKE if isinstance(error, CrowdrankError | OSError | MemoryError) else BUG


def _sentence(error: Exception) -> str:
    """What went wrong, and what to do."""
    if isinstance(error, CrowdrankError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'standard output'} cannot be used: {(error.strerror or str(error)).lower()}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give fewer judgments at a time, or use a larger machine"
    remedy = f"please report it with the traceback that {TRACEBACK}=1 shows"
    return f"{type(error).__name__}: {error}; this is a bug, {remedy}"


def _mend_streams() -> None:
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

    def plainer(error: UnicodeError) -> tuple[str, int]:
        """What to write in place of characters that a stream cannot take."""
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return "".join(_PLAINER.get(letter, "?") for letter in error.object[error.start : error.end]), error.end

    codecs.register_error(_ERRORS, plainer)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding not in ("utf8", "utf8sig", "utf16", "utf32") and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


class _Closed(io.TextIOBase):
    """A standard output that was closed."""

    @property
    def buffer(self) -> Any:
        """What takes bytes: itself, since neither can be written."""
        return self

    def write(self, _: Any) -> NoReturn:
        """Refuse."""
        raise ParameterError("standard output is closed; write to a file with --out FILE")
