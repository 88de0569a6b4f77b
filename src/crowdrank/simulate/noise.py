"""Noise in words: from ``normal(0.7,0.2)+random(0.1)`` to a pool of annotators."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ParameterError, UnknownNameError
from ..protocols import Floats
from ..wording import did_you_mean
from . import pools
from .known import Seed
from .pools import Pool

Value: TypeAlias = "float | tuple[float, float]"
"""A number for all annotators, or the bounds it is drawn from for each."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Parameter:
    """One number of a noise model.

    Parameters
    ----------
    name
        Its name; values may be given by place or by name.
    low, high
        Its range, bounds included.
    default
        Its value when left out; ``None``: it must be given.
    varies
        Whether ``a..b`` may be written, to draw it uniformly for each annotator.
    whole
        Whether it counts something.
    """

    name: str
    low: float
    high: float
    default: float | None = None
    varies: bool = False
    whole: bool = False

    @property
    def range(self) -> str:
        """The range in words."""
        return f"{'a whole number, ' if self.whole else ''}{self.low:g} to {self.high:g}"

    def draw(self, value: Value, n_annotators: int, rng: np.random.Generator) -> float | Floats:
        """Return the value for all annotators, or one drawn for each."""
        if not isinstance(value, tuple):
            return value
        low, high = value
        if self.whole:
            return rng.integers(int(low), int(high), n_annotators, endpoint=True).astype(float)
        return rng.uniform(low, high, n_annotators)


@dataclass(frozen=True)
class NoiseModel:
    """A row of the table of noise models.

    Parameters
    ----------
    name, example
        The model's name, and a use of it.
    kinds
        Kinds of judgment it draws, the usual one first.
    parameters
        Its numbers, in order.
    description
        What such annotators do.
    make
        A class of pools, or a function from the numbers and ``n_annotators`` to one; ``None`` for spammers, who are
        mixed in.
    wants
        What else ``make`` wants: ``seed``, ``n_levels``.
    """

    name: str
    example: str
    kinds: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    description: str
    make: Callable[..., Pool] | None = None
    wants: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """The name with its parameters and defaults."""
        words = [p.name if p.default is None else f"{p.name}={p.default:g}" for p in self.parameters]
        return f"{self.name}({', '.join(words)})" if words else self.name


