"""Comparative judgement in its own words: reliability of a scale, fit of judges and scripts, grades from anchors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.linalg import solve_triangular
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtri, expit, ndtr, ndtri

from ..data.column_names import understand_items
from ..data.consensus import Consensus
from ..data.frames import to_frame
from ..data.judgments import Preferences
from ..data.showing import Shown, html_table
from ..errors import JudgmentError, ParameterError
from ..models.pairs.bradley_terry import BradleyTerry
from ..protocols import Bools, Floats, Ints
from ..wording import counted, first_few
from .aggregation import as_judgments
from .sentences import words_of

_LEVEL = 0.95
_TAILS = (0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2)
_N_SPLITS = 40
_N_SHUFFLES = 200
_SPREADS = np.linspace(0.05, 6.0, 40)
"""Standard deviations of scripts that are looked at."""

_N_DRAWS = 200
_STEP = 1e-3

# threshold (refused): scripts beyond which no reliability by likelihood is computed
_MOST_SCRIPTS = 1500
_N_BOUNDARY_DRAWS = 1000
_MOST_GRADES = 12
"""Grades that anchors may have; what has more is a mark, which ``known`` takes."""

_ODD_SHARE = 0.05
"""An answer is listed as surprising where the scale gives it at most this probability."""

_MOST_LISTED = 50

# threshold (sample): judgements beyond which JSON and workbooks have no reliability unless it is asked for
MANY_JUDGEMENTS = 20_000
RELIABLE = 0.8
"""Reliability that a moderation meeting usually asks for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Moderation(Shown):
    """What a moderation meeting asks of a scale made by comparative judgement; :func:`crowdrank.moderate` makes it.

    Parameters
    ----------
    reliability
        ``adjusted``, ``split_half`` and ``separation`` (scale separation reliability) with their bounds,
        ``separation_index``, ``split_by``, ``adaptive``, ``closeness``, and the mean probability ``chance_right`` that
        the scale gives to the answers.
    scripts, judges, judgements
        A row for each. Judgements have the probability that the scale gives to their answer; the most surprising come
        first.
    boundaries
        Where each grade begins on the scale, with bounds; ``None`` without anchors.
    cohorts
        Scripts, common scripts and the mean of each cohort; ``None`` where there is only one.
    steps
        What to do next, a sentence each.

    Examples
    --------
    >>> import crowdrank as cr
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("ann", "q", "x", "z", "x")]
    >>> cr.moderate(cr.Preferences.from_rows(rows)).scripts["script"].to_list()
    ['x', 'y', 'z']
    """

    consensus: Consensus
    reliability: dict[str, Any]
    scripts: pl.DataFrame
    judges: pl.DataFrame
    judgements: pl.DataFrame
    boundaries: pl.DataFrame | None = None
    cohorts: pl.DataFrame | None = None
    steps: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scripts)

    def __repr__(self) -> str:
        said = self.reliability["adjusted"]
        shown = "unknown" if said is None else f"{said:.2f}"
        scripts, judgements = counted(len(self), "script"), counted(len(self.judgements), "judgement")
        return f"Moderation({scripts}, {judgements}, reliability {shown})"

    def _repr_html_(self) -> str:
        """The first scripts and what to do next, for notebooks."""
        return html_table(repr(self), self.scripts.head(10), len(self), self.steps)

    def frame(self) -> pl.DataFrame:
        """Return the table of scripts, best first."""
        return self.scripts

    @property
    def misfits(self) -> pl.DataFrame:
        """Judgements that the scale gave at most one chance in twenty, the most surprising first."""
        return self.judgements.filter(pl.col("probability") <= _ODD_SHARE).head(_MOST_LISTED)

    def sheets(self) -> dict[str, pl.DataFrame]:
        """Return the tables of a workbook by their names."""
        sheets = {"scripts": self.scripts, "judges": self.judges, "pairs": self.judgements}
        sheets |= {} if self.boundaries is None else {"boundaries": self.boundaries}
        sheets |= {} if self.cohorts is None else {"cohorts": self.cohorts}
        figures = [
            (name, f"{value:.3f}" if isinstance(value, float) else None if value is None else str(value))
            for name, value in self.reliability.items()
        ]
        rows = [("what to do next", step) for step in self.steps] + figures
        return {**sheets, "what to do next": pl.DataFrame(rows, schema=["about", "value"], orient="row")}


