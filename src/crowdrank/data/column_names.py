"""Names of columns: the words of the house, those that other tools use, and what a name says of a role.

The names themselves stand in ``words.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ..errors import JudgmentError, ParameterError
from ..wording import first_few, naming, one_of, option
from .words import TABLES, bad_word

FOREIGN: dict[str, tuple[str, ...]] = {word: tuple(names.split()) for word, names in TABLES["foreign"].items()}
"""Our word -> names understood for it, the most telling first; compared without case, with ``. - space`` as ``_``."""

NAMES = {what: tuple(names.split()) for what, names in TABLES["names"].items()}
"""Other names of columns, by what they say."""

EITHER = NAMES["either"]
"""Names that mean the item when no other column does, otherwise the query."""

NEEDED = {"grade": ("item", "grade"), "preference": ("left", "right", "winner"), "ranking": ("item", "rank")}
OPTIONAL = {
    "grade": ("query", "annotator", "weight", "time", "group", "duration"),
    "preference": ("query", "annotator", "weight", "time", "group", "strength", "duration", "judgment"),
    "ranking": ("query", "annotator", "ranking", "weight", "time", "group", "duration"),
}
BY_WINNER = tuple(zip(NAMES["by_winner"][::2], NAMES["by_winner"][1::2], strict=True))
"""Names of two columns that hold winners and losers, for preferences without left and right."""

OWN, LISTED, UNKNOWN_ID, WEAK = 6, 4, 3, 2
"""Points of a name: the house's own word, one that is listed, an unknown id, one that may mean something else."""

AHEAD = 2
"""Points by which a column must be ahead of the next."""

_GOLD, _ASIDE, _METRIC, _PEOPLE, _THINGS = (
    re.compile(TABLES["patterns"][name].replace("\n", ""), re.IGNORECASE)
    for name in ("gold", "aside", "metric", "people", "things")
)


def names_metric(name: str) -> bool | None:
    """Return whether a column says what was graded, such as ``metric``; ``None`` where it may, such as ``name``.

    Examples
    --------
    >>> names_metric("annotation_name"), names_metric("ratings[].criterion"), names_metric("key"), names_metric("judge")
    (True, True, None, False)
    """
    key = key_of(re.split(r"[.\]]+", name)[-1])
    return None if key in ("name", "key") else _METRIC.fullmatch(key) is not None


def is_gold(name: str) -> bool:
    """Return whether a name says that a column holds what is known to be right.

    Examples
    --------
    >>> is_gold("relevance_gold"), is_gold("golden_hour")
    (True, False)
    """
    return _GOLD.fullmatch(key_of(name)) is not None


def candidates(names: Iterable[str], columns: Mapping[str, str], also: Iterable[str] = ()) -> list[str]:
    """Return the columns whose cells may matter for which is which, and some ``also``; a house word leaves no doubt.

    Examples
    --------
    >>> candidates(["item", "model", "judge", "user", "score", "notes"], {})
    ['item', 'judge', 'user', 'score']
    """
    names = [str(name) for name in names]
    wanted = {*columns.values(), *also}
    plain = {key_of(name) for name in names}
    if "grade" not in columns and max((name_points("grade", name) for name in names), default=0) <= WEAK:
        # beside a weak name, or none, any column may be the grade
        return names
    for role in FOREIGN.keys() - columns.keys() - {"price", "capacity"}:
        likely = [name for name in names if name_points(role, name)]
        wanted.update([name for name in likely if key_of(name) == role] or likely)
    wanted.update(name for name in names for pair in BY_WINNER if plain_name(name) in pair and plain.issuperset(pair))
    return [name for name in names if name in wanted]


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def person_column(names: Iterable[str]) -> str | None:
    """Return the column that says who a row is about, by its name; ``None`` where there is none.

    Examples
    --------
    >>> person_column(["ResponseId", "age"]), person_column(["id", "rater1"])
    ('ResponseId', None)
    """
    points = {name: name_points("annotator", name) for name in names}
    points |= {name: LISTED for name in points if key_of(name).replace("_", "") in NAMES["respondents"]}
    best = max(points, key=lambda name: points[name], default=None)
    return best if best is not None and points[best] >= LISTED else None


