"""Control on public judges of language models, for ``docs/evidence/judges.md``: ``python -m benchmarks.real_judges``.

The sets are looked for in ``CROWDRANK_DATA``. Of ``llmfao`` the decided answers are held out in five parts, twice, and
predicted from the others, at the estimates; of ``alpaca-eval-judges`` scores are compared with the official rates, for
each way to make one number of two lengths. Then come the habits of judges in ``llmfao``, ties included, and in
``judgebench``, and the correlations of criteria in ``newsroom-criteria``. ``--only habits`` prints these alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

STYLE = ("length", "headers", "bold", "lists")
N_FOLDS, N_TIMES = 5, 2
MODELS: dict[str, tuple[str, list[str]]] = {
    "bradley_terry": ("bradley_terry", []),
    "+ length": ("bradley_terry", ["length"]),
    "+ length, headers, bold, lists": ("bradley_terry", list(STYLE)),
    "latent_score": ("latent_score", []),
    "+ length of each": ("latent_score", ["length"]),
    "+ length, lists of each": ("latent_score", ["length", "lists"]),
    "+ length, lists, self of each": ("latent_score", ["length", "lists", "self"]),
}


def llmfao(folder: Path, *, ties: bool = False) -> Any:
    """Return the preferences of people, GPT-3.5 and GPT-4, the decided ones or all, with style and own family."""
    import crowdrank as cr

    answers = pl.read_csv(folder / "llmfao-style" / "answers.csv")
    models = pl.read_ndjson(folder / "llmfao" / "models.jsonl")
    own = models.filter(pl.col("org") == "OpenAI")["id"].to_list()
    parts = []
    for name, who in (("crowd", None), ("gpt3-crowd", "GPT-3.5"), ("gpt4-crowd", "GPT-4")):
        table = pl.read_csv(folder / "llmfao" / f"{name}-comparisons.csv").filter(ties | (pl.col("winner") != "tie"))
        for column, side in (("model_x", "left"), ("model_y", "right")):
            shown = answers.rename({"model": column, **{style: f"{style}_{side}" for style in STYLE}})
            table = table.join(shown, on=["prompt", column], how="left", maintain_order="left")
        worker = pl.lit(who) if who else pl.concat_str(pl.lit("w"), pl.col("worker").cast(pl.String))
        family = [
            pl.col(column).is_in(own).cast(pl.Int64) if who else pl.lit(0, pl.Int64)
            for column in ("model_x", "model_y")
        ]
        kept = [f"{style}_{side}" for style in STYLE for side in ("left", "right")]
        parts.append(
            table.select(
                "left",
                "right",
                "winner",
                *kept,
                (family[0] - family[1]).alias("self"),
                query="prompt",
                annotator=worker,
            )
        )
    return cr.Preferences.from_frame(pl.concat(parts), covariates=[*STYLE, "self"]).across_queries()


def log_odds(consensus: Any, held: Any) -> Any:
    """Return the log-odds of the left item at the estimates."""
    gap = consensus.scores[held.left] - consensus.scores[held.right]
    control = consensus.estimates.get("control", {})
    values = {name: held.covariates[:, held.covariate_names.index(name)] / control[name]["unit"] for name in control}
    if consensus.learned is None or "alpha" not in consensus.learned[1]:
        side = consensus.estimates.get("side", {}).get("coefficient", 0.0)
        return gap + side + sum(control[name]["coefficient"] * x for name, x in values.items())
    parameters, who = consensus.learned[1], held.annotator
    own = sum(parameters[name][who] * x for name, x in values.items())
    return parameters["alpha"][who] * gap + parameters["bias"][who] + own


def held_out(preferences: Any) -> dict[str, Any]:
    """Return the log-likelihood of each held-out preference by each model, (N_TIMES, n)."""
    import crowdrank as cr

    likelihoods = {name: np.empty((N_TIMES, len(preferences))) for name in MODELS}
    for time in range(N_TIMES):
        fold = np.random.default_rng(time).permutation(len(preferences)) % N_FOLDS
        for part in range(N_FOLDS):
            learned, held = preferences.select(fold != part), preferences.select(fold == part)
            for name, (method, control) in MODELS.items():
                consensus = cr.aggregate(learned, method, control=control or None, robust="none")
                likelihoods[name][time, fold == part] = -np.logaddexp(0.0, -held.outcome * log_odds(consensus, held))
            sys.stderr.write(f"  {time * N_FOLDS + part + 1} of {N_TIMES * N_FOLDS}\n")
    return likelihoods


def alpaca_correlations(folder: Path) -> list[tuple[str, str, float]]:
    """Return transform, covariates and rank correlation with the official length-controlled win rates."""
    from scipy.stats import spearmanr

    import crowdrank as cr

    folder = folder / "alpaca-eval-judges"
    answers = pl.read_csv(folder / "answers.csv.gz")
    table = pl.read_csv(folder / "judgments.csv.gz").filter(
        (pl.col("judge") == "weighted_alpaca_eval_gpt4_turbo") & (pl.col("left") != pl.col("right"))
    )
    table = table.drop_nulls("preference")
    for side in ("left", "right"):
        shown = answers.rename({"item": side, **{style: f"{style}_{side}" for style in STYLE}})
        table = table.join(shown, on=["query", side], how="inner")
    sides = {"right": pl.col("preference") - 1, "left": 2 - pl.col("preference")}
    rows = pl.concat([table.with_columns(winner=pl.lit(side), weight=weight) for side, weight in sides.items()])
    rows = rows.filter(pl.col("weight") > 1e-6)
    official = pl.read_csv(folder / "leaderboard.csv").drop_nulls("length_controlled_winrate")
    rate = dict(official.select("item", "length_controlled_winrate").rows())
    lines = []
    for transform in ("ratio", "log", "difference", "tanh"):
        names = [f"{style}:{transform}" for style in STYLE]
        preferences = cr.Preferences.from_frame(rows, covariates=names).across_queries()
        ids = preferences.items.ids.to_list()
        known = [place for place, item in enumerate(ids) if item in rate]
        for what, control in (("none", None), ("length", ["length"]), ("all four", list(STYLE))):
            scores = cr.aggregate(preferences, "bradley_terry", control=control, robust="none").scores
            figure = spearmanr(scores[known], [rate[ids[place]] for place in known])[0]
            lines.append((transform, what, float(figure)))
    return lines


def judgebench(folder: Path) -> Any:
    """Return the preferences of seven judges as they were shown, in both orders, with lengths."""
    import crowdrank as cr

    table = pl.read_csv(folder / "judgebench" / "judgments.csv.gz").drop_nulls("decision")
    table = table.join(pl.read_csv(folder / "judgebench" / "pairs.csv.gz"), on="pair")
    first, second = (pl.when(pl.col("swapped") == swapped) for swapped in (0, 1))
    shown = {
        "left": first.then(pl.lit("A")).otherwise(pl.lit("B")),
        "right": second.then(pl.lit("A")).otherwise(pl.lit("B")),
        "length_left": first.then("length_a").otherwise("length_b"),
        "length_right": second.then("length_a").otherwise("length_b"),
        "winner": pl.col("decision").replace_strict({"A>B": "left", "B>A": "right", "A=B": "tie"}, default=None),
    }  # fmt: skip
    rows = table.select(query="pair", annotator="judge", **shown).drop_nulls("winner")
    return cr.Preferences.from_frame(rows, covariates=["length"])


def print_habits(folder: Path) -> None:
    """Print what judges like in llmfao and judgebench, and how criteria go together in newsroom."""
    import crowdrank as cr
    from crowdrank.review.findings import control_sentences

    consensus = cr.aggregate(llmfao(folder, ties=True), control=["length", "lists", "self"], robust="none")
    print("llmfao, ties included:", *control_sentences(consensus.estimates), sep="\n  ")
    ids, parameters = consensus.learned
    for who in ("GPT-3.5", "GPT-4"):
        row = ids.ids.to_list().index(who)
        names = ("bias", "length", "lists", "self")
        coefficients = (f"{name} {parameters[name][row]:+.2f} ± {parameters[f'{name}_sd'][row]:.2f}" for name in names)
        print(f"  {who}: {', '.join(coefficients)}")
    habits = cr.diagnose(judgebench(folder), control=["length"])
    print("judgebench:", *habits.annotator_messages, *habits.notes, sep="\n  ")
    with pl.Config(tbl_cols=-1, tbl_hide_dataframe_shape=True):
        print(habits.annotators().select("annotator", "share_swapped", "swapped_lower", "length"))
    grades = pl.read_csv(folder / "newsroom-criteria" / "grades.csv")
    criteria = ["informativeness", "relevance", "fluency", "coherence"]
    means = grades.group_by("query", "item").agg(pl.col(criteria).mean()).select(criteria)
    print("newsroom-criteria, correlations of mean grades:", means.corr())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_judges", description=__doc__)
    parser.add_argument("--only", choices=["habits"], help="leave out what takes minutes")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ["CROWDRANK_DATA"])
    print_habits(folder)
    if asked.only:
        return
    likelihoods = held_out(llmfao(folder))
    base = likelihoods["latent_score"].mean(axis=0)
    print(f"llmfao, {len(base):,} decided preferences, {N_TIMES} x {N_FOLDS} folds: log-likelihood, and gain")
    for name, values in likelihoods.items():
        gain = values.mean(axis=0) - base
        print(f"  {name:32} {values.mean():.4f}  {gain.mean():+.4f} ± {gain.std() / np.sqrt(len(gain)):.4f}")
    print("alpaca-eval: Spearman's correlation with the official length-controlled rates")
    for transform, what, figure in alpaca_correlations(folder):
        print(f"  {transform:12} {what:12} {figure:.3f}")


if __name__ == "__main__":
    main()
