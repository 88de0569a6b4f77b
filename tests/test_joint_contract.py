"""What every joint method promises, taken from the registry; what cannot hold is skipped by name, with the reason."""

import dataclasses
import json
import warnings

import numpy as np
import polars as pl
import pytest
from tests.strategies import COLUMNS, KINDS

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError
from crowdrank.io import from_json, to_json
from crowdrank.registry import card, make, method_class, names

CASES = [(name, kind) for name in names("joint") for kind in card("joint", name).kinds]
ALIASES = ("ltrma-d", "ltrma-ml", "jam", "vrjam", "iam")

PARTS = {
    "aggregator": {"grade": "mean_grade", "preference": "bradley_terry", "ranking": "mallows"},
    "ranker": dict.fromkeys(("grade", "preference", "ranking"), "list_mle"),
}
"""What composites are made of."""

CANNOT: dict[str, dict[str, str]] = {"names": {}, "sides": {}, "weight": {}}

N_QUERIES, N_ITEMS = 10, 5


def skip_if_it_cannot(promise, name):
    if name in CANNOT[promise]:
        pytest.skip(CANNOT[promise][name])


def method_of(name, kind, seed=3):
    """The method, with its parts if it takes any."""
    fields = {field.name for field in dataclasses.fields(method_class("joint", name))}
    return make("joint", name, {part: of_kind[kind] for part, of_kind in PARTS.items() if part in fields}, seed=seed)


