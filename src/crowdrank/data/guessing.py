"""Which column of a plain table holds what: names and cells give points, and what stays unclear is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from ..errors import JudgmentError
from ..wording import either, first_few, option
from .column_facts import as_float
from .column_names import (
    AHEAD,
    LISTED,
    WEAK,
    are_people,
    is_aside,
    is_gold,
    is_known,
    is_of_a_side,
    is_series,
    key_of,
    listed_sides,
    name_points,
    person_column,
    side_pairs,
    side_scores,
)  # fmt: skip
from .column_points import Seen, Wishes
from .column_questions import (
    is_it_a_flag,
    json_sentence,
    numbered_ranks,
    shown_cell,
    two_sides,
    what_numbers_mean,
    which_grade,
    which_scores,
)
from .column_refusals import ColumnRefusals
from .columns import (
    BY_WINNER,
    NEEDED,
    OPTIONAL,
    Understood,
    check_names,
    check_words,
    could_serve,
    given_columns,
    plain_name,
)  # fmt: skip
from .directions import bad_word
from .presented import is_it_swapped, order_columns
from .winner_codes import codes_of

__all__ = ["Wishes", "role_candidates", "side_columns", "understand"]

_LARGEST_RATING = 10
"""Ratings mostly go up to 5, 7 or 10; ages, years and percentages beyond."""

_LEAST = {"annotator": 3, "grade": 3, "rank": 3, "item": 2, "query": 2, "left": 2, "right": 2, "winner": 5}


def understand(
    table: pl.DataFrame | Iterable[str],
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    wishes: Wishes | None = None,
) -> Understood:
    """Return the kind of judgment a table holds and the column for each house word.

    Parameters
    ----------
    table
        The table, or its column names only.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; ``None`` tells it from the columns.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for names that are not understood by themselves.
    wishes
        What else the user said.

    Examples
    --------
    >>> understand(["task", "worker", "label"]).sentence()
    "read as grades: item = 'task', grade = 'label', annotator = 'worker'"
    >>> understand({"model_a": ["x", "y"], "model_b": ["y", "z"], "score": [-2, 2]})
    Traceback (most recent call last):
    ...
    crowdrank.errors.JudgmentError: pairs of 'model_a' and 'model_b', but no winner: 'score' holds -2, 2; if ...
    """
    if isinstance(table, Mapping):
        table = pl.DataFrame(table)
    names = [str(name) for name in (table.columns if isinstance(table, pl.DataFrame) else table)]
    check_names(names)
    given = given_columns(names, columns or {})
    check_words({}, kind)
    cells = table if isinstance(table, pl.DataFrame) else None
    return _Guess(names, given, cells, wishes or Wishes()).understand(kind)


def side_columns(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the columns of the left and the right items; ``None`` where there are none, or it is unclear which.

    Examples
    --------
    >>> side_columns(pl.DataFrame({"model_a": ["x"], "model_b": ["y"], "note": [""]}), {})
    ('model_a', 'model_b')
    """
    known = {word: name for word, name in columns.items() if name in table.columns}
    guess = _Guess(table.columns, known, table, Wishes(swapped=True))
    if not guess.has_sides():
        return None
    left, right = (guess.best(role) for role in ("left", "right"))
    return (left.name, right.name) if left is not None and right is not None else None


