"""
Who wins at equal length? Control for style
===========================================

A judge that likes long answers moves wordy models up. With the lengths of both answers beside each vote, scores are
compared at equal length.
"""

import numpy as np

import crowdrank as cr

rng = np.random.default_rng(7)
score = np.array([1.0, 0.6, 0.3, 0.0, -0.4])
wordy = np.array([300, 900, 250, 1200, 400])
left, right = rng.integers(0, 5, (2, 4000))
left, right = left[left != right], right[left != right]
length = rng.lognormal(np.log(wordy[np.stack([left, right])]), 0.4)
habit = (length[0] - length[1]) / length.sum(0)
won = rng.random(len(left)) < 1 / (1 + np.exp(-(score[left] - score[right] + 2.5 * habit)))
frame = {"left": left, "right": right, "winner": np.where(won, "left", "right"),
         "length_left": length[0], "length_right": length[1]}  # fmt: skip
votes = cr.Preferences.from_frame(frame, covariates=["length"])
print("true order      ", np.argsort(-score).tolist())
print("as judged       ", cr.aggregate(votes, "bradley_terry").order())
controlled = cr.aggregate(votes, "bradley_terry", control=["length"])
print("at equal length ", controlled.order())
cr.plot(controlled)
