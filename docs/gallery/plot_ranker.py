"""
A ranker from noisy grades
==========================

Grades by a noisy crowd and 20 features make a ranker for items nobody judged. How much does a better consensus buy?
"""

import crowdrank as cr

corpus = cr.simulate.draw_corpus(120, 10, n_features=20, seed=4)
votes = cr.simulate.simulate(
    corpus.truth, annotators=30, noise="uniform(0.3,0.9)", kind="grade", per_item=3, seed=4
).judgments
for aggregator in ("majority_vote", "dawid_skene", None):
    fit = cr.train(votes, corpus.features, ranker="list_net", aggregator=aggregator)
    scored = fit.predict(corpus.features)
    value = cr.evaluate(scored, corpus.truth.truth, metrics=["ndcg@10"])["value"].item()
    print(f"{aggregator or 'every grade as it is'}: nDCG@10 {value:.3f}")

# %%
# Which features count:

cr.plot(fit)
