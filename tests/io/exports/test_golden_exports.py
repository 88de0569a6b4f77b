"""Real and faithful files of every tool with answers that were counted without crowdrank."""

import json
import shlex
from collections import Counter

import pytest

import crowdrank as cr
from crowdrank.io import listen
from crowdrank.io.exports import detect, read
from crowdrank.io.read_options import ReadOptions
from crowdrank.io.truth import read_truth

NEEDS = {
    "--baseline gpt-4-0314": {"baseline_model": "gpt-4-0314"},
    "--where filter=strict-match": {"where": {"filter": "strict-match"}},
}
"""Options that entries ask for, in Python."""

PLAIN = ("plain/", "doccano/official_example.csv")


@pytest.fixture(scope="module", name="entries")
def _entries(data_folder):
    path = data_folder / "exports" / "expected.json"
    if not path.exists():
        pytest.skip("the samples of exports are not here")
    found = json.loads(path.read_text())
    return {key: entry for key, entry in found.items() if not key.startswith(PLAIN)}


def _files(data_folder, key):
    return sorted((data_folder / "exports").glob(key.split("#")[0]))


def _options(key, entry):
    answer = {"answer": key.split("#")[1]} if "#" in key else {}
    return answer | NEEDS.get(entry.get("needs", ""), {})


def _words(judgments):
    """Grades as they would be written, with how often each was given."""
    return Counter(str(value) for value in judgments.frame()["grade"].to_list())


@pytest.mark.filterwarnings("ignore:.*repeat one by the same annotator")
def test_every_entry_is_read_as_counted(data_folder, entries):
    wrong = {}
    for key, entry in entries.items():
        if entry["kind"] == "refused":
            continue
        files, options = _files(data_folder, key), _options(key, entry)
        for named in (None, detect(files[0])):
            heard = []
            listen(heard.append)
            try:
                judgments = cr.read_judgments(files, source=named, **options)
            finally:
                listen(None)
            found = _found(judgments, entry)
            expected = {name: entry[name] for name in found}
            if found != expected:
                wrong[key, named] = found, expected
            said = "\n".join(heard)
            missing = [
                f"{n} {why}" for why, n in entry.get("dropped", {}).items() if n and f"{n} {why} left out" not in said
            ]
            if missing:
                wrong[key, named, "drops"] = missing
    assert not wrong


def _found(judgments, entry):
    """What an entry speaks of, as it was read."""
    found = {"kind": judgments.kind, "queries": judgments.n_queries, "items": judgments.n_items}
    found["annotators"] = judgments.n_annotators
    if judgments.kind == "ranking":
        first = judgments.frame().filter(rank=1)["item"].to_list()
        found |= {"rankings": judgments.n_judgments, "first": dict(Counter(first)), "judgments": len(judgments.item)}
        return found
    found["judgments"] = judgments.n_judgments
    if judgments.kind == "preference":
        frame = judgments.frame()
        weight = judgments.row_weight
        heavier = {}
        numbers = range(len(frame)) if judgments.judgment is None else judgments.judgment.tolist()
        for number, winner, share in zip(numbers, frame["winner"].to_list(), weight, strict=True):
            heavier[number] = max(heavier.get(number, (0.0, "")), (share, winner))
        counted = Counter(winner for _, winner in heavier.values())
        found["winners"] = {side: counted[side] for side in ("left", "right", "tie")}
        if "strength" in entry:
            found["strength"] = {
                f"{level:g}": count for level, count in sorted(Counter(judgments.strength.tolist()).items())
            }
        if "mean_share_right" in entry:
            share = sum(w for w, winner in zip(weight, frame["winner"].to_list(), strict=True) if winner == "right")
            found["mean_share_right"] = round(float(share) / judgments.n_judgments, 6)
    elif isinstance(entry["grades"], str):
        found["grades"] = f"{len(_words(judgments))} distinct"
    else:
        found["grades"] = _counts(_words(judgments))
        entry["grades"] = _counts(entry["grades"])
    if "nominal" in entry:
        found["nominal"] = judgments.nominal
    return found


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True


def _counts(words):
    """Counts of grades, whole numbers written without a point."""
    return {f"{float(word):g}" if _is_number(word) else word: n for word, n in words.items()}


def test_gold_answers_are_the_truth_of_the_same_file(data_folder, entries):
    for key, entry in entries.items():
        if "truth" in entry and entry["kind"] != "refused":
            path = _files(data_folder, key)[0]
            imported = read(path, detect(path), ReadOptions(**_options(key, entry)))
            assert imported.truth.height == entry["truth"], key
            truth = read_truth(path, options=ReadOptions(**_options(key, entry)))
            assert truth.frame().height == entry["truth"], key


def test_refused_with_the_remedy(data_folder, entries):
    from crowdrank.wording import on_command_line

    for key, entry in entries.items():
        if entry["kind"] == "refused":
            with on_command_line(), pytest.raises(cr.errors.JudgmentError, match=entry["says"]):
                cr.read_judgments(_files(data_folder, key)[0])


def test_exactly_one_signature_for_each_sample_and_none_for_plain_tables(data_folder, entries):
    folder = data_folder / "exports"
    for path in sorted(folder.glob("*/**/*")):
        if path.is_dir() or path.suffix == ".xlsx":
            continue
        tool = path.relative_to(folder).parts[0]
        if "encoding" in path.name or path.name == "official_example.csv":
            continue
        expected = {"plain": None, "reward-bench": detect(path)}.get(tool, tool)
        assert detect(path) == expected, path.name


def test_the_question_asked_for_is_in_the_command_that_is_advised(data_folder, entries):
    from crowdrank.wording import on_command_line

    path = data_folder / "exports" / "argilla" / "v2_nested.json"
    with on_command_line(), pytest.raises(cr.errors.JudgmentError) as caught:
        cr.read_judgments(path)
    words = shlex.split(str(caught.value).split("choose one with ")[1])
    assert words[0] == "--answer"
    assert cr.read_judgments(path, answer=words[1]).n_judgments == 24
