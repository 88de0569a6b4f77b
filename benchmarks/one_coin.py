"""One-coin EM on 1M grades: our naive Bayes with learned accuracies, against crowd-kit's one-coin Dawid-Skene."""

from __future__ import annotations

from .grade_models import against_crowd_kit

WORKLOAD = against_crowd_kit(
    "one_coin",
    "One-coin EM",
    ("naive_bayes", {"tol": 1e-5}),
    ("OneCoinDawidSkene", {"tol": 1e-5, "n_iter": 1000}),
    times=40,
    frame_times=15,
)
