"""Every method by name: the table of contents of the package."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import re
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import ParameterError, UnknownNameError
from .wording import did_you_mean, nearest

_LONGEST_LITERAL = 1000
"""Characters of a parameter in text that are read as a value; Python's own reader fails on thousands of signs."""


def _read_table(name: str) -> dict[str, dict[str, Any]]:
    """A table beside this file."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


FAMILIES: dict[str, dict[str, str]] = _read_table("registry.toml")
"""Name of each method and where it lives, ``module:Class``, by family."""

FITTED = FAMILIES.pop("fitted")
"""Rankers that joint methods give and files hold, but that nobody trains by themselves."""

AGGREGATORS = FAMILIES["aggregator"]

TITLES = {"aggregator": "Aggregators", "ranker": "Rankers", "joint": "Joint methods", "scheme": "Schemes"}
"""What the methods of each family are called."""


def _parameters(other_name: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that another name of a method sets, lists as tuples, as methods hold them."""
    held = {word: tuple(value) if isinstance(value, list) else value for word, value in other_name.items()}
    return {word: None if value == "None" else value for word, value in held.items() if word != "method"}


_NAMES_FOR_KIND = {"preference": {"mv": "majority_preference"}}
"""Kind of judgment -> names that mean another aggregator there: papers call both votes MV."""

ALIASES: dict[str, dict[str, str]] = {}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {}
for _family, _names in _read_table("other_names.toml").items():
    _meant = {name: {"method": one} if isinstance(one, str) else one for name, one in _names.items()}
    ALIASES[_family] = {name: one["method"] for name, one in _meant.items() if name != one["method"]}

    PRESETS[_family] = {name: _parameters(one) for name, one in _meant.items() if len(one) > 1}


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter of a method."""

    name: str
    type: str
    default: Any
    description: str


@dataclass(frozen=True)
class Card:
    """What the registry can tell of a method without fitting anything."""

    name: str
    family: str
    summary: str
    model: str
    when: str
    kinds: tuple[str, ...]
    nominal: bool
    packed: str
    parameters: tuple[Parameter, ...]
    references: tuple[str, ...]
    aliases: tuple[str, ...]
    notes: str
    examples: str

    @property
    def takes(self) -> str:
        """What the method takes, in words."""
        kinds = ", ".join(f"{kind.removesuffix('s')}s" for kind in self.kinds)
        return f"{kinds}; features" if self.family == "joint" else kinds

    def settings(self, alias: str) -> str:
        """Return the parameters that an alias sets, in brackets, for display."""
        preset = PRESETS[self.family].get(alias, {})
        return f" ({', '.join(f'{key}={value}' for key, value in preset.items())})" if preset else ""


def names(family: str) -> list[str]:
    """Return the names of a family's methods, in alphabetical order."""
    return sorted(FAMILIES[family])


def resolve(family: str, name: str) -> str:
    """Return the name that a name or alias stands for, or say which known one is nearest.

    Examples
    --------
    >>> resolve("aggregator", "Bradley-Terry"), resolve("scheme", "if-good-5")
    ('bradley_terry', 'if_good_k')
    """
    return _meaning(family, name)[1]


def name_for_kind(name: str, kind: str) -> str:
    """Return the name of the aggregator that a name means where judgments are of a kind.

    Examples
    --------
    >>> name_for_kind("mv", "preference"), name_for_kind("mv", "grade")
    ('majority_preference', 'mv')
    """
    return _NAMES_FOR_KIND.get(kind, {}).get(name.strip().lower(), name)


def label(family: str, name: str) -> str:
    """Return the name to show a method by: its own, or that of an alias that sets parameters.

    Examples
    --------
    >>> label("aggregator", "CrowdAgg"), label("aggregator", "CrowdAgg-RBP")
    ('crowd_agg', 'crowdagg-rbp')
    """
    spelt, method, preset = _meaning(family, name)
    return spelt if preset else method


