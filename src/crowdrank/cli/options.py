"""Options that several verbs share, as groups; a verb names the group and gets what was given."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

_READING = "Reading the votes"
_WRITING = "Output"

WHO = "ids, 'human-*', group=human or a file of ids, with commas between them"
"""How options name annotators."""


def _reading(*names: str, **settings: Any) -> Any:
    """An option about the input."""
    return typer.Option(*names, rich_help_panel=_READING, **settings)


def _writing(*names: str, **settings: Any) -> Any:
    """An option about the output."""
    return typer.Option(*names, rich_help_panel=_WRITING, **settings)


def output_file(name: str, help: str) -> Any:
    """Return the option of a further file that a verb writes."""
    return _writing(name, metavar="FILE", help=help)


Votes = Annotated[
    list[str],
    typer.Argument(metavar="VOTES...", help="Files of judgments, - for standard input.", show_default=False),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the random draws.")]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", metavar="LIST", help="Such as ndcg@10,map,rbp@0.95,tau; by default what fits the truth."),
]
Unjudged = Annotated[
    str,
    typer.Option("--unjudged", metavar="drop|zero", help="Leave items without truth out, or count them as grade 0."),
]
AllQueries = Annotated[
    bool,
    typer.Option(
        "--all-queries",
        help="Count queries of the truth that are not ranked as 0, as trec_eval -c does; by default the mean is over "
        "the queries of both.",
    ),
]
Out = Annotated[
    str | None, _writing("--out", "-o", metavar="FILE", help="Write there and not to standard output; may end in .gz.")
]
Format = Annotated[
    str | None,
    _writing(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, json, jsonl, parquet, qrels, run, markdown, latex; else what FILE says.",
    ),
]
Quiet = Annotated[bool, _writing("--quiet", "-q", help="Print only warnings and errors on standard error.")]


@dataclass(frozen=True)
class Reading:
    """How files of judgments are read, and what is done with them first."""

    across_queries: Annotated[
        bool, _reading("--across-queries", help="Take equal items of different queries as one (models over prompts).")
    ] = False
    as_preferences: Annotated[
        bool, _reading("--as-preferences", help="Turn grades or rankings into preferences first.")
    ] = False
    as_rankings: Annotated[bool, _reading("--as-rankings", help="Turn grades or preferences into rankings first.")] = (
        False
    )
    kind: Annotated[
        str | None,
        _reading("--kind", metavar="KIND", help="grade, preference or ranking; by default found from the columns."),
    ] = None
    column: Annotated[
        list[str] | None,
        _reading("--column", metavar="WORD=NAME", help="Which column holds what, such as annotator=Who; repeatable."),
    ] = None
    levels: Annotated[
        str | None,
        _reading("--levels", metavar="A,B,C", help="Levels of the scale from worst to best, such as Bad,Fair,Good."),
    ] = None
    nominal: Annotated[bool, _reading("--nominal", help="The grades are classes without an order.")] = False
    winner_codes: Annotated[
        str | None,
        _reading("--winner-codes", metavar="1=left,...", help="What numeric winners mean: 1=left,2=right,0=tie."),
    ] = None
    duplicates: Annotated[
        str | None,
        _reading("--duplicates", metavar="RULE", help="keep, first, last or error, where an annotator answers twice."),
    ] = None
    drop_invalid: Annotated[
        bool, _reading("--drop-invalid", help="Leave rows without a usable answer out, and say how many.")
    ] = False
    items: Annotated[
        str | None,
        _reading("--items", metavar="FILE", help="All items (query, item), so that unjudged ones get a place."),
    ] = None
    source: Annotated[
        str | None,
        _reading("--from", metavar="NAME", help="Tool that wrote the file, by default recognised; or table, for none."),
    ] = None
    answer: Annotated[
        str | None,
        _reading("--answer", metavar="NAME", help="Which question, metric or answer column, where there are several."),
    ] = None
    where: Annotated[
        list[str] | None,
        _reading(
            "--where", metavar="COL=VALUE", help="Keep only these rows; COL may be a path: doc.subject. Repeatable."
        ),
    ] = None
    keep: Annotated[
        str | None, _reading("--keep", metavar="A,B", help="Statuses to keep in place of the importer's own choice.")
    ] = None
    wide: Annotated[
        str | None,
        _reading("--wide", metavar="A,B,C", help="One column per annotator or per item, by names or as 'Q1_*'."),
    ] = None
    strength: Annotated[
        str | None,
        _reading(
            "--strength",
            metavar="COL=left",
            help="Signed column, or difference (score_a-score_b, rating-4): positive means left (right) is better.",
        ),
    ] = None
    strength_weights: Annotated[
        str | None, _reading("--strength-weights", metavar="1,3", help="Weights of preferences of strength 1, 2, ...")
    ] = None
    small_is_good: Annotated[
        bool | None, _reading("--small-is-good/--large-is-good", help="Whether small or large numbers are better.")
    ] = None
    swapped: Annotated[
        str | None,
        _reading(
            "--swapped",
            metavar="COL[=VALUE]",
            help="Rows in which the right item was shown first and winners are in the order shown; none for no rows.",
        ),
    ] = None
    missing: Annotated[
        str | None, _reading("--missing", metavar="A,B", help="Answers that mean none, such as -1,N/A; left out.")
    ] = None
    skip_rows: Annotated[
        int | None, _reading("--skip-rows", metavar="N", help="Lines above the header of a CSV or Excel file.")
    ] = None
    no_annotators: Annotated[bool, _reading("--no-annotators", help="The file names no annotators, on purpose.")] = (
        False
    )
    pseudonyms: Annotated[bool, _reading("--pseudonyms", help="Call annotators A1, A2, ... in what is written.")] = (
        False
    )
    header: Annotated[
        str | None, _reading("--header", metavar="A,B,C", help="Column names of a file without a header line.")
    ] = None
    sheet: Annotated[
        str | None, _reading("--sheet", metavar="NAME", help="Sheet of an Excel file; else the first.")
    ] = None
    encoding: Annotated[
        str | None, _reading("--encoding", metavar="NAME", help="Text encoding, such as latin-1; found by default.")
    ] = None
    baseline_model: Annotated[
        str | None, _reading("--baseline-model", metavar="MODEL", help="Arena-Hard's other model, in old files.")
    ] = None
    agreeing: Annotated[
        bool, _reading("--agreeing", help="MT-Bench pairs as FastChat counts them: two different winners are a tie.")
    ] = False
    without: Annotated[
        list[str] | None, _reading("--without", metavar="WHO", help=f"Leave these annotators out: {WHO}. Repeatable.")
    ] = None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with the options of its groups in the place of each group, which typer knows nothing of."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        parameters += [parameter.replace(annotation=hints[parameter.name])] if group is None else _parameters(group)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


SafeCsv = Annotated[
    bool, _writing("--safe-csv", help="In CSV, put ' before text that a spreadsheet would take for a formula.")
]


Digits = Annotated[
    int | None,
    _writing(
        "--digits",
        metavar="N",
        min=1,
        help="Significant digits in CSV, TSV and tables: 6 by default, 17 are exact, as JSON and Parquet always are.",
    ),
]


def with_table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with ``--digits`` and ``--safe-csv`` behind the option that names its file of a table."""
    parameters = list(inspect.signature(command).parameters.values())
    place = next((place for place, one in enumerate(parameters) if one.name in ("out", "save")), None)
    if place is None:
        return command
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]
    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    keyword[place + 1 : place + 1] = [
        inspect.Parameter("digits", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Digits),
        inspect.Parameter("safe_csv", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=SafeCsv),
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        digits, safe_csv = given.pop("digits"), given.pop("safe_csv")
        if digits is not None or safe_csv:
            from ..data.showing import DIGITS
            from ..io.output import SAFE_CSV

            DIGITS.set(digits)
            SAFE_CSV.set(safe_csv)
        command(**given)

    run.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in keyword}
    return run


def _parameters(group: Any) -> list[inspect.Parameter]:
    """The fields of a group as parameters of a function."""
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in dataclasses.fields(group)
    ]
