"""How numbers and names become sentences: plurals, lists of names, shares, options as the reader would write them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import ParameterError

SHOWN = 5
"""Names listed in a sentence; the others are counted."""


_surface = {"shell": False}


@contextmanager
def on_command_line() -> Iterator[None]:
    """Name options as the command line has them while this lasts."""
    before, _surface["shell"] = _surface["shell"], True
    try:
        yield
    finally:
        _surface["shell"] = before


def option(name: str, value: Any = None) -> str:
    """Return an argument of a verb as the reader would write it.

    Parameters
    ----------
    name
        Its name in Python.
    value
        Its value; ``None`` names the argument only, and ``...`` as a value of a mapping stands for a name to fill in.

    Examples
    --------
    >>> option("want", "grade"), option("levels"), option("columns", {"item": ...})
    ("want='grade'", 'levels=', "columns={'item': ...}")
    >>> with on_command_line():
    ...     print(option("want", "grade"), option("levels"), option("columns", {"item": ...}))
    ...     print(option("winner_codes", {"A": "left", "B": "right"}), option("params", {"ties": "davidson"}))
    ...     print(option("invalid", "drop"), option("levels", ["Bad", "Very good"]))
    --want grade --levels --column item=NAME
    --winner-codes A=left,B=right --set ties=davidson
    --drop-invalid --levels 'Bad,Very good'
    """
    if not _surface["shell"]:
        shown = "" if value is None else repr(value).replace("Ellipsis", "...")
        return f"{name}={shown}"
    from .options import BY_NAME  # its table is only read for a command

    known = BY_NAME.get(name)
    yes, _, no = (f"--{name.replace('_', '-')}" if known is None else known.flags[0]).partition("/")
    if no and value is False:
        return no
    # naming an option that takes no value gives it one
    fixed = known is not None and not known.metavar and isinstance(value, str | bool) and value == known.value
    if value is None or fixed:
        return yes
    if isinstance(value, Mapping):
        value = [f"{key}={'NAME' if one is ... else one}" for key, one in value.items()]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return f"{yes} {shell_words([f'{value:.10g}' if isinstance(value, float) else str(value)])}"


def naming(word: str) -> str:
    """Return how to say which column of a table holds something, for tables that the command line has no option for.

    Examples
    --------
    >>> naming("item")
    "name it with columns={'item': ...}"
    >>> with on_command_line():
    ...     print(naming("item"))
    rename the one that holds it to item
    """
    return f"rename the one that holds it to {word}" if _surface["shell"] else f"name it with columns={{{word!r}: ...}}"


def call(name: str) -> str:
    """Return a call of a method of judgments as the reader would write it.

    Examples
    --------
    >>> call("across_queries")
    '.across_queries()'
    >>> with on_command_line():
    ...     print(call("across_queries"))
    --across-queries
    """
    return f"--{name.replace('_', '-')}" if _surface["shell"] else f".{name}()"


def in_python(text: str) -> str:
    """Return text for readers who write Python, nothing on the command line."""
    return "" if _surface["shell"] else text


def all_at_once(names: Iterable[str]) -> str:
    """Return how to read several columns or values as criteria; Python reads them one by one.

    Examples
    --------
    >>> with on_command_line():
    ...     print(all_at_once(["content", "style"]))
    ; all at once: --criteria content,style
    """
    return f"; all at once: {option('criteria', list(names))}" if _surface["shell"] else ""


def method_label(method: Any) -> str:
    """Return what to call a method: by its class in Python, by its name on the command line.

    Examples
    --------
    >>> from crowdrank.aggregators import CrowdBT
    >>> method_label(CrowdBT())
    'CrowdBT'
    >>> with on_command_line():
    ...     print(method_label(CrowdBT()))
    crowd_bt
    """
    name = type(method).__name__
    return snake_case(name) if _surface["shell"] else name


def snake_case(name: str) -> str:
    """Return the name of a class as the registry and files have it.

    Examples
    --------
    >>> snake_case("CrowdBT"), snake_case("EMElo")
    ('crowd_bt', 'em_elo')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def either(words: Iterable[Any], last: str = "or") -> str:
    """Return words in a row, the last one after ``or``.

    Examples
    --------
    >>> either(["grade", "rank", "order"]), either(["a", "b"], "and")
    ('grade, rank or order', 'a and b')
    """
    each = [str(word) for word in words]
    return f" {last} ".join(filter(None, (", ".join(each[:-1]), each[-1]))) if each else "none"


