"""Evaluations of language models: battles, verdicts of judges and scores, a function for each tool's files.

What a tool's records say is yielded one by one, as cells of a judgment or as the reason why there is none, and
:meth:`~crowdrank.io.exports.imported.Collector.take` does the rest.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ...data.column_names import FOREIGN
from ...data.covariates import parse_covariates
from ...errors import JudgmentError
from ...wording import call, counted, first_few, option
from ..sources import ZIP, Source
from ..tables import table_format
from . import EXPORTS
from . import cells as foreign
from .cells import as_number, as_text, side
from .imported import Cells, Collector, Imported, Judged
from .streaming import Record, check_shape, document, json_values, look, records, text_members

# where the scores of a platform stand: words of ``scores`` in ``exports.toml`` -> paths, none for other words
Fields = defaultdict[str, tuple[str, ...]]


# pairs ---------------------------------------------------------------------------------------------------------------


def _wanted_fields(rows: Collector) -> list[str]:
    """The fields of a Parquet file that are read: its own, what the user names, and long texts only for covariates."""
    options, own = rows.options, rows.export.fields
    fields = [*own["read"], *(path.split(".")[0] for path in (*options.columns.values(), *options.where))]
    if options.covariates:
        # conversations are long, and spared where their style is counted already
        fields += ["conv_metadata"] if look(rows.source).has("conv_metadata") else own["texts"]
        fields += [f"{name}_{end}" for name in parse_covariates(options.covariates) for end in "ab"]
    return fields


_SMALLEST_SHARE = 1e-9  # a judge is no surer than this; a smaller share is what rounding leaves of none
_MOST_OUTSIDE = 0.1  # share of annotations with another number from which on the column is not AlpacaEval's


def alpaca_eval(rows: Collector) -> Imported:
    """Return a preference for each annotation; a probability becomes two rows whose weights add up to 1."""
    outside = "with a preference outside 1 to 2"
    values: Counter[float | None] = Counter()

    def annotation(record: Record, number: int) -> Judged:
        preference = as_number(record.get("preference"))
        values[preference if preference in (0, 1, None) else 2] += 1
        cells = rows.cells_of(record)
        if preference is None:
            yield "no preference"
        elif preference != 0 and not 1 <= preference <= 2:
            yield outside
        elif cells["left"] == cells["right"] or None in (cells["left"], cells["right"]):
            yield "without two different generators"
        else:
            asked = [text for name in ("instruction", "input") if (text := as_text(record.get(name)))]
            cells["query"] = "\n".join(asked) or str(number)
            cells |= _style(rows, record, "12", (record.get("output_1"), record.get("output_2")))
            # 0 is a draw in files of the first versions, 1.5 in later ones
            outcomes = {"left": 2 - preference, "right": preference - 1} if preference not in (0, 1.5) else {"tie": 1.0}
            number = rows.n_read - rows.dropped.total()
            shares = [(won, weight) for won, weight in outcomes.items() if weight > _SMALLEST_SHARE]
            yield [{**cells, "judgment": number, "winner": won, "weight": weight} for won, weight in shares]

    rows.take(records(rows.source, _wanted_fields(rows)), annotation)
    if rows.dropped[outside] > _MOST_OUTSIDE * rows.n_read:
        rows.refuse("outside", dropped=rows.dropped[outside], annotations=counted(rows.n_read, "annotation"))
    if values[0] and values[1] and not values[2]:
        rows.refuse("never_2")
    return rows.finish("preference", recorded=True)


_HOT = {"winner_model_a": "left", "winner_model_b": "right"}
_HOT |= dict.fromkeys(("winner_tie", "winner_tie (bothbad)", "winner_tie_bothbad"), "tie")


def arena(rows: Collector) -> Imported:
    """Return one preference for each battle of Chatbot Arena, as published with 33 to 140 thousand conversations."""
    both_bad = 0

    def battle(record: Record, number: int) -> Judged:
        nonlocal both_bad
        word = as_text(record.get("winner"))
        if word is not None or "winner_model_a" not in record:
            winner, bad = side(word), word is not None and "bad" in word.lower()
            if word is not None and winner is None:
                rows.refuse("unknown_winner", number=number, word=word)
        else:
            hot = {name: as_number(record[name]) for name in _HOT if name in record}
            flags = {name: foreign.as_truth(record[name] if cell is None else cell) for name, cell in hot.items()}
            won = [name for name, flag in flags.items() if flag]
            if len(won) != 1 or None in flags.values():
                rows.refuse("several_winners", number=number, n=len(won))
            winner, bad = _HOT[won[0]], "bad" in won[0]
        cells = rows.cells_of(record, number)
        if winner is None:
            yield "without a winner"
        elif cells["left"] == cells["right"] or None in (cells["left"], cells["right"]):
            yield "of a model with itself" if cells["left"] else "without a model"
        else:
            both_bad += bad
            said = "response" if "response_a" in record and "conversation_a" not in record else "conversation"
            texts = record.get(f"{said}_a"), record.get(f"{said}_b")
            yield {**cells, "winner": winner, **_style(rows, record, "ab", texts)}

    rows.take(records(rows.source, _wanted_fields(rows)), battle)
    if both_bad:
        rows.notes.append(f"{both_bad:,} battles with both bad are ties")
    return rows.finish("preference")


def arena_hard(rows: Collector) -> Imported:
    """Return each of the two games of a model against a baseline as a preference with its strength."""

    def games(record: Record, number: int) -> Judged:
        model, baseline = as_text(record.get("model")), as_text(record.get("baseline")) or rows.options.baseline_model
        if baseline is None:
            rows.refuse("no_baseline", baseline_model=option("baseline_model", "gpt-4-0314"))
        # A is the baseline in the first game and the model in the second
        sides = ((baseline, model), (model, baseline))
        for game, (left, right) in zip(record.get("games") or (), sides, strict=False):
            graded = foreign.verdict(game.get("score"))
            if graded is None or left == right:
                yield "no score" if graded is None else "of the baseline with itself"
                continue
            pair: Cells = {"left": left, "right": right, "winner": graded[0], "strength": graded[1]}
            pair |= _style(rows, game, "ab", prompt=game.get("user_prompt", game.get("prompt")))
            yield {**rows.cells_of(record, number), **pair}

    rows.take(records(rows.source, shape=rows.export.shape), games)
    if rows.dropped["no score"]:
        rows.notes.append("a game without a verdict leaves the other one in; Arena-Hard itself drops both")
    return rows.finish("preference")


def mt_bench(rows: Collector) -> Imported:
    """Return FastChat's pairs, judged in two games each, as preferences, or its scores of single answers as grades."""
    options, outcomes = rows.options, ("model_1", "model_2", "tie")

    def common_cells(record: Record) -> Cells:
        judge, question, turn = record.get("judge"), as_text(record.get("question_id")), as_text(record.get("turn"))
        if question is None:
            raise JudgmentError("a line has no question_id; give the file as FastChat wrote it")
        who = as_text(judge[0]) if isinstance(judge, list) and judge else as_text(judge or None)
        query = question if turn is None else f"{question}, turn {turn}"
        return {"query": query, "annotator": who, "time": record.get("tstamp")}

    def games(record: Record, number: int) -> Judged:
        first, second = as_text(record.get("model_1")), as_text(record.get("model_2"))
        won = [as_text(record.get(field)) for field in ("g1_winner", "g2_winner")]
        both = [(won[0], first, second, "12"), (won[1], second, first, "21")]
        if options.agreeing and all(one in outcomes for one in won):
            # one preference of the two games: their winner where they agree, else a tie
            rows.n_read += 1
            both = [(won[0] if won[0] == won[1] else "tie", first, second, "12")]
        elif options.agreeing:
            yield from ("error", "error")
            return
        for outcome, left, right, sides in both:
            if outcome not in outcomes:
                yield "error" if outcome == "error" else "without a winner"
                continue
            name = {"model_1": first, "model_2": second}.get(outcome)
            winner = "tie" if name is None else "left" if name == left else "right"
            style = _style(rows, record, sides, prompt=record.get(f"g{sides[0]}_user_prompt"))
            yield {"left": left, "right": right, "winner": winner, **common_cells(record), **style}

    def score(record: Record, number: int) -> Judged:
        grade = as_number(record.get("score"))
        if grade is None or grade == -1:
            # -1 is a judge that failed
            yield "score -1" if grade == -1 else "without a score"
        else:
            yield {"item": as_text(record.get("model")), "grade": grade, **common_cells(record)}

    pairs = "g1_winner" in next(records(rows.source), {})
    rows.unit = "game" if pairs else "score"
    rows.take(records(rows.source), games if pairs else score)
    if not pairs:
        rows.title = "MT-Bench scores (model, score)"
        return rows.finish("grade")
    if rows.dropped["error"] and not options.agreeing:
        rows.note("failed_game", agreeing=option("agreeing", True))
    return rows.finish("preference")


