"""``cr.log`` against the real MLflow and Weights & Biases, in a folder and without network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import crowdrank as cr


def results() -> list[object]:
    votes = {"item": ["x ü/!", "x ü/?", "z"] * 3, "annotator": list("aaabbbccc"), "grade": [3, 1, 2, 2, 1, 2, 3, 2, 2]}
    rows = [(f"w{n}", f"q{n}", "x", 3 + n % 2) for n in range(30)]
    later = [(who, query, item, grade + 1) for who, query, item, grade in rows]
    judged = [(who, "q", f"i{k}", (k * 7 + (k % 6 == n)) % 5) for k in range(60) for n, who in enumerate("abc")]
    judged += [("bot", "q", f"i{k}", (k * 7) % 5) for k in range(90)]
    return [
        cr.aggregate(votes, "mean_grade"),
        cr.changed(cr.Grades.from_rows(rows), cr.Grades.from_rows(later)),
        cr.audit(cr.Grades.from_rows(judged), people=["a", "b", "c"]),
    ]


@pytest.fixture
def page(tmp_path: Path) -> str:
    (tmp_path / "page.html").write_text("<p>ü</p>", encoding="utf-8")
    return str(tmp_path / "page.html")


@pytest.mark.filterwarnings("default")
def test_mlflow(tmp_path, page, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow: pip install 'crowdrank[mlflow]'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        for result in results():
            cr.log(result, "mlflow", name=type(result).__name__, report=page)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.params["Consensus.method"] == "mean_grade"
    assert kept.metrics["Consensus/score/x ü___"] == pytest.approx(4 / 3)
    assert kept.metrics["Consensus/score/x ü__"] == pytest.approx(8 / 3)
    assert kept.metrics["Change/better"] == 1
    assert kept.metrics["Audit/winning_rate/bot"] == 1
    files = {path.relative_to(tmp_path).name for path in (tmp_path / "runs").rglob("artifacts/*/*")}
    assert files == {"consensus.csv", "annotators.csv", "change.csv", "audit.csv", "summary.txt", "page.html"}


@pytest.mark.filterwarnings("default")
def test_wandb(tmp_path, page, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs Weights & Biases: pip install 'crowdrank[wandb]'")
    monkeypatch.chdir(tmp_path)
    with wandb.init(mode="offline", project="p", dir=str(tmp_path)) as run:
        for result in results():
            cr.log(result, "wandb", name=type(result).__name__, report=page)
        summary = dict(run.summary)
        assert run.config["Consensus"]["method"] == "mean_grade"
        assert summary["Consensus/score/z"] == 2
        assert summary["Change/better"] == 1
        assert "bot" in summary["Audit/words"]
    (table,) = tmp_path.glob("wandb/offline-run-*/files/media/table/Consensus/consensus_*.json")
    assert json.loads(table.read_text(encoding="utf-8"))["columns"] == ["item", "score", "rank", "std_error"]
    assert list(tmp_path.glob("wandb/offline-run-*/files/media/html/**/*.html"))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(cr.errors.MissingExtraError, match=r"pip install 'crowdrank\[mlflow\]'"):
        cr.log(results()[0], "mlflow")
    with pytest.raises(cr.errors.ParameterError, match="a dict is not a result"):
        cr.log({}, "mlflow")
