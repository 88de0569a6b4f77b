"""Studies as such: cells that are kept, tables, verdicts, files, and mistakes said in one sentence."""

import json
import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from crowdrank.datasets import names
from crowdrank.errors import MissingDataError, ParameterError, UnknownNameError
from crowdrank_studies import SCOPES, STUDIES, VERDICTS, Outcome, Row, Study, Verdict, Work, run_study, study
from crowdrank_studies.figures import bars, common_legend, lines, panels

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Toy(Study):
    """A study of four cells that notes which were computed, and can be stopped before one of them."""

    computed: list = field(default_factory=list)
    stop_at: list = field(default_factory=list)

    def run(self, work):
        work.expect(4, self.name)
        cells = [work.cell(("square", number), lambda number=number: self.square(number)) for number in range(4)]
        rows = [
            Row(place="table 1", what={"method": "square", "number": number}, values=cell["values"], paper=1.0)
            for number, cell in enumerate(cells)
        ]
        seen = [row.ours for row in rows]
        verdict = Verdict.of("squares rise", f"They are {seen}.", reproduced=seen == sorted(seen), why="Nobody knows.")

        def draw():
            figure, (ax,) = panels(1)
            lines(ax, range(4), {"square": [row.values for row in rows]}, xlabel="number", ylabel="square")
            return figure

        return Outcome(rows=rows, verdicts=[verdict], figures={"figure-1": draw}, notes=("Squares of small numbers.",))

    def square(self, number):
        if number in self.stop_at:
            raise KeyboardInterrupt
        self.computed.append(number)
        return {"values": np.array([number**2, number**2 + 0.5]), "n": np.int64(2), "name": "square"}


@pytest.fixture
def toy(monkeypatch):
    """A study that is in the catalogue for the test."""
    made = Toy(
        name="toy", title="Squares", reference="Niu15", home="nowhere:toy", protocol="Numbers are squared.",
        minutes={"default": 0.1},
    )  # fmt: skip
    monkeypatch.setitem(STUDIES, "toy", made)
    return made


def test_stopped_run_goes_on_where_it_was(toy, tmp_path):
    toy.stop_at.append(2)
    with pytest.raises(KeyboardInterrupt):
        run_study("toy", out=tmp_path)
    assert not (tmp_path / "toy.csv").exists()
    toy.stop_at.clear()
    told = []
    ran = run_study("toy", out=tmp_path, progress=lambda *step: told.append(step))
    assert toy.computed == [0, 1, 2, 3]
    assert ran.n_resumed == 2
    assert told == [(done, 4, "toy") for done in range(5)]
    assert ran.outcome.frame().equals(run_study("toy").outcome.frame())


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_damaged_last_line_is_done_again(toy, tmp_path, cut):
    run_study("toy", out=tmp_path)
    kept = tmp_path / "toy.cells.jsonl"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-cut])
    toy.computed.clear()
    run_study("toy", out=tmp_path)
    # without its line end alone the line is whole
    assert toy.computed == ([] if cut == 1 else [3])
    toy.computed.clear()
    assert run_study("toy", out=tmp_path).n_resumed == 4
    assert toy.computed == []
    assert len(kept.read_text().splitlines()) == 5


@pytest.mark.parametrize("damage", [b"\xff\xfe\x00", b'{"other": 1}\n', b"3\n", b'["a", 2]\n[1, {}, 2]\nnull\n'])
def test_kept_cells_of_something_else_are_not_taken(toy, tmp_path, damage):
    kept = tmp_path / "toy.cells.jsonl"
    kept.write_bytes(damage)
    assert run_study("toy", out=tmp_path).n_resumed == 0
    assert toy.computed == [0, 1, 2, 3]
    assert json.loads(kept.read_text().splitlines()[0])["study"] == "toy"


def test_other_version_or_scope_begins_anew(toy, tmp_path):
    run_study("toy", out=tmp_path)
    kept = tmp_path / "toy.cells.jsonl"
    head, *lines_ = kept.read_text().splitlines()
    kept.write_text("\n".join([head.replace('"crowdrank": "', '"crowdrank": "0.0.'), *lines_]) + "\n")
    assert run_study("toy", out=tmp_path).n_resumed == 0
    assert run_study("toy", "quick", out=tmp_path).n_resumed == 0
    assert (tmp_path / "toy-quick.csv").exists()
    assert run_study("toy", out=tmp_path).n_resumed == 4


