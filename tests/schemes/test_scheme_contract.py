"""What every scheme promises, taken from the registry."""

import warnings

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import api, simulate
from crowdrank.errors import DataWarning, JudgmentError
from crowdrank.registry import card, make, names

CASES = [(name, kind) for name in names("scheme") for kind in card("scheme", name).kinds]
POOL = {"annotator": [f"a{n:02}" for n in range(0, 14, 2)] + ["new"], "price": [1, 2, 1, 2, 1, 2, 1, 3]}
COLUMNS = ["annotator", "n_more", "reason", "cost", "expected_gain"]


@pytest.fixture(scope="module")
def crowd():
    """Grades and preferences of 40 items in four queries by twelve annotators, at known times."""
    table = {"query": [f"q{n % 4}" for n in range(40)], "item": [f"i{n:02}" for n in range(40)]}
    truth = {**table, "grade": [n % 5 for n in range(40)]}
    found = {}
    for kind, noise, n in (("grade", "normal(0.7,0.1)", 2), ("preference", "flip(0.2)", 3)):
        drawn = simulate.simulate(truth, annotators=12, noise=noise, kind=kind, per_item=n, seed=1).judgments.frame()
        names = pl.Series([f"a{n:02}" for n in range(12)]).gather(drawn["annotator"].rank("dense").cast(int) - 1)
        found[kind] = drawn.with_columns(annotator=names, time=np.random.default_rng(0).permutation(len(drawn)))
    return found


def asked(name, votes, **options):
    """What a scheme asks, without the warnings of fits to small data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return api.requests(votes, name, **options)


def things(frame):
    """Item, or unordered pair, of each row."""
    if "item" in frame.columns:
        return frame.select("query", "item").rows()
    return [(query, *sorted(pair)) for query, *pair in frame.select("query", "left", "right").rows()]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_columns_and_numbers(name, kind, crowd):
    frame = asked(name, crowd[kind], budget=30).frame()
    assert frame.columns == ["query", *(["item"] if kind == "grade" else ["left", "right"]), *COLUMNS]
    assert 0 < frame["n_more"].sum() <= 30
    assert frame["annotator"].null_count() == len(frame)
    assert (frame["cost"] == frame["n_more"]).all()
    assert frame["expected_gain"].is_finite().all()
    assert (frame["expected_gain"] >= 0).all()
    assert frame["reason"].str.len_chars().min() > 5
    assert len(set(things(frame))) == len(frame)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_with_a_pool(name, kind, crowd):
    requests = asked(name, crowd[kind], pool=POOL, budget=40)
    frame = requests.frame()
    assert len(frame) > 0
    assert requests.cost <= 40
    assert frame["annotator"].is_in(POOL["annotator"]).all()
    price = dict(zip(POOL["annotator"], POOL["price"], strict=True))
    assert frame["cost"].to_list() == [price[who] for who in frame["annotator"]]
    rows = list(zip(things(frame), frame["annotator"], strict=True))
    assert len(set(rows)) == len(rows)
    judged = crowd[kind]
    assert not set(rows) & set(zip(things(judged), judged["annotator"], strict=True))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_same_seed_gives_the_same(name, kind, crowd):
    first, second = (asked(name, crowd[kind], pool=POOL, budget=25, seed=3).frame() for _ in range(2))
    assert first.equals(second)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_order_of_rows_does_not_matter_where_there_are_times(name, kind, crowd):
    one = asked(name, crowd[kind], budget=20)
    other = asked(name, crowd[kind].sample(fraction=1.0, shuffle=True, seed=2), budget=20)
    assert set(things(one.frame())) == set(things(other.frame()))
    assert one.expected_gain == pytest.approx(other.expected_gain, rel=1e-3)


@pytest.fixture(scope="module")
def tied():
    """Grades and preferences in which equal scores and gains are common: few fractional grades of unequal weights."""
    rng, grades, preferences = np.random.default_rng(6), [], []
    for query in range(3):
        levels = rng.integers(0, 3, (3, 8))
        levels[:, 1], levels[:, 3], levels[:, 5] = np.roll(levels[:, 0], 1), levels[:, 2], levels[:, 4]
        for who in range(3):
            for item in range(8):
                row = (f"a{who}", f"q{query}", f"i{item}")
                grades.append((*row, (0.1, 0.2, 0.3)[levels[who, item]], rng.choice([0.1, 0.3, 0.7])))
                for other in range(item + 1, min(item + 4, 8)):
                    winner = ("right", "tie", "left")[int(np.sign(levels[who, item] - levels[who, other])) + 1]
                    preferences.append((*row, f"i{other}", winner, rng.choice([0.1, 0.3, 0.7])))
    found = {"grade": (grades, ["item", "grade"]), "preference": (preferences, ["left", "right", "winner"])}
    return {
        kind: pl.DataFrame(rows, schema=["annotator", "query", *names, "weight"], orient="row").with_columns(
            time=pl.int_range(pl.len())
        )
        for kind, (rows, names) in found.items()
    }


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_ties_are_asked_the_same_in_another_order_of_rows(name, kind, tied):
    one = asked(name, tied[kind], budget=8).frame()
    for seed in range(3):
        other = asked(name, tied[kind].sample(fraction=1.0, shuffle=True, seed=seed), budget=8).frame()
        assert set(things(one)) == set(things(other))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_nothing_writes_to_the_judgments(name, kind, crowd):
    judged = {"grade": cr.Grades, "preference": cr.Preferences}[kind].from_frame(crowd[kind])
    before = judged.frame()
    asked(name, judged, pool=POOL, budget=5)
    assert judged.frame().equals(before)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_items_nobody_judged(name, kind, crowd):
    items = {"query": ["q0", "q9", "q9"], "item": ["fresh", "x", "y"]}
    frame = asked(name, crowd[kind], items=items).frame()
    listed = set(zip(items["query"], items["item"], strict=True))
    columns = ["item"] if kind == "grade" else ["left", "right"]
    assert {(query, item) for column in columns for query, item in frame.select("query", column).rows()} <= listed
    assert ("q9" in frame["query"]) or kind == "grade"
    if kind == "grade":
        assert len(frame) == 3


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_nobody_in_the_pool_can_be_asked(name, kind, crowd):
    requests = asked(name, crowd[kind], pool={"annotator": ["a00"], "capacity": [0]}, budget=10)
    assert len(requests) == 0
    assert requests.frame().columns[-5:] == COLUMNS
    assert requests.sentence().startswith("nothing to ask: ")


@pytest.mark.parametrize("name", names("scheme"))
def test_another_kind_is_refused_with_a_remedy(name, small):
    kinds = card("scheme", name).kinds
    for kind, judged in small.items():
        if kind not in kinds:
            with pytest.raises(JudgmentError, match=f"not {kind}s; "):
                cr.propose(judged, name)


@pytest.mark.parametrize("name", names("scheme"))
def test_schemes_hold_parameters_only(name):
    scheme = make("scheme", name)
    assert hash(scheme) == hash(make("scheme", name))
    assert scheme == make("scheme", name)
