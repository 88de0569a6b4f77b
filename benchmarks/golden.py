"""Peers' answers that tests compare ours with: ``python -m benchmarks --golden [NAME...]``.

Each maker returns the whole file: ``input`` (columns and rows, from a fixed seed) and ``expected`` with the peer's
answer, its version and the call. To add one, write a function and enter it in ``MAKERS`` under the name of its file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .processes import ROOT

FOLDER = ROOT / "tests" / "golden"

Golden = dict[str, Any]

_ITEMS = ("a", "b", "c", "d", "e")


def remake(names: list[str], folder: Path = FOLDER) -> list[Path]:
    """Write the named files, all if none is named, and return their paths."""
    for name in names:
        if name not in MAKERS:
            raise SystemExit(f"there is no golden file {name!r}; known: {', '.join(MAKERS)}")
    made = {name: MAKERS[name]() for name in names or MAKERS}
    for name, golden in made.items():
        (folder / f"{name}.json").write_text(json.dumps(golden, indent=1), encoding="utf-8")
    return [folder / f"{name}.json" for name in made]


def bradley_terry() -> Golden:
    """Bradley-Terry scores with ties split, as a third outcome, and left out."""
    import choix
    import evalica
    import numpy as np

    rows = _preferences()
    left, right, winners = _for_evalica(rows)
    split = evalica.bradley_terry(left, right, winners, tolerance=1e-14, limit=100_000)
    davidson = evalica.newman(left, right, winners, tolerance=1e-14, limit=100_000)
    decided = [row for row in rows if row[2] != "tie"]
    wins = [_places(one, other) if winner == "left" else _places(other, one) for one, other, winner in decided]
    ignored = choix.opt_pairwise(len(_ITEMS), wins, alpha=0.05, method="Newton-CG", tol=1e-12)

    def centred_logs(scores: Any) -> list[float]:
        logs = np.log(scores.reindex(_ITEMS).to_numpy())
        return [float(value) for value in logs - logs.mean()]

    return {
        "input": {"columns": ["left", "right", "winner"], "rows": rows},
        "expected": {
            "bradley_terry_split": {
                "scores": centred_logs(split.scores),
                "peer": _peer("evalica"),
                "call": "evalica.bradley_terry(left, right, winner, tolerance=1e-14, limit=100000); "
                "log of scores, centred",
                "ours": "BradleyTerry(ridge=1e-9)",
            },
            "bradley_terry_davidson": {
                "scores": centred_logs(davidson.scores),
                "tie": 2 * float(davidson.v),
                "peer": _peer("evalica"),
                "call": "evalica.newman(left, right, winner, tolerance=1e-14, limit=100000); "
                "log of scores, centred; its v is half of Davidson's parameter",
                "ours": "BradleyTerry(ties='davidson', ridge=1e-9)",
            },
            "bradley_terry_ignore": {
                "scores": (ignored - ignored.mean()).tolist(),
                "peer": _peer("choix"),
                "call": "choix.opt_pairwise(5, [(winner, loser), ...], alpha=0.05, method='Newton-CG', tol=1e-12), "
                "ties left out; its alpha is half of ours",
                "ours": "BradleyTerry(ties='ignore', ridge=0.1)",
            },
        },
    }


def elo() -> Golden:
    """Elo scores with a small and a large step."""
    import evalica

    rows = _preferences()
    left, right, winners = _for_evalica(rows)
    expected = {
        f"k{k}": {
            "scores": evalica.elo(left, right, winners, k=float(k)).scores.reindex(_ITEMS).tolist(),
            "peer": _peer("evalica"),
            "call": f"evalica.elo(left, right, winner, k={k:.1f})",
            "ours": f"Elo(k={k})",
        }
        for k in (4, 32)
    }
    return {"input": {"columns": ["left", "right", "winner"], "rows": rows}, "expected": expected}


def rank_centrality() -> Golden:
    """Rank centrality without ties, with and without wins added on both sides of every pair."""
    import choix

    rows = [row for row in _preferences() if row[2] != "tie"]
    wins = [_places(one, other) if winner == "left" else _places(other, one) for one, other, winner in rows]
    expected = {
        f"alpha{alpha}": {
            "scores": choix.rank_centrality(len(_ITEMS), wins, alpha=alpha).tolist(),
            "peer": _peer("choix"),
            "call": f"choix.rank_centrality(5, [(winner, loser), ...], alpha={alpha}); every pair met",
            "ours": f"RankCentrality(alpha={alpha or 1e-12})",
        }
        for alpha in (0, 0.5, 2)
    }
    return {"input": {"columns": ["left", "right", "winner"], "rows": rows}, "expected": expected}


def plackett_luce() -> Golden:
    """Plackett-Luce scores of partial rankings without ties, of largest likelihood and with a prior."""
    import choix

    rows = _rankings()
    lists = [[_ITEMS.index(row[1]) for row in rows if row[0] == number] for number in sorted({row[0] for row in rows})]
    likeliest = choix.mm_rankings(len(_ITEMS), lists, tol=1e-13)
    pulled = choix.opt_rankings(len(_ITEMS), lists, alpha=0.25, method="Newton-CG", tol=1e-13)
    return {
        "input": {"columns": ["ranking", "item", "rank"], "rows": rows},
        "expected": {
            "likeliest": {
                "scores": (likeliest - likeliest.mean()).tolist(),
                "peer": _peer("choix"),
                "call": "choix.mm_rankings(5, [[best, ..., worst], ...], tol=1e-13), centred",
                "ours": "PlackettLuce(ridge=1e-9)",
            },
            "pulled": {
                "scores": (pulled - pulled.mean()).tolist(),
                "peer": _peer("choix"),
                "call": "choix.opt_rankings(5, [[best, ..., worst], ...], alpha=0.25, method='Newton-CG', tol=1e-13); "
                "its alpha is half of ours",
                "ours": "PlackettLuce(ridge=0.5)",
            },
        },
    }


def majority_vote() -> Golden:
    """Majority vote of items without tied votes."""
    import pandas as pd
    from crowdkit.aggregation import MajorityVote

    rows = _grades()
    fitted = MajorityVote().fit(pd.DataFrame(rows, columns=["worker", "task", "label"]))
    shares = fitted.probas_.sort_index().sort_index(axis=1).fillna(0)
    untied = shares.index[shares.eq(shares.max(axis=1), axis=0).sum(axis=1) == 1].to_list()
    return {
        "input": {"columns": ["annotator", "item", "grade"], "rows": [row for row in rows if row[1] in untied]},
        "expected": {
            "item": untied,
            "grade": [int(label) for label in fitted.labels_.loc[untied]],
            "probabilities": shares.loc[untied].to_numpy().tolist(),
            "levels": [int(level) for level in shares.columns],
            "peer": _peer("crowd-kit"),
            "call": "MajorityVote().fit(task, worker, label): labels_ and probas_; "
            "items with tied votes left out, since its tie rule differs",
        },
    }


MAKERS: dict[str, Callable[[], Golden]] = {
    "bradley_terry": bradley_terry,
    "elo": elo,
    "majority_vote": majority_vote,
    "plackett_luce": plackett_luce,
    "rank_centrality": rank_centrality,
}
"""Name of the file in tests/golden -> what makes it."""


def _preferences() -> list[list[str]]:
    """Sixty preferences among five items, from Davidson's model."""
    import numpy as np

    rng = np.random.default_rng(5)
    scores = dict(zip(_ITEMS, (1.0, 0.5, 0.0, -0.5, -1.0), strict=True))
    rows = []
    for _ in range(60):
        left, right = (str(item) for item in rng.choice(_ITEMS, 2, replace=False))
        win, loss = np.exp((scores[left] - scores[right]) / 2), np.exp((scores[right] - scores[left]) / 2)
        drawn = rng.random() * (win + loss + 0.6)
        rows.append([left, right, "left" if drawn < win else "right" if drawn < win + loss else "tie"])
    return rows


