"""Files in and out: tables, LETOR, TREC and PrefLib; the JSON form of results."""

from .features import read_features
from .judgments import read_judgments
from .letor import read_letor, write_letor
from .notices import listen, say
from .output import write_table
from .preflib import read_preflib
from .rankers import load_ranker
from .results import from_json, read_consensus, to_json, write_consensus
from .tables import read_table
from .trec import read_qrels, read_run, write_qrels, write_run
from .truth import read_truth

__all__ = [
    "from_json",
    "listen",
    "load_ranker",
    "read_consensus",
    "read_features",
    "read_judgments",
    "read_letor",
    "read_preflib",
    "read_qrels",
    "read_run",
    "read_table",
    "read_truth",
    "say",
    "to_json",
    "write_consensus",
    "write_letor",
    "write_qrels",
    "write_run",
    "write_table",
]
