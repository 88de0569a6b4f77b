"""A service under test, called over HTTP without a network."""

import json
import re
import uuid
from contextlib import contextmanager

from starlette.testclient import TestClient
from tests.web.collecting import campaign

from crowdrank.web.access import OWNER, Access, Invite, join, new_invite, new_token, token_hash
from crowdrank.web.app import make_app
from crowdrank.web.service import Service
from crowdrank.web.setup import open_collection

URL = "http://127.0.0.1:8000"
SAME_SITE = {"sec-fetch-site": "same-origin", "content-type": "application/json"}


class Called:
    """A service with its owner, and people and programs who join it."""

    def __init__(self, store, made=None, public_url: str = URL, **keys) -> None:
        self.owner_token = new_token(OWNER)
        self.collection, _ = open_collection(store, made or campaign(**keys), token_hash(self.owner_token))
        self.service = Service(Access(self.collection, public_url))
        self.app = make_app(self.service)
        self.client = TestClient(self.app, base_url=public_url)

    def write(self, operation, *args):
        return self.collection.submit(operation, *args).result(30)

    def invite(self, **body) -> str:
        return self.write(new_invite, Invite(**body))[1]

    def join(self, name: str | None = None, kind: str = "program") -> str:
        """The token of a new annotator."""
        return self.write(join, self.invite(kind=kind), name).token

    def call(self, method: str, path: str, token: str | None = None, body=None, **headers):
        given = {"authorization": f"Bearer {token}"} if token else {}
        content = None if body is None else json.dumps(body)
        return self.client.request(
            method, path, content=content, headers={**given, "content-type": "application/json", **headers}
        )

    def post(self, path: str, token: str | None = None, body=None, **headers):
        return self.call("POST", f"/api/v1{path}", token, {} if body is None else body, **headers)

    def get(self, path: str, token: str | None = None, **headers):
        return self.call("GET", f"/api/v1{path}", token, **headers)

    def judge(self, token: str, answer=None, request: int | None = None, **rest):
        """Answer a request: the one given, or the next."""
        if request is None:
            request = self.post("/requests", token).json()["requests"][0]["id"]
        body = {"submission": str(uuid.uuid4()), "request": request, "answer": answer or {"grade": 2}, "seconds": 1.0}
        return self.post("/judgments", token, {**body, **rest})


@contextmanager
def started(called: Called):
    """The service with its background work."""
    with called.client:
        yield called


def tokens_in(text: str) -> list[str]:
    """Whatever looks like a token."""
    return re.findall(r"cr[oia]_[A-Za-z0-9_-]{20,}", text)