def plural(word: str) -> str:
    """Return the plural of a noun.

    Examples
    --------
    >>> [plural(word) for word in ("annotator", "query", "class", "more person")]
    ['annotators', 'queries', 'classes', 'more people']
    """
    if word.endswith("person"):
        return f"{word.removesuffix('person')}people"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def counted(number: float, word: str) -> str:
    """Return a number with its noun, which is in the plural unless there is one.

    Examples
    --------
    >>> counted(1200, "query"), counted(1, "item")
    ('1,200 queries', '1 item')
    """
    return f"{number:,} {word if number == 1 else plural(word)}"


def recurring_items(number: int, n_queries: int) -> str:
    """Return that items stand in many queries, and what takes them for the same.

    Examples
    --------
    >>> recurring_items(1, 20)
    '1 item recurs in 20 queries; to take it for the same in all: .across_queries()'
    """
    verb, them = ("recurs", "take it for the same in all") if number == 1 else ("recur", "rank them over all")
    return f"{counted(number, 'item')} {verb} in {n_queries:,} queries; to {them}: {call('across_queries')}"


def of_all(number: int, total: int, word: str) -> str:
    """Return how many of all, in words.

    Examples
    --------
    >>> of_all(3, 30, "annotator"), of_all(4, 4, "query"), of_all(2, 2, "item"), of_all(1, 1, "item")
    ('3 of 30 annotators', 'all 4 queries', 'both items', 'the one item')
    """
    if number == total == 2:
        return f"both {plural(word)}"
    if number == total:
        return f"the one {word}" if total == 1 else f"all {total:,} {plural(word)}"
    return f"{number:,} of {total:,} {plural(word)}"


def first_few(names: Iterable[Any], number: int | None = None, shown: int = SHOWN, *, last: str | None = "and") -> str:
    """Return the first five names, then how many more there are.

    Parameters
    ----------
    names
        The names in words; those beyond the first ``shown`` may be left away.
    number
        How many there are in all; as many as names unless it is given.
    shown
        How many are named.
    last
        The word before the last one; ``None`` for commas throughout, as in cells of tables.

    Examples
    --------
    >>> first_few(["ann"]), first_few(["ann", "bob"]), first_few("abcdefg"), first_few("abcde", 1200)
    ('ann', 'ann and bob', 'a, b, c, d, e and 2 more', 'a, b, c, d, e and 1,195 more')
    """
    words = [str(name) for name in names]
    number = len(words) if number is None else number
    words = [*words[:shown], *([f"{number - shown:,} more"] if number > shown else [])]
    return ", ".join(words) if last is None else either(words, last)


def percent(share: float, *, sign: bool = True, of_belief: bool = False) -> str:
    """Return a share in per cent: never 100 % of what is less than all, never 0 % of what is more than none.

    Without ``sign`` it is as short as the cell of a table wants it. A probability ``of_belief`` is never 0 or 100,
    since what rounds to these is still not certain.

    Examples
    --------
    >>> percent(0.256), percent(0.9999), percent(1.0), percent(0.004), percent(0.0)
    ('26 %', 'over 99 %', '100 %', 'under 1 %', '0 %')
    >>> percent(0.256, sign=False), percent(0.9999, sign=False), percent(1.0, sign=False, of_belief=True)
    ('26', '>99', '>99')
    """
    share = min(max(share, 1e-9), 1.0 - 1e-9) if of_belief else share
    number = f"{100 * max(share, 0.0):.0f}"
    unit, over, under = (" %", "over ", "under ") if sign else ("", ">", "<")
    if share < 1 and number == "100":
        return f"{over}99{unit}"
    return f"{under}1{unit}" if share > 0 and number == "0" else f"{number}{unit}"


