"""``crowdrank features``, and raw items where a model ranks."""

import pytest

ROWS = [(f"t{number}", "Tea and milk. " * (1 + number)) for number in range(8)]


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("item,text\n" + "".join(f'{item},"{text}"\n' for item, text in ROWS))
    return path


def test_from_texts_to_a_ranking(run, answers, tmp_path):
    made = run("features answers.csv --of text --words 0 --out features.parquet")
    assert made.code == 0, made.err
    assert (tmp_path / "features.extractor").is_file()
    (tmp_path / "votes.csv").write_text("item,grade\n" + "".join(f"t{number},{number}\n" for number in range(6)))
    assert run("train votes.csv features.parquet --ranker rank_svm --out model").code == 0
    ranked = run("rank model answers.csv --of text")
    assert ranked.out.splitlines()[1].startswith("t7,")
    assert run("rank model answers.csv").out == ranked.out == run("rank model features.parquet").out
    assert run("rank model -", stdin=answers.read_bytes()).out == ranked.out
    like = run("features answers.csv --like model")
    assert like.out == run("features answers.csv --of text --words 0").out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("features answers.csv", "--of text, page or speech"),
        ("features answers.csv --of sound", "--of sound is not known"),
        ("features answers.csv --of text --screen yes", "--screen goes with --of page"),
        ("features answers.csv --of text --measures m.csv", "--measures goes with --of page"),
        ("features none.csv --of text", "there is no file none.csv"),
        ("features answers.csv --of text --jobs 0", "--jobs 0 is not a number of processes"),
        ("features answers.csv --of text --out answers.csv", "is an input and would be overwritten"),
        ("features answers.csv --of speech", "no column file"),
    ],
)
def test_mistakes_end_in_one_line(run, answers, command, said):
    ran = run(command)
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert said in ran.err


def test_models_of_other_kinds_are_refused(run, answers, tmp_path):
    run("features answers.csv --of text --words 0 --out f.csv")
    ran = run("features answers.csv --of speech --like f.csv")
    assert ran.code == 2
    assert "'text' and --of speech was asked for" in ran.err


def test_ranking_raw_items_takes_what_making_features_takes(run, answers, tmp_path):
    run("features answers.csv --of text --words 0 --out features.parquet")
    (tmp_path / "votes.csv").write_text("item,grade\n" + "".join(f"t{number},{number}\n" for number in range(6)))
    run("train votes.csv features.parquet --ranker rank_svm --out model")
    folder = tmp_path / "new"
    folder.mkdir()
    for item, text in ROWS[:3]:
        (folder / f"{item}.txt").write_text(text)
    (folder / "bad.txt").write_bytes(b"caf\xe9")
    refused = run("rank model new")
    assert refused.code == 2
    assert "leave it out with --on-error skip" in refused.err
    skipped = run("rank model new --on-error skip --jobs 2 --cache kept")
    assert skipped.code == 0, skipped.err
    assert [line.split(",")[0] for line in skipped.out.splitlines()] == ["item", "t2.txt", "t1.txt", "t0.txt"]
    assert "bad.txt (not utf-8" in skipped.err
    assert any((tmp_path / "kept").rglob("*.npy"))
    assert len(run("rank model new --encoding latin-1").out.splitlines()) == 5
