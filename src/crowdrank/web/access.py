"""Who is calling, and whether they may: tokens, cookies, calls from other sites, and how often."""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv6Network, ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from starlette.datastructures import Headers
from starlette.requests import Request

from .campaign_file import expect_printable, must_be
from .collection import Body, Collection, Fault, Session, expect_found, record_event, sql
from .submitting import end_requests, free_seat, reserve

OWNER, INVITE, ANNOTATOR = "cro_", "cri_", "cra_"


def new_token(prefix: str) -> str:
    """Return a new token of 32 random bytes."""
    return prefix + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the fingerprint that is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


COOKIE_SECONDS = 180 * 86_400

STAFF = ("owner", "reviewer", "viewer")
"""Who runs a campaign: owners may do everything, reviewers also decide what is disputed, viewers look."""

RATES = {"person": (10.0, 40.0), "program": (50.0, 100.0)} | dict.fromkeys(STAFF, (50.0, 200.0))
"""Calls a second and burst of each role."""

FAILED_JOINS = (5 / 60, 5.0)
"""Failed joins a second and burst of one address."""

_MANY_CALLERS, _SWEEP_SECONDS = 20_000, 10.0
"""From this many callers on, those who have been silent are forgotten, no more often than this."""


@dataclass(frozen=True)
class Caller:
    """The caller: who makes a request.

    Parameters
    ----------
    role
        ``"open"`` (nobody known), ``"person"``, ``"program"``, or one of :data:`STAFF`.
    annotator, member, name
        Number of an annotator, or of somebody who runs the campaign beside its owner, and their name.
    by_cookie
        Whether a browser sent the token by itself, which another site could make it do.
    """

    role: str
    annotator: int = 0
    name: str = ""
    by_cookie: bool = False
    member: int = 0

    @property
    def label(self) -> str:
        """The caller as logs and events name them."""
        if self.annotator:
            return f"annotator {self.annotator}"
        return f"{self.role} {self.member}" if self.member else self.role


NOBODY = Caller("open")


