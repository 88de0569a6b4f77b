"""What audit, fragility, changed, drift and shared error promise, measured: the tables of the guide on trust.

``python -m benchmarks.audit [part ...]`` reads public sets in ``CROWDRANK_DATA`` and prints each promise with what was
found; all parts together write ``docs/evidence/audit.md``. The parts are those of ``PARTS``.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from tests.tiring_crowds import order_right, share_right, tiring_classes, tiring_preferences

import crowdrank as cr
from crowdrank.auditing.program_audit import Figure, corrected_row

JUDGES = ("gpt_4", "claude_3_opus", "gpt_3_5")
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "audit.md"
HEAD = """# What an audit promises, measured

Made by `python -m benchmarks.audit` on `arena-people-and-judges`, `people-and-programs`, `pandalm-testset`,
`llmbar-judges`, `judgebench` and `trec2011-crowd`, and on simulated crowds. What it means:
[May I trust this judge?](../may-i-trust-this-judge.md)

"""


def folder():
    return Path(os.environ["CROWDRANK_DATA"])


def arena():
    return pl.read_csv(folder() / "arena-people-and-judges" / "votes.csv.gz")


def preferences(parts):
    """Votes of some columns, each of some rows."""
    frames = [
        rows.select(query="num", left="model_a", right="model_b", annotator=pl.lit(who), winner=pl.col(who))
        for who, rows in parts
    ]
    return cr.Preferences.from_frame(pl.concat(frames)).across_queries()


def ranks(n_seeds=3):
    """Mean width of 95 % rank intervals, and the share that hold the rank by all votes of people."""
    table, rng = arena(), np.random.default_rng(0)
    truth = dict(cr.aggregate(preferences([("human", table)]), "bradley_terry").frame().select("item", "rank").rows())
    cases = [
        ("people", 500, None), ("people", 2000, None), ("people and gpt_4", 500, "gpt_4"),
        ("people and gpt_4", 2000, "gpt_4"), ("gpt_4", 0, "gpt_4"), ("claude_3_opus", 0, "claude_3_opus"),
    ]  # fmt: skip
    widths = {}
    for name, n, judge in cases:
        found = []
        for _ in range(n_seeds if n else 1):
            sample = table[np.sort(rng.choice(len(table), n, replace=False))]
            parts = [("human", sample)] * bool(n) + [(judge, table)] * (judge is not None)
            trusted = ["human"] if n and judge else None
            fitted = cr.aggregate(preferences(parts), "latent_score", trusted=trusted, robust="none")
            rows = fitted.intervals(0.95).select("item", "rank_lower", "rank_upper").rows()
            found.append((np.mean([high - low for _, low, high in rows]),
                          np.mean([low <= truth[item] <= high for item, low, high in rows])))  # fmt: skip
        widths[name, n], covered = np.mean(found, axis=0)
        yield (
            f"{name}, {n} votes of people: places of a rank interval, coverage",
            f"{widths[name, n]:.1f}, {covered:.2f}",
            "",
            "",
        )
    ratio = widths["people and gpt_4", 500] / widths["people", 500]
    yield "500 votes with gpt_4 against people alone, width", f"{ratio:.2f}", "at most .6", ratio <= 0.6


def corrected(own, said, sizes, name, n_draws=2000):
    """Coverage of 90 % intervals and width relative to people alone, people being a sample of ``own``."""
    rng = np.random.default_rng(0)
    for n in sizes:
        rows = []
        for _ in range(n_draws):
            seen = np.full(len(own), np.nan)
            chosen = rng.choice(len(own), n, replace=False)
            seen[chosen] = own[chosen]
            row = corrected_row(Figure("mean", seen, said), np.arange(len(own)), 0.9)
            rows.append((row["lower"] <= own.mean() <= row["upper"], row["relative_width"]))
        covered, width = np.mean(rows, axis=0)
        yield name, n, covered, width


def shares():
    """Coverage of 90 % intervals of the share of wins of the first model, and width relative to people alone."""
    table, code = arena(), {"model_a": 1.0, "model_b": 0.0}
    people = np.array([code.get(one, 0.5) for one in table["human"]])
    for judge in JUDGES:
        said = np.array([code.get(one, 0.5) for one in table[judge]])
        for name, n, covered, width in corrected(people, said, (200, 500, 2000), judge):
            floor = "coverage .88 to .94" + ("; width at most .9" if judge == "gpt_4" else "")
            holds = 0.88 <= round(covered, 2) <= 0.94 and (judge != "gpt_4" or width <= 0.9)
            yield f"share of wins, {name}, {n} votes: coverage, width", f"{covered:.3f}, {width:.2f}", floor, holds


def means():
    """Coverage of 90 % intervals of the mean grade with people on a sample of items; the truth is all of people's."""
    for name in ("cebab_stars", "summeval"):
        table = pl.read_csv(folder() / "people-and-programs" / f"{name}.csv.gz").with_columns(
            pl.col("label").cast(float)
        )
        item = ["criterion", "item"]
        people = table.filter(kind="person").group_by(item).agg(pl.col("label").mean()).sort(item)
        for program, part in table.filter(kind="program").sort("annotator").group_by("annotator", maintain_order=True):
            both = people.join(part.select(*item, said="label"), on=item, nulls_equal=True).sort(item)
            sides = both["label"].to_numpy(), both["said"].to_numpy()
            for who, n, covered, width in corrected(*sides, (50, 200), program[0]):
                holds = round(covered, 2) >= 0.88
                yield (f"mean grade, {name}, {who}, {n} of {len(both):,} items: coverage, width",
                       f"{covered:.3f}, {width:.2f}", "coverage .88 or more", holds)  # fmt: skip


