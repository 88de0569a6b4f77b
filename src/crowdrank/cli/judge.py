"""``crowdrank judge`` and ``sort``: ask language models what is worth its price."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .. import io, report
from ..wording import counted
from .outputs import LEVEL, deliver_consensus, write_file
from .talk import Talk
from .votes import Asked, pairs

if TYPE_CHECKING:
    from ..judging import JudgeRun


def judge(asked: Asked, talk: Talk) -> None:
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
    from ..judging.running import Runner, write_campaign

    campaign, out = asked.campaign, asked.out
    handed_over = campaign is not None and Path(campaign).exists()
    if asked.people is None and handed_over:
        asked.people = _votes_of_campaign(campaign, out, talk)
    if asked.answers == "-":
        asked.answers = io.read_table("-")
    how = _settle_keys(asked).arguments(Runner)
    if asked.dry_run:
        # the first prompts, and the most that can be asked
        preview: Any = Runner(**how | {"out": None}).preview()
        talk.flush()
        for number, prompt in enumerate(preview.prompts, 1):
            for message in prompt.messages:
                typer.echo(f"--- prompt {number}, {message['role']} ---\n{message['content']}\n")
        for note in preview.notes:
            talk.say(note, needed=True)
        cost = "no prices given" if preview.cost is None else f"{preview.cost:.4g}"
        typer.echo(f"at most {counted(preview.calls, 'call')}; cost at most: {cost}; nothing was asked")
        return
    with talk.working("asking") as progress:
        run = judging.judge(**how, progress=progress)
    _tell(run, out, talk)
    if campaign is not None and not handed_over:
        question = asked.question or "Which answer is better?"
        read = Answers.read(asked.answers, asked.columns)
        number = write_campaign(run, read, campaign, question=question, share=asked.people_share, seed=asked.seed)
        handed = counted(number, "pair")
        written = f"wrote {campaign} with {handed} for people; collect with: crowdrank serve {campaign}"
        talk.say(written if number else "judges contradict each other nowhere, so there is nothing for people to do")
    _deliver(run, asked, talk)
    write_file(asked.report, lambda name: report.write_report(run.consensus, run.compared, name), talk)


def sort(asked: Asked, talk: Talk) -> None:
    """Order texts by a question put to models.

    THINGS has text [, item], or a thing on each line. Features of the texts learn along, so most things are never asked
    about.

    Examples
    --------
    # the ten most urgent of many tickets
    crowdrank sort tickets.csv --ask "Which is more urgent?" --model a@http://host/v1
    """
    from .. import judging
    from ..judging.running import Runner

    how = _settle_keys(asked).arguments(Runner)
    with talk.working("asking") as progress:
        run = judging.sort(asked.things, asked.ask, **how, progress=progress)
    _tell(run, asked.out, talk)
    _deliver(run, asked, talk)


def _tell(run: JudgeRun, out: str, talk: Talk) -> None:
    """Say what a run cost and why it ended."""
    for note in run.notes:
        talk.say(note, needed=True)
    talk.say(run.stopped, needed=True)
    cost = f", cost {run.cost:.4g}" if run.cost else ""
    talk.say(f"{counted(run.calls, 'call')}{cost}; {counted(len(run.rows), 'row')} in {out}")


def _deliver(run: JudgeRun, asked: Asked, talk: Talk) -> None:
    """Show the leaderboard with intervals and tiers, or write it."""
    consensus = run.consensus
    ratings = consensus.rating() if consensus.items.single else None
    board = asked.but(out=asked.board, level=LEVEL)
    failed = deliver_consensus(consensus, board, talk, lambda: (consensus, None), ratings)
    if failed is not None:
        raise failed


def _settle_keys(asked: Asked) -> Asked:
    """What was asked with the environment variable of the key, or one for each model, and whether answers are kept."""
    given = asked.key_from or []
    keys: Any = given[0] if len(given) == 1 and "=" not in given[0] else pairs(given, "--key-from", "gpt-x=MY_KEY")
    return asked.but(key_from=keys or None, cache=False if asked.no_cache else asked.cache or True)


def _votes_of_campaign(campaign: str, out: str, talk: Talk) -> Any:
    """What people answered so far in a campaign that was served."""
    from ..judging.running import votes_of_people
    from ..web import expect_extra

    expect_extra()
    database = str(Path(campaign).with_suffix(".db"))
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
    where = f"in {path} by the queries of the answers, for: crowdrank audit {path} {out}"
    talk.say(f"{counted(len(votes), 'vote')} of people, which are trusted; {where}")
    return votes
