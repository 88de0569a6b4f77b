"""
A leaderboard by a judge of one's own
=====================================

A Python function stands in for a language model. It is asked only about pairs that decide the order.
"""

import numpy as np

import crowdrank as cr

rng = np.random.default_rng(0)
worth = {"amber": 0.0, "beryl": 0.8, "coral": 1.6, "dahlia": 2.4}
answers = [(f"q{number}", name) for number in range(60) for name in worth]


def judge(question):
    """Prefer the better one, more often the larger the difference."""
    first, second = (worth[name] for name in question.ids[1:])
    return {"winner": "A" if rng.logistic() < first - second else "B"}


table = {
    "query": [q for q, _ in answers],
    "item": [name for _, name in answers],
    "content": [" ".join(one) for one in answers],
}
run = cr.judge(table, judge, calls=300, orders="random", parallel=1)
print(run.stopped)

# %%
# How sure each place is.
cr.plot(run.consensus)
