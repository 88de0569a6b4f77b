"""Rankers learned from noisy grades, at four budgets and by number of labelled queries.

``python -m benchmarks.ranker_choice`` measures them.

MQ2008 and OHSUMED are looked for in ``CROWDRANK_DATA``; corpora are drawn beside them. Grades come from 50 simulated
annotators of accuracy N(.7, .2), their mean is learned, and rankers are measured against the truth on test queries. The
table goes to ``docs/evidence/ranker-choice.md``, every figure to ``ranker-choice.csv`` beside it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SETS = ("letor-mq2008", "letor-ohsumed")
BUDGETS = {
    "1 an item": (1.0, 1), "3 an item": (1.0, 3), "1, tenth of items": (0.1, 1), "3, tenth of items": (0.1, 3),
}  # fmt: skip
"""Share of the items that are judged, and how many grades each gets."""

N_QUERIES = (10, 30, 100, 300)
INTERACTIONS = (0.0, 0.4, 0.8)
SINGLE = ("list_mle", "list_net", "rank_svm", "lambda_mart", "LightGBM's defaults")
MARGIN = 0.005
"""How far auto may be behind the best single ranker."""


class Cell(NamedTuple):
    """Rows to learn from and to test on, as (X, y, qid) each."""

    table: str
    data: str
    budget: str
    repeat: int
    train: Any
    test: Any


def crowd_grades(grade: Any, share: float, k: int, seed: int) -> tuple[Any, Any, Any]:
    """Return the items that are judged, and the annotator and grade of each of their ``k`` judgments, (k, n) each."""
    import numpy as np

    rng = np.random.default_rng(seed)
    levels = int(grade.max()) + 1
    chosen = np.sort(rng.permutation(len(grade))[: round(share * len(grade))])
    accuracy = np.clip(rng.normal(0.7, 0.2, 50), 0.05, 1.0)
    truth, annotators, given = grade[chosen], [], []
    for _ in range(k):
        luck, who = rng.random(len(chosen)), rng.integers(0, 50, len(chosen))
        wrong = (truth + rng.integers(1, levels, len(chosen))) % levels
        annotators.append(who)
        given.append(np.where(luck < accuracy[who], truth, wrong))
    return chosen, np.array(annotators), np.array(given)


def noisy(grade: Any, share: float, k: int, seed: int) -> tuple[Any, Any]:
    """Return the items that are judged, and the mean of their grades by a crowd."""
    chosen, _, given = crowd_grades(grade, share, k, seed)
    return chosen, given.sum(axis=0) / k


class Fold(NamedTuple):
    """One fold of a set: features, grade and query of all its items, the rows to learn from and to test
    on, and the queries to learn from.
    """

    name: str
    number: int
    X: Any
    grade: Any
    query: Any
    train: Any
    test: Any
    queries: Any

    @property
    def tested(self) -> tuple[Any, Any, Any]:
        """The rows to test on, as (X, y, qid)."""
        return self.X[self.test], self.grade[self.test], self.query[self.test]


def public_folds(folds: range) -> Iterator[Fold]:
    """Yield the folds of both public sets."""
    import numpy as np

    from crowdrank.datasets import load

    for name in SETS:
        data = load(name)
        features = data.features
        query = np.array([str(query) for query in features.items.queries])[features.items.query]
        for number in folds:
            fold = data.folds[number]
            train, test = (np.flatnonzero(np.isin(query, ids)) for ids in (fold.train, fold.test))
            yield Fold(name, number, features.matrix, features.grade, query, train, test, fold.train)


def public_cells(folds: range = range(5)) -> Iterator[Cell]:
    """The folds of both sets at each budget, and parts of the queries of MQ2008 with three grades per item."""
    import numpy as np

    for fold in public_folds(folds):
        name, number, X, grade, query, train, *_ = fold
        for budget, (share, k) in BUDGETS.items():
            chosen, y = noisy(grade[train], share, k, 100 + number)
            rows = train[chosen]
            yield Cell("budgets", name, budget, number, (X[rows], y, query[rows]), fold.tested)
        if name == SETS[0] and number % 2 == 0:
            for n in N_QUERIES:
                some = np.random.default_rng(number).permutation(list(fold.queries))[:n]
                rows = train[np.isin(query[train], some)]
                y = noisy(grade[rows], 1.0, 3, 200 + number)[1]
                yield Cell("queries", name, str(n), number, (X[rows], y, query[rows]), fold.tested)


def joint_cells(folds: range = range(5)) -> Iterator[tuple[Cell, Any, Any]]:
    """The cells of the budgets again, with the crowd's single grades and the features of the training items."""
    import numpy as np

    from crowdrank import Features, Grades

    for fold in public_folds(folds):
        name, number, X, grade, query, train, *_ = fold
        features = Features.from_arrays(query[train], train.astype(str), X[train])
        for budget, (share, k) in BUDGETS.items():
            chosen, who, given = crowd_grades(grade[train], share, k, 100 + number)
            rows = np.tile(train[chosen], k)
            cell = Cell("joint", name, budget, number, None, fold.tested)
            table = {"annotator": who.ravel(), "query": query[rows], "item": rows.astype(str)}
            yield cell, Grades.from_frame({**table, "grade": given.ravel()}), features