class Buckets:
    """How many calls each caller may still make: a number per second, and a burst."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._levels: dict[Any, tuple[float, float]] = {}
        self._swept = -math.inf

    def wait(self, key: Any, rate: float, burst: float) -> float:
        """Return 0 and count the call, or the seconds after which it may be made."""
        now = self.clock()
        if len(self._levels) > _MANY_CALLERS and now - self._swept > _SWEEP_SECONDS:
            self._levels = {k: v for k, v in self._levels.items() if now - v[1] < 120}
            self._swept = now
        level, at = self._levels.get(key, (burst, now))
        level = min(burst, level + (now - at) * rate)
        if level < 1:
            self._levels[key] = (level, now)
            return (1 - level) / rate
        self._levels[key] = (level - 1, now)
        return 0.0


def _network(address: str) -> str:
    """The address by which calls are counted: of IPv6 the first half, as one caller has all of the second."""
    try:
        network = ip_address(address)
    except ValueError:
        return address
    if network.version == 6 and network.ipv4_mapped is None:
        return str(IPv6Network((int(network), 64), strict=False))
    return str(getattr(network, "ipv4_mapped", None) or network)


class Access:
    """The door of the service."""

    def __init__(
        self, collection: Collection, public_url: str, *, behind_proxy: bool = False, login_header: str = ""
    ) -> None:
        self.collection = collection
        self.login_header = login_header
        self.public_url = public_url.rstrip("/")
        parts = urlsplit(self.public_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.secure = parts.scheme == "https"
        former = "__Host-crowdrank" if self.secure else "crowdrank"
        row = collection.read(sql.campaign.first)
        # cookies know hosts and no ports: of several campaigns on one host each has its own, and reads the former name
        self.cookie = f"{former}-{token_hash(f'{row.name} {row.created_at}')[:12]}"
        self.cookies = (self.cookie, former)
        self.behind_proxy = behind_proxy
        self.buckets = Buckets()
        self._known: dict[str, Caller] = {}

    def address(self, request: Request) -> str:
        """Return the address of the caller; what a proxy says counts only with ``--behind-proxy``."""
        if self.behind_proxy:
            # the last entry is the one that our own proxy wrote
            forwarded = request.headers.get("x-forwarded-for", "").split(",")[-1].strip()
            if forwarded:
                return _network(forwarded[:64])
        return _network(request.client.host) if request.client else "unknown"

    async def identify(self, request: Request, read: Any) -> Caller:
        """Return who is calling; a token that is not known is refused."""
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise Fault("unauthorized", "send the token as 'Authorization: Bearer TOKEN'")
            return await self.of_token(token.strip(), read, by_cookie=False)
        login = request.headers.get(self.login_header, "") if self.login_header else ""
        if login:
            # a proxy that we are behind has asked who this is; the browser sends its cookie by itself
            row = await read(sql.member_named.first, name=login)
            if row is not None:
                return Caller(row.role, name=row.name, by_cookie=True, member=row.id)
        for name in self.cookies:
            token = request.cookies.get(name, "")
            if token.startswith(ANNOTATOR):
                with suppress(Fault):
                    return await self.of_token(token, read, by_cookie=True)
        return NOBODY

    def token_of(self, request: Request) -> str:
        """Return the token that a browser sent by itself."""
        return next((request.cookies[name] for name in self.cookies if name in request.cookies), "")

    async def of_token(self, token: str, read: Any, *, by_cookie: bool) -> Caller:
        """The caller that a token stands for."""
        fingerprint = token_hash(token)
        known = self._known.get(fingerprint)
        if known is None:
            # who is found by the fingerprint of 32 random bytes has the token
            row = await read(sql.holder_of_token.first, hash=fingerprint)
            if row is None:
                raise Fault("unauthorized", "this token is not known here; join again, or ask the owner")
            known = Caller(**row._asdict())
            if len(self._known) > 50_000:
                self._known.clear()
            if known.role not in STAFF:
                # tokens of those who run the campaign may be replaced while the service runs
                self._known[fingerprint] = known
        return replace(known, by_cookie=by_cookie)

    def forget(self, annotator: int) -> None:
        """Look an annotator's token up again: they have another one."""
        self._known = {key: one for key, one in self._known.items() if one.annotator != annotator}

    def expect_same_site(self, request: Request) -> None:
        """Refuse a call that another site made a browser send."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        kind = Headers(scope=request.scope).get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Fault("cross_site", "a call by cookie must have the content type application/json")
        if site == "same-origin" or (site is None and origin == self.origin):
            return
        raise self._cross_site(origin)

    def expect_own_page_or_program(self, request: Request) -> None:
        """Refuse a call without a cookie that a browser made on another site; a program names no site."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site not in (None, "same-origin", "none") or (site is None and origin not in (None, self.origin)):
            raise self._cross_site(origin)

    def _cross_site(self, origin: str | None) -> Fault:
        """What to answer a call from another site."""
        seen = origin if origin is not None and len(origin) < 200 else "none"
        why = f"the call came from {seen!r}, not from {self.origin!r}"
        return Fault("cross_site", f"{why}; start with --public-url set to the address that browsers show")

    def expect_rate(self, request: Request, caller: Caller) -> None:
        """Refuse calls that come too fast."""
        key: Any = caller.label if caller.role != "open" else self.address(request)
        rate, burst = RATES.get(caller.role, RATES["program"])
        wait = self.buckets.wait(key, rate, burst)
        if wait:
            raise Fault("too_many", f"too many calls; wait {wait:.1f} s", retry_after=wait)

    def cookie_header(self, token: str) -> str:
        """Return the header that leaves a token with a browser."""
        flags = "Path=/; HttpOnly; SameSite=Strict"
        return f"{self.cookie}={token}; {flags}; Max-Age={COOKIE_SECONDS}" + ("; Secure" if self.secure else "")


MAX_NAME = 80
MAX_USES = 10_000
_MICROSECONDS_PER_DAY = 86_400_000_000
_UNCOUNTED_AT_ONCE = 100


Name = Annotated[
    str, AfterValidator(lambda text: " ".join(text.split())), Field(min_length=1, max_length=MAX_NAME),
    AfterValidator(expect_printable), must_be(f"1 to {MAX_NAME} printable characters"),
]  # fmt: skip
"""A name that somebody chose, as it is shown."""

PanelId = Annotated[str, Field(max_length=200, pattern=r"^[ -~]*$"), must_be("what a panel calls the person or visit")]


class Invite(Body):
    """An invite that the owner wants."""

    kind: Literal["person", "program"] = "person"
    uses: Annotated[int, Field(ge=1, le=MAX_USES), must_be(f"a whole number from 1 to {MAX_USES}")] = 1
    days: Annotated[int, Field(ge=1, le=3650), must_be("a whole number from 1 to 3650")] = 30
    name: Name | None = None


class Member(Body):
    """Somebody who is to help to run the campaign; the name is what a login header says of them."""

    name: Name
    role: Literal["owner", "reviewer", "viewer"] = "viewer"


@dataclass(frozen=True)
class Joined:
    """A new annotator, with the token that is shown once."""

    id: int
    name: str
    kind: str
    token: str


def expect_invite(db: Session, invite: str, *, locked: bool = False) -> Any:
    """Return the row of an invite that can be used at this moment."""
    statement = sql.lock_invite if locked else sql.invite_of_token
    row = statement.first(db, hash=token_hash(invite))
    if row is None or row.revoked_at is not None or row.expires_at <= db.now():
        raise Fault("unauthorized", "this invite is not valid, or not any more; ask for another")
    return row


