"""The file of a campaign: its settings, the questions of a request, and its items with what annotators see of each."""

from __future__ import annotations

import math
import mimetypes
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, Strict, StringConstraints, ValidationError, WrapValidator
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError

from .. import api
from ..errors import CrowdrankError, ParameterError
from ..io.tables import read_table
from ..registry import card, names
from ..wording import did_you_mean, either, one_of


def must(words: str) -> WrapValidator:
    """Say in these words what a field must do, where it does not."""

    def check(value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise PydanticCustomError("refused", "{words}", {"words": words}) from None

    return WrapValidator(check)


def must_be(words: str) -> WrapValidator:
    """Say in these words what a field must be, where it is not."""
    return must(f"be {words}")


WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
"""Types of fault and their HTTP status; what a value must do, by what pydantic finds of it; questions by kind."""

Json = dict[str, Any]
"""A JSON object, or a row of a table by its columns."""

CONTENT_TYPES = ("text", "markdown", "image", "audio", "html")
MAX_CONTENT = 200_000
"""Characters of one item's content, so that a page of twenty stays under 4 MB."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of a query with what is shown of it, and its truth where that is known."""

    query: str
    item: str
    content: str
    content_type: str = "text"
    query_content: str = ""
    truth: float | None = None
    explanation: str = ""


def read_items(folder: Path, name: str) -> tuple[Item, ...]:
    """Return the items in a table: query, item, content [, content_type, query_content, truth, explanation]."""
    table = read_table(folder / name)
    for column in ("item", "content"):
        if column not in table.columns:
            raise ParameterError(
                f"{name} has no column {column!r} (its columns: {either(table.columns, 'and')}); "
                f"rename the one that holds it to {column}"
            )
    columns = [one.name for one in fields(Item) if one.name in table.columns]
    rows = table.select(columns).iter_rows(named=True)
    items = tuple(item_of_row(row, f"{name}, row {number}", folder) for number, row in enumerate(rows, 1))
    seen: set[tuple[str, str]] = set()
    asked: dict[str, str] = {}
    for number, one in enumerate(items, 1):
        if (one.query, one.item) in seen:
            of = f" of query {one.query!r}" if one.query else ""
            raise ParameterError(f"{name}, row {number} repeats item {one.item!r}{of}; drop it")
        seen.add((one.query, one.item))
        if asked.setdefault(one.query, one.query_content) != one.query_content:
            raise ParameterError(
                f"{name}, row {number} has another query_content than the rows of query {one.query!r} before it; "
                "give all rows of a query the same"
            )
    if not items:
        raise ParameterError(f"{name} has no items; add a row for each")
    return items


def item_of_row(row: Json, where: str, folder: Path) -> Item:
    """The item of one row."""
    cells = {key: "" if value is None else str(value) for key, value in row.items()}
    if not cells["item"].strip():
        raise ParameterError(f"{where} has no item id; fill it in")
    if not cells["content"].strip():
        raise ParameterError(f"{where} (item {cells['item']!r}) has no content for annotators to see; fill it in")
    kind = cells.get("content_type") or "text"
    if kind not in CONTENT_TYPES:
        raise ParameterError(f"{where} has content_type {kind!r}; use {either(CONTENT_TYPES)}")
    for key in ("content", "query_content", "explanation"):
        if len(cells.get(key, "")) > MAX_CONTENT:
            raise ParameterError(f"{where} has a {key} of over {MAX_CONTENT:,} characters; shorten it or link a file")
    elsewhere = kind == "image" and cells["content"].startswith("https://")
    if kind in ("image", "audio") and not elsewhere and media_file(folder, cells["content"], kind) is None:
        raise ParameterError(
            f"{where} names {kind} file {cells['content']!r}, which is not a file of that type in the campaign's "
            "folder; put it there and give its name relative to the folder"
        )
    truth, text = None, cells.get("truth", "")
    if text.strip():
        with suppress(ValueError):
            truth = float(text)
        if truth is None or not math.isfinite(truth):
            raise ParameterError(f"{where} has truth {text!r}, which is not a number; correct it or leave it blank")
    texts = {name: cells.get(name, "") for name in ("query", "item", "content", "query_content", "explanation")}
    return Item(**texts, content_type=kind, truth=truth)


def media_file(folder: Path, content: str, kind: str) -> tuple[Path, str] | None:
    """Return the file of an image or audio item and its type, ``None`` where it is not inside the folder."""
    root = folder.resolve()
    try:
        path = (root / content).resolve()
        inside = path.is_relative_to(root) and path.is_file()
    except (OSError, ValueError):
        return None
    media_type = mimetypes.guess_type(path.name)[0] or ""
    # pictures that hold script are not shown as such: a reader of the page must not run it
    fits = media_type.startswith(f"{kind}/") and media_type != "image/svg+xml"
    return (path, media_type) if inside and fits else None


KINDS = ("grade", "preference", "ranking")
MAX_GRADES = 30
"""Grades beyond this are no scale that a person chooses from; class methods end there too."""

MAX_SET_SIZE = 20
MAX_MONEY = 2**53
"""Largest budget: integers up to here are exact in every JSON reader."""

QUESTION_KINDS = (*KINDS, "choice", "text", "slider")


Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
_CONFIG = ConfigDict(coerce_numbers_to_str=True)


@checked_dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Question:
    """One question of a request.

    Parameters
    ----------
    name, kind, text
        Its name in exports, what kind of answer it takes, and what people read.
    grades, choices, several
        Names of the grades, worst first; classes to choose from, and whether several may be chosen.
    ties, strength
        Whether a preference may be a tie; words for how much better, the weakest first.
    low, high, least, most, step
        Words at the ends of a slider, and its numbers.
    when
        Names of earlier questions and the answers to them, on which this one is asked.
    required, cant_tell
        Whether it has to be answered, and whether "can't tell" is an answer.
    """

    name: Text
    kind: Text
    text: Text
    grades: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    several: Flag = False
    ties: Flag = True
    strength: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    least: Number = 0.0
    most: Number = 100.0
    step: Number = 1.0
    when: Mapping[str, Any] = field(default_factory=dict)
    required: Flag = True
    cant_tell: Flag = False


def expect_keys(table: Mapping[str, Any], known: Collection[str], needed: Sequence[str], where: str) -> None:
    """Refuse a table with a key that is not known, or without one that it needs."""
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known)
            raise ParameterError(f"{where} has a key {key!r} that is not known; {hint}known: {either(sorted(known))}")
    for key in needed:
        if key not in table:
            raise ParameterError(f"{where} has no {key!r}; add a line {key} = ...")


