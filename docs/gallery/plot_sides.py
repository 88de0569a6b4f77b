"""
Who looks at the side instead of the answer?
============================================

Some judges choose the left answer more often than its worth explains. The diagnosis tells who, and how sure that is.
"""

import crowdrank as cr
from crowdrank.report import PositionBiasDisplay

truth = {"item": [f"answer {i}" for i in range(30)], "grade": list(range(30))}
fair = cr.simulate.simulate(truth, annotators=8, noise="flip(0.1)", per_item=60, seed=2).judgments.frame()
leaning = cr.simulate.simulate(truth, annotators=2, noise="flip(0.5,0,0.8)", per_item=10, seed=3).judgments.frame()
leaning = leaning.with_columns(annotator="leans " + leaning["annotator"])
votes = cr.Preferences.from_frame(fair.vstack(leaning.select(fair.columns)))
consensus = cr.aggregate(votes, "bradley_terry")
PositionBiasDisplay.from_consensus(consensus, votes).plot()
