import polars as pl
import pytest

from crowdrank.errors import ParameterError
from crowdrank.io.output import write_table

FRAME = pl.DataFrame({"item": ["a|b", "50%_x & {y}\\", None], "score": [1.23456, -0.5, 2.0], "rank": [2, 3, 1]})


def test_markdown(tmp_path):
    write_table(FRAME, tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text().splitlines() == [
        "| item | score | rank |",
        "| --- | ---: | ---: |",
        r"| a\|b | 1.23456 | 2 |",
        r"| 50%_x & {y}\\ | -0.5 | 3 |",
        "|  | 2.0 | 1 |",
    ]


def test_latex(tmp_path):
    write_table(FRAME, tmp_path / "t.tex")
    assert (tmp_path / "t.tex").read_text().splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"item & score & rank \\",
        r"\midrule",
        r"a|b & 1.23456 & 2 \\",
        r"50\%\_x \& \{y\}\textbackslash{} & -0.5 & 3 \\",
        r" & 2.0 & 1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_the_command_line_writes_them(capsys):
    write_table(FRAME.head(1), format="markdown")
    assert capsys.readouterr().out.startswith("| item | score | rank |\n")
    with pytest.raises(ParameterError, match=r"\.md, \.tex"):
        write_table(FRAME, "t.docx")
