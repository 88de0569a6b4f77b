"""Sets of labels, doubt, sliders, classifiers and halo beside majority, means, crowd-kit and cleanlab.

``python -m benchmarks.labels_and_numbers`` writes docs/evidence/labels-and-numbers.md; it needs crowd-kit and cleanlab,
and the public sets in ``CROWDRANK_DATA``.
"""

import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl

import crowdrank as cr
from crowdrank.api import difficulty, informed_by_difficulty
from crowdrank.registry import make

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.test_several_labels import classified, crowd, doubtful

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "labels-and-numbers.md"
DATA = Path(os.environ.get("CROWDRANK_DATA", ""))
SEEDS = 40
DRAWS = 5


def interval(values) -> str:
    """Mean and a 95 % interval of it over crowds or draws."""
    values = np.asarray(values, float)
    if len(values) == 1:
        return f"{values[0]:.3f}".replace("0.", ".")
    width = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} ± {width:.3f}".replace("0.", ".")


def row(name, columns) -> str:
    """A row of a table, which is printed as well."""
    line = f"| {name} | {' | '.join(interval(values) for values in columns.values())} |"
    print(line, flush=True)
    return line


def f1_of(taken, holds) -> float:
    """Mean F1 of sets of labels; two empty sets are alike."""
    both = holds.sum(axis=1) + taken.sum(axis=1)
    return float(np.where(both > 0, 2 * (holds & taken).sum(axis=1) / np.maximum(both, 1), 1.0).mean())


def set_methods(votes, names, items, holds) -> dict[str, float]:
    """F1 of the sets by each method; ``votes`` are item, annotator and labels with marks between."""
    import pandas as pd
    from crowdkit.aggregation import BinaryRelevance, DawidSkene, MajorityVote

    def hits(sets) -> np.ndarray:
        return np.array([[name in sets.get(item, ()) for name in names] for item in items])

    ours, plain = cr.aggregate_labels(votes), cr.aggregate_labels(votes, method="majority", choose=0.5)
    found = {}
    for word, one in (("shared", ours), ("majority", plain)):
        sets = {item: text.split("|") for item, text in one.table.select("item", "labels").rows()}
        found[word] = f1_of(hits(sets), holds)
    found["said"] = float(ours.table["expected_f1"].mean())
    sets = [text.split("|") if text else [] for text in votes["labels"]]
    frame = pd.DataFrame({"task": votes["item"], "worker": votes["annotator"], "label": sets})
    for word, base in (("relevance", MajorityVote()), ("relevance_ds", DawidSkene(n_iter=30))):
        found[word] = f1_of(hits(dict(BinaryRelevance(base).fit_predict(frame))), holds)
    return {word: found[word] for word in ("shared", "said", "majority", "relevance", "relevance_ds")}


def together(found) -> dict[str, list[float]]:
    """Values of each method over crowds."""
    return {name: [one[name] for one in found] for name in found[0]}


