"""The program: its verbs and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from .help import ProgramHelp, Verb, examples
from .options import with_table_options

VERBS = (
    "aggregate", "compare", "evaluate", "diagnose", "features", "train", "rank", "propose", "simulate", "study",
    "methods", "datasets", "demo", "inspect", "export", "pack", "serve",
)  # fmt: skip
"""Each is a function in the file of its name."""

EXAMPLES = examples(
    ("see it work on a small data set", "crowdrank demo"),
    ("what is in a file of votes, and the next command", "crowdrank inspect votes.csv"),
    ("rank what was judged in it", "crowdrank aggregate votes.csv --report page.html"),
    ("every method there is", "crowdrank methods"),
)


FIRST_STEPS = """\
crowdrank turns votes of many annotators into a ranking, and names the bad
annotators. Next:

  crowdrank demo              see it work on a small data set
  crowdrank inspect FILE      what is in your file, and the command for it
  crowdrank aggregate FILE    the ranking, and whom to look at
  crowdrank aggregate FILE --report page.html
  crowdrank serve --demo      collect judgments in a browser
  crowdrank --help            all commands; COMMAND --help has its options
"""


@cache
def _verb(name: str) -> Any:
    """The command of a verb, whose file is imported when it is first needed."""
    module = import_module(f".{name}", __package__)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name, cls=Verb, epilog=module.EXAMPLES)(with_table_options(getattr(module, name)))
    return get_command(single)


class _Verbs(Mapping[str, Any]):
    """The commands by name, so running one does not load the others."""

    def __getitem__(self, name: str) -> Any:
        if name not in VERBS:
            raise KeyError(name)
        return _verb(name)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Program(ProgramHelp):
    """The program with its verbs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Verbs()  # type: ignore[assignment]  # read only: nothing is registered later


app = typer.Typer(
    cls=Program,
    name="crowdrank",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    """Print the version, and leave."""
    if wanted:
        from .. import __version__

        typer.echo(f"crowdrank {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn noisy votes of many annotators into a ranking, and name the bad annotators.

    Data goes to standard output, talk to standard error; - reads standard input.
    """
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS, nl=False)
