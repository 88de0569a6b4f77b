"""The program: its verbs, made from the table of options, and their help pages."""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import pairwise, takewhile
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .. import __version__, api, io
from ..errors import MissingExtraError, ParameterError
from ..options import COMMANDS, PROGRAM, Option
from .outputs import check_options
from .talk import Talk
from .votes import Asked

HOMES: dict[str, str] = PROGRAM["homes"]
"""Verb -> the file that has its function."""

VERBS = tuple(HOMES)
_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Settings of typer for pages without colours, and errors that are said by us."""


class _AsTyped(NamedTuple):
    """Values as they were typed, where typer would check each by pydantic: loading that is a fifth of a short command.

    Only text that is to be a number goes through typer, and what it refuses is said in our words.
    """

    kind: Any
    convert: Callable[[], Any]
    option: Option | None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as typer would."""
        if self.kind == list[str]:
            return list(value or ())
        if value is None or self.kind is str or not isinstance(value, str):
            return value
        try:
            return self.convert().coerce(value, param=param, ctx=ctx)
        except Exception as error:
            # typer's usage errors: their class moved between its versions, what they can do did not
            if self.option is None or not hasattr(error, "format_message"):
                raise
            raise ParameterError(f"{self.option.flags[0]} {value} must be {self.option.range}") from None


class _WithExamples:
    """A help page that begins with an example and ends with more, which stand as they are."""

    epilog: str | None

    def get_params(self, ctx: Any) -> Any:
        """Return the arguments and options, whose values stay as they were typed."""
        params: Any = super().get_params(ctx)  # type: ignore[misc]
        options = {option.name: option for option in COMMANDS.get(str(ctx.info_name), ())}
        for param in params:
            # where this typer has it: it came with 0.29
            if hasattr(param, "get_runtime_param") and "get_runtime_param" not in vars(param):
                kind = param.type_descriptor.annotation
                as_typed = _AsTyped(kind, param.get_runtime_param, options.get(param.name))
                param.get_runtime_param = partial(lambda one: one, as_typed)
        return params

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line, and the first example below it."""
        super().format_usage(ctx, formatter)  # type: ignore[misc]
        first = next((line for line in (self.epilog or "").splitlines() if not line.startswith("#")), None)
        if first is not None:
            formatter.write(f"Example:\n  {first}\n")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, however wide, without filling their lines."""
        with formatter.section("Examples"):
            for line in (self.epilog or "").splitlines():
                formatter.write(f"  {line}\n")


class _Verb(_WithExamples, TyperCommand):
    """A command whose options stand under the headings they were given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the words, unless an option stands where the value of another one is missing."""
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        flags = {flag for param in options for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")}
        valued = {flag for param in options if not param.is_flag and not param.count for flag in param.opts}
        for word, following in pairwise(takewhile(lambda one: one != "--", args)):
            if word in valued and following in flags:
                remedy = f"see crowdrank {self.name} --help"
                raise ParameterError(f"{word} needs a value, and {following} follows it; {remedy}")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, the arguments as they are named in the help."""
        arguments = [str(param.metavar) for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *arguments]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, heading after heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                sections.setdefault("Arguments", []).append((str(param.metavar), getattr(param, "help", None) or ""))
            elif (record := param.get_help_record(ctx)) is not None:
                heading = getattr(param, "rich_help_panel", None) or "Options"
                sections.setdefault(heading, []).append(record)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


@cache
def _command(verb: str) -> Any:
    """The command of a verb, whose file is imported when it is first needed."""
    module = import_module(f".{HOMES[verb]}", __package__)
    work, options = getattr(module, verb), COMMANDS[verb]
    wanted = inspect.signature(work).parameters
    # what is wrong with options alone is said before a file is looked for
    check = getattr(module, f"check_{work.__name__}", None)
    text, _, examples = inspect.cleandoc(work.__doc__ or "").partition("\n\nExamples\n--------\n")

    def run(**given: Any) -> None:
        asked = Asked.from_typed(options, given)
        if getattr(asked, "digits", None) is not None or getattr(asked, "safe_csv", False):
            api.DIGITS.set(asked.digits)
            io.SAFE_CSV.set(asked.safe_csv)
        if check is not None:
            check(asked)
        check_options(options, asked)
        if "talk" not in wanted:
            work(asked)
            return
        with Talk(quiet=bool(getattr(asked, "quiet", False))) as talk:
            work(asked, talk)

    run.__doc__ = text
    eager = getattr(module, "EAGER", {})
    parameters = [_parameter(option, eager.get(option.name)) for option in options]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    single = typer.Typer(add_completion=False, **_PLAIN)
    single.command(verb, cls=_Verb, epilog=examples)(run)
    return get_command(single)


def _parameter(option: Option, at_once: Callable[[bool], None] | None) -> inspect.Parameter:
    """An option as a parameter that typer understands; ``at_once`` runs where it is typed, whatever else is."""
    kind: Any = list[str] if option.many else option.type if option.metavar else bool
    default = False if kind is bool and "/" not in option.typed else option.default
    settings: dict[str, Any] = {
        "help": option.help, "metavar": option.metavar or None, "rich_help_panel": option.panel or None,
        "min": option.least, "max": option.most,
        "autocompletion": (lambda incomplete: complete(option.complete, incomplete)) if option.complete else None,
    }  # fmt: skip
    if at_once is not None:
        settings |= {"is_eager": True, "callback": at_once}
    told = typer.Option(*option.flags, **settings) if option.flags else typer.Argument(show_default=False, **settings)
    annotation: Any = Annotated[kind | None if default is None else kind, told]
    default = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def complete(wanted: str, incomplete: str) -> list[str]:
    """Return the names that begin so, for shells; of a list of names the last one.

    Examples
    --------
    >>> complete("auto aggregator", "b"), complete("aggregator,", "elo,bo")
    (['borda', 'bradley_terry'], ['elo,borda'])
    """
    from ..registry import ALIASES, FAMILIES, names

    known: list[str] = []
    for word in wanted.removesuffix(",").split():
        if word == "study":
            from .study import studies

            with suppress(MissingExtraError):
                known += studies().STUDIES
        elif word in FAMILIES or word == "any":
            families = list(FAMILIES) if word == "any" else [word]
            known += [name for family in families for name in names(family)]
            known += ALIASES["scheme"] if word == "scheme" else []
        else:
            known.append(word)
    before, comma, last = incomplete.rpartition(",") if wanted.endswith(",") else ("", "", incomplete)
    return [f"{before}{comma}{name}" for name in dict.fromkeys(known) if name.startswith(last)]


class _Verbs(UserDict[str, Any]):
    """The commands by name, so running one does not load the others."""

    def __getitem__(self, name: str) -> Any:
        return _command(name) if name in self else super().__getitem__(name)


class _Program(_WithExamples, TyperGroup):
    """The program with its verbs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Verbs(HOMES)  # read only: nothing is registered later


_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(cls=_Program, name="crowdrank", epilog=PROGRAM["examples"], context_settings=_HELP, **_PLAIN)


def _print_version(wanted: bool) -> None:
    """Print the version, and leave."""
    if wanted:
        typer.echo(f"crowdrank {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")


@app.callback(invoke_without_command=True)
def start(context: typer.Context, version: Annotated[bool, _VERSION] = False) -> None:
    """Turn noisy votes of many annotators into a ranking, and name the bad annotators.

    Data goes to standard output, talk to standard error; - reads standard input.
    """
    if context.invoked_subcommand is None:
        typer.echo(PROGRAM["first_steps"], nl=False)
