"""Counters for Prometheus and lines for logs; neither holds content, names or tokens."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from typing import Any

_BOUNDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

log = logging.getLogger("crowdrank.web")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = record.msg if isinstance(record.msg, dict) else {"event": "log", "message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            # where, not what: a message may hold what somebody sent
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = "" if trace is None else f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
            fields = {**fields, "error": record.exc_info[0].__name__, "where": where}
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return json.dumps({"at": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower(), **fields})


def log_to_stderr(*, calls: bool = True) -> None:
    """Write the log to standard error, single calls only where wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("crowdrank.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "crowdrank.web" and calls else logging.WARNING)


class Telemetry:
    """What the service counts."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self.buckets: Counter[tuple[str, float]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.events: Counter[str] = Counter()

    def call(self, route: str, status: int, seconds: float) -> None:
        """Count a call and how long it took."""
        self.calls[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        bound = next((bound for bound in _BOUNDS if seconds <= bound), float("inf"))
        self.buckets[route, bound] += 1

    def text(self, gauges: dict[str, Any]) -> str:
        """Return everything in the text format of Prometheus."""
        lines = ["# TYPE crowdrank_calls_total counter"]
        for (route, status), number in sorted(self.calls.items()):
            lines.append(f'crowdrank_calls_total{{route="{route}",status="{status}"}} {number}')
        lines.append("# TYPE crowdrank_call_seconds histogram")
        for route in sorted(self.seconds):
            below = 0
            for bound in (*_BOUNDS, float("inf")):
                below += self.buckets[route, bound]
                name = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'crowdrank_call_seconds_bucket{{route="{route}",le="{name}"}} {below}')
            lines.append(f'crowdrank_call_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'crowdrank_call_seconds_count{{route="{route}"}} {below}')
        for name, number in sorted(self.events.items()):
            lines += [f"# TYPE crowdrank_{name}_total counter", f"crowdrank_{name}_total {number}"]
        for name, value in gauges.items():
            if value is not None:
                lines += [f"# TYPE crowdrank_{name} gauge", f"crowdrank_{name} {value}"]
        return "\n".join(lines) + "\n"
