"""``crowdrank compare``, ``evaluate`` and ``diagnose``: how good methods, results and annotators are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import api, io, report
from ..errors import ParameterError
from .outputs import deliver, report_written, write_file, write_wanted
from .running import command_line
from .talk import Talk
from .votes import Asked, read_settled, read_votes

if TYPE_CHECKING:
    import polars as pl


_MAX_TESTS_SHOWN = 12


def compare(asked: Asked, talk: Talk) -> None:
    """Compare methods on the same votes.

    With --truth each method gets the measures asked for, with intervals over queries. Without, it is judged by how well
    it predicts votes that were held out from it, which shows fit to this crowd and not truth. Methods that a paired
    test does not show to be worse than the best of a column are marked with a star; --baseline tests each method
    against one of your choice.

    Examples
    --------
    # all methods that fit, judged on votes held out from them
    crowdrank compare votes.csv
    # two methods against known answers
    crowdrank compare votes.csv --methods borda,elo --truth gold.csv
    # other measures, as CSV
    crowdrank compare votes.csv --truth gold.qrels --metrics ndcg@10,tau -o t.csv
    # a picture, and how far the orders differ
    crowdrank compare votes.csv --plot methods.png --orders orders.csv
    """

    if asked.truth is None and asked.metrics is not None:
        raise ParameterError("--metrics are about a truth; give one with --truth, or leave --metrics out")
    api.check_comparison(**asked.arguments(api.check_comparison))
    judgments = read_votes(asked.votes, asked.reading, talk)
    asked.truth = None if asked.truth is None else io.read_truth(asked.truth, options=asked.reading.options())
    with talk.working("comparing methods") as progress:
        comparison = api.compare_methods(judgments, **asked.arguments(api.compare_methods), progress=progress)
    deliver(comparison.frame(), asked, talk, lambda: readable_table(comparison), bold="method")
    write_wanted(asked.tests, comparison.tests, talk)
    write_wanted(asked.orders, comparison.orders, talk)
    drawing = report.ComparisonDisplay
    write_file(asked.plot, lambda name: report.save_display(drawing.from_comparison(comparison), name), talk)
    # that held-out votes are no truth was said when they were held out
    for sentence in () if talk.quiet else comparison.sentences()[: -1 if comparison.held_out else None]:
        talk.say(sentence)


def readable_table(comparison: api.Comparison) -> pl.DataFrame:
    """Return the table as people read it: each figure with a star if it is as good as the best, or its interval."""
    import polars as pl

    figures = {(measure, method): "" for measure in comparison.names for method in comparison.methods}
    for row in comparison.scores().iter_rows(named=True):
        sure = not comparison.held_out and row["lower"] is not None
        interval = f" ({row['lower']:.3f} to {row['upper']:.3f})" if sure else ""
        figures[row["measure"], row["method"]] = f"{row['value']:.3f}{'*' if row['tied'] else ''}{interval}"
    shown = comparison.frame().select("method", *comparison.names, pl.col("^(tau_to_first|same_as_first|seconds)$"))
    texts = {name: [figures[name, method] for method in comparison.methods] for name in comparison.names}
    return shown.with_columns(pl.Series(name, column, pl.String) for name, column in texts.items())


def evaluate(asked: Asked, talk: Talk) -> None:
    """Measure results against a truth.

    The truth has query, item and grade (or rank), or query, left, right and winner; or it is a qrels file, or another
    result. The mean is over the queries of both; queries that one side lacks are counted. Several results are also
    tested against each other or a baseline, query by query (randomisation, Student's t; Holm's correction within each
    metric).

    Examples
    --------
    # a ranking against known grades
    crowdrank evaluate ranks.csv truth.csv
    # TREC runs against qrels, with paired tests between them
    crowdrank evaluate bm25.run ours.run news.qrels --metrics ndcg@10,map
    # the figures of trec_eval, to the digit
    crowdrank evaluate bm25.run news.qrels --ties trec --unjudged zero --metrics map
    # many runs against one of them
    crowdrank evaluate bm25.run a.run b.run news.qrels --baseline bm25.run
    # straight from aggregate
    crowdrank aggregate votes.csv | crowdrank evaluate - truth.csv
    # values of each query, for a plot
    crowdrank evaluate ranks.csv truth.csv --per-query queries.csv
    # is B better than A, and where: a page for the team
    crowdrank evaluate A.run B.run --truth q.qrels --slices kinds.csv --report p.html
    """

    runs = asked.files
    if asked.truth is None:
        if len(runs) < 2:
            raise ParameterError(f"{runs[0]!r} alone cannot be measured; name the result and then the truth")
        *runs, asked.truth = runs
    with talk.working("measuring"):
        evaluation = api.evaluate_runs(runs, **asked.arguments(api.evaluate_runs))
    deliver(evaluation.table, asked, talk, bold="value", cut=("run",))
    write_wanted(asked.per_query, lambda: evaluation.per_query, talk)
    write_wanted(asked.tests, lambda: evaluation.comparisons, talk)
    for sentence in api.describe_evaluation(evaluation, tests=_MAX_TESTS_SHOWN):
        talk.say(sentence)
    if len(evaluation.comparisons) > _MAX_TESTS_SHOWN:
        more = f"and {len(evaluation.comparisons) - _MAX_TESTS_SHOWN} more tests"
        talk.say(f"{more}; --tests FILE writes them all, --baseline NAME tests against one result only")
    if asked.report is not None:
        with talk.working("writing the page"):
            report.write_evaluation(evaluation, asked.report, items=asked.items, command=command_line())
        report_written(asked.report, talk)


def diagnose(asked: Asked, talk: Talk) -> None:
    """Find annotators who guess, choose by side or copy others.

    Writes a row for each annotator: position bias, ties, answers that change with the order, circular answers, each
    with a 90 % interval, and the family of annotators who err together.

    Examples
    --------
    # who chooses by side, ties always, guesses or copies
    crowdrank diagnose votes.csv
    # which judge likes long answers
    crowdrank diagnose judges.csv --across-queries --control style
    # every pair of annotators, the most dependent first
    crowdrank diagnose votes.csv --dependence pairs.csv
    # errors against known answers, so shared ones show too
    crowdrank diagnose votes.csv --truth gold.csv
    """

    control, method = asked.control, asked.method
    api.check_aggregation(method)
    if asked.item_families is not None:
        api.expect_self(control)
    if control is not None and method not in ("auto", "latent_score"):
        lacking = f"which {method} does not estimate; leave --method {method} out"
        raise ParameterError(f"--control needs coefficients of each annotator, {lacking}")
    judgments = api.expect_one_kind(read_settled(asked, talk), "diagnose")
    known = None if asked.truth is None else io.read_truth(asked.truth, options=asked.reading.options())
    with talk.working("finding the consensus"):
        consensus = None if control else api.aggregate(judgments, method, seed=asked.seed, shared="none")
    with talk.working("checking the annotators"):
        diagnostics = api.diagnose(judgments, consensus, truth=known, control=control)
    for sentence in diagnostics.messages:
        if not talk.was_said(sentence):
            talk.say(sentence)
    table = diagnostics.annotators()
    shown = table.drop([name for name in table.columns if name.endswith(("_lower", "_upper"))])
    deliver(table, asked, talk, lambda: shown, bold="annotator", cut=("annotator",))
    for name in ("dependence", "families", "groups"):
        write_wanted(getattr(asked, name), getattr(diagnostics, name), talk)
