"""
Which item beats which, and how sure is that?
=============================================

Standard errors, rank intervals and the probability that one item is above another; the bootstrap gives them for every
method.
"""

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.report import BeatsDisplay

votes = cr.read_judgments(FILE).across_queries()
consensus = cr.aggregate(votes, "bradley_terry")
BeatsDisplay.from_consensus(consensus).plot()

# %%
# Drawing whole annotators again instead of single votes tells how much hangs on who happened to take part:

by_annotator = cr.aggregate(votes, "bradley_terry", bootstrap=100, resample="annotator")
print(consensus.intervals().select("item", "rank", "rank_lower", "rank_upper").head(3))
print(by_annotator.intervals().select("item", "rank", "rank_lower", "rank_upper").head(3))
