"""Records for other tools as files: JSON arrays, JSON lines, qrels, runs, CSV and LETOR."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..data.features import Features
from ..data.files import PathLike
from ..protocols import Floats
from .letor import write_letor
from .output import write_text
from .trec import write_qrels, write_run


def write_records(records: Sequence[Mapping[str, Any]], to: str, path: PathLike | None = None) -> None:
    """Write records as a tool reads them; ``None`` or ``-`` writes to standard output.

    Examples
    --------
    >>> write_records([{"prompt": "p", "chosen": "x", "rejected": "y"}], "pairs")
    {"prompt": "p", "chosen": "x", "rejected": "y"}
    """
    if to == "qrels":
        write_qrels(pl.DataFrame(records), path)
        return
    if to in ("quepid", "run"):
        frame = pl.DataFrame(records)
        write_run(frame, path) if to == "run" else write_text(frame.write_csv(), path)
        return
    if to == "rre":
        write_text(json.dumps(records[0], ensure_ascii=False, allow_nan=False, indent=2) + "\n", path)
        return
    texts = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    write_text("".join(f"{text}\n" for text in texts) if to == "pairs" else "[" + ",\n ".join(texts) + "]\n", path)


def write_training(features: Features, weight: Floats | None, path: PathLike) -> list[str]:
    """Write labelled features as LETOR lines and, beside them, weights and sizes of queries as LightGBM reads them.

    Return the names of the files: ``FILE``, ``FILE.query`` and, where there are weights, ``FILE.weight``.
    """
    write_letor(features, path)
    sizes = np.diff(features.items.offsets)
    beside = {".query": sizes[sizes > 0].tolist()}
    if weight is not None:
        beside[".weight"] = [f"{value:.6g}" for value in weight]
    for ending, values in beside.items():
        write_text("".join(f"{value}\n" for value in values), f"{path}{ending}")
    return [str(path), *(f"{path}{ending}" for ending in beside)]
