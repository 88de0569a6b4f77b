"""Differences measured in pairs."""

from crowdrank_studies.paired import clear, difference_text


def test_a_mean_with_its_standard_error():
    assert difference_text([1.0, 3.0]) == "+2.0 ± 1.0"
    assert difference_text([-0.256], 2) == "-0.26"


def test_what_is_clear():
    assert clear([1.0, 1.1, 0.9]) == 1
    assert clear([-1.0, -1.1, -0.9]) == -1
    assert clear([-1.0, 1.5]) == 0
    assert clear([5.0]) == 0
    assert clear([1.0, 3.0], least=1.9) == clear([1.0, 1.5]) == 1
    assert clear([1.0, 3.0], least=2.1) == 0
