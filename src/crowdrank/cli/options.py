"""Options that several verbs share, as groups; a verb names the group and gets what was given."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..wording import counted
from .words import listed, pairs

if TYPE_CHECKING:
    from ..data.judgments import Judgments, Mixed
    from .talk import Talk

_READING = "Reading the votes"
_WRITING = "Output"


def _reading(*names: str, **settings: Any) -> Any:
    """An option about the input."""
    return typer.Option(*names, rich_help_panel=_READING, **settings)


def _writing(*names: str, **settings: Any) -> Any:
    """An option about the output."""
    return typer.Option(*names, rich_help_panel=_WRITING, **settings)


Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of whatever is random.")]
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
        "--format", metavar="FORMAT", help="csv, tsv, json, jsonl, parquet, qrels or run; by default what FILE says."
    ),
]
Quiet = Annotated[bool, _writing("--quiet", "-q", help="Say nothing on standard error but warnings and errors.")]


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
        _reading("--kind", metavar="KIND", help="grade, preference or ranking; told from the columns by default."),
    ] = None
    column: Annotated[
        list[str] | None,
        _reading("--column", metavar="WORD=NAME", help="Which column holds what, such as annotator=Who; repeatable."),
    ] = None
    levels: Annotated[
        str | None, _reading("--levels", metavar="A,B,C", help="Grades in words from worst to best, or all of a scale.")
    ] = None
    nominal: Annotated[bool, _reading("--nominal", help="The grades are classes without an order.")] = False
    winner_codes: Annotated[
        str | None,
        _reading("--winner-codes", metavar="1=left,...", help="What numeric winners mean: 1=left,2=right,0=tie."),
    ] = None
    duplicates: Annotated[
        str,
        _reading("--duplicates", metavar="RULE", help="keep, first, last or error, where an annotator answers twice."),
    ] = "keep"
    drop_invalid: Annotated[
        bool, _reading("--drop-invalid", help="Leave rows without a usable answer out, and say how many.")
    ] = False
    items: Annotated[
        str | None,
        _reading("--items", metavar="FILE", help="All items (query, item), so that unjudged ones get a place."),
    ] = None
    without: Annotated[
        list[str] | None, _reading("--without", metavar="A,B,C", help="Leave these annotators out; repeatable.")
    ] = None

    def judgments(self, votes: Sequence[str], talk: Talk) -> Judgments | Mixed:
        """Return the judgments in the files, and say what they are."""
        from ..io.judgments import read_judgments

        codes = pairs(listed(self.winner_codes), "--winner-codes", "1=left,2=right,0=tie")
        with talk.working("reading the votes"):
            judgments = read_judgments(
                votes,
                self.kind,
                pairs(self.column, "--column", "annotator=Who") or None,
                levels=listed(self.levels),
                nominal=self.nominal,
                winner_codes=codes or None,
                duplicates=self.duplicates,
                invalid="drop" if self.drop_invalid else "error",
                items=self.items,
            )
            n_queries = judgments.n_queries
            judgments = self._changed(judgments)
        talk.say(_described(judgments, n_queries if self.across_queries else 0))
        return judgments

    def _changed(self, judgments: Judgments | Mixed) -> Judgments | Mixed:
        """The judgments without some annotators, as preferences, across queries, as asked for."""
        if self.without:
            judgments = _without(judgments, self.without)
        if self.as_rankings:
            judgments = judgments.as_rankings()
        if self.as_preferences:
            judgments = judgments.as_preferences()
        return judgments.across_queries() if self.across_queries else judgments


def _without(judgments: Judgments | Mixed, names: Sequence[str]) -> Judgments | Mixed:
    """The judgments of all but some annotators."""
    import numpy as np

    from ..errors import JudgmentError

    known = judgments.annotators
    # an id may hold a comma itself, so the whole text is tried first
    each = [part for name in names for part in ([name] if name in map(str, known) else listed(name) or [])]
    gone = [known.code(name, "annotator") for name in each]
    keep = ~np.isin(judgments.annotator, gone)
    if not keep.any():
        raise JudgmentError("no judgment is left without these annotators; name fewer with --without")
    return judgments.select(keep)


def _described(judgments: Judgments | Mixed, n_merged: int) -> str:
    """How many judgments there are, by how many annotators, on what."""
    import numpy as np

    from ..data.mixed import parts_of

    n_annotators = len(np.unique(judgments.annotator))
    by = f" by {counted(n_annotators, 'annotator')}" if judgments.n_annotators else ""
    queries = f" of {counted(judgments.n_queries, 'query')}" if not judgments.items.single else ""
    merged = f", over {counted(n_merged, 'query')} taken together" if n_merged else ""
    given = " and ".join(counted(len(part), part.kind) for part in parts_of(judgments))
    return f"{given}{by} on {counted(judgments.n_items, 'item')}{queries}{merged}"


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


def with_safe_csv(command: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with ``--safe-csv`` behind the option that names its file, where it writes tables."""
    parameters = list(inspect.signature(command).parameters.values())
    place = next((place for place, one in enumerate(parameters) if one.name in ("out", "save")), None)
    if place is None:
        return command
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]
    option = inspect.Parameter("safe_csv", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=SafeCsv)
    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    keyword.insert(place + 1, option)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if given.pop("safe_csv"):
            from ..io.output import SAFE_CSV

            SAFE_CSV.set(True)
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
