"""Judges of language models on public data: what control finds, and where it has to be refused."""

import numpy as np
import polars as pl
import pytest
from benchmarks.real_judges import llmfao

import crowdrank as cr
from crowdrank.errors import UnidentifiedError


@pytest.mark.filterwarnings("ignore")
def test_habits_of_two_programs(data_folder):
    preferences = llmfao(data_folder)
    # left, length and lists with standard errors, as a fit of another program found them
    for who, known in (
        ("GPT-3.5", {"bias": (1.01, 0.06), "length": (0.80, 0.06)}),
        ("GPT-4", {"bias": (-0.30, 0.06), "length": (-0.22, 0.06), "lists": (-0.40, 0.06)}),
    ):
        found = cr.aggregate(preferences, control=[name for name in known if name != "bias"])
        ids, parameters = found.learned
        row = ids.ids.to_list().index(who)
        for name, (value, error) in known.items():
            own, own_error = parameters[name][row], parameters[f"{name}_sd"][row]
            assert abs(own - value) < 2 * np.hypot(error, own_error), (who, name, own)
        assert found.estimates["control"]["length"]["sd_between_annotators"] > 0.3
        assert 0.1 < found.estimates["control"]["length"]["identified"] < 0.4


@pytest.mark.filterwarnings("ignore")
def test_pairs_of_one_query_are_refused(data_folder):
    items = pl.read_csv(data_folder / "llmbar-judges" / "items.csv.gz")
    verdicts = pl.read_csv(data_folder / "llmbar-judges" / "judgments.csv.gz").drop_nulls("winner").head(4000)
    table = verdicts.join(items, on=["subset", "item"]).select(
        query=pl.concat_str("subset", pl.lit("/"), "item"), left=pl.lit("1"), right=pl.lit("2"),
        winner=pl.col("winner").cast(pl.Int64).replace_strict({1: "left", 2: "right"}),
        annotator="judge_model",
        length_left=pl.col("output_1").str.len_chars(), length_right=pl.col("output_2").str.len_chars(),
    )  # fmt: skip
    preferences = cr.Preferences.from_frame(table, covariates=["length"])
    for method in ("latent_score", "bradley_terry"):
        with pytest.raises(UnidentifiedError, match="length does not vary within pairs"):
            cr.aggregate(preferences, method, control=["length"])
    assert "length" in cr.diagnose(preferences, control=["length"]).annotators().columns


@pytest.mark.filterwarnings("ignore")
def test_own_families_of_two_programs(data_folder):
    found = cr.aggregate(llmfao(data_folder), control=["length", "lists", "self"], robust="none")
    ids, parameters = found.learned
    unit = found.estimates["control"]["self"]["unit"]
    # log-odds of an answer of the own family with standard errors, as a fit of another program found them
    for who, value, error in (("GPT-3.5", 0.54, 0.17), ("GPT-4", 1.91, 0.25)):
        row = ids.ids.to_list().index(who)
        own, own_error = parameters["self"][row] / unit, parameters["self_sd"][row] / unit
        assert own > 0
        assert abs(own - value) < 2 * np.hypot(error, own_error), (who, own)
    told = cr.findings(found, llmfao(data_folder)).of("prefers_own_family")
    assert told.ids == ("GPT-4",)
    assert told.numbers["n_annotators"] == 2