def reward_bench(rows: Collector) -> Imported:
    """Return one preference of a reward model or judge for each pair; that the chosen answer wins is the truth.

    The second version has scores of several answers each, of which the first are right.
    """
    name = Path(rows.source.name).name
    judge = name.split("_outputs")[0].removesuffix(".gz")
    judge = Path(judge).stem if judge == name else judge

    def results() -> Iterator[Record]:
        """One object for each result, also of a file that holds one list for each field."""
        for record in records(rows.source):
            listed = record.get("results")
            if not isinstance(listed, list):
                yield record
                continue
            by_result = {k: v for k, v in record.items() if isinstance(v, list) and len(v) == len(listed)}
            for place in range(len(listed)):
                yield {**record, **{name: values[place] for name, values in by_result.items()}}

    def score(value: object) -> float | None:
        return score(value[0]) if isinstance(value, list) and len(value) == 1 else as_number(value)

    def pair(record: Record, number: int) -> Judged:
        chosen, rejected = score(record.get("scores_chosen")), score(record.get("scores_rejected"))
        result = as_number(record.get("results"))
        if chosen is not None and rejected is not None:
            # results is 0 where both scores are equal, although neither was preferred
            result = 0.5 * (1 + (chosen > rejected) - (chosen < rejected))
        if result not in (0.0, 0.5, 1.0):
            yield "without a result"
            return
        winner = {1.0: "left", 0.0: "right", 0.5: "tie"}[result]
        cells = {"query": as_text(record.get("id")) or str(number), "left": "chosen", "right": "rejected"}
        rows.truth.append({**cells, "winner": "left"})
        yield {**cells, "winner": winner, "annotator": as_text(record.get("model")) or judge}

    def question(record: Record, number: int) -> Judged:
        values, right = record.get("scores"), as_number(record.get("num_correct"))
        scores = [score(one) for one in values] if isinstance(values, list) else []
        if not scores or None in scores or right is None:
            yield "without scores"
            return
        query, who = as_text(record.get("id")) or str(number), as_text(record.get("model")) or judge
        answers = [{"query": query, "item": f"answer {place}"} for place in range(1, len(scores) + 1)]
        rows.truth += [{**cells, "grade": int(place <= right)} for place, cells in enumerate(answers, 1)]
        yield [{**cells, "grade": one, "annotator": who} for cells, one in zip(answers, scores, strict=True)]

    if {"scores", "num_correct"} <= next(results(), {}).keys():
        rows.unit, rows.title = "question", "RewardBench 2 scores (scores, num_correct)"
        rows.take(results(), question)
        rows.roles["annotator"] = "model"
        rows.notes.append("the first num_correct answers of a question are the right ones, which is the truth")
        return rows.finish("grade")
    rows.take(results(), pair)
    return rows.finish("preference", recorded=True)


