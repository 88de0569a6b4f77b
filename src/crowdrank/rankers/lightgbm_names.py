"""LightGBM's parameters by their own names, translated to ours where there is one."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..errors import ParameterError
from ..wording import did_you_mean

_LONGEST_LITERAL = 10_000

Class = TypeVar("Class", bound=type[Any])

_OURS = {
    "num_iterations": "n_trees", "num_leaves": "n_leaves", "min_data_in_leaf": "min_leaf", "lambda_l2": "ridge",
    "feature_fraction": "feature_share", "lambdarank_truncation_level": "truncation", "sigmoid": "sigma",
    "lambdarank_norm": "normalize", "num_threads": "n_threads", "early_stopping_round": "patience",
    "learning_rate": "learning_rate", "seed": "seed",
}  # fmt: skip
"""LightGBM's name -> ours."""

_REFUSED = {
    "objective": "the objective is LambdaRank; for another use LightGBM's own LGBMRanker as the ranker",
    "metric": "validation is by nDCG; set k and gain",
    "label_gain": "gains come from the targets; set gain",
    "linear_tree": "trees have constant leaves",
    "eval_at": "validation is by nDCG; set k and gain",
    "data": "rows are given to fit", "valid": "rows are given to fit as eval_set",
    "input_model": "fits start anew", "output_model": "save the ranker",
    "verbosity": "LightGBM is silent", "num_class": "there is one score per item",
}  # fmt: skip


@functools.cache
def _main_names() -> dict[str, str]:
    """Every name that LightGBM knows -> its main name."""
    from lightgbm.basic import _ConfigAliases

    known = _ConfigAliases._get_all_param_aliases()
    return {alias: main for main, aliases in known.items() for alias in (main, *aliases)}


def translate(given: Mapping[str, Any], method: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters under LightGBM's names as ours, and those that we have no name for under its main names."""
    names, ours, rest = _main_names(), dict[str, Any](), dict[str, Any]()
    for key, value in given.items():
        main = names.get(key)
        if main is None:
            hint = did_you_mean(key, [*names, *_OURS.values()])
            raise ParameterError(
                f"{method} has no parameter {key!r}, nor has LightGBM; {hint}see crowdrank methods {method}"
            )
        if main in _REFUSED:
            raise ParameterError(f"{key} cannot be set: {_REFUSED[main]}")
        target, name = (ours, _OURS[main]) if main in _OURS else (rest, main)
        if name in target:
            raise ParameterError(f"{key} is given twice, under two of its names; leave one out")
        value = _value(value)
        target[name] = np.asarray(value).tolist() if isinstance(value, np.ndarray | tuple | list) else value
    return ours, rest


def take_lightgbm_names(cls: Class) -> Class:
    """Let the constructor and ``set_params`` of a ranker take LightGBM's names too; ``lightgbm`` has the others."""
    plain: Callable[..., None] = cls.__init__
    own = frozenset(inspect.signature(plain).parameters) - {"self"}

    def split(params: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
        foreign = {key: value for key, value in params.items() if key not in own}
        if not foreign:
            return params
        ours, rest = translate(foreign, "lambda_mart")
        both = sorted(ours.keys() & params.keys())
        if both:
            raise ParameterError(f"{both[0]} is given twice, once under LightGBM's name; leave one out")
        kept = {key: value for key, value in params.items() if key in own}
        merged = {**(kept.get("lightgbm") or before or {}), **rest}
        return {**kept, **ours, **({"lightgbm": merged} if merged else {})}

    @functools.wraps(plain)
    def construct(self: Any, **params: Any) -> None:
        plain(self, **split(params, None))

    def set_params(self: Any, **params: Any) -> Any:
        return super(cls, self).set_params(**split(params, self.lightgbm))  # type: ignore[arg-type]

    cls.__init__ = construct
    cls.set_params = set_params
    cls.own_names = staticmethod(lambda params: split({**params}, None))
    return cls


def _value(text: Any) -> Any:
    """A value that the command line gave as text."""
    if not isinstance(text, str) or len(text) > _LONGEST_LITERAL:
        return text
    with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return ast.literal_eval({"true": "True", "false": "False"}.get(text.lower(), text))
    return text


def data_options(lightgbm: Mapping[str, Any] | None, names: tuple[str, ...] | None, n: int) -> dict[str, Any]:
    """Return what LightGBM wants to know when it reads the data: which columns hold categories."""
    given = (lightgbm or {}).get("categorical_feature")
    if given is None:
        return {}
    wanted = given.removeprefix("name:").split(",") if isinstance(given, str) else list(np.atleast_1d(given))
    places = [_place(str(one).strip() if isinstance(one, str) else one, names, n) for one in wanted]
    return {"categorical_feature": places}


def _place(column: Any, names: tuple[str, ...] | None, n: int) -> int:
    """The place of a column, by number or by name."""
    if isinstance(column, str) and names is not None and column in names:
        return names.index(column)
    if str(column).isdigit() and int(column) < n:
        return int(column)
    raise ParameterError(
        f"categorical_feature has {column!r}, which is not a feature; name features, or count them from 0"
    )
