"""Noise in words."""

import numpy as np
import pytest

from crowdrank import simulate
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.simulate import NOISES, parse_noise


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ("normal(0.7,0.2)", (0.7, 0.2)),
        (" log_normal( 0.4 , 0.2 ) ", (0.4, 0.2)),
        ("log-normal(.4,2e-1)", (0.4, 0.2)),
        ("lnN(0.4,0.2)", (0.4, 0.2)),
        ("U(0.2,0.6)", (0.2, 0.6)),
        ("flip(0.2)", (0.2, 0, 0)),
        ("flip(0.1..0.4)", ((0.1, 0.4), 0, 0)),
        ("flip(0.1, position=-0.3)", (0.1, 0, -0.3)),
        ("flip(tie=0.1..0.2, flip=0.3)", (0.3, (0.1, 0.2), 0)),
        ("mallows(1.5)", (1.5,)),
        ("swap(3)", (3,)),
        ("swap(3..31)", ((3, 31),)),
        ("profile", (0.35, 0.25, 0.5)),
        ("profile()", (0.35, 0.25, 0.5)),
        ("profile(noise=0.1)", (0.35, 0.25, 0.1)),
        ("plackett_luce(+1.5)", (1.5,)),
        ("false_good", (0.1, 1.3, 0.25)),
        ("false_bad", (0.25, 1.3, 0.25)),
        ("ltrma", ()),
    ],
)
def test_specs(spec, values):
    noise = parse_noise(spec)
    assert noise.values == values
    assert (noise.random, noise.malicious) == (0, 0)
    assert parse_noise(str(noise)) == noise


def test_spammers_are_added():
    noise = parse_noise("normal(0.7, 0.2) + random(0.1)+malicious(0.05)")
    assert (noise.random, noise.malicious) == (0.1, 0.05)
    assert str(noise) == "normal(0.7,0.2)+random(0.1)+malicious(0.05)"
    assert np.bincount(noise.pool(40, seed=1).role).tolist() == [34, 4, 2]
    assert parse_noise("ltrma+random(0.1)+random(0.1)").random == pytest.approx(0.2)


def test_ranges_are_drawn_for_each_annotator():
    flip = parse_noise("flip(0.1..0.4)").pool(5000, seed=1).parameters()["flip"]
    assert 0.1 <= flip.min() < 0.11 < 0.39 < flip.max() <= 0.4
    swaps = parse_noise("swap(3..5)").pool(5000, seed=1).parameters()["n_swaps"]
    assert np.unique(swaps).tolist() == [3, 4, 5]
    assert np.bincount(swaps)[3:] / 5000 == pytest.approx(np.full(3, 1 / 3), abs=0.03)


def test_pools_of_one_seed_are_equal():
    for name in ("normal(0.7,0.2)", "profile", "flip(0.1..0.4)", "normal(0.7,0.2)+random(0.3)"):
        first, again, other = (parse_noise(name).pool(50, seed=seed) for seed in (1, 1, 2))
        for key, value in first.parameters().items():
            np.testing.assert_array_equal(value, again.parameters()[key])
        changed = [not np.array_equal(v, other.parameters()[k], equal_nan=True) for k, v in first.parameters().items()]
        assert any(changed)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "names no model; write for example normal"),
        ("+random(0.1)", "names no model"),
        ("normal", r"normal needs mean \(0 to 1\); write for example normal\(0.7,0.2\)"),
        ("normal(0.7)", r"normal needs sd \(0 to 10\)"),
        ("normal(0.7,0.2,0.1)", r"number too many or misnamed; the form is normal\(mean, sd\)"),
        ("normal(0.7,spread=0.2)", "misnamed"),
        ("normal(0.7,mean=0.2)", "misnamed"),
        ("normal(1.7,0.2)", "mean of normal must be 0 to 1, not 1.7"),
        ("normal(a,0.2)", r"mean of normal must be a number \(0 to 1\), not 'a'"),
        ("normal(nan,0.2)", "must be a number"),
        ("normal(0.5..0.7,0.2)", "takes one number"),
        ("normal(0.7,0.2", "not of the form"),
        ("normal(0.7 0.2)", "must be a number"),
        ("normal(,)", "must be a number"),
        ("flip(1.2)", "flip of flip must be 0 to 1, not 1.2"),
        ("flip(0.4..0.1)", "low to high"),
        ("flip(0.1..0.2..0.3)", "must be a number"),
        ("swap(2.5)", "swaps of swap must be a whole number"),
        ("swap(-1)", "whole number, 0 to 1e"),
        ("mallows(-1)", "concentration of mallows must be 0 to 1000, not -1"),
        ("random(0.1)", r"mixed into a crowd; write for example normal\(0.7,0.2\)\+random"),
        ("flip(0.1)+flip(0.2)", "only random"),
        ("flip(0.1)+random(1.1)", "share of random must be 0 to 1"),
        ("flip(0.1)+random(0.6)+malicious(0.6)", "sum to 1.2"),
        ("flip(0.1)+", "not of the form"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(ParameterError, match=message):
        parse_noise(spec)


@pytest.mark.parametrize(
    ("name", "near"), [("nomal(0.7,0.2)", "normal"), ("malows(1)", "mallows"), ("falsegood", "false_good")]
)
def test_unknown_names_are_given_the_nearest(name, near):
    with pytest.raises(UnknownNameError, match=f"did you mean '{near}'"):
        parse_noise(name)


def test_a_name_like_no_other_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="there is no noise 'zzz'; known: normal, log_normal"):
        parse_noise("zzz(1)")


def test_the_table_is_complete():
    for name, model in NOISES.items():
        assert model.name == name
        assert model.description
        assert set(model.kinds) <= {"grade", "preference", "ranking"}
        assert model.signature.startswith(name)
        if model.make is None:
            assert parse_noise(f"profile+{model.example}").model.name == "profile"
            continue
        noise = parse_noise(model.example)
        assert noise.model is model
        pool = noise.pool(7, seed=1, n_levels=3)
        assert len(pool) == 7
        assert pool.kinds == model.kinds


def test_simulate_takes_parsed_noise():
    truth = {"item": [1, 2, 3], "grade": [0, 1, 2]}
    text, parsed = (
        simulate.simulate(truth, annotators=6, noise=noise).judgments.frame()
        for noise in ("flip(0.2)", parse_noise("flip(0.2)"))
    )
    assert text.equals(parsed)
