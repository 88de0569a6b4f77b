"""Rules of style sheets: a scanner for braces that is quick, and takes whatever is thrown at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_WANTED = re.compile(r"font|background|display", re.IGNORECASE)
_TEXT = re.compile(r"\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}'")
_MAX_SELECTOR_LENGTH = 500
_PROPERTIES = frozenset(
    ["display", "font", "font-family", "font-size", "font-weight", "font-style", "background", "background-color"]
)

_SIZE = re.compile(r"(-?\d{0,6}(?:\.\d{1,6})?)(px|pt|em|rem|%|pc|cm|mm|in)?")
_PIXELS = {"px": 1.0, "": 1.0, "pt": 4 / 3, "pc": 16.0, "cm": 96 / 2.54, "mm": 9.6 / 2.54, "in": 96.0}
SIZE_WORDS = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0, "xx-large": 32.0,
}  # fmt: skip
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl)a?\([^()]{1,80}\)|\b[a-z]{3,20}\b")
_COLOUR_WORDS = frozenset(
    ["aqua", "beige", "black", "blue", "brown", "coral", "crimson", "cyan", "darkblue", "darkgray", "darkgreen",
     "darkgrey", "darkred", "dimgray", "fuchsia", "gold", "gray", "green", "grey", "indigo", "ivory", "khaki",
     "lavender", "lightblue", "lightgray", "lightgreen", "lightgrey", "lightyellow", "lime", "magenta", "maroon",
     "navy", "olive", "orange", "orchid", "pink", "plum", "purple", "red", "salmon", "silver", "skyblue", "snow",
     "steelblue", "tan", "teal", "tomato", "turquoise", "violet", "wheat", "white", "whitesmoke", "yellow"]
)  # fmt: skip


class Rule(NamedTuple):
    """A selector with the declarations that matter here, and how special it is."""

    selector: str
    declarations: dict[str, str]
    specificity: tuple[int, int, int]


def rules_of(sheet: str) -> Iterator[Rule]:
    """Yield the rules of a style sheet for screens that say something of fonts, backgrounds or display."""
    sheet = _COMMENT.sub(" ", sheet)
    place, kept = 0, [True]
    while (brace := _next_brace(sheet, place)) >= 0:
        head = sheet[place:brace].rpartition(";")[2].strip()
        place = brace + 1
        if sheet[brace] == "}":
            if len(kept) > 1:
                kept.pop()
            continue
        if head.startswith("@"):
            if head[:7].lower() in ("@media ", "@layer ", "@suppor", "@layer") or head.lower() == "@layer":
                kept.append(kept[-1] and _for_screens(head))
                continue
            head = ""
        end = sheet.find("}", place)
        end = len(sheet) if end < 0 else end
        body, place = sheet[place:end], end + 1
        if kept[-1] and head and _WANTED.search(body):
            yield from _rules(head, declarations_of(body))


def _next_brace(sheet: str, place: int) -> int:
    """Position of the next brace, -1 where there is none."""
    opening, closing = sheet.find("{", place), sheet.find("}", place)
    return max(opening, closing) if min(opening, closing) < 0 else min(opening, closing)


def _for_screens(head: str) -> bool:
    """Whether a block of rules is for screens of a usual width."""
    head = head.lower()
    narrow = re.search(r"max-width\s*:\s*(\d{1,5})px", head)
    wide = re.search(r"min-width\s*:\s*(\d{1,5})px", head)
    fits = (narrow is None or int(narrow[1]) >= 1024) and (wide is None or int(wide[1]) <= 1024)
    return fits and "print" not in head and "speech" not in head and "dark" not in head


def _rules(head: str, declarations: dict[str, str]) -> Iterator[Rule]:
    """A rule for each selector of a list."""
    for selector in head.split(",") if declarations else ():
        selector = " ".join(selector.split())
        if selector and len(selector) <= _MAX_SELECTOR_LENGTH and ":" not in selector:
            yield Rule(selector, declarations, _specificity(selector))


def _specificity(selector: str) -> tuple[int, int, int]:
    """Numbers of ids, of classes and attributes, and of names of elements."""
    names = re.findall(r"(?:^|[\s>+~])([a-zA-Z])", selector)
    return selector.count("#"), selector.count(".") + selector.count("["), len(names)


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
        if colon and name in _PROPERTIES:
            declarations[name] = value.partition("!")[0].strip().lower()[:_MAX_SELECTOR_LENGTH]
    return declarations


def pixels(text: str, parent: float) -> float | None:
    """Return a size of type in pixels, ``None`` where it is none; ``parent`` is that of the element around.

    Examples
    --------
    >>> pixels("12pt", 16.0), pixels("1.5em", 10.0), pixels("small", 16.0), pixels("auto", 16.0)
    (16.0, 15.0, 13.0, None)
    """
    if text in SIZE_WORDS:
        return SIZE_WORDS[text]
    if text in ("smaller", "larger"):
        return parent / 1.2 if text == "smaller" else parent * 1.2
    match = _SIZE.fullmatch(text)
    if match is None or match[1] in ("", "-", "."):
        return None
    unit = match[2] or ""
    size = float(match[1]) * {"em": parent, "rem": 16.0, "%": parent / 100}.get(unit, _PIXELS.get(unit, 1.0))
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
