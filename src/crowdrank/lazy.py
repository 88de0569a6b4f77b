"""Public names of a package that are imported when they are first asked for: those of its ``__init__.pyi``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\w+) as \w+$", re.MULTILINE)


def names_of_stub(package: str, file: str) -> tuple[dict[str, str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module of each public name, and ``__getattr__`` and ``__dir__`` of the package of this file."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in _IMPORT.findall(stub)}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return homes, load, lambda: sorted(homes)
