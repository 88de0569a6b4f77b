"""Arguments of the verbs: one that a verb does not have gets a sentence with the remedy; two verbs may share theirs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..errors import ParameterError
from ..wording import nearest

Given = ParamSpec("Given")
Result = TypeVar("Result")

_MAX_CHARACTERS = 120
"""Characters of values that a remedy repeats."""


def takes_arguments_of(verb: Callable[Given, Any]) -> Callable[[Callable[..., Result]], Callable[Given, Result]]:
    """Return what gives a function the signature of a verb, to whose arguments it adds nothing."""

    def with_signature(function: Callable[..., Result]) -> Callable[Given, Result]:
        own = inspect.signature(function).return_annotation
        function.__signature__ = inspect.signature(verb).replace(return_annotation=own)  # type: ignore[attr-defined]
        return function

    return with_signature


def explain_unknown(verb: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return the verb, which then says what to write in place of an argument it does not have.

    Examples
    --------
    >>> from crowdrank import aggregate
    >>> aggregate({"left": ["x"], "right": ["y"], "winner": ["left"]}, "bradley_terry", ties="davidson")
    Traceback (most recent call last):
    ...
    crowdrank.errors.ParameterError: aggregate has no argument ties=; a parameter of the method goes into params={'ties': 'davidson'}
    """  # noqa: E501
    parameters = inspect.signature(verb).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return verb
    known = list(parameters)

    @functools.wraps(verb)
    def call(*args: Given.args, **given: Given.kwargs) -> Result:
        unknown = {name: value for name, value in given.items() if name not in known}
        if unknown:
            raise ParameterError(_remedy(verb.__name__, known, unknown))
        return verb(*args, **given)

    return call


def _remedy(verb: str, known: list[str], unknown: dict[str, Any]) -> str:
    """What to write in place of arguments that a verb does not have."""
    from ..data.judgments import Grades, Preferences, Rankings
    from ..io.judgments import read_judgments

    named = " and ".join(f"{name}=" for name in unknown)
    first = next(iter(unknown))
    if "judgments" in known and first in inspect.signature(read_judgments).parameters:
        return (
            f"{verb} has no argument {named}; it says how judgments are read: give it to read_judgments or from_frame, "
            f"and what that returns to {verb}"
        )
    changes = {name for kind in (Grades, Preferences, Rankings) for name in dir(kind) if not name.startswith("_")}
    meant = sorted(name for name in changes if name == first or name.endswith(f"_{first}"))
    if "judgments" in known and meant:
        value = "" if unknown[first] is True else repr(unknown[first])
        return f"{verb} has no argument {named}; change the judgments, as in {verb}(judgments.{meant[0]}({value}))"
    near = nearest(first, known, cutoff=0.75)
    if near:
        return f"{verb} has no argument {named}; did you mean {near}=?"
    if "params" in known:
        one = len(unknown) == 1
        what = "a parameter of the method goes" if one else "parameters of the method go"
        values = repr(unknown)
        if len(values) > _MAX_CHARACTERS:
            values = "{" + ", ".join(f"{name!r}: ..." for name in unknown) + "}"
        return f"{verb} has no argument {named}; {what} into params={values}"
    return f"{verb} has no argument {named}; it has {', '.join(known)}"
