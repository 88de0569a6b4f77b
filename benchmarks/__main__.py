"""Run workloads and say what they took: ``python -m benchmarks`` from the project's root."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from . import golden, report
from .processes import absent_peers, measure
from .table import WORKLOADS, chosen
from .workload import Workload


def main(arguments: list[str] | None = None) -> int:
    """Return 0, or 1 where a side failed or, at full size, a floor was not reached or a figure is worse than before."""
    asked = _parser().parse_args(arguments)
    if asked.golden:
        for path in golden.remake(asked.names):
            print(f"wrote {path}")
        return 0
    workloads = chosen(asked.names)
    about, before = report.machine(), report.recorded(asked.against)
    print(report.sentence(about), file=sys.stderr)
    outcomes = []
    for workload in workloads:
        outcomes.append(replace(_outcome(workload, asked.size, asked.peer_python), before=before))
        print(report.as_text(outcomes[-1]), end="\n\n", flush=True)
        if asked.out is not None:
            report.write(asked.out, outcomes, about)
    return int(not all(outcome.well for outcome in outcomes))


def _outcome(workload: Workload, size: str, peer_python: str | None) -> report.Outcome:
    """Measure a workload unless what it needs is missing."""
    missing = workload.missing()
    if missing:
        return report.Outcome(workload, size, {}, missing)
    print(f"{workload.name} ...", file=sys.stderr, flush=True)
    absent = absent_peers(workload, peer_python)
    return report.Outcome(workload, size, measure(workload, size, peer_python), absent=absent)


def _parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time crowdrank and its peers side by side, each in its own process, best of three.",
        epilog=f"Workloads: {', '.join(WORKLOADS)}. Golden files: {', '.join(golden.MAKERS)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, or golden files; all unless named")
    parser.add_argument(
        "--size", choices=("tiny", "small", "full"), default="full", help="the floors are about full, the default"
    )
    parser.add_argument(
        "--peer-python", metavar="PYTHON", help="interpreter with the peers that pin other versions, such as arena-rank"
    )
    parser.add_argument("--golden", action="store_true", help="remake the peers' answers in tests/golden instead")
    beside = "an earlier run's --out, such as benchmarks/recorded.json; a figure worse by a quarter is called SLOWER"
    parser.add_argument("--against", type=Path, metavar="FILE.json", help=beside)
    parser.add_argument("--out", type=_result_file, metavar="FILE", help="also write .json or .md")
    return parser


def _result_file(text: str) -> Path:
    """A path whose ending tells the format."""
    path = Path(text)
    if path.suffix not in (".json", ".md"):
        raise argparse.ArgumentTypeError(f"{text!r} ends neither in .json nor in .md")
    return path


if __name__ == "__main__":
    raise SystemExit(main())
