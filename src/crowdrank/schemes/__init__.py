"""Schemes: which judgments to buy next, of whom, and when to stop.

A scheme is a frozen dataclass of hyper-parameters, imported when it is first used. It has

- ``kinds``: the kinds of judgment it takes;
- ``needs``: for each kind of judgment, the aggregator whose consensus it uses; empty where it uses none;
- ``propose(situation)``: from a :class:`~crowdrank.schemes.situation.Situation` to
  :class:`~crowdrank.data.proposals.Requests`. A scheme lists what it wants, most urgent first, as a
  :class:`~crowdrank.schemes.situation.WishList`, whose ``requests`` applies budget,
  prices, capacities and the rule that nobody judges the same thing twice.

A scheme that looks at the grades of one item at a time (:class:`~crowdrank.schemes.grade_rules.GradeRule`) also has
``n_wanted(grade, offsets)``, the number of grades each item should have given those it has, in the order in which they
came, and ``asking_probabilities(runs)``, of which its cost by formula is made.
"""

from ..lazy import names_of_stub

_HOMES, __getattr__, __dir__ = names_of_stub(__name__, __file__)