def test_files_of_a_run(toy, tmp_path):
    ran = run_study("toy", out=tmp_path / "new" / "folder")
    assert {file.name for file in ran.files} == {"toy.csv", "toy.json", "toy-figure-1.png", "toy-figure-1.svg"}
    told = json.loads((tmp_path / "new" / "folder" / "toy.json").read_text())
    assert told["scope"] == "default"
    assert told["versions"]["crowdrank"]
    assert told["verdicts"] == [
        {"claim": "squares rise", "verdict": "reproduced", "reason": "They are [0.25, 1.25, 4.25, 9.25]."}
    ]
    assert told["spread"] == {"seeds": "standard deviation over seeds"}
    first = (tmp_path / "new" / "folder" / "toy.csv").read_text().splitlines()
    assert first[0] == "place,method,number,paper,ours,spread,difference,n,over"
    assert first[1].startswith("table 1,square,0,1.0,0.25,0.3535")


def test_same_numbers_give_the_same_files(toy, tmp_path):
    first, second = (run_study("toy", out=tmp_path / name).files for name in "ab")
    for one, other in zip(first, second, strict=True):
        if one.suffix != ".json":
            assert one.read_bytes() == other.read_bytes(), one.name


def test_cells_hold_what_files_can(tmp_path):
    work = Work(kept=tmp_path / "cells.jsonl")
    assert work.cell(("a", np.float64(1.5)), lambda: {"x": np.arange(2), "y": (1, 2)}) == {"x": [0, 1], "y": [1, 2]}
    with pytest.raises(TypeError, match="a cell of a study holds numbers, text and lists of them, not set"):
        work.cell(("b",), lambda: {"x": {1, 2}})


def test_unknown_study_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no study 'crowdag-trec'; did you mean 'crowdagg-trec'\? known: "):
        study("crowdag-trec")
    with pytest.raises(UnknownNameError, match=r"no study 'qqq'; known: crowdagg-trec, "):
        run_study("qqq")
    assert study(" Crowdagg_TREC ").name == "crowdagg-trec"


@pytest.mark.parametrize("name", [name for name, entry in STUDIES.items() if entry.data])
def test_missing_data_says_what_to_get(name, tmp_path):
    with pytest.raises(MissingDataError, match=r"data set '.*' lacks .*") as told:
        run_study(name, "quick", folder=tmp_path)
    assert "\n" not in str(told.value)


def test_bad_arguments(toy, tmp_path):
    with pytest.raises(ParameterError, match="scope='small' is not known; choose one of 'quick', 'default', 'full'"):
        run_study("toy", "small")
    with pytest.raises(ParameterError, match="seeds=0 must be at least 1"):
        run_study("toy", n_seeds=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="file"):
        run_study("toy", out=tmp_path / "file")
    (tmp_path / "toy.cells.jsonl").mkdir()
    with pytest.raises(ParameterError, match=r"toy\.cells\.jsonl is a folder"):
        run_study("toy", out=tmp_path)


def test_scopes():
    assert [Work(scope).pick(quick=1, default=2, full=3) for scope in SCOPES] == [1, 2, 3]
    assert [len(Work(scope).seeds(quick=1, default=5)) for scope in SCOPES] == [1, 5, 5]
    assert list(Work("quick", n_seeds=3).seeds()) == [0, 1, 2]


def test_spread_of_rows():
    values, what = (1.0, 2.0, 3.0, 6.0), {"method": "m"}
    deviation = float(np.std(values, ddof=1))
    assert Row(place="p", what=what, values=values).spread == pytest.approx(deviation)
    assert Row(place="p", what=what, values=values, over="queries").spread == pytest.approx(deviation / 2)
    assert Row(place="p", what=what, values=values, over="once").spread is None
    assert Row(place="p", what=what, values=(1.0,)).spread is None


def test_table_of_rows_with_different_labels():
    rows = [
        Row(place="a", what={"x": 1}, values=(1.0, 2.0), paper=1.0),
        Row(place="b", what={"y": "text"}, values=(4.0,), over="once"),
    ]
    frame = Outcome(rows=rows, verdicts=[]).frame()
    assert frame.columns == ["place", "x", "y", "paper", "ours", "spread", "difference", "n", "over"]
    assert frame.rows()[0][:5] == ("a", "1", None, 1.0, 1.5)
    assert frame.rows()[1] == ("b", None, "text", None, 4.0, None, None, 1, "once")