def moderate(
    judgments: Any, consensus: Consensus | None = None, *, anchors: Any = None, levels: Any = None, seed: int = 0
) -> Moderation:
    r"""Return how reliable a scale made from pairs is, how judges and scripts fit it, and what to do next.

    Parameters
    ----------
    judgments
        Preferences, or a frame or file of them. Cohorts are queries; those with common scripts become one scale.
    consensus
        The scale; a Bradley-Terry fit by default. Fit and reliability are always those of Bradley-Terry with judges
        alike, as in the literature: a model that learns who is poor would call no judge misfitting.
    anchors
        Table of script and grade: scripts of known grade, which put the others on that scale.
    levels
        The grades, worst first, where they are words.
    seed
        Seed of the halves and of the draws.

    Notes
    -----
    Scale separation reliability is :math:`1 - \overline{se^2} / \mathrm{var}(s)` [Bramley15]_, and the separation index
    :math:`\sqrt{R / (1 - R)}`. Where pairs were chosen by earlier answers it is too large: about .65 for answers by a
    coin. The split-half reliability (judges, or with fewer than four of them judgements, are halved at random forty
    times; the correlation of the two scales is stepped up by Spearman and Brown; its interval is Fisher's for that many
    scripts) shares this fault, since both halves have pairs that all answers chose. The adjusted reliability does not:
    it is the squared correlation of the scale with true scores drawn from their posterior, given answers and pairs,
    with the spread of scripts by its marginal likelihood, which holds whatever chose the pairs; mean and 95 % range
    ([measured](../evidence/comparative-judgement.md)). ``adaptive`` says that scripts that were compared are nearer to
    each other than under 99 % of shuffled pairings.

    Infit is :math:`\sum (y - p)^2 / \sum p (1 - p)` and outfit the mean of :math:`(y - p)^2 / p (1 - p)`, 1 where
    answers scatter as the scale says. Intervals are of 95 %, by the scatter of the terms. ``misfit`` is said where
    infit is too large for chance, allowing for the number of judges or scripts that were looked at.

    Grades of anchors follow a cumulative probit model of the score, with boundaries and a spread of the anchors' own
    that are learned with weak priors; errors of scores and of boundaries are integrated over.

    Examples
    --------
    >>> from crowdrank import simulate
    >>> truth = {"item": list("abcdefgh"), "grade": range(8)}
    >>> votes = simulate.simulate(truth, annotators=5, noise="flip(0.1)", kind="preference", per_item=20).judgments
    >>> moderate(votes).reliability["separation"] > 0.5
    True
    """
    preferences = as_judgments(judgments)
    if not isinstance(preferences, Preferences):
        raise JudgmentError(words_of("needs_pairs"))
    cohort_of: pl.DataFrame | None = None
    if preferences.n_queries > 1:
        # on one scale, with the cohorts of each script
        both, items = np.unique(np.concatenate([preferences.left, preferences.right])), preferences.items
        of_script = {"cohort": items.queries.ids.gather(items.query[both]), "script": items.ids.gather(both)}
        cohort_of, preferences = pl.DataFrame(of_script), preferences.across_queries()
        n_parts, part = _components(preferences)
        if n_parts > 1:
            apart = cohort_of.join(pl.DataFrame({"script": list(preferences.items.ids), "part": part}), on="script")
            groups = apart.group_by("part").agg(pl.col("cohort").unique().sort()).sort("part")["cohort"].to_list()
            shown = first_few([" and ".join(map(str, one[:3])) for one in groups])
            raise JudgmentError(words_of("apart_cohorts", n_parts=n_parts, shown=shown))
    with warnings.catch_warnings():
        # scripts that won everything are said in the steps
        warnings.simplefilter("ignore")
        plain = BradleyTerry().fit(preferences)
        scale = plain if consensus is None else consensus
    if scale.items.ids.to_list() != plain.items.ids.to_list():
        scale = plain
    assert plain.std_error is not None
    left, right, outcome = preferences.left, preferences.right, preferences.outcome
    gap, decided = plain.scores[left] - plain.scores[right], outcome != 0
    chance = expit(np.where(outcome >= 0, gap, -gap))
    reliability = _reliability(preferences, plain, seed)
    reliability["chance_right"] = float(chance[decided].mean()) if decided.any() else None
    residual, spread = (np.where(decided, one, 0.0) for one in ((1 - chance) ** 2, chance * (1 - chance)))
    # a row for each script, best first
    sides, best_first = np.concatenate([left, right]), np.argsort(-scale.scores, kind="stable")
    if scale.uncertainty is None:
        scripts = scale.frame().select("item", "score", "rank")
    else:
        scripts = scale.intervals(_LEVEL).select("item", "score", "lower", "upper", "rank", "rank_lower", "rank_upper")
        if scale.std_error is not None:
            scripts.insert_column(2, pl.Series("std_error", scale.std_error[best_first]))
    won, n = np.where(outcome > 0, left, right), preferences.n_items
    counts = {"judgements": np.bincount(sides, minlength=n), "won": np.bincount(won[decided], minlength=n)}
    fit = _fit_statistics(sides, np.tile(residual, 2), np.tile(spread, 2), n)
    scripts = scripts.rename({"item": "script"}).hstack(pl.DataFrame(counts).hstack(fit.drop("decided"))[best_first])
    boundaries, unsure = None, []
    if anchors is not None:
        boundaries, grades = _grade_scripts(scale, anchors, levels, seed)
        scripts = scripts.hstack(grades.select(pl.exclude("script"))[best_first])
        likeliest = grades.select(pl.max_horizontal(pl.exclude("script", "grade", "anchor"))).to_series()
        unsure = grades.filter((likeliest < RELIABLE) & grades["anchor"].is_null())["script"].to_list()
    # a row for each judgement, with the probability that the scale gives to its answer, the most surprising first
    ids, tied = preferences.items.ids, pl.Series(~decided)
    columns: dict[str, Any] = {"left": ids.gather(left), "right": ids.gather(right)}
    if preferences.n_annotators:
        columns["judge"] = preferences.annotators.ids.gather(preferences.annotator)
    better = ids.gather(won).cast(pl.String).set(tied, "tie")
    judgements = pl.DataFrame({**columns, "better": better, "probability": pl.Series(chance).set(tied, None)})
    cohorts = None
    if cohort_of is not None:
        # the mean of each on the joint scale, its own scripts' spread, and how many scripts it shares with others
        error = scale.std_error if scale.std_error is not None else np.full(len(scale.items), np.nan)
        scores = pl.DataFrame({"script": scale.items.ids, "score": scale.scores, "std_error": error})
        shared = pl.col("cohort").n_unique().over("script") > 1
        cohorts = cohort_of.with_columns(common=shared).join(scores, on="script").group_by("cohort").agg(
            scripts=pl.len(), common=pl.col("common").sum(), mean=pl.col("score").mean(),
            # errors of scripts beside the scatter of scripts, of which these are all
            std_error=((pl.col("std_error") ** 2).sum().sqrt() / pl.len()).fill_nan(None), spread=pl.col("score").std(),
        ).sort("cohort")  # fmt: skip
    found = Moderation(
        consensus=scale, reliability=reliability, scripts=scripts, boundaries=boundaries, cohorts=cohorts,
        judges=_judges(preferences, residual, spread, chance),
        judgements=judgements.sort("probability", *columns, nulls_last=True),
    )  # fmt: skip
    return replace(found, steps=tuple(_steps(found, preferences, unsure)))