def are_people(names: Iterable[str]) -> bool:
    """Return whether columns are called like annotators, each with a number or letter.

    Examples
    --------
    >>> are_people(["rater1", "rater2"]), are_people(["Q1_1", "Q1_2"])
    (True, False)
    """
    return all(_PEOPLE.fullmatch(name.strip()) is not None for name in names)


def thing_column(names: Iterable[str]) -> str | None:
    """Return the column with a name for an item, weak ones included; ``None`` where there is none or are several.

    Examples
    --------
    >>> thing_column(["id", "rater1"]), thing_column(["model", "prompt"])
    ('id', 'model')
    """
    points = sorted(((name_points("item", name), name) for name in names), reverse=True)
    ahead = bool(points) and points[0][0] > 0 and (len(points) == 1 or points[0][0] - points[1][0] >= AHEAD)
    return points[0][1] if ahead else None


def are_things(names: Iterable[str]) -> bool:
    """Return whether columns are called like items, each with a number.

    Examples
    --------
    >>> are_things(["img_01", "img_02"]), are_things(["R1", "R2"])
    (True, False)
    """
    return all(_THINGS.fullmatch(name.strip()) is not None for name in names)


def is_surely_item(name: str) -> bool:
    """Return whether a name means an item and little else."""
    return name_points("item", name) >= LISTED


@lru_cache(maxsize=10_000)
def key_of(name: str) -> str:
    """Return a name as it is compared: without what stands before a colon, leading marks and the s of the plural.

    Examples
    --------
    >>> key_of("!amt_worker_ids"), key_of("INPUT:image"), key_of("Worker Id"), key_of("class")
    ('amt_worker_id', 'image', 'worker_id', 'class')

    Votes in the plural are a number of them.

    >>> key_of("votes")
    'votes'
    """
    key = plain_name(_CAMEL.sub("_", name)).split(":")[-1].lstrip("!_")
    plural = key.endswith("s") and not key.endswith(("ss", "votes"))
    return key[:-1] if plural and (key.endswith("ids") or is_known(key[:-1])) else key


def _side_names(things: tuple[str, ...], ends: tuple[str, ...]) -> list[str]:
    """Names of one side of things: model_a, a_model, model1."""
    pairs = [(thing, end) for thing in things for end in ends]
    names = [name for thing, end in pairs for name in (f"{thing}_{end}", f"{end}_{thing}")]
    return names + [f"{thing}{end}" for thing, end in pairs if end.isdigit()]


def _names(role: str) -> dict[str, int]:
    """Points of the names of a role, spelt without underscores."""
    more, weak = (TABLES[table].get(role, "").split() for table in ("more", "weak"))
    if role in ("left", "right"):
        more += _side_names(NAMES["side_things"], NAMES[f"{role}_ends"])
        weak += _side_names(NAMES["side_texts"], NAMES[f"{role}_ends"])
    points = dict.fromkeys((*FOREIGN[role], *more), LISTED) | dict.fromkeys(weak, WEAK) | {role: OWN}
    return {name.replace("_", ""): number for name, number in points.items()}


_POINTS = {role: _names(role) for role in FOREIGN}


def is_known(key: str) -> bool:
    """Whether a name has a meaning in any role."""
    return any(key.replace("_", "") in names for names in _POINTS.values())


def is_known_name(name: str) -> bool:
    """Return whether a name says what a column holds, as ``worker`` and ``created_at`` do.

    Examples
    --------
    >>> is_known_name("worker"), is_known_name("842")
    (True, False)
    """
    key = key_of(name)
    return is_known(key) or bool(_GOLD.fullmatch(key)) or key.endswith("_id")


@lru_cache(maxsize=10_000)
def name_points(role: str, name: str) -> int:
    """Points that a name alone gives a column in a role."""
    key = key_of(name)
    if role == "grade" and _GOLD.fullmatch(key):
        return 0
    points = _POINTS[role].get(key.replace("_", ""), 0)
    if not points and role == "item" and key.endswith("_id"):
        points = 0 if is_known(key) or part_role(name) not in (None, "item") else UNKNOWN_ID
    return points


_PARTS, _PART_ENDS = (
    {role: tuple(words.split()) for role, words in TABLES[table].items()} for table in ("parts", "part_ends")
)
"""Words that say what a column is in a longer name, where no column has a name of its own for it, and last words."""


