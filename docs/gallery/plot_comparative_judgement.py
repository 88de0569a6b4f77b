"""
Comparative judgement of essays
===============================

A hundred essays, two at a time: how sure is the scale after ten, and after thirty comparisons of each?
"""

import matplotlib.pyplot as plt

import crowdrank as cr

truth = {"item": [f"essay {i:03d}" for i in range(100)], "grade": [i / 25 for i in range(100)]}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, per_item in zip(axes, (10, 30), strict=True):
    drawn = cr.simulate.simulate(
        truth, annotators=12, noise="plackett_luce(1)", kind="preference", per_item=per_item, seed=5
    )
    scale = cr.aggregate(drawn.judgments, "bradley_terry")
    tau = cr.evaluate(scale, truth, metrics=["tau"])["value"].item()
    shown = scale.intervals()
    ax.errorbar(range(len(shown)), shown["score"], [shown["score"] - shown["lower"], shown["upper"] - shown["score"]],
                fmt=".", linewidth=0.6)  # fmt: skip
    ax.set(title=f"{per_item} comparisons each, tau {tau:.2f}", xlabel="essays, best first", ylabel="score")
figure.tight_layout()
