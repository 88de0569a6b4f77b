"""Types of what is had from here."""

from .features import read_features as read_features
from .inspection import inspect as inspect
from .judgments import read_judgments as read_judgments
from .letor import read_letor as read_letor
from .letor import write_letor as write_letor
from .notices import listen as listen
from .notices import say as say
from .output import write_qrels as write_qrels
from .output import write_run as write_run
from .output import write_table as write_table
from .preflib import read_preflib as read_preflib
from .results import from_json as from_json
from .results import load_ranker as load_ranker
from .results import read_consensus as read_consensus
from .results import to_json as to_json
from .results import write_consensus as write_consensus
from .tables import read_table as read_table
from .trec import read_qrels as read_qrels
from .trec import read_run as read_run
from .truth import read_clicks as read_clicks
from .truth import read_truth as read_truth
