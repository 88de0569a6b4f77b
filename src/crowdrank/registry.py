"""Every method by name: the table of contents of the package."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .errors import ParameterError, UnknownNameError

AGGREGATORS = {
    "borda": "crowdrank.aggregators.borda:Borda",
    "bradley_terry": "crowdrank.aggregators.bradley_terry:BradleyTerry",
    "condorcet": "crowdrank.aggregators.condorcet:Condorcet",
    "crowd_agg": "crowdrank.aggregators.crowd_agg:CrowdAgg",
    "crowd_bt": "crowdrank.aggregators.crowd_bt:CrowdBT",
    "dawid_skene": "crowdrank.aggregators.dawid_skene:DawidSkene",
    "elo": "crowdrank.aggregators.elo:Elo",
    "em_elo": "crowdrank.aggregators.em_elo:EMElo",
    "glad": "crowdrank.aggregators.glad:GLAD",
    "greedy_order": "crowdrank.aggregators.greedy_order:GreedyOrder",
    "highest_grade": "crowdrank.aggregators.highest_grade:HighestGrade",
    "mace": "crowdrank.aggregators.mace:MACE",
    "majority_vote": "crowdrank.aggregators.majority_vote:MajorityVote",
    "mallows": "crowdrank.aggregators.mallows:Mallows",
    "mean_grade": "crowdrank.aggregators.mean_grade:MeanGrade",
    "median_rank": "crowdrank.aggregators.median_rank:MedianRank",
    "multinomial_preference": "crowdrank.aggregators.multinomial_preference:MultinomialPreference",
    "naive_bayes": "crowdrank.aggregators.naive_bayes:NaiveBayes",
    "plackett_luce": "crowdrank.aggregators.plackett_luce:PlackettLuce",
    "rank_centrality": "crowdrank.aggregators.rank_centrality:RankCentrality",
    "singular_vector": "crowdrank.aggregators.singular_vector:SingularVector",
}

RANKERS = {
    "lambda_mart": "crowdrank.rankers.lambda_mart:LambdaMART",
    "lambda_rank": "crowdrank.rankers.lambda_rank:LambdaRank",
    "list_mle": "crowdrank.rankers.list_mle:ListMLE",
    "list_net": "crowdrank.rankers.list_net:ListNet",
    "rank_svm": "crowdrank.rankers.rank_svm:RankSVM",
}

FAMILIES: dict[str, dict[str, str]] = {"aggregator": AGGREGATORS, "ranker": RANKERS}

ALIASES: dict[str, dict[str, str]] = {
    "aggregator": {
        "bt": "bradley_terry",
        "bradley-terry": "bradley_terry",
        "condorcet-fuse": "condorcet",
        "crowdagg": "crowd_agg",
        "crowdagg-ndcg": "crowd_agg",
        "crowdagg-rbp": "crowd_agg",
        "crowd-bt": "crowd_bt",
        "crowdbt": "crowd_bt",
        "ds": "dawid_skene",
        "em-elo-rating": "em_elo",
        "greedy": "greedy_order",
        "highest": "highest_grade",
        "majority-vote": "majority_vote",
        "mean": "mean_grade",
        "mpm": "multinomial_preference",
        "mv": "majority_vote",
        "nb": "naive_bayes",
        "pl": "plackett_luce",
        "plackett-luce": "plackett_luce",
    },
    "ranker": {
        "lambdamart": "lambda_mart",
        "lambdarank": "lambda_rank",
        "listmle": "list_mle",
        "listnet": "list_net",
        "listnet-paper": "list_net",
        "rank-logistic": "rank_svm",
        "ranking-svm": "rank_svm",
        "ranksvm": "rank_svm",
    },
}
"""Other names, those of the papers among them; a dash may stand for an underscore in any name, and the reverse."""

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "aggregator": {
        "crowdagg-ndcg": {"measure": "ndcg"},
        "crowdagg-rbp": {"measure": "rbp"},
    },
    "ranker": {
        "listnet-paper": {"solver": "paper", "scale": "query"},
        "rank-logistic": {"loss": "logistic"},
    },
}
"""Parameters that an alias sets besides naming its method; those that are given explicitly win."""


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
    kinds: tuple[str, ...]
    nominal: bool
    parameters: tuple[Parameter, ...]
    references: tuple[str, ...]
    aliases: tuple[str, ...]
    notes: str

    @property
    def takes(self) -> str:
        """What the method takes, in words."""
        return ", ".join(f"{kind.removesuffix('s')}s" for kind in self.kinds)

    def settings(self, alias: str) -> str:
        """Return the parameters that an alias sets, in brackets, for whoever shows it."""
        preset = PRESETS.get(self.family, {}).get(alias, {})
        return f" ({', '.join(f'{key}={value}' for key, value in preset.items())})" if preset else ""


def names(family: str) -> list[str]:
    """Return the names of a family's methods, in alphabetical order."""
    return sorted(FAMILIES[family])


def resolve(family: str, name: str) -> str:
    """Return the name that a name or alias stands for, or say which known one is nearest.

    Examples
    --------
    >>> resolve("aggregator", "Bradley-Terry")
    'bradley_terry'
    """
    found = _spelt(family, name)
    return ALIASES.get(family, {}).get(found, found)