@lru_cache(maxsize=10_000)
def part_role(name: str) -> str | None:
    """Return the role that a word of a longer name stands for, the last one of several; ``None`` where none does.

    Examples
    --------
    >>> part_role("Overall Rating"), part_role("Rank (1 = best)"), part_role("Rater Name"), part_role("mean_score")
    ('grade', 'rank', 'annotator', None)
    """
    parts = [part.removesuffix("s") for part in re.split(r"[^a-z]+", key_of(name)) if part]
    if not parts or (len(parts) < 2 and len(name.split()) < 2):
        return None
    if is_gold(name) or is_of_a_side(name) or set(NAMES["summaries"]).intersection(parts):
        return None
    ended = [role for role in _PARTS if len(parts) == 1 or parts[-1] in _PART_ENDS.get(role, parts)]
    role = next((role for part in reversed(parts) for role in ended if part in _PARTS[role]), None)
    # what is preferred least is no winner
    no_winner = role == "winner" and bad_word(name) is not None
    return None if no_winner or (role in ("grade", "rank") and is_aside(name)) else role


def listed_sides(names: Iterable[str]) -> list[str]:
    """Return names such as item1, item2 and item3: three or more of which the first two are no pair.

    Examples
    --------
    >>> listed_sides(["item1", "item2", "item3", "best"]), listed_sides(["model_a", "model_b"])
    (['item1', 'item2', 'item3'], [])
    """
    ends = {name: match.groups() for name in names if (match := _LAST_END.fullmatch(key_of(name)))}
    firsts = {"3": "1", "c": "a"}
    third = {stem for stem, end in ends.values() if end in firsts and (stem, firsts[end]) in ends.values()}
    return [name for name, (stem, _) in ends.items() if stem in third]


_LAST_END = re.compile(r"(.*?)_?(\d|[a-h])")

_SIDE_ENDS = (("a", "b"), ("1", "2"), ("0", "1"), ("x", "y"), ("left", "right"))
_SIDE_STARTS = (("left", "right"), ("home", "away"), ("white", "black"))
_NEXT_ENDS = {"1": "3", "0": "2", "a": "c", "x": "z"}


