"""Style of a text: raw counts in one pass, and the 36 columns that are their logarithms, rates and shares.

Every pattern takes time linear in the text: whatever stands between two marks is bounded and cannot hold the opening
mark, and a run is looked for at its beginning only.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import NamedTuple

MAX_CHARACTERS = 1_000_000
"""Longer texts are cut there."""

_FENCE = re.compile(r"(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,300}\1(?!`)")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,2000}(?:[ \t][^()\n]{0,300})?\)")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\[\]()\"'`]{1,2000}")
_BOLD = re.compile(r"\*\*(?=[^\s*])[^*\n]{1,300}\*\*|__(?=[^\s_])[^_\n]{1,300}__")
_HEADING = re.compile(r"#{1,6}[ \t]+[^\s#]")
_BULLET = re.compile(r"[-*+•][ \t]+\S")
_NUMBERED = re.compile(r"[0-9]{1,9}[.)][ \t]+\S")
_TABLE_MARKS = frozenset("|-: \t")

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<![.!?…。！？])[.!?…。！？]++(?=[\s\"'“”‘’«»()\[\]{}]|\Z)")
_VOWELS = "aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœ"
_SYLLABLE = re.compile(f"[{_VOWELS}]+")
_SILENT_E = re.compile(f"[{_VOWELS}][^{_VOWELS} ]+e(?= |\\Z)")
_WITHOUT_VOWEL = re.compile(f"(?<![^ ])[^{_VOWELS} ]+(?= |\\Z)")
_DIGITS = re.compile(r"[0-9]")

_LISTS = tomllib.loads(Path(__file__).with_name("lists.toml").read_text(encoding="utf-8"))["style"]
WORDS = {name: frozenset(words) for name, words in _LISTS["words"].items()}
"""Words that are counted, by what they tell."""

COLUMNS: tuple[str, ...] = tuple(_LISTS["columns"])
"""Names of the columns, in their order."""

_MARKS = ("code_characters", "paragraphs", *COLUMNS[10:19])
_LOGS = COLUMNS[10:20]
_RATES = (*COLUMNS[21:28], *COLUMNS[31:])


class StyleCounts(NamedTuple):
    """What is counted in a text; markdown and words inside code do not count."""

    characters: int
    """All but outer white space, code included."""
    code_characters: int
    """Those in fenced blocks, their fences included."""
    non_ascii: int
    paragraphs: int
    """Blocks between blank lines; a fenced block is never divided."""
    headings: int
    bold: int
    bullets: int
    numbered: int
    code_blocks: int
    inline_code: int
    tables: int
    quotes: int
    links: int
    formulas: int
    words: int
    word_characters: int
    syllables: int
    long_words: int
    distinct_words: int
    sentences: int
    commas: int
    questions: int
    exclamations: int
    colons: int
    quotation_marks: int
    """Counted one by one; a pair is two."""
    brackets: int
    digits: int
    capitals: int
    shouted: int
    first_person: int
    second_person: int
    negations: int
    connectives: int
    lower_i: int


def plain_text(text: str) -> str:
    r"""Return the text in Unicode form NFC with plain line ends, cut at a million characters.

    Examples
    --------
    >>> plain_text("cafe\u0301\r\nbar")
    'café\nbar'
    """
    text = text[:MAX_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def style_counts(text: str) -> StyleCounts:
    """Return the counts of a text, as ``--control style`` and the columns of style use them.

    Fenced code is taken out first, then inline code, then the addresses of links; words, sentences and punctuation are
    counted in the rest.

    Examples
    --------
    >>> counts = style_counts("# Tea\\n\\nI like **green** tea. Do you?")
    >>> counts.headings, counts.bold, counts.words, counts.sentences, counts.paragraphs
    (1, 1, 7, 2, 2)
    """
    text = plain_text(text).strip()
    markdown, prose = markdown_counts(text)
    words = _WORD.findall(prose)
    lower = [word.lower() for word in words]
    if "’" in prose:
        lower = [word.replace("’", "'") for word in lower]
    joined, count = " ".join(lower), prose.count
    syllables = len(_SYLLABLE.findall(joined)) - len(_SILENT_E.findall(joined)) + len(_WITHOUT_VOWEL.findall(joined))
    by_word = {name: sum(map(own.__contains__, lower)) for name, own in WORDS.items()}
    return StyleCounts(
        characters=len(text), **markdown,
        non_ascii=0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore")),
        formulas=count("$$") // 2 + count("\\(") + count("\\["),
        words=len(words), word_characters=sum(map(len, words)), syllables=syllables, distinct_words=len(set(lower)),
        long_words=sum(len(word) > 6 for word in words), lower_i=words.count("i"),
        capitals=sum(word[0].isupper() for word in words),
        shouted=sum(word.isupper() and len(word) > 1 and sum(map(str.isalpha, word)) > 1 for word in words),
        sentences=max(len(_SENTENCE_END.findall(prose)), min(len(words), 1)),
        commas=sum(map(count, ",;，；、")), questions=count("?") + count("？"), exclamations=count("!") + count("！"),
        colons=count(":") + count("："), quotation_marks=sum(map(count, '"“”„«»')), brackets=sum(map(count, "([{")),
        digits=len(_DIGITS.findall(prose)), **by_word,
    )  # fmt: skip


def markdown_counts(text: str) -> tuple[dict[str, int], str]:
    """Return the marks of Markdown in a plain text, and the text without code and addresses, in which words count.

    Of tables the rows between head and body are counted.
    """
    counts = dict.fromkeys(_MARKS, 0)
    lines, fence, blank = [], "", True
    for line in text.split("\n"):
        content = line.strip()
        mark = _FENCE.match(content) if content[:3] in ("```", "~~~") else None
        if fence:
            counts["code_characters"] += len(line) + 1
            if mark is not None and mark[1] == content and content.startswith(fence):
                fence = ""
            continue
        counts["paragraphs"] += blank and bool(content)
        blank = not content
        # a line of code may begin and end with three backticks
        if mark is not None and ("`" not in content[len(mark[1]) :] or content[0] == "~"):
            fence = mark[1]
            counts["code_blocks"] += 1
            counts["code_characters"] += len(line) + 1
            continue
        lines.append(line)
        first = content[:1]
        if not first:
            continue
        if first == "#":
            counts["headings"] += _HEADING.match(content) is not None
        elif first == ">":
            counts["quotes"] += 1
        elif first in "-*+•" and _BULLET.match(content):
            counts["bullets"] += 1
        elif first in "0123456789":
            counts["numbered"] += _NUMBERED.match(content) is not None
        elif "|" in content and "---" in content:
            counts["tables"] += _TABLE_MARKS.issuperset(content)
    prose = "\n".join(lines) if counts["code_blocks"] else text
    if "`" in prose:
        prose, counts["inline_code"] = _INLINE_CODE.subn(" ", prose)
    if "](" in prose:
        prose, counts["links"] = _LINK.subn(r"\1", prose)
    if "://" in prose or "www." in prose:
        prose, n_bare = _URL.subn(" ", prose)
        counts["links"] += n_bare
    if "**" in prose or "__" in prose:
        counts["bold"] = len(_BOLD.findall(prose))
    return counts, prose


def style_columns(counts: StyleCounts) -> list[float]:
    """Return the 36 columns of a text: logarithms ln(1 + count), rates per 100 words, and shares.

    Examples
    --------
    >>> dict(zip(COLUMNS, style_columns(style_counts("Why? I say no.")), strict=True))["negations"]
    25.0
    """
    words, sentences = max(counts.words, 1), max(counts.sentences, 1)
    rates = counts._replace(quotation_marks=counts.quotation_marks / 2)  # type: ignore[arg-type]
    values = {
        "log_characters": math.log1p(counts.characters), "log_words": math.log1p(counts.words),
        "log_sentences": math.log1p(counts.sentences), "log_paragraphs": math.log1p(counts.paragraphs),
        "words_per_sentence": counts.words / sentences, "characters_per_word": counts.word_characters / words,
        "syllables_per_word": counts.syllables / words, "long_words": counts.long_words / words,
        "type_token": counts.distinct_words / math.sqrt(2 * words),
        "reading_ease": 206.835 - 1.015 * counts.words / sentences - 84.6 * counts.syllables / words,
        "code_share": counts.code_characters / max(counts.characters, 1),
        "capitals": counts.capitals / words, "shouted": counts.shouted / words,
        "non_ascii": counts.non_ascii / max(counts.characters, 1),
    }  # fmt: skip
    if not counts.words:
        values["reading_ease"] = 0.0
    values |= {name: math.log1p(getattr(counts, name)) for name in _LOGS}
    values |= {name: 100 * getattr(rates, name) / words for name in _RATES}
    return [values[name] for name in COLUMNS]
