"""``crowdrank judge`` and ``sort``: ask language models what is worth its price."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..wording import counted
from .outputs import LEVEL, check_files, check_report, deliver_consensus, report_written
from .votes import pairs

if TYPE_CHECKING:
    from ..judging import JudgeRun
    from .talk import Talk


def judge(
    *,
    talk: Talk,
    answers: str,
    models: list[str],
    dry_run: bool,
    campaign: str | None,
    people_share: float,
    no_cache: bool,
    out: str,
    board: str | None,
    report: str | None,
    format: str | None,
    people: str | None,
    **asked: Any,
) -> None:
    """Ask language models which answers are better.

    ANSWERS has item, content [, query] [, query_content], or is a folder with a file per item. Each --model is asked
    only what is worth its price, until the order is sure; judgments go to --out as they come, and the same command goes
    on after a stop.

    Examples
    --------
    # which of several models answers best, by a model on this machine
    crowdrank judge answers.csv --model qwen3@http://127.0.0.1:8080/v1 --calls 500
    # what would be asked, and the most it can cost
    crowdrank judge answers.csv --model gpt-x@https://host/v1 --calls 99 --dry-run
    # two judges
    crowdrank judge a.csv --model a@http://host:1/v1 --model b@http://host:2/v1
    # hand doubtful cases to people, and go on with their votes
    crowdrank judge a.csv --model a@http://host:1/v1 --campaign people.toml
    # then control for length, markdown and own family
    crowdrank aggregate votes.jsonl --across-queries --control style,self
    """
    from .. import judging
    from ..judging.answers import Answers
    from ..judging.people import write_campaign
    from ..judging.running import Runner

    check_files([answers if not Path(answers).is_dir() else None, people], [board, report], format=format)
    check_report(report)
    asked["key_from"] = _keys(asked["key_from"])
    if no_cache:
        asked["cache"] = False
    elif asked["cache"] is None:
        asked["cache"] = True
    if people is None and campaign is not None and Path(campaign).exists():
        asked["people"] = _votes_of_campaign(campaign, out, talk)
    else:
        asked["people"] = people
    texts: Any = answers
    if answers == "-":
        from ..io.tables import read_table

        texts = read_table("-")
    if dry_run:
        _show_preview(Runner(texts, models, out=None, **asked).preview(), talk)
        return
    with talk.working("asking") as progress:
        run = judging.judge(texts, models, out=out, progress=progress, **asked)
    _tell(run, out, talk)
    if campaign is not None and not Path(campaign).exists():
        question = asked["question"] or "Which answer is better?"
        read = Answers.read(texts, asked["columns"])
        number = write_campaign(run, read, campaign, question=question, share=people_share, seed=asked["seed"])
        talk.say(
            f"wrote {campaign} with {counted(number, 'pair')} for people; collect with: crowdrank serve {campaign}"
            if number
            else "judges contradict each other nowhere, so there is nothing for people to do"
        )
    _deliver(run, board, format, talk)
    if report is not None:
        from ..report import write_report

        write_report(run.consensus, run.compared, report)
        report_written(report, talk)


def sort(
    *,
    talk: Talk,
    things: str,
    ask: str,
    models: list[str],
    out: str,
    no_cache: bool,
    board: str | None,
    format: str | None,
    **asked: Any,
) -> None:
    """Order texts by a question put to models.

    THINGS has text [, item], or a thing on each line. Features of the texts learn along, so most things are never asked
    about.

    Examples
    --------
    # the ten most urgent of many tickets
    crowdrank sort tickets.csv --ask "Which is more urgent?" --model a@http://host/v1
    """
    from .. import judging

    check_files([things], [board], format=format)
    asked["key_from"] = _keys(asked["key_from"])
    asked["cache"] = False if no_cache else asked["cache"] or True
    with talk.working("asking") as progress:
        run = judging.sort(things, ask, models, out=out, progress=progress, **asked)
    _tell(run, out, talk)
    _deliver(run, board, format, talk)


def _tell(run: JudgeRun, out: str, talk: Talk) -> None:
    """Say what a run cost and why it ended."""
    for note in run.notes:
        talk.say(note, needed=True)
    talk.say(run.stopped, needed=True)
    cost = f", cost {run.cost:.4g}" if run.cost else ""
    talk.say(f"{counted(run.calls, 'call')}{cost}; {counted(len(run.rows), 'row')} in {out}")


def _deliver(run: JudgeRun, board: str | None, format: str | None, talk: Talk) -> None:
    """Show the leaderboard with intervals and tiers, or write it."""
    consensus = run.consensus
    ratings = consensus.rating() if consensus.items.single else None
    failed = deliver_consensus(consensus, board, format, LEVEL, talk, lambda: (consensus, None), ratings=ratings)
    if failed is not None:
        raise failed


def _keys(given: list[str] | None) -> Any:
    """Environment variable of the key, or one for each model."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return pairs(given, "--key-from", "gpt-x=MY_KEY")


def _votes_of_campaign(campaign: str, out: str, talk: Talk) -> Any:
    """What people answered so far in a campaign that was served."""
    from ..judging.people import votes_of_people
    from ..web import server

    server.expect_extra()
    database = server.database_beside(campaign)
    if not Path(database).exists():
        talk.say(f"nobody has answered {campaign} yet; collect with: crowdrank serve {campaign}", needed=True)
        return None
    from ..web.upkeep import counted_votes

    votes = votes_of_people(counted_votes(campaign, database), campaign)
    if votes is None:
        talk.say(f"people gave no vote in {campaign} yet")
        return None
    path = Path(campaign).with_suffix(".votes.csv")
    votes.write_csv(path)
    talk.say(
        f"{counted(len(votes), 'vote')} of people, which are trusted; in {path} by the queries of the answers, for: "
        f"crowdrank audit {path} {out}"
    )
    return votes


def _show_preview(preview: Any, talk: Talk) -> None:
    """Print the first prompts, and the most that can be asked."""
    talk.flush()
    for number, question in enumerate(preview.prompts, 1):
        for message in question.messages:
            typer.echo(f"--- prompt {number}, {message['role']} ---\n{message['content']}\n")
    for note in preview.notes:
        talk.say(note, needed=True)
    cost = "no prices given" if preview.cost is None else f"{preview.cost:.4g}"
    typer.echo(f"at most {counted(preview.calls, 'call')}; cost at most: {cost}; nothing was asked")
