"""Reliability of comparative judgement beside the truth, with random, adaptive and coin-tossed answers.

``python -m benchmarks.comparative_judgement`` writes docs/evidence/comparative-judgement.md.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import crowdrank as cr

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.adaptive_designs import campaign

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "comparative-judgement.md"
SEEDS = 14
NAMES = ("adjusted", "split_half", "separation")


def interval(values) -> str:
    """Mean and a 95 % interval of it over crowds."""
    values = np.asarray(values, float)
    width = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} ± {width:.2f}".replace("0.", ".")


def by_rounds(seed, *, near, spread, n_items=60, per_item=14) -> tuple[cr.Preferences, np.ndarray]:
    """Judgements of pairs that the scheme ``chained`` asks for in rounds, and the scripts' true quality."""
    rng = np.random.default_rng(seed)
    scores, slopes = rng.normal(0.0, spread, n_items), rng.normal(1.0, 0.3, 9)
    names = [f"s{one:03d}" for one in range(n_items)]
    rows, votes = [], None
    while votes is None or len(rows) < n_items * per_item // 2:
        asked = cr.propose(
            votes, "chained", {"item": names}, params={"least": per_item if rows else 4, "near": near},
            budget=n_items if rows else None, seed=seed + len(rows),
        )  # fmt: skip
        for left, right in asked.select("left", "right").rows():
            gap, who = scores[int(left[1:])] - scores[int(right[1:])], int(rng.integers(9))
            won = rng.random() < 1 / (1 + np.exp(-slopes[who] * gap))
            rows.append((f"a{who}", "q", left, right, "left" if won else "right"))
        if not len(asked):
            break
        votes = cr.Preferences.from_rows(rows)
    return votes, scores[[int(one[1:]) for one in votes.items.ids]]


def described(found, truth) -> str:
    """Cells of a table: the truth, what is said, and how often its interval holds the truth."""
    held = sum(one["adjusted_lower"] <= t <= one["adjusted_upper"] for one, t in zip(found, truth, strict=True))
    cells = [interval([one[name] for one in found]) for name in NAMES]
    return f"{interval(truth)} | {' | '.join(cells)} | {held} of {len(truth)}"


def squared(preferences, scores, spread) -> float:
    """Squared correlation of the scale with the truth."""
    return np.corrcoef(cr.aggregators.BradleyTerry().scores(preferences), scores)[0, 1] ** 2 if spread else 0.0


def rounds_asked() -> list[str]:
    """Rows of the table of our own rounds, some of whose pairs are near each other."""
    rows = []
    for near in (0.0, 0.5, 1.0):
        for spread, said in ((0.0, "a coin"), (1.0, "1"), (2.0, "2")):
            drawn = [by_rounds(500 + seed, near=near, spread=spread) for seed in range(SEEDS)]
            found = [cr.moderate(votes).reliability for votes, _ in drawn]
            truth = [squared(votes, scores, spread) for votes, scores in drawn]
            rows.append(f"| {near:g} | {said} | {described(found, truth)} |")
            print(rows[-1], flush=True)
    return rows


def reliabilities() -> list[str]:
    """Rows of the first table."""
    rows = []
    for n_items, per_item in ((60, 14), (150, 10)):
        for adaptive in (False, True):
            for spread, said in ((0.0, "a coin"), (1.0, "1"), (2.0, "2")):
                drawn = [
                    campaign(100 + seed, n_items=n_items, per_item=per_item, spread=spread, adaptive=adaptive)
                    for seed in range(SEEDS)
                ]
                found = [cr.moderate(one.preferences).reliability for one in drawn]
                truth = [squared(one.preferences, one.scores, spread) for one in drawn]
                flagged = sum(one["adaptive"] for one in found)
                design = "adaptive" if adaptive else "random"
                rows.append(
                    f"| {n_items} x {per_item} | {design} | {said} | {described(found, truth)} | {flagged} of {SEEDS} |"
                )
                print(rows[-1], flush=True)
    return rows


