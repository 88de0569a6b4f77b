"""
Which judgments to buy next
===========================

Two ways to spend the same money on a leaderboard of twenty models: any pair, or the pairs that decide most.
"""

import crowdrank as cr

truth = {"item": [f"model {i:02d}" for i in range(20)], "grade": [i / 10 for i in range(20)]}
start = cr.simulate.simulate(truth, annotators=10, noise="plackett_luce(1)", kind="preference", per_item=8, seed=1)
requests = cr.propose(start.judgments, budget=20)
print(requests.select("left", "right", "n_more").head(5))
print(requests["reason"][0])

# %%
# Where the consensus stands so far:

cr.plot(cr.aggregate(start.judgments, "bradley_terry"))