def fragility():
    """The least number of votes that decide the first place, on the Arena and of a million votes."""
    table, wanted = arena(), {"human": (112, 97), "gpt_4": (14, 14), "claude_3_opus": (23, 22), "gpt_3_5": (26, 24)}
    for who, floor in wanted.items():
        votes = preferences([(who, table)])
        found = cr.fragility(cr.aggregate(votes, "bradley_terry", params={"ridge": 0.1}), votes).votes
        numbers = (found.by_influence, found.number)
        yield (
            f"votes that decide, {who}: by influence, by refits",
            f"{numbers[0]}, {numbers[1]}",
            f"{floor}",
            numbers == floor,
        )
    rng = np.random.default_rng(0)
    n, scores = 1_000_000, rng.normal(size=100)
    left = rng.integers(0, 100, n)
    right = (left + rng.integers(1, 100, n)) % 100
    won = rng.logistic(size=n) < scores[left] - scores[right]
    frame = pl.DataFrame({"left": left, "right": right, "winner": np.where(won, "left", "right")})
    votes = cr.Preferences.from_frame(frame)
    fitted = cr.aggregate(votes, "bradley_terry")
    cr.fragility(fitted, votes)
    began = time.perf_counter()
    found = cr.fragility(fitted, votes).votes
    took = time.perf_counter() - began
    yield f"a million votes, of which {found.number:,} decide: seconds", f"{took:.1f}", "under 2", took < 2