_TURN = "\n\nAssistant:"
_FIRST_RECORDS = 1000
_MODELS = (("chosen_model", "rejected_model"), ("chosen-model", "rejected-model"))


def chosen_rejected(rows: Collector) -> Imported:
    """Return one preference for each pair of a chosen and a rejected answer; who was shown left is not known."""
    first = list(islice(records(rows.source), _FIRST_RECORDS))
    named = [pair for pair in _MODELS if first and all(as_text(one.get(name)) for one in first for name in pair)]
    models = named[0] if named else None
    people = ("annotator", *FOREIGN["annotator"])
    who = next((name for name in people if any(as_text(one.get(name)) for one in first)), None)
    # where no record says what was asked and answers occur in several of them, all belong together
    texts = [{text for pair in _answer_pairs(one) for text in pair} for one in first]
    together = all(_context(one) is None for one in first) and sum(map(len, texts)) > len(set().union(*texts))

    def pairs(record: Record, number: int) -> Judged:
        listed = [(as_text(record.get(models[0])), as_text(record.get(models[1])))] if models else _answer_pairs(record)
        for winner, loser in listed:
            if winner is None or loser is None:
                yield "without two answers"
            elif winner == loser:
                yield "of a model with itself" if models else "with the same answer twice"
            else:
                cells = {"annotator": as_text(record.get(who))} if who else {}
                cells |= {} if together else {"query": _context(record) or str(number)}
                yield {"winner": winner, "loser": loser, **cells}

    rows.take(records(rows.source), pairs)
    rows.roles |= dict(zip(("winner", "loser"), models or (), strict=False)) | {"annotator": who or ""}
    if together:
        rows.notes.append("no prompt is given and answers recur, so all pairs are taken as one query")
    return rows.finish("preference")


def _answer_pairs(record: Mapping[str, Any]) -> list[tuple[str | None, str | None]]:
    """Each chosen with each rejected answer, of which there may be several in a list of texts."""
    chosen, rejected = record.get("chosen"), record.get("rejected")
    if isinstance(chosen, list) and isinstance(rejected, list):
        same_talk = len(chosen) == len(rejected) > 1 and chosen[:-1] == rejected[:-1]
        if not same_talk and all(isinstance(one, str) for one in (*chosen, *rejected)):
            return [(as_text(winner), as_text(loser)) for winner in chosen for loser in rejected] or [(None, None)]
    # the answer itself is the last message, or what stands behind the last turn of a dialogue in one text
    said = [foreign.message_text(value) for value in (chosen, rejected)]
    one, other = (text.rsplit(_TURN, 1)[-1].strip() or None if text and _TURN in text else text for text in said)
    return [(one, other)]


