"""The fingerprint of judgments: the same in any order, another after any change."""

import polars as pl
import pytest

from crowdrank.data.judgments import Grades, Mixed, Preferences, Rankings
from crowdrank.data.parted import fingerprint

FRAMES = {
    Grades: {"annotator": list("aabb"), "item": list("xyxy"), "grade": [1.0, 2.0, 3.0, 0.0]},
    Preferences: {"annotator": list("aabb"), "left": list("xyxy"), "right": list("yxzz"), "winner": list("xyxz")},
    Rankings: {"annotator": list("aaabbb"), "item": list("xyzxyz"), "rank": [1, 2, 3, 3, 1, 2]},
}


@pytest.mark.parametrize("kind", FRAMES)
def test_order_does_not_matter_and_changes_do(kind):
    frame = pl.DataFrame(FRAMES[kind])
    first = fingerprint(kind.from_frame(frame))
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert fingerprint(kind.from_frame(frame.reverse())) == first
    others = [
        frame.with_columns(annotator=pl.col("annotator").replace("a", "c")),
        frame.with_columns(weight=pl.Series([2.0] * len(frame))),
        frame.with_columns(time=pl.Series(range(len(frame))) if kind is not Rankings else pl.lit(5)),
        frame.with_columns(query=pl.lit("q")),
        frame.head(len(frame) - 1),
        pl.concat([frame, frame.head(1)]) if kind is not Rankings else frame.with_columns(rank=pl.lit(1)),
    ]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {fingerprint(kind.from_frame(other)) for other in others}
    assert first not in found
    assert len(found) == len(others)


def test_kinds_differ_and_mixed_judgments_have_one():
    grades, preferences = (kind.from_frame(FRAMES[kind]) for kind in (Grades, Preferences))
    assert len({fingerprint(j) for j in (grades, preferences, Mixed.of([grades, preferences]))}) == 3


def test_sides_matter():
    swapped = FRAMES[Preferences] | {"left": list("yxzz"), "right": list("xyxy")}
    assert fingerprint(Preferences.from_frame(swapped)) != fingerprint(Preferences.from_frame(FRAMES[Preferences]))
