"""What the sections of a report say."""

import re
from pathlib import Path

from crowdrank.report.sections import _NOT_COVERED

PAGE = Path(__file__).parents[2] / "docs" / "uncertainty.md"


def test_what_intervals_do_not_cover_has_the_figures_of_the_page():
    table = PAGE.read_text().split("<!-- sure pairs")[1].split("<!-- end of sure pairs")[0]
    right = [float(line.split("|")[-2]) for line in table.splitlines() if re.match(r"\| \w+.*\d", line) and "%" in line]
    assert len(right) == 10
    assert f"{min(right):.2f}".lstrip("0") + f" to {max(right):.2f}" in _NOT_COVERED
