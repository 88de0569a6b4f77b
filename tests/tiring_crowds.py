"""Crowds whose annotators tire, or stay as they are, with what a consensus of them is measured by."""

import numpy as np
import polars as pl

import crowdrank as cr

N_ANNOTATORS = 20


def tiring_classes(seed, *, tired, n_items=800, n_each=5):
    """Four classes by annotators who are right in 95 % at first and 20 % at last, or constantly in 60 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n_items)
    item = np.tile(np.arange(n_items), n_each)
    who = np.concatenate([(np.arange(n_items) + 7 * k * k + 1 + k) % N_ANNOTATORS for k in range(n_each)])
    order = rng.permutation(len(item))
    frame = pl.DataFrame({"item": item[order], "annotator": who[order]}).with_columns(
        time=pl.int_range(pl.len()).over("annotator").cast(float), number=pl.len().over("annotator")
    )
    right = 0.95 - 0.75 * (frame["time"] / frame["number"]).to_numpy() if tired else np.full(len(item), 0.6)
    grade = np.where(rng.random(len(item)) < right, truth[frame["item"]], rng.integers(0, 4, len(item)))
    frame = frame.drop("number").with_columns(grade=pl.Series(grade).cast(pl.String))
    return cr.Grades.from_frame(frame, nominal=True), truth


def tiring_preferences(seed, *, tired, n_items=30, n_each=100):
    """Preferences by annotators who see well in their first half and hardly in the second, or the same throughout."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.2, n_items)
    who, step = np.repeat(np.arange(N_ANNOTATORS), n_each), np.tile(np.arange(n_each), N_ANNOTATORS)
    left = rng.integers(0, n_items, len(who))
    right = (left + rng.integers(1, n_items, len(who))) % n_items
    skill = np.where(step < n_each / 2, 2.0, 0.2) if tired else np.ones(len(who))
    won = rng.logistic(size=len(who)) < skill * (scores[left] - scores[right])
    frame = {"left": left, "right": right, "annotator": who, "winner": np.where(won, "left", "right"), "time": step}
    return cr.Preferences.from_frame(pl.DataFrame(frame)), scores


def share_right(consensus, truth):
    found = consensus.frame().sort("item")
    return np.mean(found["grade"].cast(int).to_numpy() == truth)


def order_right(consensus, truth):
    return cr.metrics.kendall_tau(truth, consensus.frame().sort("item")["score"].to_numpy())
