"""The GitHub Action, the GitLab job, ``--summary`` and the assertions for pytest, each as a pipeline runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.integrations.pytest_plugin import assert_no_worse, assert_ranked

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "all votes.csv"
    assert main(["demo", "--quiet", "--save", str(path)]) == 0
    return path


def run_script(script: str, folder: Path, variables: dict[str, str], shell: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(shell) is None or not (SCRIPTS / "crowdrank").exists():
        pytest.skip(f"needs {shell} and an installed crowdrank")
    given = {**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", **variables}
    # the runners of both start scripts so
    return subprocess.run(
        [shell, "-e", "-c", script],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "options", "fail_if", "code", "said"),
    [
        ("aggregate", "--across-queries --method bradley_terry", "quality<0.3\nn_items<3", 3, "**Failed**: quality"),
        ("aggregate", "--across-queries $(touch hacked)", "", 2, None),
        ("changed", "--across-queries", "worse>0", 0, "none of 12 items moved"),
    ],
)  # fmt: skip
def test_the_action_runs_a_command_and_writes_the_job_summary(votes, tmp_path, command, options, fail_if, code, said):
    steps = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    script = next(step["run"] for step in steps if step.get("id") == "run")
    page, output = tmp_path / "page.md", tmp_path / "output"
    files = f'"{votes}"' + (f' "{votes}"' if command == "changed" else "")
    variables = {"COMMAND": command, "FILES": files, "OPTIONS": options, "FAIL_IF": fail_if,
                 "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(output),
                 "GITHUB_STEP_SUMMARY": str(page)}  # fmt: skip
    ran = run_script(script, tmp_path, variables, "bash")
    assert ran.returncode == code, ran.stderr
    folder = Path(output.read_text(encoding="utf-8").strip().removeprefix("folder="))
    assert not (tmp_path / "hacked").exists()
    if said is None:
        assert not page.exists()
        return
    assert said in page.read_text(encoding="utf-8")
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"result.json", "summary.md"} | ({"report.html"} if command == "aggregate" else set())


def test_the_gitlab_job_runs_a_command(votes, tmp_path):
    spec, job = (ROOT / "templates/crowdrank.yml").read_text(encoding="utf-8").split("\n---\n")
    inputs = {name: one.get("default", "") for name, one in yaml.safe_load(spec)["spec"]["inputs"].items()}
    inputs |= {"files": f"'{votes}'", "options": "--across-queries", "fail_if": "quality<0.3"}
    for name, value in inputs.items():
        job = job.replace(f"$[[ inputs.{name} ]]", value)
    assert "$[[" not in job
    (made,) = yaml.safe_load(job).values()
    ran = run_script("\n".join(made["script"]), tmp_path, made["variables"], "sh")
    assert ran.returncode == 3, ran.stderr
    assert "**Failed**: quality" in ran.stdout
    assert {path.name for path in (tmp_path / "crowdrank").iterdir()} == {"result.json", "summary.md", "report.html"}


def test_a_summary_formats_and_loads_nothing_that_an_id_says(tmp_path, capfd):
    rows = [f"{item},{who},{grade}" for who in "abc" for item, grade in (("![x](http://e/x.png)", 3), ("<b>|*y*", 1))]
    (tmp_path / "v.csv").write_text("\n".join(["item,annotator,grade", *rows]), encoding="utf-8")
    assert main(["aggregate", str(tmp_path / "v.csv"), "--quiet", "--summary", str(tmp_path / "s.md")]) == 0
    text = (tmp_path / "s.md").read_text(encoding="utf-8")
    assert "| !\\[x](http://e/x.png) |" in text
    assert "| &lt;b>\\|\\*y\\* |" in text
    assert "- 6 grades by 3 annotators on 2 items" in text
    assert capfd.readouterr().err == ""


def test_audit_writes_a_summary(tmp_path):
    rows = [(f"p{n}", f"i{k}", (k * 7 + (k % 6 == n)) % 5) for k in range(60) for n in range(3)]
    rows += [("bot", f"i{k}", (k * 7) % 5) for k in range(90)]
    lines = [f"{who},{item},{grade}" for who, item, grade in rows]
    (tmp_path / "v.csv").write_text("\n".join(["annotator,item,grade", *lines]), encoding="utf-8")
    words = ["audit", str(tmp_path / "v.csv"), "--people", "p*", "--quiet", "--out", str(tmp_path / "a.csv")]
    assert main([*words, "--summary", str(tmp_path / "s.md"), "--fail-if", "winning_rate>0.5"]) == 3
    text = (tmp_path / "s.md").read_text(encoding="utf-8")
    assert text.startswith("## May programs stand in for people?\n\n**Failed**: winning")
    assert "| bot | yes |" in text


def simulated(n: int, shift: float, seed: int = 0) -> tuple[cr.Grades, cr.Grades]:
    """Grades of one item on n queries by one judge, before and after; noise of size 1, and a shift of the mean."""
    import numpy as np

    rng = np.random.default_rng(seed)
    names = [f"q{k}" for k in range(n)]
    runs = [rng.normal(mean, 0.7, n) for mean in (0.0, shift)]
    made = [{"query": names, "item": ["x"] * n, "annotator": ["a"] * n, "grade": grades} for grades in runs]
    return cr.Grades.from_frame(made[0]), cr.Grades.from_frame(made[1])


def test_no_worse_needs_evidence_and_is_rarely_wrong():
    assert_no_worse(*simulated(400, 0.0), margin=0.3)
    with pytest.raises(AssertionError, match=r"x is worse: -0\.\d+ .* by 400 pairs, and 0\.3 is tolerated"):
        assert_no_worse(*simulated(400, -0.6), margin=0.3, undecided="pass")
    with pytest.raises(AssertionError, match=r"not shown to be no worse: .*; about \d+ pairs would decide"):
        assert_no_worse(*simulated(12, 0.0), margin=0.3)
    with pytest.raises(pytest.skip.Exception, match="not shown"):
        assert_no_worse(*simulated(12, 0.0), margin=0.3, undecided="skip")
    assert_no_worse(*simulated(12, 0.0), margin=0.3, undecided="pass")
    for wrong in ({"margin": 0}, {"margin": 1, "level": 95}, {"margin": 1, "undecided": "ignore"}):
        with pytest.raises(cr.errors.ParameterError):
            assert_no_worse(*simulated(12, 0.0), **wrong)
    with pytest.raises(cr.errors.JudgmentError, match="item 'z' was not judged"):
        assert_no_worse(*simulated(12, 0.0), margin=1, items=["x", "z"])
    # at the edge of the margin, a pass is wrong; the two-sided interval allows 2.5 %
    passed = 0
    for seed in range(200):
        try:
            assert_no_worse(*simulated(40, -0.3, seed), margin=0.3)
            passed += 1
        except AssertionError:
            pass
    assert passed <= 12  # 5 expected; more than 12 have a chance below 0.3 %


def test_ranked_needs_evidence():
    rows = [(f"w{n}", "q", "x", "y", "x" if n % 4 else "y") for n in range(40)]
    rows += [(f"w{n}", "q", "y", "z", "y" if n % 2 else "z") for n in range(40)]
    prefs = cr.Preferences.from_rows(rows)
    assert_ranked(prefs, "x", "y")
    assert_ranked(cr.aggregate(prefs, "bradley_terry"), "x", "z", level=0.9)
    with pytest.raises(AssertionError, match=r"'y' above 'z' is not shown: probability 0\.\d+, 0\.95 is asked for"):
        assert_ranked(prefs, "x", "y", "z")
    with pytest.raises(cr.errors.ParameterError, match="two or more"):
        assert_ranked(prefs, "x")
    with pytest.raises(cr.errors.ParameterError, match="bootstrap=200"):
        assert_ranked(cr.aggregate(prefs, "condorcet"), "x", "y")


def test_pytest_finds_the_fixtures_and_starting_costs_nothing(tmp_path):
    (tmp_path / "test_suite.py").write_text(
        "import sys\n"
        "BEFORE = {'polars', 'numpy', 'crowdrank.api'} & set(sys.modules)\n"
        "def test_ranked(assert_ranked, assert_no_worse):\n"
        "    assert not BEFORE\n"
        "    votes = {'item': list('xyxyxy'), 'annotator': list('aabbcc'), 'grade': [3, 1, 3, 0, 3, 1]}\n"
        "    assert_ranked(votes, 'x', 'y')\n",
        encoding="utf-8",
    )
    plugin = ["-p", "crowdrank.integrations.pytest_plugin"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_suite.py"],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
