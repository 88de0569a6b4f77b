"""From the files of votes and the options about them to judgments."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ParameterError
from ..wording import counted
from .words import pairs, split_list

if TYPE_CHECKING:
    from ..cluster.packed import PackedJudgments
    from ..data.judgments import Judgments, Mixed
    from ..io.read_options import ReadOptions
    from .options import Reading
    from .talk import Talk


def read_votes(votes: Sequence[str], reading: Reading, talk: Talk, control: str | None = None) -> Judgments | Mixed:
    """Return the judgments in the files, with the covariates to control for, and say what they are."""
    from ..data.judgments import with_pseudonyms
    from ..io.judgments import read_files

    # annotators are left out by name before names are replaced
    options = dataclasses.replace(options_of(reading), pseudonyms=False)
    if control is not None:
        from ..api import read_covariates_of

        options = dataclasses.replace(options, **read_covariates_of(control))
    with talk.working("reading the votes"):
        judgments = _packed_sample(votes) or read_files(votes, options)
        n_queries = judgments.n_queries
        judgments = _convert(judgments, reading)
        judgments = with_pseudonyms(judgments) if reading.pseudonyms else judgments
    talk.say(_description(judgments, n_queries if reading.across_queries else 0))
    return judgments


def votes_to_learn(votes: Sequence[str], reading: Reading, talk: Talk) -> Judgments | Mixed | PackedJudgments:
    """Return the judgments that a ranker learns from: packed ones as they are where nothing is to be done to them."""
    from ..cluster.packed import is_packed, scan_judgments

    changed = reading.without or reading.as_rankings or reading.as_preferences or reading.across_queries
    if len(votes) > 1 or changed or reading.pseudonyms or not is_packed(votes[0]):
        return read_votes(votes, reading, talk)
    packed = scan_judgments(votes[0])
    talk.say(packed_in_words(packed))
    return packed


def refuse_unpackable(reading: Reading, remedy: str) -> None:
    """Refuse options that change the judgments as a whole, where some rows are read at a time."""
    changes = {"--without": reading.without, "--as-rankings": reading.as_rankings,
               "--as-preferences": reading.as_preferences}  # fmt: skip
    for name in [name for name, value in changes.items() if value]:
        raise ParameterError(f"{name} needs all judgments at once, but these are read some rows at a time; {remedy}")


def read_settled(
    votes: Sequence[str], reading: Reading, talk: Talk, control: str | None, swaps: str, families: str | None
) -> Judgments | Mixed:
    """Return the judgments after the rule for exchanged sides, with own families where these are to be controlled."""
    from .. import api
    from ..io.tables import read_table

    judgments = api.settle_swaps(read_votes(votes, reading, talk, control), swaps)
    return judgments if families is None else api.with_families(judgments, read_table(families))


def _packed_sample(votes: Sequence[str]) -> Judgments | Mixed | None:
    """Packed judgments, of very many a sample, which is said; ``None`` where votes are files."""
    from ..cluster.packed import is_packed

    packed = [name for name in votes if is_packed(name)]
    if not packed:
        return None
    if len(votes) > 1:
        raise ParameterError(
            f"{packed[0]} holds packed judgments, which cannot be combined with other files; pack those into it too"
        )
    from ..api.aggregation import as_judgments

    return as_judgments(packed[0])


def options_of(reading: Reading) -> ReadOptions:
    """Return how files are read, from what the command line says."""
    from ..io.read_options import read_options

    return read_options(
        kind=reading.kind,
        columns=column_names(reading.column),
        levels=split_list(reading.levels),
        nominal=reading.nominal,
        winner_codes=pairs(split_list(reading.winner_codes), "--winner-codes", "1=left,2=right,0=tie", last=True)
        or None,
        duplicates=reading.duplicates,
        invalid="drop" if reading.drop_invalid else "error",
        items=reading.items,
        source=reading.source,
        answer=reading.answer,
        where=pairs(reading.where, "--where", "criterion=helpful"),
        keep=split_list(reading.keep),
        wide=split_list(reading.wide),
        strength=pairs([reading.strength] if reading.strength else None, "--strength", "score=left", last=True) or None,
        small_is_good=reading.small_is_good,
        swapped=reading.swapped,
        missing=split_list(reading.missing),
        skip_rows=reading.skip_rows or 0,
        baseline_model=reading.baseline_model,
        sheet=reading.sheet,
        encoding=reading.encoding,
        header=split_list(reading.header),
        no_annotators=reading.no_annotators,
        agreeing=reading.agreeing,
        pseudonyms=reading.pseudonyms,
        strength_weights=_numbers(reading.strength_weights),
    )


def reading_words(reading: Reading) -> list[str]:
    """Return the options about reading as words of a command.

    Examples
    --------
    >>> from .options import Reading
    >>> reading_words(Reading(column=["item=id"], nominal=True))
    ['--column', 'item=id', '--nominal']
    >>> reading_words(Reading(small_is_good=False)), reading_words(Reading(small_is_good=True))
    (['--large-is-good'], ['--small-is-good'])
    """
    hints = typing.get_type_hints(type(reading), include_extras=True)
    words: list[str] = []
    for field in dataclasses.fields(reading):
        value, declared = getattr(reading, field.name), hints[field.name].__metadata__[0]
        flag = next(one for one in (declared.default, *(declared.param_decls or ())) if str(one).startswith("--"))
        yes, _, no = str(flag).partition("/")
        if value is True or (value is False and no):
            words.append(yes if value else no)
        elif value is not None and value is not False:
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one))]
    return words


def column_names(texts: Sequence[str] | None) -> dict[str, str]:
    """Return house word -> column name of ``--column``, several of which may stand behind each other.

    Examples
    --------
    >>> column_names(["query=doc_id,item=model", "grade=so, so"])
    {'query': 'doc_id', 'item': 'model', 'grade': 'so, so'}
    """
    from ..data.column_names import FOREIGN

    words = "|".join((*FOREIGN, r"[\w ]+_(?:left|right)"))
    each = [part for text in texts or () for part in re.split(rf",(?=\s*(?:{words})\s*=)", text)]
    return pairs(each, "--column", "annotator=Who")


def _numbers(text: str | None) -> list[float] | None:
    """Weights as they stand between commas."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--strength-weights {text!r} is not a list of numbers; write for example 1,3") from None