def fitted(name, judged, features):
    """Fit without the warnings about tiny data, which tests of each method look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method_of(name, judged.kind).fit(judged, features)


@pytest.fixture(scope="module")
def features():
    """Three features of ten queries of five items."""
    rng = np.random.default_rng(0)
    ids = pl.DataFrame(
        {
            "query": np.repeat([f"q{k}" for k in range(N_QUERIES)], N_ITEMS),
            "item": np.tile([f"i{k}" for k in range(N_ITEMS)], N_QUERIES),
        }
    )
    matrix = rng.normal(size=(len(ids), 3))
    return cr.Features.from_arrays(ids["query"], ids["item"], matrix, names=("near", "wide", "old"))


@pytest.fixture(scope="module")
def judged(features):
    """Judgments of each kind by four annotators of falling quality, of scores that two features explain."""
    rng, ids = np.random.default_rng(1), features.items.frame()
    truth = features.matrix @ [1.5, -1.0, 0.0] + rng.normal(0, 0.5, len(features))
    grades, preferences, rankings = [], [], []
    for who, noise in (("ann", 0.5), ("bob", 0.8), ("cid", 1.2), ("dan", 2.0)):
        for query, part in ids.with_columns(seen=truth + rng.normal(0, noise, len(ids))).group_by("query"):
            order = part.sort("seen", descending=True)["item"].to_list()
            rankings += [(who, query[0], item, place + 1) for place, item in enumerate(order)]
            for item, seen in part.select("item", "seen").rows():
                grades.append((who, query[0], item, int(np.clip(round(2 + seen), 0, 4))))
            for number, item in enumerate(order):
                for other in order[number + 1 :]:
                    flip = rng.random() < 0.5
                    preferences.append((who, query[0], *((other, item) if flip else (item, other)), item))
    rows = {"grade": grades, "preference": preferences, "ranking": rankings}
    return {kind: KINDS[kind].from_rows(rows[kind]) for kind in KINDS}


@pytest.fixture(scope="module")
def tied(features):
    """Judgments in which ties are common: few fractional grades of unequal weights, some items alike."""
    rng, found = np.random.default_rng(4), {kind: [] for kind in KINDS}
    for query in range(N_QUERIES):
        levels = rng.integers(0, 3, (4, N_ITEMS))
        levels[:, 1], levels[:, 3] = np.roll(levels[:, 0], 1), levels[:, 2]
        for who, level in zip(("ann", "bob", "cid", "dan"), levels, strict=True):
            weight = rng.choice([0.1, 0.3, 0.7])
            for item in range(N_ITEMS):
                row = (who, f"q{query}", f"i{item}")
                found["grade"].append((*row, (0.1, 0.2, 0.3)[level[item]], rng.choice([0.1, 0.3, 0.7])))
                found["ranking"].append((*row, 3 - int(level[item]), weight))
                for other in range(item):
                    winner = ("right", "tie", "left")[int(np.sign(level[item] - level[other])) + 1]
                    found["preference"].append((*row, f"i{other}", winner, rng.choice([0.1, 0.3, 0.7])))
    columns = {kind: [*names, "weight"] for kind, names in COLUMNS.items()}
    return {
        kind: KINDS[kind].from_frame(pl.DataFrame(rows, schema=columns[kind], orient="row"))
        for kind, rows in found.items()
    }


def same_places(one, other, rename=lambda ids: ids):
    """Check that two fits have exactly the same ranks; ``rename`` is applied to the ids of one."""
    ranks = rename(one.consensus.items.frame()).with_columns(rank=pl.Series(one.consensus.ranks()))
    there = other.consensus.items.frame().with_columns(there=pl.Series(other.consensus.ranks()))
    both = ranks.join(there, on=["query", "item"])
    assert len(both) == len(ranks)
    assert both["rank"].to_list() == both["there"].to_list()


def same(one, other, *, rename=lambda ids: ids, atol=1e-6):
    """Check that two fits tell the same of items, annotators and unseen rows; ``rename`` is applied to ids of one."""
    if one.consensus is not None:
        ids = rename(one.consensus.items.frame())
        scores = ids.with_columns(score=pl.Series(one.consensus.scores))
        there = other.consensus.items.frame().with_columns(there=pl.Series(other.consensus.scores))
        both = scores.join(there, on=["query", "item"])
        assert len(both) == len(ids)
        np.testing.assert_allclose(both["score"], both["there"], atol=atol)
    if one.quality is not None:
        here = rename(one.quality.frame().select("annotator", "quality"))
        both = here.join(other.quality.frame().select("annotator", there="quality"), on="annotator")
        assert len(both) == len(here)
        np.testing.assert_allclose(both["quality"], both["there"], atol=atol)
    rows = pl.DataFrame(np.random.default_rng(9).normal(size=(7, 3)), schema=["near", "wide", "old"])
    np.testing.assert_allclose(one.predict(rows), other.predict(rows), atol=atol)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_everything_is_finite_and_the_same_each_time(name, kind, judged, features):
    fit, again = fitted(name, judged[kind], features), fitted(name, judged[kind], features)
    same(fit, again, atol=0)
    assert fit.method == name
    assert (fit.n_items, fit.n_queries, fit.n_unjudged) == (N_QUERIES * N_ITEMS, N_QUERIES, 0)
    assert fit.predict(features)["score"].is_finite().all()
    assert np.isfinite(fit.consensus.scores).all()
    assert fit.quality is fit.consensus.quality
    assert ((fit.quality.quality >= 0) & (fit.quality.quality <= 1)).all()
    assert fit.quality.frame()["annotator"][0] == "ann"
    assert fit.quality.frame()["annotator"][3] == "dan"
    assert fit.trace.n_iter >= 1
    if fit.pairs is not None:
        assert fit.pairs.frame()["probability"].is_between(0, 1).all()


def shuffled(name, judged, features):
    """The fit of the rows of judgments and features in another order."""
    rows = judged.frame().drop("ranking", strict=False).sample(fraction=1.0, shuffle=True, seed=5)
    table = features.items.frame().hstack(pl.DataFrame(features.matrix, schema=list(features.names)))
    mixed_up = cr.Features.from_frame(table.sample(fraction=1.0, shuffle=True, seed=6))
    return fitted(name, KINDS[judged.kind].from_frame(rows), mixed_up)


def renamed(frame):
    """A table under other names, which sort in another order."""
    new = {"q": lambda k: f"z{(7 * k) % N_QUERIES}", "i": lambda k: f"w{(3 * k) % N_ITEMS}"}
    people = dict(zip(("ann", "bob", "cid", "dan"), ("sam", "pat", "zoe", "kim"), strict=True))
    for column in {"query", "item", "left", "right"}.intersection(frame.columns):
        values = [new[text[0]](int(text[1:])) for text in frame[column]]
        frame = frame.with_columns(pl.Series(column, values))
    return frame.with_columns(pl.col("annotator").replace(people)) if "annotator" in frame.columns else frame


def under_other_names(name, judged, features):
    """The fit of the same under other names."""
    ids, rows = renamed(features.items.frame()), renamed(judged.frame().drop("ranking", strict=False))
    named = cr.Features.from_arrays(ids["query"], ids["item"], features.matrix, names=features.names)
    return fitted(name, KINDS[judged.kind].from_frame(rows), named)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_order_of_rows_changes_nothing(name, kind, judged, features):
    same(fitted(name, judged[kind], features), shuffled(name, judged[kind], features))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_names_change_nothing(name, kind, judged, features):
    skip_if_it_cannot("names", name)
    fit = fitted(name, judged[kind], features)
    same(fit, under_other_names(name, judged[kind], features), rename=renamed, atol=1e-5)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_ties_stay_ties_in_another_order_and_under_other_names(name, kind, tied, features):
    fit = fitted(name, tied[kind], features)
    for other, rename in ((shuffled, lambda ids: ids), (under_other_names, renamed)):
        again = other(name, tied[kind], features)
        same(fit, again, rename=rename, atol=1e-5)
        same_places(fit, again, rename)


@pytest.mark.parametrize("name", [name for name, kind in CASES if kind == "preference"])
def test_the_side_an_item_stands_on_changes_nothing(name, judged, features):
    skip_if_it_cannot("sides", name)
    rows = judged["preference"].frame().rename({"left": "right", "right": "left"})
    turn = {"left": "right", "right": "left", "tie": "tie"}
    turned = cr.Preferences.from_frame(rows.with_columns(pl.col("winner").replace(turn)))
    same(fitted(name, judged["preference"], features), fitted(name, turned, features), atol=1e-5)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_nothing_writes_to_what_is_given(name, kind, judged, features):
    before, numbers = judged[kind].frame(), features.matrix.copy()
    fitted(name, judged[kind], features).predict(features)
    assert judged[kind].frame().equals(before)
    np.testing.assert_array_equal(features.matrix, numbers)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_items_nobody_judged_are_predicted_and_rankers_saved(name, kind, judged, features, tmp_path):
    fit = fitted(name, judged[kind], features)
    rng = np.random.default_rng(3)
    unseen = cr.Features.from_arrays(["new"] * 6, list("abcdef"), rng.normal(size=(6, 3)), names=features.names)
    scores = fit.predict(unseen)
    assert scores.columns == ["query", "item", "score"]
    expected = unseen.matrix @ [1.5, -1.0, 0.0]
    assert np.corrcoef(scores["score"], expected)[0, 1] > 0.7
    fit.save(tmp_path / "model")
    np.testing.assert_allclose(cr.load_ranker(tmp_path / "model").predict(unseen), scores["score"], rtol=1e-12)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_features_of_more_items_or_fewer(name, kind, judged, features):
    few = judged[kind].select(np.flatnonzero(queries_of(judged[kind]) < 6))
    fit = fitted(name, few, features)
    assert fit.n_queries == 6
    assert fit.n_unjudged == 4 * N_ITEMS
    keep = np.flatnonzero(np.arange(len(features)) % N_ITEMS != 2)
    ids = features.items.frame()[keep]
    less = cr.Features.from_arrays(ids["query"], ids["item"], features.matrix[keep], names=features.names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        fit = method_of(name, kind).fit(judged[kind], less)
    assert any("10 of 50 judged items have no features" in str(warning.message) for warning in caught)
    assert np.isfinite(fit.consensus.scores).all()
    assert fit.n_items == len(keep)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_consensus_goes_through_json(name, kind, judged, features):
    consensus = fitted(name, judged[kind], features).consensus
    again = from_json(json.loads(json.dumps(to_json(consensus), allow_nan=False)))
    assert again.frame().equals(consensus.frame())
    assert again.quality.frame().equals(consensus.quality.frame())
    assert again.method == consensus.method


@pytest.mark.parametrize("name", names("joint"))
def test_another_kind_is_refused_with_a_remedy(name, judged, features):
    kinds = card("joint", name).kinds
    for kind in KINDS:
        if kind not in kinds:
            with pytest.raises(JudgmentError, match=f"not {kind}s; "):
                method_of(name, kinds[0]).fit(judged[kind], features)


@pytest.mark.parametrize("name", ALIASES)
def test_the_names_of_papers_work(name, judged, features):
    kinds = card("joint", name).kinds
    kind = "ranking" if "ranking" in kinds else "preference"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        fit = cr.train(judged[kind], features, joint=name)
    assert fit.predict(features)["score"].is_finite().all()


def queries_of(judged):
    """Query code of each judgment."""
    if judged.kind == "ranking":
        return judged.query
    return judged.items.query[judged.left if judged.kind == "preference" else judged.item]