def _context(record: Mapping[str, Any]) -> str | None:
    """What was asked, or the id of the record; ``None`` where nothing says so."""
    filled = next((record[name] for name in foreign.CONTEXTS if record.get(name) not in (None, "", [], {})), None)
    if text := foreign.message_text(filled):
        return text
    chosen = record.get("chosen")
    several = len(_answer_pairs(record)) > 1
    if isinstance(chosen, list) and len(chosen) > 1 and not several and (text := foreign.message_text(chosen[:-1])):
        return text
    if isinstance(chosen, str) and _TURN in chosen:
        return chosen.rsplit(_TURN, 1)[0].strip() or None
    return foreign.first_text(record, "id", "prompt_id")


# how two answers that are compared look -------------------------------------------------------------------------------


_SHOWN = re.compile(
    r"(?:\[|<\|)The Start of Assistant (?P<side>[AB])'s (?:Answer|Conversation with User)(?:\]|\|>)\n*(?P<text>.*?)\n*"
    r"(?:\[|<\|)The End of Assistant (?P=side)'s (?:Answer|Conversation with User)(?:\]|\|>)",
    re.DOTALL,
)
_SPEAKER = re.compile(r"### (?:User|Assistant [AB]):\n")


def _style(rows: Collector, record: Record, sides: str, texts: Any = (None, None), prompt: Any = None) -> Cells:
    """Covariates of two answers that the record counts, and the texts where it does not count them all.

    Nothing is looked for unless covariates are asked for. ``sides`` are the ends of the fields of left and right; of a
    judge's ``prompt`` the texts are those that it shows.
    """
    if not rows.options.covariates:
        return {}
    names, counted = parse_covariates(rows.options.covariates), record.get("conv_metadata")
    counted = foreign.parse_json(counted) if isinstance(counted, str) else counted
    places = [one for one in (counted, record) if isinstance(one, Mapping)]
    cells: Cells = {}
    for name in names:
        # fields in which arenas count it for each side, as a number or by kind
        forms = [*EXPORTS["arena"].fields.get(name, ()), f"{name}_{{}}", f"{{}}_{name}"]
        for place, form in ((place, form) for place in places for form in forms):
            pair = [_total(place.get(form.format(side))) for side in sides]
            if None not in pair:
                cells |= {f"{name}_left": pair[0], f"{name}_right": pair[1]}
                break
    if len(cells) < 2 * len(names):
        left, right = texts if prompt is None else shown_answers(prompt)
        cells |= {"left_text": foreign.answer_text(left), "right_text": foreign.answer_text(right)}
    return cells


def shown_answers(prompt: object) -> tuple[str | None, str | None]:
    """Return the answers of A and B that a judge was shown, out of the prompt of FastChat or Arena-Hard.

    Examples
    --------
    >>> shown_answers("[The Start of Assistant A's Answer]\\nyes\\n[The End of Assistant A's Answer]")
    ('yes', None)
    """
    answers: dict[str, str] = {}
    for match in _SHOWN.finditer(foreign.message_text(prompt) or ""):
        # of a conversation every second part is the assistant's
        parts = _SPEAKER.split(match["text"])
        answers[match["side"]] = "\n\n".join(part.strip() for part in parts[2::2]) if len(parts) > 2 else match["text"]
    return answers.get("A"), answers.get("B")


def _total(value: object) -> float | None:
    """A count, or the sum of counts by kind, such as ordered and unordered lists."""
    if isinstance(value, Mapping):
        numbers = [number for one in value.values() if (number := as_number(one)) is not None]
        return sum(numbers) if numbers else None
    return as_number(value)


# scores --------------------------------------------------------------------------------------------------------------


_SAMPLES = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT[\d.-]+)?")


def lm_eval(rows: Collector) -> Imported:
    """Return the value of one metric for each document, as a grade of the model that the folder is named after."""
    path = Path(rows.source.name).resolve()
    model = path.parent.name if rows.source.path is not None or path.exists() else ""
    task = _SAMPLES.fullmatch(path.name.removesuffix(".gz").rsplit(".jsonl", 1)[0].rsplit(".json", 1)[0])
    if not model and "item" not in rows.options.columns:
        rows.refuse("no_folder")
    filters: dict[str, None] = {}
    documents: list[tuple[Record | None, str, Record]] = []
    for number, record in enumerate(records(rows.source, shape=rows.export.shape), 1):
        if not rows.is_wanted(record):
            continue
        filters[as_text(record.get("filter")) or "none"] = None
        # older versions do not list their metrics: all numbers of a sample may be such
        named = record.get("metrics")
        if named is None:
            named = [name for name, value in record.items() if name != "doc_id" and isinstance(value, int | float)]
        doc, values = as_text(record.get("doc_id")) or str(number), {str(name): record.get(str(name)) for name in named}
        documents.append((rows.hold(record), f"{task[1]}: {doc}" if task else doc, values))
    rows.n_read = len(documents)
    if len(filters) > 1:
        one = option("where", {"filter": next(iter(filters))})
        raise JudgmentError(f"each document was scored with {first_few(map(repr, filters))}; choose one with {one}")
    metric = rows.choose_question((name for *_, values in documents for name in values), what="the metrics")
    rows.settle_direction(metric, is_small_good(metric))
    for kept, query, values in documents:
        value, grade = values.get(metric), as_score(values.get(metric))
        reason = None if grade is not None else "without a value" if value is None else "without a number"
        rows.add_unless(reason, kept, query=query, item=model, grade=grade)
    rows.roles["grade"] = metric
    return rows.finish("grade")


