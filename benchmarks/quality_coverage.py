"""Coverage of bounds of quality, for docs/evidence/annotators.md: ``python -m benchmarks.quality_coverage --write``.

Crowds of 40 annotators, of whom 5 guess, 5 answer the wrong way round and 30 are good, judge items of one query.
The true quality of an annotator is computed, not drawn: over all pairs of items with unequal scores, the probability
that the annotator puts the better one first, given that the two are not answered alike. A grade is a latent score plus
logistic noise cut into five levels; a preference follows the same noise; a ranking adds Gumbel noise to each item. For
class methods items have one of four classes and annotators confusion matrices; of the kind "class" these have no order.

Each line of the table has the share of true qualities within the 90 % intervals, with its standard error over crowds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .held_out import sigmoid

METHODS = {
    "grade": ("latent_score", "mean_grade", "dawid_skene"),
    "preference": ("latent_score", "bradley_terry", "borda"),
    "ranking": ("latent_score", "plackett_luce", "borda"),
    "class": ("majority_vote", "dawid_skene"),
}
CLASS_METHODS = ("dawid_skene", "naive_bayes", "glad", "mace")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "annotators.md"
PER_ANNOTATOR = (5, 10, 25, 100)
TYPES = ("good", "guesser", "reversed")
_CUTS = np.array([-2.0, -0.7, 0.7, 2.0])
_CLASS_SHARES = np.array([0.3, 0.3, 0.25, 0.15])


@dataclass(frozen=True)
class Design:
    """How a crowd is drawn; ``constant`` is the accuracy of annotators who err on all pairs alike, if they do."""

    kind: str = "grade"
    per_annotator: int = 25
    n_items: int = 100
    n_annotators: int = 40
    n_guessers: int = 5
    n_reversed: int = 5
    score_sd: float = 1.5
    ranked: int = 5
    constant: float | None = None


class Drawn(NamedTuple):
    """Judgments, and the true quality and the type (see ``TYPES``) of each annotator."""

    judgments: Any
    quality: Any
    type: Any


def draw(design: Design, seed: int) -> Drawn:
    """Return a crowd of which the true qualities are known."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, design.score_sd, design.n_items)
    alpha = np.maximum(rng.normal(1.2, 0.3, design.n_annotators), 0.5)
    type_ = _types(design)
    alpha = alpha * np.array([1.0, 0.0, -1.0])[type_]
    names = np.array([f"a{number:03d}" for number in range(design.n_annotators)])
    ids = np.array([f"i{number:04d}" for number in range(design.n_items)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judged, quality = {"grade": _grades, "preference": _preferences, "ranking": _rankings}[design.kind](
            design, rng, scores, alpha, names, ids
        )
    return Drawn(judged, quality, type_)


def draw_classes(design: Design, seed: int) -> Drawn:
    """Return grades of items that have one of four classes, by annotators with confusion matrices."""
    import crowdrank as cr

    rng = np.random.default_rng(seed)
    n, k = design.n_annotators, len(_CLASS_SHARES)
    truth = rng.choice(k, design.n_items, p=_CLASS_SHARES)
    type_ = _types(design)
    near = np.exp(-np.abs(np.arange(k)[:, None] - np.arange(k)[None, :]) * 1.5)
    near /= near.sum(axis=1, keepdims=True)
    kinds = np.stack([near, np.tile(_CLASS_SHARES, (k, 1)), near[::-1]])
    who, item = _asked(design, rng)
    chances = kinds[type_[who], truth[item]]
    grade = (rng.random(len(who))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    names = np.array([f"a{number:03d}" for number in range(n)])
    ids = np.array([f"i{number:04d}" for number in range(design.n_items)])
    judged = cr.Grades.from_frame({"annotator": names[who], "item": ids[item], "grade": np.minimum(grade, k - 1)})
    shares = np.bincount(truth, minlength=k) / len(truth)
    above = np.tril(np.ones((k, k)), -1)
    # chance that an item of class i is answered above one of class j
    chance = np.einsum("til,lm,tjm->tij", kinds, above, kinds)
    better = np.tril(np.outer(shares, shares), -1)
    right, wrong = (chance * better).sum(axis=(1, 2)), (chance * better.T).sum(axis=(1, 2))
    quality = right / (right + wrong)
    return Drawn(judged, quality[type_], type_)


def draw_nominal(design: Design, seed: int) -> Drawn:
    """Return classes without an order, by annotators who err on all other classes alike.

    Reversed annotators avoid the true class: they name it once in twenty times.
    """
    import crowdrank as cr

    rng = np.random.default_rng(seed)
    n, k = design.n_annotators, len(_CLASS_SHARES)
    truth = rng.choice(k, design.n_items, p=_CLASS_SHARES)
    type_ = _types(design)
    accuracy = np.clip(rng.normal(0.7, 0.1, n), 0.4, 0.95)
    accuracy = np.choose(type_, [accuracy, np.full(n, 1 / k), np.full(n, 0.05)])
    who, item = _asked(design, rng)
    wrong = (truth[item] + rng.integers(1, k, len(who))) % k
    grade = np.where(rng.random(len(who)) < accuracy[who], truth[item], wrong)
    names = np.array([f"a{number:03d}" for number in range(n)])
    ids = np.array([f"i{number:04d}" for number in range(design.n_items)])
    table = {"annotator": names[who], "item": ids[item], "grade": np.array(list("pqrs"))[grade]}
    return Drawn(cr.Grades.from_frame(table, nominal=True), 0.5 + 0.5 * (k * accuracy - 1) / (k - 1), type_)


def _types(design: Design) -> Any:
    """Type of each annotator: first those who guess, then the reversed."""
    type_ = np.zeros(design.n_annotators, np.int64)
    type_[: design.n_guessers] = 1
    type_[design.n_guessers : design.n_guessers + design.n_reversed] = 2
    return type_


def _asked(design: Design, rng: Any) -> tuple[Any, Any]:
    """Who is asked about which item: as many different ones for each annotator as there are, then again."""
    rounds = -(-design.per_annotator // design.n_items)
    item = np.concatenate([
        np.concatenate([rng.permutation(design.n_items) for _ in range(rounds)])[: design.per_annotator]
        for _ in range(design.n_annotators)
    ])  # fmt: skip
    return np.repeat(np.arange(design.n_annotators), design.per_annotator), item


def _grades(design: Design, rng: Any, scores: Any, alpha: Any, names: Any, ids: Any) -> tuple[Any, Any]:
    """Grades of five levels, and true qualities."""
    import crowdrank as cr

    offset = rng.normal(0.0, 0.3, len(alpha))
    who, item = _asked(design, rng)
    felt = alpha[who] * scores[item] + offset[who] + rng.logistic(size=len(who))
    judged = cr.Grades.from_frame({"annotator": names[who], "item": ids[item], "grade": np.searchsorted(_CUTS, felt)})
    below = sigmoid(_CUTS - (alpha[:, None] * scores + offset[:, None])[:, :, None])
    below = np.concatenate([np.zeros((*below.shape[:2], 1)), below, np.ones((*below.shape[:2], 1))], axis=2)
    level = np.diff(below, axis=2)
    # P(grade of i above that of j) of all pairs of items
    above = np.einsum("aik,ajk->aij", level, below[:, :, :-1])
    better = scores[:, None] > scores
    right, wrong = (above * better).sum(axis=(1, 2)), (above * better.T).sum(axis=(1, 2))
    return judged, right / (right + wrong)


def _chances(design: Design, alpha: Any, gap: Any) -> Any:
    """Probability that annotators prefer the first of two items this far apart."""
    if design.constant is None:
        return sigmoid(alpha * gap)
    return 0.5 + (design.constant - 0.5) * np.sign(alpha) * np.sign(gap)


def _preferences(design: Design, rng: Any, scores: Any, alpha: Any, names: Any, ids: Any) -> tuple[Any, Any]:
    """Preferences between random pairs, and true qualities."""
    import crowdrank as cr

    who = np.repeat(np.arange(len(alpha)), design.per_annotator)
    left = rng.integers(0, design.n_items, len(who))
    right = (left + rng.integers(1, design.n_items, len(who))) % design.n_items
    first = rng.random(len(who)) < _chances(design, alpha[who], scores[left] - scores[right])
    table = {"annotator": names[who], "left": ids[left], "right": ids[right]}
    judged = cr.Preferences.from_frame({**table, "winner": np.where(first, "left", "right")})
    return judged, _pair_qualities(design, alpha, scores)


def _rankings(design: Design, rng: Any, scores: Any, alpha: Any, names: Any, ids: Any) -> tuple[Any, Any]:
    """Rankings of some items each, by scores with Gumbel noise, and true qualities."""
    import crowdrank as cr

    who = np.repeat(np.arange(len(alpha)), design.per_annotator)
    item = np.argsort(rng.random((len(who), design.n_items)), axis=1)[:, : design.ranked]
    felt = alpha[who][:, None] * scores[item] + rng.gumbel(size=item.shape)
    rank = np.argsort(np.argsort(-felt, axis=1), axis=1) + 1
    number = np.repeat(np.arange(len(who)), design.ranked)
    table = {"annotator": names[who[number]], "ranking": [f"r{code:05d}" for code in number], "item": ids[item.ravel()]}
    judged = cr.Rankings.from_frame({**table, "rank": rank.ravel()})
    return judged, _pair_qualities(replace(design, constant=None), alpha, scores)


def _pair_qualities(design: Design, alpha: Any, scores: Any) -> Any:
    """Probability of preferring the better of two random items."""
    first, second = np.triu_indices(len(scores), 1)
    gap = np.abs(scores[first] - scores[second])
    return np.array([_chances(design, one, gap).mean() for one in alpha])


class Covered(NamedTuple):
    """What one crowd gives: whether each true quality is covered, widths, and who is called what."""

    covered: Any
    width: Any
    verdict: list[str]
    type: Any


def drawing(method: str, design: Design) -> Any:
    """Return what draws the crowds of a method."""
    if design.kind == "class":
        return draw_nominal
    return draw_classes if method in CLASS_METHODS else draw


def covered(method: str, design: Design, seed: int) -> Covered:
    """Return whether the intervals of a method hold the true qualities of a crowd."""
    from crowdrank.registry import make
    from crowdrank.review.findings import suspects

    drawn = drawing(method, design)(design, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quality = make("aggregator", method).fit(drawn.judgments).quality
    code = [quality.annotators.code(f"a{number:03d}", "annotator") for number in range(design.n_annotators)]
    lower, upper = (quality.parameters[name][code] for name in ("lower", "upper"))
    said = {one.annotator: one.verdict for one in suspects(quality.frame())}
    verdict = [said.get(f"a{number:03d}", "") for number in range(design.n_annotators)]
    return Covered((lower <= drawn.quality) & (drawn.quality <= upper), upper - lower, verdict, drawn.type)


class Line(NamedTuple):
    """A line of the table: shares by type of annotator, with standard errors, width, and who is called what."""

    share: Any
    error: Any
    width: Any
    called: Any


def measured(method: str, design: Design, seeds: range) -> Line:
    """Return coverage by type, its standard error over crowds, mean width, and shares called bad and reversed."""
    each = [covered(method, design, seed) for seed in seeds]

    def by_type(values: list[Any]) -> Any:
        return np.array([[np.mean(v[one.type == t]) for t in range(3)] for v, one in zip(values, each, strict=True)])

    shares = by_type([one.covered for one in each])
    width = by_type([one.width for one in each])
    bad = by_type([np.array([v in ("guessing", "reversed", "poor") for v in one.verdict]) for one in each])
    turned = by_type([np.array([v == "reversed" for v in one.verdict]) for one in each])
    return Line(
        shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(each)), width.mean(axis=0),
        np.stack([bad.mean(axis=0), turned.mean(axis=0)]),
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 where a share is significantly below 88 %, or above 94 % from 25 judgments on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(METHODS))
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--each", nargs="*", type=int, default=PER_ANNOTATOR)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--crowds", type=int, default=60, help="crowds a line")
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence/annotators.md")
    parser.add_argument("--first", type=int, default=100, help="seed of the first crowd")
    parser.add_argument("--constant", type=float, help="accuracy of preferences that does not depend on the pair")
    asked = parser.parse_args(arguments)
    lines = ["| Kind | Method | Judgments each | Good | Guessers | Reversed | Width | Called bad | reversed |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    missed = 0
    for kind in asked.kinds:
        for method in asked.methods or METHODS[kind]:
            crowds = range(asked.first, asked.first + asked.crowds)
            for number in asked.each:
                design = Design(kind, number, n_items=asked.items, constant=asked.constant)
                line = measured(method, design, crowds)
                missed += int((line.share + 2 * line.error < 0.88).sum())
                missed += int((line.share - 2 * line.error > 0.94).sum()) if number >= 25 else 0
                lines.append(f"| {kind} | `{method}` | {number} | {_told(line)} |")
                sys.stdout.write(lines[-1] + "\n")
                sys.stdout.flush()
    if asked.write:
        _write(lines)
    return int(missed > 0)


def _write(lines: list[str]) -> None:
    """Put the lines into the table of the page, each in place of the one of its kind, method and number, if any."""
    begin, end = "<!-- quality: made by python -m benchmarks.quality_coverage --write -->", "<!-- end of quality -->"
    before, rest = PAGE.read_text().split(begin)
    former, after = rest.split(end)
    table = {_case(line): line for line in [*former.strip().splitlines(), *lines]}
    PAGE.write_text(f"{before}{begin}\n\n" + "\n".join(table.values()) + f"\n\n{end}{after}")


def _case(line: str) -> tuple[str, ...]:
    """Kind, method and number of judgments of a line."""
    return tuple(line.split("|")[1:4])


def _told(line: Line) -> str:
    """The figures of a line."""
    shares = [f"{100 * share:.0f} ± {100 * error:.0f}" for share, error in zip(line.share, line.error, strict=True)]
    rest = ["/".join(f"{value:.2f}" for value in values) for values in (line.width, *line.called)]
    return " | ".join([*shares, *rest])


if __name__ == "__main__":
    sys.exit(main())
