"""
A leaderboard of models, with honest intervals
==============================================

Thirty annotators compared the answers of twelve models. Who leads, and which places are open?
"""

import crowdrank as cr
from crowdrank.demo import FILE

votes = cr.read_judgments(FILE).across_queries()
board = cr.aggregate(votes)
cr.plot(board)

# %%
# Bars are 95 % intervals; the ranks behind the names are the places that a model may truly hold. Ratings on the scale
# of arenas, with the last model as the anchor:

print(board.rating(anchor="willow-base").head(4))

# %%
# How likely is it that the leader is better than the next two?

first, second, third = board.order()[:3]
print(f"{first} above {second}: {board.beats(first, second):.2f}; above {third}: {board.beats(first, third):.2f}")
