"""Columns of a page from its source: files of its own folder, rules of its style sheets, counts along its elements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from .raw_items import LISTS, ItemError, RawItem

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


_LISTS = LISTS["page"]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_WANTED = re.compile(r"font|background|display", re.IGNORECASE)
_TEXT = re.compile(r"\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}'")
_BRACE = re.compile(r"[{}]")
_MAX_SELECTOR_LENGTH = 500
_SIZE = re.compile(r"(-?\d{0,6}(?:\.\d{1,6})?)(px|pt|em|rem|%|pc|cm|mm|in)?")
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl)a?\([^()]{1,80}\)|\b[a-z]{3,20}\b")
_COLOUR_WORDS = frozenset(_LISTS["colours"])


class Rule(NamedTuple):
    """A selector with the declarations that matter here, and how special it is."""

    selector: str
    declarations: dict[str, str]
    specificity: tuple[int, int, int]


def rules_of(sheet: str) -> Iterator[Rule]:
    """Yield the rules of a style sheet for screens that say something of fonts, backgrounds or display."""
    sheet = _COMMENT.sub(" ", sheet)
    place, kept = 0, [True]
    while (match := _BRACE.search(sheet, place)) is not None:
        brace = match.start()
        head = sheet[place:brace].rpartition(";")[2].strip()
        place = brace + 1
        if sheet[brace] == "}":
            if len(kept) > 1:
                kept.pop()
            continue
        if head.startswith("@"):
            if head[:7].lower() in ("@media ", "@layer ", "@suppor", "@layer") or head.lower() == "@layer":
                # whether the block is for screens of a usual width
                condition = head.lower()
                narrow = re.search(r"max-width\s*:\s*(\d{1,5})px", condition)
                wide = re.search(r"min-width\s*:\s*(\d{1,5})px", condition)
                fits = (narrow is None or int(narrow[1]) >= 1024) and (wide is None or int(wide[1]) <= 1024)
                kept.append(kept[-1] and fits and not any(word in condition for word in ("print", "speech", "dark")))
                continue
            head = ""
        end = sheet.find("}", place)
        end = len(sheet) if end < 0 else end
        body, place = sheet[place:end], end + 1
        if not (kept[-1] and head and _WANTED.search(body)) or not (declarations := declarations_of(body)):
            continue
        for one in head.split(","):
            selector = " ".join(one.split())
            if selector and len(selector) <= _MAX_SELECTOR_LENGTH and ":" not in selector:
                # numbers of ids, of classes and attributes, and of names of elements
                names = re.findall(r"(?:^|[\s>+~])([a-zA-Z])", selector)
                specificity = selector.count("#"), selector.count(".") + selector.count("["), len(names)
                yield Rule(selector, declarations, specificity)


def declarations_of(body: str) -> dict[str, str]:
    """Return the declarations that matter here: property -> value, in lower case.

    Examples
    --------
    >>> declarations_of("color: red; Font-Size: 12PX !important; width: 3em")
    {'font-size': '12px'}
    """
    declarations = {}
    for part in body.split(";"):
        name, colon, value = part.partition(":")
        name = name.strip().lower()
        if colon and name in _LISTS["properties"]:
            declarations[name] = value.partition("!")[0].strip().lower()[:_MAX_SELECTOR_LENGTH]
    return declarations


def pixels(text: str, parent: float) -> float | None:
    """Return a size of type in pixels, ``None`` where it is none; ``parent`` is that of the element around.

    Examples
    --------
    >>> pixels("12pt", 16.0), pixels("1.5em", 10.0), pixels("small", 16.0), pixels("auto", 16.0)
    (16.0, 15.0, 13.0, None)
    """
    if text in _LISTS["size_words"]:
        return float(_LISTS["size_words"][text])
    if text in ("smaller", "larger"):
        return parent / 1.2 if text == "smaller" else parent * 1.2
    match = _SIZE.fullmatch(text)
    if match is None or match[1] in ("", "-", "."):
        return None
    units = _LISTS["pixels"] | {"em": parent, "rem": 16.0, "%": parent / 100}
    size = float(match[1]) * units[match[2] or ""]
    return size if 0 <= size <= 1000 else None


def colour_in(text: str) -> str | None:
    """Return the first colour of a value, ``None`` where there is none, or a transparent one.

    Examples
    --------
    >>> colour_in("#FFF url(x.png) no-repeat".lower()), colour_in("none"), colour_in("rgba(0, 0, 0, 0)")
    ('#ffffff', None, None)
    """
    for colour in _COLOUR.findall(_TEXT.sub(" ", text)):
        if colour.startswith("#"):
            digits = colour[1:]
            return f"#{''.join(digit * 2 for digit in digits)}" if len(digits) in (3, 4) else colour
        if "(" in colour:
            plain = "".join(colour.split())
            return None if re.search(r"a\([^()]*[,/](?:0|0?\.0+|0%)\)$", plain) else plain
        if colour in _COLOUR_WORDS:
            return str(colour)
    return None


MAX_ELEMENTS, MAX_TEXTS = 50_000, 200_000
"""Pages beyond are refused."""

SCREEN_WIDTH, SCREEN_HEIGHT = 1024, 768
_MAX_SHEETS = 60

_NO_TEXT = frozenset(["script", "style", "noscript", "template", "textarea", "option", "head", "title"])
_IMAGES = frozenset(["img", "svg", "canvas", "video"])
_INLINE = frozenset(_LISTS["inline"])
_CHARACTER_WIDTH, _LINE_HEIGHT, _TEXT_WIDTH = 0.5, 1.2, 960.0
_UNKNOWN_IMAGE_HEIGHT = 150.0


@dataclass
class PageCounts:
    """What is counted on a page; the columns are made of it."""

    texts: int = 0
    links: int = 0
    fonts: set[Any] = field(default_factory=set)
    characters: int = 0
    sizes: float = 0.0
    """Sum of the sizes of all characters."""
    tables: int = 0
    colours: set[str] = field(default_factory=set)
    images: int = 0
    height: float = 0.0

    def columns(self) -> list[float]:
        """Return the eight columns."""
        return eight_columns(vars(self) | {"fonts": len(self.fonts), "colours": len(self.colours)})


def eight_columns(counts: Mapping[str, float]) -> list[float]:
    """Return the columns of what is counted on a page, logarithms for the most part; no mean size without text."""
    size = counts["sizes"] / counts["characters"] if counts["characters"] else math.nan
    logs = [math.log1p(counts[name]) for name in ("texts", "links", "fonts", "tables", "colours", "images")]
    return [*logs[:3], size, *logs[3:], counts["height"] / SCREEN_WIDTH]


class _Style(NamedTuple):
    """What an element hands down to those within it."""

    family: str = ""
    size: float = 16.0
    link: bool = False


def count_source(raw: RawItem) -> PageCounts:
    """Return the counts of a page from its source."""
    from selectolax.lexbor import LexborHTMLParser

    data, site = read_page(raw), site_of(raw)
    _expect_shallow(data)
    try:
        tree = LexborHTMLParser(data)
    except (ValueError, UnicodeError, RuntimeError) as error:
        raise ItemError(f"no html that can be parsed ({type(error).__name__})") from None
    counts = PageCounts()
    root = tree.root
    if root is not None:
        _walk(root, _match_declarations(tree, site), counts)
    counts.height = max(counts.height, float(SCREEN_HEIGHT))
    return counts


_MAX_DEPTH = 5_000
"""Elements within each other; browsers stop at some hundred, and the parser takes the square of it."""

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NOT_NESTED = frozenset(name.encode() for name in _LISTS["not_nested"])


def _expect_shallow(data: bytes) -> None:
    """Refuse a page of elements within each other that would keep the parser busy for hours."""
    if data.count(b"<") <= _MAX_DEPTH:
        return
    depth = 0
    for closing, name in _TAG.findall(data):
        if name.lower() in _NOT_NESTED:
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > _MAX_DEPTH:
            raise ItemError(f"more than {_MAX_DEPTH:,} elements within each other")


def sheets_of(tree: Any, site: Site) -> Iterator[str]:
    """Yield the style sheets of a page that are in it or in its folder, in their order."""
    for node in _sheet_nodes(tree):
        if node.tag == "style":
            yield node.text() or ""
        elif (sheet := site.file(node.attributes.get("href") or "")) is not None:
            yield sheet.read_bytes()[:MAX_FILE_BYTES].decode("utf-8", "replace")


def count_missing_sheets(raw: RawItem) -> int:
    """Return how many style sheets a page links to that are not in its folder, so that it is shown without them."""
    from selectolax.lexbor import LexborHTMLParser

    site = site_of(raw)
    links = [node for node in _sheet_nodes(LexborHTMLParser(read_page(raw))) if node.tag == "link"]
    addresses = [(node.attributes.get("href") or "").strip() for node in links]
    return sum(site.file(one) is None for one in addresses if not one.lower().startswith("data:"))


def _sheet_nodes(tree: Any) -> Iterator[Any]:
    """The elements that hold a style sheet for screens, or link to one."""
    for node in islice(tree.css("style, link"), _MAX_SHEETS):
        given = node.attributes
        for_print = "print" in (given.get("media") or "").lower()
        if not for_print and (node.tag == "style" or "stylesheet" in (given.get("rel") or "").lower()):
            yield node


def _match_declarations(tree: Any, site: Site) -> dict[int, list[tuple[tuple[int, int, int], int, dict[str, str]]]]:
    """The declarations that match each element, by its number in memory."""
    matches: dict[int, list[tuple[tuple[int, int, int], int, dict[str, str]]]] = {}
    rules: list[Rule] = [rule for sheet in sheets_of(tree, site) for rule in rules_of(sheet)]
    # classes and ids that occur, with the marks that selectors put before them
    known: set[str] = set()
    for node in tree.css("[class], [id]"):
        known.update(f".{name}" for name in (node.attributes.get("class") or "").split())
        known.add(f"#{node.attributes.get('id') or ''}")
    for number, rule in enumerate(rules):
        # all classes and ids of a selector must occur on the page: those of most rules of a framework do not
        parts = rule.selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
        plain = " ".join(part for part in parts if "[" not in part and "(" not in part and "\\" not in part)
        marked = plain.replace(".", " .").replace("#", " #").split()
        if any(name[0] in ".#" and name not in known for name in marked):
            continue
        try:
            nodes = tree.css(rule.selector)
        except (ValueError, RuntimeError):  # a selector that the parser does not know
            continue
        for node in nodes:
            matches.setdefault(node.mem_id, []).append((rule.specificity, number, rule.declarations))
    return matches


def _walk(root: Any, matched: dict[int, Any], counts: PageCounts) -> None:
    """Count along the tree; what is not displayed is left out with all that is in it."""
    stack: list[tuple[Any, _Style]] = [(root, _Style())]
    n_elements = 0
    while stack:
        node, style = stack.pop()
        tag = node.tag
        if tag == "-text":
            length = len(" ".join((node.text_content or "").split()))
            if not length:
                continue
            counts.texts += 1
            if counts.texts > MAX_TEXTS:
                raise ItemError(f"more than {MAX_TEXTS:,} texts")
            counts.links += style.link
            counts.fonts.add((style.family, round(style.size)))
            counts.characters += length
            counts.sizes += length * style.size
            lines = length * style.size * _CHARACTER_WIDTH / _TEXT_WIDTH
            if node.parent is None or node.parent.tag not in _INLINE:
                lines = float(math.ceil(lines))
            counts.height += lines * style.size * _LINE_HEIGHT
            continue
        if tag is None or tag.startswith(("-", "!", "_")):
            continue
        n_elements += 1
        if n_elements > MAX_ELEMENTS:
            raise ItemError(f"more than {MAX_ELEMENTS:,} elements")
        if tag in _NO_TEXT:
            continue
        given = node.attributes
        # the most special declarations and the last win
        declared: dict[str, str] = {}
        for _, _, declarations in sorted(matched.get(node.mem_id, ()), key=lambda match: match[:2]):
            declared |= declarations
        if given.get("style"):
            declared |= declarations_of(given["style"])
        if declared.get("display") == "none" or "hidden" in given:
            continue
        counts.tables += tag == "table"
        if tag in _IMAGES or (tag == "input" and (given.get("type") or "").lower() == "image"):
            counts.images += 1
            height = pixels((given.get("height") or "").strip().lower(), 16.0)
            counts.height += (height if height is not None else _UNKNOWN_IMAGE_HEIGHT) / 2
        own = (given.get("bgcolor") or "").lower()
        backgrounds = (declared.get("background-color"), declared.get("background"), own)
        counts.colours.update(colour for value in backgrounds if value and (colour := colour_in(value)) is not None)
        inherited = _inherited_style(tag, given, declared, style)
        stack += [(child, inherited) for child in reversed(list(node.iter(include_text=True)))]


def _inherited_style(tag: str, given: Any, declared: dict[str, str], style: _Style) -> _Style:
    """The style of what is within an element."""
    size, family = style.size * _LISTS["element_sizes"].get(tag, 1.0), style.family
    if tag == "font":
        size = _LISTS["font_sizes"].get((given.get("size") or "").strip(), size)
        family = (given.get("face") or family).partition(",")[0].strip().lower()
    short = declared.get("font", "")
    if "," in short or '"' in short or "'" in short:
        family = short.partition(",")[0].split()[-1]
    elif len(short.split()) > 1:
        family = short.split()[-1]
    # the last that is a size
    sizes = [word for word in short.replace("/", " ").split() if not word.isdigit()]
    for own_size in (pixels(word, style.size) for word in [*sizes, declared.get("font-size", "")]):
        size = size if own_size is None else own_size
    if declared.get("font-family", "inherit") not in ("inherit", "initial"):
        family = declared["font-family"].partition(",")[0]
    link = style.link or (tag == "a" and "href" in given)
    if (family, size, link) == (style.family, style.size, style.link):
        return style
    return _Style(family.strip(" \"'"), size, link)
