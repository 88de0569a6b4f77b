"""Columns of style: each counted by hand on a text of ten lines, and texts that would make a careless pattern hang."""

import math
import time
import unicodedata

import pytest

from crowdrank.features.style import (
    COLUMNS,
    MAX_CHARACTERS,
    WORDS,
    style_columns,
    style_counts,
)

TEXT = """# A small Test

I don't like tea; you do, because **you** never drink it!
Is it so: "WHY not"? See [the page](http://a.example/x) and `code, here`.

- one (1)
* two
1. three
> café
| a | b |
|---|---|
```python
# no heading, **not bold**, I you never
```
i say $$x$$ no."""
# words by line: A small Test (3); I don't like tea you do because you never drink it (11); Is it so WHY not See the
# page and (9); one 1 (2); two; 1 three (2); café; a b (2); i say x no (4)


@pytest.fixture(scope="module")
def counts():
    return style_counts(TEXT)


@pytest.fixture(scope="module")
def columns(counts):
    return dict(zip(COLUMNS, style_columns(counts), strict=True))


def test_there_are_36_columns_and_lists_of_the_stated_lengths(columns):
    assert len(COLUMNS) == len(set(COLUMNS)) == len(columns) == 36
    assert [len(words) for words in WORDS.values()] == [16, 8, 20, 22]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("words", 3 + 11 + 9 + 2 + 1 + 2 + 1 + 2 + 4),
        ("sentences", 5),  # it! "WHY not"? and the points after the code, after 1 and at the end
        ("paragraphs", 3), ("headings", 1), ("bold", 1), ("bullets", 2), ("numbered", 1), ("code_blocks", 1),
        ("inline_code", 1), ("tables", 1), ("quotes", 1), ("links", 1), ("formulas", 1), ("commas", 2),
        ("questions", 1), ("exclamations", 1), ("colons", 1), ("quotation_marks", 2), ("brackets", 1), ("digits", 2),
        ("first_person", 2), ("second_person", 2), ("negations", 4), ("connectives", 2), ("lower_i", 1),
        ("capitals", 6), ("shouted", 1), ("long_words", 1), ("non_ascii", 1),
    ],
)  # fmt: skip
def test_counts_by_hand(counts, name, expected):
    assert getattr(counts, name) == expected


def test_columns_are_logs_rates_and_shares_of_the_counts(counts, columns):
    text = TEXT
    words = counts.words
    code = "```python\n# no heading, **not bold**, I you never\n```\n"
    assert columns["log_characters"] == pytest.approx(math.log1p(len(text)))
    assert columns["log_words"] == pytest.approx(math.log1p(words))
    assert columns["headings"] == pytest.approx(math.log1p(1))
    assert columns["bullets"] == pytest.approx(math.log1p(2))
    assert columns["code_share"] == pytest.approx(len(code) / len(text))
    assert columns["commas"] == pytest.approx(200 / words)
    assert columns["quotation_marks"] == pytest.approx(100 / words)
    assert columns["capitals"] == pytest.approx(6 / words)
    assert columns["non_ascii"] == pytest.approx(1 / len(text))
    assert columns["words_per_sentence"] == pytest.approx(words / 5)


@pytest.mark.parametrize(
    ("word", "syllables"),
    [("make", 1), ("the", 1), ("table", 1), ("reading", 2), ("idea", 2), ("rhythm", 1), ("hmm", 1), ("agree", 2),
     ("beautiful", 3), ("be", 1), ("42", 1), ("one", 1)],
)  # fmt: skip
def test_syllables_are_vowel_groups_less_a_final_silent_e(word, syllables):
    assert style_counts(word).syllables == syllables


def test_syllables_of_a_text_are_those_of_its_words():
    text = "Make the table reading idea rhythm agree beautiful one"
    assert style_counts(text).syllables == sum(style_counts(word).syllables for word in text.split())


def test_reading_ease_is_fleschs():
    counts = style_counts("The cat sat on the mat. It was fat.")
    found = dict(zip(COLUMNS, style_columns(counts), strict=True))
    assert found["reading_ease"] == pytest.approx(206.835 - 1.015 * 9 / 2 - 84.6 * 9 / 9)
    assert found["type_token"] == pytest.approx(8 / math.sqrt(18))


def test_nothing_inside_code_counts():
    inner = "# head\n**b** [l](u) `i` I you never, because! $$x$$\n\n- a\n1. b\n> q\n|---|---|\n"
    counts = style_counts(f"```\n{inner}```\nDone.")
    assert counts._replace(characters=0, code_characters=0) == style_counts("Done.")._replace(
        characters=0, code_characters=0, code_blocks=1
    )
    assert style_counts(f"~~~\n{inner}").words == 0  # a fence that is never closed
    assert style_counts("`I you never`").words == 0


def test_empty_texts_count_nothing():
    assert set(style_columns(style_counts("  \n\t "))) == {0.0}


def test_form_and_line_ends_do_not_matter():
    text = "Café é.\n\nNew line."
    assert style_counts(unicodedata.normalize("NFD", text).replace("\n", "\r\n")) == style_counts(text)
    assert style_counts("x " * MAX_CHARACTERS).characters == MAX_CHARACTERS - 1


N = 200_000
HOSTILE = [
    "[" * N, " " * N, "`" * N, "*" * N, "_" * N, "." * N + "a", "a" * N, "\n" * N, "#" * N, "- " * (N // 2),
    "[a](" * (N // 4), "**a " * (N // 4), "`a " * (N // 3), "$$" * (N // 2), "|---" * (N // 4), "http://" * (N // 7),
    "a'" * (N // 2), "![" * (N // 2), "```\n" * (N // 4), "?!" * (N // 2) + "x", "[](" + "a" * N,
    ("[](" + "a" * 1999) * 100, "**" + "a" * N, "be" * (N // 2), "x\u0301" * (N // 2), "| -" * (N // 3),
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:6]) for text in HOSTILE])
def test_hostile_texts_take_linear_time(text):
    start = time.process_time()
    columns = style_columns(style_counts(text))
    assert time.process_time() - start < 2  # minutes, were a pattern quadratic
    assert all(math.isfinite(value) for value in columns)