def _rankings() -> list[list[Any]]:
    """Thirty rankings of two to five of five items, from the Plackett-Luce model."""
    import numpy as np

    rng = np.random.default_rng(6)
    scores = dict(zip(_ITEMS, (1.0, 0.5, 0.0, -0.5, -1.0), strict=True))
    rows: list[list[Any]] = []
    for number in range(30):
        chosen = [str(item) for item in rng.choice(_ITEMS, rng.integers(2, 6), replace=False)]
        seen = {item: scores[item] + rng.gumbel() for item in chosen}
        rows += [[number, item, place + 1] for place, item in enumerate(sorted(seen, key=lambda item: -seen[item]))]
    return rows


def _grades() -> list[list[Any]]:
    """Grades 0 to 3 of eight items by five annotators, mostly right."""
    import numpy as np

    rng = np.random.default_rng(2)
    rows: list[list[Any]] = []
    for item in range(8):
        truth = rng.integers(0, 4)
        rows += [[f"w{who}", f"i{item}", int(np.clip(truth + rng.choice([-1, 0, 0, 0, 1]), 0, 3))] for who in range(5)]
    return rows


def _for_evalica(rows: list[list[str]]) -> tuple[list[str], list[str], list[Any]]:
    """Columns as evalica takes them."""
    from evalica import Winner

    winners = {"left": Winner.X, "right": Winner.Y, "tie": Winner.Draw}
    return [row[0] for row in rows], [row[1] for row in rows], [winners[row[2]] for row in rows]


def _places(winner: str, loser: str) -> tuple[int, int]:
    """A win as choix takes it."""
    return _ITEMS.index(winner), _ITEMS.index(loser)


def _peer(package: str) -> str:
    """Name and version of a peer."""
    return f"{package} {version(package)}"
