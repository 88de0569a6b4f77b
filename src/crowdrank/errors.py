"""Every exception and warning class of the package, and how it warns."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec


class CrowdrankError(Exception):
    """Base of all errors that a user's input or choice can cause; each message says what to do."""


class JudgmentError(CrowdrankError, ValueError):
    """Judgments, features or truth that cannot be used as they are."""


class UnidentifiedError(JudgmentError):
    """Covariates that are confounded with scores."""


class ParameterError(CrowdrankError, ValueError):
    """A parameter outside its range, or one that does not fit the judgments."""


class UnknownNameError(CrowdrankError, LookupError):
    """A method, metric, data set or id that is not known; the message names the nearest known one."""


class MissingExtraError(CrowdrankError, ImportError):
    """A method needs an optional package; the message names the extra to install."""


_EXTRAS = {"scikit-learn": "rankers", "lightgbm": "rankers", "joblib": "rankers", "matplotlib": "plots"}
"""Package -> the extra that installs it, of packages that are imported in several places."""


def expect_package(module: str) -> None:
    """Refuse to go on without an optional package, naming the extra that installs it."""
    if sys.modules.get(module) is None and (module in sys.modules or find_spec(module) is None):
        package = "scikit-learn" if module == "sklearn" else module
        remedy = f"install it with pip install 'crowdrank[{_EXTRAS[package]}]'"
        raise MissingExtraError(f"this needs the package {package}; {remedy}")


class MissingDataError(CrowdrankError, FileNotFoundError):
    """A public data set is not where it was looked for; the message says where to get it and where to put it."""


class ClusterError(CrowdrankError, RuntimeError):
    """A cluster that does not answer or has lost its workers; the message says how to go on."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it met its tolerance; the last iterate was kept."""


class DataWarning(UserWarning):
    """The judgments are usable but have something the user should know of."""


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the line outside the package that led here, however many calls it is away."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("crowdrank."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
