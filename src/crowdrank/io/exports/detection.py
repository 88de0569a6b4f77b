"""Which tool wrote a file, by the fields that only its exports have; a few thousand bytes are looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...errors import JudgmentError
from ...wording import either, option
from ..letor import looks_like_letor
from ..sources import Source
from ..tables import table_format
from ..trec import looks_like_qrels, looks_like_run
from .layouts import layout_of, order_column, place_columns, ranked_columns
from .streaming import PACKED, Beginning, look


@dataclass(frozen=True)
class Export:
    """A tool's files: what they are, which reader takes them, and what tells them."""

    title: str
    unit: str
    """What is counted: annotations, games, rows."""
    reader: str
    """Module and function, imported when a file is read."""
    has: tuple[str, ...] = ()
    """Fields, parted by blanks, of which a record or a header has all; any of several such sets will do."""
    fits: Callable[[Beginning], bool] | None = None
    """What else tells it."""

    def is_told_by(self, start: Beginning) -> bool:
        """Whether the beginning of a file is of this tool."""
        return any(start.has(*fields.split()) for fields in self.has) or (self.fits is not None and self.fits(start))


def detect(source: Source) -> str | None:
    """Return the name of the export that a file is; ``None`` where it is a table like any other."""
    text = source.data[:4] not in PACKED and table_format(source) == "csv"
    if text and (looks_like_run(source) or looks_like_qrels(source)):
        return "trec"
    if text and looks_like_letor(source):
        return "letor"
    beginning = look(source)
    fits = [name for name, export in EXPORTS.items() if export.is_told_by(beginning)]
    if len(fits) > 1:
        raise JudgmentError(
            f"{source.name} has what exports of {either(fits, 'and')} have; say which it is with "
            f"{option('source', fits[0])}, or {option('source', 'table')} for neither"
        )
    return fits[0] if fits else None


def _is_label_studio(start: Beginning) -> bool:
    annotated = [*start.first("annotations"), *start.first("completions")]
    stored = any(isinstance(one, Mapping) and "from_name" in one for one in start.first("result")) and start.has("task")
    # tasks that nobody has annotated yet, as a file may begin with
    bare = any(
        isinstance(one.get("data"), Mapping) and one.get("annotations", one.get("completions")) == [] and "id" in one
        for one in start.objects
    )
    return stored or bare or any(isinstance(one, Mapping) and "result" in one for one in annotated)


def _is_argilla(start: Beginning) -> bool:
    names = [*start.header, *(name for one in start.objects for name in one)]
    values = [value for one in start.objects for value in one.values()]
    entries = [value[0] for value in values if isinstance(value, list) and value]
    entries += [value for value in values if isinstance(value, Mapping)]
    return any(name.endswith(".responses.users") for name in names) or any(
        isinstance(one, Mapping) and {"user_id", "value", "status"} <= one.keys() for one in entries
    )


def _is_doccano(start: Beginning) -> bool:
    if start.has("_input_hash") or start.has("prompt"):
        return False
    labelled = any(
        isinstance(one.get(key), list) and all(not isinstance(label, Mapping) for label in one[key])
        for one in start.objects
        for key in ("label", "cats", "labels")
        if ("text" in one or "filename" in one) and (key != "labels" or "annotation_approver" in one or "meta" in one)
    )
    spans = start.has("text", "entities", "relations")
    old = any(isinstance(one, Mapping) and {"label", "user"} <= one.keys() for one in start.first("annotations"))
    return labelled or spans or (old and start.has("text")) or {"text", "label", "Comments"} <= set(start.header)


def _is_arena(start: Beginning) -> bool:
    answers = start.has("conversation_a") or start.has("conv_metadata")
    return answers and start.has("model_a", "model_b", "winner")


def _is_chosen_rejected(start: Beginning) -> bool:
    if not start.has("chosen", "rejected") or start.has("scores_chosen", "results"):
        return False
    asked = ("chosen_model", "prompt", "question", "instruction", "score_chosen", "messages")
    return any(start.has(name) for name in asked) or any(
        isinstance(value, list) or "\n\nAssistant:" in str(value) for value in start.values("chosen")
    )


def _is_openai_evals(start: Beginning) -> bool:
    keys = ("completion_fns", "eval_name", "base_eval")
    return any(isinstance(value, Mapping) and any(key in value for key in keys) for value in start.values("spec"))


def _is_promptfoo(start: Beginning) -> bool:
    nested = [value for value in start.values("results") if isinstance(value, Mapping)]
    listed = [one for one in start.first("results") if isinstance(one, Mapping)]
    return (
        any("results" in value or {"version", "prompts"} <= value.keys() for value in nested)
        or any({"provider", "prompt", "vars", "score"} <= one.keys() for one in listed)
        or any(re.match(r"\[[\w.-]+:[^\]]+\] ", name) for name in start.header)
    )


