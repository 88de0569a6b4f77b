"""Files that a page refers to: those of its own site's folder, and no others."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from ..raw_items import ItemError, RawItem

MAX_FILE_BYTES = 20_000_000
HOST = "page.invalid"
"""Invented host of every site; the name can never be one of a real host."""

_SCRIPT = re.compile(rb"<script|\son[a-z]+\s*=|javascript:", re.IGNORECASE)


class Site:
    """The folder that a page may read from: its own folder below the one that was given.

    Parameters
    ----------
    page
        The html file.
    root
        Folder that was given; the site is the folder in it that holds the page.
    """

    def __init__(self, page: Path, root: Path) -> None:
        root, full = root.resolve(), page.parent.resolve() / page.name
        self.given = root
        inside = full.relative_to(root).parts if full.is_relative_to(root) else (full.name,)
        start = root if full.is_relative_to(root) else full.parent
        self.folder = start / inside[0] if len(inside) > 1 else start
        self.page = full
        self.address = f"http://{HOST}/{full.relative_to(self.folder).as_posix()}"

    @cached_property
    def has_scripts(self) -> bool:
        """Whether the page has a script, so that it may go on changing."""
        return _SCRIPT.search(self.page.read_bytes()) is not None

    def file(self, address: str) -> Path | None:
        """Return the file of an address, as written in the page or in full; ``None`` for what is not in the folder."""
        try:
            parts = urlsplit(urljoin(self.address, address.strip()))
            if parts.scheme not in ("http", "https") or parts.hostname != HOST:
                return None
            path = (self.folder / unquote(parts.path).lstrip("/")).resolve()
            path = path / "index.html" if path.is_dir() else path
            inside = path.resolve().is_relative_to(self.folder) and path.is_file()
            return path if inside and path.stat().st_size <= MAX_FILE_BYTES else None
        except (ValueError, OSError):
            return None


def site_of(raw: RawItem) -> Site:
    """Return the site of a page's file."""
    assert raw.path is not None
    return Site(raw.path, raw.root or raw.path.parent)


def read_page(raw: RawItem) -> bytes:
    """Return the bytes of a page's file, which may be no link to a file outside of its folder."""
    site = site_of(raw)
    assert raw.path is not None
    if raw.path.is_symlink() and not raw.path.resolve().is_relative_to(site.given):
        raise ItemError("a link to a file outside of the folder")
    return raw.read_bytes(MAX_FILE_BYTES)
