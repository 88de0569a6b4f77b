"""``crowdrank propose`` and ``simulate``: which judgments to buy next, and what made-up annotators would answer."""

from __future__ import annotations

import typer

from .. import api, io, report
from .. import simulate as simulation
from ..errors import ParameterError
from ..wording import counted
from .outputs import deliver, report_written, write_wanted
from .talk import Talk
from .votes import Asked, pairs, read_votes, split_list


def propose(asked: Asked, talk: Talk) -> None:
    """Say what to ask next, of whom, at what cost, and when to stop.

    Writes a row for each request, the most urgent first. --items lists everything that may be asked about; without it,
    only items that were already judged. Nobody is asked twice about the same thing.

    Examples
    --------
    # second and third opinions on items whose first grade is good
    crowdrank propose votes.csv --scheme if-good-3 --budget 1000 -o requests.csv
    # which pairs to ask whom about, from a pool with prices
    crowdrank propose votes.csv -s information --pool who.csv --items all.csv -b 500
    # grades that change what a ranker shows, as long as each gains .002 nDCG
    crowdrank propose grades.csv --goal ranker --least-gain 0.002
    # grades that teach a ranker of these features most
    crowdrank propose grades.csv --goal ranker --features features.parquet -b 500
    # which pairs decide who is in the top five
    crowdrank propose votes.csv --goal top-5 -b 500
    # which pairs to begin with, sides balanced
    crowdrank propose --items scripts.csv -b 150
    # what schemes would have cost on grades given several times
    crowdrank propose votes.csv --costs costs.csv
    """

    votes, reading = asked.votes or [], asked.reading
    if not votes and reading.items is None:
        raise ParameterError("name the file of the judgments so far, or with --items what may be asked about first")
    try:
        # one price, or the price of each group
        each = pairs(split_list(asked.price), "--price", "person=4") if "=" in asked.price else {}
        asked.price = {group: float(value) for group, value in each.items()} or float(asked.price)
    except ValueError:
        example = "write for example --price 2 or person=4,program=1"
        raise ParameterError(f"--price {asked.price!r} is not a number; {example}") from None
    api.check_requests(**asked.arguments(api.check_requests))
    # listed items are what may be asked about, which the verb itself has to know
    judgments = read_votes(votes, reading.but(items=None), talk) if votes else None
    if asked.costs is not None and (judgments is None or judgments.kind != "grade"):
        there = "nothing is judged yet" if judgments is None else f"these are {judgments.kind}s"
        raise ParameterError(f"--costs counts grades, but {there}; leave it out")
    how = asked.but(items=reading.items, kind=None if votes else reading.kind).arguments(api.requests)
    with talk.working("choosing what to ask") as progress:
        proposed = api.requests(judgments, **how, progress=progress)
    table = proposed.frame()
    cut = ("query", "item", "left", "right", "annotator")
    deliver(table, asked, talk, bold="item" if "item" in table.columns else "left", cut=cut, fill=("reason",))
    write_wanted(asked.costs, lambda: api.scheme_costs(judgments, seed=asked.seed), talk)
    for note in (*proposed.notes, proposed.sentence()):
        talk.say(note)


def _list_noises(wanted: bool) -> None:
    """Print the noise models, and leave."""
    if not wanted:
        return
    from rich.text import Text

    from ..simulate import NOISES
    from .terminal_tables import Grid, console

    heads = ("noise", "kinds", "what such annotators do")
    rows = [[Text(m.signature), Text(", ".join(m.kinds)), Text(m.description)] for m in NOISES.values()]
    console().print(Grid(heads=heads, rows=rows, fill=heads))
    raise typer.Exit


EAGER = {"noises": _list_noises}
"""Options that are done at once, whatever else is typed."""


def simulate(asked: Asked, talk: Talk) -> None:
    """Draw votes from annotators of known quality.

    Each annotator sees the truth with some noise. Give the votes to aggregate and its result to evaluate, to learn
    what a method, a crowd or a number of votes is worth before paying for it. With --campaign, labelling schemes buy
    votes round by round, and the output is the quality of the consensus for what was spent.

    Examples
    --------
    # by 40 annotators, a tenth of whom answer at random
    crowdrank simulate truth.csv -n 40 --noise "normal(0.7,0.2)+random(0.1)" -o v.csv
    # preferences, and the true quality of each annotator
    crowdrank simulate truth.csv -n 20 --noise "flip(0.1..0.4)" --quality who.csv
    # which labelling scheme pays, with such annotators
    crowdrank simulate truth.csv -n 40 --noise "profile()" --campaign single,if-good-3
    # the same, replayed from votes that exist
    crowdrank simulate gold.csv --votes v.csv --campaign single,2-overlap
    # every noise there is
    crowdrank simulate --noises
    """

    if asked.campaign is not None:
        _play(asked, talk)
        return
    if asked.votes is not None or asked.picture is not None or asked.goal is not None:
        raise ParameterError("--votes, --picture and --goal go with --campaign; name schemes: --campaign if-good-3")
    if asked.annotators is None or asked.noise is None:
        raise ParameterError('say who votes, as in --annotators 40 --noise "normal(0.7,0.2)"; --noises lists all')
    simulation.check_simulation(asked.noise, asked.kind, asked.per_item)
    asked.truth = io.read_truth(asked.truth)
    with talk.working("drawing votes"):
        drawn = simulation.simulate(**asked.arguments(simulation.simulate))
    judgments = drawn.judgments
    io.write_table(judgments.frame(), asked.out, asked.format, digits=api.EXACT)
    report_written(asked.out, talk)
    write_wanted(asked.quality, lambda: drawn.quality, talk)
    by = counted(asked.annotators, "annotator")
    talk.say(f"{counted(len(judgments), judgments.kind)} by {by} on {counted(judgments.n_items, 'item')}")


def _play(asked: Asked, talk: Talk) -> None:
    """Play schemes against each other, and write or show their curves."""

    with talk.working("simulating the schemes") as progress:
        curves = api.campaigns(schemes=asked.campaign, **asked.arguments(api.campaigns), progress=progress)
    # before anything is written: there may be nothing to draw
    display = None if asked.picture is None else report.CampaignDisplay.from_curves(curves)
    last = api.campaign_ends(curves)
    deliver(curves, asked, talk, lambda: last, bold="scheme")
    if display is not None:
        report.save_display(display, asked.picture)
        report_written(asked.picture, talk)
    for line in api.campaign_sentences(last):
        talk.say(line)
