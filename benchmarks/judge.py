"""`crowdrank judge` by replay: calls for the same order as random asking, kills, calls a second, and lists.

``python -m benchmarks.judge [--seeds N] [--only WHAT]``. On arena-people-and-judges each row is a query with two
answers; what a person or gpt_4 said of it is what the judge answers. Kendall's tau is to the order by all votes of that
judge. Random asking takes a random pair of models each time, and a row of it; random rows, whose pairs come as often as
in all votes, stand beside it. The lists of ``sort`` are the arguments of each topic of ukpconvarg1-crowd, where a
worker's vote is the answer, and the documents of queries of MQ2008 with their features, where the better label wins
four times in five.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import kendalltau, norm

import crowdrank as cr

FLOORS = {"human": 0.5, "gpt_4": 0.7}
CALLS = 3_000
RANDOM_SEEDS = 300
CALLS_A_SECOND = 200
LISTS = ("ukpconvarg1", "mq2008")
_WINNERS = {"model_a": "left", "model_b": "right"}


def folder(name: str) -> Path:
    """Return the folder of a data set."""
    return Path(os.environ["CROWDRANK_DATA"]) / name


def replay(who: str, share: float, seeds: int) -> dict[str, Any]:
    """Return tau of random asking at 3,000 calls, and of the judge at its share of them."""
    table = pl.read_csv(folder("arena-people-and-judges") / "votes.csv.gz")
    left, right = table["model_a"].to_list(), table["model_b"].to_list()
    winner = [_WINNERS.get(said, "tie") for said in table[who].to_list()]

    def ranked(rows: Any) -> cr.Consensus:
        columns = {"left": left, "right": right, "winner": winner}
        return cr.aggregate({name: [values[row] for row in rows] for name, values in columns.items()}, "bradley_terry")

    truth = dict(ranked(range(len(left))).frame().select("item", "score").iter_rows())

    def tau(consensus: cr.Consensus) -> float:
        frame = consensus.frame()
        return float(kendalltau([truth[item] for item in frame["item"]], frame["score"]).statistic)

    answers = pl.DataFrame(
        {
            "query": [row for row in range(len(left)) for _ in range(2)],
            "item": [item for pair in zip(left, right, strict=True) for item in pair],
            "content": "answer",
        }
    )

    def judge(question: Any) -> dict[str, str]:
        row, first = question.ids[0], question.ids[1]
        if winner[row] == "tie":
            return {"winner": "tie"}
        return {"winner": "A" if (winner[row] == "left") == (first == left[row]) else "B"}

    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, pair in enumerate(zip(left, right, strict=True)):
        rows_of.setdefault(tuple(sorted(pair)), []).append(row)
    pairs = list(rows_of.values())

    def at_random(seed: int) -> list[int]:
        rng, asked = np.random.default_rng(seed), list[int]()
        rest = [rng.permutation(rows).tolist() for rows in pairs]
        while len(asked) < CALLS:
            rows = rest[rng.integers(len(rest))]
            if rows:
                asked.append(rows.pop())
        return asked

    calls = int(share * CALLS)
    runs = (cr.judge(answers, {who: judge}, calls=calls, sure=1, orders="random", seed=seed) for seed in range(seeds))
    found = {
        "tau": [tau(run.consensus) for run in runs],
        "random_tau": [tau(ranked(at_random(seed))) for seed in range(RANDOM_SEEDS)],
        "random_rows_tau": [
            tau(ranked(np.random.default_rng(seed).permutation(len(left))[:CALLS])) for seed in range(RANDOM_SEEDS)
        ],
        "best_design_tau": best_design(left, right, winner, truth, calls),
    }
    means = {name: round(float(np.mean(values)), 4) for name, values in found.items()}
    errors = {f"{name}_error": round(float(np.std(values)) / len(values) ** 0.5, 4) for name, values in found.items()}
    first = float(np.mean(found["random_tau"][:seeds]))
    return {
        "judge": who, "calls": calls, "seeds": seeds, **means, **errors, "random_tau_of_the_same_seeds": first,
        "floor_met": means["tau"] >= means["random_tau"],
    }  # fmt: skip


def best_design(
    left: list[str], right: list[str], winner: list[str], truth: dict[str, float], calls: int, seeds: int = 100
) -> list[float]:
    """Return the tau of calls spent by somebody who knows all scores, and with them which pairs to ask how often.

    One call after the other goes to the pair that lowers the expected number of wrong orders most, given the variance
    that ties leave to a vote and that all votes are the aim.
    """
    names = list(truth)
    score, code = np.array([truth[name] for name in names]), {name: place for place, name in enumerate(names)}
    rows: dict[tuple[int, int], list[int]] = {pair: [] for pair in combinations(range(len(names)), 2)}
    for row, (one, other) in enumerate(zip(left, right, strict=True)):
        rows[tuple(sorted((code[one], code[other])))].append(row)  # type: ignore[index]
    i, j = np.array(list(rows)).T
    there = np.array([len(found) for found in rows.values()], float)
    said = np.array([{"left": 1.0, "tie": 0.5, "right": 0.0}[one] for one in winner])
    lead = np.array([truth[one] - truth[other] for one, other in zip(left, right, strict=True)])
    chance = 1 / (1 + np.exp(-lead))
    noise = ((said - chance) ** 2).sum() / (chance * (1 - chance)).sum()
    gap = np.abs(score[i] - score[j])
    weight = 0.25 / np.cosh(gap / 2) ** 2 / noise

    def laplacian(values: Any) -> Any:
        matrix = np.zeros((len(names), len(names)))
        matrix[i, j] = matrix[j, i] = -values
        return matrix - np.diag(matrix.sum(axis=1))

    def spread(matrix: Any) -> Any:
        return matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]

    floor = spread(np.linalg.inv(laplacian(there * weight) + 1e-3 * np.eye(len(names))))
    covariance = np.linalg.inv(laplacian(0.01 * there * weight) + 1e-3 * np.eye(len(names)))
    asked = np.zeros(len(gap), int)
    for _ in range(calls):
        variance = spread(covariance)
        left_over = np.maximum(variance - floor, 1e-6)
        value = norm.pdf(gap / np.sqrt(left_over)) * gap / left_over**1.5
        worth = weight / (1 + weight * variance) * spread(covariance @ laplacian(value) @ covariance)
        best = int(np.where(asked < there, worth, -1.0).argmax())
        asked[best] += 1
        pull = covariance[i[best]] - covariance[j[best]]
        covariance -= np.outer(pull, pull) * weight[best] / (1 + weight[best] * variance[best])
    found: list[float] = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        chosen = [row for number, of in zip(asked, rows.values(), strict=True) for row in rng.permutation(of)[:number]]
        votes = {name: [values[row] for row in chosen] for name, values in
                 (("left", left), ("right", right), ("winner", winner))}  # fmt: skip
        frame = cr.aggregate(votes, "bradley_terry").frame()
        found.append(float(kendalltau([truth[item] for item in frame["item"]], frame["score"]).statistic))
    return found


def throughput(calls: int = 1_000) -> dict[str, Any]:
    """Return calls a second through the whole runner against a server on loopback that answers at once."""
    from .replay_server import ReplayServer

    rows = [(f"q{q}", f"m{m}", f"answer {m} to {q}") for q in range(200) for m in range(10)]
    answers = pl.DataFrame(rows, ["query", "item", "content"], orient="row")
    with ReplayServer(lambda body: json.dumps({"winner": "AB"[len(body["messages"][1]["content"]) % 2]})) as server:
        models = f"x@{server.url}"
        cr.judge(answers, models, calls=50, sure=1)
        began, used = time.perf_counter(), time.process_time()
        run = cr.judge(answers, models, calls=calls, sure=1)
        wall, cpu = time.perf_counter() - began, time.process_time() - used
    return {"calls": run.calls, "per_second": run.calls / wall, "cpu_ms_per_call": 1000 * cpu / run.calls,
            "load": os.getloadavg()[0], "floor_met": run.calls / wall >= CALLS_A_SECOND}  # fmt: skip


def kills(number: int = 40, calls: int = 2_000, parallel: int = 8) -> dict[str, Any]:
    """Return what a run that is killed with -9 at random moments, and goes on each time, asks of the server twice."""
    from crowdrank.judging.store import request_key

    from .replay_server import ReplayServer

    rows = [(f"q{q}", f"m{m}", f"answer {m} to {q}") for q in range(200) for m in range(10)]
    rng = np.random.default_rng(0)
    with (
        tempfile.TemporaryDirectory() as work,
        ReplayServer(lambda body: '{"winner": "A"}', faults=["500", "cut", "prose"], every=11, delay=0.05) as server,
    ):
        pl.DataFrame(rows, ["query", "item", "content"], orient="row").write_csv(f"{work}/answers.csv")
        command = [sys.executable, "-m", "crowdrank", "judge", "answers.csv", "--model", f"x@{server.url}", "--calls",
                   str(calls), "--sure", "1", "--parallel", str(parallel), "--quiet"]  # fmt: skip

        def kept(what: str) -> list[str]:
            cache = Path(work, "votes.jsonl.cache")
            if not cache.exists():
                return []
            # an open connection would keep the next run out
            with closing(sqlite3.connect(cache)) as connection:
                return [row[0] for row in connection.execute(what)]

        paid_again, arrived, n_before = 0, set[str](), 0
        for turn in range(number + 1):
            process = subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE)
            if turn < number:
                # some requests later, or at any moment from its start
                least, until = n_before + int(rng.integers(1, 80)), time.monotonic() + 60
                if turn % 4 == 0:
                    least, until = 10**9, time.monotonic() + rng.uniform(0, 6)
                while process.poll() is None and server.n_requests < least and time.monotonic() < until:
                    time.sleep(rng.uniform(0.001, 0.02))
                process.send_signal(signal.SIGKILL)
            said = process.communicate()[1].decode()
            assert process.returncode in ((0,) if turn == number else (0, -signal.SIGKILL)), said
            time.sleep(0.1)
            asked = [json.loads(prompt) for prompt in server.prompts[n_before:]]
            n_before = len(server.prompts)
            settings = {"max_tokens": 256, "temperature": 0.0, "kind": "preference"}
            keys = [request_key(f"x@{server.url}", settings, messages) for messages in asked]
            paid_again += sum(key in arrived for key in keys)
            try:
                arrived = set(kept("SELECT key FROM reply"))
            except sqlite3.OperationalError:
                arrived = set()
        n_lost = kept("SELECT COUNT(*) FROM under_way")[0]
        votes = [json.loads(line) for line in Path(work, "votes.jsonl").read_text().splitlines()]
        cases = {(vote["query"], vote["left"], vote["right"]) for vote in votes}
    return {
        "kills": number, "replies": len(arrived), "arrived_and_asked_again": paid_again, "lost_under_way": n_lost,
        "most_lost": number * parallel, "votes": len(votes), "votes_twice": len(votes) - len(cases),
        "replies_and_lost": len(arrived) + int(n_lost), "calls": calls,
        "floor_met": paid_again == 0 and len(arrived) + int(n_lost) <= calls,
    }  # fmt: skip


def lists_of(name: str) -> Iterator[tuple[cr.Features, Any, Callable[[int, int, Any], float]]]:
    """Yield lists to sort: features of the things, their gains, and who wins (1, 0.5 or 0) when two are compared."""
    if name == "ukpconvarg1":
        texts = pl.read_csv(folder("ukpconvarg1-crowd") / "arguments.csv")
        votes = pl.read_csv(folder("ukpconvarg1-crowd") / "votes.csv.gz")
        gold = pl.read_csv(folder("ukpconvarg1-crowd") / "gold_ranking.csv")
        for (topic,), of_topic in texts.group_by("topic", maintain_order=True):
            ranks = dict(gold.filter(pl.col("topic") == topic).select("arg", "score").iter_rows())
            of_topic = of_topic.filter(pl.col("arg").is_in(list(ranks)))
            place = {arg: number for number, arg in enumerate(of_topic["arg"])}
            said: dict[tuple[int, int], list[float]] = {}
            rows = votes.filter(pl.col("topic") == topic).select("arg1", "arg2", "label").iter_rows()
            for one, other, label in rows:
                if one in place and other in place:
                    share = {"a1": 1.0, "equal": 0.5, "a2": 0.0}[label]
                    said.setdefault((place[one], place[other]), []).append(share)
                    said.setdefault((place[other], place[one]), []).append(1 - share)
            worth = np.array([-ranks[arg] for arg in place])
            gains = 2.0 ** (np.argsort(np.argsort(worth)) * 5 // len(worth)) - 1
            table = of_topic.select(item=pl.Series([str(number) for number in range(len(place))]), text="text")
            things = cr.features.texts(table)

            def vote(i: int, j: int, rng: Any, said: Any = said) -> float:
                return float(rng.choice(said[i, j])) if (i, j) in said else 0.5

            yield things, gains, vote
        return
    rows_of: dict[str, list[list[float]]] = {}
    for part in range(1, 6):
        with gzip.open(folder("letor-mq2008") / f"S{part}.txt.gz", "rt") as file:
            for line in file:
                words = line.split("#")[0].split()
                values = [float(words[0]), *(float(word.split(":")[1]) for word in words[2:])]
                rows_of.setdefault(words[1], []).append(values)
    for found in rows_of.values():
        rows_ = np.array(found)
        labels, matrix = rows_[:, 0], rows_[:, 1:]
        if len(labels) < 100 or not (labels > 0).any():
            continue
        items = pl.DataFrame({"item": [str(number) for number in range(len(labels))]})
        columns = [pl.Series(f"f{column}", matrix[:, column]) for column in range(matrix.shape[1])]

        def better(i: int, j: int, rng: Any, labels: Any = labels) -> float:
            return 0.5 if labels[i] == labels[j] else float((labels[i] > labels[j]) == (rng.random() < 0.8))

        yield cr.Features.from_frame(items.with_columns(columns)), 2.0**labels - 1, better


def sorting(name: str, per_thing: Sequence[float] = (1, 2, 4)) -> dict[str, Any]:
    """Return nDCG@10 by calls for each thing of ``sort``, of a Swiss tournament, and of random pairs."""
    found: dict[str, dict[str, list[float]]] = {}
    for number, (things, gains, verdict) in enumerate(lists_of(name)):
        n = len(gains)
        table = {"item": [str(place) for place in range(n)], "content": ["text"] * n}
        best = np.sort(gains)[::-1][:10] @ (1 / np.log2(np.arange(2, 12)))

        def ndcg(scores: Any, gains: Any = gains, best: Any = best) -> float:
            first = gains[np.argsort(-scores, kind="stable")[:10]]
            return float(first @ (1 / np.log2(np.arange(2, 12))) / best)

        def score(pairs: Any, rng: Any, n: int = n, verdict: Any = verdict) -> Any:
            words = {1.0: "left", 0.5: "tie", 0.0: "right"}
            votes = {"left": [str(i) for i, _ in pairs], "right": [str(j) for _, j in pairs],
                     "winner": [words[verdict(i, j, rng)] for i, j in pairs]}  # fmt: skip
            got = dict(cr.aggregate(votes, "bradley_terry").frame().select("item", "score").iter_rows())
            return np.array([got.get(str(place), 0.0) for place in range(n)])

        for each in per_thing:
            calls, rng = int(each * n), np.random.default_rng(number)

            def judge(question: Any, rng: Any = rng, verdict: Any = verdict) -> dict[str, str]:
                share = verdict(int(question.ids[1]), int(question.ids[2]), rng)
                return {"winner": {1.0: "A", 0.5: "tie", 0.0: "B"}[share]}

            got = {}
            run = cr.judge(table, judge, features=things, goal="top-10", orders="random", calls=calls, sure=1)
            assert run.consensus is not None
            order = dict(run.consensus.frame().select("item", "score").iter_rows())
            got["sort"] = ndcg(np.array([order[item] for item in table["item"]]))
            pairs = [tuple(rng.choice(n, 2, replace=False)) for _ in range(calls)]
            got["random"] = ndcg(score(pairs, rng))
            points, asked = rng.random(n) * 0.1, list[Any]()
            while len(asked) < calls:
                standing = np.argsort(-points)
                for i, j in zip(standing[::2], standing[1::2], strict=False):
                    share = verdict(int(i), int(j), rng)
                    points[i], points[j] = points[i] + share, points[j] + 1 - share
                    asked.append((i, j))
            got["swiss"] = ndcg(points)
            for way, value in got.items():
                found.setdefault(f"{each:g} calls for each thing", {}).setdefault(way, []).append(value)
    result: dict[str, Any] = {"list": name, "lists": number + 1}
    for calls_of, ways in found.items():
        lead = np.subtract(ways["sort"], ways["swiss"])
        means = {way: round(float(np.mean(values)), 3) for way, values in ways.items()}
        result[calls_of] = {**means, "error_of_lead": round(float(np.std(lead)) / len(lead) ** 0.5, 3)}
    return result


def many(number: int = 10_000, calls: int = 1_000) -> dict[str, Any]:
    """Return how long ``sort`` takes over many texts, and how good the first ten are.

    The texts are sentences of arguments, put together at random. What is asked for is their wording, so that features
    can tell of it: the share of long words, which the judge sees with an error.
    """
    texts = pl.read_csv(folder("ukpconvarg1-crowd") / "arguments.csv")["text"].to_list()
    sentences = [part.strip() for text in texts for part in str(text).split(".") if len(part.split()) > 4]
    rng = np.random.default_rng(0)
    things = [". ".join(rng.choice(sentences, 3)) for _ in range(number)]

    def worth(text: str) -> float:
        words = text.split()
        return sum(len(word) > 7 for word in words) / len(words)

    def judge(question: Any) -> dict[str, str]:
        first, second = (worth(text) for text in question.texts)
        return {"winner": "A" if rng.random() < 1 / (1 + np.exp(40 * (second - first))) else "B"}

    began = time.perf_counter()
    run = cr.sort(things, "Which has more long words?", judge, calls=calls, sure=1)
    seconds = time.perf_counter() - began
    assert run.consensus is not None
    worths = np.array([worth(text) for text in things])
    first = [int(item) - 1 for item in run.consensus.order()[:10]]
    asked = {row[side] for row in run.rows for side in ("left", "right")}
    return {
        "things": number, "calls": run.calls, "seconds": seconds, "asked_about": len(asked),
        "mean_place_of_first_ten": float(np.mean([(worths > worths[place]).sum() + 1 for place in first])),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    what: dict[str, Callable[[int], dict[str, Any]]] = {
        "throughput": lambda _: throughput(), "kills": lambda _: kills(), "many": lambda _: many(),
        **{name: lambda _, name=name: sorting(name) for name in LISTS},  # type: ignore[misc]
        **{who: lambda seeds, who=who: replay(who, FLOORS[who], seeds) for who in FLOORS},  # type: ignore[misc]
    }  # fmt: skip
    parser.add_argument("--only", choices=what)
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, measure in what.items():
        if wanted.only in (None, name):
            print(json.dumps(measure(wanted.seeds)), flush=True)


if __name__ == "__main__":
    main()
