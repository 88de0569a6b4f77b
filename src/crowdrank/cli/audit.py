"""``crowdrank audit`` and ``changed``: may programs stand in for people, and what moved between two runs."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from .. import api, auditing, io
from ..errors import CrowdrankError, ParameterError
from ..io.notices import collect_notices
from .outputs import deliver, for_people, report_written, write_file, write_summary, write_wanted
from .running import command_line, fail_where
from .talk import Talk
from .votes import Asked, Reading, column_values, read_settled, read_votes

if TYPE_CHECKING:
    import polars as pl

_MOST_SAID = 40

_SHOWN_COLUMNS = "criterion program verdict winning_rate advantage low high quality quality_lower quality_upper n_items"
_QUANTITIES = "winning_rate advantage low high share_lost quality n_items accuracy kappa rank_correlation error"


def audit(asked: Asked, talk: Talk) -> None:
    """Say whether programs may stand in for people.

    Each person is left out in turn: does the program agree with the other people as well as that person does? The
    verdict is yes, no or not decided with these labels. Means, rates and win rates are given by people alone, by the
    program alone and corrected, with how many more labels of people would halve the interval.

    Examples
    --------
    # people in one file, programs in another
    crowdrank audit people.csv judges.csv
    # both in one file, with a column that says who is a person
    crowdrank audit votes.csv --people group=person --report audit.html
    # a pipeline that stops where a program may not be used
    crowdrank audit votes.csv --people 'human-*' --fail-if 'winning_rate<0.5'
    # what to ask people next
    crowdrank audit people.csv judges.csv --next ask.csv
    """
    import polars as pl

    from ..auditing.labels import Labels

    votes, reading, people, by, criterion = asked.votes, asked.reading, asked.people, asked.by, asked.criterion
    if asked.item_families is not None:
        api.expect_self(asked.control)
    conditions = [api.parse_condition(text, _QUANTITIES.split()) for text in asked.fail_if or ()]
    if people is None and len(votes) != 2:
        one_file = "or one file with --people group=person"
        raise ParameterError(f"give a file of people's judgments and then one of the programs', {one_file}")
    sets = [votes] if people is not None else [[votes[0]], [votes[1]]]
    tables = []
    for name in votes:
        tables.append(pl.DataFrame())
        # what is no plain table has no columns that could be asked for
        with suppress(CrowdrankError):
            tables[-1] = io.read_table(name) if name != "-" else tables[-1]
    column, equals, value = (people or "").partition("=")
    if equals and column != "group" and all(column in table.columns for table in tables):
        reading, people = reading.but(columns={**reading.columns, "group": column}), f"group={value}"
    # a column of that name is audited value by value where nothing else is said of it
    unasked = criterion is None and "criterion" not in {*reading.where, *reading.columns.values()}
    unasked = unasked and all("criterion" in table.columns for table in tables)
    if unasked and len(column_values(votes, tables, "criterion")) > 1:
        talk.say("each criterion is audited by itself; --where criterion=... takes one of them")
        criterion = "criterion"

    listed = reading.items not in (None, "-")
    about = reading.items if listed else io.describe_votes(votes, reading.kind, reading.columns)

    def rows_with(column: str, value: str, part: Reading = reading) -> Reading:
        return part.but(where={**part.where, column: value})

    def found_in(part: Reading, *, said: bool = False) -> auditing.Audit:
        # how the files are read is said once
        with collect_notices() if said else nullcontext():
            heard = Talk(quiet=True) if said else talk
            judged = [read_settled(asked.but(votes=files, reading=part), heard) for files in sets]
        parts = []
        if by is not None:
            with collect_notices():
                for one in column_values(votes, tables, by):
                    judgments = read_votes(votes, rows_with(by, one, part), Talk(quiet=True))
                    cells = [Labels.of(own).cells.select("query", "item") for own in api.parts_of(judgments)]
                    parts += [table.with_columns(pl.lit(one).alias(by)) for table in cells]
        with talk.working("comparing programs with people"):
            how = asked.but(people=people, by=pl.concat(parts) if parts else None, items=about)
            return auditing.audit(*judged, **how.arguments(auditing.audit))

    if criterion is None:
        found = found_in(reading)
    else:
        values = column_values(votes, tables, criterion)
        each = {one: found_in(rows_with(criterion, one), said=one != values[0]) for one in values}
        found = auditing.Audit.together(each)
    shown = found.frame().select([name for name in _SHOWN_COLUMNS.split() if name in found.frame().columns])
    if not for_people(asked.out, asked.format) and io.format_for(asked.out, asked.format) == "json":
        io.write_text(json.dumps(found.plain(), ensure_ascii=False, indent=1, default=str) + "\n", asked.out or "-")
        report_written(asked.out, talk)
    else:
        deliver(found.frame(), asked, talk, lambda: shown, bold="verdict", cut=("program",))
    said = (*found.sentences, *found.habits)
    for sentence in said[:_MOST_SAID]:
        talk.say(sentence)
    if len(said) > _MOST_SAID:
        talk.say(f"... and {len(said) - _MOST_SAID:,} more sentences, which --report FILE.html and -o FILE.json have")
    write_wanted(asked.corrected, lambda: found.corrected, talk)
    write_wanted(asked.next_labels, lambda: found.next_labels, talk)
    write_file(asked.report, lambda name: found.html(name, command=command_line()), talk)
    holding = _holding(conditions, found.frame(), "program")
    write_summary(asked.summary, "May programs stand in for people?", shown, talk, holding)
    fail_where(holding, talk)


def changed(asked: Asked, talk: Talk) -> None:
    """Say which items moved between two runs.

    Judgments are paired by item, query and annotator where both runs have them. Nothing is called a change that a
    re-run would show; with --looks anytime you may look every day.

    Examples
    --------
    # what moved
    crowdrank changed monday.csv tuesday.csv
    # a pipeline that stops where something got worse
    crowdrank changed old.csv new.csv --fail-if 'worse!=0'
    # looked at every day while judgments come in
    crowdrank changed old.csv new.csv --looks anytime --range 1,5
    """

    known = ["better", "worse", "changed", "n_items"]
    conditions = [api.parse_condition(text, known) for text in asked.fail_if or ()]
    judged = [read_votes([name], asked.reading, talk) for name in (asked.old, asked.new)]
    with talk.working("comparing the runs"):
        found = auditing.changed(*judged, level=asked.level, looks=asked.looks, scale=asked.scale)
    deliver(found.frame(), asked, talk, bold="item", cut=("item",))
    for sentence in found.sentences:
        talk.say(sentence)
    write_wanted(asked.causes, lambda: found.causes, talk)
    holding = _holding(conditions, found.counts(), None)
    write_summary(asked.summary, "What changed between two runs", found.frame(), talk, holding)
    fail_where(holding, talk)


def _holding(conditions: list[Any], table: pl.DataFrame, ids: str | None) -> list[str]:
    """The conditions that hold of a row, in words."""

    def read(quantity: str) -> api.Values | None:
        known = table.drop_nulls(quantity)
        return api.Values(known[quantity].cast(float).to_numpy(), known[ids or quantity]) if len(known) else None

    instead = "these judgments do not give it; put it on something else"
    return list(filter(None, (api.check_values(one, read, instead) for one in conditions)))
