"""Figures printed by Niu et al."""

from __future__ import annotations

METHODS = (
    "CondorcetFuse",
    "GreedyOrder",
    "BradleyTerry",
    "MPM",
    "Crowd-BT",
    "EMEloRating",
    "CrowdAgg-NDCG",
    "CrowdAgg-RBP",
)
BASELINES, OURS = METHODS[:6], METHODS[6:]

MEASURES = {
    "P@3": "p@3",
    "P@5": "p@5",
    "P@7": "p@7",
    "P@9": "p@9",
    "P@10": "p@10",
    "MAP": "map",
    "N@3": "ndcg@3",
    "N@5": "ndcg@5",
    "N@7": "ndcg@7",
    "N@9": "ndcg@9",
    "N@10": "ndcg@10",
    "RBP": "rbp@0.95",
}
"""The measures as the paper writes them -> by our names."""

MAIN = ("P@10", "MAP", "N@10", "RBP")
"""The measures of its figures."""

_TREC = """
.597 .604 .621 .626 .621 .560 .591 .597 .609 .613 .611 .564
.710 .698 .674 .661 .657 .604 .713 .704 .688 .679 .676 .621
.373 .370 .386 .378 .377 .326 .377 .375 .384 .379 .379 .345
.690 .690 .671 .663 .657 .570 .687 .687 .676 .671 .667 .580
.403 .416 .416 .422 .417 .534 .404 .412 .413 .417 .414 .473
.690 .666 .673 .654 .649 .588 .691 .676 .679 .667 .663 .602
.713 .694 .680 .673 .673 .635 .715 .702 .692 .687 .686 .657
.680 .684 .686 .679 .674 .636 .683 .686 .686 .682 .679 .658
"""
_MIREX = """
.364 .455 .468 .434 .418 .472 .523 .596 .514 .478 .414 .170
.273 .418 .455 .424 .409 .459 .444 .525 .490 .462 .399 .171
.242 .400 .429 .424 .499 .441 .412 .496 .460 .447 .385 .170
.485 .509 .494 .475 .446 .516 .695 .693 .612 .576 .501 .179
.576 .564 .507 .465 .446 .608 .814 .801 .640 .578 .496 .200
.364 .436 .455 .424 .409 .495 .606 .629 .568 .511 .436 .203
.697 .600 .546 .485 .455 .712 .955 .880 .703 .621 .532 .214
.697 .600 .546 .485 .455 .713 .955 .879 .702 .620 .531 .215
"""


def _read(text: str) -> dict[str, dict[str, float]]:
    """Method -> measure -> printed figure."""
    rows = (map(float, line.split()) for line in text.strip().splitlines())
    return {method: dict(zip(MEASURES, row, strict=True)) for method, row in zip(METHODS, rows, strict=True)}


TABLE_2A, TABLE_2B = _read(_TREC), _read(_MIREX)

GAINS = {("Crowd-BT", "N@10"): 10.3, ("CrowdAgg-NDCG", "MAP"): 56.0, ("CrowdAgg-NDCG", "P@10"): 11.1}
"""Improvement through quality, in per cent, where section 6.3.1 has a number for figure 1."""

DIVERGENCE = {"CrowdAgg-NDCG": 1.43, "Crowd-BT": 2.86, "EMEloRating": 2.14, "MPM": 1.93}
"""Mean divergence of the distribution of quality, section 6.3.2."""

_LEGEND = ("GreedyOrder", "CondorcetFuse", "BradleyTerry", "MPM", "Crowd-BT", "EMEloRating", "CrowdAgg-NDCG")
VARIATION = {
    ("random", "N@10"): dict(zip(_LEGEND, (0.0147, 0.0174, 0.3347, 0.0228, 0.0406, 0.3238, 0.0216), strict=True)),
    ("random", "RBP"): dict(zip(_LEGEND, (0.0227, 0.0245, 0.0436, 0.0330, 0.0312, 0.0191, 0.0185), strict=True)),
    ("malicious", "N@10"): dict(zip(_LEGEND, (0.0100, 0.0122, 0.0112, 0.0186, 0.0498, 0.0175, 0.0099), strict=True)),
    ("malicious", "RBP"): dict(zip(_LEGEND, (0.0118, 0.0174, 0.0218, 0.0407, 0.0382, 0.0275, 0.0116), strict=True)),
}
"""Coefficients of variation under spam, section 6.4: (kind of spammer, measure) -> method -> figure."""
