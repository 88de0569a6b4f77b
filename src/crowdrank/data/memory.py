"""How much memory there is, so what would not fit is refused before it is tried."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from ..errors import ParameterError

_UNKNOWN = 4 << 30
"""Bytes taken to be free where the system does not tell."""


def available_memory() -> int:
    """Return the bytes that can be used without swapping, within the limit of the container if there is one."""
    free = _free_memory()
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most, in_use = _number(limit), _number(used)
        if most is not None and in_use is not None:
            free = min(free, max(most - in_use, 0))
    return free


def _free_memory() -> int:
    """Free bytes of the whole machine."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    for pages, share in (("SC_AVPHYS_PAGES", 1), ("SC_PHYS_PAGES", 2)):  # macOS says only what is built in
        with suppress(ValueError, OSError, AttributeError):
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") // share
    with suppress(AttributeError, OSError):
        status = (ctypes.c_uint64 * 8)()  # MEMORYSTATUSEX of Windows: its size and load, in all, free, and more
        status[0] = 64
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):  # type: ignore[attr-defined]
            return int(status[2])
    return _UNKNOWN


def _number(path: str) -> int | None:
    """The number in a file of the system, or ``None``."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


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
        raise ParameterError(
            f"{what} would take about {in_words(n_bytes)}, more than half of the {in_words(free)} of free memory; "
            f"{remedy}"
        )