def words_of(error: Mapping[str, Any]) -> str:
    """Return what a value must do, by one of the errors that pydantic lists."""
    return WORDS["must"].get(error["type"], "be of another type").format(**error.get("ctx", {}))


def complaint(error: ValidationError) -> ParameterError:
    """Return what is wrong with the value of a key, in a sentence."""
    first: Any = error.errors()[0]
    return ParameterError(f"{'.'.join(map(str, first['loc']))} = {first['input']!r} must {words_of(first)}")


def read_questions(tables: Sequence[Any], kind: str) -> Json:
    """Return what the ``[[question]]`` tables of a campaign set: all questions, checked, and what the main one says."""
    known = {one.name for one in fields(Question)}
    questions: dict[str, Question] = {}
    for number, table in enumerate(tables, 1):
        where = f"question {number}"
        if not isinstance(table, dict):
            raise ParameterError(f"{where} must be a table; write [[question]] above its keys")
        expect_keys(table, known, ("name", "kind", "text"), where)
        try:
            one = Question(**table)
        except ValidationError as error:
            raise ParameterError(f"{where}: {complaint(error)}") from None
        for key in ("name", "kind", "text"):
            if not table[key].strip():
                raise ParameterError(f'{where} has no {key}; add a line {key} = "..."')
        one_of(one.kind, QUESTION_KINDS, f"{where}: kind")
        where = f"question {one.name!r}"
        if one.name in questions or not one.name.isprintable() or len(one.name) > 60:
            raise ParameterError(f"{where} needs a printable name of its own, of up to 60 characters")
        if one.kind in KINDS and one.kind != kind:
            raise ParameterError(f"{where} has kind {one.kind!r}, and requests of this campaign are for {kind}s")
        if one.kind == "grade" and not 2 <= len(one.grades) <= MAX_GRADES:
            raise ParameterError(f'{where} needs 2 to 30 grades, worst first, such as grades = ["Bad", "Good"]')
        if one.kind == "choice" and not 2 <= len(set(one.choices)) == len(one.choices) <= 200:
            raise ParameterError(f'{where} needs 2 to 200 different choices, such as choices = ["news", "sport"]')
        if one.kind == "slider" and not (one.least < one.most and one.step > 0):
            raise ParameterError(f"{where} needs least below most, and a step above 0")
        for name in one.when:
            if name not in questions:
                before = either(sorted(questions)) or "none"
                raise ParameterError(f"{where} waits for {name!r}, which is no question before it; known: {before}")
        questions[one.name] = one
    asked = tuple(questions.values())
    main = main_of(asked, kind)
    if main is None:
        raise ParameterError(
            f"kind = {kind!r} needs a required question of kind {kind!r} without a condition, which the scheme goes by"
        )
    return {"questions": asked, "question": main.text, "grades": main.grades, "ties": main.ties}


