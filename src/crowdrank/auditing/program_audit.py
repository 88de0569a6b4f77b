"""May this program stand in for people: the verb, what it finds of each program, and the result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import comb
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..api import aggregate, as_judgments, check_level, diagnose, evaluate_runs, propose
from ..data.files import PathLike
from ..data.frames import to_frame
from ..data.judged import pairs_of_groups
from ..data.judgments import Grades
from ..data.showing import Shown
from ..errors import CrowdrankError, JudgmentError, ParameterError
from ..io.features import describe_items
from ..io.notices import collect_notices
from ..metrics.agreement import cohen_kappa
from ..metrics.correlation import spearman
from ..metrics.significance import PoweredMean, holm, mean_interval, prediction_powered_mean
from ..protocols import Bools, Counts, Floats
from ..quality import held_out_quality
from ..registry import method_class
from ..review.diagnosis import match_items
from ..wording import counted, percent
from .labels import Labels, Sides, check_people, check_program, in_words

MARGIN = 0.1
_PASSING = 0.5
_POWER = 0.8
_MAX_LABELS = 10_000
"""Labels beyond which it is only said that more are needed."""

_SHOWN = 20
"""Items with the largest disagreement that are listed."""

_MAX_ITEMS_RANKED = 200
"""Items up to which a leaderboard is made with the program's help."""

_MOST_DOUBT = 0.5
"""Width of an interval of quality beyond which it is not known: people agree too little with each other."""

_METHODS = {"grade": "mean_grade", "preference": "bradley_terry", "ranking": "plackett_luce"}
_RANKS = ("rank", "rank_lower", "rank_upper")
_MIN_SLICE = 5
_CLEAR = 0.05
_FALSE_DISCOVERIES = 0.05
_FEW = 30
"""Items of a person below which the test is exact."""

_EQUAL = 1e-9

_MAX_CLASSES = 20
_MIN_CASES = 10
"""Cases with labels of both, below which a figure is not corrected."""

MAX_NEXT = 1000

