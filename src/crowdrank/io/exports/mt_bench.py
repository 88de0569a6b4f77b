"""MT-Bench: FastChat's model judgments, pairs judged in two games or single answers with a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import JudgmentError
from ...wording import option
from ..read_options import ReadOptions
from ..sources import Source
from .answer_style import shown_answers, style_cells
from .cells import as_number, as_text
from .imported import Collector, Imported
from .streaming import records

_OUTCOMES = ("model_1", "model_2", "tie")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return each game as a preference, or each score as a grade."""
    rows = Collector(source, options, unit="game")
    pairs = None
    for record in records(source):
        if pairs is None:
            pairs = "g1_winner" in record
            rows.unit = "game" if pairs else "score"
        if not rows.is_wanted(record):
            continue
        if pairs:
            (_add_agreement if options.agreeing else _add_games)(rows, record)
        else:
            _add_score(rows, record)
    rows.roles |= {"annotator": "judge[0]", "query": "question_id, turn", "time": "tstamp"}
    if not pairs:
        rows.roles |= {"item": "model", "grade": "score"}
        return rows.finish("grade", title="MT-Bench scores (model, score)")
    rows.roles |= {"left": "model_1, then model_2", "right": "model_2, then model_1", "winner": "g1_winner, g2_winner"}
    if rows.dropped["error"] and not options.agreeing:
        rows.notes.append(
            "a failed game leaves the other one in; FastChat drops both, and ties games that differ: "
            f"{option('agreeing', True)}"
        )
    return rows.finish("preference", title="MT-Bench pairs (g1_winner, g2_winner)")


def _add_games(rows: Collector, record: Mapping[str, Any]) -> None:
    """Both games, each with its models as they were shown."""
    first, second = as_text(record.get("model_1")), as_text(record.get("model_2"))
    for field, left, right, sides in (("g1_winner", first, second, "12"), ("g2_winner", second, first, "21")):
        rows.n_read += 1
        outcome = as_text(record.get(field))
        if outcome not in _OUTCOMES:
            rows.drop("error" if outcome == "error" else "without a winner")
            continue
        won = {"model_1": first, "model_2": second}.get(outcome)
        winner = "tie" if won is None else "left" if won == left else "right"
        rows.add(record, left=left, right=right, winner=winner, **_cells(record), **_style(rows, record, sides))


def _add_agreement(rows: Collector, record: Mapping[str, Any]) -> None:
    """One preference of a pair of games: their winner where they agree, else a tie; none where one failed."""
    rows.n_read += 2
    outcomes = [as_text(record.get(field)) for field in ("g1_winner", "g2_winner")]
    if any(outcome not in _OUTCOMES for outcome in outcomes):
        rows.drop("error", 2)
        return
    winner = (
        {"model_1": "left", "model_2": "right"}.get(outcomes[0] or "", "tie") if outcomes[0] == outcomes[1] else "tie"
    )
    cells = {"left": as_text(record.get("model_1")), "right": as_text(record.get("model_2")), "winner": winner}
    rows.add(record, **cells, **_cells(record), **_style(rows, record, "12"))


def _style(rows: Collector, record: Mapping[str, Any], sides: str) -> dict[str, Any]:
    """Style of the two answers of a game, as the judge was shown them."""
    if not rows.options.covariates:
        return {}
    shown = shown_answers(record.get(f"g{sides[0]}_user_prompt"))
    return style_cells(rows.options, record, (sides[0], sides[1]), shown)


def _add_score(rows: Collector, record: Mapping[str, Any]) -> None:
    """One score of one answer; -1 is a judge that failed."""
    rows.n_read += 1
    score = as_number(record.get("score"))
    if score is None or score == -1:
        rows.drop("score -1" if score == -1 else "without a score")
        return
    rows.add(record, item=as_text(record.get("model")), grade=score, **_cells(record))


def _cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """What games and scores have in common."""
    judge = record.get("judge")
    question, turn = as_text(record.get("question_id")), as_text(record.get("turn"))
    if question is None:
        raise JudgmentError("a line has no question_id; give the file as FastChat wrote it")
    return {
        "query": question if turn is None else f"{question}, turn {turn}",
        "annotator": as_text(judge[0]) if isinstance(judge, list) and judge else as_text(judge or None),
        "time": record.get("tstamp"),
    }
