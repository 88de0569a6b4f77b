"""Sets of labels, sliders and classifiers beside majority, means, crowd-kit and cleanlab, where the truth is known.

``python -m benchmarks.labels_and_numbers`` writes docs/evidence/labels-and-numbers.md; it needs crowd-kit and cleanlab.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import crowdrank as cr
from crowdrank.registry import make

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.test_several_labels import classified, crowd, f1_of

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "labels-and-numbers.md"
SEEDS = 5


def interval(values) -> str:
    """Mean and a 95 % interval of it over crowds."""
    values = np.asarray(values, float)
    return f"{values.mean():.3f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.3f}".replace("0.", ".")


def label_sets() -> list[str]:
    """F1 of sets of labels."""
    import pandas as pd
    from crowdkit.aggregation import BinaryRelevance, DawidSkene, MajorityVote

    rows = []
    for per_item in (3,):
        found: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            votes, holds = crowd(50 + seed, n=150, per_item=per_item)
            ours = cr.aggregate_labels(votes)
            found.setdefault("shared", []).append(f1_of(ours, holds))
            found.setdefault("said", []).append(float(ours.table["expected_f1"].mean()))
            plain = cr.aggregate_labels(votes, method="majority", choose=0.5)
            found.setdefault("majority", []).append(f1_of(plain, holds))
            sets = [text.split("|") if text else [] for text in votes["labels"]]
            frame = pd.DataFrame({"task": votes["item"], "worker": votes["annotator"], "label": sets})
            for name, base in (("relevance", MajorityVote()), ("relevance_ds", DawidSkene(n_iter=30))):
                theirs = BinaryRelevance(base).fit_predict(frame)
                taken = np.array([[f"l{k}" in theirs[f"i{i:03d}"] for k in range(holds.shape[1])] for i in range(150)])
                both = holds.sum(axis=1) + taken.sum(axis=1)
                f1 = np.where(both > 0, 2 * (holds & taken).sum(axis=1) / np.maximum(both, 1), 1.0).mean()
                found.setdefault(name, []).append(float(f1))
        order = ("shared", "said", "majority", "relevance", "relevance_ds")
        rows.append(f"| {per_item} | {' | '.join(interval(found[name]) for name in order)} |")
        print(rows[-1], flush=True)
    return rows


def sliders() -> list[str]:
    """Kendall's tau of scores from sliders."""
    from scipy.stats import kendalltau

    crowds = {
        "own scales and offsets": {}, "all alike": {"scale": 0.0, "offset": 0.0},
        "two of twelve answer 0 or 100": {"odd": 2},
        "60 annotators, 4 numbers each item": {"people": 60, "per_item": 4},
    }  # fmt: skip
    rows = []
    for name, wanted in crowds.items():
        found: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            grades, truth = slider_crowd(seed, **wanted)
            for method in ("location_scale", "mean_grade", "trimmed_mean", "median"):
                scores = make("aggregator", method).fit(grades).scores
                found.setdefault(method, []).append(float(kendalltau(scores, truth)[0]))
        rows.append(f"| {name} | {' | '.join(interval(values) for values in found.values())} |")
        print(rows[-1], flush=True)
    return rows