def side_pairs(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return names that differ in a last a/b, 1/2, 0/1, x/y or left/right only, each with what they have in common.

    A first left/right, home/away or white/black makes two sides as well.

    Three or more names such as img1, img2 and img3 are a list and no pair.

    Examples
    --------
    >>> side_pairs(["question", "human_ref_A", "human_ref_B", "img1", "img2", "img3"])
    [('human_ref_', 'human_ref_A', 'human_ref_B')]
    """
    known = [(name.lower(), name) for name in names]
    by_name, pairs = dict(known), []
    for low, name in known:
        for first, second in _SIDE_ENDS:
            stem = low.removesuffix(first)
            listed = f"{stem}{_NEXT_ENDS.get(first, ' ')}" in by_name
            if stem != low and f"{stem}{second}" in by_name and not listed:
                pairs.append((stem, name, by_name[f"{stem}{second}"]))
    for low, name in known:
        for first, second in _SIDE_STARTS:
            rest = low.removeprefix(first)
            # left and right alone end so as well
            if rest not in (low, "") and f"{second}{rest}" in by_name:
                pairs.append((rest, name, by_name[f"{second}{rest}"]))
    # img0, img1 and img2 end in a pair of 1 and 2 as well
    return [one for one in pairs if not (one[1].endswith("1") and f"{one[0]}0" in by_name)]


def side_scores(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of columns that are called like a grade of either side.

    Examples
    --------
    >>> side_scores(["model_a", "model_b", "score_a", "score_b", "tokens_a", "tokens_b"])
    [('score_a', 'score_b')]
    """
    grades, scored = {*_PARTS["grade"], "reward", "point", "goal"}, []
    for stem, left, right in side_pairs(names):
        if grades & {part.removesuffix("s") for part in re.split(r"[^a-z]+", key_of(stem.strip("_-. ")))}:
            scored.append((left, right))
    return scored


_LAST_NUMBER = re.compile(r"(.*?)[_\s.\-]?(\d+)")


def is_series(names: Iterable[str]) -> bool:
    """Return whether names differ in a last number only.

    Examples
    --------
    >>> is_series(["R1", "R2", "R3"]), is_series(["helpfulness", "accuracy"])
    (True, False)
    """
    stems = [match[1].lower() if (match := _LAST_NUMBER.fullmatch(name.strip())) else None for name in names]
    return len(stems) > 1 and stems[0] is not None and len(set(stems)) == 1


def is_aside(name: str) -> bool:
    """Return whether a name says that a column holds something beside the judgment, such as how long it took.

    Examples
    --------
    >>> is_aside("lead_time"), is_aside("helpfulness")
    (True, False)
    """
    return _ASIDE.fullmatch(key_of(name)) is not None


_SIDE_END = re.compile(r"(_|^)(a|b|1|2|left|right)(_|$)")


def is_of_a_side(name: str) -> bool:
    """Return whether a name says that a column is about one of two sides.

    Examples
    --------
    >>> is_of_a_side("length_a"), is_of_a_side("length")
    (True, False)
    """
    return _SIDE_END.search(key_of(name)) is not None or key_of(name).startswith(("home_", "away_"))


_MOST_LISTED = 100


def understand_items(
    names: Iterable[str], columns: Mapping[str, str] | None = None, also: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the columns of a table about items, such as features or truth: item, query and the words in ``also``."""
    names = [str(name) for name in names]
    understood = assign_columns(("item", "query", *also), names, columns)
    if "item" not in understood:
        raise JudgmentError(f"the table has no item column ({could_serve(names, understood)}); {naming('item')}")
    return understood


def understand_pairs(names: Iterable[str]) -> dict[str, str] | None:
    """Return the columns left, right and query of a table about pairs of items; ``None`` where it is about none."""
    understood = assign_columns(("left", "right", "query"), [str(name) for name in names])
    return understood if "left" in understood and "right" in understood else None


def assign_columns(
    words: tuple[str, ...], names: list[str], columns: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each word its column: the given one, its own name, or the first foreign name that is free."""
    check_names(names)
    given = given_columns(names, columns or {})
    plain = {plain_name(name): name for name in reversed(names)}
    plain |= {name: name for name in names if name == plain_name(name)}
    assigned = {word: given[word] for word in words if word in given}
    # all words by their own names first, then by foreign ones, then by those that may mean two
    stages: tuple[dict[str, tuple[str, ...]], ...] = (
        {word: (word,) for word in words},
        {word: (FOREIGN | NAMES)[word] for word in words},
        {word: EITHER for word in ("item", "query") if word in words},
        {word: tuple(TABLES["more"][word].split()) for word in ("item", "annotator") if word in words},
    )
    for word, known in (pair for stage in stages for pair in stage.items()):
        free = (plain[name] for name in known if name in plain and plain[name] not in assigned.values())
        if word not in assigned and (column := next(free, None)) is not None:
            assigned[word] = column
    return assigned


@lru_cache(maxsize=10_000)
def plain_name(name: str) -> str:
    """Return a name in lower case, with white space, dots and dashes as underscores."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def given_columns(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The user's own naming, checked."""
    check_words(columns)
    for word, name in columns.items():
        if name not in names:
            what = f"{option('columns')} says {word} is {name!r}"
            raise JudgmentError(f"{what}, but the table's columns are {quote_names(names)}")
    return dict(columns)


def check_words(columns: Mapping[str, str], kind: str | None = None) -> None:
    """Refuse house words, and a kind, that there are none of."""
    for word in columns:
        if word not in FOREIGN and not is_side_word(word):
            raise ParameterError(f"{option('columns')} names {word!r}, which is none of {', '.join(FOREIGN)}")
    if kind is not None:
        one_of(kind, NEEDED, "kind", of_verb=True)


def is_side_word(word: str) -> bool:
    """Return whether a word is a covariate of one side, such as ``length_left``."""
    return word not in FOREIGN and word.endswith(("_left", "_right"))


def check_names(names: list[str]) -> None:
    """Refuse doubled column names."""
    plain = [name.strip() for name in names]
    doubled = min((name for name in set(plain) if plain.count(name) > 1), default=None)
    if doubled is not None:
        raise JudgmentError(f"column {doubled!r} stands {plain.count(doubled)} times in the header; rename one of them")


def could_serve(names: list[str], columns: Mapping[str, str]) -> str:
    """The columns that are free for what is missing."""
    return f"columns that could serve: {quote_names([name for name in names if name not in columns.values()])}"


def quote_names(names: Sequence[str]) -> str:
    """Return the names in quotes; of a very wide table as many as fit a screen."""
    return first_few([repr(name[:60]) for name in names], shown=_MOST_LISTED)
