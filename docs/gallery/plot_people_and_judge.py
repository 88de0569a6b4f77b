"""
A few people and a program that need not be right
=================================================

Fifty queries were judged by people, a thousand by a language model. Prediction-powered inference corrects the program
by the people, and its interval holds however bad the program is.
"""

import matplotlib.pyplot as plt
import numpy as np

import crowdrank as cr

rng = np.random.default_rng(1)
opinion = rng.random(1000) < 0.6
said = np.where(rng.random(1000) < 0.8, opinion, True)  # the program leans to x
rows = [("people", f"q{i}", "x", "y", "x" if opinion[i] else "y") for i in range(50)]
judged = [("program", f"q{i}", "x", "y", "x" if said[i] else "y") for i in range(1000)]
rate = cr.win_rate(cr.Preferences.from_rows(rows), cr.Preferences.from_rows(judged), "x", "y")
figure, ax = plt.subplots(figsize=(7, 2.2))
shares = [rate["people_share"], rate["judge_share"], rate["share"]]
below = [shares[0] - rate["people_lower"], 0, shares[2] - rate["lower"]]
above = [rate["people_upper"] - shares[0], 0, rate["upper"] - shares[2]]
ax.errorbar(shares, range(3), xerr=[below, above], fmt="o", capsize=3)
ax.axvline(opinion.mean(), color="gray", linestyle=":")
ax.set(yticks=range(3), yticklabels=["50 people", "program alone", "both"], xlabel="share that prefers x")
figure.tight_layout()
