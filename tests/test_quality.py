"""Quality of annotators: agreement with the others, honest about those who saw little."""

import numpy as np
import polars as pl
import pytest

from crowdrank import quality
from crowdrank.data.judgments import Grades, Preferences, Rankings
from crowdrank.quality import held_out_quality, pair_accuracy, pair_agreement
from crowdrank.registry import make

METHODS = {"grade": "mean_grade", "preference": "bradley_terry", "ranking": "borda"}


def guessing_crowd(kind, seed, n_annotators=60, n_items=30, answers=5):
    """A crowd in which everybody guesses and gives five answers."""
    rng = np.random.default_rng(seed)
    rows = []
    for annotator in range(n_annotators):
        if kind == "preference":
            pairs = {tuple(rng.choice(n_items, 2, replace=False)) for _ in range(answers)}
            rows += [(f"w{annotator}", "q", f"i{a}", f"i{b}", rng.choice(["left", "right"])) for a, b in pairs]
        elif kind == "grade":
            rows += [
                (f"w{annotator}", "q", f"i{i}", int(rng.integers(0, 5))) for i in rng.choice(n_items, answers, False)
            ]
        else:
            rows += [
                (f"w{annotator}", "q", f"i{i}", place) for place, i in enumerate(rng.choice(n_items, answers, False))
            ]
    return {"grade": Grades, "preference": Preferences, "ranking": Rankings}[kind].from_rows(rows)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_guessing_annotators_get_one_half_and_intervals_that_cover_it(kind):
    means, covered = [], []
    for seed in range(12):
        quality = make("aggregator", METHODS[kind]).fit(guessing_crowd(kind, seed)).quality
        means.append(quality.quality.mean())
        covered.append(((quality.parameters["lower"] <= 0.5) & (quality.parameters["upper"] >= 0.5)).mean())
    assert np.mean(means) == pytest.approx(0.5, abs=0.04)
    assert np.mean(covered) >= 0.85


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_guessers_in_a_good_crowd_are_covered_too():
    rng = np.random.default_rng(5)
    strength = rng.normal(0, 2, 30)
    covered, means = [], []
    for _ in range(8):
        rows = []
        for annotator in range(60):
            guesses = annotator < 12
            for _ in range(5 if guesses else 40):
                a, b = rng.choice(30, 2, replace=False)
                p = 0.5 if guesses else 1 / (1 + np.exp(strength[b] - strength[a]))
                rows.append((f"w{annotator:02d}", "q", f"i{a}", f"i{b}", "left" if rng.random() < p else "right"))
        quality = make("aggregator", "bradley_terry").fit(Preferences.from_rows(rows)).quality
        low, high = quality.parameters["lower"][:12], quality.parameters["upper"][:12]
        covered.append(((low <= 0.5) & (high >= 0.5)).mean())
        means.append((quality.quality[:12].mean(), quality.quality[12:].mean()))
    assert np.mean(covered) >= 0.85
    guessing, good = np.mean(means, axis=0)
    assert guessing == pytest.approx(0.5, abs=0.05)
    assert good > 0.75


def test_an_annotator_alone_on_an_item_is_not_flattered():
    rows = [("ann", "q", "x", 5), ("ann", "q", "y", 1)]
    alone = make("aggregator", "mean_grade").fit(Grades.from_rows(rows)).quality
    assert alone.quality.tolist() == [0.5]
    assert alone.parameters["n_pairs"].tolist() == [0]
    assert alone.parameters["lower"][0] < 0.05


def test_reversed_annotators_fall_below_one_half():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=40)
    rows = []
    for annotator in range(10):
        sign = -1 if annotator == 3 else 1
        rows += [(f"w{annotator}", "q", f"i{i}", round(sign * truth[i] + rng.normal(0, 0.5), 2)) for i in range(40)]
    quality = make("aggregator", "mean_grade").fit(Grades.from_rows(rows)).quality
    assert quality.frame()["annotator"].to_list()[-1] == "w3"
    assert quality.parameters["upper"][3] < 0.5
    assert quality.quality[[0, 1, 2, 4]].min() > 0.7


