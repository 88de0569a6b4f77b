"""Judgments for tests of pictures and reports: usual, empty and hostile ones."""

import numpy as np

from crowdrank.data.judgments import Grades, Preferences

HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</script><script>alert(3)</script>",
    "{{7*7}}{% raw %}", "javascript:alert(4)", "&amp;&lt;b&gt;", "]]><svg onload=alert(5)>", "tab\tline\nbell\x07",
    "\u202eturned", "\U0001f600 \u6f22\u5b57", "$\\frac{1}{2}$ _x_^2", "' onmouseover='alert(6)",
    "https://example.org/?a=<b>&c='d'", "x" * 10_000, "</style><style>*{display:none}", "<!--", "%s %(x)s {0}",
    "\u2028line\u2029", "-->\x85", "\\u003cscript\\u003e",
]  # fmt: skip
"""Names that would break a page that trusted them."""


def preferences(names, annotators, n, *, queries=("q",), reverse=(), guess=(), lean=(), seed=0):
    """Preferences of annotators who mostly see that names stand best first, but for some."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        first, second = rng.choice(len(names), 2, replace=False)
        who = annotators[rng.integers(len(annotators))]
        slope = -0.6 if who in reverse else 0.0 if who in guess else 0.6
        chance = 0.97 if who in lean else 1 / (1 + np.exp(-slope * (second - first)))
        won = "left" if rng.random() < chance else "right"
        rows.append((who, queries[rng.integers(len(queries))], names[first], names[second], won))
    return Preferences.from_rows(rows)


def grades(names, annotators, *, levels=4, noise=0.6, words=None, nominal=False, seed=0):
    """Grades of every annotator for every item."""
    rng = np.random.default_rng(seed)
    rows = []
    for who in annotators:
        for place, name in enumerate(names):
            grade = int(np.clip(round(place % levels + rng.normal(0, noise)), 0, levels - 1))
            rows.append((who, "q", name, words[grade] if words else grade))
    return Grades.from_rows(rows, nominal=nominal)