def nearest(name: Any, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """Return the known name that is spelt most like another, ``None`` where none is.

    Examples
    --------
    >>> nearest("bord", ["borda", "elo"]), nearest("x", ["borda", "elo"]), nearest("39", ["9", "38"])
    ('borda', None, None)
    """
    import difflib

    if str(name).isdigit():
        # numbers that look alike have nothing to do with each other
        known = [one for one in known if not one.isdigit()]
    return next(iter(difflib.get_close_matches(str(name), list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: Any, known: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return the question after the nearest known name, with a space behind it; nothing where no name is near.

    Examples
    --------
    >>> did_you_mean("bord", ["borda", "elo"]), did_you_mean("x", ["borda", "elo"])
    ("did you mean 'borda'? ", '')
    """
    near = nearest(name, known, cutoff=cutoff)
    return "" if near is None else f"did you mean {near!r}? "


def one_of(value: Any, known: Iterable[str], name: str, *, of_verb: bool = False) -> Any:
    """Return a value that is one of the known ones, or say which is nearest and which there are.

    Parameters
    ----------
    value, known
        What was given, and what may be.
    name
        Its name: of a parameter of a method, or with ``of_verb`` of an argument of a verb, which the command line may
        call otherwise.

    Examples
    --------
    >>> one_of("mean", ("mean", "median"), "start")
    'mean'
    >>> one_of("meen", ("mean", "median"), "start")
    Traceback (most recent call last):
    crowdrank.errors.ParameterError: start='meen' is not known; did you mean 'mean'? choose one of 'mean', 'median'
    """
    names = list(known)
    if isinstance(value, str) and value in names:
        return value
    given = option(name, value) if of_verb and value is not None else f"{name}={value!r}"
    hint = did_you_mean(value, names)
    raise ParameterError(f"{given} is not known; {hint}choose one of {', '.join(map(repr, names))}")


def expect_choices(method: Any, **known: Iterable[str]) -> None:
    """Refuse parameters of a method that are none of the known ones."""
    for name, values in known.items():
        one_of(getattr(method, name), values, name)


def expect_above(method: Any, bound: float, *names: str, hint: str = "") -> None:
    """Refuse parameters of a method that are not above a bound; ``None`` stands for one that was left out.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> expect_above(SimpleNamespace(tol=0.1, ridge=0), 0, "tol", "ridge", hint="use a small one")
    Traceback (most recent call last):
    crowdrank.errors.ParameterError: ridge=0 must be above 0; use a small one
    """
    _expect_numbers(method, names, lambda value: value > bound, f"above {bound}", hint)


def expect_at_least(method: Any, bound: float, *names: str, hint: str = "") -> None:
    """Refuse parameters of a method that are below a bound; ``None`` stands for one that was left out."""
    _expect_numbers(method, names, lambda value: value >= bound, f"at least {bound}", hint)


def _expect_numbers(method: Any, names: Iterable[str], holds: Callable[[Any], bool], what: str, hint: str) -> None:
    """Refuse parameters for which a condition does not hold; NaN and infinity are in no range."""
    for name in names:
        value = getattr(method, name)
        if value == float("inf"):
            raise ParameterError(f"{name}={value} is not finite; give a number")
        if value is not None and not holds(value):
            raise ParameterError(f"{name}={value} must be {what}{hint and f'; {hint}'}")


WINDOWS = os.name == "nt"
_PLAIN_WORD = re.compile(r"[\w./\\:=,@+~-]+")


def shell_words(words: Iterable[str]) -> str:
    """Return words as they are typed to the shell of this system.

    Examples
    --------
    >>> shell_words(["crowdrank", "aggregate", "my votes.csv"])
    "crowdrank aggregate 'my votes.csv'"
    """
    if not WINDOWS:
        import shlex

        return shlex.join(words)
    # double quotes are understood by both of its shells
    return " ".join(w if _PLAIN_WORD.fullmatch(w) else '"' + w.replace('"', '\\"') + '"' for w in words)
