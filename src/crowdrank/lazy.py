"""Public names of a package that are imported when they are first asked for: those of its ``__init__.pyi``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def names_of_stub(package: str, file: str) -> tuple[dict[str, str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module of each public name, and ``__getattr__`` and ``__dir__`` of the package of this file."""
    # each line is: from HOME import NAME as NAME
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        homes = {words[3]: words[1] for line in stub if (words := line.split())[4:5] == ["as"]}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == ".":
            return import_module(f".{name}", package)
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return homes, load, lambda: sorted(homes)
