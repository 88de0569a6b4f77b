"""``crowdrank serve`` on the command line: mistakes in one line, before anything is listened on."""

import socket
import sys

import pytest

CAMPAIGN = 'name = "test"\nkind = "grade"\nitems = "items.csv"\nbudget = 10\ngrades = ["Bad", "Good"]\n'


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "items.csv").write_text("item,content\nx,First\ny,Second\n")
    path = tmp_path / "campaign.toml"
    path.write_text(CAMPAIGN)
    return path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a campaign file, as in crowdrank serve campaign.toml, or see one with --demo"),
        (["{campaign}", "--demo"], "--demo has campaigns of its own; leave it or"),
        (["{campaign}", "--token-file", "{campaign}/token"], "token"),
        (["{campaign}", "--port", "many"], "--port many must be a whole number from 1 to 65,535"),
        (["nothing.toml"], "no campaign file nothing.toml"),
        (["{campaign}", "--check"], "no campaign in"),
        (["{campaign}", "--public-url", "votes.example.org"], "https://votes.example.org"),
        (["{campaign}", "--public-url", "https://x.org/path"], "without a path"),
        (["{campaign}", "--workers", "2"], "needs PostgreSQL"),
        (["{campaign}", "--db", "mysql://x"], "not supported"),
        (["{campaign}", "--db", "postgresql://ann:secret@127.0.0.1:9/x"], "ann:***@127.0.0.1:9/x cannot be used"),
        (["{campaign}", "--host", "203.0.113.9"], "choose another --port or --host"),
        (["--demo", "--check"], "nothing to check"),
    ],
)
def test_mistakes_are_one_line(run, campaign, words, told):
    ran = run("serve", *(word.replace("{campaign}", str(campaign)) for word in words))
    assert ran.code == 2
    assert told in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize("words", [["{campaign}"], ["--demo"]])
def test_a_port_in_use_is_named_before_a_token_is_shown(run, campaign, words):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = run("serve", *(word.replace("{campaign}", str(campaign)) for word in words), "--port", port)
    assert ran.code == 2
    assert f"port {port} cannot be listened on: address already in use; choose another --port" in ran.err
    assert ran.out == ""
    assert not campaign.with_suffix(".db").exists()


def test_a_missing_extra_is_named(run, campaign, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ran = run("serve", str(campaign))
    assert ran.code == 2
    assert "crowdrank[web]" in ran.err


def test_the_token_is_shown_once(campaign, tmp_path, capsys):
    from crowdrank.web.server import Options, announce

    options = Options(campaign=str(campaign), db=str(tmp_path / "x.db"))
    announce(options, None)
    first = capsys.readouterr().out
    assert first.count("cro_") == 2
    announce(options, None)
    assert "cro_" not in capsys.readouterr().out
    announce(options, str(tmp_path / "token"), new_token=True)
    assert "cro_" not in capsys.readouterr().out
    assert (tmp_path / "token").read_text().startswith("cro_")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
