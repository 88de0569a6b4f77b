"""Every command of the guides that shows no output runs as it is pasted, on files of the names it gives."""

import shlex

import numpy as np
import polars as pl
import pytest
from tests.test_docs import ROOT, blocks

from crowdrank.cli import main, talk

PAGES = ("llm-judges", "production", "which-labels", "report", "diagnostics", "raw-items", "measures",
         "for-models", "for-search", "for-crowds", "for-papers")  # fmt: skip
MODELS = ("gpt-4o", "oak-7b", "elm-70b", "ash-2", "yew-mini", "fir-9b")
ELSEWHERE = {"sites/", "new-sites/", "measures.csv", "clips/", "audit"}
"""Pages, recordings and audits have tests of their own."""


def answers(rng, length):
    return " ".join(rng.choice(["the", "**river**", "is", "- long", "# and", "wide", "today"], length))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Votes of people and programs on six models over 40 prompts, grades, features, runs and truth."""
    place = tmp_path_factory.mktemp("documented")
    rng = np.random.default_rng(5)
    worth = dict(zip(MODELS, np.linspace(1.5, -1.5, len(MODELS)), strict=True))
    people, programs = ("ann", "bob", "human-1", "human-2"), ("judge-a", "judge-b", "judge-c")
    rows = []
    for prompt in range(40):
        for who in (*people, *programs):
            left, right = rng.choice(MODELS, 2, replace=False)
            lengths = {"left": int(rng.integers(5, 60)), "right": int(rng.integers(5, 60))}
            gap = worth[left] - worth[right] + 0.01 * (lengths["left"] - lengths["right"]) + rng.logistic()
            row = {"query": f"p{prompt}", "left": left, "right": right, "annotator": who}
            row |= {"winner": "left" if gap > 0 else "right", "category": ("code", "prose")[prompt % 2]}
            row |= {"group": "human" if who in people else "oak"}
            for side, length in lengths.items():
                row |= {f"{side}_text": answers(rng, length), f"length_{side}": length}
                row |= {f"{kind}_{side}": int(rng.integers(0, 4)) for kind in ("headers", "bold", "lists")}
            rows.append(row)
            if who in programs:
                turned = {"left": right, "right": left, "winner": "right" if gap > 0 else "left"}
                swapped = {f"length_{a}": row[f"length_{b}"] for a, b in (("left", "right"), ("right", "left"))}
                rows.append(
                    {**row, **turned, **swapped, "left_text": row["right_text"], "right_text": row["left_text"]}
                )
    votes = pl.DataFrame(rows)
    votes.write_csv(place / "judged.csv")
    votes.filter(pl.col("group") == "human").write_csv(place / "people.csv")
    votes.filter(pl.col("group") != "human").write_csv(place / "judges.csv")
    families = [name.split("-")[0] for name in MODELS]
    pl.DataFrame({"item": MODELS, "family": families}).write_csv(place / "models.csv")
    pl.DataFrame({"item": MODELS, "text": [f"Model {name}" for name in MODELS]}).write_csv(place / "items.csv")
    (place / "people.txt").write_text("ann\nbob\n")
    asked = {"role": "user", "content": "hello"}
    lengths = rng.integers(4, 40, votes.height * 2)
    spoken = [[asked, {"role": "assistant", "content": answers(rng, length)}] for length in lengths]
    talks = {"conversation_a": pl.Series(spoken[::2]), "conversation_b": pl.Series(spoken[1::2])}
    sides = pl.col("winner").replace({"left": "model_a", "right": "model_b"})
    arena = votes.select(model_a="left", model_b="right", winner=sides, judge="annotator", question_id="query")
    arena.with_columns(**talks).write_parquet(place / "arena.parquet")
    write_search(place, rng)
    return place


def write_search(place, rng):
    """Grades of documents of queries, with features, texts, runs and truth."""
    queries, docs = [f"q{n}" for n in range(8)], [f"d{n}" for n in range(10)]
    matrix = rng.normal(size=(80, 3))
    truth = np.clip(np.round(1.5 + matrix[:, 0] + 0.3 * rng.normal(size=80)), 0, 3).astype(int)
    ids = pl.DataFrame({"query": np.repeat(queries, 10), "item": docs * 8})
    graded = []
    for who in ("ann", "bob", "cid", "dee", "eve"):
        said = np.clip(truth + rng.choice([-1, 0, 0, 0, 1], 80), 0, 3)
        graded.append(ids.with_columns(annotator=pl.lit(who), grade=said))
    grades = pl.concat(graded)
    grades.write_csv(place / "graded.csv")
    half = pl.col("grade").alias("fluency"), (3 - pl.col("grade")).alias("relevance")
    grades.select("query", "item", "annotator", *half).write_csv(place / "grades.csv")
    ids.with_columns(grade=truth).write_csv(place / "truth.csv")
    ids.with_columns(grade=truth).write_csv(place / "gold.csv")
    for name in ("all.csv", "all-items.csv"):
        ids.write_csv(place / name)
    pl.DataFrame({"query": queries, "text": [f"words {q}" for q in queries]}).write_csv(place / "words.csv")
    for name in ("train.txt", "test.txt"):
        lines = []
        for n, row in enumerate(matrix):
            values = " ".join(f"{k}:{value:.4f}" for k, value in enumerate(row, 1))
            lines.append(f"{truth[n]} qid:q{n // 10} {values} # {docs[n % 10]}")
        (place / name).write_text("\n".join(lines) + "\n")
    for name in ("news.qrels", "test.qrels"):
        (place / name).write_text("".join(f"{q} 0 {d} {g}\n" for (q, d), g in zip(ids.rows(), truth, strict=True)))
    for name in ("bm25.run", "ours.run"):
        noisy = matrix[:, 0] + rng.normal(size=80)
        run = [f"{q} Q0 {d} 1 {s:.4f} {name[:-4]}\n" for (q, d), s in zip(ids.rows(), noisy, strict=True)]
        (place / name).write_text("".join(run))
    texts = [{"item": d, "query": q, "text": answers(rng, 12)} for q, d in ids.rows()]
    pl.DataFrame(texts).write_csv(place / "answers.csv")
    pl.DataFrame(texts).write_csv(place / "new.csv")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES)
def test_documented_commands_run(page, folder, monkeypatch, capsys):
    """Those of a page one after the other, as later ones read what earlier ones wrote."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(talk, "PATIENCE", 600.0)
    lines = [line for block in blocks(ROOT / "docs" / f"{page}.md", "sh") for line in block.splitlines()]
    ran = 0
    for words in (shlex.split(line, comments=True)[1:] for line in lines if line.startswith("crowdrank ")):
        if ELSEWHERE & set(words):
            continue
        by_grades = page in ("production", "raw-items", "for-search") or "if-good-3" in words
        (folder / "votes.csv").write_bytes((folder / ("graded.csv" if by_grades else "judged.csv")).read_bytes())
        if page == "diagnostics":
            worth = pl.DataFrame({"item": MODELS, "grade": range(6, 0, -1)})
            pl.DataFrame({"query": [f"p{n}" for n in range(40)]}).join(worth, how="cross").write_csv(
                folder / "gold.csv"
            )
        if page == "which-labels":
            people = pl.read_csv(folder / "votes.csv").select(pl.col("annotator").unique(maintain_order=True))
            people.with_columns(capacity=500).write_csv(folder / "people.csv")
        code = main(words)
        talked = capsys.readouterr().err
        assert code in ((0, 3) if "--fail-if" in words else (0,)), f"crowdrank {shlex.join(words)}: {talked}"
        ran += 1
    assert ran