_LAST_NUMBER = re.compile(r"[_\s.\-]?\d+$")
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class _Score(NamedTuple):
    """One scorer's value of a part of a sample."""

    record: Record
    query: str
    scorer: str
    part: str
    value: Any


def inspect_log(rows: Collector) -> Imported:
    """Return each scorer's value for each sample of an Inspect log as a grade of the model."""
    log = _archived_log(rows.source) if rows.source.data[:4] == ZIP else document(rows.source)
    check_shape(log, rows.export.shape, "the file")
    if log.get("samples") is None:
        raise JudgmentError("the log has no samples; write it with them (log_samples), or dump the whole log")
    model, task = as_text(foreign.at_path(log, "eval.model")), as_text(foreign.at_path(log, "eval.task"))
    values: list[_Score] = []
    for number, sample in enumerate(log["samples"], 1):
        name = as_text(sample.get("id")) or str(number)
        query, scores = f"{task}: {name}" if task else name, list[_Score]()
        for scorer, score in (sample.get("scores") or {"scorer": sample.get("score") or None}).items():
            value = score.get("value") if isinstance(score, Mapping) else score
            held = value if isinstance(value, Mapping) else {} if value is None else {"value": value}
            scores += [_Score(sample, query, str(scorer), str(part), one) for part, one in held.items()]
        wanted = [score for score in scores if rows.is_wanted({"scorer": score.scorer}, sample)]
        if scores and not wanted:
            continue
        rows.n_read += 1
        if sample.get("error") or not scores:
            rows.drop("error" if sample.get("error") else "without a score")
            continue
        values += wanted
    parts = dict.fromkeys(score.part for score in values)
    part = rows.choose_question(parts, what="the scores") if len(parts) > 1 or rows.options.answer else None
    scorers = ", ".join(dict.fromkeys(score.scorer for score in values))
    values = [score for score in values if part in (None, score.part)]
    _expect_one_scale(values, pooled=rows.options.columns.get("annotator") == "scorer")
    for record, query, scorer, _, value in values:
        # C, P, I and N as Inspect counts them, numbers as they are
        grade = _letter(value)
        grade = as_score(value) if grade is None else grade
        word = as_text(value) if grade is None else grade
        reason, record = "without a score" if word is None else None, {"scorer": scorer, **record}
        rows.add_unless(reason, record, grade=word, query=query, item=model, annotator=scorer)
    if as_text(log.get("status")) != "success":
        rows.notes.append(f"the log's status is {as_text(log.get('status'))!r}, so samples may be missing")
    return rows.finish("grade", metric=scorers if part is None else part)


def _archived_log(source: Source) -> Record:
    """The log in an .eval archive: how it began or ended, and the summaries of its samples, else these themselves."""

    def read_documents(pattern: str) -> list[Any]:
        return [document(part) for part in text_members(source, pattern=pattern)]

    log: Record = (read_documents("header.json") or read_documents("_journal/start.json") or [{}])[0]
    summaries = read_documents("summaries.json") or read_documents("_journal/summaries/*.json")
    listed = [one for part in summaries for one in (part if isinstance(part, list) else [part])]
    samples = listed or read_documents("samples/*.json")
    # a sample that was tried again is in the archive as it was at last
    last = {(str(foreign.at_path(one, "id")), str(foreign.at_path(one, "epoch"))): one for one in samples}
    return {"status": "started", **log, "samples": list(last.values()) or None}


def _expect_one_scale(scores: list[_Score], *, pooled: bool) -> None:
    """Ask which scorer is meant, unless they differ in a last number only; never pool what is on several scales."""
    by_scorer: dict[str, list[Any]] = {}
    for score in scores:
        by_scorer.setdefault(score.scorer, []).append(score.value)
    pooled |= len({_LAST_NUMBER.sub("", scorer) for scorer in by_scorer}) == 1
    ranges: list[tuple[bool, float, float]] = []
    for values in by_scorer.values():
        letters = all(isinstance(one, bool) or _letter(one) is not None for one in values)
        numbers = [0.0, 1.0] if letters else [number for value in values if (number := as_number(value)) is not None]
        ranges.append((letters, min(numbers, default=0.0), max(numbers, default=0.0)))
    words, lows, highs = zip(*ranges, strict=True) if ranges else ((), (0.0,), (0.0,))
    widest = max(highs) - min(lows)
    alike = len(set(words)) == 1 and all(2 * (high - low) >= widest for _, low, high in ranges)
    if len(by_scorer) < 2 or (pooled and alike):
        return
    named, one = first_few(map(repr, by_scorer), shown=12), option("where", {"scorer": next(iter(by_scorer))})
    together = f", or take all as annotators of the same thing with {option('columns', {'annotator': 'scorer'})}"
    scales = "" if alike else ", on different scales"
    raise JudgmentError(f"the samples have scores of {named}{scales}; choose one with {one}{together if alike else ''}")


