"""Files written whole or not at all, what to say where one cannot be written, and how much memory there is."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeAlias

from ..errors import ParameterError

PathLike: TypeAlias = "str | os.PathLike[str]"


def plain(text: str) -> str:
    """Return text without quotes on one line, characters that do not print as a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def web_address(path: PathLike) -> str | None:
    """Return what a path says if it is the address of something elsewhere, such as https://example.org/votes.csv.

    Examples
    --------
    >>> web_address(Path("https://example.org/votes.csv")), web_address("C:/votes.csv"), web_address("votes.csv")
    ('https://example.org/votes.csv', None, None)
    """
    # a Path has made one slash of two
    parts = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", str(path))
    return None if parts is None else plain(f"{parts[1].lower()}://{parts[2]}")


def os_reason(error: OSError) -> str:
    """Return why the system refused, as a clause in lower case."""
    return (error.strerror or str(error) or "unknown reason").strip().lower()


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside the target that is renamed to it at the end; a device or pipe is written to directly."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            with target.open("wb") as handle:
                yield handle
            return
    # remove what processes that were killed left of the same target: on this machine, whose short name is part of the
    # file's, as the number of a process says nothing about one on another machine
    begin = f".{target.name[:100]}.{zlib.crc32(platform.node().encode()):08x}."
    with suppress(OSError):
        for name in os.listdir(target.parent):
            words = name.removeprefix(begin).split(".") if name.startswith(begin) and name.endswith(".part") else []
            if len(words) == 3 and words[0].isdigit() and name not in _writing and not _alive(int(words[0])):
                with suppress(OSError):
                    (target.parent / name).unlink()
    part = target.with_name(f"{begin}{os.getpid()}.{os.urandom(3).hex()}.part")
    _writing.add(part.name)
    try:
        with part.open("xb") as handle:
            yield handle
        if target.exists():
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        _writing.discard(part.name)


_writing: set[str] = set()
"""Names of the unfinished files of this process."""


_QUERY_LIMITED_INFORMATION, _ACCESS_DENIED = 0x1000, 5


def _alive(process: int) -> bool:
    """Whether a process other than this one is there; files of this one that it does not know are of an earlier one."""
    if process == os.getpid():
        return False
    if os.name == "nt":  # there signal 0 is Ctrl+C, which would end it
        system = import_module("ctypes").windll.kernel32
        handle = system.OpenProcess(_QUERY_LIMITED_INFORMATION, False, process)
        refused = not handle and system.GetLastError() == _ACCESS_DENIED
        system.CloseHandle(handle)
        return bool(handle) or refused
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


_LOCKED_BYTE = 1 << 30
"""Place of the byte that is locked where systems lock bytes: beyond what anybody writes, so that all can be read."""


def lock_file(handle: IO[Any]) -> bool:
    """Return whether this process got the lock of an open file, which the system takes back when the process ends."""
    try:
        flock = import_module("fcntl")
    except ImportError:
        locking, place = import_module("msvcrt"), handle.tell()
        handle.seek(_LOCKED_BYTE)
        try:
            locking.locking(handle.fileno(), locking.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            handle.seek(place)
        return True
    try:
        flock.flock(handle, flock.LOCK_EX | flock.LOCK_NB)
    except OSError:
        return False
    return True


def refusal(name: str, target: Path, error: OSError) -> str:
    """Return one sentence for what kept a file from being written."""
    if isinstance(error, IsADirectoryError) or target.is_dir():
        return f"{name} is a folder; give the name of a file in it"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"{name} cannot be written because its folder does not exist; make the folder first"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return f"{name} may not be written; choose another folder or change its permissions"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{name} could not be written because the disk is full; nothing was left behind, free some space"
    return f"{name} could not be written: {plain(os_reason(error))}"


_UNKNOWN = 4 << 30
"""Bytes taken to be free where the system does not tell."""


def available_memory() -> int:
    """Return the bytes that can be used without swapping, within the limit of the container if there is one."""
    free = _free_memory()
    for folder, *names in (("", "max", "current"), ("memory/", "limit_in_bytes", "usage_in_bytes")):
        with suppress(OSError, ValueError):  # no such file, or no number in it
            most, in_use = (int(Path(f"/sys/fs/cgroup/{folder}memory.{name}").read_text()) for name in names)
            free = min(free, max(most - in_use, 0))
    return free


def _free_memory() -> int:
    """Free bytes of the whole machine."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    for pages, share in (("SC_AVPHYS_PAGES", 1), ("SC_PHYS_PAGES", 2)):  # macOS says only what is built in
        with suppress(ValueError, OSError, AttributeError):
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") // share
    with suppress(AttributeError, OSError):
        status = (ctypes.c_uint64 * 8)()  # MEMORYSTATUSEX of Windows: its size and load, in all, free, and more
        status[0] = 64
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):  # type: ignore[attr-defined]
            return int(status[2])
    return _UNKNOWN


def in_words(n_bytes: float) -> str:
    """Return a number of bytes in the unit that fits.

    Examples
    --------
    >>> in_words(2_700_000_000), in_words(5_000_000)
    ('2.7 GB', '5.0 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


def expect_room(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse what would take more than half of the memory that is free."""
    free = available_memory()
    if n_bytes > free / 2:
        said = f"{what} would take about {in_words(n_bytes)}, more than half of the {in_words(free)} of free memory"
        raise ParameterError(f"{said}; {remedy}")
