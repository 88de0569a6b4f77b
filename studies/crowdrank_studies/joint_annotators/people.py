"""Table 5 of Gupta and Narayanan on public sets in place of its private recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..figures import bars, common_legend, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .gupta_figures import TABLE_5
from .item_draws import Difference, ItemDraws
from .rated import FUSED, SURPRISE, Rated, headlines, submissions
from .schemes import EFFECTS, IAM, JAM, MV, PAPER, VOTES, VRJAM, Pairs, fuse

SCHEMES = (*PAPER, VOTES, EFFECTS)
COMPARED = ((VRJAM, MV), (VRJAM, JAM), (JAM, MV), (MV, IAM), (EFFECTS, MV))
_MAX_POINTS_OFF = 1.0
"""Points in per cent within which shares count as close to each other."""

Cells = Mapping[str, Sequence[Mapping[str, Any]]]
"""Name of a set -> what was found with each draw of annotators."""


def rated_speech(work: Work) -> Outcome:
    """How often the group that should be higher is put above the other, and how often experts agree."""
    n_draws = work.pick(quick=200, default=1000)
    seeds = work.seeds(quick=1, default=10, full=30)
    claims = {one.name: one.claim for one in (*headlines(work, 0), submissions(work))}
    work.expect(len(seeds) + 1, "rated-speech")
    cells = [work.cell(("headlines", n_draws, seed), partial(_emotions, work, seed, n_draws)) for seed in seeds]
    graded = work.cell(
        ("submissions", n_draws), lambda: {one.name: _measure_schemes(one, n_draws) for one in (submissions(work),)}
    )
    measured = {name: [cell[name] for cell in cells] for name in cells[0]} | {
        name: [cell] for name, cell in graded.items()
    }
    # what is found on other data than the paper's is no verdict on its table
    private, *others = _verdicts(measured, claims)
    return Outcome(
        rows=list(_rows(measured)),
        verdicts=[private],
        figures={"table-5": lambda: _figure(measured)},
        notes=[*(verdict.note for verdict in others), *_notes(measured)],
    )


def _emotions(work: Work, seed: int, n_draws: int) -> Mapping[str, Any]:
    """What is found of the emotions in headlines with one draw of annotators."""
    return {one.name: _measure_schemes(one, n_draws) for one in headlines(work, seed)}


def _measure_schemes(rated: Rated, n_draws: int) -> Mapping[str, Any]:
    """Shares of pairs by scheme, and how sure differences between schemes are."""
    judgments, pairs = rated.judgments, Pairs.of(rated.judgments)
    fused = {one: fuse(one, judgments, rated.features, pairs) for one in SCHEMES}
    known = ~np.isnan(rated.higher)
    of_groups = pairs.truth(np.where(known, rated.higher, 0)) * (known[pairs.left] & known[pairs.right])
    measured: dict[str, Any] = {"n_annotators": judgments.n_annotators, "n_items": judgments.n_items,
                             "votes": float((judgments.outcome != 0).sum() / len(pairs))}  # fmt: skip
    for name, truth in (("groups", of_groups.astype(np.int8)), ("experts", pairs.truth(rated.gold))):
        draws = ItemDraws(pairs, judgments.n_items, truth != 0, n_draws)
        measured[name] = {
            "n_pairs": int((truth != 0).sum()),
            "shares": {one: votes.accuracy(truth) for one, votes in fused.items()},
            "differences": [draws.difference(fused[one], fused[two], truth) for one, two in COMPARED],
        }
    return measured


def _rows(measured: Cells) -> Iterator[Row]:
    """Shares, and differences with the bounds of the draws."""
    for name, cells in measured.items():
        over = "seeds" if len(cells) > 1 else "once"
        for part, text in (("groups", "higher group above in %"), ("experts", "right pairs by experts in %")):
            for scheme in SCHEMES:
                what = {"set": name, "of": scheme, "measure": text}
                values = tuple(cell[part]["shares"][scheme] for cell in cells)
                yield Row(place="as table 5", what=what, values=values, over=over)
            for number, (first, second) in enumerate(COMPARED):
                for place, word in enumerate(("points", "lower bound", "upper bound")):
                    what = {"set": name, "of": f"{first} less {second}", "measure": f"{text}, {word}"}
                    values = tuple(cell[part]["differences"][number][place] for cell in cells)
                    yield Row(place="as table 5, differences", what=what, values=values, over=over)


def _verdicts(measured: Cells, claims: Mapping[str, str]) -> list[Verdict]:
    """Table 5 itself, and its claims on the public sets."""
    return [
        _missing_for_table_5(),
        _expected_verdict(measured, claims),
        _close(measured),
        _highest(measured),
        _lowest(measured),
        _experts(measured),
    ]


def _missing_for_table_5() -> Verdict:
    """What table 5 would need."""
    printed = "; ".join(
        f"{attribute}: {', '.join(f'{one} {value}' for one, value in shares.items())}"
        for attribute, shares in TABLE_5.items()
    )
    return Verdict(
        "table 5: how often a typically developing child is put above one with autism",
        "not decidable",
        f"The Safari Bob recordings of 105 children, their ratings by five annotators and the features of their speech "
        f"are private. Printed: {printed}. The paper itself says that without truth the table cannot support its "
        "methods. The same analysis of public sets follows; speech that listeners graded is in the study "
        "codec-listening, which is about the quality of codecs.",
    )


def _shares(measured: Cells, scheme: str, part: str = "groups") -> dict[str, float]:
    """Shares of a scheme, set by set."""
    return {name: float(np.mean([cell[part]["shares"][scheme] for cell in cells])) for name, cells in measured.items()}


def _shares_text(shares: Mapping[str, float]) -> str:
    """Shares as text."""
    return ", ".join(f"{name} {value:.1f}" for name, value in shares.items())


def _gaps(measured: Cells, first: str, second: str, part: str = "groups") -> dict[str, Difference]:
    """Difference between two schemes and its bounds, set by set, the mean over draws of annotators."""
    number = COMPARED.index((first, second))
    return {
        name: Difference(*np.mean([cell[part]["differences"][number] for cell in cells], axis=0).tolist())
        for name, cells in measured.items()
    }


def _differences_text(gaps: Mapping[str, Difference]) -> str:
    """Differences as text, with their bounds."""
    return ", ".join(f"{name} {one.value:+.1f} ({one.low:+.1f} to {one.high:+.1f})" for name, one in gaps.items())


def _expected_verdict(measured: Cells, claims: Mapping[str, str]) -> Verdict:
    """Whether the group that should be higher is."""
    shares = _shares(measured, JAM)
    sure = {name: share for name, share in shares.items() if not name.startswith(SURPRISE)}
    above = sum(share > 50 for share in sure.values())
    return Verdict.of(
        "as table 5: the group that is expected to be higher is put above the other more often than not",
        f"Share of pairs of both groups by JAM: {_shares_text(shares)}. Expected: "
        f"{'; '.join(claims[name] for name in sure)}. Of these {len(sure)}, surprise going either way, {above} are "
        "above one half.",
        reproduced=above == len(sure),
        trend=above > len(sure) / 2,
    )


def _close(measured: Cells) -> Verdict:
    """Whether MV and JAM are close."""
    gaps = _gaps(measured, JAM, MV)
    clear = sum(one.clear != 0 for one in gaps.values())
    return Verdict.of(
        "as table 5: MV and JAM are fairly close to each other",
        f"JAM less MV in points, with bounds of 95 % by drawing items again: {_differences_text(gaps)}; clear in "
        f"{clear} of "
        f"{len(gaps)} sets.",
        why="Where a pair has few or tied votes, MV tosses a coin and JAM uses the features.",
        reproduced=max(abs(one.value) for one in gaps.values()) <= _MAX_POINTS_OFF,
        trend=clear == 0,
    )


def _highest(measured: Cells) -> Verdict:
    """Whether VRJAM has the highest share."""
    shares = {one: _shares(measured, one) for one in PAPER}
    first = sum(max(PAPER, key=lambda one: shares[one][name]) == VRJAM for name in measured)
    gaps = {other: _gaps(measured, VRJAM, other) for other in (MV, JAM)}
    clear = {other: sum(one.clear > 0 for one in of.values()) for other, of in gaps.items()}
    mean = {other: float(np.mean([one.value for one in of.values()])) for other, of in gaps.items()}
    return Verdict.of(
        "as table 5: VRJAM puts the expected group above most often",
        f"It is first of the four schemes in {first} of {len(measured)} sets. Less JAM: "
        f"{_differences_text(gaps[JAM])}; "
        "clearly ahead "
        f"in {clear[JAM]}. Less MV: {_differences_text(gaps[MV])}; clearly ahead in {clear[MV]}.",
        why="With a few hundred votes at most, annotators have too little in each cluster for rates to differ.",
        reproduced=first == len(measured) and clear[JAM] > 0,
        trend=min(mean.values()) > 0 and first > len(measured) / 2,
    )


def _lowest(measured: Cells) -> Verdict:
    """Whether IAM has the lowest share."""
    shares = {one: _shares(measured, one) for one in PAPER}
    experts = {one: float(np.mean(list(_shares(measured, one, "experts").values()))) for one in PAPER}
    last = sum(min(PAPER, key=lambda one: shares[one][name]) == IAM for name in measured)
    return Verdict.of(
        "as table 5: IAM has the lowest share",
        f"It is last of the four schemes in {last} of {len(measured)} sets: {_shares_text(shares[IAM])}, against MV "
        f"{_shares_text(shares[MV])}. Right pairs by experts, the mean over sets: {_shares_text(experts)}.",
        why="Scores from features alone follow the groups where features do. So a scheme is not proved better by "
        "putting the group expected to be higher above more often.",
        reproduced=last == len(measured),
        trend=last > len(measured) / 2,
    )


def _experts(measured: Cells) -> Verdict:
    """Whether joint models agree with experts more often than MV, which the paper could not ask."""
    shares = {one: _shares(measured, one, "experts") for one in SCHEMES}
    means = {one: float(np.mean(list(of.values()))) for one, of in shares.items()}
    gaps = {one: _gaps(measured, one, MV, "experts") for one in (JAM, VRJAM)}
    ahead = {one: sum(gap.clear > 0 for gap in of.values()) for one, of in gaps.items()}
    behind = {one: sum(gap.clear < 0 for gap in of.values()) for one, of in gaps.items()}
    differences = "; ".join(f"{one} less MV: {_differences_text(of)}" for one, of in gaps.items())
    return Verdict.of(
        "beyond table 5: JAM and VRJAM agree with experts more often than MV",
        f"Mean share of pairs in the experts' order: {_shares_text(means)}. {differences}.",
        why="Where many annotators rate each pair, features add little.",
        reproduced=min(ahead.values()) > len(measured) / 2,
        trend=min(means[JAM], means[VRJAM]) > means[MV] and all(ahead[one] >= behind[one] for one in gaps),
    )


def _notes(measured: Cells) -> list[str]:
    """What a reader should know besides."""
    headline, *_, graded = (cells[0] for cells in measured.values())
    return [
        f"Nothing here is speech. Headlines: a hundred in batches of twenty, rated for six emotions; {FUSED} of ten "
        f"annotators, as many as in the paper, are drawn and fused ({headline['votes']:.1f} votes a pair that are no "
        "ties), and the answers of the other five about the other emotions are the features. The groups are pleasant "
        "and unpleasant ones by experts' valence; for surprise the pleasant ones count as the higher.",
        f"Work graded by peers: {graded['n_items']:,} pieces in 19 tasks by {graded['n_annotators']} students, most "
        f"of whom grade two pieces of a task ({graded['votes']:.1f} votes a pair). The groups are the halves by "
        "teaching assistants, and the features are what students say of their own work and how they grade others.",
        "Shares are over pairs whose two items one annotator rated; a tie counts one half. Bounds come from draws of "
        "items, without fitting the schemes again, averaged over draws of annotators.",
    ]


def _figure(measured: Cells) -> Any:
    """Share of each scheme, set by set: by groups and by experts."""
    figure, axes = panels(2, rows=2, width=8.5, height=3.2)
    titles = ("higher group above in %", "right pairs by experts in %")
    for ax, part, label in zip(axes, ("groups", "experts"), titles, strict=True):
        names = [name.replace(" in ", "\nin ").replace(" by ", "\nby ") for name in measured]
        series: dict[str, Sequence[float]] = {one: list(_shares(measured, one, part).values()) for one in SCHEMES}
        bars(ax, names, series, ylabel=label, legend=False)
        ax.tick_params(axis="x", labelsize=7)
        ax.set_ylim(40, None)
        ax.axhline(50, color="black", linewidth=0.6)
    common_legend(figure, axes[0], across=len(SCHEMES))
    return figure
