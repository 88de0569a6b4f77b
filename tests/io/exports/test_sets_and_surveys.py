"""Surveys, labels, sets and ballots: what exactly is read, and what is asked rather than guessed."""

import polars as pl
import pytest
from benchmarks.more_samples import ALL_SAMPLES

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.io.exports import read
from crowdrank.io.read_options import ReadOptions


@pytest.fixture(name="save")
def _save(tmp_path):
    def save(text, name="votes.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return save


SETS = "who,item1,item2,item3,item4,best,worst\nann,w,x,y,z,w,z\n"


def pairs(path, **options):
    frame = read(path, "best-worst", ReadOptions(**options)).frame
    return set(frame.select("winner", "loser").iter_rows())


def test_the_best_beats_every_other_and_every_other_the_worst(save):
    assert pairs(save(SETS)) == {("w", "x"), ("w", "y"), ("w", "z"), ("x", "z"), ("y", "z")}
    assert pairs(save(SETS.replace(",w,z\n", ",w,\n"))) == {("w", "x"), ("w", "y"), ("w", "z")}
    assert pairs(save(SETS.replace(",worst", "").replace(",w,z\n", ",w\n"))) == {("w", "x"), ("w", "y"), ("w", "z")}


def test_the_best_may_be_named_by_its_place(save):
    for best, worst in (("item1", "item4"), ("1", "4"), ("Item1", "ITEM4")):
        assert pairs(save(SETS.replace(",w,z\n", f",{best},{worst}\n"))) == pairs(save(SETS))


def test_sets_that_make_no_sense(save):
    numbered = "item1,item2,item3,best,worst\n2,1,3,1,3\n"
    with pytest.raises(JudgmentError, match="which may be items or places"):
        cr.read_judgments(save(numbered))
    assert pairs(save(numbered.replace("2,1,3,1,3", "1,2,3,1,3"))) == {("1", "2"), ("1", "3"), ("2", "3")}
    for row, what in (("w,w", "the same item is the best and the worst"), ("q,z", "not among the items")):
        path = save(f"{SETS}bob,w,x,y,z,{row}\n")
        with pytest.raises(JudgmentError, match=f"row 2: .*{what}"):
            cr.read_judgments(path)
        assert len(pairs(path, invalid="drop")) == 5
    long = "set,annotator,item,best,worst\n1,ann,x,1,0\n1,ann,y,0,0\n1,ann,z,0,1\n"
    with pytest.raises(JudgmentError, match="neither is a grade"):
        cr.read_judgments(save(long))


TABLES = {
    f"{sample.importer}-{sample.name}": sample
    for sample in ALL_SAMPLES
    if sample.importer in ("best-worst", "ballots", "ranked-sets", "limesurvey")
}


@pytest.mark.parametrize("name", TABLES)
def test_the_same_in_every_form(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(TABLES[name].data)
    separator = ";" if b'";"' in TABLES[name].data else ","
    table = pl.read_csv(path, separator=separator, infer_schema=False)
    table.write_ndjson(path.with_suffix(".jsonl"))
    table.write_parquet(path.with_suffix(".parquet"))
    known = cr.read_judgments(path).frame()
    assert cr.read_judgments(path.with_suffix(".jsonl")).frame().equals(known)
    # what cells of a Parquet file hold is not looked at to tell who wrote it
    source = "ballots" if name == "ballots-orders.csv" else None
    assert cr.read_judgments(path.with_suffix(".parquet"), source=source).frame().equals(known)


def test_pairs_of_one_set_are_one_judgment(save):
    found = cr.read_judgments(save(SETS + "bob,w,x,y,z,x,z\n"))
    assert (len(found), found.n_judgments, found.n_annotators) == (10, 2, 2)


def test_ranks_of_a_survey_are_asked_about(save):
    head = "Respondent ID,Collector ID,Rank these,,\n,,Apple,Nuts,Crisps\n"
    path = save(head + "1,9,1,3,2\n2,9,2,1,3\n")
    with pytest.raises(JudgmentError, match="ranks with 1 for the best"):
        cr.read_judgments(path)
    ranked = cr.read_judgments(path, kind="ranking")
    assert cr.aggregate(ranked, "borda").order()[0] == "Apple"


def test_orders_in_one_cell_may_have_ties(save):
    frame = read(save("voter,ranking\nann,x>z=y>v\n"), "ballots").frame
    assert dict(frame.select("item", "rank").iter_rows()) == {"x": 1, "z": 2, "y": 2, "v": 4}
    with pytest.raises(JudgmentError, match="row 1: 'x>y>x' names an item twice"):
        cr.read_judgments(save("voter,ranking\nann,x>y>x\n"))


@pytest.mark.parametrize("name", ["votes.txt", "votes.csv"])
def test_cells_may_be_separated_by_spaces(save, name):
    spaced = cr.read_judgments(
        save("worker   item  label\nann      x     3\nbobby    x     2\nann      yy    1\n", name)
    )
    assert spaced.frame().equals(cr.read_judgments(save("worker,item,label\nann,x,3\nbobby,x,2\nann,yy,1\n")).frame())
    with pytest.raises(JudgmentError, match="looks like data; name the columns"):
        cr.read_judgments(save("ann x 3\nann y 1\nbob x 2\nbob y 2\n", name))


@pytest.mark.parametrize(
    ("head", "codes"),
    [("first,second,winner", ("first", "second")), ("first_item,second_item,preferred", ("first_item", "second_item")),
     ("white,black,result", ("1-0", "0-1")), ("home,away,winner", ("home", "away"))],
)  # fmt: skip
def test_sides_by_other_names(save, head, codes):
    found = cr.read_judgments(save(f"{head}\nx,y,{codes[0]}\ny,z,{codes[1]}\n"))
    assert found.kind == "preference"
    assert found.outcome.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("text", "said", "options"),
    [
        ("query,doc,position,clicked,session\nq,d1,1,1,s1\nq,d2,2,0,s1\nq,d1,1,0,s2\nq,d2,2,1,s2\n", "a log of clicks",
         {"columns": {"rank": "position"}}),
        ("rater,system_a,system_b,preference\nann,x,y,1\nbob,x,y,7\nann,y,z,4\nbob,y,z,6\n", "preference-4",
         {"strength": {"preference-4": "right"}}),
        ('annotator,item,answers\nann,x,"{""fit"": 3}"\nbob,x,"{""fit"": 4}"\n', "answers.fit",
         {"columns": {"grade": "answers.fit"}}),
        ("record_id,img_01,img_02,img_03,form_complete\n1,5,3,1,2\n2,4,3,2,2\n3,4,1,2,2\n", "'record_id' is a person",
         {"wide": ["img_01", "img_02", "img_03"], "columns": {"annotator": "record_id"}}),
        ("judge,text_a,text_b,which convinces more\nw1,foo,bar,A\nw2,foo,bar,B\n", "winner.*which convinces more",
         {"columns": {"winner": "which convinces more"}}),
    ],
)  # fmt: skip
def test_what_is_asked_is_read_as_answered(save, text, said, options):
    path = save(text)
    with pytest.raises(JudgmentError, match=said):
        cr.read_judgments(path)
    assert len(cr.read_judgments(path, **options))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('item,annotators,ratings\nx,"ann;bob","3;4"\ny,"ann;cid","1;2"\n', "hold lists"),
        ("judge,x,y,z,s1rank,s2rank,s3rank\nj,a,b,c,1,2,3\nk,a,b,c,2,1,3\n", "hold a rank each"),
        ("judge,rank1,rank2,rank3\nj,3,1,2\nk,1,2,3\n", "items or ranks"),
        ("annotator item grade\nann x 3\nann the item 1\nbob x 2\n", "line 3 has 4 words"),
        ("student,first,second,final\ns1,3,4,5\ns2,2,5,4\n", "lacks item and grade"),
        ("home,away,home_goals,away_goals\nx,y,2,1\ny,z,0,0\n", "home_goals-away_goals"),
        ("grader,item,grade\ng,e1,A\ng,e2,C\nh,e1,B\nh,e2,C\n", r"worst first: levels=\['C', 'B', 'A'\]"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(save, text, said):
    with pytest.raises(JudgmentError, match=said):
        cr.read_judgments(save(text))


def test_sides_within_objects_are_named_with_their_paths(save):
    row = '{"question": "q%d", "responses": {"a": {"model": "x"}, "b": {"model": "y"}}, "verdict": {"winner": "%s"}}\n'
    path = save("".join(row % (number, "ab"[number % 2]) for number in range(3)), "votes.jsonl")
    with pytest.raises(JudgmentError, match=r"may be two sides, and 'verdict\.winner' the winner"):
        cr.read_judgments(path)
    columns = {"left": "responses.a.model", "right": "responses.b.model", "winner": "verdict.winner"}
    assert cr.read_judgments(path, columns=columns).outcome.tolist() == [1, -1, 1]


def test_sets_with_a_rank_for_each_item(save):
    head = "judgeId,srcIndex,system1Id,system2Id,system3Id,system1rank,system2rank,system3rank\n"
    path = save(f"{head}j,5,x,y,z,2,1,2\nk,5,z,x,y,-1,1,2\nk,6,x,x,y,1,2,3\n")
    found = read(path, "ranked-sets")
    assert found.dropped == {"with an item twice": 1}
    rows = found.frame.select("query", "annotator", "item", "rank").rows()
    assert rows == [("5", "j", "x", 2), ("5", "j", "y", 1), ("5", "j", "z", 2), ("5", "k", "x", 1), ("5", "k", "y", 2)]


def test_systems_are_named_before_numbers_of_items(save):
    rows = "".join(f"u{n % 3},sys{n % 2},{10 + n % 4},{n},doc\n" for n in range(12))
    with pytest.raises(JudgmentError, match="columns 'system' and 'itemID' could both be the item"):
        cr.read_judgments(save(f"userID,system,itemID,score,documentID\n{rows}"))


def test_unfinished_responses_in_any_language(save):
    ids = ",".join(f'"{{""ImportId"":""{n}""}}"' for n in range(5))
    head = "Progress,Finished,ResponseId,Q5_1,Q5_2\nProgrès,Terminé,ID,Notez - Rouge,Notez - Vert\n"
    found = read(save(f"{head}{ids}\n100,Vrai,R_1,5,3\n50,Faux,R_2,1,2\n"), "qualtrics")
    assert found.dropped == {"not finished": 1}
    assert found.frame["annotator"].unique().to_list() == ["R_1"]


def test_dates_with_points_have_the_day_first(save):
    path = save("Zeitstempel,E-Mail,Gut? [A],Gut? [B]\n01.02.2025 10:00:00,a@example.org,5,3\n")
    when = read(path, "google-forms").frame["time"][0]
    assert pl.Series([when * 1000]).cast(pl.Int64).cast(pl.Datetime("ms")).dt.strftime("%d %b").item() == "01 Feb"


@pytest.mark.data
def test_rankings_of_translations_as_the_data_set_has_them(data_folder):
    known = cr.datasets.load("wmt13-fr-en-rankings/test").judgments
    found = cr.read_judgments(data_folder / "wmt13-fr-en-rankings" / "sample-fr-en-test.csv")
    columns = ["query", "annotator", "item", "rank"]
    frames = [each.frame().select(columns).sort(columns) for each in (found, known)]
    assert frames[0].equals(frames[1])