def _is_deepeval(start: Beginning) -> bool:
    cases = [*start.first("testCases"), *start.first("test_cases"), *start.first("conversationalTestCases")]
    for run in start.values("testRunData"):
        if isinstance(run, Mapping):
            cases += [run[key][0] for key in ("testCases", "conversationalTestCases") if run.get(key)]
    keys = ("metricsData", "metrics_data", "metricsMetadata")
    return any(isinstance(case, Mapping) and any(key in case for key in keys) for case in cases)


def _scores_with(*keys: str) -> Callable[[Beginning], bool]:
    """Whether records, or those of a page of an API, have all fields of one of these sets."""
    sets = [set(fields.split()) for fields in keys]
    return lambda start: any(
        start.has(*fields) or any(isinstance(one, Mapping) and fields <= one.keys() for one in start.first("data"))
        for fields in sets
    )


def _is_rre(start: Beginning) -> bool:
    rated = any("relevant_documents" in text and "placeholders" in text for text in map(str, start.objects))
    holds = ("queries", "query_groups", "topics")
    return rated and any(isinstance(one.get(key), list) for one in start.objects for key in holds)


def _is_surveymonkey(start: Beginning) -> bool:
    keys = [re.sub(r"[^a-z]", "", name.lower()) for name in start.header]
    ids = {"respondentid", "collectorid"} <= set(keys)
    return ids and bool(start.rows) and not start.rows[0][keys.index("respondentid")]


def _is_limesurvey(start: Beginning) -> bool:
    names = {name.lower() for name in start.names}
    return {"id", "submitdate", "lastpage"} <= names or {"response id", "date submitted", "last page"} <= names


def _is_labelbox(start: Beginning) -> bool:
    rows = any(isinstance(one, Mapping) and "id" in one for one in start.values("data_row"))
    return (rows and start.has("data_row", "projects")) or start.has("DataRow ID", "Label", "Created By")


def _is_ballots(start: Beginning) -> bool:
    rows = start.rows or [[str(one.get(name, "")) for name in start.names] for one in start.objects]
    return bool(place_columns(start.names)) or order_column(start.names, rows) is not None


def _is_google_forms(start: Beginning) -> bool:
    grids = sum(bool(re.search(r"\[.+\]$", name)) for name in start.header)
    return grids > 1 and bool(start.rows) and bool(re.search(r"\d:\d\d", start.rows[0][0]))


def _header_begins(*starts: str) -> Callable[[Beginning], bool]:
    """Whether each of these begins the name of a column."""
    return lambda seen: all(any(name.startswith(start) for name in seen.header) for start in starts)


