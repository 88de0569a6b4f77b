"""Arena-Hard: two games of a model against a baseline, with graded verdicts."""

from __future__ import annotations

from ...errors import JudgmentError
from ...wording import option
from ..read_options import ReadOptions
from ..sources import Source
from .answer_style import shown_answers, style_cells
from .cells import as_text
from .imported import Collector, Imported
from .pair_columns import verdict
from .streaming import Shape, records

_TITLE = "Arena-Hard judgments (games, judge, model)"
_SHAPE: Shape = {"games": [{}]}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return each game as a preference with its strength."""
    rows = Collector(source, options, unit="game")
    for number, record in enumerate(records(source, shape=_SHAPE), 1):
        if not rows.is_wanted(record):
            continue
        model = as_text(record.get("model"))
        baseline = as_text(record.get("baseline")) or options.baseline_model
        if baseline is None:
            raise JudgmentError(
                "the file does not name the other model, which old files lack; say which it was, as in "
                f"{option('baseline_model', 'gpt-4-0314')}"
            )
        query = as_text(record.get("uid")) or as_text(record.get("question_id")) or str(number)
        # A is the baseline in the first game and the model in the second
        sides = ((baseline, model), (model, baseline))
        for game, (left, right) in zip(record.get("games") or (), sides, strict=False):
            rows.n_read += 1
            winner_and_strength = verdict(game.get("score"))
            if winner_and_strength is None or left == right:
                rows.drop("no score" if winner_and_strength is None else "of the baseline with itself")
                continue
            winner, strength = winner_and_strength
            cells = {"annotator": as_text(record.get("judge")), "time": record.get("tstamp")}
            if options.covariates:
                shown = shown_answers(game.get("user_prompt", game.get("prompt")))
                cells |= style_cells(options, game, ("a", "b"), shown)
            rows.add(record, query=query, left=left, right=right, winner=winner, strength=strength, **cells)
    rows.roles |= {
        "left": "baseline, then model", "right": "model, then baseline", "winner": "games[].score",
        "strength": "games[].score (>> 2, > 1, = 0)", "query": "uid or question_id",
        "annotator": "judge", "time": "tstamp",
    }  # fmt: skip
    if rows.dropped["no score"]:
        rows.notes.append("a game without a verdict leaves the other one in; Arena-Hard itself drops both")
    return rows.finish("preference", title=_TITLE)