def label(family: str, name: str) -> str:
    """Return the name to show a method by: its own, or that of an alias that sets parameters.

    Examples
    --------
    >>> label("aggregator", "CrowdAgg"), label("aggregator", "CrowdAgg-RBP")
    ('crowd_agg', 'crowdagg-rbp')
    """
    found = _spelt(family, name)
    return found if found in PRESETS.get(family, {}) else resolve(family, found)


def family_of(name: str) -> str:
    """Return the family that a method's name or alias belongs to, or say which known one is nearest.

    Examples
    --------
    >>> family_of("ListNet"), family_of("bt")
    ('ranker', 'aggregator')
    """
    for family in FAMILIES:
        with contextlib.suppress(UnknownNameError):
            _spelt(family, name)
            return family
    known = sorted(name for table in FAMILIES.values() for name in table)
    near = difflib.get_close_matches(name.strip().lower().replace("-", "_"), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownNameError(f"there is no method {name!r}; {hint}known: {', '.join(known)}")


def _spelt(family: str, name: str) -> str:
    """The name or alias that is meant, as it stands in the tables."""
    known, aliases = FAMILIES[family], ALIASES.get(family, {})
    plain = name.strip().lower().replace(" ", "_")
    for candidate in (plain, plain.replace("-", "_"), plain.replace("_", "-")):
        if candidate in known or candidate in aliases:
            return candidate
    near = difflib.get_close_matches(plain.replace("-", "_"), [*known, *aliases], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownNameError(f"there is no {family} {name!r}; {hint}known: {', '.join(sorted(known))}")


def method_class(family: str, name: str) -> type[Any]:
    """Return the class of a method, importing its file."""
    module, _, attribute = FAMILIES[family][resolve(family, name)].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found


def make(family: str, name: str, params: Mapping[str, Any] | None = None, *, seed: int | None = None) -> Any:
    """Return a method with its parameters; text is read as the parameter's type, as the command line needs it.

    Examples
    --------
    >>> make("aggregator", "mean_grade", {"alpha": "2"}).alpha
    2.0
    """
    method = method_class(family, name)
    fields = {field.name: field for field in dataclasses.fields(method)}
    given = {**PRESETS.get(family, {}).get(_spelt(family, name), {}), **(params or {})}
    for key in given:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            known = ", ".join(fields) or "none"
            raise ParameterError(f"{resolve(family, name)} has no parameter {key!r}; {hint}its parameters: {known}")
    hints = typing.get_type_hints(method)
    values = {key: _read(key, value, hints[key]) for key, value in given.items()}
    if seed is not None and "seed" in fields:
        values.setdefault("seed", seed)
    return method(**values)


def _read(key: str, value: Any, hint: Any) -> Any:
    """A parameter as its type; text is taken as a Python literal where the type is not text."""
    allowed = typing.get_args(hint) if typing.get_origin(hint) is not None else (hint,)
    plain = tuple(kind for kind in allowed if isinstance(kind, type))
    if isinstance(value, str) and str not in plain and plain:
        with contextlib.suppress(ValueError, SyntaxError):
            value = ast.literal_eval({"true": "True", "false": "False", "none": "None"}.get(value.lower(), value))
    if isinstance(value, int) and not isinstance(value, bool) and float in plain and int not in plain:
        value = float(value)
    wrong_bool = isinstance(value, bool) and bool not in plain
    if plain and len(plain) == len(allowed) and (wrong_bool or not isinstance(value, plain)):
        raise ParameterError(f"{key}={value!r} is not of the right type; it takes {_shown(hint)}")
    return value


def _shown(hint: Any) -> str:
    """A type as it is shown to people."""
    text = inspect.formatannotation(hint)
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "NoneType": "None"}
    return " or ".join(words.get(part.strip(), part.strip()) for part in text.replace("None", "NoneType").split("|"))


def card(family: str, name: str) -> Card:
    """Return what is known of a method: kinds, parameters, paper, notes."""
    name = resolve(family, name)
    method = method_class(family, name)
    text = inspect.getdoc(method) or ""
    sections = _sections(text)
    described = _definitions(sections.get("Parameters", ""))
    hints = typing.get_type_hints(method)
    parameters = tuple(
        Parameter(field.name, _shown(hints[field.name]), field.default, described.get(field.name, ""))
        for field in dataclasses.fields(method)
    )
    return Card(
        name=name,
        family=family,
        summary=text.split("\n", 1)[0],
        kinds=tuple(method.kinds),
        nominal=bool(getattr(method, "nominal", False)),
        parameters=parameters,
        references=tuple(dict.fromkeys(re.findall(r"\[(\w+)\]_", text))),
        aliases=tuple(alias for alias, target in ALIASES.get(family, {}).items() if target == name),
        notes=sections.get("Notes", ""),
    )


def _sections(text: str) -> dict[str, str]:
    """The titled sections of a numpydoc text."""
    parts = re.split(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n", "\n" + text)
    return {title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def _definitions(text: str) -> dict[str, str]:
    """Term -> description, from a section of a numpydoc text; several terms may share one."""
    found: dict[str, str] = {}
    terms: list[str] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            terms = [term.strip() for term in line.split(" : ")[0].split(",")]
        else:
            for term in terms:
                found[term] = f"{found.get(term, '')} {line.strip()}".strip()
    return found
