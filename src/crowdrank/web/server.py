"""Running the service: the database, the campaign in it, the process that fits, and the web server."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from ..data.files import os_reason
from ..errors import ParameterError
from .access import OWNER, Access, token_hash
from .access import new_token as fresh_token
from .app import make_app
from .campaign_file import read_campaign
from .collection import Collection, open_store, sql
from .refit import Refit
from .service import Service, log_to_stderr
from .setup import open_collection
from .webhooks import Webhook

KEEP_ALIVE_SECONDS = 75
GRACE_SECONDS = 20
_OPTIONS = "CROWDRANK_SERVE"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the service is run, as the command line says."""

    campaign: str
    db: str | None
    others: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    behind_proxy: bool = False
    login_header: str = ""
    workers: int = 1
    refit: bool = True
    log_calls: bool = True

    @property
    def campaigns(self) -> tuple[str, ...]:
        """The files of all campaigns."""
        return (self.campaign, *self.others)

    def database(self, campaign: str) -> str:
        """Return the database of a campaign: the one named for all, or a file beside its own."""
        return self.db or str(Path(campaign).with_suffix(".db"))

    def places(self, names: Sequence[str]) -> list[str]:
        """Return where each campaign has its pages: at the root if it is the only one, else below a name of its own."""
        if len(names) == 1:
            return [""]
        places: list[str] = []
        for name in names:
            place = "/c/" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "campaign")
            places.append(place if place not in places else f"{place}-{len(places) + 1}")
        return places

    @property
    def url(self) -> str:
        """The address that browsers show."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def check_url(options: Options) -> None:
    """Refuse an address that browsers could not use."""
    parts = urlsplit(options.url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query or parts.fragment:
        raise ParameterError(
            f"--public-url {options.public_url} must be like https://votes.example.org, without a path"
        )
    if options.workers > 1 and "://" not in (options.db or ""):
        raise ParameterError("--workers above 1 needs PostgreSQL; name it with --db postgresql://..., or leave it out")


def expect_port(options: Options) -> None:
    """Refuse an address that cannot be listened on, before a token is shown that nobody could use."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((options.host, options.port))
        except OSError as error:
            where = f"{options.host} port {options.port}"
            raise ParameterError(
                f"{where} cannot be listened on: {os_reason(error)}; choose another --port or --host"
            ) from None


@contextmanager
def open_campaigns(options: Options, owner_hash: str = "") -> Iterator[list[tuple[Collection, bool, str]]]:
    """Hold every campaign, whether it was laid out just now with this owner, and its place."""
    campaigns = [read_campaign(path) for path in options.campaigns]
    names = [one.settings.name for one in campaigns]
    databases = [options.database(path) for path in options.campaigns]
    with ExitStack() as opened:
        stores = {name: opened.enter_context(closing(open_store(name))) for name in dict.fromkeys(databases)}
        yield [
            (*open_collection(stores[name], campaign, owner_hash, beside=names), place)
            for name, campaign, place in zip(databases, campaigns, options.places(names), strict=True)
        ]


def run(options: Options) -> None:
    """Serve until the process is told to stop."""
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
    options = Options(**json.loads(os.environ[_OPTIONS]))
    log_to_stderr(calls=options.log_calls)
    return build_app(options)


def build_app(options: Options) -> Any:
    """Return the application, which closes everything when it stops."""
    # two threads share the interpreter, the writer and the event loop; a long turn of one is a wait for the other
    sys.setswitchinterval(0.001)
    opened = ExitStack()
    services: list[Service] = []
    works: list[Refit | Webhook] = []
    for collection, _, place in opened.enter_context(open_campaigns(options)):
        url, proxied, login = options.url + place, options.behind_proxy, options.login_header
        service = Service(Access(collection, url, behind_proxy=proxied, login_header=login))
        services.append(service)
        if options.refit:
            service.refit = Refit(collection)
            works.append(service.refit)
        if options.refit and collection.settings.webhook:
            works.append(Webhook(collection))

    def start() -> None:
        for work in works:
            work.start()

    def stop() -> None:
        for work in works:
            work.stop()
        opened.close()

    return make_app(*services, start=start, stop=stop)


def announce(options: Options, token_file: str | None, *, new_token: bool = False) -> None:
    """Lay out what is new, show the owner's token once, and say where the service is."""
    token, kept = fresh_token(OWNER), None if token_file is None else Path(f"{token_file}.new")
    if kept is not None:
        # a token that cannot be kept opens nothing: it is on disk before there is anything to open
        try:
            kept.touch(0o600)
            kept.write_text(token + "\n", "utf-8")
        except OSError as error:
            words = f"--token-file {kept} cannot be written: {os_reason(error)}; name another file"
            raise ParameterError(words) from None
    opens = False
    lines, at = [], ""
    try:
        with open_campaigns(options, token_hash(token)) as opened:
            for collection, created, place in opened:
                if new_token and not created:
                    collection.write(sql.replace_owner.run, hash=token_hash(token))
                opens = opens or created or new_token
                of = f" {collection.settings.name!r}" if place else ""
                lines.append(f"annotators{of} join at {options.url}{place}/j/ by invite link")
    finally:
        if kept is not None:
            if opens:
                kept.replace(str(token_file))
            else:
                kept.unlink()
    if opens and token_file is not None:
        lines.insert(0, f"the owner's token is in {token_file}")
    elif opens:
        lines.insert(0, f"owner's token, shown this once: {token}")
        at = f"#{token}"
    lines.insert(int(opens), f"owner's page: {options.url}/owner/{at}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
