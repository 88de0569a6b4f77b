"""Items read anew between two fits: what they are by all their judgments, the rest as the last fit has it."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.api import reads_anew, touched_items

CASES = [
    ("grade", "latent_score", 0.01), ("preference", "latent_score", 0.01), ("ranking", "latent_score", 0.01),
    ("preference", "bradley_terry", 1e-6), ("grade", "mace", 1e-9), ("grade", "dawid_skene", 1e-9),
    ("preference", "borda", 1e-12), ("ranking", "borda", 1e-12),
]  # fmt: skip
"""Kind, method, and how far what the fit says may be from what its own judgments say, read anew."""

KINDS = {"grade": cr.Grades, "preference": cr.Preferences, "ranking": cr.Rankings}


class Crowd:
    """Annotators of different quality and items of two queries, and judgments drawn from them, one list each."""

    def __init__(self, kind, seed, n_items=15, n_annotators=8):
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.scores = 1.5 * self.rng.normal(size=(2, n_items))
        self.alpha = np.append(0.1, self.rng.normal(1.2, 0.3, n_annotators - 1))

    def judge(self, annotator, query, item):
        """A judgment that has this item in it, as rows."""
        who, where, others = f"a{annotator}", f"q{query}", [n for n in range(self.scores.shape[1]) if n != item]
        if self.kind == "grade":
            seen = 1.5 + self.alpha[annotator] * self.scores[query, item] + 0.6 * self.rng.logistic()
            return [(who, where, f"i{item:02}", int(np.clip(np.round(seen), 0, 3)))]
        items = [item, *self.rng.permutation(others)[: 1 if self.kind == "preference" else 3]]
        seen = [self.alpha[annotator] * self.scores[query, one] + self.rng.gumbel() for one in items]
        if self.kind == "preference":
            return [(who, where, *(f"i{one:02}" for one in items), "left" if seen[0] > seen[1] else "right")]
        return [(who, where, f"i{items[place]:02}", rank) for rank, place in enumerate(np.argsort(seen)[::-1], 1)]

    def judgments(self, n_new=6):
        """Judgments of all items by all annotators but the last, and further ones of one item by others."""
        n = self.scores.shape[1]
        old = [self.judge(a, q, i) for a in range(len(self.alpha)) for q in (0, 1) for i in range(n) if (a + i) % 3]
        new = [self.judge(a, 0, 3) for a in range(len(self.alpha)) if self.kind != "grade" or not a % 3]
        return old, new[:n_new]


def of(kind, judgments):
    """Judgments of a list of such; each ranking has a number of its own."""
    rows = [(*row, number) for number, part in enumerate(judgments) for row in part]
    if kind != "ranking":
        return KINDS[kind].from_rows([row[:-1] for row in rows])
    return cr.Rankings.from_frame(
        dict(zip(("annotator", "query", "item", "rank", "ranking"), zip(*rows, strict=True), strict=True))
    )


def items_of(judgments):
    """The (query, item) of judgments."""
    return {(row[1], one) for part in judgments for row in part for one in row[2:] if str(one).startswith("i")}


def with_items(judgments, items):
    """The judgments that have one of these items in them."""
    return [part for part in judgments if items & items_of([part])]


def scores(rows):
    """Score by query and item."""
    return {(row["query"], row["item"]): row["score"] for row in rows}


def read(kind, method, old, new):
    """What a fit to old judgments says, and what items with new ones are then."""
    before, touched = cr.aggregate(of(kind, old), method), items_of(new)
    return before, touched_items(before, of(kind, with_items(old + new, touched)), sorted(touched))


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(("kind", "method", "tolerance"), CASES)
def test_the_judgments_of_the_fit_give_its_own_scores(kind, method, tolerance):
    old, new = Crowd(kind, 1).judgments()
    before, touched = cr.aggregate(of(kind, old), method), items_of(new)
    found = scores(touched_items(before, of(kind, with_items(old, touched)), sorted(touched)))
    expected, unit = scores(before.frame().to_dicts()), float(np.std(before.scores))
    assert set(found) == touched
    assert max(abs(found[name] - expected[name]) for name in touched) <= tolerance * unit


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(("kind", "method", "tolerance"), CASES)
def test_new_judgments_move_items_to_where_the_next_fit_has_them(kind, method, tolerance):
    """Over five crowds the distance to the whole fit falls by more than half, of touched items and none else."""
    off, left = [], []
    for seed in range(5):
        old, new = Crowd(kind, seed).judgments()
        before, rows = read(kind, method, old, new)
        whole, then = (
            scores(cr.aggregate(of(kind, old + new), method).frame().to_dicts()),
            scores(before.frame().to_dicts()),
        )
        found = scores(rows)
        assert set(found) == items_of(new)
        off += [then[name] - whole[name] for name in found]
        left += [found[name] - whole[name] for name in found]
    assert np.mean(np.square(left)) < 0.25 * np.mean(np.square(off))


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(("kind", "method", "tolerance"), CASES)
def test_neither_order_nor_a_second_time_changes_what_is_read(kind, method, tolerance):
    old, new = Crowd(kind, 2).judgments()
    before, rows = read(kind, method, old, new)
    touched = items_of(new)
    judgments = with_items(old + new, touched)
    again = touched_items(before, of(kind, judgments[::-1]), sorted(touched, reverse=True))
    assert [row["item"] for row in again] == [row["item"] for row in rows]
    np.testing.assert_allclose([row["score"] for row in again], [row["score"] for row in rows], rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(
    ("kind", "method"), [("grade", "latent_score"), ("preference", "latent_score"), ("preference", "bradley_terry")]
)
def test_other_items_and_annotators_stay_as_they_are(kind, method):
    old, new = Crowd(kind, 3).judgments()
    before = cr.aggregate(of(kind, old), method)
    kept, quality = before.scores.copy(), before.quality.frame()
    touched = items_of(new)
    judgments = of(kind, with_items(old + new, touched))
    free = np.array([name in touched for name in zip(judgments.items.query_ids(), judgments.items.ids, strict=True)])
    found, which = before.reread(judgments, free)
    code = before.items.codes_of(judgments.items, "consensus", "judgments")
    np.testing.assert_allclose(found.scores[~free], kept[code[~free]], rtol=0, atol=1e-8)
    assert which.tolist() == free.tolist()
    np.testing.assert_array_equal(before.scores, kept)
    assert before.quality.frame().equals(quality)


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_what_the_fit_does_not_know_does_not_count():
    """New items are read, what newcomers say is not, nor answers on a scale that the fit has not seen."""
    old, _ = Crowd("grade", 4).judgments()
    before = cr.aggregate(of("grade", old), "latent_score")
    asked = [
        [("a1", "q0", "new", 3)],
        [("nobody", "q0", "alone", 3)],
        [("a1", "q0", "odd", 9)],
        [("a2", "q0", "new", 3)],
    ]
    assert list(scores(touched_items(before, of("grade", asked)))) == [("q0", "new")]
    old, _ = Crowd("preference", 4).judgments()
    before = cr.aggregate(of("preference", old), "latent_score")
    told = [[("a1", "q0", "i00", "i01", "tie")], [("nobody", "q0", "i02", "i03", "left")]]
    assert touched_items(before, of("preference", told)) == []
    # others that the fit does not know and that are not asked for cannot be compared with
    strange = [[("a1", "q0", "i00", "new", "left")]]
    assert touched_items(before, of("preference", strange), [("q0", "i00")]) == []
    assert set(scores(touched_items(before, of("preference", strange)))) == {("q0", "i00"), ("q0", "new")}


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_methods_without_such_a_step_say_so():
    old, _ = Crowd("preference", 5).judgments()
    judgments = of("preference", old)
    for method in ("elo", "rank_centrality", "crowd_bt"):
        before = cr.aggregate(judgments, method)
        assert not reads_anew(before, "preference")
        assert touched_items(before, judgments) is None
    known = {"query": ["q0", "q0"], "item": ["i00", "i01"], "score": [0.0, 1.0]}
    assert cr.aggregate(judgments, "latent_score", known=known).reread is None
