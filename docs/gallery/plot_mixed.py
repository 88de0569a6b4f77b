"""
Grades, preferences and rankings together
=========================================

Grades of last year, preferences of a panel and one ranking by an expert, on one scale.
"""

import crowdrank as cr

truth = {"item": [f"answer {i}" for i in range(12)], "grade": [i / 3 for i in range(12)]}
draw = cr.simulate.simulate
grades = draw({**truth, "grade": [i // 3 for i in range(12)]}, annotators=6, noise="symmetric(0.6)", per_item=3, seed=1)
pairs = draw(truth, annotators=6, noise="plackett_luce(1.5)", kind="preference", per_item=8, seed=2)
ranking = draw(truth, annotators=1, noise="mallows(1.5)", kind="ranking", per_item=1, seed=3)
consensus = cr.aggregate([grades.judgments, pairs.judgments, ranking.judgments], "latent_score")
print(f"tau with the truth: {cr.evaluate(consensus, truth, metrics=['tau'])['value'].item():.2f}")
cr.plot(consensus)