_TABLES = ("corrected", "people", "confusion", "disagreements", "slices", "leaderboard", "next_labels")


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(Shown):
    """What :func:`crowdrank.audit` found of each program.

    Parameters
    ----------
    programs
        A row per program (and criterion): verdict, sentence, winning_rate, advantage with low and high, quality and
        agreement with the consensus of people.
    corrected
        Figures by people alone, by the program alone, and corrected, with intervals and the labels needed.
    people
        A row per program and person: how often each agrees better with the other people.
    confusion, disagreements, slices, leaderboard, next_labels
        Labels of people against those of the program; items on which they differ most; parts where it does better or
        worse; ranks by people and corrected; which labels of people to buy next, best first: for the corrected figures,
        or where people judged all that programs did, by :func:`crowdrank.propose`.
    habits
        Sentences about habits of programs.
    kind, margin, level, n_people
        Kind of judgment, the margin of the test, the level of the intervals, and how many people there are.
    """

    programs: pl.DataFrame
    corrected: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    people: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    confusion: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    disagreements: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    slices: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    leaderboard: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    next_labels: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    habits: tuple[str, ...] = ()
    kind: str = "grade"
    margin: float = MARGIN
    level: float = 0.9
    n_people: int = 0

    def __len__(self) -> int:
        return len(self.programs)

    def __repr__(self) -> str:
        return "\n".join([f"Audit({counted(len(self), 'program')})", *(f"  {one}" for one in self.sentences)])

    @property
    def verdicts(self) -> dict[Any, str]:
        """Program -> ``"yes"``, ``"no"`` or ``"undecided"``; with several criteria (criterion, program)."""
        keys = ["criterion", "program"] if "criterion" in self.programs.columns else ["program"]
        rows = self.programs.select(*keys, "verdict").rows()
        return {row[0] if len(keys) == 1 else row[:-1]: row[-1] for row in rows}

    @property
    def sentences(self) -> list[str]:
        """The verdict on each program in a sentence."""
        return self.programs["sentence"].to_list()

    def frame(self) -> pl.DataFrame:
        """Return the row of each program."""
        return self.programs

    def plain(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        tables = {name: getattr(self, name).to_dicts() for name in _TABLES}
        more = {name: getattr(self, name) for name in ("kind", "margin", "level", "n_people")}
        return {"programs": self.programs.to_dicts(), **tables, "habits": list(self.habits), **more}

    def html(self, path: PathLike | None = None, *, title: str | None = None, command: str | None = None) -> str | None:
        """Return the page for a browser, or write it where a path is given."""
        from ..io.output import check_target, write_text
        from .page import render_audit

        page = render_audit(self, title=title, command=command)
        if path is None:
            return page
        check_target(path)
        write_text(page, path)
        return None

    @classmethod
    def together(cls, parts: Mapping[str, Audit]) -> Audit:
        """Return audits of several criteria as one, with a column that names the criterion."""
        tables: dict[str, Any] = {}
        for name in ("programs", *_TABLES):
            tables[name] = _join({key: getattr(one, name) for key, one in parts.items()}, "criterion")
        named = pl.concat_str(["criterion", "sentence"], separator=": ")
        tables["programs"] = tables["programs"].with_columns(sentence=named)
        habits = tuple(f"{key}: {text}" for key, one in parts.items() for text in one.habits)
        return replace(next(iter(parts.values())), **tables, habits=habits)


def audit(
    judgments: Any,
    programs: Any | None = None,
    *,
    people: Any | None = None,
    margin: float = MARGIN,
    threshold: float | None = None,
    by: Any | None = None,
    run: Any | None = None,
    metric: str = "ndcg@10",
    items: Any | None = None,
    control: str | Sequence[str] | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Audit:
    """Return whether each program may stand in for people, and the figures with its help.

    The alternative annotator test [Calderon25]_ leaves each person out in turn: on that person's items, does the
    program agree with the other people as well as the person does, less a margin? It passes where it wins against half
    of the people, each tested with Benjamini and Yekutieli's bound on false discoveries; it fails where more than half
    are clearly better, and otherwise these labels do not decide. Figures are corrected by prediction-powered inference
    [PPI23]_: they hold however bad the program is. The gold here is itself a crowd: nothing is taken for the truth.

    Parameters
    ----------
    judgments
        Those of people; or of both, with ``people``. Grades, ordered or nominal, preferences or rankings; a frame, or a
        file's path.
    programs
        The judgments of programs, of the same kind.
    people
        Who the people are, in one set of judgments: ids, ``"human-*"``, ``"group=person"`` or a file of ids.
    margin
        How much worse than a person a program may agree, for being cheap: .1 for crowds, .2 for experts.
    threshold
        Grade from which on an item passes; its rate is one of the figures then.
    by
        Table of item (and query) and one column more: parts in which the program may do better or worse.
    run, metric
        A ranking of items, whose measure is one of the figures: by the program's grades of all queries and people's of
        some.
    items
        A table or file of item and text or url (and query), shown beside disagreements and labels to buy.
    control
        Covariates of preferences, such as ``"length"`` or ``"self"``, as in :func:`crowdrank.diagnose`: which programs
        go by them is one of the habits.
    level
        Of intervals.
    seed
        Of the draw of labels to buy next.

    Examples
    --------
    >>> rows = [(who, "q", f"i{k}", (k * 7 + (k % 6 == n)) % 5) for k in range(60) for n, who in enumerate("abc")]
    >>> rows += [("bot", "q", f"i{k}", (k * 7) % 5) for k in range(90)]
    >>> from crowdrank import Grades
    >>> found = audit(Grades.from_rows(rows), people=["a", "b", "c"])
    >>> found.verdicts
    {'bot': 'yes'}
    """
    check_level(level, "level")
    if not 0 <= margin < 1:
        raise ParameterError(f"margin={margin!r} is not a difference of shares; give 0 to 1, such as 0.1 or 0.2")
    sides = Sides.of(as_judgments(judgments), None if programs is None else as_judgments(programs), people)
    labels = Labels.of(sides.judgments)
    of_people = labels.of_annotators(sides.is_person)
    check_people(of_people)
    ids = sides.judgments.annotators.ids
    values = {code: labels.by_cell(code) for code in sides.programs}
    reasons = {code: check_program(of_people, own, str(sides.name(code)), ids) for code, own in values.items()}
    if all(reasons.values()):
        raise JudgmentError(str(next(iter(reasons.values()))))
    with warnings.catch_warnings(), collect_notices():
        # what there is to say of the judgments is not what was asked
        warnings.simplefilter("ignore")
        # a plain method: people are few, and the program is to be compared with what they say
        method = method_class("aggregator", "majority_vote" if labels.nominal else _METHODS[labels.kind])()
        consensus = aggregate(sides.of_people(), method)
        quality: dict[int, dict[str, float]] = {}
        with suppress(CrowdrankError):
            quality = _quality_of_programs(method, sides)
        tables: dict[str, dict[str, pl.DataFrame]] = {name: {} for name in ("programs", *_TABLES)}
        # sides, ties, length, own family and shared errors of programs that compare items
        habits: list[str] = []
        if labels.kind != "grade" and control:
            # beside people, whose likings tell what is the program's own
            habits += diagnose(sides.judgments, control=control).annotator_messages
        elif labels.kind != "grade":
            by_programs = sides.judgments.select(~sides.is_person[sides.judgments.annotator])
            with suppress(CrowdrankError):
                habits += diagnose(by_programs, match_items(consensus, by_programs)).annotator_messages
        for code, own in values.items():
            one, reason = _Program(sides, of_people, int(code), own, quality.get(code, {}), level), reasons[code]
            if reason is not None and not ((of_people.number > 1) & ~np.isnan(own)).any():
                row = {"verdict": "undecided", "n_items": 0, "sentence": in_words("not_decided", reason=reason)}
                tables["programs"][one.name] = pl.DataFrame([row])
                continue
            found = alternative_test(of_people, own, margin, level, ids)
            slices = pl.DataFrame() if by is None else one.slices(found.gain, to_frame(by))
            of_program = [one.summary(found, reason, margin), one.correct_figures(threshold, run, metric), found.table]
            of_program += [one.confusion(), one.disagreements(found.gain), slices, one.leaderboard()]
            for name, table in zip(tables, [*of_program, next_labels(of_people, own, seed)], strict=True):
                tables[name][one.name] = table
            habits += one.habits()
    # those that could be tested first
    tables["programs"] = dict(sorted(tables["programs"].items(), key=lambda pair: "advantage" not in pair[1].columns))
    joined = {name: _join(parts, "program") for name, parts in tables.items()}
    if not len(joined["next_labels"]) and labels.kind != "ranking":
        # where people judged all that programs did: what says most about their consensus
        with warnings.catch_warnings(), collect_notices():
            warnings.simplefilter("ignore")
            asked = propose(sides.of_people()).head(MAX_NEXT).drop("annotator", "cost")
        joined["next_labels"] = asked.rename({"left": "item", "right": "other"}, strict=False)
    # the text of each item where there is one, and no queries where there are none
    texts = pl.DataFrame()
    if items is not None:
        described = describe_items(items, sides.judgments.items)
        texts = sides.judgments.items.frame().with_columns(text=pl.coalesce(described["text"], described["link"]))
    for table_name in ("disagreements", "next_labels"):
        table = joined[table_name]
        if "query" in table.columns and (table["query"].cast(pl.String) == "").all():
            table = table.drop("query")
        for name, text in (("item", "text"), ("other", "other_text")):
            if len(table) and name in table.columns and "text" in texts.columns and texts["text"].count():
                named = texts.rename({"item": name, "text": text})
                keys = [key for key in ("query", name) if key in named.columns and key in table.columns]
                named = named.unique(keys, keep="first", maintain_order=True)
                table = table.join(named, on=keys, how="left", maintain_order="left")
        joined[table_name] = table
    about: dict[str, Any] = {**joined, "kind": labels.kind, "margin": margin, "level": level}
    return Audit(**about, habits=tuple(habits), n_people=int(sides.is_person.sum()))


@dataclass(frozen=True, eq=False)
class _Program:
    """One program against people."""

    sides: Sides
    people: Labels
    code: int
    values: Floats
    quality: dict[str, float]
    level: float

    @property
    def name(self) -> str:
        """Its id."""
        return str(self.sides.name(self.code))

    def summary(self, found: Alternative, reason: str | None, margin: float) -> pl.DataFrame:
        """Return the row of the program: verdict, the test, and how good it is against the consensus of people."""
        words: dict[str, Any] = {"name": self.name, "n": len(found.table), "margin": margin}
        words |= {"n_won": round(found.winning_rate * words["n"]), "n_lost": round(found.share_lost * words["n"])}
        low, high = percent(max(found.lower, 0.0), sign=False), min(found.upper, 1.0)
        words["bounds"] = in_words("bounds", advantage=found.advantage, low=low, high=high)
        verdict = "undecided"
        if reason is not None:
            sentence = in_words("not_decided", reason=reason)
        else:
            lost = found.share_lost > 1 - _PASSING
            verdict = "yes" if found.winning_rate >= _PASSING else "no" if lost else verdict
            needed = _labels_to_decide(found.table, margin) if verdict == "undecided" else ""
            sentence = in_words(verdict, needed=needed, **words)
        row = {"verdict": verdict, "winning_rate": found.winning_rate, "advantage": found.advantage, "low": found.lower}
        row |= {"high": found.upper, "share_lost": found.share_lost, "n_items": found.n_items}
        row |= {**self.quality, **self._agreement(), "sentence": sentence}
        return pl.DataFrame([row], infer_schema_length=None)

    def _agreement(self) -> dict[str, float | None]:
        """Agreement with what most people say, beside that of a person with the others."""
        people, values = self.people, self.values
        known = (people.number > 0) & ~np.isnan(values)
        row: dict[str, float | None] = dict.fromkeys(("accuracy", "kappa", "log_loss", "rank_correlation", "error"))
        if people.kind == "grade" and not people.nominal:
            if known.sum() > 1 and np.ptp(values[known]) > 0 and np.ptp(people.mean[known]) > 0:
                row["rank_correlation"] = float(spearman(people.mean[known], values[known]))
            row["error"] = float(np.abs(people.mean[known] - values[known]).mean())
            return row
        levels, place = np.unique(people.value, return_inverse=True)
        shares = np.zeros((len(values), len(levels)))
        np.add.at(shares, (people.cell, place), 1 / people.number[people.cell])
        place = np.searchsorted(levels, values[known]).clip(0, len(levels) - 1)
        given = np.where(levels[place] == values[known], shares[known][np.arange(known.sum()), place], 0.0)
        most = shares[known].max(axis=1)
        n_most = (shares[known] == most[:, None]).sum(axis=1)
        row["accuracy"] = float(np.where(given == most, 1.0 / n_most, 0.0).mean())
        chosen, own = levels[shares[known].argmax(axis=1)], values[known]
        if people.kind != "grade":
            # either item of a pair may be called the first
            chosen, own = np.concatenate([chosen, -chosen]), np.concatenate([own, -own])
        row["kappa"] = float(cohen_kappa(chosen, own))
        number = people.number[known]
        row["log_loss"] = float(-np.log((given * number + 0.5) / (number + 0.5 * len(levels))).mean())
        return row

    def correct_figures(self, threshold: float | None, run: Any, metric: str) -> pl.DataFrame:
        """Return the figures in three ways."""
        judged = self.sides.judgments
        classes = judged.levels if isinstance(judged, Grades) and judged.nominal else ()
        means = figures(self.people, self.values, threshold, classes)
        rows = [corrected_row(one, self.people.query, self.level) for one in means]
        if run is not None:
            # query by query: by people's grades where they graded, by the program's everywhere
            if self.people.kind != "grade" or self.people.nominal:
                raise ParameterError("a run is measured by grades that have an order; leave it out")
            by_query = []
            for number, part in enumerate((self.sides.of_people(), judged.select(judged.annotator == self.code))):
                labels = Labels.of(part)
                truth = labels.cells.with_columns(grade=pl.Series(labels.mean))
                table = evaluate_runs(run, truth, [metric], bounds=False).per_query
                by_query.append(table.select("query", pl.col("value").alias(f"v{number}")))
            both = by_query[1].join(by_query[0], on="query", how="full", coalesce=True).sort("query")
            sides = [both[name].fill_null(float("nan")).to_numpy() for name in ("v0", "v1")]
            rows.append(corrected_row(Figure(metric, *sides), np.arange(len(both)), self.level))
        return pl.DataFrame([row for row in rows if row is not None], infer_schema_length=None)

    def confusion(self) -> pl.DataFrame:
        """Return the share of people's labels beside each label of the program."""
        people, values = self.people, self.values
        if people.kind != "grade":
            return pl.DataFrame()
        given, share = values[people.cell], 1 / people.number[people.cell]
        rows = pl.DataFrame({"people_say": people.value, "program_says": given, "weight": share})
        rows = rows.filter(pl.col("program_says").is_not_nan())
        if rows["people_say"].n_unique() * rows["program_says"].n_unique() > 400:
            return pl.DataFrame()
        table = rows.group_by("people_say", "program_says").agg(pl.col("weight").sum().alias("n_items"))
        table = table.sort("people_say", "program_says")
        for name in ("people_say", "program_says"):
            words = self._in_words(np.arange(len(table)), table[name].to_numpy())
            table = table.with_columns(pl.Series(name, [one if isinstance(one, str) else f"{one:g}" for one in words]))
        return table

    def disagreements(self, gain: Floats) -> pl.DataFrame:
        """Return the items on which the program agrees least with people, compared with people among themselves."""
        known = np.flatnonzero(~np.isnan(gain) & ~np.isnan(self.values) & (self.people.number > 1))
        order = known[np.lexsort((known, gain[known]))][:_SHOWN]
        order = order[gain[order] < 0]
        people, said = self.people, self._in_words(order, self.values[order])
        numbers: dict[str, Any] = {"gain": pl.Series(gain[order]), "n_people": people.number[order]}
        table = people.cells[order].with_columns(program_says=pl.Series(said, strict=False), **numbers)
        if people.kind == "grade" and not people.nominal:
            return table.with_columns(people_say=pl.Series(people.mean[order]))
        own = np.isin(people.cell, order)
        each = pl.DataFrame({"cell": people.cell[own], "word": self._in_words(people.cell[own], people.value[own])})
        each = each.group_by("cell", "word").len().sort(["len", "word"], descending=[True, False])
        counts = each.group_by("cell", maintain_order=True).agg(pl.format("{} {}", "word", "len").str.join(", "))
        return table.with_columns(people_say=pl.Series([dict(counts.rows())[cell] for cell in order.tolist()]))

    def _in_words(self, cells: Counts, values: Floats) -> list[Any]:
        """Labels of cells as they were given: a class, which of two items is better, or a grade."""
        if self.people.kind != "grade":
            names = self.people.cells.select("item", "other").cast(pl.String)[cells]
            better = pl.when(pl.lit(values) > 0).then("item").when(pl.lit(values) < 0).then("other")
            return names.select(better.otherwise(pl.lit("tie"))).to_series().to_list()
        judged = self.sides.judgments
        if isinstance(judged, Grades) and judged.nominal:
            return [str(judged.levels[int(code)]) for code in values]
        return list(values.tolist())

    def slices(self, gain: Floats, table: pl.DataFrame) -> pl.DataFrame:
        """Return the program's agreement with people, less what people do, in each part, drawn to the mean of all."""
        column = next((name for name in table.columns if name not in ("query", "item")), None)
        if "item" not in table.columns or column is None:
            raise ParameterError("parts need a table of item, query where there is one, and one column more")
        keys = [name for name in ("query", "item") if name in table.columns]
        text = [pl.col(name).cast(pl.String) for name in keys]
        named = table.with_columns(text).unique(keys, keep="first", maintain_order=True)
        cells = self.people.cells.with_columns(*text, gain=pl.Series(gain)).filter(pl.Series(~np.isnan(gain)))
        joined = cells.join(named, on=keys, how="inner", maintain_order="left").drop_nulls(column)
        total, rows = joined["gain"].to_numpy(), []
        for (value,), part in sorted(joined.group_by(column), key=lambda one: str(one[0])):
            own = part["gain"].to_numpy()
            if len(own) >= _MIN_SLICE and len(total) - len(own) >= _MIN_SLICE:
                rest = joined.filter(pl.col(column) != value)["gain"].to_numpy()
                error, other = (float(one.std(ddof=1)) / len(one) ** 0.5 for one in (own, rest))
                z = abs(own.mean() - rest.mean()) / max(float(np.hypot(error, other)), 1e-9)
                part_of = {"by": column, "slice": str(value), "n_items": len(own), "gain": float(own.mean())}
                rows.append({**part_of, "std_error": error, "p_value": 2 * (1 - NormalDist().cdf(z))})
        if not rows:
            return pl.DataFrame()
        frame = pl.DataFrame(rows)
        gains, errors = frame["gain"].to_numpy(), np.maximum(frame["std_error"].to_numpy(), 1e-9)
        between = max(float(np.var(gains)) - float((errors**2).mean()), 0.0)
        mean = float(np.average(gains, weights=1 / (between + errors**2)))
        pull = between / (between + errors**2)
        adjusted = holm(frame["p_value"].to_numpy())
        columns = {"shrunk": mean + pull * (gains - mean), "p_holm": adjusted, "differs": adjusted <= _CLEAR}
        return frame.with_columns(pl.Series(name, values) for name, values in columns.items())

    def leaderboard(self) -> pl.DataFrame:
        """Return ranks by people, by the program, and by people with the program's help, with intervals."""
        judged = self.sides.judgments
        if judged.kind != "preference" or judged.items.n_queries > 1 or judged.n_items > _MAX_ITEMS_RANKED:
            return pl.DataFrame()
        trusted = judged.annotators.ids.filter(pl.Series(self.sides.is_person)).to_list()
        who = judged.annotator
        rows = {"people": self.sides.is_person[who], "program": who == self.code}
        rows["corrected"] = rows["people"] | rows["program"]
        table = pl.DataFrame({"item": judged.items.ids})
        for name, chosen in rows.items():
            fitted = aggregate(judged.select(chosen), "latent_score", trusted=trusted if name == "corrected" else None)
            frame = fitted.intervals(self.level).join(fitted.frame().select("item", "rank"), on="item")
            ends = {f"{name}_{end}": column for end, column in zip(("rank", "lower", "upper"), _RANKS, strict=True)}
            table = table.join(frame.select("item", **ends), on="item")
        return table.sort("corrected_rank", "item")

    def habits(self) -> list[str]:
        """Return sentences about leniency and spread of grades."""
        people, values = self.people, self.values
        known = (people.number > 0) & ~np.isnan(values)
        if people.kind != "grade" or people.nominal or known.sum() < 2:
            return []
        lead = values[known] - people.mean[known]
        said = []
        low, high = mean_interval(lead, self.level)
        if low > 0 or high < 0:
            word = "lenient" if low > 0 else "severe"
            said.append(in_words("lenience", name=self.name, word=word, mean=lead.mean(), low=low, high=high))
        bottom, top = float(people.value.min()), float(people.value.max())
        extreme = [float(np.mean((one == bottom) | (one == top))) for one in (values[known], people.value)]
        error = (max(extreme[1] * (1 - extreme[1]), 1e-9) / known.sum()) ** 0.5
        if abs(extreme[0] - extreme[1]) > 3 * error:
            where = "keeps to the middle" if extreme[0] < extreme[1] else "goes to the ends of the scale"
            said.append(in_words("ends", name=self.name, where=where, own=extreme[0], theirs=extreme[1]))
        return said


def _join(parts: Mapping[str, pl.DataFrame], column: str) -> pl.DataFrame:
    """Tables as one, with a column that names which each row is from."""
    frames = [part.select(pl.lit(key).alias(column), pl.all()) for key, part in parts.items() if len(part)]
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def _labels_to_decide(table: pl.DataFrame, margin: float) -> str:
    """How many items with two people each would decide, in words, if differences stay what they are."""
    quantile = NormalDist().inv_cdf(1 - _CLEAR / len(table)) + NormalDist().inv_cdf(_POWER)
    lead = table["difference"].to_numpy() - margin
    items = (quantile * table["spread"].to_numpy() / np.maximum(np.abs(lead), 1e-3)) ** 2
    items[(table["won"] | table["lost"]).to_numpy()] = 0.0
    # it passes by winning against half of the people, and fails by losing to more than half
    n_wins, n_losses = int(np.ceil(_PASSING * len(table))), int(len(table) * (1 - _PASSING)) + 1
    wins, losses = np.sort(items[lead < 0]), np.sort(items[lead >= 0])
    needed = wins[n_wins - 1] if len(wins) >= n_wins else losses[n_losses - 1]
    now = int(table["n_items"].median() or 0)  # type: ignore[arg-type]
    if needed > _MAX_LABELS:
        return in_words("too_many", most=_MAX_LABELS)
    return in_words("more_labels", number=max(int(np.ceil(needed / 10) * 10), now + 10), now=now)


def _quality_of_programs(method: Any, sides: Sides) -> dict[int, dict[str, float]]:
    """Quality of each program by the consensus of people, corrected for how noisy that is, with its 90 % interval."""
    judged = sides.judgments
    if isinstance(judged, Grades) and judged.nominal:
        # one by one, on items of which people have one class in mind
        person, counts = sides.is_person[judged.annotator], np.zeros((judged.n_items, len(judged.levels)))
        np.add.at(counts, (judged.item[person], judged.level_place[person]), 1.0)
        clear = ((counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1)[judged.item]
        each = {code: judged.select(clear & (person | (judged.annotator == code))) for code in sides.programs}
        qualities = {code: held_out_quality(method, part) for code, part in each.items()}
    else:
        qualities = dict.fromkeys(sides.programs, held_out_quality(method, judged, left_out=~sides.is_person))
    rows = {}
    for code, found in qualities.items():
        if found is None or not found.parameters["n_pairs"][code]:
            continue
        lower, upper = (float(found.parameters[name][code]) for name in ("lower", "upper"))
        if upper - lower <= _MOST_DOUBT:
            rows[code] = {"quality": float(found.quality[code]), "quality_lower": lower, "quality_upper": upper}
    return rows


class Alternative(NamedTuple):
    """What the test found of a program: the share of people it wins against, and how it does against each.

    ``advantage`` is the mean over people of the probability that the program agrees with the others as well as that
    person or better, with the ends of its interval; ``share_lost`` is the share of people who are clearly better.
    ``table`` has a row per person. ``gain`` is the program's agreement with people less that of people with each other,
    by cell.
    """

    winning_rate: float
    share_lost: float
    advantage: float
    lower: float
    upper: float
    n_items: int
    table: pl.DataFrame
    gain: Floats


def alternative_test(people: Labels, values: Floats, margin: float, level: float, ids: pl.Series) -> Alternative:
    r"""Return the test of a program whose values are given by cell.

    Person :math:`j` is left out; on each of their items the program's mean agreement with the other people is compared
    with the person's own. With :math:`W^p` and :math:`W^h` whether the program, or the person, agrees at least as well,
    the program wins against :math:`j` where :math:`\overline{W^h} - \overline{W^p}` is below the margin by Student's t,
    by all exchanges of sign where items are fewer than 30, with Benjamini and Yekutieli's bound of .05 on false
    discoveries over people.
    """
    one, other = pairs_of_groups([people.cell.astype(np.int32)])
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    n = len(people.cell)
    given = values[people.cell]
    n_others = np.bincount(first, minlength=n)
    agreed = {}
    for name, own in (("person", people.value), ("program", given)):
        sums = np.bincount(first, people.agree(own[first], people.value[second]), n)
        agreed[name] = np.divide(sums, n_others, out=np.full(n, np.nan), where=n_others > 0)
    who = {"person": people.annotator, "instance": people.instance[people.cell]}
    rows = pl.DataFrame({**who, "own": agreed["person"], "program": agreed["program"]})
    rows = rows.filter(pl.Series((n_others > 0) & ~np.isnan(given)))
    rows = rows.group_by("person", "instance").agg(pl.col("own", "program").mean()).sort("person", "instance")
    own, program = rows["own"].to_numpy(), rows["program"].to_numpy()
    wins, losses = program >= own - _EQUAL, own >= program - _EQUAL
    person, instance = rows["person"].to_numpy(), rows["instance"].to_numpy()
    table = []
    for code in np.unique(person):
        mine = person == code
        lead = losses[mine].astype(np.float64) - wins[mine]
        row = {"person": ids[int(code)], "n_items": int(mine.sum()), "program_better": float(wins[mine].mean())}
        row |= {"person_better": float(losses[mine].mean()), "difference": float(lead.mean())}
        row["spread"] = float(lead.std(ddof=1)) if mine.sum() > 1 else 0.0
        table.append({**row, "p_value": below(lead, margin), "p_worse": below(-lead, -margin)})
    frame = pl.DataFrame(table, infer_schema_length=None)
    won, lost = (rejections(frame[name].to_numpy()) for name in ("p_value", "p_worse"))
    frame = frame.with_columns(won=pl.Series(won), lost=pl.Series(lost))
    # mean over people of how often the program is as good or better, and its standard error over items
    known, code = np.unique(person, return_inverse=True)
    own_items = np.bincount(code)
    share = np.bincount(code, wins) / own_items
    moves = (wins - share[code]) / (own_items[code] * len(known))
    by_item = np.bincount(np.unique(instance, return_inverse=True)[1], moves)
    n_items, advantage = len(by_item), float(share.mean())
    error = float(np.sqrt((by_item**2).sum() * n_items / max(n_items - 1, 1)))
    half = NormalDist().inv_cdf(0.5 + level / 2) * error
    cells = np.bincount(people.cell, np.where(n_others > 0, agreed["program"] - agreed["person"], 0.0), len(values))
    number = np.bincount(people.cell, n_others > 0, len(values))
    gain = np.divide(cells, number, out=np.full(len(values), np.nan), where=number > 0)
    ends = max(advantage - half, 0.0), min(advantage + half, 1.0)
    return Alternative(float(won.mean()), float(lost.mean()), advantage, *ends, n_items, frame, gain)


def below(lead: Floats, margin: float) -> float:
    """Return the p value of a mean below the margin: Student's t, of few values by all exchanges of sign."""
    from scipy.special import stdtr

    n, gap = len(lead), lead - margin
    if n < _FEW:
        # the share of all patterns of sign whose sum is as small as the one seen; values are few, so it is counted
        sizes, counts = np.unique(np.round(np.abs(gap), 9), return_counts=True)
        sums, chances = np.zeros(1), np.ones(1)
        for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            sums = (sums[:, None] + size * (2 * np.arange(count + 1) - count)).ravel()
            chances = (chances[:, None] * [comb(count, flips) / 2**count for flips in range(count + 1)]).ravel()
        return float(min(chances[sums <= gap.sum() + 1e-7].sum(), 1.0))
    spread = float(gap.std(ddof=1))
    if spread <= _EQUAL:
        return 0.0 if gap[0] < 0 else 1.0
    return float(stdtr(n - 1, float(gap.mean()) / (spread / np.sqrt(n))))


def rejections(p_values: Floats, level: float = _FALSE_DISCOVERIES) -> Bools:
    """Return which hypotheses Benjamini and Yekutieli reject: false discoveries at most ``level``, however dependent.

    Examples
    --------
    >>> rejections(np.array([0.001, 0.2, 0.01])).tolist()
    [True, False, True]
    """
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    bound = level * np.arange(1, n + 1) / (n * (1.0 / np.arange(1, n + 1)).sum())
    passing = np.flatnonzero(p_values[order] <= bound)
    mask = np.zeros(n, bool)
    mask[order[: passing[-1] + 1 if len(passing) else 0]] = True
    return mask


class Figure(NamedTuple):
    """A figure as a mean: the value of each case by people and by a program, NaN where there is none."""

    name: str
    people: Floats
    program: Floats


def figures(people: Labels, values: Floats, threshold: float | None, classes: tuple[Any, ...]) -> Iterator[Figure]:
    """Return the means, rates and win rates that labels of a kind have."""
    n = len(values)
    if people.kind != "grade":
        both = people.cells.filter(pl.Series((people.number > 0) & ~np.isnan(values)))
        names = pl.concat([both["item"], both["other"].alias("item")]).value_counts().sort("item")
        ahead = (0.5 + 0.5 * people.mean, 0.5 + 0.5 * values)
        for name in names.filter(pl.col("count") >= _MIN_CASES)["item"]:
            left = (people.cells["item"] == name).to_numpy()
            plays = left | (people.cells["other"] == name).to_numpy()
            sides = [np.where(plays, np.where(left, one, 1.0 - one), np.nan) for one in ahead]
            yield Figure(f"win rate of {name}", sides[0], sides[1])
        return
    if not people.nominal:
        yield Figure("mean grade", people.mean, values)
    marks: list[Any] = [] if threshold is None else [(f"at least {threshold:g}", np.greater_equal, threshold)]
    if people.nominal:
        marks = [(str(classes[int(code)]), np.equal, code) for code in np.unique(people.value)[:_MAX_CLASSES]]
    for name, holds, mark in marks:
        own = np.where(np.isnan(values), np.nan, holds(values, mark))
        yield Figure(f"share of {name}", _share(people, holds(people.value, mark), n), own)


def _share(people: Labels, named: Bools, n: int) -> Floats:
    """Share of people's labels of each cell for which something holds, NaN where there are none."""
    sums = np.bincount(people.cell, named, n)
    return np.divide(sums, people.number, out=np.full(n, np.nan), where=people.number > 0)


def corrected_row(figure: Figure, cluster: Counts, level: float) -> dict[str, Any] | None:
    """Return a figure by people alone, by the program alone and corrected, and how many labels would halve its width.

    ``None`` where too few cases have both.
    """
    known, said = ~np.isnan(figure.people), ~np.isnan(figure.program)
    both, rest = known & said, said & ~known
    n = int(both.sum())
    if n < _MIN_CASES:
        return None
    h, f, other = figure.people[both], figure.program[both], figure.program[rest]
    n_clusters = len(np.unique(cluster[both]))
    # queries with several cases are clusters; where each has one, cases are independent
    clusters = (cluster[both], cluster[rest]) if 1 < n_clusters < n else None
    means = [prediction_powered_mean(h, f, other, level=level, lam=lam, clusters=clusters) for lam in (None, 0.0)]
    joint, alone = (_of_few(one, level, n, n_clusters) for one in means)
    width = alone.upper - alone.lower
    # at m labels the variance is that of the residuals over m, and that of the program over what it judged besides
    left = float(np.var(h)) / (4 * n) - (joint.lam**2 * float(np.var(other)) / len(other) if len(other) else 0.0)
    halving = float(np.var(h - joint.lam * f)) / left if left > 0 else np.inf
    return {
        "figure": figure.name, "people": alone.mean, "people_lower": alone.lower, "people_upper": alone.upper,
        "program_says": float(figure.program[said].mean()), "corrected": joint.mean, "lower": joint.lower,
        "upper": joint.upper, "relative_width": (joint.upper - joint.lower) / width if width > 0 else 1.0,
        "weight": joint.lam, "n_people": n, "n_program": int(said.sum()),
        "labels_to_halve": int(min(np.ceil(halving), 4 * n)), "labels_to_halve_alone": 4 * n,
        **rogan_gladen(h, f, figure.program[said], level),
    }  # fmt: skip


def _of_few(found: PoweredMean, level: float, n: int, n_clusters: int) -> PoweredMean:
    """The mean with the interval of Student's t: its spread, and the weight of the program, are learned from few."""
    from scipy.special import stdtrit

    # the variance of clusters makes up for their mean already
    number, spread = (n_clusters, n_clusters - 1) if 1 < n_clusters < n else (n, n)
    degrees = max(number - 1 - (found.lam > 0), 1)
    factor = stdtrit(degrees, 0.5 + level / 2) / NormalDist().inv_cdf(0.5 + level / 2) * (spread / degrees) ** 0.5
    half = float(factor) * (found.upper - found.mean)
    return replace(found, lower=found.mean - half, upper=found.mean + half)


def rogan_gladen(h: Floats, f: Floats, everywhere: Floats, level: float) -> dict[str, float | None]:
    """Return the rate of a test with errors, corrected by its sensitivity and specificity [Rogan78]; of rates alone."""
    names = ("rogan_gladen", "rogan_gladen_lower", "rogan_gladen_upper")
    good, bad = float(h.sum()), float((1 - h).sum())
    if not np.isin(f, (0.0, 1.0)).all() or not ((h >= 0) & (h <= 1)).all() or min(good, bad) < 1:
        return dict.fromkeys(names)
    sensitivity, specificity = float((h * f).sum()) / good, float(((1 - h) * (1 - f)).sum()) / bad
    youden = sensitivity + specificity - 1
    if youden <= 0.05:
        # hardly better than chance: any rate would do
        return dict.fromkeys(names)
    said = float(everywhere.mean())
    rate = min(max((said + specificity - 1) / youden, 0.0), 1.0)
    variance = said * (1 - said) / len(everywhere)
    variance += rate**2 * sensitivity * (1 - sensitivity) / good
    variance += (1 - rate) ** 2 * specificity * (1 - specificity) / bad
    half = NormalDist().inv_cdf(0.5 + level / 2) * variance**0.5 / youden
    return dict(zip(names, (rate, max(rate - half, 0.0), min(rate + half, 1.0)), strict=True))


def next_labels(people: Labels, values: Floats, seed: int) -> pl.DataFrame:
    """Return cells that the program labelled and people did not, best first for the corrected figure.

    They are drawn without replacement with chances in proportion to the spread of people's labels less the program's,
    given what the program says: where it is a poor guide, people are asked more.
    """
    both = (people.number > 0) & ~np.isnan(values)
    wanted = np.flatnonzero((people.number == 0) & ~np.isnan(values))
    if people.nominal:
        residual = _share(people, people.value != values[people.cell], len(values))
    else:
        residual = people.mean - values
    overall = max(float(residual[both].std()), 1e-9)
    said, code = np.unique(values[both], return_inverse=True)
    number = np.bincount(code)
    mean = np.bincount(code, residual[both]) / number
    # two cases of the overall spread stand beside what was seen of a label
    spread = np.sqrt((np.bincount(code, (residual[both] - mean[code]) ** 2) + 2 * overall**2) / (number + 2))
    place = np.clip(np.searchsorted(said, values[wanted]), 0, len(said) - 1)
    chance = np.where(said[place] == values[wanted], spread[place], overall)
    order = np.argsort(np.random.default_rng(seed).exponential(size=len(wanted)) / chance, kind="stable")[:MAX_NEXT]
    return people.cells[wanted[order]].with_columns(spread=pl.Series(chance[order], dtype=pl.Float64))
