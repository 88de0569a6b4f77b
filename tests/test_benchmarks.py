"""The benchmarks: a well-formed table, one tiny workload that runs, and what is said of the result."""

import json
from dataclasses import replace

import pytest
from benchmarks import golden, report
from benchmarks.processes import absent_peers, measure
from benchmarks.table import WORKLOADS, chosen
from benchmarks.workload import Command, Failed, Measured, Workload, faster, no_lower, peak_under, seconds_beyond

from crowdrank.registry import names

MEASURED = {
    "ours": Measured(seconds=0.1, cpu=0.1, times=(0.1, 0.2, 0.15), peak=2_000_000_000, figure=0.9),
    "peer": Measured(seconds=1.5, cpu=1.5, times=(1.5, 1.6, 1.7), peak=1_000_000, figure=0.8),
}


def example(*floors):
    """A workload of two sides that are never run."""
    side = Command("a side", lambda folder: ["-c", "pass"])
    sizes = {size: {"n_rows": n_rows} for size, n_rows in (("tiny", 1), ("small", 10), ("full", 1000))}
    return Workload(
        "example", "{n_rows:,} rows", sizes, lambda folder, size: None, {"ours": side, "peer": side}, floors, "accuracy"
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_are_well_formed(name):
    workload = WORKLOADS[name]
    assert workload.name == name
    assert set(workload.sizes) == {"tiny", "small", "full"}
    assert "{" not in workload.title("full")
    assert any(floor.limit is not None for floor in workload.floors)
    for floor in workload.floors:
        assert floor.sides
        assert set(floor.sides) <= set(workload.sides)
        floor.value(dict.fromkeys(workload.sides, Measured(1.0, 1.0, (1.0,), 1, 0.5)))


def test_every_method_has_a_first_call():
    assert {f"first_call/{method}" for method in names("aggregator")} <= set(WORKLOADS)


def test_a_tiny_workload_runs():
    outcome = report.Outcome(WORKLOADS["load_preferences"], "tiny", measure(WORKLOADS["load_preferences"], "tiny"))
    assert outcome.well, report.as_text(outcome)
    for side in outcome.sides.values():
        assert len(side.times) == 3
        assert 0 < side.seconds == min(side.times)
        assert side.figure == 20
        assert side.peak > 10_000_000


def test_a_peer_that_is_not_installed_is_left_out(tmp_path):
    workload = WORKLOADS["win_rates"]
    for python in (None, str(tmp_path / "python")):
        absent = absent_peers(workload, python)
        assert "ppi-python not installed; pip install ppi-python in a virtual environment" in absent["ppi-python"]
    outcome = report.Outcome(workload, "full", {"built": MEASURED["ours"]}, absent=absent)
    assert outcome.well
    assert "--peer-python" in report.as_text(outcome)
    assert set(measure(workload, "tiny")) == {"built"}


def test_a_failing_command_says_why():
    workload = example(faster("ours", "peer", 2))
    broken = Command("a broken side", lambda folder: ["-c", "raise SystemExit('no such thing')"])
    # the data are made by the workload of that name, and that of imports has none
    failed = replace(workload, sides={**workload.sides, "ours": broken}, name="imports")
    outcome = report.Outcome(failed, "full", measure(failed, "full"))
    assert outcome.sides["ours"] == Failed("no such thing")
    assert isinstance(outcome.sides["peer"], Measured)
    assert not outcome.well
    assert "ours: FAILED: no such thing" in report.as_text(outcome)


def test_floors_pass_or_fall_short():
    floors = (faster("ours", "peer", 12), no_lower("ours", "peer", 0.0), seconds_beyond("ours", "peer", 0.4))
    outcome = report.Outcome(example(*floors, peak_under("ours", 1.0)), "full", MEASURED)
    text = report.as_text(outcome)
    assert "ours faster than peer: 15 x PASS (at least 12 x)" in text
    assert "ours beyond peer: -1.4 s PASS (at most 0.4 s)" in text
    assert "ours peak memory: 2 GB SHORT OF at most 1 GB" in text
    assert not outcome.well
    # floors are about the full size
    assert "SHORT" not in report.as_text(replace(outcome, size="small"))
    assert replace(outcome, size="small").well


def test_results_are_written_by_the_ending(tmp_path):
    outcomes = [report.Outcome(example(faster("ours", "peer", 12)), "full", MEASURED)]
    about = report.machine()
    report.write(tmp_path / "r.json", outcomes, about)
    report.write(tmp_path / "r.md", outcomes, about)
    (found,) = json.loads((tmp_path / "r.json").read_text())["workloads"]
    assert found["sides"]["ours"]["seconds"] == 0.1
    assert found["floors"][0]["reached"] is True
    before = report.recorded(tmp_path / "r.json")
    again = replace(outcomes[0], before=before)
    assert "PASS (at least 12 x), 15 x before" in report.as_text(again)
    assert again.well
    slower = replace(again, sides=MEASURED | {"ours": replace(MEASURED["ours"], seconds=0.124)})
    assert "12.1 x PASS (at least 12 x), 15 x before" in report.as_text(slower)
    slower = replace(again, before={key: 1.3 * value for key, value in before.items()})
    assert "15 x PASS (at least 12 x), 19.5 x before: SLOWER" in report.as_text(slower)
    assert not slower.well
    assert "| example | ours faster than peer | 15 x | PASS (at least 12 x) |" in (tmp_path / "r.md").read_text()


def test_a_missing_peer_is_named_with_the_remedy():
    workload = replace(example(), needs=("json", "no_such_peer"))
    assert workload.missing().startswith("no_such_peer not installed; pip install 'no_such_peer'")
    assert report.as_text(report.Outcome(workload, "full", {}, workload.missing())).count("skipped: no_such_peer") == 1
    assert replace(workload, needs=("json",)).missing() is None


def test_workloads_are_chosen_by_name_or_group():
    assert [workload.name for workload in chosen(["elo"])] == ["elo"]
    assert {workload.name.split("/")[0] for workload in chosen(["first_call"])} == {"first_call"}
    assert len(chosen([])) == len(WORKLOADS)
    with pytest.raises(SystemExit, match="there is no workload 'elos'"):
        chosen(["elos"])


def test_golden_files_have_makers_that_tell_call_and_peer(tmp_path):
    with pytest.raises(SystemExit, match="there is no golden file 'nobody'"):
        golden.remake(["nobody"], tmp_path)
    for name in golden.MAKERS:
        stored = json.loads((golden.FOLDER / f"{name}.json").read_text())
        assert stored["input"]["rows"]
        expected = stored["expected"]
        for case in [expected] if "call" in expected else expected.values():
            assert case["call"]
            assert case["peer"].split()[-1][0].isdigit()


def test_the_guide_has_the_table_of_rankers_that_was_measured():
    from benchmarks import ranker_choice

    figures = ranker_choice.ROOT / "docs" / "evidence" / "ranker-choice.csv"
    guide = ranker_choice.GUIDE.read_text()
    assert ranker_choice.with_guide_table(guide, figures) == guide
    assert "| 1,000 |" in guide
