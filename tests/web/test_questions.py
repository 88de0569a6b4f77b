"""Several questions of one request, and practice before the real work."""

import csv
import io
import json
import uuid
import warnings
from dataclasses import replace

import pytest
from tests.web.calling import SAME_SITE, Called
from tests.web.collecting import campaign, expect_promises
from tests.web.test_refit import Inside

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.web.campaign_file import Question, Settings, read_campaign
from crowdrank.web.collection import SqliteStore
from crowdrank.web.refit import Refit

TABLES = """
name = "answers"
kind = "grade"
items = "items.csv"
budget = 100
[[question]]
name = "help"
kind = "grade"
text = "How helpful is it?"
grades = ["Bad", "Fair", "Good"]
cant_tell = true
[[question]]
name = "faults"
kind = "choice"
text = "What is wrong?"
choices = ["facts", "tone"]
several = true
when = {help = ["Bad", "Fair"]}
[[question]]
name = "why"
kind = "text"
text = "Why?"
required = false
[[question]]
name = "safe"
kind = "slider"
text = "How safe?"
low = "not at all"
high = "wholly"
most = 10
"""


@pytest.fixture
def called(tmp_path):
    (tmp_path / "items.csv").write_text("item,content\n" + "".join(f"i{n},Text {n}\n" for n in range(6)))
    (tmp_path / "c.toml").write_text(TABLES)
    store = SqliteStore(tmp_path / "x.db")
    yield Called(store, read_campaign(tmp_path / "c.toml"))
    store.close()


def test_each_question_is_kept_and_comes_back(called, tmp_path):
    settings = called.collection.settings
    assert Settings(**json.loads(json.dumps(settings.plain()))) == settings
    token = called.join("ann")
    asked = called.post("/requests", token).json()["requests"][0]
    assert [one["name"] for one in asked["questions"]] == ["help", "faults", "why", "safe"]
    given = [
        {
            "help": {"grade": 0},
            "faults": {"choice": ["tone", "facts"]},
            "why": {"text": "no\x00"},
            "safe": {"value": 3},
        },
        {"help": {"grade": 2, "label": "Good"}, "safe": {"value": 10}},
        {"help": {"cant_tell": True}, "safe": {"value": 0.5}},
    ]
    for answers in given:
        assert called.judge(token, {"answers": answers}).status_code == 200
    seen = [one["answer"]["answers"] for one in called.get("/history", token).json()["judgments"]][::-1]
    assert seen[0] == {
        "help": {"grade": 0},
        "faults": {"choice": ["facts", "tone"]},
        "why": {"text": "no"},
        "safe": {"value": 3},
    }
    assert seen[2] == {"help": {"cant_tell": True}, "safe": {"value": 0.5}}
    native = called.get("/export?format=native", called.owner_token).text
    rows = [json.loads(line) for line in native.splitlines()]
    assert [(row["grade"], row["cant_tell"], row["question faults"]) for row in rows] == [
        (0, False, "facts; tone"), (2, False, None), (None, True, None),
    ]  # fmt: skip
    # "can't tell" takes its seat and its money, and no model sees it
    assert called.get("/campaign", called.owner_token).json()["cost"]["spent"] == 3
    (tmp_path / "votes.jsonl").write_text(called.get("/export?format=jsonl", called.owner_token).text)
    assert len(cr.read_judgments(tmp_path / "votes.jsonl")) == 2
    # each question is a set of judgments of its own
    for question, n, where in (("help", 2, None), ("faults", 1, {"criterion": "tone"}), ("safe", 3, None)):
        (tmp_path / "one.csv").write_bytes(
            called.get(f"/export?format=csv&question={question}", called.owner_token).content
        )
        judgments = cr.read_judgments(tmp_path / "one.csv", where=where)
        assert (len(judgments), judgments.kind) == (n, "grade"), question
    why = called.get("/export?format=jsonl&question=why", called.owner_token).text
    assert json.loads(why)["text"] == "no"
    assert called.get("/export?format=jsonl&question=x", called.owner_token).status_code == 422
    other = Called(SqliteStore(tmp_path / "y.db"), read_campaign(tmp_path / "c.toml"))
    headers = {"authorization": f"Bearer {other.owner_token}"}
    assert other.client.post("/api/v1/import", content=native, headers=headers).json()["kept"] == 3
    assert other.get("/export?format=native", other.owner_token).text == native
    for one in (called, other):
        expect_promises(one.collection)
    other.collection.store.close()


