"""
Rankings by a panel: Mallows, Plackett-Luce and Borda
=====================================================

Twelve judges each rank six wines; two of them guess.
"""

import crowdrank as cr

truth = {"item": ["oak", "plum", "smoke", "rose", "slate", "cork"], "grade": [5, 4, 3, 2, 1, 0]}
drawn = cr.simulate.simulate(
    truth, annotators=12, noise="mallows(1.2)+random(0.17)", kind="ranking", per_item=12, seed=8
)
for method in ("mallows", "plackett_luce", "borda"):
    print(f"{method:14s}", *cr.aggregate(drawn.judgments, method).order())

# %%
# Scores with intervals, by the method that learns a dispersion for each judge:

cr.plot(cr.aggregate(drawn.judgments, "mallows").quality)
