"""The eight columns of a page from its source and local style sheets, without a browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ...errors import MissingExtraError
from ..raw_items import ItemError, RawItem
from .site_files import MAX_FILE_BYTES, Site, read_page, site_of
from .stylesheets import Rule, colour_in, declarations_of, pixels, rules_of

MAX_ELEMENTS, MAX_TEXTS = 50_000, 200_000
"""Pages beyond are refused."""

SCREEN_WIDTH, SCREEN_HEIGHT = 1024, 768
_MAX_SHEETS = 60

_NO_TEXT = frozenset(["script", "style", "noscript", "template", "textarea", "option", "head", "title"])
_IMAGES = frozenset(["img", "svg", "canvas", "video"])
_INLINE = frozenset(
    ["a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "kbd", "label", "mark", "q", "s", "small", "span",
     "strong", "sub", "sup", "u", "var"]
)  # fmt: skip
_DEFAULT_SIZES = {
    "h1": 2.0, "h2": 1.5, "h3": 1.17, "h5": 0.83, "h6": 0.67, "small": 1 / 1.2, "big": 1.2, "sub": 1 / 1.2,
    "sup": 1 / 1.2, "code": 13 / 16, "pre": 13 / 16, "kbd": 13 / 16, "samp": 13 / 16,
}  # fmt: skip
_FONT_TAG_SIZES = {"1": 10.0, "2": 13.0, "3": 16.0, "4": 18.0, "5": 24.0, "6": 32.0, "7": 48.0}
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
        """Return the eight columns; the mean size is NaN without text."""
        size = self.sizes / self.characters if self.characters else math.nan
        return [
            math.log1p(self.texts), math.log1p(self.links), math.log1p(len(self.fonts)), size,
            math.log1p(self.tables), math.log1p(len(self.colours)), math.log1p(self.images),
            self.height / SCREEN_WIDTH,
        ]  # fmt: skip


@dataclass(frozen=True)
class _Style:
    """What an element hands down to those within it."""

    family: str = ""
    size: float = 16.0
    link: bool = False


def expect_selectolax() -> None:
    """Refuse to go on without the parser."""
    try:
        import selectolax.lexbor  # noqa: F401
    except ImportError:
        raise MissingExtraError("pages are parsed by the package selectolax; install crowdrank[pages]") from None


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
_NOT_NESTED = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot "
    b"colgroup caption option optgroup html head body a".split()
)
"""Elements that hold none, or that the next of their kind closes."""


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
    known = _names_in(tree)
    for number, rule in enumerate(rules):
        if not _could_match(rule.selector, known):
            continue
        try:
            nodes = tree.css(rule.selector)
        except (ValueError, RuntimeError):  # a selector that the parser does not know
            continue
        for node in nodes:
            matches.setdefault(node.mem_id, []).append((rule.specificity, number, rule.declarations))
    return matches


def _names_in(tree: Any) -> set[str]:
    """Classes and ids that occur, with the marks that selectors put before them."""
    names: set[str] = set()
    for node in tree.css("[class], [id]"):
        given = node.attributes
        names.update(f".{name}" for name in (given.get("class") or "").split())
        names.add(f"#{given.get('id') or ''}")
    return names


def _could_match(selector: str, known: set[str]) -> bool:
    """Whether all classes and ids of a selector occur on the page: most rules of a framework do not."""
    last = selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
    for part in last:
        if "[" in part or "(" in part or "\\" in part:
            continue
        marked = part.replace(".", " .").replace("#", " #").split()
        if any(name[0] in ".#" and name not in known for name in marked):
            return False
    return True


def _walk(root: Any, matched: dict[int, Any], counts: PageCounts) -> None:
    """Count along the tree; what is not displayed is left out with all that is in it."""
    stack: list[tuple[Any, _Style]] = [(root, _Style())]
    n_elements = 0
    while stack:
        node, style = stack.pop()
        tag = node.tag
        if tag == "-text":
            _count_text(node, style, counts)
            continue
        if tag is None or tag.startswith(("-", "!", "_")):
            continue
        n_elements += 1
        if n_elements > MAX_ELEMENTS:
            raise ItemError(f"more than {MAX_ELEMENTS:,} elements")
        if tag in _NO_TEXT:
            continue
        given = node.attributes
        declared = _winning_declarations(matched.get(node.mem_id, ()), given.get("style"))
        if declared.get("display") == "none" or "hidden" in given:
            continue
        _count_element(tag, given, declared, counts)
        inherited = _inherited_style(tag, given, declared, style)
        stack += [(child, inherited) for child in reversed(list(node.iter(include_text=True)))]


def _winning_declarations(matches: Any, inline: str | None) -> dict[str, str]:
    """The declarations of an element, of which the most special and the last win."""
    winning: dict[str, str] = {}
    for _, _, declarations in sorted(matches, key=lambda match: match[:2]):
        winning |= declarations
    return winning | declarations_of(inline) if inline else winning


def _count_element(tag: str, given: Any, declared: dict[str, str], counts: PageCounts) -> None:
    """Tables, images and backgrounds."""
    counts.tables += tag == "table"
    if tag in _IMAGES or (tag == "input" and (given.get("type") or "").lower() == "image"):
        counts.images += 1
        height = pixels((given.get("height") or "").strip().lower(), 16.0)
        counts.height += (height if height is not None else _UNKNOWN_IMAGE_HEIGHT) / 2
    for value in (declared.get("background-color"), declared.get("background"), (given.get("bgcolor") or "").lower()):
        colour = colour_in(value) if value else None
        if colour is not None:
            counts.colours.add(colour)


def _inherited_style(tag: str, given: Any, declared: dict[str, str], style: _Style) -> _Style:
    """The style of what is within an element."""
    size = style.size * _DEFAULT_SIZES.get(tag, 1.0)
    family = style.family
    if tag == "font":
        size = _FONT_TAG_SIZES.get((given.get("size") or "").strip(), size)
        family = (given.get("face") or family).partition(",")[0].strip().lower()
    short = declared.get("font", "")
    for word in short.replace("/", " ").split():
        own_size = pixels(word, style.size) if not word.isdigit() else None
        size = size if own_size is None else own_size
    if "," in short or '"' in short or "'" in short:
        family = short.partition(",")[0].split()[-1]
    elif len(short.split()) > 1:
        family = short.split()[-1]
    own_size = pixels(declared["font-size"], style.size) if "font-size" in declared else None
    size = size if own_size is None else own_size
    if "font-family" in declared and declared["font-family"] not in ("inherit", "initial"):
        family = declared["font-family"].partition(",")[0]
    link = style.link or (tag == "a" and "href" in given)
    if (family, size, link) == (style.family, style.size, style.link):
        return style
    return replace(style, family=family.strip(" \"'"), size=size, link=link)


def _count_text(node: Any, style: _Style, counts: PageCounts) -> None:
    """A text, unless it is but white space."""
    length = len(" ".join((node.text_content or "").split()))
    if not length:
        return
    counts.texts += 1
    if counts.texts > MAX_TEXTS:
        raise ItemError(f"more than {MAX_TEXTS:,} texts")
    counts.links += style.link
    counts.fonts.add((style.family, round(style.size)))
    counts.characters += length
    counts.sizes += length * style.size
    lines = length * style.size * _CHARACTER_WIDTH / _TEXT_WIDTH
    parent = node.parent
    if parent is None or parent.tag not in _INLINE:
        lines = float(math.ceil(lines))
    counts.height += lines * style.size * _LINE_HEIGHT