def test_verdicts_follow_from_what_was_seen():
    assert Verdict.of("c", "Seen.", reproduced=True, trend=True, why="Why.") == Verdict("c", "reproduced", "Seen.")
    assert Verdict.of("c", "Seen.", reproduced=False, trend=True, why="Why.").verdict == "same trend"
    assert Verdict.of("c", "Seen.", reproduced=False, why="Why.").reason == "Seen. Why."


@pytest.mark.parametrize("verdict", ["reproduced", "same trend", "not reproduced", "undecided"])
def test_what_rests_on_a_proxy_is_not_decidable(toy, verdict):
    rests = replace(toy, proxies={"figure 4": "Never published. Ours:"}, exact=("figure 4, costs",))
    claims = ("figure 4: a is better than b", "figure 4, costs: by the formula", "figure 5: a is better than b")
    outcome = rests.leave_proxies(Outcome(rows=[], verdicts=[Verdict(claim, verdict, "Seen.") for claim in claims]))
    assert [one.verdict for one in outcome.verdicts] == ["not decidable", verdict, verdict]
    assert [one.reason for one in outcome.verdicts] == ["Never published. Ours: Seen.", "Seen.", "Seen."]


def test_runs_keep_the_rule_of_proxies(toy, monkeypatch):
    monkeypatch.setitem(STUDIES, "toy", replace(toy, proxies={"": "Never published. Ours:"}))
    assert [one.verdict for one in run_study("toy").outcome.verdicts] == ["not decidable"]


def test_no_claim_on_the_page_that_rests_on_a_proxy_is_decided():
    page = (ROOT / "docs" / "studies.md").read_text()
    looked_at = 0
    for name, known in STUDIES.items():
        section = re.split(r"^## ", page.partition(f"\n## {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        for verdict, claim in re.findall(r"^- \*\*([a-z ]+)\*\*: (.*)$", section, flags=re.MULTILINE):
            looked_at += 1
            assert known.proxy(claim) is None or verdict in ("not decidable", "not measured"), (name, verdict, claim)
    assert looked_at > 50


def test_minutes_of_the_command_are_those_of_the_runs_on_the_page():
    page = (ROOT / "docs" / "studies.md").read_text()
    took = re.findall(r"^## (\S+)$.*?\*Took ([\d.]+) minutes", page, flags=re.MULTILINE | re.DOTALL)
    assert {name: float(minutes) for name, minutes in took} == {
        name: known.minutes["default"] for name, known in STUDIES.items()
    }
    # a quick run is a matter of half a minute
    assert max(known.minutes["quick"] for known in STUDIES.values()) <= 0.5


def test_proxies_are_those_of_all_claims_that_need_them():
    claims = {
        "spammers": ("figure 3: x", "figure 4: x"),
        "crowdagg-mirex": ("figure 1: x", "table 2 (b): x"),
        "crowdagg-trec": ("table 2 (a): x",),
        "visual-clutter": ("figure 4: x",),
        "overlap": ("table 1: If-good-3 is the best setting", "figure 4: of If-good-k, k = 3 is best"),
    }
    assert all(STUDIES[name].proxy(claim) for name, of_study in claims.items() for claim in of_study)
    assert STUDIES["overlap"].proxy("tables 6 to 8: what If-good-k costs") is None


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3))])
def test_panels(n, shape):
    figure, axes = panels(n)
    assert len(axes) == n
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == shape
    bars(axes[0], ["a", "b"], {"printed": [1, 2], "ours": [2, 1]}, ylabel="value")
    common_legend(figure, axes[0])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["printed", "ours"]


@pytest.mark.parametrize("entry", STUDIES.values(), ids=lambda entry: entry.name)
def test_catalogue(entry):
    module, _, function = entry.home.partition(":")
    assert callable(getattr(import_module(f"crowdrank_studies.{module}"), function))
    assert set(entry.data) <= set(names())
    assert set(entry.minutes) <= set(SCOPES)
    assert entry.minutes.get("default", 0) > 0
    assert entry.title
    assert entry.protocol.endswith(".")


def test_references(request):
    listed = (request.config.rootpath / "docs" / "references.md").read_text()
    assert not [entry.name for entry in STUDIES.values() if f"**{entry.reference}**" not in listed]
    assert len(VERDICTS) == 6
