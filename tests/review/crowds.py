"""Simulated crowds for tests of the diagnostics: independent annotators, copies, families, biased ones."""

import numpy as np

from crowdrank.data.judgments import Preferences


def panel(rng, *, n=8, things=300, accuracy=(0.6, 0.9), copies=0, family=0, shared=0.0, ties=0.0, hard=False):
    """Preferences of one pair in each query by every annotator.

    The first ``copies`` annotators are one; of the answers of the first ``family`` a share is one common answer.
    ``hard`` queries are answered less well by everybody.
    """
    lead = 2 * rng.uniform(*accuracy, n)[:, None] - 1
    clear = rng.random(things) if hard else np.ones(things)
    truth = rng.choice([-1, 1], things)

    def answers(strength):
        return np.where(rng.random(strength.shape) < 0.5 * (1 + strength * clear), truth, -truth)

    given = answers(np.broadcast_to(lead, (n, things)))
    common = answers(np.full(things, lead[: max(family, 1)].mean()))
    taken = rng.random((n, things)) < shared
    taken[family:] = False
    given = np.where(taken, common, given)
    given[1:copies] = given[0]
    given[rng.random((n, things)) < ties] = 0
    return given, truth


def preferences(given, group=None):
    """Preferences from a table of outcomes, (n_annotators, n_queries); a query has one pair, shown in random order."""
    n, things = given.shape
    turn = np.random.default_rng(0).choice([-1, 1], things)
    who, query = np.repeat(np.arange(n), things), np.tile(np.arange(things), n)
    left = np.where(turn > 0, "x", "y")[query]
    right = np.where(turn > 0, "y", "x")[query]
    winner = np.array(["right", "tie", "left"])[(given * turn).ravel() + 1]
    table = {"annotator": [f"a{a}" for a in who], "query": query, "left": left, "right": right, "winner": winner}
    if group is not None:
        table["group"] = [group[a] for a in who]
    return Preferences.from_frame(table)


def winners(truth):
    """The truth as a table of winners."""
    n = len(truth)
    return {
        "query": np.arange(n),
        "left": ["x"] * n,
        "right": ["y"] * n,
        "winner": np.where(truth > 0, "left", "right"),
    }
