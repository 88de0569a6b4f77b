"""Figures printed by Gupta and Narayanan; accuracies in per cent."""

from __future__ import annotations

N_ANNOTATORS = 6
"""Simulated annotators of tables 1 and 2 and of figure 2; number k flips with probability k / 20."""

TABLE_1 = {
    "JAM": (0.032, 0.086, 0.176, 0.196, 0.246, 0.273),
    "VRJAM": (0.033, 0.085, 0.175, 0.196, 0.245, 0.273),
}
"""Flip rates found on red wine."""

TABLE_2 = {
    "red": {"MV": 95.9, "IAM": 55.2, "JAM": 97.9, "VRJAM": 98.0},
    "white": {"MV": 96.1, "IAM": 55.3, "JAM": 97.9, "VRJAM": 98.1},
}
"""Right pairs of wines, by colour and fusion scheme."""

SINGLE_RANKERS = (53.0, 64.4)
"""Worst and best ranker of a single annotator on red wine, section 4.1.1."""

TABLE_3 = {"KNN": 67.8, "LR": 69.1, "NB": 69.0, "RF": 72.0, "Perc.": 59.9}
"""Right pairs of digits, by classifier."""

TABLE_4 = {"MV": 78.0, "IAM": 65.9, "JAM": 78.1, "VRJAM": 79.7}
"""Right pairs of digits, by fusion scheme."""

TABLE_5 = {
    "expressiveness": {"MV": 64.3, "IAM": 61.5, "JAM": 64.3, "VRJAM": 65.4},
    "naturalness": {"MV": 55.7, "IAM": 52.7, "JAM": 55.9, "VRJAM": 57.7},
}
"""How often a typically developing child is put above one with autism."""
