"""RewardBench: what a reward model or judge scored, for a chosen and a rejected answer each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text
from .imported import Collector, Imported
from .streaming import records

_TITLE = "RewardBench outputs (scores_chosen, scores_rejected, results)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one preference of the model for each pair; that the chosen answer wins is the truth."""
    rows = Collector(source, options, unit="pair")
    if all(name in next(_results(source), {}) for name in ("scores", "num_correct")):
        return _read_scores(rows)
    judge = _judge(source)
    for number, record in enumerate(_results(source), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        chosen, rejected = _score(record.get("scores_chosen")), _score(record.get("scores_rejected"))
        result = as_number(record.get("results"))
        if chosen is not None and rejected is not None:
            # results is 0 where both scores are equal, although neither was preferred
            winner = "left" if chosen > rejected else "right" if chosen < rejected else "tie"
        elif result is not None:
            winner = {1.0: "left", 0.0: "right", 0.5: "tie"}.get(result, "")
        else:
            winner = ""
        if not winner:
            rows.drop("without a result")
            continue
        pair = {"query": as_text(record.get("id")) or str(number), "left": "chosen", "right": "rejected"}
        rows.add(record, **pair, winner=winner, annotator=as_text(record.get("model")) or judge)
        rows.truth.append(pair | {"winner": "left"})
    rows.roles |= {
        "left": "chosen", "right": "rejected", "winner": "scores_chosen against scores_rejected", "query": "id",
        "annotator": "name of the file before _outputs",
    }  # fmt: skip
    return rows.finish("preference", title=_TITLE, recorded=True)


def _judge(source: Source) -> str:
    """The model that a file is called after."""
    judge = Path(source.name).name.split("_outputs")[0].removesuffix(".gz")
    return Path(judge).stem if judge == Path(source.name).name else judge


def _results(source: Source) -> Iterator[dict[str, Any]]:
    """One object for each result, also of a file that holds one list for each field."""
    for record in records(source):
        results = record.get("results")
        if not isinstance(results, list):
            yield record
            continue
        n = len(results)
        for place in range(n):
            yield {
                name: value[place] if isinstance(value, list) and len(value) == n else value
                for name, value in record.items()
            }


def _read_scores(rows: Collector) -> Imported:
    """The scores of the second version, of several answers each, of which the first are right."""
    rows.unit, judge = "question", _judge(rows.source)
    for number, record in enumerate(_results(rows.source), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        values = record.get("scores")
        scores = [_score(one) for one in values] if isinstance(values, list) else []
        right = as_number(record.get("num_correct"))
        if not scores or None in scores or right is None:
            rows.drop("without scores")
            continue
        query = as_text(record.get("id")) or str(number)
        for place, score in enumerate(scores, 1):
            cells = {"query": query, "item": f"answer {place}"}
            rows.add(record, **cells, grade=score, annotator=as_text(record.get("model")) or judge)
            rows.truth.append(cells | {"grade": int(place <= right)})
    rows.roles |= {"item": "place in scores", "grade": "scores", "query": "id", "annotator": "model"}
    rows.notes.append("the first num_correct answers of a question are the right ones, which is the truth")
    return rows.finish("grade", title="RewardBench 2 scores (scores, num_correct)")


def _score(value: Any) -> float | None:
    """A score, also one in a list of its own."""
    return _score(value[0]) if isinstance(value, list) and len(value) == 1 else as_number(value)