def test_agreement_with_known_scores_is_counted_by_pairs():
    grades = Grades.from_rows(
        [("a", "q", "x", 3), ("a", "q", "y", 1), ("a", "q", "z", 1), ("b", "q", "x", 1), ("b", "q", "y", 2)]
    )
    found = pair_agreement(grades, np.array([1.0, 0.0, 1.0]), np.ones(3, bool))
    # a: x over y agrees, x over z ties in the scores; b: y over x disagrees
    assert found.agree.tolist() == [1.5, 0.0]
    assert found.n_pairs.tolist() == [2.0, 1.0]
    assert pair_accuracy(grades, np.array([1.0, 0.0, 1.0])).quality[0] > 0.5


def test_agreement_of_all_kinds_is_the_same_for_the_same_answers():
    rng = np.random.default_rng(0)
    rows = [(f"w{a}", f"q{q}", f"i{i}", int(rng.integers(0, 6))) for a in range(4) for q in range(2) for i in range(7)]
    grades = Grades.from_rows(rows)
    ranks = Rankings.from_frame(
        pl.DataFrame(rows, schema=["annotator", "query", "item", "rank"], orient="row").with_columns(
            rank=-pl.col("rank")
        )
    )
    scores, covered = rng.normal(size=grades.n_items).round(1), rng.random(grades.n_items) < 0.8
    found = [pair_agreement(judged, scores, covered) for judged in (grades, ranks, grades.as_preferences())]
    for other in found[1:]:
        np.testing.assert_allclose(other.agree, found[0].agree)
        np.testing.assert_allclose(other.n_pairs, found[0].n_pairs)


@pytest.mark.parametrize("seed", range(8))
def test_counting_pairs_gives_what_listing_them_gives(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, 40)
    offsets = np.append(0, np.cumsum(sizes))
    grade = np.concatenate([np.sort(rng.integers(0, 5, size)) for size in sizes]).astype(float)
    score, weight = rng.normal(size=offsets[-1]).round(1), rng.uniform(0.5, 2, offsets[-1])
    place = quality.places(offsets, score)
    listed = quality.row_sums(offsets, grade, place, weight)
    monkeypatch.setattr(quality, "FEW_PAIRS", 0)
    for counted, each in zip(quality.row_sums(offsets, grade, place, weight), listed, strict=True):
        np.testing.assert_allclose(counted, each, atol=1e-9)


def test_more_than_twenty_annotators_are_left_out_in_parts():
    rng = np.random.default_rng(2)
    rows = [
        (f"w{a:02d}", "q", f"i{i}", float(i + rng.normal(0, 3))) for a in range(50) for i in rng.choice(20, 8, False)
    ]
    quality = held_out_quality(make("aggregator", "mean_grade"), Grades.from_rows(rows))
    assert (quality.parameters["n_pairs"] > 0).all()
    assert quality.quality.min() > 0.6


@pytest.mark.parametrize("method", ["majority_vote", "dawid_skene"])
@pytest.mark.parametrize("numbers", [False, True])
def test_classes_are_right_or_wrong_whatever_their_order(method, numbers):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 80)
    rows = [
        (f"w{a}", "q", i, int(truth[i] if rng.random() < 0.9 else rng.integers(0, 3)))
        for a in range(5)
        for i in range(80)
    ]
    rows += [("same", "q", i, 1) for i in range(80)]
    rows = [(*row[:3], 10 * row[3] if numbers else "cab"[row[3]]) for row in rows]
    quality = make("aggregator", method).fit(Grades.from_rows(rows, nominal=True)).quality
    found = dict(zip(quality.annotators.ids.to_list(), quality.quality.tolist(), strict=True))
    assert found.pop("same") == pytest.approx(0.5, abs=0.06)
    assert all(value == pytest.approx(0.95, abs=0.04) for value in found.values())


