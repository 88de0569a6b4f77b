"""Help pages: options under headings, and examples that can be copied."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ..errors import ParameterError


def examples(*pairs: tuple[str, str]) -> str:
    """Return the end of a help page: what a command is good for, and the command."""
    return "\n".join(f"# {what}\n{command}" for what, command in pairs)


class _WithExamples:
    """A help page that begins with an example and ends with more, which stand as they are."""

    epilog: str | None

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


class ProgramHelp(_WithExamples, TyperGroup):
    """The help page of the program."""


class Verb(_WithExamples, TyperCommand):
    """A command whose options stand under the headings they were given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the words, unless an option stands where the value of another one is missing."""
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        flags = {flag for param in options for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")}
        valued = {flag for param in options if not param.is_flag and not param.count for flag in param.opts}  # type: ignore[attr-defined]
        for word, following in pairwise(takewhile(lambda one: one != "--", args)):
            if word in valued and following in flags:
                raise ParameterError(
                    f"{word} needs a value, and {following} follows it; see crowdrank {self.name} --help"
                )
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
