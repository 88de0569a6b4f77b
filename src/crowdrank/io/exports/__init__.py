"""Exports of other tools: which tool wrote a file, and its judgments; one file per tool, loaded when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...data.files import PathLike
from ...errors import JudgmentError
from ...wording import one_of
from ..read_options import ReadOptions
from ..sources import Source, blaming, open_source
from .detection import PACKED
from .detection import detect as _detect

if TYPE_CHECKING:
    from .imported import Imported

IMPORTERS = {
    "label-studio": "label_studio",
    "argilla": "argilla",
    "doccano": "doccano",
    "prodigy": "prodigy",
    "mturk": "mturk",
    "toloka": "toloka",
    "appen": "appen",
    "qualtrics": "qualtrics",
    "google-forms": "google_forms",
    "surveymonkey": "surveymonkey",
    "limesurvey": "limesurvey",
    "labelbox": "labelbox",
    "best-worst": "best_worst",
    "ballots": "ballots",
    "ranked-sets": "ranked_sets",
    "jspsych": "jspsych",
    "prolific": "prolific",
    "mt-bench": "mt_bench",
    "arena": "arena",
    "alpaca-eval": "alpaca_eval",
    "arena-hard": "arena_hard",
    "reward-bench": "reward_bench",
    "chosen-rejected": "chosen_rejected",
    "lm-eval": "lm_eval",
    "inspect": "inspect_ai",
    "openai-evals": "openai_evals",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "langfuse": "feedback",
    "langsmith": "feedback",
    "phoenix": "feedback",
    "quepid": "quepid",
    "rre": "rre",
    "trec": "trec_files",
    "letor": "letor_labels",
}
"""Name of each importer -> its file here."""

RATED = ("quepid", "rre", "letor")
"""Tools whose files are settled ratings, so that they serve as a truth too."""

__all__ = ["IMPORTERS", "RATED", "Imported", "detect", "read"]


def detect(where: PathLike | Source) -> str | None:
    """Return the importer whose signature a file has; ``None`` where it is a table like any other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"model_1": "x", "model_2": "y", "g1_winner": "tie", "g2_winner": "tie"}')
    >>> detect(path)
    'mt-bench'
    """
    return _detect(where if isinstance(where, Source) else open_source(where, archives=True))


def read(where: PathLike | Source, name: str, options: ReadOptions | None = None) -> Imported:
    """Return what an importer makes of a file.

    Parameters
    ----------
    where
        The file, or one that was opened.
    name
        Name of the importer, one of :data:`IMPORTERS`.
    options
        Which question, which rows, which statuses; ``None`` leaves all of that to the importer.
    """
    module = import_module(f".{IMPORTERS[one_of(name, IMPORTERS, 'source', of_verb=True)]}", __name__)
    source = where if isinstance(where, Source) else open_source(where, archives=True)
    if source.data[:4] in PACKED:
        from .archives import is_sheet, sheet_as_text

        source = (
            source if not is_sheet(source) else sheet_as_text(source, options.sheet if options is not None else None)
        )
    with blaming(source.name):
        try:
            imported: Imported = module.read(source, options or ReadOptions())
        except UnicodeEncodeError:
            raise JudgmentError("the file holds half of a character; correct its \\u escapes") from None
        except RecursionError:
            raise JudgmentError("the file is nested too deeply; export it again") from None
    return imported