def families_of(name: str) -> list[str]:
    """Return the families that a method's name or alias belongs to, or say which known one is nearest.

    Examples
    --------
    >>> families_of("ListNet"), families_of("bt")
    (['ranker'], ['aggregator'])
    """
    families = []
    for family in FAMILIES:
        with contextlib.suppress(UnknownNameError):
            _meaning(family, name)
            families.append(family)
    if not families:
        known = sorted({name for table in FAMILIES.values() for name in table})
        hint = did_you_mean(name.strip().lower().replace("-", "_"), known)
        raise UnknownNameError(f"there is no method {name!r}; {hint}known: {', '.join(known)}")
    return families


def _meaning(family: str, name: str) -> tuple[str, str, dict[str, Any]]:
    """The name or alias that is meant, as it stands in the tables, its method, and the parameters that it sets besides.

    A number in the place of a scheme's k, or behind its name, is that k: if-good-5, pilot-4.
    """
    known, aliases = FAMILIES[family], ALIASES[family]
    plain = name.strip().lower().replace(" ", "_")
    dashed = plain.replace("_", "-")
    for spelt in (plain, plain.replace("-", "_"), dashed):
        if spelt in known or spelt in aliases:
            return spelt, aliases.get(spelt, spelt), PRESETS[family].get(spelt, {})
    numbers = re.findall(r"\d+", dashed) if family == "scheme" else []
    for method in known if len(numbers) == 1 else ():
        own = method.replace("_", "-")
        if dashed in (re.sub(r"\bk\b", numbers[0], own), f"{own}-{numbers[0]}"):
            return dashed, method, {"k": int(numbers[0])}
    spellings = {name.replace("-", "_"): name for name in [*aliases, *known]}
    near = nearest(plain.replace("-", "_"), spellings)
    hint = f"did you mean {spellings[near]!r}? " if near else ""
    what = "joint method" if family == "joint" else family
    raise UnknownNameError(f"there is no {what} {name!r}; {hint}known: {', '.join(sorted(known))}")


def method_class(family: str, name: str) -> type[Any]:
    """Return the class of a method, importing its file."""
    return _import_class(FAMILIES[family][resolve(family, name)])


def class_names(family: str) -> list[str]:
    """Return the names of the classes of a family's methods."""
    return sorted(home.partition(":")[2] for home in FAMILIES[family].values())


def class_named(family: str, name: str) -> type[Any]:
    """Return the class of a method by the name of the class, importing its file.

    Examples
    --------
    >>> class_named("aggregator", "CrowdBT").__name__
    'CrowdBT'
    """
    for home in FAMILIES[family].values():
        if home.endswith(f":{name}"):
            return _import_class(home)
    raise AttributeError(f"there is no {family} called {name!r}; known: {', '.join(class_names(family))}")


def blank_ranker(name: str, params: Mapping[str, Any]) -> Any:
    """Return the ranker that a file names, before what was learned is put into it."""
    return _import_class(FITTED[name])(**params) if name in FITTED else make("ranker", name, params)


def _import_class(home: str) -> type[Any]:
    """A class from where it lives, importing its file."""
    module, _, attribute = home.partition(":")
    return getattr(import_module(module), attribute)


def make(family: str, name: str, params: Mapping[str, Any] | None = None, *, seed: int | None = None) -> Any:
    """Return a method with its parameters; text is read as the parameter's type, as the command line needs it.

    A parameter called ``aggregator`` or ``ranker`` takes a method of that family, or its name.

    Examples
    --------
    >>> make("aggregator", "mean_grade", {"alpha": "2"}).alpha
    2.0
    >>> type(make("joint", "ltrma-d").aggregator).__name__
    'Mallows'
    """
    from .protocols import expect_parameters

    method = method_class(family, name)
    fields = [field.name for field in dataclasses.fields(method)]
    given = {**_meaning(family, name)[2], **(params or {})}
    if hasattr(method, "own_names"):
        given = method.own_names(given)
    unknown = next((key for key in given if key not in fields), None)
    if unknown is not None:
        known, hint = ", ".join(fields) or "none", did_you_mean(unknown, fields)
        raise ParameterError(f"{resolve(family, name)} has no parameter {unknown!r}; {hint}its parameters: {known}")
    hints = typing.get_type_hints(method)
    values = {}
    for key, value in given.items():
        if key not in FAMILIES:
            value = _read(key, value, hints[key])
        elif isinstance(value, str):
            # a part of a composite, by its name
            value = None if value.lower() == "none" else make(key, value, seed=seed)
        values[key] = value
    if seed is not None and "seed" in fields:
        values.setdefault("seed", seed)
    instance = method(**values)
    expect_parameters(instance)
    return instance