def _letter(value: object) -> float | None:
    """The number that Inspect counts a letter or word as."""
    word = value.strip() if isinstance(value, str) else ""
    return _LETTERS.get(word, _LETTERS.get(word.lower()))


_NOT_SCORES = ("threshold", "tokens", "num_tokens", "latency", "duration")


def openai_evals(rows: Collector) -> Imported:
    """Return whether each sample was answered rightly, or the metric of each, as a grade of the model."""
    model: str | None = None
    events: dict[str, list[Record]] = {}
    for record in records(rows.source, shape=rows.export.shape):
        if spec := record.get("spec"):
            fns = spec.get("completion_fns") or spec.get("model_name") or spec.get("model")
            model = ",".join(map(str, fns)) if isinstance(fns, list) else as_text(fns)
        if (kind := as_text(record.get("type"))) is not None:
            events.setdefault(kind, []).extend([record] if kind in ("match", "metrics") else [])
    matched = "match" in events and rows.options.answer in (None, "match", "correct")
    kind = "match" if matched else "metrics"
    rows.unit = f"{kind} event"
    if kind not in events:
        rows.refuse("no_scores", other=first_few(repr(name) for name in events if name != "match"))
    metric = "correct"
    if not matched:
        measured = [item for record in events[kind] for item in (record.get("data") or {}).items()]
        names = [name for name, value in measured if as_score(value) is not None and name not in _NOT_SCORES]
        metric = rows.choose_question(names, what="the metrics")
    rows.settle_direction(metric, False if matched else is_small_good(metric))

    def event(record: Record, number: int) -> Judged:
        grade = as_score(foreign.at_path(record, f"data.{metric}"))
        if grade is None:
            yield "without an answer"
        else:
            yield {"item": model, "grade": grade, **rows.cells_of(record)}

    rows.take(events[kind], event)
    rows.roles["grade"] = f"data.{metric}"
    return rows.finish("grade")


_PROMPTFOO_ERROR = 2.0


def promptfoo(rows: Collector) -> Imported:
    """Return the score of each provider and prompt on each test."""
    if table_format(rows.source) == "csv":
        rows.refuse("csv")

    def results() -> Iterator[Record]:
        """The results that are wanted, of a whole evaluation or one on each line."""
        for value in json_values(rows.source):
            inner = value.get("results") if isinstance(value, Mapping) else None
            listed = inner.get("results") if isinstance(inner, Mapping) else inner
            for number, result in enumerate(listed if isinstance(listed, list) else [value], 1):
                check_shape(result, rows.export.shape, f"result {number}")
                if rows.is_wanted(result):
                    yield result

    tests: dict[str, int] = {}
    outputs: list[tuple[Any, str, str, Any, dict[str, Any]]] = []
    for result in results():
        rows.n_read += 1
        failed = as_number(result.get("failureReason")) == _PROMPTFOO_ERROR
        if failed or (result.get("error") and result.get("score") is None):
            rows.drop("error")
            continue
        parts: dict[str, Any] = {}
        for one in foreign.at_path(result, "gradingResult.componentResults") or ():
            if name := foreign.first_text(one.get("assertion") or {}, "metric", "type"):
                parts.setdefault(name, one.get("score"))
        parts |= result.get("namedScores") or {}
        test = as_text(result.get("testIdx"))
        if test is None:
            # older versions number nothing: the variables say which test it is
            key = json.dumps(result.get("vars"), sort_keys=True, default=str)
            test = str(tests.setdefault(key, len(tests)))
        provider, prompt = result.get("provider"), result.get("prompt")
        if isinstance(provider, Mapping):
            provider = foreign.first_text(provider, "label", "id")
        if isinstance(prompt, Mapping):
            prompt = foreign.first_text(prompt, "label", "display", "raw")
        item = " | ".join(filter(None, (as_text(provider), as_text(prompt) or as_text(result.get("promptIdx")))))
        outputs.append((rows.hold(result), test, item or "unnamed", result.get("score"), parts))
    names = dict.fromkeys(name for *_, parts in outputs for name in parts)
    part = rows.choose_question(names, what="assertions of type") if rows.options.answer else None
    for kept, test, item, score, parts in outputs:
        grade = as_number(parts.get(part) if part else score)
        rows.add_unless("without a score" if grade is None else None, kept, query=test, item=item, grade=grade)
    if not names:
        rows.notes.append("the tests have no assertions, so every score is 1; add some, such as llm-rubric")
    rows.roles["grade"] = part or "score"
    return rows.finish("grade")


# platforms: where each tool writes what is in ``exports.toml``, and one reader for all --------------------------------