def drawn_cells(repeats: range = range(2)) -> Iterator[Cell]:
    """Drawn corpora of several sizes, with three grades per item."""
    from crowdrank.simulate import draw_corpus

    for interactions in INTERACTIONS:
        for n in (*N_QUERIES, 1000):
            for seed in repeats:
                both = [draw_corpus(m, interactions=interactions, function=seed, seed=seed + m) for m in (n, 299)]
                rows = [
                    (drawn.features.matrix, drawn.truth.truth.align(drawn.features.items), drawn.features.items.query)
                    for drawn in both
                ]
                X, grade, query = rows[0]
                name = f"drawn, interactions {interactions:g}"
                yield Cell("queries", name, str(n), seed, (X, noisy(grade, 1.0, 3, seed)[1], query), rows[1])


def fitted(name: str, cell: Cell) -> Any:
    """Return the ranker of a name that learned from the rows of a cell."""
    from crowdrank.registry import make

    X, y, qid = cell.train
    params = {"n_trees": 100} if name not in (*SINGLE[:4], "auto") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make("ranker", "lambda_mart" if params else name, params).fit(X, y, qid=qid)


def measure(cells: Iterator[Cell], path: Path) -> None:
    """Append the nDCG@10 of every ranker in every cell to a CSV file, those already there left out."""
    import csv

    from crowdrank.metrics import ndcg

    known = {tuple(row[:5]) for row in csv.reader(path.open())} if path.exists() else set()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow(["table", "data", "budget", "repeat", "ranker", "ndcg", "taken"])
        for cell in cells:
            for name in (*SINGLE, "auto"):
                key = (*cell[:3], str(cell.repeat), name)
                if key in known:
                    continue
                ranker = fitted(name, cell)
                X, y, qid = cell.test
                value = float(ndcg(y, ranker.predict(X), qid=qid, k=10, empty="skip"))
                taken = type(ranker.scorer).__name__ if name == "auto" else ""
                writer.writerow([*key, f"{value:.5f}", taken])
                file.flush()
                sys.stderr.write(f"{key} {value:.3f} {taken}\n")


JOINT = ("latent_score", "iam")


def joint_ranker(name: str, grades: Any, features: Any) -> Any:
    """Return the ranker of a joint method that learned from single grades."""
    from crowdrank import train

    options = {"ranker": "list_mle"} if name == "iam" else {}
    return train(grades, features, joint=name, **options).ranker


def measure_joint(path: Path, names: tuple[str, ...] = JOINT, folds: range = range(5)) -> None:
    """Append the nDCG@10 of joint methods at the same budgets; ``iam`` is measured where it once collapsed."""
    import csv

    from crowdrank.metrics import ndcg

    known = {tuple(row[:5]) for row in csv.reader(path.open())}
    with path.open("a", newline="") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell, grades, features in joint_cells(folds):
            for name in names:
                key = (*cell[:3], str(cell.repeat), name)
                if key in known or (name == "iam" and cell.budget != "1, tenth of items"):
                    continue
                X, y, qid = cell.test
                value = float(ndcg(y, joint_ranker(name, grades, features).predict(X), qid=qid, k=10, empty="skip"))
                csv.writer(file).writerow([*key, f"{value:.5f}", ""])
                file.flush()
                sys.stderr.write(f"{key} {value:.3f}\n")


