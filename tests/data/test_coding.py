"""Ids as codes: the same whatever way the columns take through the coder."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.data import index
from crowdrank.data.frames import to_frame
from crowdrank.data.index import compact, factorize, factorize_groups, look_up
from crowdrank.errors import JudgmentError

TEXTS = st.lists(
    st.one_of(st.none(), st.sampled_from(["a", " a", "b ", "", " ", "é", "10", "9", "z" * 40])), max_size=30
)


def slow(columns):
    """Codes by sorting a Python set."""
    cleaned = [[None if v is None or not v.strip() else v.strip() for v in column] for column in columns]
    ids = sorted({v for column in cleaned for v in column if v is not None}, key=lambda v: v.encode())
    return [[-1 if v is None else ids.index(v) for v in column] for column in cleaned], ids


@given(TEXTS, TEXTS)
def test_text_is_stripped_sorted_and_coded(first, second):
    columns = [pl.Series(first, dtype=pl.String), pl.Series(second, dtype=pl.String)]
    codes, ids = factorize(columns)
    wanted, names = slow([first, second])
    assert ids.to_list() == names
    assert [code.tolist() for code in codes] == wanted


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5), st.just(10**15)), min_size=1, max_size=30))
def test_integers_are_coded_by_value(values):
    (codes,), ids = factorize([pl.Series(values, dtype=pl.Int64)])
    names = sorted({v for v in values if v is not None})
    assert ids.to_list() == names
    assert codes.tolist() == [-1 if v is None else names.index(v) for v in values]


@pytest.mark.parametrize("n_ids", [7, 900, 70_000, 150_000])
@pytest.mark.parametrize("layout", ["random", "runs", "blanks"])
@pytest.mark.parametrize("long", [10**9, 1000])
def test_long_columns_are_coded_like_short_ones(n_ids, layout, long, monkeypatch):
    monkeypatch.setattr(index, "LONG", long)
    rng = np.random.default_rng(n_ids)
    number = rng.integers(0, n_ids, 200_000)
    if layout != "random":
        number = np.sort(number)
    texts = pl.Series([f"id-{k}" for k in range(n_ids)]).gather(number)
    if layout == "blanks":
        texts = texts.set(pl.Series(rng.random(len(texts)) < 0.01), None)
        texts = texts.set(pl.Series(rng.random(len(texts)) < 0.01), "  ")
    coded = factorize_groups([[texts, texts.reverse()], [texts]])
    for codes, ids in coded:
        assert ids.is_sorted()
        assert ids.n_unique() == len(ids)
        back = ids.gather(np.maximum(codes[0], 0)).to_list()
        blank = texts.is_null() | (texts == "  ")
        assert (codes[0] < 0).tolist() == blank.to_list()
        assert all(a == b for a, b, gone in zip(back, texts.to_list(), blank.to_list(), strict=True) if not gone)
    np.testing.assert_array_equal(coded[0][0][0], coded[0][0][1][::-1])
    for (codes, ids), (loose, loose_ids) in zip(
        coded, factorize_groups([[texts, texts.reverse()], [texts]], ordered=False), strict=True
    ):
        assert loose_ids.sort().equals(ids)
        for column, loose_column in zip(codes, loose, strict=True):
            np.testing.assert_array_equal(column < 0, loose_column < 0)
            assert ids.gather(column[column >= 0]).equals(loose_ids.gather(loose_column[column >= 0]))


def test_few_texts_are_coded_like_more(monkeypatch):
    texts = ["b", " a", "", None, "\u2003é\xa0", "\x1c", "𝔸", "\uffff", "a\n", "Z", "\u3000", "b"]
    columns = [pl.Series("one", texts), pl.Series("other", [*reversed(texts), None], pl.String)]
    one_by_one = factorize(columns)
    monkeypatch.setattr(index, "_FEW", 0)
    at_once = factorize(columns)
    assert one_by_one[1].equals(at_once[1])
    assert one_by_one[1].name == at_once[1].name
    for few, more in zip(one_by_one[0], at_once[0], strict=True):
        assert few.dtype == more.dtype
        assert few.tolist() == more.tolist()


def test_texts_with_one_hash_are_told_apart_by_the_other(monkeypatch):
    monkeypatch.setattr(index, "LONG", 10)
    texts = pl.Series([f"id-{k % 60}" for k in range(100)])
    wanted = factorize([texts])
    whole = pl.Series.hash

    def narrow(self, seed=0):
        return whole(self, seed) % 7 if seed == 0 else whole(self, seed)

    monkeypatch.setattr(pl.Series, "hash", narrow)
    codes, ids = factorize([texts])
    assert ids.equals(wanted[1])
    np.testing.assert_array_equal(codes[0], wanted[0][0])


def test_columns_of_two_types_meet_as_text():
    codes, ids = factorize([pl.Series([2, 10]), pl.Series(["10", "x"])])
    assert ids.to_list() == ["10", "2", "x"]
    assert [code.tolist() for code in codes] == [[1, 0], [0, 2]]


def test_other_types_become_text_or_integers():
    assert factorize([pl.Series([1.0, 2.0, float("nan")])])[1].to_list() == [1, 2]
    assert factorize([pl.Series([1.5, 2.0])])[1].to_list() == ["1.5", "2.0"]
    assert factorize([pl.Series([True, False])])[1].to_list() == ["false", "true"]
    assert factorize([pl.Series([None, None])])[0][0].tolist() == [-1, -1]
    with pytest.raises(JudgmentError, match="compound values"):
        factorize([pl.Series("item", [[1], [2]])])


def test_codes_left_over_are_closed_up():
    codes, ids = compact(np.array([2, 0, 2], np.int32), pl.Series(["a", "b", "c"]))
    assert codes.tolist() == [1, 0, 1]
    assert ids.to_list() == ["a", "c"]


def test_looking_up_says_which_are_unknown():
    assert look_up([pl.Series(["a", "b"])], [pl.Series(["b", "c", None])]).tolist() == [1, -1, -1]


@pytest.mark.parametrize("make", [dict, lambda columns: pd.DataFrame(columns, dtype=object)])
def test_half_of_a_character_is_named(make):
    table = make({"item": ["a", "b"], "text": ["whole", "half \ud800"]})
    with pytest.raises(JudgmentError, match="row 2 of column 'text' holds half of a character"):
        to_frame(table)
