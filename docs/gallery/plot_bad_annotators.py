"""
Who guesses, and who answers in reverse?
========================================

Quality is the probability of ordering two items as they should be: 0.5 is guessing, below it is reversed. Every
annotator is measured against the consensus of the others.
"""

import crowdrank as cr

truth = {"item": [f"item {i}" for i in range(40)], "grade": list(range(40))}
drawn = cr.simulate.simulate(truth, annotators=25, noise="flip(0.15)+random(0.12)+malicious(0.08)", per_item=40, seed=3)
consensus = cr.aggregate(drawn.judgments)
cr.plot(consensus.quality)

# %%
# What to do about them, and what the ranking would be without those dropped:

advice = cr.actions(consensus, drawn.judgments)
print(advice.frame().filter(action="drop").select("annotator", "quality", "reason"))

# %%
# The simulation knows who they are:

print(drawn.quality.filter(drawn.quality["role"] != "honest").select("annotator", "role", "quality"))