def main_of(questions: Sequence[Question], kind: str) -> Question | None:
    """Return the question that the scheme goes by: the first of the campaign's kind that everybody has to answer."""
    return next((one for one in questions if one.kind == kind and one.required and not one.when), None)


def holds(question: Question, questions: Sequence[Question], answers: Mapping[str, Any]) -> bool:
    """Return whether a question is asked, by the answers to those before it."""
    kinds = {one.name: one for one in questions}
    for name, wanted in question.when.items():
        value = answers.get(name)
        if value is None or "cant_tell" in value:
            return False
        said: Any = next(iter(value.values()))
        if kinds[name].kind == "grade":
            said = [kinds[name].grades[said], said]
        said = said if isinstance(said, list) else [said]
        if not any(one in said for one in (wanted if isinstance(wanted, list) else [wanted])):
            return False
    return True


def expect_printable(text: str) -> str:
    """Return a text that can be shown on a line; refuse another."""
    if not text.isprintable():
        raise ValueError(text)
    return text


Share = Annotated[Number, Field(ge=0, le=1)]


@checked_dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Settings:
    """What a campaign asks, of whom, at what cost.

    Parameters
    ----------
    name, kind, scheme, params
        Name of the campaign, kind of judgment, scheme of the registry and its parameters.
    question, guidelines
        What annotators are asked, and what they have to read and accept first (Markdown).
    budget, cost
        Money in all, and what a judgment by a person or by a program costs.
    overlap_max
        Most judgments of one target.
    lease_seconds, open_limit
        How long a request is held for an annotator, and how many a person holds at once.
    grades
        Names of the grades, worst first; a judgment holds the place, counted from 0.
    ties
        Whether a preference may be a tie.
    set_size, sets_per_item
        Items of one ranking, and in how many rankings each item stands.
    overlap_first
        Share of targets, at least 20, that are completed before the others are begun, so that quality is known early.
    checks
        Share of requests that are about items of known truth.
    method, least_gain, close_when_done
        Aggregator of the consensus; the stop rule: expected gain for each unit of money below which nothing is asked;
        and whether the campaign closes itself once nothing is left to ask.
    show_quality
        Whether annotators see their own quality.
    about, asked_by, duration, pay
        What people read before they join: what it is about, who asks, how long it takes, what it pays.
    per_person
        Most judgments of one person, 0 for any number; who has given them is done.
    completion
        What people who are done get: a ``code``, and a ``url`` to go back to, with ``{code}`` and ``{id}`` filled in.
    language
        Language of the page, such as ``"de"``; the browser's own where nothing is said.
    cant_tell, strength
        Whether "can't tell" is an answer; words for how much better the better one is, the weakest first.
    questions
        Several questions of one request; without any there is the one that the settings above describe.
    training, pass_mark, training_rounds
        Items of known truth that people practise on first, the share that has to be right, and how often they may try.
    check_feedback
        Whether people are told how they did on items of known truth.
    listen
        Share of each sound that has to be played before an answer; with 0 it has to be started.
    webhook
        Address that is told of judgments and of the end.
    seed
        Seed of orders and draws.
    """

    name: Annotated[
        Text, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), AfterValidator(expect_printable),
        must("have 1 to 100 printable characters"),
    ]  # fmt: skip
    kind: Text
    scheme: Text = "3-overlap"
    params: Mapping[str, Any] = field(default_factory=dict)
    question: Text = ""
    guidelines: Text = ""
    budget: Annotated[int, Strict(), Field(ge=1, le=MAX_MONEY)]
    cost: Annotated[
        Mapping[Literal["person", "program"], Annotated[int, Strict(), Field(ge=0)]],
        must("give whole numbers for person and program, such as cost = {person = 4, program = 1}"),
    ] = field(default_factory=lambda: {"person": 1, "program": 1})
    overlap_max: Annotated[int, Strict(), Field(ge=0, le=10_000)] = 0
    lease_seconds: Annotated[int, Strict(), Field(ge=5, le=86_400)] = 600
    open_limit: Annotated[int, Strict(), Field(ge=1, le=20)] = 1
    grades: Annotated[tuple[Text, ...], must_be("a list of names in quotes, worst first")] = ()
    ties: Flag = True
    set_size: Annotated[int, Strict(), Field(ge=2, le=MAX_SET_SIZE)] = 5
    sets_per_item: Annotated[int, Strict(), Field(ge=1, le=100)] = 1
    overlap_first: Annotated[Share, must_be("a share from 0 to 1, such as 0.1")] = 0.1
    checks: Annotated[Number, Field(ge=0, lt=1), must_be("a share from 0 to below 1, such as 0.05")] = 0.0
    method: Text = "auto"
    least_gain: Annotated[Number, Field(ge=0)] = 0.0
    close_when_done: Flag = False
    show_quality: Flag = False
    about: Text = ""
    asked_by: Text = ""
    duration: Text = ""
    pay: Text = ""
    per_person: Annotated[int, Strict(), Field(ge=0, le=10**9)] = 0
    completion: Mapping[str, str] = field(default_factory=dict)
    language: Text = ""
    listen: Annotated[Share, must_be("a share from 0 to 1, such as 0.9")] = 0.0
    cant_tell: Flag = False
    strength: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    training: Annotated[int, Strict(), Field(ge=0, le=100)] = 0
    pass_mark: Annotated[Share, must_be("a share from 0 to 1, such as 0.8")] = 0.8
    training_rounds: Annotated[int, Strict(), Field(ge=1, le=20)] = 2
    check_feedback: Flag = False
    webhook: Annotated[
        Text, StringConstraints(pattern=r"^($|https://|http://(127\.0\.0\.1|localhost)(:\d+)?/)"),
        must("begin with https://, or be on this machine"),
    ] = ""  # fmt: skip
    seed: Annotated[int, Strict(), Field(ge=0, le=2**31)] = 0

    def plain(self) -> Json:
        """Return the settings as JSON holds them."""
        return asdict(self)

    @cached_property
    def main_question(self) -> Question:
        """The question that the scheme and the consensus go by."""
        return main_of(self.questions, self.kind) or Question(
            name="", kind=self.kind, text=self.question, grades=self.grades, ties=self.ties, strength=self.strength,
            cant_tell=self.cant_tell,
        )  # fmt: skip

    @cached_property
    def more_questions(self) -> tuple[Question, ...]:
        """The other questions that have a consensus of their own: those about the same items, without free text."""
        kinds = (self.kind, "choice", "slider") if self.kind == "grade" else (self.kind,)
        return tuple(one for one in self.questions if one.kind in kinds and one != self.main_question)


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign file: its settings, its items, and the folder that images and audio lie in."""

    settings: Settings
    items: tuple[Item, ...]
    folder: Path


LANGUAGES = ("en", "de", "es", "fr", "zh", "ar")
"""Languages that the page has words in."""

_CHANGEABLE = (
    "question", "guidelines", "budget", "lease_seconds", "overlap_max", "show_quality", "about", "asked_by", "duration",
    "pay", "per_person", "completion", "language", "listen", "webhook",
)  # fmt: skip
_FILE_KEYS = {one.name for one in fields(Settings)} - {"guidelines", "questions"} | {"items", "consent"}


def read_campaign(path: str | Path) -> Campaign:
    """Return the campaign in a TOML file, everything in it checked.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "items.csv").write_text("item,content\\nx,First answer\\ny,Second answer\\n")
    >>> lines = ('name = "answers"', 'kind = "grade"', 'items = "items.csv"', 'budget = 10', 'grades = ["Bad", "Good"]')
    >>> _ = (folder / "campaign.toml").write_text("\\n".join(lines))
    >>> campaign = read_campaign(folder / "campaign.toml")
    >>> campaign.settings.overlap_max, len(campaign.items)
    (3, 2)
    """
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path.name} is not TOML: {error}; write key = value, one to a line") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None
    except FileNotFoundError:
        raise ParameterError(f"there is no campaign file {path}; name one, or try crowdrank serve --demo") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    return campaign_of(document, path.parent, path.name)


def campaign_of(document: Mapping[str, Any], folder: Path, name: str = "the campaign") -> Campaign:
    """Return the campaign that the keys of a file describe; paths are relative to the folder."""
    expect_keys(document, _FILE_KEYS, ("name", "kind", "items", "budget"), name)
    given = {key: value for key, value in document.items() if key not in ("items", "consent")}
    try:
        if isinstance(given.get("question"), list):
            given |= read_questions(given["question"], str(given["kind"]))
        if (consent := document.get("consent")) is not None:
            given["guidelines"] = _text_file(consent, folder)
        settings = settings_of(given)
        file = document["items"]
        if not isinstance(file, str) or not file:
            raise ParameterError(f"items = {file!r} must be the name of a file in quotes")
        items = read_items(folder, file)
    except CrowdrankError as error:
        raise ParameterError(f"{name}: {error}") from None
    if settings.kind != "grade":
        lonely = [query for query, size in Counter(item.query for item in items).items() if size < 2]
        if lonely:
            what = f"query {lonely[0]!r} has" if lonely[0] else "there is"
            raise ParameterError(f"{name}: {what} only one item, so nothing can be compared; add another")
    for key in ("training", "checks"):
        if getattr(settings, key) and all(item.truth is None for item in items):
            raise ParameterError(
                f"{name}: {key} = {getattr(settings, key)} needs items with a truth; add a truth column"
            )
    for item in items:
        expect_truth(settings, item, f"{name}: item {item.item!r}")
    if settings.checks and settings.kind == "grade" and all(item.truth is not None for item in items):
        raise ParameterError(f"{name}: every item has a truth, so nothing is left to ask; set checks = 0 or add items")
    return Campaign(settings=settings, items=items, folder=folder.resolve())


def _text_file(name: Any, folder: Path) -> str:
    """The text in the file of guidelines."""
    if not isinstance(name, str) or not name:
        raise ParameterError(f"consent = {name!r} must be the name of a file in quotes")
    try:
        text = (folder / name).read_text("utf-8-sig")
    except FileNotFoundError:
        raise ParameterError(f"consent = {name!r} names a file that is not there; write the guidelines to it") from None
    except (OSError, UnicodeDecodeError):
        file = Path(name).name
        raise ParameterError(f"consent = {name!r} cannot be read as UTF-8 text; check the file {file}") from None
    if len(text) > 100_000:
        raise ParameterError(f"consent = {name!r} is longer than 100,000 characters; shorten it")
    return text


def expect_truth(settings: Settings, item: Item, where: str) -> None:
    """Refuse a truth beyond the grades."""
    top = len(settings.grades) - 1
    if item.truth is not None and settings.kind == "grade" and not 0 <= item.truth <= top:
        raise ParameterError(f"{where} has truth {item.truth:g}, and grades count from 0 to {top}")


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Return settings of these values, each checked and all together."""
    try:
        return check_settings(Settings(**given))
    except ValidationError as error:
        raise complaint(error) from None