def _components(preferences: Preferences) -> tuple[int, Ints]:
    """Number of groups of scripts that were never compared with each other, and the group of each script."""
    n, compared = preferences.n_items, (np.ones(len(preferences)), (preferences.left, preferences.right))
    return connected_components(coo_array(compared, shape=(n, n)), directed=False)


def _reliability(preferences: Preferences, plain: Consensus, seed: int) -> dict[str, Any]:
    """Reliability of a scale: by its errors, and by halves."""
    # halves are drawn by place, which the order of the rows must not decide
    who = preferences.annotator if preferences.n_annotators else np.zeros(len(preferences), np.int32)
    preferences = preferences.select(np.lexsort((preferences.outcome, who, preferences.right, preferences.left)))
    judged = np.bincount(np.concatenate([preferences.left, preferences.right]), minlength=preferences.n_items) > 0
    scores, n = plain.scores[judged], int(judged.sum())
    assert plain.std_error is not None
    names = (
        "separation separation_lower separation_upper separation_index split_half split_half_lower split_half_upper "
        "split_by adjusted adjusted_lower adjusted_upper closeness"
    )
    found: dict[str, Any] = dict.fromkeys(names.split())
    found |= {"n_scripts": n, "n_judgements": len(preferences), "adaptive": False}
    if n < 4:
        return found
    error, variance = float((plain.std_error[judged] ** 2).mean()), float(scores.var(ddof=1))

    def separation(value: float) -> float:
        return float(np.clip(1 - error / max(value, 1e-12), 0.0, 1.0))

    lower, upper = (separation(float(variance * (n - 1) / chdtri(n - 1, tail))) for tail in _TAILS)
    whole = separation(variance)
    found |= {"separation": whole, "separation_lower": lower, "separation_upper": upper}
    found["separation_index"] = float(np.sqrt(whole / max(1 - whole, 1e-12)))
    rng = np.random.default_rng(seed)
    # by scores of each half the pairs of the other: a script's own answers bring it near to those it met
    half = rng.permutation(len(preferences)) < len(preferences) // 2
    apart, shuffled = 0.0, np.zeros(_N_SHUFFLES)
    for side in (half, ~half):
        halved, rest = BradleyTerry().scores(preferences.select(side)), preferences.select(~side)
        apart += np.abs(halved[rest.left] - halved[rest.right]).mean()
        sides = np.concatenate([rest.left, rest.right])
        for draw in range(_N_SHUFFLES):
            one, other = rng.permutation(sides).reshape(2, -1)
            shuffled[draw] += np.abs(halved[one] - halved[other])[one != other].mean()
    found["closeness"] = float(apart / shuffled.mean()) if shuffled.mean() > 0 else 1.0
    found["adaptive"] = bool(apart < np.quantile(shuffled, 0.01))
    found |= _adjusted_reliability(preferences, judged, scores, rng)
    # the correlation of the scales of random halves
    people = np.unique(preferences.annotator) if preferences.n_annotators else np.empty(0, np.int32)
    by_judge, correlations = len(people) >= 4, []
    for _ in range(_N_SPLITS):
        if by_judge:
            # judges of every workload in both halves
            half = np.isin(preferences.annotator, rng.permutation(people)[: len(people) // 2])
        else:
            half = rng.permutation(len(preferences)) < len(preferences) // 2
        if half.all() or not half.any():
            continue
        one, other = (BradleyTerry().scores(preferences.select(mask))[judged] for mask in (half, ~half))
        if one.std() > 0 and other.std() > 0:
            correlations.append(float(np.corrcoef(one, other)[0, 1]))
    if correlations:
        z = float(np.arctanh(np.clip(correlations, -0.999999, 0.999999)).mean())
        width = ndtri(0.5 + _LEVEL / 2) / np.sqrt(max(n - 3, 1))
        stepped = [float(max(2 * r / (1 + r), 0.0)) for r in np.tanh([z, z - width, z + width])]
        found |= dict(zip(("split_half", "split_half_lower", "split_half_upper"), stepped, strict=True))
        found["split_by"] = "judges" if by_judge else "judgements"
    return found


def _adjusted_reliability(
    preferences: Preferences, judged: Bools, scale: Floats, rng: np.random.Generator
) -> dict[str, Any]:
    """Squared correlation of the scale with the scripts' true scores, as far as the answers tell.

    True scores are normal with a variance whose prior is flat in their standard deviation. Given a variance their
    posterior is normal by Laplace's method, and a variance counts by its marginal likelihood; neither minds how pairs
    were chosen. What is said is the mean and the 95 % range over draws from both.
    """
    n = int(judged.sum())
    if n > _MOST_SCRIPTS:
        return {}
    left, right, decided = preferences.left, preferences.right, preferences.outcome != 0
    place = np.cumsum(judged) - 1
    pair = place[left] * np.int64(n) + place[right]

    def fit(spread: float) -> tuple[Floats, Floats, float]:
        """The likeliest scores, the factor of their precision, and the log-likelihood of the spread."""
        scores = BradleyTerry(ridge=1 / spread**2).scores(preferences)
        chance = expit(scores[left] - scores[right])
        # a tie is half a win of each
        won = np.log(np.where(preferences.outcome > 0, chance, 1 - chance))
        answers = np.where(decided, won, 0.5 * (np.log(chance) + np.log(1 - chance)))
        off = np.bincount(pair, chance * (1 - chance), n * n).reshape(n, n)
        factor = np.linalg.cholesky(np.diag((off + off.T).sum(axis=0) + 1 / spread**2) - off - off.T)
        prior = -0.5 * float((scores[judged] ** 2).sum()) / spread**2 - n * np.log(spread)
        return scores[judged], factor, float(answers.sum()) + prior - float(np.log(np.diag(factor)).sum())

    likelihood = np.array([fit(spread)[2] for spread in _SPREADS])
    share = np.exp(likelihood - likelihood.max())
    drawn, weight = [], []
    given = scale - scale.mean()
    for number in np.flatnonzero(share > 1e-3).tolist():
        middle, factor, _ = fit(_SPREADS[number])
        # the factor of the precision is the inverse of one of the covariance
        true = middle + solve_triangular(factor, rng.standard_normal((n, _N_DRAWS)), trans="T", lower=True).T
        true -= true.mean(axis=1, keepdims=True)
        correlation = true @ given / np.maximum(np.linalg.norm(true, axis=1) * np.linalg.norm(given), 1e-300)
        drawn.append(correlation * np.abs(correlation))
        weight.append(np.full(_N_DRAWS, share[number] / _N_DRAWS))
    values, weights = np.concatenate(drawn), np.concatenate(weight)
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    bounds = values[order][np.searchsorted(below, _TAILS)].tolist()
    found = [max(one, 0.0) for one in (float(np.average(values, weights=weights)), *bounds)]
    return dict(zip(("adjusted", "adjusted_lower", "adjusted_upper"), found, strict=True))


def _fit_statistics(group: Ints, residual: Floats, spread: Floats, n: int) -> pl.DataFrame:
    """Infit and outfit of each group of answers with intervals, and whether infit is too large for chance.

    ``decided`` is the number of answers; what a group has too few for is null.
    """
    use = spread > 0
    group, residual, spread = group[use], residual[use], spread[use]

    def total(values: Floats) -> Floats:
        return np.bincount(group, values, n).astype(np.float64)

    count, expected = np.bincount(group, minlength=n), total(spread)
    found: dict[str, Any] = {"decided": count}
    ratio = residual / spread
    with np.errstate(divide="ignore", invalid="ignore"):
        infit, outfit = total(residual) / expected, total(ratio) / count
        errors = (
            np.sqrt(total((residual - infit[group] * spread) ** 2)) / expected / infit,
            np.sqrt(total((ratio - outfit[group]) ** 2)) / count / outfit,
        )
        # (y - p)^2 has variance v (1 - 4 v) where v is p (1 - p)
        z = (total(residual) - expected) / np.sqrt(total(spread * (1 - 4 * spread)))
    for name, value, error in zip(("infit", "outfit"), (infit, outfit), errors, strict=True):
        width = ndtri(0.5 + _LEVEL / 2) * error
        ends: dict[str, Any] = {"": 0.0, "_lower": -width, "_upper": width}
        found |= {f"{name}{end}": np.where(count >= 2, value * np.exp(by), np.nan) for end, by in ends.items()}
    found["misfit"] = np.nan_to_num(z, nan=0.0, posinf=0.0) > ndtri(1 - 0.05 / max(int((count > 0).sum()), 1))
    return pl.DataFrame(found).with_columns(pl.col(pl.Float64).fill_nan(None))


def _judges(preferences: Preferences, residual: Floats, spread: Floats, chance: Floats) -> pl.DataFrame:
    """The judges, those who fit worst first."""
    n = preferences.n_annotators
    if not n:
        return pl.DataFrame(schema={"judge": pl.String, "judgements": pl.Int64})
    who, decided = preferences.annotator, preferences.outcome != 0
    fit = _fit_statistics(who, residual, spread, n)
    agreed = np.bincount(who[decided], (chance[decided] > 0.5) + 0.5 * (chance[decided] == 0.5), n)
    left = np.bincount(who[decided], preferences.outcome[decided] > 0, n)
    some = np.maximum(fit["decided"].to_numpy(), 1)
    table = pl.DataFrame({
        "judge": preferences.annotators.ids, "judgements": np.bincount(who, minlength=n),
        "with_the_scale": agreed / some, "chose_left": left / some,
    }).hstack(fit.drop("decided"))  # fmt: skip
    if preferences.duration is not None:
        times = pl.DataFrame({"who": who, "seconds": preferences.duration}).group_by("who").median()
        own = pl.DataFrame({"who": np.arange(n, dtype=who.dtype)}).join(times, on="who", how="left")
        table = table.with_columns(median_seconds=own["seconds"].fill_nan(None))
    kept = table.filter(pl.col("judgements") > 0)
    return kept.sort("infit", "judge", descending=[True, False], nulls_last=True)


def _grade_scripts(scale: Consensus, anchors: Any, levels: Any, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boundaries of grades on the scale, and the probability of each grade for every script, in the scale's order."""
    from scipy.optimize import minimize

    frame = to_frame(anchors)
    words = understand_items(frame.columns, also=("grade",))
    if "grade" not in words:
        raise JudgmentError(f"the anchors have no column grade; their columns are {', '.join(frame.columns)}")
    table = pl.DataFrame({"item": frame[words["item"]].cast(pl.String), "grade": frame[words["grade"]]}).drop_nulls()
    place = {str(one): code for code, one in enumerate(scale.items.ids.to_list())}
    unknown = [one for one in table["item"].to_list() if one not in place]
    if unknown:
        raise JudgmentError(f"anchors {first_few(map(repr, unknown))} were never judged; leave them out, or judge them")
    graded_words = [str(one) for one in table["grade"].to_list()]
    numbers = table["grade"].cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    if levels is None and numbers.null_count():
        seen = ",".join(sorted(set(graded_words)))
        raise ParameterError(f"grades of anchors are words; say their order, worst first: --levels {seen}")
    names = [str(one) for one in levels] if levels is not None else sorted(set(graded_words), key=float)
    outside = [one for one in graded_words if one not in names]
    if outside:
        raise ParameterError(f"grade {outside[0]!r} of an anchor is none of the levels {', '.join(names)}; add it")
    if not 2 <= len(names) <= _MOST_GRADES:
        raise ParameterError(words_of("many_grades", grades=counted(len(names), "grade"), most=_MOST_GRADES))
    code = np.array([place[one] for one in table["item"].to_list()])
    if len(np.unique(code)) < len(code):
        twice = table["item"].filter(table["item"].is_duplicated())[0]
        raise JudgmentError(f"anchor {twice!r} is listed twice; keep one of its grades")
    grade = np.array([names.index(one) for one in graded_words])
    error = scale.std_error if scale.std_error is not None else np.zeros(len(scale.items))
    spread = float(scale.scores.std()) or 1.0
    scores, errors = scale.scores / spread, error / spread
    centre = float(scores.mean())
    n = len(names) - 1

    def cuts_of(point: Floats) -> Floats:
        return np.cumsum(np.concatenate([point[:1], np.exp(point[1:n])]))

    def chances(cuts: Floats, own: float, where: Floats, sure: Floats) -> Floats:
        below = ndtr((cuts - where[:, None]) / np.sqrt(own**2 + sure[:, None] ** 2))
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def loss(point: Floats) -> float:
        cuts, own = cuts_of(point), float(np.exp(point[n]))
        likely = chances(cuts, own, scores[code], errors[code])[np.arange(len(code)), grade]
        # weak priors: boundaries within a few spreads of the scale, anchors right within about a quarter of it
        prior = ((cuts - centre) ** 2).sum() / 8 + (point[n] - np.log(0.25)) ** 2 / 2 + (point[1:n] ** 2).sum() / 8
        return float(prior - np.log(np.maximum(likely, 1e-300)).sum())

    start = np.concatenate([[centre - 1.0], np.full(max(n - 1, 0), np.log(2.0 / max(n, 1))), [np.log(0.25)]])
    best, moves = minimize(loss, start, method="BFGS"), _STEP * np.eye(n + 1)
    # second derivatives by differences
    hessian = np.empty((n + 1, n + 1))
    for i in range(n + 1):
        for j in range(i, n + 1):
            a, b = moves[i], moves[j]
            value = loss(best.x + a + b) - loss(best.x + a - b) - loss(best.x - a + b) + loss(best.x - a - b)
            hessian[i, j] = hessian[j, i] = value / (4 * _STEP**2)
    values, vectors = np.linalg.eigh(hessian)
    root = vectors / np.sqrt(np.maximum(values, 0.05))
    draws = best.x + np.random.default_rng(seed).standard_normal((_N_BOUNDARY_DRAWS, n + 1)) @ root.T
    probabilities = np.zeros((len(scores), n + 1))
    for draw in draws:
        probabilities += chances(cuts_of(draw), float(np.exp(np.clip(draw[n], -5, 3))), scores, errors)
    probabilities /= len(draws)
    cuts = np.array([cuts_of(draw) for draw in draws]) * spread
    low, high = np.quantile(cuts, _TAILS, axis=0)
    boundaries = pl.DataFrame({
        "grade": names[1:], "from_score": cuts_of(best.x) * spread, "lower": low, "upper": high,
        "anchors": np.bincount(grade, minlength=n + 1)[1:],
    })  # fmt: skip
    graded = pl.DataFrame({
        "script": scale.items.ids, "grade": [names[one] for one in probabilities.argmax(axis=1)],
        "anchor": pl.repeat(None, len(scores), dtype=pl.String, eager=True).scatter(code, graded_words),
        **{f"P({name})": probabilities[:, column] for column, name in enumerate(names)},
    })  # fmt: skip
    return boundaries, graded


def _steps(found: Moderation, preferences: Preferences, unsure: list[Any]) -> list[str]:
    """What to do next."""
    scripts, reliability, steps = found.scripts, found.reliability, list[str]()

    def add(step: str, name: str = "", ids: Any = (), **numbers: Any) -> None:
        named = {"number": counted(len(ids), name), "ids": first_few(map(str, ids)), "reliable": RELIABLE}
        steps.append(words_of(f"step_{step}", **named, **numbers))

    n_parts, _ = _components(preferences)
    if n_parts > 1:
        add("apart", n_parts=n_parts)
    if reliability["adaptive"] and reliability["separation"] is not None:
        add("adaptive", **reliability)
    known = next((reliability[name] for name in ("adjusted", "split_half") if reliability[name] is not None), None)
    upper = reliability["adjusted_upper"]
    if known is not None and upper is not None and known < RELIABLE <= upper and upper - known > 0.3:
        add("too_few", **reliability)
    elif known is not None and 0.1 < known < RELIABLE:
        factor = RELIABLE * (1 - known) / ((1 - RELIABLE) * known)
        add("more", known=known, more=int(np.ceil(len(preferences) * (factor - 1))))
    elif known is not None:
        add("no_order" if known < RELIABLE else "enough", known=known)
    few = scripts.filter(pl.col("judgements") < 5)["script"]
    if len(few):
        add("seldom", "script", few)
    extreme = scripts.filter((pl.col("won") == 0) | (pl.col("won") == pl.col("judgements")))["script"]
    if len(extreme):
        add("extreme", ids=extreme)
    for name, table in (("judge", found.judges), ("script", scripts)):
        if "misfit" in table.columns and table["misfit"].any():
            add(f"misfit_{name}", name, table.filter("misfit")[name])
    if len(found.misfits):
        add("surprising", "judgement", found.misfits["left"], decided=int((preferences.outcome != 0).sum()))
    if found.boundaries is not None and unsure:
        add("unsure", "script", unsure)
    return steps
