"""Compiled loops that two rooms or more call, and a place to keep what numba compiled."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROUNDING = 1e-13
"""Rounding of a sum, relative to the largest size of what is added: some hundred units in the last place."""


def keep_compiled_code() -> str | None:
    """Give numba a folder of this process where neither the package nor the user's cache can be written to.

    Without any such place numba refuses to compile, so that every fit would fail in a container with a file system that
    is read-only. Processes started from this one share the folder, which is gone when it ends.
    """
    if "NUMBA_CACHE_DIR" in os.environ or _is_writable(Path(__file__).parent) or _is_writable(_user_cache()):
        return None
    folder = tempfile.mkdtemp(prefix="crowdrank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = folder
    return folder


def _user_cache() -> Path:
    """The folder of the user in which numba would keep compiled code, or what there is of its path."""
    try:
        path = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:  # no home is known
        return Path(os.devnull)
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _is_writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


keep_compiled_code()
