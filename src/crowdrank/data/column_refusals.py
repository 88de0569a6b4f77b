"""Tables that look like judgments and are something else, or hold them in a form that has to be named first."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import JudgmentError
from ..wording import either, option
from .column_names import LISTED, is_aside, key_of, name_points
from .column_points import RolePoints
from .column_questions import holds_answers, is_list_of_names, nested_sentence, short_paths
from .unsupported import marked_columns, not_supported, unsupported_kind
from .winner_codes import codes_of

_LOOKED_AT = 100
_TAGS = ("label", "tag", "entity", "entity_type", "type", "class", "category")
_CLICKS = ("click", "clicked", "is_click", "is_clicked")


class ColumnRefusals(RolePoints):
    """Roles of columns, with what is refused whatever the points say."""

    def refuse_lists(self, columns: Mapping[str, str]) -> None:
        """Refuse cells that hold the annotators of an item and their grades as lists of the same length."""
        if not {"annotator", "grade"} <= columns.keys():
            return
        names = [columns["annotator"], columns["grade"]]
        cells = [self.facts[name].sample for name in names]
        for mark in ";|":
            counts = [[cell.count(mark) for cell in each] for each in cells]
            if counts[0] == counts[1] and counts[0] and min(counts[0]) > 0:
                raise JudgmentError(
                    f"{names[0]!r} and {names[1]!r} hold lists ({cells[1][0]!r}); write one row for each annotator and "
                    "item"
                )

    def refuse_clicks(self, kind: str) -> None:
        """Refuse a log of clicks, whose positions are those that items were shown at and nobody's ranks."""
        clicks = next((name for name in self.names if key_of(name) in _CLICKS and self.facts[name].truths), None)
        if clicks is not None and kind == "ranking" and not {"rank", "grade"} & self.given.keys():
            best = self.best("rank")
            shown = best.name if best is not None else "rank"
            raise JudgmentError(
                f"a log of clicks ({clicks!r})? {shown!r} may be where an item was shown, which is not a rank; if "
                f"clicks are the judgments: {option('columns', {'grade': clicks})}; if these are ranks: "
                f"{option('columns', {'rank': shown})}"
            )

    def refuse_marks(self, columns: Mapping[str, str]) -> None:
        """Refuse rows that mark a part of an item, whose label is no grade of the item; numbers beside it may be."""
        marked, grade = marked_columns(self.names), columns.get("grade")
        if marked is None or "grade" in self.given or self.wishes.nominal:
            return
        kind, fields = marked
        numbers = [self.facts[name].numbers for name in fields]
        drawn = kind == "relations" or (all(numbers) if len(fields) > 1 else not numbers[0])
        # start and end may be those of the work
        tagged = grade is None or (not self.facts[grade].numbers and (kind != "spans" or key_of(grade) in _TAGS))
        if drawn and tagged:
            hold = f"{either(map(repr, fields), 'and')} {'holds' if len(fields) == 1 else 'hold'}"
            raise JudgmentError(not_supported(hold, kind, other=False))

    def refuse_unsupported(self, names: list[str]) -> None:
        """Refuse a table of which all that could be the grade is no judgment."""
        held = {name: self.facts[name] for name in names if self.facts[name].has_cells and not is_aside(name)}
        kinds = {
            name: unsupported_kind(
                one.cells.head(_LOOKED_AT).to_list() if one.is_nested and one.cells is not None else one.sample
            )
            for name, one in held.items()
            if not one.one_value
        }
        if kinds and None not in kinds.values():
            name, kind = next(iter(kinds.items()))
            raise JudgmentError(not_supported(f"{name!r} holds", kind or "", other=False))

    def refuse_best_and_worst(self, columns: Mapping[str, str]) -> None:
        """Refuse a row per item with a mark for the best and for the worst, of which neither is the grade."""
        marks = [name for name in self.names if key_of(name) in ("best", "worst") and self.facts[name].truths]
        if len(marks) == 2 and not columns:
            raise JudgmentError(
                f"{marks[0]!r} and {marks[1]!r} mark one item of a set each, and neither is a grade; write one row per "
                "set, with columns item1, item2, item3, ..., best and worst"
            )

    def names_winners(self, name: str) -> bool:
        """Whether all cells of a column are codes of winners, of both sides."""
        texts = set(self.facts[name].sample)
        codes = codes_of(sorted(texts)) if texts and not self.facts[name].numbers else {}
        if codes.keys() < texts <= self._items | codes.keys() and name_points("annotator", name) == 0:
            return len(texts - codes.keys()) > 1
        return texts <= codes.keys() and {1, -1} <= {code.outcome for code in codes.values()}

    def refuse_nested(self, role: str) -> None:
        """Refuse a column that holds objects where its name says that it is the one."""
        named = [name for name in self.names if self.facts[name].is_nested and self.may_hold(role, name)]
        if not named or role not in ("item", "grade", "rank", "left", "right", "winner", "annotator"):
            return
        if role == "grade":
            self.refuse_nested_pairs()
            self.refuse_unsupported(named[:1])
        raise JudgmentError(nested_sentence(role, named[0], self.facts[named[0]].cells))

    def refuse_nested_pairs(self) -> None:
        """Refuse objects that hold two sides and a winner, with the paths of all three."""
        held = [name for name in self.names if self.facts[name].is_nested]
        paths = [path for name in held for path in short_paths(name, self.facts[name].cells) if "[]" not in path]
        plain = [name for name in self.names if name not in held]
        winner = next((path for path in [*paths, *plain] if name_points("winner", _last(path)) >= LISTED), None)
        for ends in (("a", "b"), ("left", "right"), ("1", "2")):
            lefts = [path for path in paths if ends[0] in path.split(".")[1:] and name_points("item", _last(path))]
            for left in lefts:
                right = ".".join(ends[1] if part == ends[0] else part for part in left.split("."))
                if winner is not None and right in paths:
                    sides = option("columns", {"left": left, "right": right, "winner": winner})
                    raise JudgmentError(f"{left!r} and {right!r} may be two sides, and {winner!r} the winner: {sides}")

    def may_hold(self, role: str, name: str) -> bool:
        """Whether a column of objects has a name for a role, or entries that are graded or ranked where nothing is."""
        if name_points(role, name):
            # a list of names beside a list of graded objects says which they are and no more
            return not is_list_of_names(self.facts[name].cells)
        # what a model predicts or suggests is nobody's judgment
        asked = role in ("grade", "rank") and key_of(name) not in (
            "predictions",
            "prediction",
            "suggestions",
            "suggestion",
        )
        return asked and holds_answers(name, self.facts[name].cells)


def _last(path: str) -> str:
    """The last key of a path."""
    return path.rsplit(".", 1)[-1]