def fit(called):
    refit = Refit(called.collection)
    refit._worker = Inside(called.collection)
    refit.fit_now()


def test_every_question_about_items_has_a_consensus_of_its_own(called, tmp_path):
    """A second grade, classes, several classes and a slider: what `aggregate` gives of the export of each question."""
    settings, owner = called.collection.settings, called.owner_token
    more = (
        Question(name="style", kind="grade", text="Style?", grades=("poor", "good"), required=False),
        Question(name="topic", kind="choice", text="Topic?", choices=("news", "sport")),
    )
    object.__setattr__(called.collection, "settings", replace(settings, questions=settings.questions + more))
    called.write(lambda db: db.connection.exec_driver_sql(
        "UPDATE campaign SET settings = ?", (json.dumps(db.settings.plain()),)))  # fmt: skip
    for who in range(3):
        token = called.join(f"a{who}")
        for _ in range(6):
            request = called.post("/requests", token).json()["requests"][0]
            n = int(request["items"][0]["content"].split()[1])
            answers = {"help": {"grade": min(2, n // 2)}, "safe": {"value": n + who / 10}, "style": {"grade": n % 2},
                       "topic": {"choice": "sport" if n > 3 else "news"}}  # fmt: skip
            if n < 4:
                answers["faults"] = {"choice": ["tone"] if n < 2 else ["facts", "tone"]}
            if n == 5 and who:
                answers["help"] = {"cant_tell": True}
            assert called.judge(token, {"answers": answers}, request["id"]).status_code == 200
    fit(called)
    read = {}
    for name, nominal in (("help", False), ("safe", False), ("style", False), ("topic", True)):
        export = tmp_path / f"{name}.csv"
        export.write_bytes(called.get(f"/export?format=csv&question={name}", owner).content)
        judgments = cr.read_judgments(export, nominal=nominal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cr.aggregate(judgments).frame()
        view = called.get(f"/consensus?question={name}", owner).json()
        read[name] = {row["item"]: row for row in view["items"]}
        assert list(read[name]) == expected["item"].to_list(), name
        assert [row["score"] for row in view["items"]] == pytest.approx(expected["score"].to_list(), abs=1e-9), name
        assert len(called.get(f"/quality?question={name}", owner).json()["annotators"]) == 3
        assert called.get(f"/agreement?question={name}", owner).json()["alpha"] == 1 or name == "safe"
    assert [read["topic"][f"i{n}"]["grade"] for n in range(6)] == ["news"] * 4 + ["sport"] * 2
    labels = {row["item"]: row["labels"] for row in called.get("/consensus?question=faults", owner).json()["items"]}
    assert labels == {"i0": "tone", "i1": "tone", "i2": "facts|tone", "i3": "facts|tone"}
    # the page of items, an item, the overview, and one table of all
    page = called.get("/items?question=topic&search=i5", owner).json()["items"]
    assert [(row["item"], row["grade"], row["n"]) for row in page] == [("i5", "sport", 3)]
    item = called.get(f"/items/{page[0]['id']}", owner).json()
    assert (item["questions"]["safe"]["rank"], set(item["questions"])) == (1, {"safe", "style", "topic"})
    told = {one["name"]: one for one in called.get("/campaign", owner).json()["questions"]}
    assert list(told) == ["faults", "safe", "style", "topic"]
    assert all(one["as_of_seq"] == 18 for one in told.values())
    rows = list(csv.DictReader(io.StringIO(called.get("/export?format=consensus", owner).text)))
    assert {row["item"]: (row["topic grade"], row["faults labels"]) for row in rows}["i2"] == ("news", "facts|tone")
    assert len(rows) == 6
    assert called.get("/consensus?question=why", owner).status_code == 422
    # fits do not pile up
    for _ in range(5):
        fit(called)
    count = "SELECT question, COUNT(*) FROM fit GROUP BY question"
    kept = called.collection.store.submit_read(lambda c: dict(map(tuple, c.exec_driver_sql(count)))).result()
    assert set(kept) == {"", *told}
    assert max(kept.values()) <= 4


def test_pairs_have_a_consensus_for_each_preference(store):
    asked = tuple(Question(name=name, kind="preference", text=f"{name}?") for name in ("better", "shorter"))
    called = Called(store, kind="preference", n_items=4, questions=asked, scheme="3-overlap")
    token = called.join("cy")
    skipped = called.post("/requests", token).json()["requests"][0]["id"]
    called.post(f"/requests/{skipped}/skip", token, {"reason": "broken"})
    for who in range(3):
        token = called.join(f"a{who}")
        for _ in range(6):
            request = called.post("/requests", token).json()["requests"][0]
            first, second = (int(one["content"].split()[1]) for one in request["items"])
            answers = {"better": {"winner": "a" if first > second else "b"},
                       "shorter": {"winner": "a" if first < second else "b"}}  # fmt: skip
            assert called.judge(token, {"answers": answers}, request["id"]).status_code == 200
    # what was skipped has the columns of answers to all questions
    rows = list(csv.DictReader(io.StringIO(called.get("/export?format=csv&which=all", called.owner_token).text)))
    assert [row["skipped"] for row in rows if row["annotator"] == "cy"] == ["broken"]
    fit(called)
    orders = [[row["item"] for row in called.get(f"/consensus?question={one.name}", called.owner_token).json()["items"]]
              for one in asked]  # fmt: skip
    assert orders == [["i0-3", "i0-2", "i0-1", "i0-0"], ["i0-0", "i0-1", "i0-2", "i0-3"]]
    # every view of those who run it, on either database
    views = (
        "campaign",
        "items?question=shorter",
        "review",
        "people",
        "pay",
        "course",
        "comments",
        "export?format=consensus",
    )
    assert [called.get(f"/{path}", called.owner_token).status_code for path in views] == [200] * len(views)


@pytest.mark.parametrize(("answers", "field"), [
    ({}, "help"), ({"help": {"grade": 3}, "safe": {"value": 1}}, "help.grade"),
    ({"help": {"grade": 1}, "safe": {"value": 1}}, "faults"),
    ({"help": {"grade": 2}, "faults": {"choice": []}, "safe": {"value": 1}}, "faults"),
    ({"help": {"grade": 0}, "faults": {"choice": ["x"]}, "safe": {"value": 1}}, "faults.choice"),
    ({"help": {"grade": 2}, "safe": {"value": 11}}, "safe.value"),
    ({"help": {"grade": 2}, "safe": {"cant_tell": True}}, "safe"),
    ({"help": {"grade": 2}, "safe": {"value": 1}, "other": {"text": "x"}}, ""),
])  # fmt: skip
def test_an_answer_that_does_not_fit_names_the_question(called, answers, field):
    told = called.judge(called.join(), {"answers": answers})
    assert told.status_code == 422
    assert told.json()["error"]["field"] == ".".join(filter(None, ["answer.answers", field]))


@pytest.mark.parametrize(("old", "new", "words"), [
    ('kind = "grade"\ntext', 'kind = "text"\ntext', "needs a required question"),
    ('when = {help = ["Bad", "Fair"]}', 'when = {nothing = "x"}', "'nothing', which is no question before it"),
    ('name = "why"', 'name = "help"', "a printable name of its own"),
    ("several = true", "severel = true", "several"), ("most = 10", "most = -1", "least below most"),
])  # fmt: skip
def test_a_mistake_in_a_question_is_one_sentence(called, tmp_path, old, new, words):
    assert old in TABLES
    (tmp_path / "c.toml").write_text(TABLES.replace(old, new))
    with pytest.raises(ParameterError, match=words):
        read_campaign(tmp_path / "c.toml")


def test_preferences_have_a_strength_and_may_be_impossible(store):
    called = Called(store, kind="preference", strength=("slightly", "much"), cant_tell=True, scheme="2-overlap")
    token = called.join("ann")
    asked = called.post("/requests", token).json()["requests"][0]
    assert (asked["scale"], asked["cant_tell"]) == ({"ties": True, "strength": ["slightly", "much"]}, True)
    assert called.judge(token, {"winner": "a"}).status_code == 422
    for answer in ({"winner": "a", "strength": 2}, {"winner": "tie"}, {"cant_tell": True}):
        assert called.judge(token, answer).status_code == 200
    assert [one["answer"] for one in called.get("/history", token).json()["judgments"]] == [
        {"cant_tell": True}, {"winner": "tie"}, {"winner": "a", "strength": 2},
    ]  # fmt: skip
    rows = called.get("/judgments", called.owner_token).json()["judgments"]
    assert [(row["winner"], row["strength"]) for row in rows] == [("left", 2), ("tie", 0), (None, None)]
    expect_promises(called.collection)


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_practice_comes_first_and_has_a_mark(store, kind):
    """Two rounds: the first is failed, the second passed; then the real work begins."""
    made = campaign(kind, n_items=8, n_queries=2, n_known=4, training=2, pass_mark=1.0, set_size=4)
    items = tuple(replace(one, explanation="Look at **that**." if one.truth is not None else "") for one in made.items)
    called = Called(store, replace(made, items=items))
    called.post("/join", body={"invite": called.invite(), "name": "ann"})
    refused = called.post("/requests", **SAME_SITE)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "training_needed")

    def practise(right):
        given = called.post("/training", **SAME_SITE).json()
        number = given["request"]["id"]
        wrong = {
            "grade": {"grade": 3},
            "preference": {"winner": "tie"},
            "ranking": {"order": [["d"], ["c"], ["b"], ["a"]]},
        }
        guess = called.post(f"/training/{number}", None, {"answer": {"bad": 1}}, **SAME_SITE)
        assert guess.status_code == 422
        if right:
            answer = expected(called, given["request"], kind)
        else:
            answer = next(
                one
                for one in (wrong[kind], {"grade": 0}, {"order": [["a", "b", "c", "d"]]})
                if one != expected(called, given["request"], kind)
            )
        told = called.post(f"/training/{number}", None, {"answer": answer}, **SAME_SITE).json()
        assert told["right"] is right, (told, answer)
        assert "that" in told["explanation"]
        # sent again after a lost reply, it is the same
        assert called.post(f"/training/{number}", None, {"answer": answer}, **SAME_SITE).json()["right"] is right
        return told["state"]

    n_asked = called.post("/training", **SAME_SITE).json()["of"]
    states = [practise(right=False) for _ in range(n_asked)] + [practise(right=True) for _ in range(n_asked)]
    assert states == ["going"] * (n_asked - 1) + ["again"] + ["going"] * (n_asked - 1) + ["passed"]
    assert called.post("/training", **SAME_SITE).json() == {"state": "passed"}
    assert called.post("/requests", **SAME_SITE).json()["requests"]
    assert called.get("/campaign", called.owner_token).json()["seq"] == 0
    expect_promises(called.collection)


def expected(called, request, kind):
    """The right answer, by the number that stands in each text."""
    truths = [int(one["content"].split()[1]) % 4 for one in request["items"]]
    if kind == "grade":
        return {"grade": truths[0]}
    if kind == "preference":
        return {"winner": "a" if truths[0] > truths[1] else "b"}
    places = sorted(range(len(truths)), key=lambda place: -truths[place])
    return {"order": [["abcdefgh"[place]] for place in places]}


def test_checks_tell_how_they_went_where_the_owner_wants_it(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, n_items=30, n_known=20, checks=0.9, check_feedback=True)
    token, told = called.join(), []
    for _ in range(20):
        body = called.judge(token, {"grade": 1}, submission=str(uuid.uuid4())).json()
        told += [body["feedback"]] if "feedback" in body else []
    assert {one["right"] for one in told} == {True, False}
    assert all((one["expected"] == {"grade": 1}) == one["right"] for one in told)
    store.close()
