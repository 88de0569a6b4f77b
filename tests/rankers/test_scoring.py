"""The nDCG scorer in scikit-learn's searches, with groups of rows that stay together."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdrank.errors import ParameterError
from crowdrank.metrics import ndcg
from crowdrank.rankers import ListNet, ndcg_scorer


@pytest.fixture
def routing():
    """Metadata routing switched on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("scale", ["overall", "query"])
def test_a_search_over_group_folds_passes_queries_on(rows, scale):
    folds, scorer = GroupKFold(3), ndcg_scorer(k=5)
    search = GridSearchCV(ListNet(scale=scale), {"ridge": [0.01, 1.0]}, cv=folds, scoring=scorer)
    search.fit(rows.X, rows.y, qid=rows.qid, groups=rows.qid)
    expected = []
    for train, test in folds.split(rows.X, groups=rows.qid):
        assert not set(rows.qid[train]) & set(rows.qid[test])
        ranker = ListNet(scale=scale, ridge=search.best_params_["ridge"])
        ranker.fit(rows.X[train], rows.y[train], qid=rows.qid[train])
        scores = ranker.predict(rows.X[test], qid=rows.qid[test])
        expected.append(ndcg(rows.y[test], scores, rows.qid[test], k=5))
    assert search.best_score_ == pytest.approx(np.mean(expected))
    assert search.best_estimator_.n_features_in_ == 4


@pytest.mark.usefixtures("routing")
def test_items_and_weights_are_passed_on_where_asked_for(rows):
    item = [f"i{number // 2}" for number in range(len(rows.y))]
    ranker = ListNet().set_fit_request(sample_weight=True)
    search = GridSearchCV(ranker, {"ridge": [0.1, 1.0]}, cv=GroupKFold(3), scoring=ndcg_scorer())
    weight = np.linspace(1, 2, len(rows.y))
    search.fit(rows.X, rows.y, qid=rows.qid, item=item, sample_weight=weight, groups=rows.qid)
    plain = GridSearchCV(ListNet(), {"ridge": [0.1, 1.0]}, cv=GroupKFold(3), scoring=ndcg_scorer())
    plain.fit(rows.X, rows.y, qid=rows.qid, groups=rows.qid)
    assert search.best_score_ != plain.best_score_
    assert abs(search.best_estimator_.weights_ - plain.best_estimator_.weights_).max() > 1e-6


@pytest.mark.usefixtures("routing")
def test_a_ranker_scores_itself_by_ndcg(rows):
    search = GridSearchCV(ListNet(), {"ridge": [0.1]}, cv=GroupKFold(3))
    search.fit(rows.X, rows.y, qid=rows.qid, groups=rows.qid)
    with_scorer = GridSearchCV(ListNet(), {"ridge": [0.1]}, cv=GroupKFold(3), scoring=ndcg_scorer(10))
    with_scorer.fit(rows.X, rows.y, qid=rows.qid, groups=rows.qid)
    assert search.best_score_ == pytest.approx(with_scorer.best_score_)


@pytest.mark.usefixtures("routing")
def test_pipelines_and_cross_validation(rows):
    pipeline = make_pipeline(StandardScaler(), ListNet())
    pipeline.fit(rows.X, rows.y, qid=rows.qid)
    assert pipeline.predict(rows.X).shape == rows.y.shape
    params = {"qid": rows.qid, "groups": rows.qid}
    found = cross_validate(pipeline, rows.X, rows.y, cv=GroupKFold(3), scoring=ndcg_scorer(), params=params)
    assert found["test_score"].shape == (3,)


def test_without_queries_there_is_no_score(rows):
    ranker = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    with pytest.raises(ParameterError, match=r"does not know the query .*enable_metadata_routing=True"):
        ndcg_scorer()(ranker, rows.X, rows.y)
    with pytest.raises(ParameterError, match=r"ListNet.score does not know the query of each row; give qid="):
        ranker.score(rows.X, rows.y)
    pipeline = make_pipeline(StandardScaler(), ListNet()).fit(rows.X, rows.y, listnet__qid=rows.qid)
    with pytest.raises(ParameterError, match=r"ListNet\.score does not know"):
        pipeline.score(rows.X, rows.y)
    # rows of one query say so
    one = ranker.score(rows.X, rows.y, qid=np.zeros(len(rows.y)))
    assert one == pytest.approx(ndcg(rows.y, ranker.predict(rows.X), np.zeros(len(rows.y)), k=10))
    assert one != pytest.approx(ranker.score(rows.X, rows.y, qid=rows.qid), abs=0.01)


@pytest.mark.parametrize("scoring", [None, ndcg_scorer(), {"ndcg": ndcg_scorer()}])
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_a_search_without_routing_ends_with_the_remedy(rows, scoring, error_score):
    said = "does not know the query of each row; give qid=.*enable_metadata_routing=True"
    settings = {"cv": GroupKFold(3), "scoring": scoring, "error_score": error_score}
    for estimator, name in ((ListNet(), "ridge"), (make_pipeline(StandardScaler(), ListNet()), "listnet__ridge")):
        search = GridSearchCV(estimator, {name: [0.1, 1.0]}, refit=False, **settings)
        queries = {name.replace("ridge", "qid"): rows.qid}
        with pytest.raises(ParameterError, match=said):
            search.fit(rows.X, rows.y, groups=rows.qid, **queries)
    # a fit that is refused reaches the caller in scikit-learn's list of failures
    with pytest.raises(ValueError, match=said):
        cross_validate(ListNet(), rows.X, rows.y, groups=rows.qid, **settings)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match=said):
        cross_validate(ListNet(), rows.X, rows.y, params={"groups": rows.qid}, **settings)


def test_requests_can_be_chosen():
    scorer = ndcg_scorer().set_score_request(qid="query", item=False)
    assert scorer.get_metadata_routing().score.requests == {"qid": "query", "item": False}
    with pytest.raises(ParameterError, match="takes qid and item, not 'weight'"):
        scorer.set_score_request(weight=True)
    assert repr(ndcg_scorer(3)) == "NDCGScorer(k=3, gain='exponential')"