def is_small_good(metric: str) -> bool | None:
    """Return whether small values of a well-known metric are good; ``None`` where it is not known.

    Examples
    --------
    >>> is_small_good("acc_norm,none"), is_small_good("perplexity"), is_small_good("edits") is None
    (False, True, True)
    """
    large, small = ("|".join(EXPORTS["lm-eval"].fields[word]) for word in ("large_is_good", "small_is_good"))
    if re.fullmatch(large, metric.lower().split(",")[0]):
        return False
    return True if re.fullmatch(small, metric.lower()) else None


def as_score(value: object) -> float | None:
    """Return a number, or right and wrong as 1 and 0."""
    return float(value) if isinstance(value, bool) else as_number(value)


def platform_scores(rows: Collector) -> Imported:
    """Return the values of one metric as grades of traces, or of what an experiment tried on each example."""
    own = rows.export.scores
    fields: Fields = defaultdict(tuple, {word: tuple(paths.split("|")) for word, paths in own.items()})
    given: dict[str, list[Record]] = {}
    bare, nested, aside = 0, False, re.compile(own.get("aside", "(?!)"))
    for record in records(rows.source):
        for one in _unfold(record, fields):
            scores = list(_scores_of(one, fields))
            bare += not scores
            for name, held in scores:
                score, nested = ({**one, **held, "record": one}, True) if held is not one else (one, nested)
                if not aside.fullmatch(name) and rows.is_wanted(score):
                    given.setdefault(name, []).append(score)
    used = {name: scores for name, scores in given.items() if any(_reason(rows, score) is None for score in scores)}
    given = used or given
    first = next((scores[0] for scores in given.values()), {})
    field = next((name for name in fields["metric"] if name in first and not nested), None)
    metric = "verdict" if fields["pooled"] else rows.choose_question(given, field=field)
    chosen = [score for name in given if fields["pooled"] or name == metric for score in given[name]]
    if fields["settle"]:
        passes = _small_passes(chosen) if fields["settle"] == ("threshold",) else is_small_good(metric)
        rows.settle_direction(metric, passes)
    # an experiment is ranked where each score is of an example that others may have too, else the trace itself
    tried = bool(fields["model"]) and all(_text_at(score, fields["query"]) for score in chosen)
    item = fields["model"] if tried else fields["item"]
    file = Path(rows.source.name).resolve()
    folder = re.fullmatch(own.get("folder", "(?!)"), file.parent.name)
    name, task = (folder["model"], f"{folder['task']}: ") if folder else (Path(file.name.removesuffix(".gz")).stem, "")
    sources, parts, who = Counter[str](), Counter[str](), False
    rows.drop("without a score", bare)
    rows.n_read += bare + len(chosen)
    for score in chosen:
        reason, grade = _reason(rows, score), _grade_of(score, fields)
        if reason is not None or grade is None:
            rows.drop(reason or ("error" if score.get("error") else "without a value"))
            continue
        sources[_text_at(score, fields["source"]) or "no source"] += 1
        parts[_text_at(score, fields["finer"] + fields["coarser"]) or ""] += 1
        cells: Record = {"annotator": _text_at(score, fields["annotator"])}
        who |= cells["annotator"] is not None
        if tried or (fields["query"] and not fields["model"]):
            cells["query"] = task + (_text_at(score, fields["query"]) or "")
        cells["item"] = _text_at(score, item) or (name if tried else None)
        rows.add(score, grade=grade, time=_text_at(score, fields["time"]), **cells)
    for word in ("item", "query", "time", "annotator"):
        names = item if word == "item" else fields[word]
        known = next((one for one in names if _text_at(first, (one,))), None)
        rows.roles.setdefault(word, known or ("name of the folder" if folder else "name of the file"))
    value = next((path for path in fields["value"] if _has(first, path)), fields["value"][0])
    called = metric if nested else " or ".join((value, *fields["words"][:1]))
    rows.roles["grade"] = rows.roles["grade"].format(metric) if "grade" in rows.roles else called
    rows.survey = bool(fields["ordered"])
    if not who and fields["source"] and "annotator" not in rows.options.columns:
        rows.notes.append(f"the export does not say who scored: {fields['source'][0]} is only the kind of score")
    if len(sources) > 1:
        each = first_few([f"{n:,} {one}" for one, n in sources.most_common()])
        one_source = option("where", {fields["source"][0]: sources.most_common(1)[0][0]})
        rows.notes.append(f"scores of several sources are read together ({each}); for one of them: {one_source}")
    parts.pop("", None)
    if fields["finer"] and parts and "item" not in rows.options.columns:
        part = option("columns", {"item": fields["finer"][0]})
        rows.notes.append(f"{counted(parts.total(), 'score')} of observations count for their trace; else: {part}")
    if fields["coarser"] and len(parts) > 1 and not tried and "item" not in rows.options.columns:
        ways = f"{option('columns', {'item': fields['coarser'][0], 'query': 'run_id'})} {call('across_queries')}"
        rows.notes.append(f"the runs are of {counted(len(parts), 'experiment')} (session_id); to rank these: {ways}")
    return rows.finish("grade", metric=metric)


