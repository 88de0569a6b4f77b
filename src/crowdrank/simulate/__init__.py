"""Annotators of known quality and judgments drawn from them; types of the public names are in ``__init__.pyi``."""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
"""Name -> module; how names are imported; what there is."""

__all__ = sorted(_HOMES)