def test_quality_from_classes_by_hand():
    # bob names the class of the others in one of two, ann and cy in one of two and one of one: three classes
    rows = [("ann", "q", "x", "a"), ("bob", "q", "x", "a"), ("cy", "q", "x", "a")]
    rows += [("ann", "q", "y", "b"), ("bob", "q", "y", "c"), ("ann", "q", "z", "b"), ("cy", "q", "z", "b")]
    quality = make("aggregator", "majority_vote").fit(Grades.from_rows(rows, nominal=True)).quality
    assert quality.parameters["n_pairs"].tolist() == [3, 2, 2]
    share = np.array([2 / 3, 1 / 2, 1.0])
    # answers to an item agree in 5 of 7 cases (x 3, z 2, y none), corrected for chance in 4 of 7; so do answers and the
    # class of the others, so that annotators and that class are both right as the square root of it
    right = np.minimum(0.5 + 0.5 * (1.5 * share - 0.5) / np.sqrt(4 / 7), 1.0)
    n = np.array([3.0, 2.0, 2.0]) * 4 / 7
    mean = ((right * n).sum() + 1) / (n.sum() + 2)
    np.testing.assert_allclose(quality.quality, (right * n + mean / 2) / (n + 0.5))


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_names_do_not_decide_the_quality_of_more_than_twenty_annotators(kind):
    """Folds and halves of a crowd were once dealt by name, which moved qualities by up to 0.08."""
    rng = np.random.default_rng(5)
    scores, who = rng.normal(size=12), np.repeat(np.arange(26), 4)
    first = np.concatenate([rng.permutation(12)[:4] for _ in range(26)])
    second = (first + rng.integers(1, 12, len(first))) % 12
    names, items = (np.array([f"{letter}{number:02d}" for number in range(26)]) for letter in "ai")

    def fitted(names, items):
        table = {"annotator": names[who], "item": items[first]}
        if kind == "grade":
            judged = Grades.from_frame({**table, "grade": np.round(scores[first] + 0.3 * noise)})
        elif kind == "preference":
            left = np.where(scores[first] + noise > scores[second], "left", "right")
            judged = Preferences.from_frame(
                {"annotator": names[who], "left": items[first], "right": items[second], "winner": left}
            )
        else:
            rank = np.argsort(np.argsort(-(scores[first] + noise).reshape(26, 4), axis=1), axis=1).ravel() + 1
            judged = Rankings.from_frame({**table, "rank": rank})
        found = make("aggregator", "borda").fit(judged).quality.frame()
        return found.select("annotator", "quality", "lower", "upper")

    noise = rng.normal(size=len(first))
    before, new = fitted(names, items), rng.permutation(names)
    after = fitted(new, rng.permutation(items))
    renamed = before.with_columns(pl.col("annotator").replace_strict(dict(zip(names, new, strict=True))))
    both = renamed.join(after, on="annotator")
    for column in ("quality", "lower", "upper"):
        np.testing.assert_allclose(both[column], both[f"{column}_right"], atol=1e-9)


def test_bounds_where_all_pairs_agree_are_the_exact_ones():
    """Jeffreys' own would hold a share of one in four in 87 % of samples of ten [Brown01]_."""
    lower, upper = (quality._share_quantile(np.array([0.0, 1.0, 0.5]), np.full(3, 10.0), t) for t in (0.05, 0.95))
    np.testing.assert_allclose(lower, [0.0, 0.05**0.1, 0.2619], atol=1e-3)
    np.testing.assert_allclose(upper, [1 - 0.05**0.1, 1.0, 0.7381], atol=1e-3)
    # weights of one tenth add up to all of them but for rounding
    nearly = quality._share_quantile(np.array([1e-16, 1.0 - 1e-16, 0.5]), np.full(3, 10.0), 0.05)
    np.testing.assert_allclose(nearly, lower, atol=1e-12)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("method", ["latent_score", "dawid_skene", "naive_bayes", "glad", "mace", "mean_grade"])
