"""What the service sends to its database stands in one file, and all of it is sent."""

import re
from pathlib import Path

import crowdrank.web
from crowdrank.web.collection import sql

FOLDER = Path(crowdrank.web.__file__).parent


def test_every_statement_that_is_named_is_there_and_every_one_there_is_used():
    code = "".join(path.read_text() for path in FOLDER.glob("*.py"))
    parts = re.findall(r"\{(\w+)\}", re.sub(r"^--.*$", "", (FOLDER / "statements.sql").read_text(), flags=re.MULTILINE))
    assert {*re.findall(r"\bsql\.(\w+)", code), *parts} == set(vars(sql))


def test_a_part_stands_in_full_in_the_statement_that_names_it():
    assert "{" not in sql.open_targets._sqlite
    assert "r.annotator = :annotator" in sql.open_targets._sqlite
    assert sql.open_targets._postgres.endswith("FOR UPDATE OF t SKIP LOCKED")
