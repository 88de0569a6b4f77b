"""Judgments in parts: packing them, which way a fit to them goes, who runs the passes, what a sample says."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..cluster import results
from ..cluster.packed import PackedJudgments, is_packed, scan_judgments
from ..data.consensus import Consensus
from ..data.files import PathLike, available_memory, expect_room, in_words
from ..data.frames import to_frame
from ..data.judgments import Judgments, Mixed, align_judgments, expect, stack_judgments
from ..data.parted import NumberedParts, share_of_rows
from ..errors import JudgmentError, ParameterError
from ..io.judgments import LONG_BYTES, LONG_ROWS
from ..io.notices import collect_notices, say
from ..io.read_options import ReadOptions
from ..io.sources import each_place
from ..protocols import Executor, Parted, Progress, expect_arguments, expect_parameters, method_name, takes_argument
from ..registry import method_class, names
from ..wording import method_label, option
from .sentences import words_of

if TYPE_CHECKING:
    from ..cluster.executor import RunFiles
    from ..cluster.packing import HeldJudgments
    from ..cluster.resamples import PartDraws
    from ..data.features import Features
    from ..data.joint_fit import JointFit
    from ..resampling import Refitted, Replicates
    from ..review.findings import Facts


# threshold (equal): judgments, packed or not, fitted as a whole
MANY_ROWS = 5_000_000
"""Judgments from which on fits go in parts; fewer are taken as a whole, packed or not, wherever the fit runs."""

MANY_ANNOTATORS = 5_000_000
"""Annotators above which one number for each is advised in place of a confusion matrix."""


_BYTES_PER_ROW = {"grade": 9, "preference": 13, "ranking": 12}
"""Bytes of codes that a fit in memory holds of each row."""

READING_BYTES = 150
"""Bytes per row that reading and fitting a file takes at its peak: 1.3 to 2.1 GB were seen for 10 million rows."""

_HEAD_BYTES = 1 << 16


def as_packed(judgments: Any) -> PackedJudgments | None:
    """Return packed judgments, given as such or by their folder; ``None`` where it is something else."""
    if isinstance(judgments, PackedJudgments):
        return judgments
    if isinstance(judgments, str | os.PathLike) and is_packed(judgments):
        return scan_judgments(judgments)
    return None


def hold_many(
    judgments: Judgments | Mixed, method: Any = "auto", *, bootstrap: int | None = None
) -> HeldJudgments | None:
    """Return many judgments in memory in the parts that packing them would give; ``None`` where they are few.

    Several kinds, and items that nobody judged, are fitted as a whole whatever their number. Where a ``method`` only
    counts pairs, in whole numbers, the rows are not sorted: no bit depends on their order.
    """
    if isinstance(judgments, Mixed) or judgments.n_judgments < MANY_ROWS:
        return None
    if not (judgments.judged_items.all() and np.diff(judgments.items.offsets).all()):
        return None
    from ..cluster.packing import hold_judgments

    if isinstance(method, str):
        method = None if method == "auto" else method_class("aggregator", method)
    counts_pairs = "pairs" in getattr(method, "one_pass", ()) and judgments.kind == "preference"
    weight = judgments.weight
    whole_counts = weight is None or bool((weight == np.round(weight)).all())
    return hold_judgments(judgments, ordered=not (counts_pairs and whole_counts and bootstrap is None))


def whole_judgments(packed: Any) -> Judgments:
    """Return packed judgments as one set in memory."""
    if packed.keeps_ranking:
        return packed.whole
    parts = [part for part in packed.parts() if len(part)]
    return stack_judgments(align_judgments(parts)) if parts else packed.part(0)


def first_judgments(packed: PackedJudgments) -> Judgments:
    """Return the judgments of the first part that has any, by which a method is chosen and checked."""
    for part in packed.parts():
        if len(part):
            return part
    raise JudgmentError(f"{packed!r} holds no judgments; pack files that have some")


@dataclass(frozen=True)
class Passes:
    """How passes over packed judgments run, which changes no bit of what they find.

    Parameters
    ----------
    stream
        Read the judgments anew in every pass; ``None`` does so where memory is short.
    cluster
        Where they run: a Dask client, an address, or ``local:N``; ``None`` for here.
    resume
        Directory that keeps finished passes for another call.
    progress
        Called with (passes done, passes in all, what they are).
    """

    stream: bool | None = None
    cluster: Any = None
    resume: PathLike | None = None
    progress: Progress | None = None

    @property
    def asked(self) -> list[str]:
        """Names of the arguments that were given."""
        return [name for name in ("stream", "cluster", "resume") if getattr(self, name)]

    @contextmanager
    def executor(
        self, packed: PackedJudgments, files: RunFiles | None = None, *, method: Any = None, quiet: bool = False
    ) -> Iterator[Executor]:
        """Return who runs the passes, and say which way they go unless ``quiet``; a single one runs here.

        Judgments are read anew in every pass where their codes take more than a quarter of the free memory, unless
        ``stream`` says otherwise. How long passes take, their progress says from the second on.
        """
        one_pass = method is not None and results.needs_one_pass(method)
        if self.cluster is None or one_pass:
            from ..cluster.executor import InMemory, Streamed

            held, free = _BYTES_PER_ROW[packed.kind] * packed.rows, available_memory()
            streamed = one_pass or (held > free / 4 if self.stream is None else self.stream)
            way = f"{in_words(free)} free: {'streamed' if streamed else 'in memory'}"
            if one_pass:
                way = f"{packed.n_parts} parts: one pass, a part at a time"
            if self.cluster is None and not quiet:
                say(f"{in_words(held)} of codes, {way}")
            yield (Streamed if streamed else InMemory)(files, self.progress)
            return
        if self.stream:
            raise ParameterError(f"{option('stream')} and {option('cluster')} exclude each other; give one of them")
        from ..cluster.dask_executor import Dask, dask_client, describe_cluster

        with dask_client(self.cluster) as client:
            say(f"passes run on {describe_cluster(client)}")
            yield Dask(client, files, scratch=str(packed.path.parent), progress=self.progress)


def fit_packed(
    packed: PackedJudgments, aggregator: Any, given: Mapping[str, Any], passes: Passes
) -> Consensus | results.StoredConsensus:
    """Return the consensus of many packed judgments by passes over their parts; methods of one pass run here.

    Above five million items the consensus stays in Parquet beside the judgments.
    """
    expect_arguments(aggregator, given)
    expect_parameters(aggregator)
    expect_parts(packed, aggregator, given)
    files = None
    if not results.needs_one_pass(aggregator):
        files = None if passes.resume is None else _run_files(packed, aggregator, given, passes.resume)
        share = share_of_rows(packed.rows)
        if packed.n_annotators and share < 1.0:
            about = f"about {share * packed.rows:,.0f} of {packed.rows:,} {packed.kind}s"
            say(f"annotators are judged by a sample of {about}")
    if packed.n_annotators > MANY_ANNOTATORS and method_name(aggregator) == "dawid_skene":
        remedy = f"naive_bayes with {option('params', {'errors': 'even'})} learns one number for each"
        say(f"{packed.n_annotators:,} annotators have few grades each and a whole table of errors; {remedy}")
    with passes.executor(packed, files, method=aggregator) as executor:
        return _fit(executor, packed, aggregator, given, passes.progress)


def fit_joint_packed(
    packed: PackedJudgments, method: Any, features: Features, given: Mapping[str, Any], passes: Passes
) -> JointFit:
    """Return the fit of a joint method to many packed judgments by passes over their parts; see :func:`fit_packed`."""
    expect(first_judgments(packed), method)
    fit_over_blocks = method.over_blocks(packed, features=features, progress=passes.progress, **given)
    with replace(passes, progress=None).executor(packed) as executor:
        fit: JointFit = executor.run(fit_over_blocks, NumberedParts(packed))
    return fit


def resample_packed(
    packed: PackedJudgments, aggregator: Any, given: Mapping[str, Any], consensus: Consensus, plan: PartDraws,
    passes: Passes,
) -> Replicates:  # fmt: skip
    """Return the scores of resamples of packed judgments, each fitted in parts, from the consensus of all on.

    ``passes.resume`` keeps each resample in a directory of its own.
    """
    from ..cluster.resamples import ResampledJudgments, lost_and_apart, weight_of_packed_items
    from ..resampling import Refitted, scores_and_convergence, sum_up

    one_pass = results.needs_one_pass(aggregator)
    warm = {"start": consensus} if takes_argument(aggregator, "start") and not one_pass else {}
    refits: list[Refitted] = []
    with replace(passes, progress=None).executor(packed, method=aggregator, quiet=True) as started, collect_notices():
        executor: Any = started
        for number in range(plan.draws.n):
            drawn: Any = ResampledJudgments(packed, plan, number)
            if passes.resume is not None and not one_pass:
                draw = {"resample": plan.draws.resample, "seed": plan.draws.seed, "number": number}
                folder = os.path.join(passes.resume, f"resample-{number:05d}")
                executor = replace(executor, files=_run_files(packed, aggregator, given, folder, draw))
            fit = partial(_fit, executor, drawn, aggregator, {**given, **warm})
            scores, converged = scores_and_convergence(lambda fit=fit: fit().scores)  # type: ignore[misc]
            alone = (np.array([one]) for one in (*lost_and_apart(packed, plan, number), converged))
            refits.append(Refitted(scores.astype(np.float32)[None], *alone))
            if passes.progress is not None:
                passes.progress(number + 1, plan.draws.n, "resamples")
    return sum_up(refits, plan.draws, partial(weight_of_packed_items, packed), known=False)


def _fit(
    executor: Any, packed: Any, aggregator: Any, given: Mapping[str, Any], progress: Progress | None = None
) -> Any:
    """The consensus by one pass, or by as many as the method needs."""
    if results.needs_one_pass(aggregator):
        return results.fit_in_one_pass(aggregator, packed, progress=progress)
    return results.assemble(aggregator, packed, executor.run(aggregator.over_blocks(packed, **given), packed))


def expect_whole(packed: PackedJudgments, name: str, passes: Passes) -> None:
    """Refuse what needs all packed judgments at once where it is to go in parts, or where memory does not hold them."""
    for other in passes.asked:
        raise ParameterError(words_of("not_in_parts", name=option(name), other=option(other)))
    if packed.keeps_ranking:
        return
    expect_room(
        READING_BYTES * packed.rows,
        f"{option(name)} needs all {packed.rows:,} judgments at once, which",
        f"leave it out, or take {option('bootstrap', 100)} with {option('resample', 'annotator')} for errors that "
        "let judgments depend",
    )
    say(f"{option(name)} needs all judgments at once: in memory")


def expect_parts(packed: PackedJudgments, aggregator: Any, given: Mapping[str, Any]) -> None:
    """Refuse a fit that cannot go in parts, saying why and what to take instead."""
    if results.needs_one_pass(aggregator):
        results.check_one_pass(aggregator, packed)
    elif isinstance(aggregator, Parted):
        aggregator.over_blocks(packed, **given)
    else:
        methods = {name: method_class("aggregator", name) for name in names("aggregator")}
        fitting = {name: one for name, one in methods.items() if packed.kind in one.kinds}
        able = [n for n, one in fitting.items() if hasattr(one, "over_blocks") or getattr(one, "one_pass", False)]
        why = getattr(aggregator, "whole_only", "needs all judgments at once")
        method, others = method_label(aggregator), ", ".join(able)
        raise ParameterError(words_of("whole_only", method=method, why=why, rows=packed.rows, able=others))


def _run_files(
    packed: PackedJudgments,
    aggregator: Any,
    given: Mapping[str, Any],
    resume: Any,
    draw: Mapping[str, Any] | None = None,
) -> RunFiles:
    """The directory that keeps finished passes, which notes what the run is about.

    Of an argument it has a short text that differs where it does: a former consensus, known items, or ids.
    """
    from ..cluster.executor import RunFiles

    prints = {}
    for name, value in given.items():
        if isinstance(value, Consensus):
            content = value.method.encode() + value.scores.tobytes()
        elif isinstance(value, str | int | list | tuple | set | np.ndarray | pl.Series):
            content = repr(sorted(map(str, [value] if isinstance(value, str | int) else value))).encode()
        else:
            content = (value.frame() if hasattr(value, "frame") else to_frame(value)).write_csv().encode()
        prints[name] = hashlib.sha256(content).hexdigest()[:16]
    described = {
        "judgments": [part["checksum"] for part in packed.manifest["parts"]], "method": method_name(aggregator),
        "parameters": asdict(aggregator), "arguments": prints,
    }  # fmt: skip
    return RunFiles.open(resume, {**described, **(draw or {})})


def file_advice(paths: Sequence[str | os.PathLike[str]]) -> tuple[bool, str] | None:
    """Return whether long files are packed and streamed, with the memory they would take; ``None`` for short files."""
    rows = sum(_rows_of(Path(path)) for path in paths if path != "-")
    if rows < LONG_ROWS:
        return None
    needed, free = READING_BYTES * rows, available_memory()
    stream = needed > free / 4
    way = "packed and streamed" if stream else "in memory"
    return stream, f"about {rows:,.0f} rows would take {in_words(needed)}, {in_words(free)} free: {way}"


def _rows_of(path: Path) -> float:
    """Number of rows of a Parquet file, or about that of a text file; 0 where it is short or cannot be told."""
    try:
        with path.open("rb") as handle:
            head = handle.read(_HEAD_BYTES)
        if head[:4] == b"PAR1":
            return float(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        size = path.stat().st_size
        return size / (len(head) / max(head.count(b"\n"), 1)) if size >= LONG_BYTES else 0.0
    except (OSError, pl.exceptions.PolarsError):
        return 0.0


def sampled_facts(packed: PackedJudgments, consensus: Consensus | results.StoredConsensus) -> Facts:
    """Return what findings are made of where judgments are packed: habits of annotators are those in a sample."""
    from ..review.diagnosis import diagnose
    from ..review.findings import facts_of

    sample = results.sample_of(packed)
    if isinstance(consensus, results.StoredConsensus):
        consensus = consensus.of_queries(sample.items.queries.ids)
    return facts_of(replace(consensus, diagnostics=diagnose(sample, results.of_sample(consensus, sample))), None)


def facts_of_sample(packed: PackedJudgments, consensus: Consensus) -> Facts:
    """Return the facts of a report: the consensus of the items in the sample that annotators are judged by."""
    from ..review.findings import facts_of

    sample = results.sample_of(packed)
    if len(sample) < packed.rows:
        say(f"the report shows a sample: {len(sample):,} of {packed.rows:,} {packed.kind}s")
    return replace(facts_of(results.of_sample(consensus, sample), sample), sampled=len(sample) < packed.rows)


def pack(
    votes: Any,
    out: PathLike,
    *,
    options: ReadOptions | None = None,
    by: str = "query",
    append: bool = False,
    part: int | None = None,
    across_queries: bool = False,
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return the judgments of files as a folder of parts, which any number of them fits.

    Parameters
    ----------
    votes
        One or several files of one kind of judgment, or what else :func:`crowdrank.read_judgments` reads. Long tables
        in Parquet or CSV, those elsewhere and answers of databases are read some rows at a time.
    out
        Folder to write.
    options
        How the files are read; see :func:`crowdrank.read_judgments`.
    by
        ``"query"``: no query spans parts. ``"annotator"``: no annotator does, for one query with most judgments.
    append
        Add to the judgments that the folder holds.
    part
        Rows of a part, a million unless a folder that is added to says otherwise.
    across_queries
        Equal items of different queries are one item.
    progress
        Called with (parts done, parts in all, what is being done).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "votes.csv").write_text("item,annotator,grade\\nx,ann,3\\ny,ann,1\\n")
    >>> pack(folder / "votes.csv", folder / "packed")
    PackedJudgments(2 grades, 2 items, 1 annotator, 1 part)
    """
    from ..cluster.packing import pack_files

    return pack_files(
        each_place(votes), out, options or ReadOptions(), by=by, append=append, part_rows=part,
        across_queries=across_queries, progress=progress,
    )  # fmt: skip


def pack_aside(
    votes: Judgments | Sequence[PathLike],
    *,
    options: ReadOptions | None = None,
    across_queries: bool = False,
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return judgments or files packed into a temporary folder, which goes when nothing refers to them any more.

    They are packed by query, and by annotator where one query is larger than a part may be.
    """
    from ..cluster.packing import LargeQueryError, pack_judgments

    folder = tempfile.mkdtemp(prefix="crowdrank-")
    if isinstance(votes, Sequence):
        how: dict[str, Any] = {"options": options, "across_queries": across_queries, "progress": progress}
        work: Any = partial(pack, list(votes), folder, **how)
    else:
        work = partial(pack_judgments, [votes], folder, progress=progress)
    try:
        try:
            packed: PackedJudgments = work(by="query")
        except LargeQueryError:
            packed = work(by="annotator")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(packed, shutil.rmtree, folder, ignore_errors=True)
    return packed
