"""
May a program stand in for people
=================================

Three people graded 120 items, two programs graded 400. The audit leaves each person out in turn, and corrects the mean
grade of all items by what people say of some.
"""

import matplotlib.pyplot as plt
import numpy as np

import crowdrank as cr

rng = np.random.default_rng(0)
truth = rng.integers(1, 6, 400)


def grades(who, right, n):
    """Grades that are right so often, and otherwise any."""
    said = np.where(rng.random(n) < right, truth[:n], rng.integers(1, 6, n))
    return [(who, "q", f"i{k}", int(said[k])) for k in range(n)]


people = cr.Grades.from_rows([row for who in ("ann", "bob", "cy") for row in grades(who, 0.7, 120)])
programs = cr.Grades.from_rows(grades("careful", 0.9, 400) + grades("random", 0.0, 400))
found = cr.audit(people, programs)
print("\n".join(found.sentences))

rows = found.corrected.to_dicts()
names = ["people alone", *(f"with {row['program']}" for row in rows)]
values = [rows[0]["people"], *(row["corrected"] for row in rows)]
lower = [rows[0]["people_lower"], *(row["lower"] for row in rows)]
upper = [rows[0]["people_upper"], *(row["upper"] for row in rows)]
figure, ax = plt.subplots(figsize=(7, 2.2))
errors = [np.subtract(values, lower), np.subtract(upper, values)]
ax.errorbar(values, range(3), xerr=errors, fmt="o", capsize=3)
ax.set(yticks=range(3), yticklabels=names, xlabel="mean grade, 90 % interval")
figure.tight_layout()