def _convert(judgments: Judgments | Mixed, reading: Reading) -> Judgments | Mixed:
    """The judgments without some annotators, as preferences, across queries, as asked for."""
    if reading.without:
        judgments = _leave_out(judgments, reading.without)
    if reading.as_rankings:
        judgments = judgments.as_rankings()
    if reading.as_preferences:
        judgments = judgments.as_preferences()
    return judgments.across_queries() if reading.across_queries else judgments


def _leave_out(judgments: Judgments | Mixed, names: Sequence[str]) -> Judgments | Mixed:
    """The judgments of all but some annotators."""
    from ..data.naming import named_annotators
    from ..errors import JudgmentError

    keep = ~named_annotators(judgments, names, "without")[judgments.annotator]
    if not keep.any():
        raise JudgmentError("no judgment is left without these annotators; name fewer with --without")
    return judgments.select(keep)


def packed_in_words(packed: PackedJudgments) -> str:
    """Return how many judgments are packed, by how many annotators, on what."""
    by = f" by {counted(packed.n_annotators, 'annotator')}" if packed.n_annotators else ""
    queries = "" if packed.manifest["single"] else f" of {counted(packed.n_queries, 'query')}"
    on = f"{counted(packed.n_items, 'item')}{queries}"
    return f"{counted(packed.rows, packed.kind)}{by} on {on}, packed in {counted(packed.n_parts, 'part')}"


def _description(judgments: Judgments | Mixed, n_merged: int) -> str:
    """How many judgments there are, by how many annotators, on what."""
    import numpy as np

    from ..data.judgments import parts_of

    n_annotators = int(np.count_nonzero(np.bincount(judgments.annotator, minlength=1)))
    by = f" by {counted(n_annotators, 'annotator')}" if judgments.n_annotators else ""
    queries = f" of {counted(judgments.n_queries, 'query')}" if not judgments.items.single else ""
    merged = f", over {counted(n_merged, 'query')} taken together" if n_merged else ""
    given = " and ".join(counted(part.n_judgments, part.kind) for part in parts_of(judgments))
    return f"{given}{by} on {counted(judgments.n_items, 'item')}{queries}{merged}"
