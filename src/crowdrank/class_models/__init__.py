"""What the class methods share: grades as codes, known items, warm starts, and what is read out of a fit.

A class method (naive Bayes, Dawid-Skene, GLAD, MACE) estimates the level of each item and a confusion matrix of each
annotator. Its ``fit`` is four steps around an estimate of its own:

1. :func:`class_rows` turns grades into codes and clamps the items of ``known=``;
2. :func:`former_fit` maps a former consensus, ``start=``, on the annotators and levels of now;
3. :func:`identified` tells whether the annotators can be told apart at all, and :func:`votes_as_fit` gives the grades
   back where they cannot; :func:`fit_queries` serves ``per_query=True``;
4. :func:`class_consensus` reads scores, grades, confidence and quality out of the :class:`ClassFit`.
"""

from __future__ import annotations

from .fits import ClassFit, class_consensus, class_quality, fit_queries, joined_fit, votes_as_fit
from .rows import (
    ClassRows,
    Former,
    QueryPart,
    clamped,
    class_rows,
    former_fit,
    given_accuracies,
    identified,
    query_parts,
    vote_shares,
)

__all__ = [
    "ClassFit",
    "ClassRows",
    "Former",
    "QueryPart",
    "clamped",
    "class_consensus",
    "class_quality",
    "class_rows",
    "fit_queries",
    "former_fit",
    "given_accuracies",
    "identified",
    "joined_fit",
    "query_parts",
    "vote_shares",
    "votes_as_fit",
]
