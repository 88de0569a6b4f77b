"""
Few votes, many items: let features help
========================================

With a vote for one item in ten, a joint model learns the consensus, the annotators and a ranker together.
"""

import crowdrank as cr

corpus = cr.simulate.draw_corpus(30, 20, n_features=8, interactions=0.0, seed=6)
drawn = cr.simulate.simulate(
    corpus.truth, annotators=10, noise="uniform(0.5,0.95)", kind="grade", per_item=1, seed=6
).judgments
few = drawn.select(range(0, len(drawn), 10))
fit = cr.train(few, corpus.features, joint="latent_score")
scored = fit.predict(corpus.features)
for name, result in (("votes alone", cr.aggregate(few, "mean_grade")), ("votes and features", scored)):
    table = cr.evaluate(result, corpus.truth.truth, metrics=["ndcg@10"], all_queries=True)
    print(f"{name}: nDCG@10 {table['value'].item():.3f}")
cr.plot(fit)