def page(path: Path) -> str:
    """The tables, from the CSV file."""
    import polars as pl

    rows = pl.read_csv(path, schema_overrides={"budget": pl.String})
    budgets = rows.filter(pl.col("table") == "budgets")
    means = budgets.group_by("ranker").agg(pl.col("ndcg").mean())
    best = means.filter(pl.col("ranker") != "auto").sort("ndcg").tail(1)
    auto = float(means.filter(pl.col("ranker") == "auto")["ndcg"][0])
    cells = budgets.group_by("data", "budget", "ranker").agg(pl.col("ndcg").mean())
    behind = (
        cells.group_by("data", "budget")
        .agg(
            best=pl.col("ndcg").filter(pl.col("ranker") != "auto").max(),
            auto=pl.col("ndcg").filter(pl.col("ranker") == "auto").first(),
        )
        .select((pl.col("best") - pl.col("auto")).mean())
        .item()
    )
    worst = _worst_two_folds(budgets)
    taken = (
        rows.filter(pl.col("ranker") == "auto")
        .group_by("table", "data", "budget")
        .agg(pl.col("taken").sort().str.join(" "))
    )
    return TEXT.format(
        budgets=_table(budgets, taken), queries=_table(rows.filter(pl.col("table") == "queries"), taken),
        auto=auto, verdict="above" if auto - best["ndcg"][0] >= -MARGIN else "BELOW", margin=MARGIN,
        best=best["ranker"][0], best_ndcg=best["ndcg"][0], ahead=auto - best["ndcg"][0], by_row=-behind,
        n_folds=budgets["repeat"].n_unique(), folds=_by_fold(budgets), joint=_joint_table(rows), worst_two=worst,
        worst_verdict="above" if worst >= -MARGIN else "BELOW",
    )  # fmt: skip