def with_loser(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table with a winner column, where two sides stand beside the one that lost and nothing else is said.

    Examples
    --------
    >>> table = pl.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "z"], "worse": ["model_b", "y"]})
    >>> made, columns = with_loser(table, {"loser": "worse"})
    >>> made[columns["winner"]].to_list()
    ['left', 'right']
    """
    name = columns.get("loser")
    rest = {word: column for word, column in columns.items() if word != "loser"}
    sides = side_columns(table, rest) if name in table.columns and "winner" not in columns else None
    if (
        name is None
        or sides is None
        or any(name_points("winner", one) >= LISTED for one in table.columns if one != name)
    ):
        return table, dict(columns)
    lost, left, right = (table[one].cast(pl.String, strict=False).str.strip_chars() for one in (name, *sides))
    values = lost.unique().drop_nulls().to_list()
    turned = {text: ("tie", "right", "left")[code.outcome] for text, code in codes_of(values).items()}
    turned |= {text: word for side, word in zip(sides, ("right", "left"), strict=True) for text in values
               if plain_name(text) == plain_name(side)}  # fmt: skip
    winner = pl.when(lost == left).then(pl.lit("right")).when(lost == right).then(pl.lit("left"))
    made = table.select(winner.otherwise(lost.replace(turned)).alias(f"other than {name}"))
    return table.hstack(made), {**rest, "winner": f"other than {name}"}


_MOST_CANDIDATES = 4


def role_candidates(table: pl.DataFrame, columns: Mapping[str, str], wishes: Wishes) -> dict[str, list[str]]:
    """Return the columns that may play each role of a table, the likeliest first; roles without any are left out.

    Examples
    --------
    >>> role_candidates(pl.DataFrame({"doc_id": [1, 2], "model": ["x", "y"], "acc": [0, 1]}), {}, Wishes())
    {'grade': ['acc'], 'item': ['model', 'doc_id']}
    """
    guess = _Guess(table.columns, dict(columns), table, wishes)
    pair = guess.has_sides()
    roles = ("left", "right", "winner") if pair else ("grade", "rank", "item")
    candidates: dict[str, list[str]] = {}
    for role in (*roles, "annotator", "query"):
        taken = (
            {names[0] for names in candidates.values() if len(names) == 1} if role in ("annotator", "query") else set()
        )
        free = [one.name for one in guess.candidates(role) if one.name not in taken]
        names = [columns[role]] if role in columns else free
        if role == "query":
            names = [name for name in names if name not in candidates.get("item", [])]
        if names:
            candidates[role] = names[:_MOST_CANDIDATES]
    return candidates


class _Guess(ColumnRefusals):
    """The roles of one table's columns."""

    def understand(self, kind: str | None) -> Understood:
        """Return what the table holds, or say what is unclear."""
        self.kind = kind
        by_winner = self._by_winner() if kind in (None, "preference") else {}
        by_role = {}
        if by_winner and ("loser" in self.given or not self.has_sides("winner")):
            kind, by_role = "preference", by_winner
        else:
            kind = kind or self._kind()
            by_role = self._required_columns(kind)
        by_role |= self._others(kind, by_role)
        self.refuse_lists(by_role)
        if kind == "preference" and not by_winner and not self.wishes.swapped:
            self._ask_order(by_role)
        words = dict.fromkeys((*NEEDED[kind], *(("loser", "tie") if by_winner else ()), *OPTIONAL[kind]))
        columns = {word: by_role[word] for word in words if word in by_role}
        ignored = tuple(name for name in self.names if name not in columns.values())
        return Understood(kind, columns, ignored, tuple(self.notes))

    # which kind ------------------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        """The kind of the table: preferences where it has two sides, else grades or rankings."""
        if self.has_sides():
            return "preference"
        grade, rank = (self.best(role) for role in ("grade", "rank"))
        if "rank" in self.given or "grade" in self.given:
            if "rank" in self.given and "grade" in self.given:
                raise JudgmentError(self._both())
            return "ranking" if "rank" in self.given else "grade"
        if not rank:
            return "grade"
        if not grade or grade.points < _LEAST["grade"]:
            return "ranking"
        if min(rank.points, grade.points) >= LISTED and self.candidates("item"):
            raise JudgmentError(self._both())
        return "grade" if grade.points > rank.points else "ranking"

    def _both(self) -> str:
        """Sentence for a table of grades that is one of ranks as well."""
        return (
            "the table has both a grade and a rank column; say which is meant "
            f"with {option('kind', 'grade')} or {option('kind', 'ranking')}"
        )

    # the columns that a kind needs -----------------------------------------------------------------------------------

    def _required_columns(self, kind: str) -> dict[str, str]:
        """The columns without which there is no judgment."""
        columns = {word: self.given[word] for word in NEEDED[kind] if word in self.given}
        if kind == "preference":
            return self._preference(columns)
        answer = "grade" if kind == "grade" else "rank"
        self._check_unlisted_sides(kind, columns)
        self.refuse_best_and_worst(columns)
        self.refuse_clicks(kind)
        # a column that can only be the item is none for the answer, and the other way round
        for role in (answer, "item"):
            if role not in columns:
                picked = self._pick(role, columns)
                if picked is not None:
                    columns[role] = picked
        if kind == "grade":
            self.refuse_marks(columns)
        if len(columns) < 2:
            raise JudgmentError(self._missing(kind, columns))
        if kind == "grade" and "grade" not in self.given:
            self._check_like(columns["grade"], columns)
        if (
            kind == "grade"
            and (said := json_sentence(columns["grade"], self.facts[columns["grade"]].sample)) is not None
        ):
            raise JudgmentError(said)
        return columns

    def _preference(self, columns: dict[str, str]) -> dict[str, str]:
        """The columns left, right and winner."""
        for role in ("left", "right"):
            if role not in columns and (picked := self._pick(role, columns)) is not None:
                columns[role] = picked
        if len({"left", "right"} & columns.keys()) < 2:
            raise JudgmentError(self._missing("preference", columns))
        if "winner" not in columns:
            picked = self._pick("winner", columns)
            if picked is None or self._bare(picked):
                raise JudgmentError(self._no_winner(columns, picked))
            columns["winner"] = picked
        elif self._bare(columns["winner"]):
            raise JudgmentError(self._no_winner(columns, columns["winner"]))
        return columns

    def _others(self, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
        """The columns that may be there as well."""
        more = {word: self.given[word] for word in OPTIONAL[kind] if word in self.given}
        for word in OPTIONAL[kind]:
            taken = {**columns, **more, **{role: name for role, name in self.given.items() if role not in more}}
            if word in more or (word == "annotator" and not self.wishes.annotators):
                continue
            picked = self._pick(word, taken) if word in ("annotator", "query") else self._column_by_name(word, taken)
            if picked is not None and not (word == "query" and self._is_attribute(picked, columns)):
                more[word] = picked
        return more

    def _column_by_name(self, word: str, taken: Mapping[str, str]) -> str | None:
        """The column with a name of a word that cells say little about; what cannot be used is left."""
        if word == "judgment" and "weight" not in {key_of(name) for name in self.names}:
            return None
        free = [Seen(p, name) for name in self.names if (p := name_points(word, name)) and name not in taken.values()]
        for _, name in sorted(free, key=lambda seen: -seen.points):
            facts = self.facts[name]
            if facts.is_nested or facts.empty:
                continue
            if word in ("strength", "duration") and facts.has_cells and not facts.numbers:
                continue
            return name
        return None

    def _is_attribute(self, query: str, columns: Mapping[str, str]) -> bool:
        """Whether a column with a weak name for the query is the same in all rows of each item."""
        item, facts = columns.get("item"), self.facts[query]
        if item is None or name_points("query", query) > WEAK or not facts.has_cells or self.facts[item].cells is None:
            return False
        pairs = pl.DataFrame({"query": facts.cells, "item": self.facts[item].cells})
        if pairs.n_unique() > self.facts[item].distinct or self.facts[item].all_different:
            return False
        self.notes.append(f"{query!r} is the same in all rows of each {item!r}, so it is not used as the query")
        return True

    def _by_winner(self) -> dict[str, str]:
        """The columns of a table of winners and losers; empty where it is none."""
        plain = {plain_name(name): name for name in reversed(self.names)}
        for winner, loser in BY_WINNER:
            names = {"winner": plain.get(winner), "loser": plain.get(loser)}
            pair = {word: self.given.get(word, name) for word, name in names.items()}
            both = {word: name for word, name in pair.items() if name is not None}
            if len(set(both.values())) == 2 and not any(self.facts[name].is_nested for name in both.values()):
                tie = self.given.get("tie") or self._column_by_name("tie", both)
                return {**both, "tie": tie} if tie is not None else both
        return {}

    def _ask_order(self, columns: Mapping[str, str]) -> None:
        """Ask whether winners are in the order that another column says answers were shown in; ids are in none."""
        cells = {name: facts.cells for name, facts in self.facts.items() if facts.cells is not None}
        sides = (columns["left"], columns["right"])
        if not {*sides, columns["winner"]} <= cells.keys() or not self.n:
            return
        table = pl.DataFrame({name: column for name, column in cells.items() if not column.dtype.is_nested()})
        free = [name for name in table.columns if name not in columns.values()]
        order = next(iter(order_columns(table, free, sides)), None)
        if order is None:
            return
        texts = set(self.facts[columns["winner"]].sample)
        codes = codes_of(sorted(texts)).items()
        ids = texts - {text for text, code in codes if code.outcome == 0}
        if ids <= self._items and not any(code.outcome for text, code in codes if text in ids):
            self.notes.append(
                f"{order!r} is not used; if it says which of two was shown first, {option('swapped', order)} tells who "
                "chooses by side"
            )
            return
        raise JudgmentError(is_it_swapped(table, order, columns["winner"], sides))

    # points ----------------------------------------------------------------------------------------------------------

    def _pick(self, role: str, taken: Mapping[str, str]) -> str | None:
        """The column of a role, ``None`` where there is none; two that are near are refused."""
        if role in self.given:
            return self.given[role]
        candidates = [one for one in self.candidates(role) if one.name not in taken.values()]
        if not candidates:
            self.refuse_nested(role)
            return None
        best, *rest = candidates
        if best.points < _LEAST[role]:
            return None
        if rest and best.points - rest[0].points < AHEAD and rest[0].points >= min(_LEAST[role], WEAK + 1):
            if role == "query" and self._same_rows(best.name, rest[0].name):
                return best.name
            if role == "rank" and (said := numbered_ranks([one.name for one in candidates])) is not None:
                raise JudgmentError(said)
            raise JudgmentError(
                f"columns {best.name!r} and {rest[0].name!r} could both be the {role}; "
                f"say which: {option('columns', {role: best.name})}"
            )
        return best.name

    # what is unclear -------------------------------------------------------------------------------------------------

    def _bare(self, winner: str) -> bool:
        """Whether winners are numbers of which nobody said what they mean."""
        facts = self.facts[winner]
        if self.wishes.coded or not facts.has_cells or not facts.sample:
            return False
        values = [as_float(text) for text in facts.values]
        if any(value is None for value in values) or set(facts.sample) <= self._items:
            return False
        return not (-1.0 in values and set(values) <= {-1.0, 0.0, 1.0})

    def _no_winner(self, columns: Mapping[str, str], picked: str | None) -> str:
        """Sentence for pairs of which it is not known who won."""
        rivals = [seen.name for seen in self.candidates("winner") if seen.name not in columns.values()]
        numbered = [name for name in rivals if self.facts[name].numbers and self.facts[name].sample]
        others = [
            name for name in self.names
            if name not in columns.values() and name not in rivals and self.facts[name].sample
            and self.facts[name].numbers and not self.facts[name].one_value and not is_aside(name)
            and not is_known(key_of(name)) and not is_of_a_side(name) and not is_gold(name)
        ]  # fmt: skip
        name = picked or next(iter([*numbered, *others]), None)
        left, right = columns["left"], columns["right"]
        flag = next((one for one in self.names if one not in columns.values() and self._is_flag(one)), None)
        if name is None and (scores := self._side_scores()) is not None:
            return which_scores(left, right, scores, named=True)
        if name is None and flag is not None:
            return is_it_a_flag(flag, self.facts[flag].values, left, right)
        if name is None:
            free = [one for one in self.names if one not in columns.values()]
            said = f"pairs of {left!r} and {right!r}, but no winner"
            naming = [one for one in free if self.names_winners(one)]
            if len(naming) == 1 and bad_word(naming[0]):
                lost, won = (option("columns", {word: naming[0]}) for word in ("loser", "winner"))
                return f"{said}; if {naming[0]!r} names the worse one: {lost}; if it names the better one: {won}"
            winner = option("columns", {"winner": naming[0] if len(naming) == 1 else ...})
            return f"{said}; say which column tells who won: {winner} ({self.listing(free)})"
        return what_numbers_mean(name, self.facts[name].values, left, right)

    def _check_like(self, grade: str, columns: Mapping[str, str]) -> None:
        """Refuse a grade with a weak name beside other columns of such numbers."""
        if name_points("grade", grade) > WEAK or not self.facts[grade].has_cells:
            return
        alike = [name for name in self.names if name == grade or self._is_like(name, grade, columns)]
        if len(alike) > 1:
            raise JudgmentError(which_grade(alike))

    def _is_like(self, name: str, grade: str, columns: Mapping[str, str]) -> bool:
        """Whether a column that nothing is known of holds numbers of the range of the grades."""
        facts = self.facts[name]
        if name in columns.values() or name in self.given.values() or is_aside(name) or is_gold(name):
            return False
        if is_known(key_of(name)) and not name_points("grade", name):
            return False
        if not facts.numbers or facts.one_value or facts.times or not self.facts[grade].numbers:
            return False
        own, other = ([v for v in map(as_float, one.sample) if v is not None] for one in (self.facts[grade], facts))
        return bool(own and other) and min(other) >= min(own) - 1 and max(other) <= max(own) + 1

    def _check_unlisted_sides(self, kind: str, columns: Mapping[str, str]) -> None:
        """Refuse grades where two columns of texts may be sides, and no name says what is graded."""
        best = {role: seen.name for role in ("item", "grade", "rank") if (seen := self.best(role))} | dict(columns)
        item = best.get("item")
        if self.kind == kind or "item" in self.given or (item and name_points("item", item) >= LISTED):
            return
        for _, left, right in side_pairs(self.names):
            one, other = self.facts[left], self.facts[right]
            if not all(facts.has_cells and not facts.is_nested and not facts.empty for facts in (one, other)):
                continue
            if one.numbers or other.numbers or one.truths or other.truths or one.times or one.sample == other.sample:
                continue
            winner = next((seen.name for seen in self.candidates("winner")), None)
            if winner is None and (scores := self._side_scores()) is not None:
                raise JudgmentError(which_scores(left, right, scores, named=False))
            item = None if item == winner else item
            raise JudgmentError(two_sides(left, right, winner or best.get("grade") or best.get("rank"), item))

    def _is_flag(self, name: str) -> bool:
        """Whether a column says yes or no of one side, as ``a_wins`` does."""
        return self.facts[name].truths and not self.facts[name].one_value and is_of_a_side(name)

    def _side_scores(self) -> tuple[str, str] | None:
        """Two columns with a score of either side."""
        both = [pair for pair in side_scores(self.names) if all(self.facts[name].numbers for name in pair)]
        return both[0] if both else None

    def _missing(self, kind: str, columns: Mapping[str, str]) -> str:
        """Sentence saying what was understood and what is missing."""
        lacking = [word for word in NEEDED[kind] if word not in columns]
        varied = [
            name for name in self.names
            if name not in columns.values() and self.facts[name].has_cells and self.facts[name].numbers
            and not self.facts[name].one_value
            and not is_aside(name) and not is_gold(name) and not is_known(key_of(name))
        ]  # fmt: skip
        numeric = [name for name in varied if not self.facts[name].all_different]
        if lacking == ["grade"] and len(numeric) > 1:
            row = columns["item"] if self.facts[columns["item"]].all_different else None
            return which_grade(self._with_like_names(numeric), row=row)
        several = listed_sides(self.names)
        if "item" in lacking and any(name_points("left", name) for name in several):
            return (
                f"each row shows several items, {either(map(repr, several[:8]), 'and')}, and only one or two of a row "
                "can be read; write one row per item and rank, or one per pair and winner"
            )
        if kind == "grade" and "item" in lacking and len(varied) > 1 and (said := self._survey_question(varied)):
            return said
        for word in lacking:
            self.refuse_nested(word)
        understood = {**columns, **self._optional_columns(kind, columns)}
        if lacking == ["grade"]:
            self.refuse_unsupported([name for name in self.names if name not in understood.values()])
        known = ", ".join(f"{word} = {name!r}" for word, name in understood.items()) or "nothing"
        free = [name for name in self.names if name not in understood.values()]
        listed = (
            self.listing(free) if any(self.facts[name].has_cells for name in free) else could_serve(self.names, columns)
        )
        likely = [name for name in free if not is_aside(name) and not self.facts[name].is_nested]
        likely = numeric if lacking == ["grade"] and len(numeric) == 1 else likely
        if lacking == ["grade"]:
            likely = [name for name in likely if not (self.facts[name].one_value or self.facts[name].long_text)]
        sole = likely[0] if len(likely) == len(lacking) == 1 else ...
        return (
            f"the table lacks {' and '.join(lacking)} to be read as {kind}s (understood: {known}; {listed}); "
            f"name the column with {option('columns', {lacking[0]: sole})}"
        )

    def _survey_question(self, numeric: list[str]) -> str | None:
        """Sentence for columns of numbers that may be one per item; ``None`` where nothing says whose a row is."""
        person = person_column(self.names)
        whose = person or next((name for name in self.names if self.facts[name].times), None)
        if whose is None:
            return None
        like = self._with_like_names(self._of_one_scale(numeric))
        named = "" if person is not None else f" and {option('columns', {'annotator': whose})}"
        listed = either(map(repr, like[:8]), "and")
        return (
            f"{listed} may be one column per item, with {whose!r} in each row; read them so: {option('wide', like)}"
            f"{named}"
        )

    def _of_one_scale(self, names: list[str]) -> list[str]:
        """Those of the columns whose numbers go up to 10, or those that go beyond, whichever are more."""
        short = [
            name
            for name in names
            if all((as_float(cell) or 0.0) <= _LARGEST_RATING for cell in self.facts[name].values)
        ]
        long = [name for name in names if name not in short]
        return max(short, long, key=len)

    def _with_like_names(self, names: list[str]) -> list[str]:
        """The columns of numbers called like these too, such as that of an annotator whose grades are all the same."""
        alike = is_series if is_series(names) else are_people if are_people(names) else None
        if alike is None:
            return names
        return [name for name in self.names if name in names or (self.facts[name].numbers and alike([*names, name]))]

    def _optional_columns(self, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
        """What else is understood of a table that lacks something."""
        taken = set(columns.values())
        best = {word: self.best(word) for word in OPTIONAL[kind] if word in ("annotator", "query")}
        return {word: one.name for word, one in best.items() if one is not None and one.name not in taken}

    def listing(self, names: list[str]) -> str:
        """Columns with their first value each, which never shows who somebody is."""
        each = [f"{name[:60]!r} ({shown_cell(self.facts[name])})" for name in names]
        return f"columns that could serve: {first_few(each, shown=100)}" if each else "no column is left"
