"""The verb ``propose``: requests in a file, the closing line, and mistakes in one line."""

import pytest

from crowdrank.io import read_table


@pytest.fixture
def files(tmp_path):
    """Votes, a list of items and a pool."""
    (tmp_path / "v.csv").write_text("query,item,annotator,grade\nq,x,ann,3\nq,y,ann,0\nr,x,bob,2\n")
    (tmp_path / "items.csv").write_text("query,item\nq,x\nq,y\nq,z\nr,x\n")
    (tmp_path / "pool.csv").write_text("annotator,price,capacity\nann,1,\nbob,2,1\ncy,3,5\n")
    return tmp_path


def test_requests_are_written_and_summed_up(run, files):
    ran = run("propose v.csv --scheme if-good-3 --budget 1000 --out requests.csv")
    assert ran.code == 0
    assert ran.out == ""
    table = read_table("requests.csv", text_ids=False)
    assert table.columns == ["query", "item", "annotator", "n_more", "reason", "cost", "expected_gain"]
    assert table["n_more"].to_list() == [2, 2]
    assert ran.lines[-3:-1] == [
        "wrote requests.csv", "only items that were judged already are asked about; list all with --items",
    ]  # fmt: skip
    assert ran.lines[-1].startswith(
        "4 requests about 2 items, cost 4; expected to lower the squared error of the items'"
    )


def test_a_list_of_items_and_a_pool(run, files):
    ran = run("propose v.csv -s if-good-2 --items items.csv --pool pool.csv")
    assert ran.code == 0
    rows = [line.split(",") for line in ran.out.splitlines()[1:]]
    assert sorted((row[1], row[0], row[2], row[5]) for row in rows) == [
        ("x", "q", "bob", "2.0"), ("x", "r", "ann", "1.0"), ("z", "q", "ann", "1.0"),
    ]  # fmt: skip
    assert not any("judged already" in line for line in ran.lines)


def test_settings_prices_and_the_stop_rule(run, files):
    ran = run("propose v.csv -s if_good_k --set k=4 --set good_from=3 --price 2.5")
    assert [line.split(",")[3:6] for line in ran.out.splitlines()[1:]] == [
        ["3", "its first grade is 3 or better", "7.5"]
    ]
    ran = run("propose v.csv --least-gain 1e9")
    assert ran.lines[-1] == "nothing to ask: nothing left is worth its price"
    assert ran.code == 0


def test_prices_by_group(run, files):
    (files / "who.csv").write_text("annotator,group\ncy,person\ngpt,program\n")
    ran = run("propose v.csv -s if-good-3 --pool who.csv --price person=4,program=1")
    assert sorted(line.split(",")[5] for line in ran.out.splitlines()[1:]) == ["1.0", "1.0", "4.0", "4.0"]


def test_costs_of_schemes(run, files):
    ran = run("propose v.csv --costs costs.csv -o r.csv")
    assert "wrote costs.csv" in ran.lines
    assert read_table("costs.csv").columns[:3] == ["scheme", "labelling", "labelling_exact"]


def test_preferences(run, votes):
    ran = run("propose votes.csv -s single -b 3")
    assert ran.code == 0
    assert ran.out.splitlines()[0].endswith("left,right,annotator,n_more,reason,cost,expected_gain")


def test_the_scheme_fits_the_judgments(run, votes):
    ran = run("propose votes.csv -b 3 --goal best -o r.csv")
    assert ran.code == 0
    assert "scheme information, since these are preferences, and it asks about the pairs that decide most" in ran.lines
    assert "the number of wrong best items by" in ran.lines[-1]
    assert read_table("r.csv")["reason"].str.contains("and either may be the best").all()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("propose v.csv -s if-god-3", "there is no scheme 'if-god-3'; did you mean 'if-good-3'? known: agreement"),
        ("propose v.csv -b 0", "--budget 0 buys nothing; give a budget above 0"),
        ("propose v.csv -b -3", "--budget -3 buys nothing; give a budget above 0"),
        ("propose v.csv --pool no_price.csv", "no_price.csv: the price is missing in row 2 ('bob') of the pool"),
        ("propose v.csv --items pool.csv", "pool.csv: the table has no item column"),
        ("propose v.csv --levels 0,1,2", "grade"),
        (
            "propose p.csv -s if-good-3",
            "if_good_k takes grades, not preferences; choose a scheme that takes preferences: chained",
        ),
        ("propose p.csv --goal top", "--goal top is not known; use order, best, top-5 for the first 5 places"),
        ("propose p.csv --goal top-0", "--goal top-0 is not known"),
        (
            "propose p.csv --goal top-2",
            "goal 'top-2' leaves nothing to decide, as there are 2 items; name at most top-1",
        ),
        (
            "propose p.csv -s single --goal best",
            "single has no goal; leave the goal out, or use the scheme information",
        ),
        ("propose v.csv --goal best", "if-good-3 has no goal; leave the goal out"),
        ("propose v.csv -s information --goal best", "goal 'best' applies to preferences, but these are grades"),
        ("propose v.csv --price cheap", "--price 'cheap' is not a number; write for example --price 2"),
        ("propose v.csv --price a=b", "--price 'a=b' is not a number"),
        ("propose v.csv -o v.csv", "v.csv is an input and would be overwritten"),
        ("propose v.csv --set k=0", "k=0 must be at least 1"),
        ("propose v.csv -s uncertainty -m borda", "borda"),
    ],
)
def test_mistakes_are_told_in_a_line(run, files, line, message):
    (files / "no_price.csv").write_text("annotator,price\nann,1\nbob,\n")
    (files / "p.csv").write_text("left,right,winner\nx,y,x\n")
    ran = run(line)
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert message in ran.err


def test_schemes_are_played_against_each_other(run, tmp_path):
    rows = [f"q{query},i{item},{grade}" for query in range(4) for item, grade in enumerate((0, 0, 1, 2, 3))]
    (tmp_path / "truth.csv").write_text("query,item,grade\n" + "\n".join(rows) + "\n")
    ran = run(
        "simulate truth.csv -n 8 --noise normal(0.7,0.1) --campaign single,if-good-3 --budget 40 --rounds 4 --seeds 2 "
        "--picture curves.svg -o curves.csv"
    )
    assert ran.code == 0
    assert any(line.startswith("if-good-3: gain_error ") for line in ran.lines)
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert (tmp_path / "curves.csv").read_text().startswith("scheme,seed,round,cost,n_judgments,gain_error")
    ran = run("simulate truth.csv --campaign single")
    assert ran.code == 2
    assert "say who answers" in ran.err
    ran = run("simulate truth.csv")
    assert ran.code == 2
    assert "say who votes" in ran.err


def test_propose_begins_with_nothing_judged(run, files):
    ran = run("propose --items items.csv --budget 3 --format csv")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 4
    assert "nothing is judged yet" in ran.err
    refused = run("propose")
    assert refused.code == 2
    assert "or with --items what may be asked about first" in refused.err
