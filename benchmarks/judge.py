"""`crowdrank judge` by replay: calls for the same order as random asking, and calls a second through the runner.

``python -m benchmarks.judge [--seeds N]``. On arena-people-and-judges each row is a query with two answers; what a
person or gpt_4 said of it is what the judge answers. Kendall's tau is to the order by all votes of that judge.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import kendalltau

import crowdrank as cr

FLOORS = {"human": 0.5, "gpt_4": 0.7}
CALLS = 3_000
CALLS_A_SECOND = 200
_WINNERS = {"model_a": "left", "model_b": "right"}


def replay(who: str, seeds: int) -> dict[str, Any]:
    """Return tau of random asking at 3,000 calls, and of the judge at its share of them."""
    table = pl.read_csv(Path(os.environ["CROWDRANK_DATA"]) / "arena-people-and-judges" / "votes.csv.gz")
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

    calls = int(FLOORS[who] * CALLS)
    at_random, chosen = [], []
    for seed in range(seeds):
        rows = np.random.default_rng(seed).permutation(len(left))[:CALLS]
        at_random.append(tau(ranked(rows.tolist())))
        run = cr.judge(answers, {who: judge}, calls=calls, sure=1, orders="random", seed=seed)
        assert run.consensus is not None
        chosen.append(tau(run.consensus))
    return {
        "judge": who, "seeds": seeds, "calls": calls, "tau": float(np.mean(chosen)), "random_calls": CALLS,
        "random_tau": float(np.mean(at_random)),
        "tau_errors": [float(np.std(values) / seeds**0.5) for values in (chosen, at_random)],
        "floor_met": bool(np.mean(chosen) >= np.mean(at_random)),
    }  # fmt: skip


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
            "floor_met": run.calls / wall >= CALLS_A_SECOND}  # fmt: skip


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=[*FLOORS, "throughput"])
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    if wanted.only in (None, "throughput"):
        print(json.dumps(throughput()))
    for who in FLOORS:
        if wanted.only in (None, who):
            print(json.dumps(replay(who, wanted.seeds)), flush=True)


if __name__ == "__main__":
    main()
