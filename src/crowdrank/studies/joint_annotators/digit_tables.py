"""Tables 3 and 4 of Gupta and Narayanan: digits as told by five classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...datasets import Dataset
from ..figures import COLOURS, common_legend, panels
from ..outcomes import Outcome, Row, Verdict
from ..work import Work
from .machines import COMPARED, SCHEMES, TOSSED, Machines
from .printed import TABLE_3, TABLE_4
from .schemes import EFFECTS, IAM, JAM, MV, VOTES, VRJAM, shown

_NEAR = 3.0
"""Points in per cent within which figures count as the same: the drawn features alone make accuracies vary so."""

_PRINTED_PAIRS = 370_000
_Z = 1.96

Cells = Sequence[Mapping[str, Any]]
"""What was found with each seed."""


def digits(work: Work) -> Outcome:
    """How well classifiers and fusion schemes order digits, and how sure differences between schemes are."""
    data = work.load("pendigits")
    n_items = work.pick(quick=200, default=1000)
    seeds = work.seeds(quick=1, default=10, full=30)
    work.expect(len(seeds), "digits")
    found = [work.cell(("digits", n_items, seed), partial(_measured, data, n_items, seed)) for seed in seeds]
    return Outcome(
        rows=list(_rows(found)),
        verdicts=_verdicts(found),
        figures={"table-4": lambda: _figure(found)},
        notes=_notes(found, n_items),
    )


def _measured(data: Dataset, n_items: int, seed: int) -> Mapping[str, Any]:
    """What one draw of digits, and of the features of classifiers, finds."""
    return Machines.draw(data, n_items, seed).measured()


def _scheme(found: Cells, name: str, part: str = "schemes") -> tuple[float, ...]:
    """Right pairs by a scheme, seed after seed."""
    return tuple(cell[part][name] for cell in found)


def _annotator(found: Cells, number: int, measure: int) -> tuple[float, ...]:
    """Right pairs by a classifier, ties counted as wrong (0) or as one half (1)."""
    return tuple(cell["annotators"][number][measure] for cell in found)


def _rows(found: Cells) -> Iterator[Row]:
    """Both tables and the differences."""
    for number, (name, printed) in enumerate(TABLE_3.items()):
        for measure, text in enumerate(("ties wrong", "ties one half")):
            what = {"of": name, "measure": f"right pairs in %, {text}"}
            yield Row(place="table 3", what=what, values=_annotator(found, number, measure), paper=printed)
    for name in SCHEMES:
        what = {"of": name, "measure": "right pairs in %"}
        yield Row(place="table 4", what=what, values=_scheme(found, name), paper=TABLE_4.get(name))
    for name in TOSSED:
        what = {"of": f"{name}, ties tossed", "measure": "right pairs in %"}
        yield Row(place="table 4", what=what, values=_scheme(found, name, "tossed"), paper=TABLE_4[name])
    for number, (first, second) in enumerate(COMPARED):
        what = {"of": f"{first} less {second}", "measure": "points"}
        both = {first, second} <= set(TABLE_4)
        less = round(TABLE_4[first] - TABLE_4[second], 1) if both else None
        values = tuple(cell["differences"][number][0] for cell in found)
        yield Row(place="table 4, differences", what=what, values=values, paper=less)
        sure, by_pairs = _clear(found, first, second)
        for text, count in (("bootstrap of items", sure), ("McNemar over pairs", by_pairs)):
            what = {"of": f"{first} ahead of {second}", "measure": f"share of seeds, {text}, 5 %"}
            yield Row(place="table 4, differences", what=what, values=(count / len(found),), over="once")


def _clear(found: Cells, first: str, second: str) -> tuple[int, int]:
    """In how many runs the first scheme is clearly ahead of the second, by items and by pairs."""
    number = COMPARED.index((first, second))
    by_items = sum(cell["differences"][number][1] > 0 for cell in found)
    return by_items, sum(cell["mcnemar"][number] > _Z for cell in found)


def _behind(found: Cells, first: str, second: str) -> int:
    """In how many runs the first scheme is clearly behind the second, by items."""
    number = COMPARED.index((first, second))
    return sum(cell["differences"][number][2] < 0 for cell in found)


def _gap(found: Cells, first: str, second: str) -> tuple[float, ...]:
    """How much one scheme is ahead of another, seed after seed."""
    return tuple(np.subtract(_scheme(found, first), _scheme(found, second)).tolist())


def _verdicts(found: Cells) -> list[Verdict]:
    """What became of the claims of section 4.2.1."""
    return [_table_3(found), _table_4(found), _beat_best(found), _alike(found), _varying(found), _independent(found)]


def _table_3(found: Cells) -> Verdict:
    """Whether the classifiers are as good as the printed ones."""
    ours = {name: _annotator(found, number, 0) for number, name in enumerate(TABLE_3)}
    means = {name: float(np.mean(values)) for name, values in ours.items()}
    told = ", ".join(f"{name} {shown(values)} ({TABLE_3[name]})" for name, values in ours.items())
    gaps = [abs(means[name] - printed) for name, printed in TABLE_3.items()]
    spread = float(np.mean([np.std(values, ddof=1) for values in ours.values()])) if len(found) > 1 else 0.0
    moved = f"; drawing them anew moves a classifier by {spread:.0f} points" if spread else ""
    return Verdict.of(
        "table 3: classifiers order 59 to 72 % of pairs right, random forests most and the perceptron least",
        f"Ours with the printed ones in brackets, a tie being no right order: {told}.",
        why=f"Neither the features that each classifier saw are printed nor its settings{moved}.",
        reproduced=max(gaps) <= _NEAR,
        trend=min(means.values()) == means["Perc."] and max(gaps) <= 4 * _NEAR,
    )


def _table_4(found: Cells) -> Verdict:
    """Whether the schemes reach the printed accuracies."""
    told = ", ".join(f"{one} {shown(_scheme(found, one))} ({printed})" for one, printed in TABLE_4.items())
    others = ", ".join(f"{one} {shown(_scheme(found, one))}" for one in (VOTES, EFFECTS))
    means = {one: float(np.mean(_scheme(found, one))) for one in TABLE_4}
    return Verdict.of(
        "table 4: accuracies of the fusion schemes",
        f"Ours with the printed ones in brackets: {told}; {others}.",
        why="The draw of digits and features alone spreads accuracies as the standard deviations tell.",
        reproduced=all(abs(means[one] - printed) <= _NEAR for one, printed in TABLE_4.items()),
        trend=min(means, key=means.__getitem__) == IAM and max(means, key=means.__getitem__) == VRJAM,
    )


def _beat_best(found: Cells) -> Verdict:
    """Whether MV, JAM and VRJAM are better than the best annotator."""
    best = np.array([max(pair[1] for pair in cell["annotators"]) for cell in found])
    ahead = {one: int((np.array(_scheme(found, one)) > best).sum()) for one in (MV, JAM, VRJAM)}
    means = {one: float(np.mean(_scheme(found, one))) for one in ahead}
    told = ", ".join(f"{one} {means[one]:.1f} and ahead {count} times" for one, count in ahead.items())
    return Verdict.of(
        "MV, JAM and VRJAM outperform the best annotator",
        f"Of {len(found)} runs: {told}; the best annotator of each reaches {best.mean():.1f} with ties as one half.",
        why="A forest that happens to see good features is better than the crowd it belongs to.",
        reproduced=min(ahead.values()) == len(found),
        trend=min(means.values()) > best.mean(),
    )


def _sure(found: Cells, first: str, second: str) -> str:
    """How a comparison went, in words."""
    number = COMPARED.index((first, second))
    by_items, by_pairs = _clear(found, first, second)
    behind = sum(cell["mcnemar"][number] < -_Z for cell in found)
    return (
        f"{first} less {second} is {shown(_gap(found, first, second))} points; where items are drawn again, {first} is "
        f"clearly ahead in {by_items} of {len(found)} runs and behind in {_behind(found, first, second)}, while by "
        f"McNemar's test over pairs it is ahead in {by_pairs} and behind in {behind}"
    )


def _alike(found: Cells) -> Verdict:
    """Whether MV and JAM are alike."""
    gap = _gap(found, JAM, MV)
    clear = _clear(found, JAM, MV)[0] + _behind(found, JAM, MV)
    return Verdict.of(
        "MV and JAM do not differ significantly",
        f"{_sure(found, JAM, MV)}.",
        why="On average they do not, but in most single runs they do, in either direction: features help where "
        "annotators err apart, and confirm their errors where they err together.",
        reproduced=clear == 0,
        trend=abs(float(np.mean(gap))) <= float(np.std(gap, ddof=1)) if len(gap) > 1 else False,
    )


def _varying(found: Cells) -> Verdict:
    """Whether VRJAM is significantly better than MV and JAM."""
    sure = [_clear(found, VRJAM, other)[0] for other in (MV, JAM)]
    means = [float(np.mean(_gap(found, VRJAM, other))) for other in (MV, JAM)]
    overruled = sum(bool(cell["overruled"]) for cell in found)
    return Verdict.of(
        "VRJAM performs significantly better than MV and JAM",
        f"{_sure(found, VRJAM, MV)}. {_sure(found, VRJAM, JAM)}.",
        why="Classifiers err by what the features show, and err together, which breaks the model of JAM and of VRJAM: "
        f"features overruled votes more often than errors by chance explain in {overruled} of {len(found)} runs. Pairs "
        "share items, so that a test over pairs takes almost any difference for a real one.",
        reproduced=min(sure) > len(found) / 2,
        trend=min(means) > 0 and min(sure) > 0,
    )


def _independent(found: Cells) -> Verdict:
    """Whether IAM stays between the worst and the best annotator."""
    ours = _scheme(found, IAM)
    between = sum(
        min(pair[1] for pair in cell["annotators"]) <= value <= max(pair[1] for pair in cell["annotators"])
        for cell, value in zip(found, ours, strict=True)
    )
    return Verdict.of(
        "IAM fails to beat the best annotator and lies between best and worst",
        f"IAM reaches {shown(ours)}, between worst and best annotator in {between} of {len(found)} runs.",
        why="It goes by features alone, and no linear score of them orders digits well.",
        reproduced=between == len(found),
        trend=between > len(found) / 2,
    )


def _notes(found: Cells, n_items: int) -> list[str]:
    """What a reader should know besides."""
    pairs, ties = np.mean([cell["n_pairs"] for cell in found]), np.mean([cell["ties"] for cell in found])
    return [
        f"{n_items:,} digits are drawn from the 10,992 of the source for each seed, and so are the three or four "
        f"features that each classifier sees; {pairs:,.0f} pairs have unequal digits. The paper counts "
        f"{_PRINTED_PAIRS:,}, which is fewer than 1,000 digits of about equal frequency have.",
        f"Classifiers give the same digit to {ties:.1f} % of pairs; such ties are no votes, or a coin where it says "
        "so. The paper does not say what it does with them.",
        "Differences are tested by drawing items again, not by McNemar's test over pairs as in the paper: pairs share "
        "items and are no independent observations. McNemar's counts stand beside it.",
    ]


def _figure(found: Cells) -> Any:
    """Every scheme's accuracy, a point for each seed, with the mean and the printed figure."""
    figure, (ax,) = panels(1, width=7.0, height=3.6)
    for place, name in enumerate(SCHEMES):
        values = _scheme(found, name)
        across = place + np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else [place]
        ax.plot(across, values, "o", color=COLOURS[0], markersize=3, alpha=0.6, label=None if place else "one seed")
        ax.plot([place - 0.3, place + 0.3], [np.mean(values)] * 2, color=COLOURS[0], label=None if place else "mean")
        if name in TABLE_4:
            ax.plot(place, TABLE_4[name], "D", color=COLOURS[1], markersize=5, label=None if place else "printed")
    ax.set_xticks(range(len(SCHEMES)), [name.replace(", ", ",\n") for name in SCHEMES], fontsize=8)
    ax.set_ylabel("right pairs in %")
    ax.spines[["top", "right"]].set_visible(False)
    common_legend(figure, ax)
    return figure
