"""Running the service: the database, the campaign in it, the process that fits, and the web server."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, ParameterError
from .campaign_file import Campaign, read_campaign

KEEP_ALIVE_SECONDS = 75
GRACE_SECONDS = 20
_OPTIONS = "CROWDRANK_SERVE"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the service is run, as the command line says."""

    campaign: str
    db: str
    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    behind_proxy: bool = False
    workers: int = 1
    refit: bool = True
    log_calls: bool = True

    @property
    def url(self) -> str:
        """The address that browsers show."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def expect_extra() -> None:
    """Refuse to go on without the packages of the extra ``web``."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"serve needs {error.name}; install it with pip install 'crowdrank[web]'") from None


def check_url(options: Options) -> None:
    """Refuse an address that browsers could not use."""
    from urllib.parse import urlsplit

    parts = urlsplit(options.url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query or parts.fragment:
        raise ParameterError(
            f"--public-url {options.public_url} must be like https://votes.example.org, without a path"
        )
    if options.workers > 1 and "://" not in options.db:
        raise ParameterError("--workers above 1 needs PostgreSQL; name it with --db postgresql://..., or leave it out")


def expect_port(options: Options) -> None:
    """Refuse an address that cannot be listened on, before a token is shown that nobody could use."""
    import socket

    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((options.host, options.port))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ParameterError(
                f"{options.host} port {options.port} cannot be listened on: {why}; choose another --port or --host"
            ) from None


def first_start(options: Options, campaign: Campaign) -> str | None:
    """Lay the campaign out where it is new; return the owner's token, which is known to nobody afterwards."""
    from .access import OWNER, new_token, token_hash
    from .collection import open_store
    from .setup import open_collection

    token = new_token(OWNER)
    store = open_store(options.db)
    try:
        _, created = open_collection(store, campaign, token_hash(token))
    finally:
        store.close()
    return token if created else None


def run(options: Options) -> None:
    """Serve until the process is told to stop."""
    import json
    from dataclasses import asdict

    import uvicorn

    from .service import log_to_stderr

    settings: dict[str, Any] = {
        "host": options.host, "port": options.port, "log_config": None, "access_log": False, "server_header": False,
        "date_header": False, "timeout_keep_alive": KEEP_ALIVE_SECONDS, "proxy_headers": False,
        "timeout_graceful_shutdown": GRACE_SECONDS, "lifespan": "on", "ws": "none", "backlog": 2048,
        "http": "crowdrank.web.app:PatientProtocol", "loop": "auto", "h11_max_incomplete_event_size": 64 * 1024,
    }  # fmt: skip
    log_to_stderr(calls=options.log_calls)
    if options.workers > 1:
        os.environ[_OPTIONS] = json.dumps(asdict(options))
        uvicorn.run("crowdrank.web.server:app_of_environment", factory=True, workers=options.workers, **settings)
        return
    uvicorn.run(build_app(options), **settings)


def app_of_environment() -> Any:
    """Return the application of one of several processes, which find their options in the environment."""
    import json

    from .service import log_to_stderr

    options = Options(**json.loads(os.environ[_OPTIONS]))
    log_to_stderr(calls=options.log_calls)
    return build_app(options)


def build_app(options: Options) -> Any:
    """Return the application, which opens nothing before it is started and closes everything when it stops."""
    from .app import make_app
    from .collection import open_store
    from .refit import Refit
    from .service import Service
    from .setup import open_collection

    # two threads share the interpreter, the writer and the event loop; a long turn of one is a wait for the other
    sys.setswitchinterval(0.001)
    store = open_store(options.db)
    collection, _ = open_collection(store, read_campaign(options.campaign), "")
    service = Service(collection, options.url, behind_proxy=options.behind_proxy)
    if options.refit:
        service.refit = Refit(collection)

    def start() -> None:
        if service.refit is not None:
            service.refit.start()

    def stop() -> None:
        if service.refit is not None:
            service.refit.stop()
        store.close()

    return make_app(service, start=start, stop=stop)


def database_beside(campaign: str) -> str:
    """Return the name of the SQLite file that a campaign is kept in unless another is named."""
    return str(Path(campaign).with_suffix(".db"))


def announce(options: Options, token_file: str | None, *, new_token: bool = False) -> None:
    """Lay the campaign out where it is new, show the owner's token once, and say where the service is."""
    campaign = read_campaign(options.campaign)
    token = first_start(options, campaign)
    if token is None and new_token:
        token = _replaced_token(options, campaign)
    lines = []
    if token is not None and token_file is not None:
        _write_secret(Path(token_file), token)
        lines.append(f"the owner's token is in {token_file}")
    elif token is not None:
        lines.append(f"owner's token, shown this once: {token}")
    at = "" if token is None or token_file is not None else f"#{token}"
    lines += [f"owner's page: {options.url}/owner/{at}", f"annotators join at {options.url}/j/ by invite link"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _replaced_token(options: Options, campaign: Campaign) -> str:
    """Another owner's token in place of the one that was lost."""
    from sqlalchemy import text

    from .access import OWNER, new_token, token_hash
    from .collection import open_store

    token = new_token(OWNER)
    statement = text("UPDATE campaign SET owner_hash = :hash WHERE name = :name")
    values = {"hash": token_hash(token), "name": campaign.settings.name}
    store = open_store(options.db)
    try:
        store.submit(lambda connection: connection.execute(statement, values)).result()
    finally:
        store.close()
    return token


def _write_secret(path: Path, text: str) -> None:
    """Write a file that nobody else can read."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        why = (error.strerror or "").lower()
        raise ParameterError(f"--token-file {path} cannot be written: {why}; name another file") from None
    with os.fdopen(handle, "w") as file:
        file.write(text + "\n")
