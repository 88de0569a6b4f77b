"""Intervals on simulated judges, for ``docs/evidence/judges.md``: ``python -m benchmarks.judge_coverage``.

Judges with coefficients of their own, with ties, lapses or many items; a few people beside several programs that
share tastes; criteria; and leaderboards by category. Each line says how many of the intervals hold the truth. ``--only
"options"`` measures the table that the page begins with: the same votes without options, then with those that the page
advises, one after the other.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np

CONTROL: dict[str, dict[str, Any]] = {
    "30 each": {"each": 30},
    "100 each": {"each": 100},
    "500 each": {"each": 500},
    "100 each, ties": {"each": 100, "ties": 0.6},
    "100 each, a tenth lapses": {"each": 100, "lapse": 0.1},
    "500 each, a tenth lapses": {"each": 500, "lapse": 0.1},
    "800 items, 800 each": {"each": 800, "n_items": 800},
}
FEW_PROGRAMS = (
    (1, 0.0, 0.0, 50), (1, 0.3, 0.0, 50), (1, 0.3, 0.0, 200), (1, 0.6, 0.0, 50), (1, 0.6, 0.0, 200), (3, 0.3, 0.4, 50),
    (3, 0.3, 0.4, 200),
)  # fmt: skip
"""Programs of 4,000 judgments each, standard deviations of own and shared taste, preferences of people."""

TASTE: dict[str, dict[str, Any]] = {
    **{
        f"{programs} of 4,000, own {own}, shared {common}, {n_people} of people": {
            "programs": programs, "n_people": n_people, "each": 4000, "own": own, "common": common,
        }
        for programs, own, common, n_people in FEW_PROGRAMS
    },
    "5 programs, 50 of people": {"programs": 5, "n_people": 50},
    "5 programs, 200 of people": {"programs": 5, "n_people": 200},
    "8 programs, 200 of people": {"programs": 8, "n_people": 200},
    "5 programs, discriminations of .7 to 1.9": {"programs": 5, "n_people": 200, "alphas": (0.7, 1.0, 1.3, 1.6, 1.9)},
    "40 items, 5 programs, 400 of people": {"programs": 5, "n_people": 400, "m": 40},
}  # fmt: skip
TABLES: dict[str, dict[str, Any]] = {
    "3 criteria, errors of their own": {"halo": 0.0},
    "3 criteria, half of the errors shared": {"halo": 0.5},
    "3 criteria, errors shared": {"halo": 1.0},
}
DESIGNS: dict[str, dict[str, Any]] = {
    "a person per vote": {},
    "5 judges, both orders": {"judges": 5, "both": True, "pairs": 150},
    "5 judges with tastes, both orders": {"judges": 5, "both": True, "pairs": 150, "taste": 0.4},
    "5 judges of each category, with tastes": {"judges": 5, "taste": 0.4, "nested": True},
    "25 queries a category, answers vary": {"judges": 5, "queries": 25, "answers": 0.5},
    "25 queries, 5 judges with tastes, both orders": {
        "judges": 5, "both": True, "pairs": 400, "taste": 0.4, "queries": 25, "answers": 0.5
    },
    "30 judges of a few votes, 6 queries": {"judges": 30, "queries": 6, "taste": 0.4},
}  # fmt: skip
CATEGORIES: dict[str, dict[str, Any]] = {
    f"{name}, differ by {differ:g}": {"differ": differ, **case}
    for name, case in DESIGNS.items()
    for differ in (0.0, 0.4)
}
PEOPLE = [f"p{place}" for place in range(5)]
OPTIONS: dict[str, dict[str, Any]] = {
    "options, 200 votes of 5 people and 7,500 of 5 programs": {"programs": 5, "n_people": 200},
    "options, 400 votes of 5 people and 4,500 of 3 programs": {"programs": 3, "n_people": 400},
}
ADVISED: tuple[dict[str, Any], ...] = (
    {},
    {"control": ["length"]},
    {"control": ["length", "self"]},
    {"trusted": "group=human"},
    {"control": ["length", "self"], "trusted": "group=human"},
)
N_FAMILIES = 6


def judges(
    each: int, seed: int, *, n: int = 20, n_items: int = 20, ties: float = 0.0, lapse: float = 0.0
) -> tuple[Any, Any, Any]:
    """Return preferences of judges who like length each in a way of their own, true scores, and true coefficients."""
    import crowdrank as cr

    rng = np.random.default_rng(seed)
    rows, annotator = each * n, np.repeat(np.arange(n), each)
    scores = rng.normal(0, 1, n_items)
    left = rng.integers(0, n_items, rows)
    right = (left + rng.integers(1, n_items, rows)) % n_items
    habit = rng.normal(0, 0.7, n_items)
    x = habit[left] - habit[right] + rng.normal(0, 1, rows)
    x /= np.sqrt((x**2).mean())
    alpha, own, side = np.exp(rng.normal(0, 0.3, n)), 0.3 + rng.normal(0, 0.5, n), rng.normal(0, 0.3, n)
    alpha /= alpha.mean()
    felt = alpha[annotator] * (scores[left] - scores[right]) + side[annotator] + own[annotator] * x
    felt = felt + rng.logistic(size=rows)
    winner = np.where(np.abs(felt) < ties, "tie", np.where(felt > 0, "left", "right"))
    winner = np.where(rng.uniform(size=rows) < lapse, np.where(rng.uniform(size=rows) < 0.5, "left", "right"), winner)
    table = {
        "query": np.arange(rows), "left": left, "right": right, "winner": winner, "annotator": annotator, "length": x
    }  # fmt: skip
    return cr.Preferences.from_frame(table, covariates=["length"]).across_queries(), scores - scores.mean(), own


def control_line(seeds: int, case: dict[str, Any]) -> str:
    """Return coverage of 90 % intervals: of coefficients of judges and crowd, and of scores."""
    from scipy.stats import t as student

    from crowdrank.aggregators import LatentScore

    runs = []
    for seed in range(seeds):
        preferences, scores, own = judges(seed=seed, **case)
        consensus = LatentScore(lapse=True if case.get("lapse") else None).fit(preferences, control=["length"])
        ids, parameters = consensus.learned
        own = own[[int(one) for one in ids.ids]]
        truth = scores[[int(one) for one in consensus.items.ids]]
        size = float(consensus.scores @ truth) / float(truth @ truth)
        error, crowd = consensus.std_error, consensus.estimates["control"]["length"]
        whole = np.sqrt(error**2 + (consensus.estimates["scale_error"] * consensus.scores) ** 2)
        far = student.ppf(0.95, crowd["degrees"])
        runs.append((
            np.mean(np.abs(parameters["length"] - own) < 1.645 * parameters["length_sd"]),
            abs(crowd["coefficient"] - own.mean()) < far * crowd["std_error"],
            np.mean(np.abs(consensus.scores - size * truth) < 1.645 * error),
            np.mean(np.abs(consensus.scores - truth) < 1.645 * whole),
            np.sqrt(np.mean((parameters["length"] - own) ** 2)), size, consensus.estimates.get("mean_lapse", 0.0),
        ))  # fmt: skip
    names = ("judges", "crowd", "scores, scale of the fit", "scores with scale_error", "rms", "scale", "lapse")
    means = np.mean(runs, axis=0)
    return ", ".join(f"{name} {value:.2f}" for name, value in zip(names, means, strict=True))


def people_and_programs(
    seed: int, programs: int, n_people: int, *, m: int = 12, each: int = 1500, alphas: tuple[float, ...] = (1.3,),
    own: float = 0.3, common: float = 0.4, own_family: float = 0.0, habit: float = 0.0,
) -> tuple[Any, Any]:  # fmt: skip
    """Return preferences of five people and of programs that share tastes and like length, and the true scores.

    Programs like items of their own family by ``own_family``; ``habit`` is how far items differ in length.
    """
    import polars as pl

    import crowdrank as cr

    rng = np.random.default_rng(seed)
    scores, shared = rng.normal(0, 1, m), common * rng.normal(0, 1, m)
    seen = [(name, scores, n_people // 5, 1.0, 0.0, "human") for name in PEOPLE]
    for place in range(programs):
        alpha = alphas[place % len(alphas)]
        sees = scores + (shared + own * rng.normal(0, 1, m)) / 1.3
        seen.append((f"j{place}", sees, each, alpha, 0.5, str(place % N_FAMILIES)))
    usual = habit * rng.normal(0, 1, m) if habit else np.zeros(m)
    rows = []
    for who, sees, number, alpha, likes, group in seen:
        left = rng.integers(0, m, number)
        right = (left + rng.integers(1, m, number)) % m
        x = rng.normal(0, 1, number) + usual[left] - usual[right]
        mine = [np.array([str(item % N_FAMILIES) == group for item in side], float) for side in (left, right)]
        felt = alpha * (sees[left] - sees[right]) + likes * x + own_family * (mine[0] - mine[1])
        felt = felt + rng.logistic(size=number)
        rows.append(pl.DataFrame({
            "query": [f"{who} {row}" for row in range(number)], "left": left, "right": right, "group": group,
            "winner": np.where(felt > 0, "left", "right"), "annotator": [who] * number, "length": x,
        }))  # fmt: skip
    return cr.Preferences.from_frame(pl.concat(rows), covariates=["length"]).across_queries(), scores


def options_line(seeds: int, case: dict[str, Any]) -> str:
    """Return coverage of 95 % intervals of differences and the error, on the scale of the fit, by options given."""
    import crowdrank as cr
    from crowdrank.api import with_families

    runs: list[list[tuple[float, float]]] = [[] for _ in ADVISED]
    for seed in range(seeds):
        preferences, scores = people_and_programs(seed, own_family=0.8, habit=0.7, **case)
        families = {"item": list(range(len(scores))), "family": [str(one % N_FAMILIES) for one in range(len(scores))]}
        preferences = with_families(preferences, families)
        for found, options in zip(runs, ADVISED, strict=True):
            consensus = cr.aggregate(preferences, **options)
            truth = scores[[int(one) for one in consensus.items.ids]]
            truth = truth - truth.mean()
            size = float(consensus.scores @ truth) / float(truth @ truth)
            i, j = np.triu_indices(len(truth), 1)
            block = consensus.covariance[0]
            error = np.sqrt(block[i, i] + block[j, j] - 2 * block[i, j])
            off = consensus.scores[i] - consensus.scores[j] - size * (truth[i] - truth[j])
            found.append((float(np.mean(np.abs(off) < 1.96 * error)), float(np.sqrt(np.mean((off / size) ** 2)))))
    parts = []
    for found, options in zip(runs, ADVISED, strict=True):
        covers, rms = np.mean(found, axis=0)
        words = [*options.get("control", ()), *(["trusted"] if "trusted" in options else [])]
        parts.append(f"{', '.join(words) or 'none'} {covers:.2f} / {rms:.2f}")
    return "; ".join(parts)


def taste_line(seeds: int, case: dict[str, Any]) -> str:
    """Return coverage of 95 % intervals of differences, their mean width and error, with tastes and without."""
    from crowdrank.aggregators import LatentScore

    parts = []
    for taste in (None, False):
        runs = []
        for seed in range(seeds):
            preferences, scores = people_and_programs(seed, **case)
            consensus = LatentScore(taste=taste).fit(preferences, trusted=PEOPLE, control=["length"])
            truth = scores[[int(one) for one in consensus.items.ids]]
            i, j = np.triu_indices(len(truth), 1)
            block = consensus.covariance[0]
            error = np.sqrt(block[i, i] + block[j, j] - 2 * block[i, j])
            off = consensus.scores[i] - consensus.scores[j] - (truth[i] - truth[j])
            runs.append((np.mean(np.abs(off) < 1.96 * error), 2 * 1.96 * error.mean(), np.sqrt(np.mean(off**2))))
        covers, width, rms = np.mean(runs, axis=0)
        parts.append(f"{'without' if taste is False else 'with'} {covers:.2f} / {width:.1f} / {rms:.2f}")
    return ", ".join(parts)


def table_line(seeds: int, case: dict[str, Any]) -> str:
    """Return coverage of 90 % intervals of overall scores of criteria."""
    shares = [criteria_coverage(seed, **case) for seed in range(seeds)]
    return f"{np.mean(shares):.2f} (standard error {np.std(shares) / np.sqrt(seeds):.2f})"


def category_line(seeds: int, case: dict[str, Any]) -> str:
    """Return what leaderboards by category are like, with robust errors where they are taken unasked and without."""
    parts = []
    for robust in (None, "none"):
        means = np.mean([category_figures(seed, robust, **case) for seed in range(seeds)], axis=0)
        parts.append(f"{'model' if robust else 'default'} " + " / ".join(f"{one:.2f}" for one in means))
    return ", ".join(parts)


def criteria_coverage(seed: int, halo: float, *, m: int = 30, n: int = 8, k: int = 3) -> float:
    """Grades of 1 to 5 by criteria; ``halo`` is the share of an annotator's error that all criteria have in common."""
    import crowdrank as cr
    from crowdrank.api import criteria_table

    rng = np.random.default_rng(seed)
    truth = 0.7 * rng.normal(0, 1, (m, 1)) + 0.7 * rng.normal(0, 1, (m, k))
    shared = rng.logistic(size=(n, m, 1))
    felt = truth + np.where(rng.uniform(size=(n, m, k)) < halo, shared, rng.logistic(size=(n, m, k)))
    grade = np.digitize(felt, [-1.5, -0.5, 0.5, 1.5]) + 1
    ids = {"item": np.tile(np.arange(m), n), "annotator": np.repeat(np.arange(n), m)}
    parts = {
        f"c{c}": cr.aggregate({**ids, "grade": grade[:, :, c].ravel()}, "latent_score", robust="none") for c in range(k)
    }
    table = criteria_table(parts).sort("item")
    score, overall = table["score"].to_numpy(), truth.mean(axis=1)[table["item"].to_numpy()]
    slope = np.polyfit(overall, score, 1)
    return float(np.mean(np.abs(score - np.polyval(slope, overall)) < 1.645 * table["std_error"].to_numpy()))


