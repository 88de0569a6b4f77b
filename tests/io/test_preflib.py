"""PrefLib files in both forms."""

import pytest

from crowdrank.errors import JudgmentError
from crowdrank.io import listen, read_judgments, read_preflib

PRESENT = """# FILE NAME: 00001-00000001.toi
# TITLE: A title: with a colon
# DESCRIPTION:
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 4
# ALTERNATIVE NAME 1: Anna Berg
# ALTERNATIVE NAME 2: Ben
# ALTERNATIVE NAME 3: 003
# ALTERNATIVE NAME 4: Dora
3: 1,2,{3,4}
1: 2, {1 , 3}
"""
OLD = """4
1,Anna Berg
2,Ben
3,003
4,Dora
4,4,2
3,1,2,{3,4}
1,2,{1,3}
"""
EXPECTED = [
    ("Anna Berg", 1, 0, 3.0),
    ("Ben", 2, 0, 3.0),
    ("003", 3, 0, 3.0),
    ("Dora", 3, 0, 3.0),
    ("Ben", 1, 1, 1.0),
    ("003", 2, 1, 1.0),
    ("Anna Berg", 2, 1, 1.0),
]


def put(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("text", [PRESENT, OLD, PRESENT.replace("\n", "\r\n")])
def test_both_forms(tmp_path, text):
    rankings = read_preflib(put(tmp_path, "a.toi", text))
    rows = rankings.frame().select("item", "rank", "ranking", "weight").rows()
    assert sorted(rows) == sorted(EXPECTED)
    assert len(rankings.annotators) == 0
    assert rankings.items.single


def test_items_nobody_ranked_are_known_and_numbers_stand_in_for_names(tmp_path):
    rankings = read_preflib(put(tmp_path, "a.soi", PRESENT.replace("3: 1,2,{3,4}\n", "")))
    assert rankings.items.ids.to_list() == ["003", "Anna Berg", "Ben", "Dora"]
    assert read_preflib(put(tmp_path, "b.soc", "2: 10,2\n")).items.ids.to_list() == ["10", "2"]


def test_doubled_names_fall_back_to_numbers(tmp_path):
    heard = []
    listen(heard.append)
    try:
        rankings = read_preflib(put(tmp_path, "a.toc", PRESENT.replace("Dora", "Ben")))
    finally:
        listen(None)
    assert rankings.items.ids.to_list() == ["1", "2", "3", "4"]
    assert "called by number" in heard[0]


def test_read_judgments_takes_them_alone_or_together(tmp_path):
    first, second = put(tmp_path, "a.toi", PRESENT), put(tmp_path, "b.soc", "2: 1,2\n")
    assert read_judgments(first).weight.tolist() == [3, 1]
    both = read_judgments([first, second])
    assert list(both.items.queries) == ["a.toi", "b.soc"]
    assert both.weight.tolist() == [3, 1, 2]
    with pytest.raises(JudgmentError, match="holds rankings, not grades"):
        read_judgments(first, kind="grade")
    with pytest.raises(JudgmentError, match="read them apart"):
        read_judgments([first, put(tmp_path, "c.csv", "item,grade\nx,1\n")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PRESENT + "2; 1,2\n", "line 12 is '2; 1,2'"),
        (PRESENT + "x: 1,2\n", "line 12 has 'x' for a count"),
        (PRESENT + "0: 1,2\n", "line 12 has '0' for a count"),
        (PRESENT + "2: 1,{2,3\n", "line 12 has the order '1,{2,3'"),
        (PRESENT + "2: 1,,2\n", "line 12 has the order '1,,2'"),
        (PRESENT + "2:\n", "line 12 has the order ''"),
        (PRESENT + "2: 1,2,1\n", "line 12 ranks alternative 1 twice"),
        (PRESENT + "2: 1,5\n", "line 12 ranks alternative 5 of 4"),
        (PRESENT + "2: 1,0\n", "line 12 has '0' for an alternative"),
        ("# TITLE: nothing\n", "holds no rankings"),
        ("4\n1,a\n", "says it has 4 alternatives but ends before them"),
        ("1\nab\n1,1,1\n1,1\n", "line 2 is 'ab'"),
        ("\n\n", "holds only blank lines"),
    ],
)
def test_what_is_wrong_names_the_line(tmp_path, text, expected):
    with pytest.raises(JudgmentError) as caught:
        read_preflib(put(tmp_path, "a.toi", text))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
