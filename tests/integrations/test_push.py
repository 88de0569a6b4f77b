"""Predictions and suggestions by the tools' own clients, against what their servers answered when it was recorded.

``recorded/`` holds, of Label Studio 1.23.2 and of Argilla's server 2.8.0, an export with the votes of three people and
every exchange of two pushes of the same consensus: the second one has to replace what the first one left.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import crowdrank as cr

RECORDED = Path(__file__).parent / "recorded"


class Replay:
    """A server that answers as the recorded one did, and keeps what it was sent."""

    def __init__(self, exchanges):
        left, self.faults = list(exchanges), []

        class Answer(BaseHTTPRequestHandler):
            def answer(handler):
                size = int(handler.headers.get("content-length") or 0)
                sent = json.loads(handler.rfile.read(size)) if size else None
                for record in sent.get("items", ()) if isinstance(sent, dict) else ():
                    for suggestion in record["suggestions"]:
                        del suggestion["id"]  # the client draws it
                asked = {"method": handler.command, "path": handler.path, "sent": sent}
                found = next((one for one in left if all(one[key] == value for key, value in asked.items())), None)
                if found is None:
                    self.faults.append(asked)
                else:
                    left.remove(found)
                body = json.dumps(found["got"] if found else {"detail": "this was not recorded"}).encode()
                handler.send_response(found["status"] if found else 418)
                handler.send_header("content-type", "application/json")
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = answer

            def log_message(handler, *given):
                pass

        self.left, self.server = left, ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(name="recorded")
def _recorded(tmp_path):
    def read(tool):
        kept = json.loads((RECORDED / f"{tool}.json").read_text(encoding="utf-8"))
        (tmp_path / "export.json").write_text(json.dumps(kept["export"]), encoding="utf-8")
        votes = cr.read_judgments(tmp_path / "export.json", answer=kept["answer"])
        consensus = cr.aggregate(votes, "mean_grade")
        return kept, cr.export(consensus, tool, tmp_path / "export.json", answer=kept["answer"])

    return read


def write_to(url):
    """The client of Label Studio, or the data set of Argilla, at an address."""
    return {
        "label-studio": lambda: pytest.importorskip("label_studio_sdk").LabelStudio(base_url=url, api_key="k" * 40),
        "argilla": lambda: pytest.importorskip("argilla").Argilla(api_url=url, api_key="k").datasets("answers", "w"),
    }


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_a_second_push_replaces_the_first(tool, recorded):
    kept, exported = recorded(tool)
    with Replay(kept["exchanges"]) as replay:
        to = write_to(replay.url)[tool]()
        assert [cr.push(exported, to), cr.push(exported, to)] == [len(exported.records)] * 2
    assert not replay.faults, replay.faults
    assert not [one for one in replay.left if one["method"] != "GET"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_what_a_server_refuses_is_one_sentence(tool, recorded):
    kept, exported = recorded(tool)
    reads = [one for one in kept["exchanges"] if one["method"] == "GET"]
    with Replay(reads) as replay, pytest.raises(cr.errors.CrowdrankError, match="did not take everything") as told:
        cr.push(exported, write_to(replay.url)[tool]())
    assert "\n" not in str(told.value)
    assert "Traceback" not in str(told.value)


def test_a_push_needs_the_right_place(recorded):
    _, exported = recorded("label-studio")
    with pytest.raises(
        cr.errors.ParameterError, match=r"a str does not take what goes to label-studio; give the client"
    ):
        cr.push(exported, "http://localhost")