def join(db: Session, invite: str, name: str | None, external: str = "", session: str = "") -> Joined:
    """Make an annotator of anyone who holds an invite; uses, expiry and revocation are checked here and now.

    ``external`` is what a panel calls them, kept apart from the name; ``session`` what it calls this visit.
    """
    now, row = db.now(), expect_invite(db, invite, locked=True)
    if external and sql.external_known.first(db, external=external) is not None:
        raise Fault("joined_before", "you have joined before; go on in the same browser, or ask for your personal link")
    if not sql.use_invite.run(db, invite=row.id).rowcount:
        raise Fault("unauthorized", "this invite has no uses left; ask for another")
    if row.annotator is not None:
        # a personal link lets the same annotator in again; the token that was lost opens nothing any more
        token, known = new_token(ANNOTATOR), sql.annotator.first(db, annotator=row.annotator)
        sql.replace_token.run(db, annotator=row.annotator, hash=token_hash(token))
        record_event(db, f"annotator {row.annotator}", "came back")
        return Joined(int(row.annotator), known.name, known.kind, token)
    chosen = row.name or name or f"{row.kind} {sql.n_annotators.number(db) + 1}"
    if sql.annotator_named.first(db, name=chosen) is not None:
        raise Fault("name_taken", "somebody has this name already; choose another", field="name")
    token = new_token(ANNOTATOR)
    about = {"name": chosen, "kind": row.kind, "cost": db.settings.cost[row.kind], "external": external}
    new = sql.insert_annotator.first(db, **about, hash=token_hash(token), now=now)
    detail = {"kind": row.kind} | ({"session": session} if session else {})
    record_event(db, f"annotator {new.id}", "joined", detail)
    return Joined(int(new.id), chosen, row.kind, token)


def new_invite(db: Session, wanted: Invite, annotator: int | None = None) -> tuple[int, str]:
    """Return the number and the token of a new invite; with an annotator it lets that one in again."""
    if annotator is not None:
        known = expect_found(sql.annotator_of_campaign.first(db, annotator=annotator), "annotator, or not any more")
        wanted = Invite(kind=known.kind, name=known.name)
    if wanted.name is not None and wanted.uses > 1:
        raise Fault("invalid", "an invite with a name can be used once; leave the name or uses out", field="uses")
    token, now = new_token(INVITE), db.now()
    expires = now + wanted.days * _MICROSECONDS_PER_DAY
    about = {**wanted.model_dump(), "annotator": annotator, "expires": expires}
    row = sql.insert_invite.first(db, **about, hash=token_hash(token), now=now)
    record_event(db, "owner", "invite", {"invite": int(row.id), "kind": wanted.kind, "uses": wanted.uses})
    return int(row.id), token


def new_member(db: Session, wanted: Member, actor: str) -> tuple[int, str]:
    """Return the number and the token of somebody who helps to run the campaign."""
    if sql.member_named.first(db, name=wanted.name) is not None:
        raise Fault("name_taken", "somebody has this name already; choose another", field="name")
    token = new_token(OWNER)
    row = sql.insert_member.first(db, name=wanted.name, role=wanted.role, hash=token_hash(token), now=db.now())
    record_event(db, actor, "member", {"member": int(row.id), "role": wanted.role})
    return int(row.id), token


def revoke_member(db: Session, member: int, actor: str) -> None:
    """Let somebody help no more."""
    expect_found(sql.revoke_member.run(db, member=member, now=db.now()).rowcount, "member, or not any more")
    record_event(db, actor, "revoked", {"member": member})


def revoke_invite(db: Session, invite: int) -> None:
    """Let nobody join by an invite any more."""
    expect_found(sql.revoke_invite.run(db, invite=invite, now=db.now()).rowcount, "invite")
    record_event(db, "owner", "revoked", {"invite": invite})


def set_annotator_state(db: Session, annotator: int, state: str) -> None:
    """Let an annotator go on, pause or leave; what they hold is free at once when they leave."""
    expect_found(sql.set_annotator_state.run(db, annotator=annotator, state=state).rowcount, "annotator")
    judged = sql.annotator.first(db, annotator=annotator).n_answered
    record_event(db, "owner", state, {"annotator": annotator, "n_answered": judged})
    if state != "removed":
        return
    cost, promoted = end_requests(db, sql.held_by_annotator.rows(db, annotator=annotator), sql.end_request, db.now())
    reserve(db, -cost, promoted)


def uncount_some(db: Session, annotator: int) -> int:
    """Let some judgments of a removed annotator count no more; return how many, 0 once none is left."""
    rows = sql.counted_judgments.rows(db, annotator=annotator, limit=_UNCOUNTED_AT_ONCE)
    for row in rows:
        target = sql.lock_target.first(db, target=row.target)
        sql.uncount_judgment.run(db, submission=row.submission)
        if not target.is_check:
            sql.unseat_request.run(db, request=row.request)
            free_seat(db, row.target)
    reserve(db, 0, len(rows))
    return len(rows)