def check_settings(settings: Settings) -> Settings:
    """Return settings that fit together, what follows from others filled in."""
    kind, grades = settings.kind, settings.grades
    one_of(kind, KINDS, "kind")
    if kind == "ranking":
        if api.target_rule(settings.scheme, settings.params, grades, kind=kind) is None:
            raise ParameterError(f"scheme {settings.scheme!r} does not choose rankings; use 3-overlap or the like")
    else:
        api.check_requests(settings.scheme, settings.params)
        takes = card("scheme", settings.scheme).kinds
        if kind not in takes:
            fitting = either([name for name in names("scheme") if kind in card("scheme", name).kinds])
            meant = either([f"{one}s" for one in takes], "and")
            raise ParameterError(f"scheme {settings.scheme!r} is for {meant}; for {kind}s use {fitting}")
    if settings.strength and kind != "preference":
        raise ParameterError(f'strength belongs to kind = "preference", and this is {kind!r}; leave it out')
    if settings.language:
        one_of(settings.language, LANGUAGES, "language")
    way_back = settings.completion.get("url", "https:")
    if not settings.completion.keys() <= {"code", "url"} or not way_back.startswith("https:"):
        raise ParameterError(
            'completion may hold a code and a url that begins with https:, such as completion = {code = "C1A2", '
            'url = "https://app.prolific.com/submissions/complete?cc={code}"}'
        )
    if kind != "grade" and grades:
        raise ParameterError(f'grades belong to kind = "grade", and this is {kind!r}; leave them out')
    if kind == "grade" and not 2 <= len(grades) <= MAX_GRADES:
        raise ParameterError(f'grades needs 2 to {MAX_GRADES} names, worst first, such as ["Bad", "Good"]')
    if len(set(grades)) < len(grades) or not all(one.strip() for one in grades):
        raise ParameterError("grades has a name twice or a blank one; give each grade a name of its own")
    if settings.method != "auto":
        api.check_aggregation(settings.method)
        takes = card("aggregator", settings.method).kinds
        if kind not in takes:
            meant = either([f"{one}s" for one in takes], "and")
            raise ParameterError(f'method {settings.method!r} takes {meant}, not {kind}s; use method = "auto"')
    rule = api.target_rule(settings.scheme, settings.params, grades)
    most = settings.overlap_max or (rule.most if rule is not None else 10)
    cost = {"person": 1, "program": 1, **settings.cost}
    return replace(settings, cost=cost, overlap_max=most, question=settings.question or WORDS["questions"][kind])


def changed_settings(old: Settings, new: Settings, reserved: int) -> Settings:
    """Return the settings of an edited file for a campaign that has begun; refuse what may not change any more."""
    differ = [one.name for one in fields(Settings) if getattr(old, one.name) != getattr(new, one.name)]
    fixed = [name for name in differ if name not in _CHANGEABLE]
    if fixed:
        raise ParameterError(
            f"{either(fixed, 'and')} cannot change once a campaign has begun (it was {getattr(old, fixed[0])!r}); "
            "put it back, or start another campaign with another --db"
        )
    if new.budget < reserved:
        raise ParameterError(f"budget = {new.budget} is below the {reserved} spent or promised; raise it")
    if new.overlap_max < old.overlap_max:
        raise ParameterError(f"overlap_max = {new.overlap_max} is below the former {old.overlap_max}; it can only rise")
    return new