def judges_found() -> str:
    """How often judges who toss a coin, and others, are said not to fit."""
    odd, fine = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        scores, slopes = rng.normal(0, 2, 40), np.array([0.0] + [1.0] * 9)
        first = rng.integers(40, size=500)
        second = (first + rng.integers(1, 40, size=500)) % 40
        who = rng.integers(10, size=500)
        won = rng.random(500) < 1 / (1 + np.exp(-slopes[who] * (scores[first] - scores[second])))
        table = {"left": first, "right": second, "annotator": who, "winner": np.where(won, "left", "right").tolist()}
        said = dict(cr.moderate(cr.Preferences.from_frame(table)).judges.select("judge", "misfit").rows())
        odd.append(said[0])
        fine += [said[one] for one in range(1, 10)]
    return (
        f"Of ten judges with about 50 judgements each, one tosses a coin: said not to fit in {sum(odd)} of {len(odd)} "
        f"crowds; of the others {sum(fine)} of {len(fine)} were (one crowd in twenty may have one)."
    )


def grades_found() -> list[str]:
    """Rows of the table of grades: how often the likeliest grade is right, and how sure it was said to be."""
    rows = []
    for n_anchors in (6, 12, 24):
        right, sure = [], []
        for seed in range(SEEDS):
            drawn = campaign(300 + seed, n_items=60, per_item=14, spread=2.0, adaptive=False)
            grade = np.digitize(drawn.scores, [-2.0, 0.0, 2.0])
            ids = drawn.preferences.items.ids.to_list()
            # anchors of every grade, as a board would choose them
            order = np.argsort(drawn.scores)[np.linspace(2, 57, n_anchors).astype(int)]
            anchors = {"item": [ids[one] for one in order], "grade": grade[order].tolist()}
            table = cr.moderate(drawn.preferences, anchors=anchors).scripts
            rest = table.filter(table["anchor"].is_null())
            true = [str(grade[ids.index(one)]) for one in rest["script"]]
            chances = rest.select([name for name in rest.columns if name.startswith("P(")]).to_numpy().max(axis=1)
            right.append(np.mean(rest["grade"].to_numpy() == np.array(true)))
            sure.append(chances.mean())
        rows.append(f"| {n_anchors} | {interval(right)} | {interval(sure)} |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    rounds, first, judges, grades = rounds_asked(), reliabilities(), judges_found(), grades_found()
    PAGE.write_text(
        f"""# Comparative judgement, measured

Simulated judges, {SEEDS} crowds a row; means with 95 % intervals over crowds. Adaptive rounds compare scripts that stand near
each other by the answers so far, as adaptive tools do. *Truth* is the squared correlation of the scale with the scripts' true
quality; with answers by a coin there is none. The last columns: how often the interval of the adjusted reliability holds the
truth, and how often pairs are said to be chosen by the scale. `python -m benchmarks.comparative_judgement` makes this page.

| Scripts x judgements of each | Pairs | Spread of scripts | Truth | Adjusted | Split-half | Scale separation | Held | Said adaptive |
|---|---|---|--:|--:|--:|--:|--:|--:|
{chr(10).join(first)}

With random pairs all three say the same. With adaptive pairs and coins, scale separation and split halves (by judges) both report
an order that is not there: the halves share pairs that all answers chose. The adjusted reliability does not mind how pairs were
chosen. Its interval is for the squared correlation of this scale with the true one, so it holds what chance leaves open in these
scripts as well.

## Rounds that mix random pairs in

60 scripts. The scheme `chained` asks for four judgements of each at random, then for rounds of 60 pairs until each script has 14.
*Near* is the share of the pairs of a round that lie near each other on the scale so far; the others stay random.

| Near | Spread of scripts | Truth | Adjusted | Split-half | Scale separation | Held |
|--:|---|--:|--:|--:|--:|--:|
{chr(10).join(rounds)}

With half of the pairs random, scale separation and split halves grow less where there is nothing to find, and scripts that lie apart
are ordered as well as with near pairs only. No mixture makes them honest with coins: report the adjusted reliability.

## Judges and grades

{judges}

Grades from anchors: 60 scripts, 14 judgements of each, four grades. How often the likeliest grade of the other scripts is right,
and how sure it is said to be.

| Anchors | right | said |
|--:|--:|--:|
{chr(10).join(grades)}
"""  # noqa: E501
    )


if __name__ == "__main__":
    main()