def _small_passes(metrics: list[Record]) -> bool | None:
    """Whether small scores pass, told from those above or below their threshold; ``None`` where none tells."""
    large = small = False
    for one in metrics:
        score, threshold, success = as_number(one.get("score")), as_number(one.get("threshold")), one.get("success")
        if score is None or threshold is None or not isinstance(success, bool) or score == threshold:
            continue
        large |= success == (score > threshold)
        small |= success == (score < threshold)
    return None if large == small else small


def _unfold(record: Record, fields: Fields, depth: int = 0) -> Iterator[Record]:
    """The records of a page, also in pages within, with the fields around them."""
    for path in fields["within"]:
        if isinstance(inner := foreign.at_path(record, path), dict):
            record = {**record, **inner}
    pages: list[tuple[int, list[Record]]] = []
    for place, path in enumerate(fields["records"][depth:], depth + 1):
        listed = foreign.at_path(record, path)
        if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
            pages.append((place, listed))
    around = {name: value for name, value in record.items() if not any(value is listed for _, listed in pages)}
    for place, listed in pages:
        for one in listed:
            yield from _unfold({**around, **one}, fields, place)
    if not pages:
        yield record


def _scores_of(record: Record, fields: Fields) -> Iterator[tuple[str, Record]]:
    """Metric and fields of each score of a record."""
    metric, value = fields["metric"] or ("metric",), fields["value"]
    name = _text_at(record, metric)
    if name is not None and any(_has(record, path) for path in value + fields["words"]):
        yield name, record
        return
    for path in fields["scores"]:
        if "*" in path:
            besides = {one for other in fields["besides"] for one in record if fnmatchcase(one, other)}
            head, _, tail = path.partition("*")
            for name, cell in record.items():
                if name in besides or not fnmatchcase(name, path) or isinstance(cell, list | dict):
                    continue
                # where nothing but the cells tells a metric, it is a number
                if as_text(cell) is not None and (path != "*" or as_score(cell) is not None):
                    yield name[len(head) : len(name) - len(tail)], {metric[0]: name, value[0]: cell}
            continue
        held = foreign.at_path(record, path)
        held = foreign.parse_json(held) if isinstance(held, str) else held
        for score in held if isinstance(held, list) else ():
            if isinstance(score, dict) and (name := _text_at(score, metric) if fields["metric"] else value[0]):
                # the score of what several people judged is their mean
                shares = [foreign.at_path(score, path) for path in fields["authors"]]
                entries = [entry for by in shares if isinstance(by, dict) for entry in by.items()]
                own = [{**one, fields["annotator"][0]: who} for who, one in entries if isinstance(one, dict)]
                yield from ((name, {**score, **one}) for one in own or [{}])
        for key, score in held.items() if isinstance(held, Mapping) else ():
            if not isinstance(score, dict):
                yield key, {metric[0]: key, value[0]: score}
            elif any(foreign.at_path(score, one) is not None for one in value):
                yield key, {**score, metric[0]: key}
            else:
                # a scorer with values of several kinds
                kinds = {f"{key}.{part}": one for part, one in score.items() if as_score(one) is not None}
                yield from ((name, {metric[0]: name, value[0]: one}) for name, one in kinds.items())


def _has(record: Record, path: str) -> bool:
    """Whether a record has a field, be it blank, or something at a path."""
    return path in record or foreign.at_path(record, path) is not None


def _reason(rows: Collector, score: Record) -> str | None:
    """Why a score is left out, by the fields that say so."""
    for test, reason in rows.export.leaves_out.items():
        path, _, wanted = test.partition("=")
        held = as_text(_value_at(score, path))
        if held is not None and (not wanted or held.lower() == wanted):
            return reason
    return None


def _grade_of(score: Record, fields: Fields) -> float | str | None:
    """A number, or the words where there is none or where they are what was chosen."""
    value = next((one for path in fields["value"] if (one := _value_at(score, path)) is not None), None)
    words = _text_at(score, fields["words"])
    if words is not None and (as_text(_value_at(score, "data_type")) or "").upper() == "CATEGORICAL":
        return words
    number = as_score(value)
    return (words or as_text(value)) if number is None and not isinstance(value, list | dict) else number


def _text_at(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first field or path that holds something."""
    return next((text for name in names if name and (text := as_text(_value_at(record, name))) is not None), None)


def _value_at(record: Mapping[str, Any], name: str) -> Any:
    """A field, which the API of Langfuse spells in camel case, a path, or the first field like a pattern."""
    if "*" in name:
        return next((value for key, value in record.items() if fnmatchcase(key, name)), None)
    if name in record or "." in name:
        return foreign.at_path(record, name)
    head, *rest = name.split("_")
    return record.get(head + "".join(word.capitalize() for word in rest))