def slider_crowd(seed, *, scale=0.4, offset=12.0, people=12, per_item=6, odd=0):
    """Numbers from 0 to 100 of 60 items by annotators with scales and offsets of their own."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(50, 15, 60)
    offsets, scales = rng.normal(0, offset, people), np.exp(rng.normal(0, scale, people))
    noise = 12 * np.exp(rng.normal(0, 0.4, people))
    rows = []
    for item in range(60):
        for who in rng.choice(people, per_item, replace=False):
            given = 50 + offsets[who] + scales[who] * (truth[item] - 50) + rng.normal(0, noise[who])
            given = (who % 2) * 100 if who < odd else given
            rows.append((f"w{who}", "q", f"i{item:03d}", float(np.clip(round(given), 0, 100))))
    return cr.Grades.from_rows(rows), truth


def mushra() -> str:
    """Held-out likelihood of the numbers of a listening test, where the public sets are there."""
    import os

    path = Path(os.environ.get("CROWDRANK_DATA", "")) / "neural-codec-mushra" / "grades.csv"
    if not path.exists():
        return "The listening test (neural-codec-mushra) was not at hand."
    said = cr.aggregate(cr.read_judgments(path), "location_scale").estimates["held_out"]
    shown = ", ".join(f"{name} {value:.3f}" for name, value in said.items())
    return f"On a real listening test of 0 to 100 (neural-codec-mushra, 1,512 numbers by 21 listeners) the mean log-likelihood of held-out numbers is: {shown}."  # noqa: E501


def classifiers() -> list[str]:
    """Accuracy of labels with a classifier as one more annotator."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    rows = []
    for accuracy in (0.6, 0.75, 0.9):
        found: dict[str, list[float]] = {"alone": [], "classifier": [], "with": [], "crowdlab": []}
        for seed in range(SEEDS):
            grades, table, truth = classified(80 + seed, accuracy=accuracy)
            chances = np.column_stack([table[name] for name in "abc"])
            found["classifier"].append(float((chances.argmax(axis=1) == truth).mean()))
            for name, given in (("alone", grades), ("with", cr.with_classifier(grades, table))):
                said = cr.aggregate(given).frame()
                right = [grade == "abc"[truth[int(item[1:])]] for item, grade in said.select("item", "grade").rows()]
                found[name].append(float(np.mean(right)))
            codes = grades.frame().with_columns(grade=cr_codes(grades)).pivot("annotator", index="item", values="grade")
            wide = codes.sort("item").drop("item").to_pandas().astype(float)
            result = get_label_quality_multiannotator(wide, chances, verbose=False)["label_quality"]
            found["crowdlab"].append(float((result["consensus_label"].to_numpy() == truth).mean()))
        order = ("alone", "classifier", "with", "crowdlab")
        rows.append(f"| {accuracy} | {' | '.join(interval(found[name]) for name in order)} |")
        print(rows[-1], flush=True)
    return rows


def cr_codes(grades):
    """Level codes of the grades as a column."""
    import polars as pl

    return pl.Series("grade", grades.level_place)


def main() -> None:
    warnings.simplefilter("ignore")
    sets, numbers, real, labels = label_sets(), sliders(), mushra(), classifiers()
    PAGE.write_text(
        f"""# Sets of labels, sliders and classifiers, measured

Simulated crowds with known truth, {SEEDS} a row; means with 95 % intervals over crowds. `python -m benchmarks.labels_and_numbers`
makes this page.

## Several labels per item

150 items, six labels, 16 annotators of whom a third are poor. Mean F1 of the sets; *said* is the expected F1 that we report.
Binary relevance is crowd-kit's, each label by itself by majority or by Dawid-Skene.

| Answers an item | shared quality | said | majority | binary relevance, majority | binary relevance, Dawid-Skene |
|--:|--:|--:|--:|--:|--:|
{chr(10).join(sets)}

## Sliders

60 items, 12 annotators and 6 numbers an item unless it says otherwise. Kendall's tau with the truth.

| Crowd | location_scale | mean_grade | trimmed_mean | median |
|---|--:|--:|--:|--:|
{chr(10).join(numbers)}

{real}

## A classifier as one more annotator

240 items of three classes, two labels each by annotators of whom half mostly guess, and a classifier. Accuracy of the labels; CROWDLAB
is cleanlab's.

| Accuracy asked of the classifier | labels alone | classifier alone | both, ours | both, CROWDLAB |
|--:|--:|--:|--:|--:|
{chr(10).join(labels)}
"""  # noqa: E501
    )


if __name__ == "__main__":
    main()