def label_sets() -> list[str]:
    """F1 of sets of labels: simulated crowds, headlines with emotions, and lesions."""
    rows = []
    for per_item in (3,):
        found = []
        for seed in range(SEEDS // 2):
            votes, holds = crowd(50 + seed, n=150, per_item=per_item)
            names, items = [f"l{k}" for k in range(holds.shape[1])], [f"i{i:03d}" for i in range(len(holds))]
            found.append(set_methods(votes, names, items, holds))
        rows.append(row(f"simulated, {per_item} answers", together(found)))
    emotions = cr.datasets.load("crowd-truth-inference/emotion")
    said = (
        emotions.judgments.frame().with_columns(number=pl.col("item").cast(pl.Int64) - 1).filter(pl.col("number") < 600)
    )
    said = said.select(
        "annotator", item=pl.col("number") % 100, label=pl.col("number") // 100, yes=pl.col("grade") >= 50
    )
    holds = np.zeros((100, 6), bool)
    for item, score in emotions.truth.frame().select("item", "grade").rows():
        if int(item) <= 600:
            holds[(int(item) - 1) % 100, (int(item) - 1) // 100] = float(score) >= 50
    rows += [row(f"headlines, {n} answers", together(drawn_sets(said, holds, n))) for n in (3, 5, 10)]
    lesions = pl.read_csv(DATA / "people-and-programs" / "lesion.csv.gz", infer_schema_length=0).filter(kind="person")
    signs = {name: place for place, name in enumerate(sorted(lesions["criterion"].unique()))}
    said = lesions.select(
        "annotator", item=pl.col("item").str.slice(1).cast(pl.Int64), label=pl.col("criterion").replace_strict(signs),
        yes=pl.col("label").cast(pl.Int64) >= pl.when(pl.col("criterion") == "Color").then(3).otherwise(1),
    )  # fmt: skip
    rows.append(row("lesions, 3 answers", together(drawn_sets(said, None, 3))))
    return rows


def drawn_sets(said, holds, per_item) -> list[dict[str, float]]:
    """F1 of sets from some answers of each item; without a truth it is the majority of the other annotators'."""
    found, names = [], [f"l{k}" for k in range(said["label"].max() + 1)]
    n_items = said["item"].max() + 1
    everybody = {item: sorted(set(rows["annotator"])) for (item,), rows in said.group_by("item")}
    yes = {(a, i, k) for a, i, k, y in said.select("annotator", "item", "label", "yes").rows() if y}
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        votes, truth = {"item": [], "annotator": [], "labels": []}, np.zeros((n_items, len(names)), bool)
        for item in range(n_items):
            chosen = rng.permutation(everybody[item])
            for who in chosen[:per_item].tolist():
                votes["item"].append(f"i{item:03d}")
                votes["annotator"].append(who)
                votes["labels"].append("|".join(name for k, name in enumerate(names) if (who, item, k) in yes))
            rest = chosen[per_item:].tolist()
            for k in range(len(names)):
                truth[item, k] = bool(rest) and sum((who, item, k) in yes for who in rest) * 2 > len(rest)
        found.append(
            set_methods(votes, names, [f"i{i:03d}" for i in range(n_items)], truth if holds is None else holds)
        )
        if per_item >= max(map(len, everybody.values())):
            return found
    return found


def cannot_tell() -> list[str]:
    """How sure classes are said to be beside how often they are right, with and without what "can't tell" says."""
    rows = []
    for name, informative in (("says who errs", True), ("says nothing", False)):
        found = []
        for seed in range(SEEDS):
            asked, truth, hard = doubtful(seed, informative=informative)
            items, _ = difficulty(asked, ["can't tell"])
            grades = cr.Grades.from_frame(asked.filter(pl.col("grade") != "can't tell"), nominal=True)
            plain = cr.aggregate(grades, "dawid_skene")
            one = {}
            for word, fit in (("plain", plain), ("informed", informed_by_difficulty(plain, grades, items))):
                place = np.array([int(str(item)[1:]) for item in fit.items.ids])
                true = np.array([list(fit.levels).index("abc"[truth[at]]) for at in place])
                right, sure, odd = fit.probabilities.argmax(axis=1) == true, fit.probabilities.max(axis=1), hard[place]
                one[f"{word} hard"] = sure[odd].mean()
                one[f"{word} loss"] = -np.log(np.maximum(fit.probabilities[np.arange(len(true)), true], 1e-12)).mean()
                one["right"] = right[odd].mean()
            found.append(
                {key: one[key] for key in ("right", "plain hard", "informed hard", "plain loss", "informed loss")}
            )
        rows.append(row(name, together(found)))
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
        found = []
        for seed in range(SEEDS):
            grades, truth = slider_crowd(seed, **wanted)
            scores = {method: make("aggregator", method).fit(grades).scores for method in SLIDER_METHODS}
            scores["bins"] = make("aggregator", "latent_score").fit(binned(grades)[0]).scores
            found.append({method: float(kendalltau(one, truth)[0]) for method, one in scores.items()})
        rows.append(row(name, together(found)))
    return rows


SLIDER_METHODS = ("location_scale", "mean_grade", "trimmed_mean", "median")


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


def binned(grades, n=9) -> tuple[cr.Grades, np.ndarray]:
    """The grades as places among their quantiles, and the edges of these."""
    edges = np.unique(np.quantile(grades.grade, np.linspace(0, 1, n + 1)[1:-1]))
    frame = grades.frame().with_columns(grade=pl.Series(np.searchsorted(edges, grades.grade, side="right")))
    return cr.Grades.from_frame(frame, levels=list(range(len(edges) + 1)), items=grades.items.frame()), edges


def real_sliders() -> list[str]:
    """Held-out likelihood of the bins of real numbers by linear models and by latent_score, and tau with the truth."""
    from scipy.stats import kendalltau

    emotions = cr.datasets.load("crowd-truth-inference/emotion")
    runs = [cr.datasets.load(f"trec2011-crowd-uc3m/run{run}") for run in (2, 3)]
    frame = pl.concat([run.judgments.frame().drop("time") for run in runs])
    frame = frame.group_by("query", "item", "annotator", maintain_order=True).agg(pl.col("grade").mean())
    sets = {
        "listening test": (cr.datasets.load("neural-codec-mushra").judgments, None),
        "emotions in headlines": (emotions.judgments, emotions.truth),
        "relevance of pages": (cr.Grades.from_frame(frame), runs[0].truth),
    }
    rows = []
    for name, (grades, truth) in sets.items():
        cells = [f"{value:.3f}" for value in bin_likelihoods(grades).values()]
        if truth is not None:
            keys = [key for key in ("query", "item") if key in grades.frame().columns]
            known = truth.frame().with_columns(pl.col(keys).cast(pl.String)).select(*keys, true="grade")
            for method in ("location_scale", "latent_score", *SLIDER_METHODS[1:]):
                fit = make("aggregator", method).fit(binned(grades)[0] if method == "latent_score" else grades)
                both = fit.frame().with_columns(pl.col(keys).cast(pl.String)).join(known, on=keys)
                cells.append(f"{kendalltau(both['score'], both['true'].cast(pl.Float64))[0]:.3f}")
        cells += ["no truth"] * (9 - len(cells))
        rows.append(f"| {name} | {len(grades):,} | {' | '.join(cells)} |".replace(" 0.", " .").replace("-0.", "-."))
        print(rows[-1], flush=True)
    return rows


def bin_likelihoods(grades, n_folds=3) -> dict[str, float]:
    """Mean log-probability of the bin of held-out numbers, by what annotators have of their own."""
    from scipy.special import expit, ndtr

    codes, edges = binned(grades)
    fold = np.random.default_rng(0).permutation(len(grades)) % n_folds
    level, found = np.searchsorted(edges, grades.grade, side="right"), {}
    points, weights = np.polynomial.hermite_e.hermegauss(15)
    for form in ("none", "offset", "scale", "latent_score"):
        likely = np.empty(len(grades))
        for part in range(n_folds):
            out = fold == part
            who, item = grades.annotator[out], grades.item[out]
            if form == "latent_score":
                fit = make("aggregator", "latent_score").fit(codes.select(~out))
                own, known = fit.quality.parameters, fit.estimates
                cuts = known["centre"] + own["spread"][who][:, None] * (np.array(known["cuts"]) - known["centre"])
                chances = np.zeros((out.sum(), len(edges) + 1))
                for point, weight in zip(points, weights / weights.sum(), strict=True):
                    score = fit.scores[item] + point * fit.std_error[item]
                    below = expit(cuts - (own["alpha"][who] * score + own["bias"][who])[:, None])
                    chances += weight * np.diff(below, axis=1, prepend=0.0, append=1.0)
            else:
                fit = make("aggregator", "location_scale", {"annotators": form}).fit(grades.select(~out))
                own = fit.quality.parameters
                middle = own["offset"][who] + own["scale"][who] * fit.scores[item]
                spread = np.sqrt(own["noise"][who] ** 2 + (own["scale"][who] * fit.std_error[item]) ** 2)
                below = ndtr((edges - middle[:, None]) / spread[:, None])
                chances = np.diff(below, axis=1, prepend=0.0, append=1.0)
            likely[out] = np.log(np.maximum(chances[np.arange(out.sum()), level[out]], 1e-6))
        found[form] = float(likely.mean())
    return found


def classifiers() -> list[str]:
    """Accuracy of labels with a classifier as one more annotator: simulated, and programs beside people."""
    rows = []
    for accuracy in (0.6, 0.75, 0.9):
        found = []
        for seed in range(SEEDS):
            grades, table, truth = classified(80 + seed, accuracy=accuracy)
            found.append(with_and_without(grades, table, {f"i{i:03d}": "abc"[one] for i, one in enumerate(truth)}))
        rows.append(row(f"simulated, {accuracy}", together(found)))
    for name, n_labels in (("wax", 2), ("cebab_stars", 2)):
        table = pl.read_csv(DATA / "people-and-programs" / f"{name}.csv.gz", infer_schema_length=0)
        people, programs = (table.filter(kind=kind) for kind in ("person", "program"))
        levels = sorted(people["label"].unique())
        shares = programs.filter(pl.col("label").is_in(levels)).group_by("item", "label").len()
        shares = shares.pivot("label", index="item", values="len").fill_null(0).sort("item")
        chances = {level: (shares[level] if level in shares.columns else 0 * shares[levels[0]]) for level in levels}
        total = sum(chances.values())
        chances = {"item": shares["item"]} | {
            level: (one + 0.1) / (total + 0.1 * len(levels)) for level, one in chances.items()
        }
        given = {item: rows for (item,), rows in people.sort("item", "annotator").group_by("item", maintain_order=True)}
        found = []
        for seed in range(DRAWS):
            rng, votes, truth = np.random.default_rng(seed), [], {}
            for item, answers in given.items():
                answers = answers[rng.permutation(len(answers)).tolist()]
                votes += [
                    (who, "q", item, label) for who, label in answers[:n_labels].select("annotator", "label").rows()
                ]
                rest = answers[n_labels:]["label"].value_counts(sort=True)
                if len(rest) == 1 or rest["count"][0] > rest["count"][1]:
                    truth[item] = rest["label"][0]
            found.append(with_and_without(cr.Grades.from_rows(votes, nominal=True), chances, truth))
        rows.append(
            row(f"{'relations of words' if name == 'wax' else 'stars of reviews'}, {n_labels} labels", together(found))
        )
    return rows


def with_and_without(grades, table, truth) -> dict[str, float]:
    """Accuracy of labels alone, of the classifier alone, and of both, by us and by cleanlab."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    levels, items = [str(level) for level in grades.levels], [str(one) for one in table["item"]]
    chances = np.column_stack([np.asarray(table[level]) for level in levels])

    def right(answers) -> float:
        return float(np.mean([answers[item] == true for item, true in truth.items() if item in answers]))

    found = {"alone": grades, "with": cr.with_classifier(grades, table)}
    found = {name: right(dict(cr.aggregate(one).frame().select("item", "grade").rows())) for name, one in found.items()}
    frame = grades.frame().with_columns(grade=pl.Series(grades.level_place))
    wide = pl.DataFrame({"item": items}).join(
        frame.pivot("annotator", index="item", values="grade"), on="item", how="left"
    )
    result = get_label_quality_multiannotator(wide.drop("item").to_pandas().astype(float), chances, verbose=False)
    theirs = [levels[int(code)] for code in result["label_quality"]["consensus_label"]]
    alone = right(dict(zip(items, (levels[code] for code in chances.argmax(axis=1)), strict=True)))
    return {
        "alone": found["alone"], "classifier": alone, "with": found["with"],
        "crowdlab": right(dict(zip(items, theirs, strict=True))),
    }  # fmt: skip


def halo() -> str:
    """Halo of the Newsroom summaries, by four criteria."""
    path = DATA / "newsroom-criteria" / "grades.csv"
    names = ("informativeness", "relevance", "fluency", "coherence")
    votes = {name: cr.read_judgments(path, columns={"grade": name, "annotator": "slot"}) for name in names}
    found = cr.rubric({name: cr.aggregate(one, "mean_grade") for name, one in votes.items()}, votes).correlations
    each = [
        f"{one} and {other} {value:.2f} ({low:.2f} to {high:.2f})"
        for one, other, value, low, high in found.select("one", "other", "halo", "halo_lower", "halo_upper").rows()
    ]
    return f"{found['halo'].mean():.2f} on average: {', '.join(each)}".replace("0.", ".")


def main() -> None:
    warnings.simplefilter("ignore")
    parts = {
        "real": real_sliders, "sets": label_sets, "classifiers": classifiers, "sliders": sliders, "doubt": cannot_tell,
        "halo": halo,
    }  # fmt: skip
    with ProcessPoolExecutor(3) as pool:
        each = {name: pool.submit(part) for name, part in parts.items()}
        results = {name: one.result() for name, one in each.items()}
    told = {name: part if isinstance(part, str) else "\n".join(part) for name, part in results.items()}
    PAGE.write_text(
        f"""# Sets of labels, doubt, sliders and classifiers, measured

Simulated crowds have a known truth, {SEEDS} crowds a row (of sets of labels {SEEDS // 2}); of real sets {DRAWS} draws of some of each item's answers. Means with 95 %
intervals over crowds or draws; draws share items, so that other items may differ by more than their intervals.
`python -m benchmarks.labels_and_numbers` makes this page.

## Several labels per item

Simulated: 150 items, six labels, 16 annotators of whom a third are poor. Headlines: 100 with six emotions each, from 0 to 100 by
crowd and experts, a label from 50 on; the truth is the experts'. Lesions: 100 with five signs, by six students; the truth is the
majority of those who were not drawn. Mean F1 of the sets; *said* is the expected F1 that we report. Binary relevance is
crowd-kit's, each label by itself by majority or by Dawid-Skene. With all ten answers there is one draw.

| Items | shared quality | said | majority | binary relevance, majority | binary relevance, Dawid-Skene |
|---|--:|--:|--:|--:|--:|
{told["sets"]}

Shared quality is ahead where annotators differ in how often they are right. Of the headlines experts call fewer emotions than
sensitive annotators do, and a plain majority is nearer to them: where labels hold by degrees, and many annotators judged each item,
try `--method majority` too. The expected F1 is said too low where answers are few, and too high where the truth is somebody else's.

## "Can't tell"

150 items of three classes, five answers each; of a quarter of the items annotators err more often. In the first row they say
"can't tell" of these more often as well, in the second of all alike. How often the class of such an item is right, how sure it is
said to be without and with the difficulty that these answers show, and the mean log-loss over all items.

| "Can't tell" | right | said without | said with | loss without | loss with |
|---|--:|--:|--:|--:|--:|
{told["doubt"]}

## Sliders

60 items, 12 annotators and 6 numbers an item unless it says otherwise. Kendall's tau with the truth. The last column is
latent_score over nine quantile bins.

| Crowd | location_scale | mean_grade | trimmed_mean | median | latent_score |
|---|--:|--:|--:|--:|--:|
{told["sliders"]}

Real numbers: mean log-probability of the bin (of nine, by quantiles) that a held-out number falls into, by what annotators have of
their own and by latent_score over these bins; then Kendall's tau of the scores with the truth.

| Set | numbers | none | offset | scale | latent_score | tau: location_scale | latent_score | mean | trimmed mean | median |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{told["real"]}

latent_score over bins predicts held-out numbers best on all three sets, most of all where many numbers are equal, as the zeros of the
headlines are; location_scale orders pages better and keeps scores on the scale of the numbers, which is why `auto` takes it.

## A classifier as one more annotator

Simulated: 240 items of three classes, two labels each by annotators of whom half mostly guess, and a classifier of an accuracy near
the one named. Real: relations of two words (16 classes) and stars of reviews (5), of which two people's labels are drawn; the
classifier is the share of six language models that gives a class, the truth the plurality of the other people. Accuracy of the labels;
CROWDLAB is cleanlab's.

| Items | labels alone | classifier alone | both, ours | both, CROWDLAB |
|---|--:|--:|--:|--:|
{told["classifiers"]}

A classifier that is worse than people can lower the accuracy, by ours and by CROWDLAB: look at it alone first.

## Halo

Newsroom: 420 summaries, graded by three people each by four criteria. Correlation of the errors that one person makes in two
criteria, with 95 % intervals: {told["halo"]}.
"""  # noqa: E501
    )


if __name__ == "__main__":
    main()