def _read(key: str, value: Any, hint: Any) -> Any:
    """A parameter as its type; text is taken as a Python literal where the type is not text."""
    allowed = typing.get_args(hint) if typing.get_origin(hint) is not None else (hint,)
    plain = tuple(kind for kind in allowed if isinstance(kind, type))
    if isinstance(value, str) and str not in plain and plain and len(value) <= _LONGEST_LITERAL:
        with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            value = ast.literal_eval({"true": "True", "false": "False", "none": "None"}.get(value.lower(), value))
    if isinstance(value, int) and not isinstance(value, bool) and float in plain and int not in plain:
        value = float(value)
    from .protocols import expect_type  # numpy is not loaded to list methods

    expect_type(key, value, hint)
    return value


def card(family: str, name: str) -> Card:
    """Return what is known of a method: kinds, parameters, paper, notes."""
    name = resolve(family, name)
    method = method_class(family, name)
    text = inspect.getdoc(method) or ""
    # titled sections; what stands before the first has no title
    parts = ["", *re.split(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n", "\n" + text)]
    sections = {title: body.strip("\n") for title, body in zip(parts[::2], parts[1::2], strict=True)}
    summary, _, model = sections[""].partition("\n")
    # a term of the section of parameters -> its description; several terms may share one
    described: dict[str, str] = {}
    terms: list[str] = []
    for line in sections.get("Parameters", "").splitlines():
        if line and not line[0].isspace():
            terms = [term.strip() for term in line.split(" : ")[0].split(",")]
            continue
        # a displayed formula stands within the text of a table's cell
        words = re.sub(r"^\.\. math:: (.*?)([.,]?)$", r":math:`\1`\2", line.strip())
        described |= {term: f"{described.get(term, '')} {words}".strip() for term in terms}
    hints = typing.get_type_hints(method)
    shown = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "NoneType": "None"}
    parameters = []
    for field in dataclasses.fields(method):
        kinds = inspect.formatannotation(hints[field.name]).replace("None", "NoneType").split("|")
        kind = " or ".join(shown.get(one.strip(), one.strip()) for one in kinds)
        kind = f"a method of the {field.name}s, or its name" if field.name in FAMILIES else kind
        default = "required" if field.default is dataclasses.MISSING else field.default
        parameters.append(Parameter(field.name, kind, default, described.get(field.name, "")))
    # how it goes over a million packed judgments or more
    packed = "packed judgments in parts" if hasattr(method, "over_blocks") else "packed judgments only below a million"
    if getattr(method, "one_pass", ()):
        packed = "packed judgments in one pass"
    return Card(
        name=name, family=family, summary=summary, model=model.strip(), when=sections.get("When to use", ""),
        kinds=tuple(method.kinds), nominal=bool(getattr(method, "nominal", False)),
        packed=packed if family == "aggregator" or hasattr(method, "over_blocks") else "",
        parameters=tuple(parameters), references=tuple(dict.fromkeys(re.findall(r"\[(\w+)\]_", text))),
        aliases=tuple(alias for alias, target in ALIASES[family].items() if target == name),
        notes=sections.get("Notes", ""), examples=sections.get("Examples", ""),
    )  # fmt: skip