@dataclass(frozen=True)
class Noise:
    """A noise model with its numbers, and the shares of spammers to mix in.

    Examples
    --------
    >>> noise = parse_noise("flip(0.1..0.4) + malicious(0.05)")
    >>> str(noise), noise.kinds
    ('flip(0.1..0.4,0,0)+malicious(0.05)', ('preference',))
    >>> len(noise.pool(40, seed=1))
    40
    """

    model: NoiseModel
    values: tuple[Value, ...]
    random: float = 0.0
    malicious: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of judgment it draws, the usual one first."""
        return self.model.kinds

    def __str__(self) -> str:
        shown = [f"{v[0]:g}..{v[1]:g}" if isinstance(v, tuple) else f"{v:g}" for v in self.values]
        base = f"{self.model.name}({','.join(shown)})" if shown else self.model.name
        spam = {"random": self.random, "malicious": self.malicious}
        return base + "".join(f"+{name}({share:g})" for name, share in spam.items() if share)

    def pool(self, n_annotators: int, *, seed: Seed = 0, n_levels: int | None = None) -> Pool:
        """Return annotators drawn from the model.

        Parameters
        ----------
        n_annotators
            Annotators in all, spammers included.
        n_levels
            Number of grades, where the model needs it.
        """
        assert self.model.make is not None
        value_rng, pool_rng, spam_rng = np.random.default_rng(seed).spawn(3)
        count = pools.positive(n_annotators)
        pairs = zip(self.model.parameters, self.values, strict=True)
        values = [parameter.draw(value, count, value_rng) for parameter, value in pairs]
        if isinstance(self.model.make, type):
            # a pool itself, whose parameters have an entry per annotator
            pool = self.model.make(*(np.broadcast_to(np.asarray(value, float), count) for value in values))
        else:
            extra: dict[str, Any] = {"seed": pool_rng, "n_levels": n_levels}
            pool = self.model.make(*values, n_annotators=count, **{name: extra[name] for name in self.model.wants})
        if not self.random and not self.malicious:
            return pool
        return pools.with_spammers(pool, random=self.random, malicious=self.malicious, seed=spam_rng)


def parse_noise(spec: str) -> Noise:
    """Return the noise that a text such as ``normal(0.7,0.2)+random(0.1)`` describes.

    The first part is a model of `NOISES` with its numbers, by place or by name; ``a..b`` draws a number uniformly for
    each annotator. ``+random(share)`` and ``+malicious(share)`` make a share of the annotators spammers.

    Examples
    --------
    >>> parse_noise("log_normal(0.4, 0.2)").values
    (0.4, 0.2)
    >>> parse_noise("nomal(0.7,0.2)")
    Traceback (most recent call last):
        ...
    crowdrank.errors.UnknownNameError: there is no noise 'nomal'; did you mean 'normal'? ...
    """
    parts = [part.strip() for part in re.split(r"\+(?![^(]*\))", spec)]
    if not parts[0]:
        raise ParameterError(f"noise {spec!r} names no model; write for example {NOISES['normal'].example}")
    base, values = _parse_part(parts[0])
    if base.make is None:
        example = f"normal(0.7,0.2)+{base.example}"
        raise ParameterError(f"{base.name} spammers are mixed into a crowd; write for example {example}")
    shares = {"random": 0.0, "malicious": 0.0}
    for part in parts[1:]:
        model, share = _parse_part(part)
        if model.make is not None or not isinstance(share[0], float):
            raise ParameterError(f"only random(share) and malicious(share) can be added to {base.name}, not {part!r}")
        shares[model.name] += share[0]
    if (total := sum(shares.values())) > 1:
        raise ParameterError(f"the shares of spammers in {spec!r} sum to {total:g}; they must not pass 1")
    return Noise(base, values, **shares)


def _parse_part(part: str) -> tuple[NoiseModel, tuple[Value, ...]]:
    """Model and values of one part such as ``flip(0.2, tie=0.1)``."""
    match = re.fullmatch(r"([A-Za-z_][\w-]*)\s*(?:\((.*)\))?", part)
    if match is None:
        raise ParameterError(f"noise {part!r} is not of the form name(number, ...); write for example normal(0.7,0.2)")
    plain = match[1].lower().replace("-", "_")
    plain = _TABLE["aliases"].get(plain, plain)
    if plain not in NOISES:
        hint = did_you_mean(plain, NOISES)
        raise UnknownNameError(f"there is no noise {match[1]!r}; {hint}known: {', '.join(NOISES)}")
    model = NOISES[plain]
    given: dict[str, Any] = {}
    names = [parameter.name for parameter in model.parameters]
    words = [word.strip() for word in match[2].split(",")] if match[2] and match[2].strip() else []
    for place, word in enumerate(words):
        name, _, text = word.rpartition("=")
        name = name.strip() or (names[place] if place < len(names) else "")
        if name not in names or name in given:
            raise ParameterError(f"{part!r} has a number too many or misnamed; the form is {model.signature}")
        parameter, text = model.parameters[names.index(name)], text.strip()
        bounds, of = text.split(".."), f"{parameter.name} of {model.name}"
        if not all(_NUMBER.fullmatch(bound.strip()) for bound in bounds) or len(bounds) > 2:
            raise ParameterError(f"{of} must be a number ({parameter.range}), not {text!r}")
        if len(bounds) == 2 and not parameter.varies:
            raise ParameterError(f"{of} takes one number ({parameter.range}), not a range {text!r}")
        numbers = [float(bound) for bound in bounds]
        for number in numbers:
            if not parameter.low <= number <= parameter.high or (parameter.whole and number != round(number)):
                raise ParameterError(f"{of} must be {parameter.range}, not {number:g}")
        if numbers[0] > numbers[-1]:
            rising = f"{numbers[1]:g}..{numbers[0]:g}"
            raise ParameterError(f"{of} ranges from low to high; write {rising}, not {text}")
        given[name] = (numbers[0], numbers[1]) if len(numbers) == 2 else numbers[0]
    for parameter in model.parameters:
        value = given.setdefault(parameter.name, parameter.default)
        if value is None:
            needed = f"{parameter.name} ({parameter.range})"
            raise ParameterError(f"{model.name} needs {needed}; write for example {model.example}")
    return model, tuple(given[name] for name in names)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _model(name: str, row: dict[str, Any]) -> NoiseModel:
    """A model of the table."""
    make = getattr(pools, row["make"]) if "make" in row else None
    parameters = tuple(Parameter(**one) for one in row.get("parameters", ()))
    wants = tuple(row.get("wants", ()))
    return NoiseModel(name, row["example"], tuple(row["kinds"]), parameters, row["description"], make, wants)


NOISES = {name: _model(name, row) for name, row in _TABLE["models"].items()}
"""Every noise model by name: what the command line knows and its help shows."""
