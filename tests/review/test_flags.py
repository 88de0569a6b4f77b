"""The table of flags is the one place for what is said about annotators, and every flag is documented."""

import re
from pathlib import Path

import pytest

from crowdrank.review.findings import SEVERITIES
from crowdrank.review.sentences import BY_QUALITY, EMPTY, FLAGS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "crowdrank"


def strings_without_docs(text):
    """Source without docstrings and comments, which may describe what flags are about."""
    without = re.sub(r'r?"""(?:.|\n)*?"""', "", text)
    return re.sub(r"#.*", "", without)


@pytest.mark.parametrize("code", FLAGS)
def test_a_flag_is_documented_with_its_words_severity_and_remedy(code):
    flag = FLAGS[code]
    page = (ROOT / "docs" / "diagnostics.md").read_text()
    assert f"| `{code}` | {flag.one} | {flag.severity} | {flag.advice} |" in page


def test_flags_are_well_formed():
    assert all(flag.severity in SEVERITIES and flag.advice for flag in FLAGS.values())
    assert set(BY_QUALITY) | set(EMPTY) <= set(FLAGS)
    assert FLAGS["guessing"].noun == "not distinguishable from guessing"
    assert FLAGS["leans"].words(1) == "leans to one side"
    assert FLAGS["leans"].words(2) == "lean to one side"


def test_no_phrase_of_a_flag_stands_anywhere_else():
    phrases = {phrase for flag in FLAGS.values() for phrase in (flag.noun, flag.several.removeprefix("are "))}
    assert len({flag.one for flag in FLAGS.values()}) == len(FLAGS)
    for folder in ("api", "cli", "data", "io", "report", "review", "validation"):
        for path in (SOURCE / folder).rglob("*.py"):
            if path != SOURCE / "review" / "sentences.py":
                text = strings_without_docs(path.read_text())
                assert [phrase for phrase in phrases if phrase in text] == [], path