def category_votes(
    seed: int, differ: float, *, m: int = 12, k: int = 4, pairs: int = 300, judges: int = 0, both: bool = False,
    taste: float = 0.0, nested: bool = False, answers: float = 0.0, queries: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """Return votes of categories in which items are better or worse than elsewhere, and the true scores by category.

    Each category has ``pairs`` pairs; ``queries`` is how many queries they are from, 0 for one each, and ``answers``
    how much better or worse than usual an item answers a query. ``judges`` give the votes, with tastes of their own,
    in all categories or, ``nested``, each in one; 0 for a person per vote. With ``both``, each pair is asked in both
    orders, and half of the noise is the same in both.
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    n = k * pairs
    truth = rng.normal(0, 1, m) + differ * rng.normal(0, 1, (k, m))
    category = np.repeat(np.arange(k), pairs)
    query = np.arange(n) if not queries else category * queries + rng.integers(0, queries, n)
    who = np.arange(n) if not judges else rng.integers(0, judges, n)
    if nested:
        who = category * judges + who
    likes = taste * rng.normal(0, 1, (int(who.max()) + 1, m))
    answered = answers * rng.normal(0, 1, (int(query.max()) + 1, m))
    left = rng.integers(0, m, n)
    right = (left + rng.integers(1, m, n)) % m
    gap = sum(x[place, left] - x[place, right] for x, place in ((truth, category), (likes, who), (answered, query)))
    noise = rng.logistic(size=(2, n))
    asked = []
    for turn in range(1 + both):
        own = np.where(rng.uniform(size=n) < 0.5, noise[0], noise[1]) if turn else noise[0]
        won = np.asarray(gap) + own > 0
        asked.append(pl.DataFrame({
            "query": query, "left": right if turn else left, "right": left if turn else right, "category": category,
            "winner": np.where(won != bool(turn), "left", "right"), "annotator": who,
        }))  # fmt: skip
    votes = pl.concat(asked)
    return votes if judges else votes.drop("annotator"), truth - truth.mean(axis=1, keepdims=True)


def category_figures(seed: int, robust: str | None = None, **case: Any) -> Any:
    """Return, of a leaderboard by category, the share of 90 % intervals that hold the truth, and how far off it is.

    Beside the share are the correlation with the truth, the mean ``sd``, and the root mean square of the difference
    between a category and all. The truth is brought to the scale of the fit.
    """
    import polars as pl

    import crowdrank as cr
    from crowdrank.api import category_table, fit_category

    votes, truth = category_votes(seed, **case)

    def fit(rows: Any) -> Any:
        preferences = cr.Preferences.from_frame(rows.drop("category")).across_queries()
        return fit_category(
            preferences, robust=robust, method="latent_score" if case.get("judges") else "bradley_terry"
        )

    parts = {str(c): fit(votes.filter(pl.col("category") == c)) for c in range(len(truth))}
    table = category_table(fit(votes), parts).sort("category", "item")
    of = {one[0]: rows for one, rows in table.group_by("category")}
    whole, usual = of["all"]["score"].to_numpy(), truth.mean(axis=0)
    size, figures = float(whole @ usual) / float(usual @ usual), []
    for c, own in enumerate(truth):
        score, error = (of[str(c)][name].to_numpy() for name in ("score", "std_error"))
        figures.append((
            np.mean(np.abs(score - size * own) < 1.645 * error), np.corrcoef(score, own)[0, 1],
            of[str(c)]["sd"][0], np.sqrt(np.mean((score - whole) ** 2)),
        ))  # fmt: skip
    return np.mean(figures, axis=0)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=12, help="simulations of each case")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = (
        (CONTROL, control_line, "control"), (TASTE, taste_line, "taste, covers / width / error"),
        (TABLES, table_line, "tables"), (OPTIONS, options_line, "covers / error"),
        (CATEGORIES, category_line, "categories, covers / correlation / sd / off all"),
    )  # fmt: skip
    for cases, line, what in kinds:
        for name, case in cases.items():
            if asked.only in name:
                sys.stderr.write(f"{name} ...\n")
                print(f"{what}: {name}, {asked.seeds} seeds: {line(asked.seeds, case)}", flush=True)


if __name__ == "__main__":
    main()