def looks(n=100, n_days=60):
    """False alarms of two runs that do not differ, looked at every day; prompts come in any order, judges in turn."""
    rng = np.random.default_rng(0)
    alarms = {"anytime": 0, "once": 0}
    names = rng.permutation(7 * n_days)
    for _ in range(n):
        value = np.clip(np.round(3 + rng.normal(size=(7 * n_days, 1, 1)) + rng.normal(size=(7 * n_days, 2, 2))), 1, 5)
        rows = [[(f"j{j}", f"p{names[k]}", "m", value[k, j, run]) for k in range(7 * n_days) for j in range(2)]
                for run in range(2)]  # fmt: skip
        day = np.array([k // 7 + j for k in range(7 * n_days) for j in range(2)])
        tables = [cr.Grades.from_rows(one, levels=range(1, 6)) for one in rows]
        for kind in alarms:
            alarms[kind] += any(
                cr.changed(*(one.select(day <= today).across_queries() for one in tables), looks=kind)
                .counts()["changed"][0] for today in range(1, n_days)
            )  # fmt: skip
    for kind, number in alarms.items():
        floor, holds = ("at most .05", number <= 0.05 * n) if kind == "anytime" else ("", "")
        yield f"false alarms over {n_days} looks, {kind}, of {n} runs", f"{number / n:.3f}", floor, holds


def drift(n=20):
    """What two halves of each annotator gain where all tire, and how often constant crowds are said to change."""
    measures = {"dawid_skene": (tiring_classes, share_right), "latent_score": (tiring_preferences, order_right)}
    for method, (make, measure) in measures.items():
        found, used, flagged = [], 0, 0
        for seed in range(n):
            judged, truth = make(seed, tired=True)
            fits = [cr.aggregate(judged, method, params={"drift": kind}) for kind in ("none", "halves")]
            found.append([measure(fit, truth) for fit in fits])
            judged, _ = make(1000 + seed, tired=False)
            constant = cr.aggregate(judged, method, params={"drift": "halves"})
            used += constant.estimates["drift"]["variance"] > 0
            flagged += cr.findings(cr.aggregate(judged, method), judged).of("changes") is not None
        plain, halves = np.mean(found, axis=0)
        gain = 0.027 if method == "dawid_skene" else 0.036
        holds = halves - plain >= gain
        yield f"all tire, {method}: constant, two halves", f"{plain:.3f}, {halves:.3f}", f"gain of {gain}", holds
        yield f"constant crowds said to change, {method}", f"{flagged / n:.2f}", "at most .05", flagged <= 0.05 * n
        yield f"constant crowds with two halves used, {method}", f"{used / n:.2f}", "", ""


def judgebench():
    """Verdicts of seven judges on pairs with a right answer, shown in both orders."""
    pairs = pl.read_csv(folder() / "judgebench" / "pairs.csv.gz")
    sides = {"A>B": "left", "B>A": "right", "A=B": "tie"}
    rows = pl.read_csv(folder() / "judgebench" / "judgments.csv.gz").filter(pl.col("decision").is_in(list(sides)))
    swapped = pl.col("swapped") == 1
    names = {"left": ("B", "A"), "right": ("A", "B")}
    shown = {side: pl.when(swapped).then(pl.lit(one)).otherwise(pl.lit(other)) for side, (one, other) in names.items()}
    winner = pl.col("decision").replace_strict(sides)
    judged = cr.Preferences.from_frame(rows.select(query="pair", annotator="judge", winner=winner, **shown))
    better = dict(pairs.select("pair", "gold").rows())

    def gold(consensus):
        items = consensus.items
        known = [query for query in items.queries.ids if query in better]
        return [[items.code(better[query][side], query) for query in known] for side in (0, 2)]

    return judged, gold


def family_votes(rng, n_families, n_each=3, n_pairs=400, strength=1.0):
    """Pairs judged by families of annotators, each with a view of its own of every pair beside the truth."""
    gap = rng.normal(0, 1.5, n_pairs)
    view = strength * rng.normal(size=(n_families, n_pairs))
    rows = []
    for who in range(n_families * n_each):
        won = gap + view[who // n_each] + rng.logistic(size=n_pairs) > 0
        rows += [(f"a{who}", f"q{k}", "x", "y", "left" if won[k] else "right") for k in range(n_pairs)]
    left, right = ["x"] * n_pairs, ["y"] * n_pairs
    better = [left[k] if gap[k] > 0 else right[k] for k in range(n_pairs)]

    def gold(consensus):
        code = consensus.items.code
        return [[code(one, f"q{k}") for k, one in enumerate(better)],
                [code("y" if one == "x" else "x", f"q{k}") for k, one in enumerate(better)]]  # fmt: skip

    return cr.Preferences.from_rows(rows), gold


def shared():
    """What pairs are said to be on average, and how many are right, if annotators err alone and with shared error."""
    from .sure_pairs import gold_pairs

    sets = {"judgebench": judgebench()}
    for name in ("pandalm-testset/judges", "llmbar-judges", "trec2011-crowd"):
        loaded = cr.datasets.load(name)
        sets[name] = loaded.judgments, lambda fit, truth=loaded.truth: gold_pairs(fit, truth)
    rng = np.random.default_rng(0)
    sets["simulated, 9 who err alone"] = family_votes(rng, 9, 1, strength=0.0)
    sets["simulated, 4 families of 3"] = family_votes(rng, 4, 3)
    sets["simulated, 2 families of 5"] = family_votes(rng, 2, 5)
    for strength, share in ((0.5, "a tenth"), (0.75, "a fifth"), (1.0, "a third"), (2.0, "two thirds")):
        name = f"simulated, 9 whose errors are all shared and {share} of what they see"
        sets[name] = family_votes(rng, 1, 9, strength=strength)
    gaps = []
    for name, (judged, gold) in sets.items():
        cells = []
        for way in ("none", None):
            fit = cr.aggregate(judged, "latent_score", shared=way)
            chance = fit.beats_each(*map(np.asarray, gold(fit)))
            said, right = np.maximum(chance, 1 - chance).mean(), np.mean((chance > 0.5) + 0.5 * (chance == 0.5))
            cells.append(f"{said:.3f}, {right:.3f}")
        if not name.startswith("simulated"):
            gaps.append(abs(said - right))
        yield f"{name}: said, right with shared error (without)", f"{cells[1]} ({cells[0]})", "", ""
    mean = float(np.mean(gaps))
    yield "difference of said and right, mean over the four sets", f"{mean:.3f}", "at most .05", mean <= 0.05


PARTS = {one.__name__: one for one in (ranks, shares, means, fragility, looks, drift, shared)}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    warnings.simplefilter("ignore")
    text = PAGE.read_text() if PAGE.exists() else HEAD
    for name in chosen:
        lines = [f"## {name}\n", PARTS[name].__doc__.splitlines()[0], "", "| What | Found | Promised | Holds |"]
        lines.append("|---|--:|---|---|")
        for what, found, floor, holds in PARTS[name]():
            word = "" if holds == "" else "yes" if holds else "no"
            lines.append(f"| {what} | {found} | {floor} | {word} |")
            print(lines[-1], flush=True)
        rest = [part for part in text.split("\n## ")[1:] if not part.startswith(f"{name}\n")]
        text = "\n## ".join([HEAD.rstrip() + "\n", *rest]).rstrip() + "\n\n" + "\n".join(lines) + "\n"
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
