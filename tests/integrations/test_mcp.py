import asyncio
import json
import os
import sys

import pytest

import crowdrank as cr
from crowdrank.integrations import mcp as ours

mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")

VOTES = "annotator,left,right,winner\n" + "".join(
    f"{who},{left},{right},left\n" for who in ("ann", "bob", "cy") for left, right in ("xy", "yz", "xz", "zw", "yw")
)


def ask(folder, calls, *options):
    """The answers of a server over stdio: whether each is an error, and its text."""

    async def talk():
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "crowdrank", "mcp", str(folder), *options], env=dict(os.environ)
        )
        async with mcp.Client(server) as client:
            tools = (await client.list_tools()).tools
            replies = [await client.call_tool(name, given) for name, given in calls]
        return tools, [(reply.is_error, "".join(one.text for one in reply.content)) for reply in replies]

    return asyncio.run(talk())


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "votes"
    inside.mkdir()
    (inside / "votes.csv").write_text(VOTES)
    (tmp_path / "secret.csv").write_text(VOTES)
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "up").symlink_to(tmp_path)
    return inside


def test_an_agent_inspects_ranks_asks_and_explains(folder):
    tools, replies = ask(
        folder,
        [
            ("inspect", {"file": "votes.csv"}),
            ("aggregate", {"names": ["votes.csv"]}),
            ("propose", {"names": ["votes.csv"], "budget": 3}),
            ("explain", {"names": ["votes.csv"]}),
            ("aggregate", {"names": ["votes.csv"], "save_as": "ranks.csv"}),
            ("audit", {"people": ["votes.csv"], "who_are_people": "ann"}),
            ("aggregate", {"names": "votes.csv"}),
            ("aggregate", {"names": ["votes.csv"], "method": "bradly_terry"}),
        ],
    )
    assert [tool.name for tool in tools] == ["inspect", "aggregate", "audit", "propose", "explain"]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert [is_error for is_error, _ in replies] == [False, False, False, False, True, True, True, True]
    texts = [text for _, text in replies]
    assert "15 preferences by 3 annotators" in texts[0]
    ranked = json.loads(texts[1])
    assert [row["item"] for row in ranked["items"]["rows"]] == ["x", "y", "z", "w"]
    assert ranked["items"]["rows"][0]["score"] == pytest.approx(cr.aggregate(folder / "votes.csv").scores.max())
    assert json.loads(texts[2])["n_rows"] == 3
    assert "would put y first" in json.loads(texts[3])["fragility"]
    assert "only reads" in texts[4]
    assert "bradley_terry" in texts[7]
    for text in texts[4:]:
        assert "\n" not in text
        assert str(folder) not in text
    assert sorted(path.name for path in folder.iterdir()) == ["link.csv", "up", "votes.csv"]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "link.csv",
        "up/secret.csv",
        "/etc/passwd",
        "no.csv",
        ".",
        "*.csv",
        "https://host/a.csv",
        "a\0b",
        "",
    ],
)
def test_names_do_not_lead_out_of_the_folder(folder, name):
    with pytest.raises(cr.errors.ParameterError, match="below the folder of this server"):
        ours.Files(folder).find(name)
    assert ours.Files(folder).find("up/votes/votes.csv") == str(folder / "votes.csv")


def test_large_files_are_refused_and_writing_needs_leave(folder, monkeypatch):
    monkeypatch.setattr(ours, "MOST_BYTES", 10)
    with pytest.raises(cr.errors.ParameterError, match="larger than"):
        ours.Files(folder).find("votes.csv")
    _, replies = ask(
        folder,
        [
            ("aggregate", {"names": ["votes.csv"], "save_as": "ranks.csv"}),
            *(
                ("propose", {"names": ["votes.csv"], "budget": 2, "save_as": name})
                for name in ("ranks.csv", "../out.csv", "up/out.csv", "votes.txt")
            ),
        ],
        "--write",
    )
    assert [is_error for is_error, _ in replies] == [False, True, True, True, True]
    assert (folder / "ranks.csv").read_text().startswith("item,score")
    assert not (folder.parent / "out.csv").exists()