def test_the_quality_lies_well_within_its_interval(method):
    rng = np.random.default_rng(2)
    level, rows = rng.integers(0, 4, 60), []
    for who in range(14):
        # the last three are reversed, guess, or always say the same
        for item in rng.choice(60, 40, replace=False).tolist():
            grade = int(np.clip(level[item] + rng.integers(-2, 3), 0, 3))
            grade = {11: 3 - grade, 12: int(rng.integers(0, 4)), 13: 2}.get(who, grade)
            rows.append((f"a{who:02d}", "q", f"i{item:02d}", grade))
    found = make("aggregator", method).fit(Grades.from_rows(rows)).quality
    lower, upper = (found.parameters[name] for name in ("lower", "upper"))
    width, inside = upper - lower, np.minimum(found.quality - lower, upper - found.quality)
    # who agrees everywhere may be perfect
    assert (inside >= 0.0999 * width)[(lower > 0.0) & (upper < 1.0)].all()
    assert ((lower > 0.0) & (upper < 1.0)).sum() >= 4


def test_names_do_not_matter_where_all_pairs_have_a_common_item():
    ranks = {("ann", "q1"): "3333", ("ann", "q2"): "3333", ("bob", "q1"): "3333", ("bob", "q2"): "3323"}
    ranks |= {("eve", "q1"): "3332", ("eve", "q2"): "2232"}
    weight = dict(zip(ranks, [0.1, 0.1, 0.1, 0.1, 0.3, 0.7], strict=True))

    def qualities(new):
        rows = [
            (new.get(who, who), new.get(query, query), new.get(item, item), int(rank), weight[who, query])
            for (who, query), places in ranks.items()
            for item, rank in zip("abcd", places, strict=True)
        ]
        names = ("annotator", "query", "item", "rank", "weight")
        judged = Rankings.from_frame(dict(zip(names, zip(*rows, strict=True), strict=True)))
        found = make("aggregator", "borda").fit(judged).quality
        return [
            found.quality[judged.annotators.ids.to_list().index(new.get(who, who))] for who in ("ann", "bob", "eve")
        ]

    other = {"ann": "z9", "bob": "y8", "eve": "x7", "q1": "r2", "q2": "r1", "a": "é", "b": "10", "c": "9", "d": "D"}
    assert qualities({}) == pytest.approx(qualities(other), abs=1e-9)


@pytest.mark.parametrize(
    ("method", "least", "covered"),
    [("dawid_skene", 0.9, 0.85), ("naive_bayes", 0.9, 0.85), ("ensemble", 0.9, 0.85), ("mean_grade", 0.75, 0.8)],
)
def test_yes_or_no_of_rare_links_is_judged_by_how_exact_answers_are(method, least, covered):
    """Of 5 % yes hardly a pair tells of anybody, but all answers do."""
    alike, inside = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth, right = rng.random(500) < 0.05, np.clip(rng.normal(0.85, 0.1, 40), 0.5, 0.99)
        rows = [
            (f"a{who:02d}", "q", f"i{item:03d}", int(truth[item] == (rng.random() < right[who])))
            for item in range(500)
            for who in rng.choice(40, 4, replace=False)
        ]
        grades = Grades.from_rows(rows)
        known = truth[[int(item[1:]) for item in grades.items.ids]]
        accuracy = np.bincount(grades.annotator, grades.grade == known[grades.item]) / np.bincount(grades.annotator)
        found = make("aggregator", method, {}).fit(grades).quality
        # places in order, without ties
        places = [np.argsort(np.argsort(values)) for values in (found.quality, accuracy)]
        alike.append(np.corrcoef(*places)[0, 1])
        own = right[[int(who[1:]) for who in grades.annotators.ids]]
        ordered = own**2 / (own**2 + (1 - own) ** 2)
        inside.append((found.parameters["lower"] <= ordered) & (ordered <= found.parameters["upper"]))
    assert np.mean(alike) > least
    assert np.mean(inside) > covered


def test_yes_and_no_that_nobody_else_answered_say_nothing_of_anybody():
    grades = Grades.from_rows([("ann", "q1", "a", 0), ("bob", "q1", "b", 1)])
    table = make("aggregator", "latent_score").fit(grades).quality.frame()
    assert table["quality"].is_finite().all()
