"""``crowdrank propose`` and ``simulate``: which judgments to buy next, and what made-up annotators would answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ..errors import ParameterError
from ..wording import counted
from .outputs import check_files, check_picture, deliver, report_written, write_wanted
from .votes import Reading, pairs, read_votes, split_list

if TYPE_CHECKING:
    from .talk import Talk


def propose(
    *,
    talk: Talk,
    votes: list[str] | None,
    scheme: str,
    goal: str | None,
    params: dict[str, str],
    budget: float | None,
    pool: str | None,
    price: str,
    least_gain: float,
    features: str | None,
    consensus: str | None,
    open: str | None,
    seed: int,
    reading: Reading,
    costs: str | None,
    out: str | None,
    format: str | None,
) -> None:
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
    from .. import api
    from .terminal_tables import show_frame

    votes = votes or []
    if not votes and reading.items is None:
        raise ParameterError("name the file of the judgments so far, or with --items what may be asked about first")
    check_files([*votes, reading.items, pool, features, open], [out, costs], format=format, tables=[costs])
    limits: dict[str, Any] = {"budget": budget, "price": _prices(price), "least_gain": least_gain}
    api.check_requests(scheme, params, goal, **limits, consensus=consensus)
    # listed items are what may be asked about, which the verb itself has to know
    judgments = read_votes(votes, reading.but(items=None), talk) if votes else None
    if costs is not None and (judgments is None or judgments.kind != "grade"):
        there = "nothing is judged yet" if judgments is None else f"these are {judgments.kind}s"
        raise ParameterError(f"--costs counts grades, but {there}; leave it out")
    with talk.working("choosing what to ask") as progress:
        proposed = api.requests(
            judgments, scheme, reading.items, pool, goal=goal, params=params, consensus=consensus, features=features,
            open=open, kind=None if votes else reading.kind, seed=seed, progress=progress, **limits,
        )  # fmt: skip
    table = proposed.frame()
    cut = ("query", "item", "left", "right", "annotator")
    what = "item" if "item" in table.columns else "left"
    deliver(table, out, format, talk, lambda: show_frame(table, bold=what, cut=cut, fill=("reason",)))
    write_wanted(costs, lambda: api.scheme_costs(judgments, seed=seed), talk)
    for note in (*proposed.notes, proposed.sentence()):
        talk.say(note)


def _prices(text: str) -> float | dict[str, float]:
    """One price, or the price of each group, from text."""
    try:
        if "=" not in text:
            return float(text)
        return {group: float(value) for group, value in pairs(split_list(text), "--price", "person=4").items()}
    except ValueError:
        raise ParameterError(
            f"--price {text!r} is not a number; write for example --price 2 or person=4,program=1"
        ) from None


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


def simulate(
    *,
    talk: Talk,
    truth: str,
    annotators: int | None,
    noise: str | None,
    kind: str | None,
    per_item: float | None,
    seed: int,
    noises: bool,
    campaign: list[str] | None,
    votes: str | None,
    goal: str | None,
    measures: list[str] | None,
    picture: str | None,
    quality: str | None,
    out: str | None,
    format: str | None,
    **played: Any,
) -> None:
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
    from .. import simulate as simulation
    from ..data.showing import EXACT
    from ..io.output import write_table
    from ..io.truth import read_truth

    check_files([truth, votes], [out, quality, picture], format=format, tables=[quality])
    check_picture(picture, "--picture")
    if campaign is not None:
        played |= {"annotators": annotators, "noise": noise, "votes": votes, "kind": kind, "goal": goal, "seed": seed}
        _play(talk, truth, campaign, out, format, picture, measures=measures, **played)
        return
    if votes is not None or picture is not None or goal is not None:
        raise ParameterError("--votes, --picture and --goal go with --campaign; name schemes: --campaign if-good-3")
    if annotators is None or noise is None:
        raise ParameterError('say who votes, as in --annotators 40 --noise "normal(0.7,0.2)"; --noises lists all')
    simulation.check_simulation(noise, kind, per_item)
    with talk.working("drawing votes"):
        drawn = simulation.simulate(
            read_truth(truth), annotators=annotators, noise=noise, kind=kind, per_item=per_item, seed=seed
        )
    judgments = drawn.judgments
    write_table(judgments.frame(), out, format, digits=EXACT)
    report_written(out, talk)
    write_wanted(quality, lambda: drawn.quality, talk)
    by = counted(annotators, "annotator")
    talk.say(f"{counted(len(judgments), judgments.kind)} by {by} on {counted(judgments.n_items, 'item')}")


def _play(
    talk: Talk, truth: str, schemes: list[str], out: str | None, format: str | None, picture: str | None, **asked: Any
) -> None:
    """Play schemes against each other, and write or show their curves."""
    from .. import api
    from ..report import CampaignDisplay, save_display
    from .terminal_tables import show_frame

    with talk.working("simulating the schemes") as progress:
        curves = api.campaigns(truth, schemes, progress=progress, **asked)
    # before anything is written: there may be nothing to draw
    display = None if picture is None else CampaignDisplay.from_curves(curves)
    last = api.campaign_ends(curves)
    deliver(curves, out, format, talk, lambda: show_frame(last, bold="scheme"))
    if display is not None and picture is not None:
        save_display(display, picture)
        report_written(picture, talk)
    for line in api.campaign_sentences(last):
        talk.say(line)
