import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data.parted import fingerprint
from crowdrank.errors import DataWarning, JudgmentError, ParameterError

TABLE = pl.DataFrame({
    "query": ["q1", "q2", "q3"], "left": ["a", "b", "c"], "right": ["b", "c", "a"], "winner": ["left", "tie", "right"],
    "annotator": ["ann", "bob", "ann"], "length_left": [30, 0, 5], "length_right": [10, 0, 15],
    "bold_a": [1, 2, 3], "bold_b": [0, 2, 7], "margin": [0.5, -1.0, 2.0],
})  # fmt: skip


def read(*names, table=TABLE, **options):
    return cr.Preferences.from_frame(table, covariates=list(names), **options)


def test_names_and_transforms():
    found = read("length", "bold:log", "margin")
    assert found.covariate_names == ("length", "bold", "margin")
    assert found.covariates[:, 0].tolist() == [0.5, 0.0, -0.5]
    assert found.covariates[:, 1] == pytest.approx(np.log([2, 1, 0.5]))
    assert found.covariates[:, 2].tolist() == [0.5, -1.0, 2.0]
    assert read("bold:difference").covariates[:, 0].tolist() == [1, 0, -4]
    difference = np.array([1, 0, -4])
    assert read("bold:tanh").covariates[:, 0] == pytest.approx(np.tanh(difference / np.sqrt((difference**2).mean())))


def test_they_go_along():
    found = read("length", "margin")
    assert found.select(np.array([2, 0])).covariates.tolist() == [[-0.5, 2.0], [0.5, 0.5]]
    assert found.across_queries().covariates.tolist() == found.covariates.tolist()
    table = found.frame()
    assert table["length:ratio"].to_list() == [0.5, 0.0, -0.5]
    again = cr.Preferences.from_frame(table, covariates=["length", "margin"])
    assert fingerprint(again) == fingerprint(found)
    assert fingerprint(read("length", "bold")) != fingerprint(found)
    assert fingerprint(read()) != fingerprint(found)
    from crowdrank.data.judgments import align_judgments, stack_judgments

    both = stack_judgments(align_judgments([found, read("margin", "length", table=TABLE.head(1))]))
    assert both.covariate_names == ("length", "margin")
    assert both.covariates[3].tolist() == [0.5, 0.5]
    with pytest.raises(JudgmentError, match="'margin' stands in some sets"):
        stack_judgments(align_judgments([found, read("length")]))


def test_how_they_were_made_goes_along(tmp_path):
    from crowdrank.data.judgments import align_judgments, stack_judgments

    found = read("length:log", "bold", "margin")
    ways = ("log", "ratio", "given")
    assert found.covariate_transforms == ways
    assert found.select([0, 2]).across_queries().with_covariate("self", np.ones(2)).covariate_transforms == (
        *ways, "given",
    )  # fmt: skip
    found.frame().write_csv(tmp_path / "p.csv")
    again = cr.Preferences.from_frame(pl.read_csv(tmp_path / "p.csv"), covariates=["length", "bold", "margin"])
    assert again.covariate_transforms == ways
    assert fingerprint(again) == fingerprint(found)
    assert fingerprint(again) != fingerprint(read("length:difference", "bold", "margin"))
    assert read("margin:log").covariate_transforms == ("log",)
    with pytest.raises(JudgmentError, match=r"the table has 'length:log' and no two columns to make length:tanh of"):
        cr.Preferences.from_frame(found.frame(), covariates=["length:tanh"])
    both = stack_judgments(align_judgments([found, read("margin", "bold", "length:log")]))
    assert both.covariate_transforms == ways
    with pytest.raises(JudgmentError, match="'length' is made in two ways, log and ratio"):
        stack_judgments(align_judgments([found, read("length", "bold", "margin")]))


def test_what_is_missing_or_odd_is_said():
    with pytest.raises(JudgmentError, match=r"no covariate 'words': neither words_left and .*'length_left'"):
        read("words")
    blank = TABLE.with_columns(length_right=pl.Series([10, None, 15]))
    with pytest.raises(JudgmentError, match=r"'length_right' is blank in row 2 \(query 'q2'"):
        read("length", table=blank)
    with pytest.warns(DataWarning, match="left out 1 of 3 rows"):
        assert len(read("length", table=blank, invalid="drop")) == 2
    with pytest.raises(JudgmentError, match="below 0, which ratio cannot take"):
        read("length", table=TABLE.with_columns(length_left=pl.Series([-1, 2, 3])))
    with pytest.raises(JudgmentError, match=r"'length' is below 0, which log cannot take, in row 1 \(query 'q1'"):
        read("length:log", table=TABLE.with_columns(length_left=pl.Series([-1, 2, 3])))
    endless = TABLE.with_columns(margin=pl.Series([0.5, float("inf"), float("nan")]))
    with pytest.raises(JudgmentError, match=r"'margin' is NaN or infinite in row 2 \(query 'q2'"):
        read("margin", table=endless.head(2))
    with pytest.raises(JudgmentError, match=r"'margin' is blank in row 3 \(query 'q3'"):
        read("margin", table=endless)
    with pytest.warns(DataWarning, match="left out 2 of 3 rows"):
        assert read("margin", table=endless, invalid="drop").covariates.tolist() == [[0.5]]
    # a part of a larger set may have it; methods refuse it
    assert not read("margin", table=TABLE.with_columns(margin=pl.lit(0))).covariates.any()
    with pytest.raises(ParameterError, match="transform of length"):
        read("length:square")
    with pytest.raises(ParameterError, match="named twice"):
        read("length", "length:log")
