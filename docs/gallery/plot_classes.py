"""
One class for each item: Dawid-Skene beside the majority
========================================================

Annotators of very different ability label items; a confusion matrix for each says whose label to believe.
"""

import crowdrank as cr

drawn = cr.simulate.draw_truth(1, 400, seed=2)
votes = cr.simulate.simulate(
    drawn, annotators=40, noise="uniform(0.25,0.95)", kind="grade", per_item=5, seed=2
).judgments
methods = ["majority_vote", "naive_bayes", "dawid_skene"]
comparison = cr.compare_methods(votes, methods=methods, truth=drawn.truth, metrics=["accuracy"])
print(comparison.frame())
cr.plot(comparison)