def _joint_table(rows: Any) -> str:
    """Joint methods beside the best ranker of two stages at each budget, with the difference over the folds."""
    import polars as pl

    def figures(table: str, name: str) -> dict[int, float]:
        here = cells.filter((pl.col("table") == table) & (pl.col("ranker") == name))
        return dict(here.select("repeat", "ndcg").rows())

    lines = [
        "| Data | Labels | best of two stages | " + " | ".join(f"{name} | less the best" for name in JOINT) + " |",
        "|---|---|---|" + "---|---|" * len(JOINT),
    ]
    for data, budget in (
        rows.filter(pl.col("table") == "budgets").select("data", "budget").unique(maintain_order=True).rows()
    ):
        cells = rows.filter((pl.col("data") == data) & (pl.col("budget") == budget))
        staged = {name: figures("budgets", name) for name in SINGLE}
        best = max(staged, key=lambda name: sum(staged[name].values()))
        shown = [f"{best} {_mean(staged[best].values())}"]
        for name in JOINT:
            own = figures("joint", name)
            apart = pl.Series([own[fold] - staged[best][fold] for fold in own])
            shown += [_mean(own.values()), f"{apart.mean():+.3f} ± {apart.std():.3f}"] if len(own) > 1 else ["-", "-"]
        lines.append(f"| {data} | {budget} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _mean(values: Any) -> str:
    """A mean as it is printed."""
    numbers = list(values)
    return f"{sum(numbers) / len(numbers):.3f}".lstrip("0")


def _by_fold(budgets: Any) -> str:
    """Means of both sets and all budgets, a row for each fold."""
    import polars as pl

    order = [*SINGLE, "auto"]
    means = budgets.group_by("repeat", "ranker").agg(pl.col("ndcg").mean())
    lines = [f"| Fold | {' | '.join(order)} | auto less the best |", "|---|" + "---|" * (len(order) + 1)]
    for number in sorted(means["repeat"].unique()):
        here = dict(means.filter(pl.col("repeat") == number).select("ranker", "ndcg").rows())
        ahead = here["auto"] - max(here[name] for name in SINGLE)
        figures = [f"{here[name]:.3f}".lstrip("0") for name in order]
        lines.append(f"| {number + 1} | {' | '.join(figures)} | {ahead:+.4f} |")
    return "\n".join(lines)


def _worst_two_folds(budgets: Any) -> float:
    """The smallest difference of auto to the best single ranker, over any two of the folds."""
    from itertools import combinations

    import polars as pl

    differences = []
    for two in combinations(budgets["repeat"].unique().to_list(), 2):
        means = budgets.filter(pl.col("repeat").is_in(two)).group_by("ranker").agg(pl.col("ndcg").mean())
        here = dict(means.select("ranker", "ndcg").rows())
        differences.append(here["auto"] - max(here[name] for name in SINGLE))
    return min(differences)


def _table(rows: Any, taken: Any) -> str:
    """Means by set and budget, a column for each ranker, and what auto took."""
    import polars as pl

    order = [*SINGLE, "auto"]
    lines = [f"| Data | Labels | {' | '.join(order)} | taken by auto |", "|---|---|" + "---|" * (len(order) + 1)]
    for data, budget in rows.select("data", "budget").unique(maintain_order=True).rows():
        here = rows.filter((pl.col("data") == data) & (pl.col("budget") == budget))
        shown = [here.filter(pl.col("ranker") == name)["ndcg"].mean() for name in order]
        figures = [f"{value:.3f}".lstrip("0") for value in shown]
        counts = taken.filter((pl.col("data") == data) & (pl.col("budget") == budget))["taken"][0].split()
        said = ", ".join(f"{counts.count(name)} {name}" for name in sorted(set(counts)))
        lines.append(f"| {data} | {budget} | {' | '.join(figures)} | {said} |")
    return "\n".join(lines)


TEXT = """# Which ranker, by budget and by number of labelled queries

nDCG@10 on test queries against expert grades (or the drawn truth), queries without a relevant item left out. Labels are
means of grades by 50 simulated annotators of accuracy N(.7, .2); wrong grades are any of the others. Made by
`python -m benchmarks.ranker_choice`; every figure is in `ranker-choice.csv`.

`auto` compares rankers on held-out queries whose grades are as noisy as those learned from. Over both sets,
{n_folds} folds and four budgets its mean is {auto:.4f}; the best single ranker with its defaults is {best} with
{best_ndcg:.4f}, a difference of {ahead:+.4f} ({verdict} the floor of -{margin}). Against whichever default ranker is
best in each row of the first table, which nobody knows beforehand, the mean difference is {by_row:+.4f}.

{budgets}

By fold, means of both sets and the four budgets. The rule of `auto` was fixed on three of the folds and these were not
noted, so every two folds were looked at: the smallest difference of `auto` to the best single ranker over two is
{worst_two:+.4f} ({worst_verdict} the floor).

{folds}

By number of labelled queries, three grades per item. MQ2008: parts of the training queries of three folds. Drawn
corpora (`simulate.draw_corpus`, 19 items a query, 20 features): the larger the share of interactions, the less a linear
ranker can learn. `lambda_mart` chooses the size and number of its trees by the data; "LightGBM's defaults" are 100
trees of 31 leaves.

{queries}

Joint methods from the single grades of the same crowds, five seeds, one for each fold: `latent_score` with features in
its linear form against the best of `two_stage` (mean grades, then any of the rankers above, the best chosen by the
same test queries); means over the folds, and mean and standard deviation of the difference. `iam`, of `list_mle`, is
shown where its annotators' rankers have least to learn from.

{joint}

The rule of `auto` (the simplest within a standard error of the best), its ridges and the sizes of trees were fixed on
three folds of the two public sets at the four budgets, against taking the best mean; the other two folds and the drawn
corpora were measured afterwards.
"""


GUIDE = ROOT / "docs" / "production.md"
GUIDE_MARKS = "<!-- rankers: made by python -m benchmarks.ranker_choice -->", "<!-- end of rankers -->"
GUIDE_RANKERS = ("list_mle", "rank_svm", "lambda_mart", "auto")


def guide_table(path: Path) -> str:
    """Rankers by number of labelled queries, on MQ2008 and on the drawn corpora with most interactions."""
    import polars as pl

    rows = pl.read_csv(path, schema_overrides={"budget": pl.String}).filter(pl.col("table") == "queries")
    means = rows.group_by("data", "budget", "ranker").agg(pl.col("ndcg").mean())
    figures = {key[:3]: key[3] for key in means.rows()}
    sets = {"MQ2008": SETS[0], "interactions": f"drawn, interactions {INTERACTIONS[-1]:g}"}
    heads = [f"{short}: `{name}`" for short in sets for name in GUIDE_RANKERS]
    lines = [f"| Labelled queries | {' | '.join(heads)} |", "|--:|" + "--:|" * len(heads)]
    for n in (*N_QUERIES, 1000):
        values = [figures.get((data, str(n), name)) for data in sets.values() for name in GUIDE_RANKERS]
        cells = ["-" if value is None else f"{value:.3f}".lstrip("0") for value in values]
        lines.append(f"| {n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_guide_table(text: str, path: Path) -> str:
    """The guide with the table between its marks."""
    first, last = GUIDE_MARKS
    before, after = text.split(first)[0], text.split(last)[1]
    return f"{before}{first}\n\n{guide_table(path)}\n\n{last}{after}"


if __name__ == "__main__":
    figures = ROOT / "docs" / "evidence" / "ranker-choice.csv"
    measure(public_cells(), figures)
    measure(drawn_cells(), figures)
    measure_joint(figures)
    (ROOT / "docs" / "evidence" / "ranker-choice.md").write_text(page(figures))
    GUIDE.write_text(with_guide_table(GUIDE.read_text(), figures))