EXPORTS = {
    "label-studio": Export(
        "a Label Studio export",
        "annotation",
        "label_studio.read",
        has=("annotation_id annotator lead_time created_at updated_at",),
        fits=_is_label_studio,
    ),
    "argilla": Export("an Argilla export", "response", "argilla.read", has=("fields responses",), fits=_is_argilla),
    "doccano": Export("a doccano export", "text", "labels.doccano", fits=_is_doccano),
    "prodigy": Export(
        "a Prodigy data set (_input_hash, _task_hash, answer)",
        "answer",
        "labels.prodigy",
        has=("_input_hash _task_hash answer",),
    ),
    "mturk": Export(
        "Mechanical Turk batch results (HITId, WorkerId, Answer.*)",
        "assignment",
        "crowd_tables.mturk",
        fits=lambda start: (
            {"HITId", "WorkerId", "AssignmentId"} <= set(start.header) and _header_begins("Answer.")(start)
        ),
    ),
    "toloka": Export(
        "Toloka assignments (INPUT:*, OUTPUT:*)",
        "row",
        "crowd_tables.toloka",
        has=("tasks solutions pool_id",),
        fits=_header_begins("INPUT:", "OUTPUT:"),
    ),
    "appen": Export(
        "an Appen full report (_unit_id, _worker_id)",
        "row",
        "crowd_tables.appen",
        has=("_unit_id _worker_id", "_unit_id _trusted_judgments"),
    ),
    "qualtrics": Export(
        "Qualtrics survey responses (three header rows)",
        "response",
        "surveys.qualtrics",
        fits=lambda start: any('"ImportId"' in cell for row in start.rows[:3] for cell in row),
    ),
    "google-forms": Export(
        "Google Forms responses (questions with [rows])", "response", "surveys.google_forms", fits=_is_google_forms
    ),
    "surveymonkey": Export(
        "SurveyMonkey responses (Respondent ID, Collector ID and two header rows)",
        "response",
        "surveys.surveymonkey",
        fits=_is_surveymonkey,
    ),
    "limesurvey": Export(
        "LimeSurvey responses (id, submitdate, lastpage)", "response", "surveys.limesurvey", fits=_is_limesurvey
    ),
    "labelbox": Export("Labelbox export (data_row, projects.labels)", "label", "labels.labelbox", fits=_is_labelbox),
    "best-worst": Export(
        "best-worst answers (several items in a row, and which is best and worst)",
        "set",
        "surveys.best_worst",
        fits=lambda start: layout_of(start.names) is not None,
    ),
    "ballots": Export(
        "ballots (a column for each place, or an order such as x>y=z)", "ballot", "surveys.ballots", fits=_is_ballots
    ),
    "ranked-sets": Export(
        "sets with a rank for each item (system1Id, system1rank, ...)",
        "set",
        "surveys.ranked_sets",
        fits=lambda start: bool(ranked_columns(start.names)),
    ),
    "jspsych": Export(
        "jsPsych trials (trial_type, trial_index, time_elapsed)",
        "trial",
        "jspsych.read",
        has=("trial_type trial_index time_elapsed",),
    ),
    "prolific": Export(
        "Prolific's list of submissions",
        "submission",
        "crowd_tables.prolific",
        has=("session_id participant_id status time_taken",),
        fits=lambda start: start.has("Submission id", "Participant id"),
    ),
    "mt-bench": Export(
        "MT-Bench pairs (g1_winner, g2_winner)",
        "game",
        "evaluations.mt_bench",
        has=("model_1 model_2 g1_winner g2_winner",),
        fits=lambda start: start.has("question_id", "model", "judge", "score", "turn") and not start.has("games"),
    ),
    "arena": Export(
        "arena battles (model_a, model_b)",
        "battle",
        "evaluations.arena",
        has=("model_a model_b winner_model_a winner_model_b winner_tie",),
        fits=_is_arena,
    ),
    "alpaca-eval": Export(
        "AlpacaEval annotations (generator_1, generator_2, preference)",
        "annotation",
        "evaluations.alpaca_eval",
        has=("generator_1 generator_2 preference",),
    ),
    "arena-hard": Export(
        "Arena-Hard judgments (games, judge, model)", "game", "evaluations.arena_hard", has=("games judge model",)
    ),
    "reward-bench": Export(
        "RewardBench outputs (scores_chosen, scores_rejected, results)",
        "pair",
        "evaluations.reward_bench",
        has=("scores_chosen scores_rejected results", "scores num_correct results"),
    ),
    "chosen-rejected": Export(
        "chosen and rejected answers", "pair", "evaluations.chosen_rejected", fits=_is_chosen_rejected
    ),
    "lm-eval": Export(
        "lm-evaluation-harness samples (doc_id, filtered_resps, doc_hash)",
        "sample",
        "evaluations.lm_eval",
        has=("doc_id filtered_resps doc_hash",),
    ),
    "inspect": Export(
        "an Inspect log (eval.model, samples[].scores)",
        "sample",
        "evaluations.inspect_log",
        fits=lambda start: any(
            isinstance(value, Mapping) and {"model", "task"} <= value.keys() for value in start.values("eval")
        ),
    ),
    "openai-evals": Export(
        "an OpenAI Evals log (spec, match and metrics events)",
        "event",
        "evaluations.openai_evals",
        fits=_is_openai_evals,
    ),
    "promptfoo": Export(
        "promptfoo results (testIdx, promptIdx, score)",
        "result",
        "evaluations.promptfoo",
        has=("testIdx promptIdx score",),
        fits=_is_promptfoo,
    ),
    "deepeval": Export(
        "a DeepEval test run (testCases[].metricsData)", "score", "evaluations.deepeval", fits=_is_deepeval
    ),
    "langfuse": Export(
        "Langfuse scores (trace_id, data_type, string_value)",
        "score",
        "evaluations.feedback",
        fits=_scores_with("name trace_id data_type source", "name traceId dataType source"),
    ),
    "langsmith": Export(
        "LangSmith feedback (run_id, key, score)",
        "score",
        "evaluations.feedback",
        fits=_scores_with(
            "run_id key score feedback_source",
            "run_id key score feedback_source.type",
            "run_id key score session_id",
            "run_id key score feedback_config",
        ),
    ),
    "phoenix": Export(
        "Phoenix annotations (annotation_name, annotator_kind, result.score)",
        "score",
        "evaluations.feedback",
        fits=_scores_with("annotator_kind result", "annotator_kind result.score"),
    ),
    "quepid": Export(
        "Quepid ratings (query, docid, rating; as Quepid 7.15 writes them)",
        "rating",
        "search_files.quepid",
        fits=lambda start: tuple(name.strip().lower() for name in start.header) == ("query", "docid", "rating"),
    ),
    "rre": Export(
        "RRE ratings (queries with placeholders, relevant_documents with gains; as of RRE 1.2)",
        "rating",
        "search_files.rre",
        fits=_is_rre,
    ),
    "trec": Export("TREC qrels (query, iteration, item, grade)", "line", "search_files.trec"),
    "letor": Export("LETOR labels (label, qid, numbered features)", "line", "search_files.letor"),
}
"""Name of each export -> how its files are told and read."""
