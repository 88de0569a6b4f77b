"""Every option of every command, once: how it is typed, what Python calls it, what it means and how it is read.

The pages below are those of ``crowdrank COMMAND --help``. The signatures that typer wants, the arguments of readers,
the way messages name an option (:func:`crowdrank.wording.option`) and the documentation are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument if no dash begins it.

    Parameters
    ----------
    typed
        How it is typed, as the help shows it: its flags and what stands behind them, as in ``--method -m NAME``.
    help
        What it means.
    python
        What Python calls it, if that is not the name of the flag.
    type, default
        Of its value; ``...`` where it has to be given.
    many
        Whether it may be repeated.
    least, most
        Bounds of a number.
    reads
        How the text becomes a value: ``list`` (commas between), ``pairs`` (``key=value``, with an ``example``),
        ``codes`` (a list of pairs), ``pair`` (one of them), ``columns`` or ``numbers``.
    value
        What Python is given where an option without a value is typed.
    complete
        What a shell completes: families of methods, or names themselves; a comma behind it for a list of them.
    panel
        Heading that the help has it under.
    """

    typed: str
    help: str
    python: str = ""
    type: type = str
    default: Any = None
    many: bool = False
    least: float | None = None
    most: float | None = None
    reads: str = ""
    example: str = ""
    value: Any = True
    complete: str = ""
    panel: str = ""

    @property
    def flags(self) -> list[str]:
        """The names by which it is typed; none of an argument."""
        return [word for word in self.typed.split() if word.startswith("-")]

    @property
    def metavar(self) -> str:
        """What stands for its value in the help; nothing where there is none."""
        return " ".join(word for word in self.typed.split() if not word.startswith("-"))

    @property
    def range(self) -> str:
        """What a number may be, in words."""
        number = "a whole number" if self.type is int else "a number"
        if self.least is None or self.most is None:
            return number if self.least is None else f"{number} of at least {self.least:,}"
        return f"{number} from {self.least:,} to {self.most:,}"

    @property
    def name(self) -> str:
        """What Python calls it."""
        first = self.typed.split()[0].partition("/")[0]
        return self.python or first.strip("-[].").lower().replace("-", "_")


def _page(*rows: Option | str) -> tuple[Option, ...]:
    """The options of a help page; texts among them are headings of those that follow and have none of their own."""
    options: list[Option] = []
    heading = ""
    for row in rows:
        if isinstance(row, str):
            heading = row
        else:
            options.append(row if row.panel or not heading else replace(row, panel=heading))
    return tuple(options)


# fmt: off
_WHO = "ids, 'human-*', group=human or a file of ids, with commas between them"
READING = _page(
    "Reading the votes",
    Option("--across-queries", "Take equal items of different queries as one (models over prompts)."),
    Option("--as-preferences", "Turn grades or rankings into preferences first."),
    Option("--as-rankings", "Turn grades or preferences into rankings first."),
    Option("--kind KIND", "grade, preference or ranking; by default found from the columns."),
    Option("--column WORD=NAME",
           "Which column holds what, such as annotator=Who; repeatable.", python="columns", many=True, reads="columns"),
    Option("--levels A,B,C", "Levels of the scale from worst to best, such as Bad,Fair,Good.", reads="list"),
    Option("--nominal", "The grades are classes without an order."),
    Option("--winner-codes 1=left,...", "What numeric winners mean: 1=left,2=right,0=tie.", reads="codes"),
    Option("--duplicates RULE", "keep, first, last or error, where an annotator answers twice."),
    Option("--drop-invalid",
           "Leave rows without a usable answer out, and say how many.", python="invalid", value="drop"),
    Option("--items FILE", "All items (query, item), so that unjudged ones get a place."),
    Option("--from NAME", "Tool that wrote the file, by default recognised; or table, for none.", python="source"),
    Option("--answer NAME", "Which question, metric or answer column, where there are several."),
    Option("--where COL=VALUE",
           "Keep only these rows; COL may be a path: doc.subject. Repeatable.",
           many=True, reads="pairs", example="criterion=helpful"),
    Option("--keep A,B", "Statuses to keep in place of the importer's own choice.", reads="list"),
    Option("--wide A,B,C", "One column per annotator or per item, by names or as 'Q1_*'.", reads="list"),
    Option("--strength COL=left",
           "Signed column, or difference (score_a-score_b, rating-4): positive means left (right) is better.",
           reads="pair"),
    Option("--strength-weights 1,3", "Weights of preferences of strength 1, 2, ...", reads="numbers"),
    Option("--small-is-good/--large-is-good", "Whether small or large numbers are better.", default=None),
    Option("--swapped COL[=VALUE]",
           "Rows in which the right item was shown first and winners are in the order shown; none for no rows."),
    Option("--missing A,B", "Answers that mean none, such as -1,N/A; left out.", reads="list"),
    Option("--skip-rows N", "Lines above the header of a CSV or Excel file.", type=int),
    Option("--no-annotators", "The file names no annotators, on purpose."),
    Option("--pseudonyms", "Call annotators A1, A2, ... in what is written."),
    Option("--judge-version COLUMN",
           "Version behind an annotator's name; each version is an annotator of its own."),
    Option("--header A,B,C", "Column names of a file without a header line.", reads="list"),
    Option("--sheet NAME", "Sheet of an Excel file; else the first."),
    Option("--encoding NAME", "Text encoding, such as latin-1; found by default."),
    Option("--baseline-model MODEL", "Arena-Hard's other model, in old files."),
    Option("--agreeing", "MT-Bench pairs as FastChat counts them: two different winners are a tie."),
    Option("--without WHO", f"Leave these annotators out: {_WHO}. Repeatable.", many=True),
)

_VOTES = Option("VOTES...", "Files of judgments, - for standard input.", many=True, default=...)
_TRUSTED = Option("--trusted WHO", f"Annotators known to be good, for methods that use them: {_WHO}.")
_SEED = Option("--seed N", "Seed of the random draws.", type=int, default=0, least=0)
_METRICS = Option("--metrics LIST", "Such as ndcg@10,map,rbp@0.95,tau; by default what fits the truth.", reads="list")
_UNJUDGED = Option("--unjudged drop|zero", "Leave items without truth out, or count them as grade 0.", default="drop")
_ALL_QUERIES = Option("--all-queries",
                      "Count queries of the truth that are not ranked as 0, as trec_eval -c does; by default the mean "
                      "is over the queries of both.")
_FOLDER = Option("--folder FOLDER", "Folder of the data sets, if not $CROWDRANK_DATA.")
_STREAM = Option("--stream/--no-stream",
                 "Read packed judgments anew in every pass; by default above a quarter of the free memory.",
                 default=None)
_OUT, _DIGITS, _SAFE_CSV, _FORMAT, _QUIET = _page(
    "Output",
    Option("--out -o FILE", "Write there and not to standard output; may end in .gz."),
    Option("--digits N",
           "Significant digits in CSV, TSV and tables: 6 by default, 17 are exact, as JSON and Parquet always are.",
           type=int, least=1),
    Option("--safe-csv", "In CSV, put ' before text that a spreadsheet would take for a formula."),
    Option("--format FORMAT", "csv, tsv, json, jsonl, parquet, xlsx, qrels, run, markdown, latex; else by FILE."),
    Option("--quiet -q", "Print only warnings and errors on standard error."),
)
_SUMMARY = Option("--summary FILE.md", "Write what was found there in short, as Markdown for a pipeline's page.")
_TABLE = (_OUT, _DIGITS, _SAFE_CSV, _FORMAT)

_MODELS = (
    Option("--model NAME@URL",
           "A judge: any server that speaks chat completions, such as x@http://127.0.0.1:8000/v1; repeatable.",
           python="models", many=True),
)
_LIMITS = (
    Option("--sure P", "Stop when the goal is as sure as that.", type=float, default=0.95),
    Option("--calls N", "Answered requests at most.", type=int, least=1),
    Option("--budget X", "Money at most; needs the price of every model.", type=float),
    Option("--price NAME=IN,OUT", "Money for a million tokens in and out; repeatable.",
           many=True, reads="pairs", example="gpt-x=0.5,1.5"),
)
_CALLING = (
    Option("--key-from VAR",
           "Environment variable of the key, OPENAI_API_KEY by default; or NAME=VAR for each model.", many=True),
    Option("--parallel N", "Requests under way at most.", type=int, default=16, least=1),
    Option("--column WORD=NAME",
           "Which column holds what, such as content=answer; repeatable.",
           python="columns", many=True, reads="columns"),
    _SEED,
)
_JUDGED = (
    Option("--out -o FILE", "Judgments, a JSON object per line; a stopped run goes on from there.",
           default="votes.jsonl"),
    Option("--cache FILE", "Replies that arrived; by default beside --out."),
    Option("--no-cache", "Keep no replies."),
    Option("--board FILE", "Write the leaderboard there and not to standard output."),
)
COMMANDS: dict[str, tuple[Option, ...]] = {
    "aggregate": _page(
        _VOTES,
        Option("--method -m NAME", "See crowdrank methods.", default="auto", complete="auto aggregator"),
        Option("--set KEY=VALUE",
               "A parameter of the method; repeatable.", python="params", many=True, reads="pairs", example="alpha=2"),
        Option("--want order|grade",
               "What --method auto should give: an order, or one grade per item.", default="order"),
        Option("--bootstrap N", "Intervals of any method from N resamples of the votes, say 200.", type=int),
        Option("--resample UNIT",
               "What the bootstrap resamples: judgment, annotator, query or group.", default="judgment"),
        Option("--robust annotator|query|none",
               "Standard errors that allow for correlated judgments of one annotator or query."),
        Option("--shared estimated|none",
               "Widen standard errors by the errors that annotators share; by default where five or more overlap."),
        _TRUSTED,
        Option("--known FILE", "Items whose truth is known: query, item and grade or score."),
        Option("--control A,B,C",
               "Covariates of preferences to control for, such as length (columns length_left, length_right), style "
               "(counted in left_text, right_text) or self (with --families)."),
        Option("--families --item-families FILE",
               "Table of item and family, for --control self; the votes need a group column."),
        Option("--swaps keep|tie|drop",
               "What to do with answers that change when left and right are swapped.", default="keep"),
        Option("--reweight pairs", "Give every pair the same weight, however often it was asked."),
        Option("--by COLUMN", "One ranking per value of this column, shrunk towards the ranking of all votes."),
        Option("--criteria A,B,C",
               "Columns of grades or winners, one per criterion; ranks by each and overall, the mean or by weights: "
               "content=.5,style=.3.", reads="list"),
        Option("--several-labels COLUMN|A,B,C",
               "Items have several labels: the column that holds them (cat|dog, lists), or columns of 0 and 1.",
               python="several", reads="list"),
        Option("--classifier FILE", "A classifier's probabilities (item, a column per class) as one more annotator."),
        Option("--cannot-tell A,B", "Answers such as can't tell: not grades, not missing; rates are reported.",
               python="cannot_tell", reads="list"),
        Option("--overall COLUMN", "With --criteria: learn their weights from this column of overall judgments."),
        _SEED, *READING,
        "More than memory",
        _STREAM,
        Option("--cluster ADDRESS|local:N", "Run the passes on a Dask cluster."),
        Option("--resume DIR", "Keep finished passes there, and go on from them."),
        "Output",
        Option("--rating anchor=ID",
               "Scores as ratings: 1000 for the anchor, or with mean for the average item; 400 points are odds "
               "of 10 to 1."),
        Option("--tiers",
               "Add the tier of each item: a new one begins where an item is clearly below the first of the last."),
        Option("--win-rate A,B",
               "Say how often A wins against B, with its interval; A alone is against all others.", reads="list"),
        Option("--probabilities", "Add the probability of each class, entropy and sample weight of each item."),
        Option("--soft-labels FILE.json", "Write votes, hard and soft label of each item, as LeWiDi sets have them."),
        Option("--intervals LEVEL",
               "Add intervals of score and rank at this level, such as 0.95 (--bootstrap adds them too).", type=float),
        Option("--annotators FILE",
               "Write the quality and habits of each annotator there, and whom to keep, review or drop."),
        Option("--report FILE.html",
               "Write a report there for any browser: ranking, annotators, agreement; --items adds text and links."),
        _SUMMARY,
        Option("--moderation FILE.html",
               "Of pairs: write one page for a moderation meeting there, on judges, scripts and reliability."),
        Option("--anchors FILE",
               "Of pairs: scripts of known grade (item, grade); the others get the probability of each grade."),
        Option("--compare LIST", "Methods to compare in the report; all for all that fit.", python="compared"),
        Option("--fail-if CONDITION",
               "Exit with 3 if this holds, such as 'quality<0.6' or 'alpha<0.2 and n_suspects>3'; repeatable.",
               many=True),
        *_TABLE, _QUIET,
    ),
    "compare": _page(
        _VOTES,
        Option("--methods LIST", "By default all that fit.", complete="aggregator,", reads="list"),
        Option("--truth FILE", "The truth: query, item and grade or rank; qrels; or pairs."),
        _METRICS, _UNJUDGED, _ALL_QUERIES,
        Option("--baseline NAME",
               "Test the other methods against this one, instead of the best or all pairs.",
               complete="auto aggregator"),
        Option("--folds N",
               "Without --truth: number of parts of the votes that are held out in turn.", type=int, default=5),
        _SEED, *READING,
        "Output",
        Option("--tests FILE", "Write the paired tests between methods."),
        Option("--orders FILE", "Write how similar the orders of each two methods are."),
        Option("--plot FILE", "Draw the methods by the first measure (.png, .pdf, .svg)."),
        *_TABLE, _QUIET,
    ),
    "audit": _page(
        Option("PEOPLE PROGRAMS",
               "Files of judgments of people and of programs; one file, or several together, with --people.",
               python="votes", many=True, default=...),
        Option("--people WHO", f"Who the people are, in files of both: {_WHO}; COLUMN=VALUE for any column."),
        Option("--margin X",
               "How much worse than a person a program may agree: 0.1 for crowds, 0.2 for experts.",
               type=float, default=0.1),
        Option("--threshold GRADE", "Grade from which on an item passes, for the share that does.", type=float),
        Option("--criterion COLUMN", "Audit each value of this column by itself; by default of a column criterion."),
        Option("--by COLUMN", "Look for values of this column where a program does better or worse."),
        Option("--run FILE", "A ranking to measure by people's grades with the programs' help.", python="run"),
        Option("--metric NAME", "The measure of that ranking.", default="ndcg@10"),
        Option("--level LEVEL", "Level of the intervals.", type=float, default=0.9),
        _SEED, *READING,
        "Output",
        Option("--corrected FILE", "Write the figures by people, by programs and corrected."),
        Option("--next FILE", "Write which labels of people to buy next, best first.", python="next_labels"),
        Option("--report FILE.html", "Write a page there for any browser."),
        _SUMMARY,
        Option("--fail-if CONDITION",
               "Exit with 3 if this holds of a program, such as 'winning_rate<0.5'; repeatable.", many=True),
        *_TABLE, _QUIET,
    ),
    "changed": _page(
        Option("OLD", "Judgments of the earlier run.", default=...),
        Option("NEW", "Judgments of the later run.", default=...),
        Option("--level LEVEL", "Level of the intervals; over all items together, by Holm.", type=float, default=0.95),
        Option("--looks once|anytime",
               "Whether you look once, or again and again while judgments come in; anytime keeps the level over all.",
               default="once"),
        Option("--range LOW,HIGH", "Lowest and highest grade there is, for --looks anytime; --levels says it too.",
               python="scale", reads="numbers"),
        *READING,
        "Output",
        Option("--causes FILE", "Write which annotators and queries moved the items that changed."),
        _SUMMARY,
        Option("--fail-if CONDITION", "Exit with 3 if this holds, such as 'worse>0'; repeatable.", many=True),
        *_TABLE, _QUIET,
    ),
    "evaluate": _page(
        Option("RESULT... TRUTH",
               "Results of aggregate, tables or TREC runs; then the truth, unless --truth names it.",
               python="files", many=True, default=...),
        Option("--truth FILE", "The truth; all files named before are results then."),
        _METRICS, _UNJUDGED, _ALL_QUERIES,
        Option("--ties average|first|worst|trec|gdeval",
               "What equal scores mean: by default the mean over their orders; trec and gdeval as these programs."),
        Option("--max-grade N", "Highest grade of the scale, for ERR and graded RBP; 4 as in gdeval.", type=float),
        Option("--baseline NAME", "Test the other results against this one, instead of all pairs."),
        Option("--slices FILE", "Query and columns such as intent; results within each value."),
        Option("--level LEVEL", "Level of the intervals.", type=float, default=0.95),
        _SEED,
        "Output",
        Option("--per-query FILE", "Write the value of each query."),
        Option("--tests FILE", "Write the paired tests between results."),
        Option("--report FILE.html",
               "Write a page there for any browser: verdict, queries with their items, slices, unjudged."),
        Option("--items FILE", "Item and text or url, for the page."),
        *_TABLE, _QUIET,
    ),
    "diagnose": _page(
        _VOTES,
        Option("--truth FILE", "Known grades, ranks or winners; errors are counted against them."),
        Option("--method -m NAME", "Method of the consensus.", default="auto", complete="auto aggregator"),
        Option("--control A,B,C", "Covariates of preferences, as in aggregate; shows who likes long answers."),
        Option("--item-families FILE", "Table of item and family, for --control self; the votes need a group column."),
        _SEED, *READING,
        "Output",
        Option("--dependence FILE", "Write how far each two annotators agree beyond chance."),
        Option("--families FILE", "Write the groups of annotators there, given or detected."),
        Option("--groups FILE", "Write items there that were never compared with others of their query."),
        *_TABLE, _QUIET,
    ),
    "features": _page(
        Option("ITEMS",
               "A table with item [, query] and text (or file), or a folder of files.", default=...),
        Option("--of text|page|speech", "What the items are; by default the same as for --like."),
        Option("--like MODEL", "Make the columns of this model, or of this table of features."),
        Option("--query COLUMN|folder", "Column of the query; folder takes that of each file."),
        "Columns",
        Option("--words N", "Columns of words at most, 0 for none.", type=int),
        Option("--embed PACKAGE|FOLDER", "Model for sentence embeddings."),
        Option("--screen auto|yes|no", "Render pages in a browser, or count in their source."),
        Option("--first", "Count the first screen of pages too."),
        Option("--fill mean|none", "What replaces missing values."),
        Option("--measures FILE",
               "Write rankings of the pages by three measures of clutter.", python="clutter_measures"),
        Option("--subset-size N", "Cut pages into queries of N.", type=int),
        Option("--seed N", "Seed of that cut.", type=int, least=0),
        "Options",
        Option("--jobs N", "Processes; -1 for one per core.", python="n_jobs", type=int, default=1),
        Option("--cache DIR", "Keep the row of each item there for the next time."),
        Option("--on-error stop|skip", "What to do about files that cannot be read.", default="stop"),
        Option("--encoding NAME", "How the characters of texts are stored.", default="utf-8"),
        "Output",
        Option("--out -o FILE", "Write there and not to standard output, and how they were made to a file .extractor."),
        _DIGITS, _SAFE_CSV,
        Option("--details FILE",
               "Of pages, write missing_css (style sheets that the folder lacks) and unstable (1 where the height "
               "changed) there."),
        _FORMAT, _QUIET,
    ),
    "train": _page(
        Option("[VOTES...] FEATURES",
               "Files of judgments, then the features: query, item and numbers, or LETOR; LETOR with grades "
               "may be alone.",
               python="files", many=True, default=...),
        Option("--ranker -r NAME",
               "See crowdrank methods; by default the best on held-out queries, or what the joint method has.",
               complete="ranker"),
        Option("--set KEY=VALUE",
               "A parameter of the ranker or joint method; repeatable.",
               python="params", many=True, reads="pairs", example="n_trees=200"),
        Option("--joint -j NAME", "Learn ranker, consensus and annotators together by this method.", complete="joint"),
        _TRUSTED,
        Option("--aggregator NAME|none",
               "Method of the consensus to learn from; none to learn from every grade.",
               default="auto", complete="auto aggregator none"),
        Option("--aggregator-set KEY=VALUE",
               "A parameter of the aggregator; repeatable.",
               python="aggregator_params", many=True, reads="pairs", example="alpha=2"),
        Option("--features A,B,C",
               "Columns to learn from; by default all that are not named like an id, a judgment or a truth.",
               reads="list"),
        Option("--validation SHARE|FILE",
               "Share of queries held out, measured against the votes; or a file of features with grades."),
        Option("--truth FILE", "Grades of the items of the validation file, if they are in another file."),
        "More than memory",
        _STREAM,
        Option("--cluster ADDRESS|local:N",
               "Run passes over packed judgments and linear rankers, and grow the trees of lambda_mart, on Dask."),
        "Options",
        _SEED,
        *READING,
        "Output",
        Option("--out -o MODEL", "Write the ranker there.", default=...),
        _DIGITS, _SAFE_CSV,
        Option("--importance FILE", "Write the importance of each feature: a table, or a picture (.png, .pdf, .svg)."),
        Option("--curve FILE", "Write the learning curve: a table, or a picture (.png, .pdf, .svg)."),
        _QUIET,
    ),
    "rank": _page(
        Option("MODEL", "What crowdrank train wrote.", default=...),
        Option("FEATURES",
               "Query, item and the numbers it was trained on, or LETOR; or raw items as for crowdrank features.",
               python="features", default=...),
        Option("--of text|page|speech", "What raw items are; by default found from the table."),
        "Raw items",
        Option("--query COLUMN|folder", "The column of the query, or folder."),
        Option("--jobs N", "Processes; -1 for one per core.", python="n_jobs", type=int, default=1),
        Option("--cache DIR", "Keep the row of each item there."),
        Option("--on-error stop|skip", "What to do about files that cannot be read.", default="stop"),
        Option("--encoding NAME", "How characters of texts are stored.", default="utf-8"),
        *_TABLE, _QUIET,
    ),
    "propose": _page(
        Option("[VOTES]...",
               "Files of judgments, - for standard input; none where nothing is judged yet, with --items.",
               python="votes", many=True),
        Option("--scheme -s NAME",
               "Such as if-good-3, 2-overlap, pilot or information; by default one that fits the judgments.",
               default="auto", complete="scheme"),
        Option("--goal -g GOAL",
               "Of preferences: order (the default), top-5 (any number) or best; of grades: ranker, for nDCG@10."),
        Option("--set KEY=VALUE",
               "A parameter of the scheme; repeatable.", python="params", many=True, reads="pairs", example="k=3"),
        Option("--budget -b N", "What may be spent; no limit by default.", type=float),
        Option("--pool FILE", "Who can be asked: annotator, price, capacity."),
        Option("--price N", "Price of a judgment where the pool gives none; or person=4,program=1.", default="1"),
        Option("--least-gain N",
               "Least expected gain per unit of money; with --goal ranker in nDCG@10.", type=float, default=0.0),
        Option("--features FILE",
               "With --goal ranker: features of all items; grades are asked for that change what a ranker shows."),
        Option("--method -m NAME",
               "Method of the consensus that some schemes use; by default their own choice.",
               python="consensus", complete="auto aggregator"),
        Option("--open FILE", "Requests already sent out, in the format that this command writes."),
        _SEED, *READING,
        "Output",
        Option("--costs FILE", "Write what schemes would have cost on these grades."),
        *_TABLE, _QUIET,
    ),
    "simulate": _page(
        Option("TRUTH", "Query, item and grade (or rank); or qrels.", default=...),
        Option("--annotators -n N", "Number of annotators, spammers included.", type=int, least=1),
        Option("--noise SPEC", "Noise model of the annotators; --noises lists all."),
        Option("--kind KIND", "grade, preference or ranking; else the usual one."),
        Option("--per-item K", "Grades (5) or preferences (10) per item; rankings (5) per query.", type=float),
        _SEED,
        Option("--noises", "List the noise models and exit."),
        "Labelling schemes",
        Option("--campaign SCHEMES", "Compare labelling schemes.", reads="list"),
        Option("--votes FILE", "Replay these votes in place of annotators."),
        Option("--budget N", "Judgments that each scheme may buy; by default 3 per item.", type=float),
        Option("--rounds N", "Rounds in which the budget is spent.", python="n_rounds", type=int, default=20, least=1),
        Option("--seeds N", "Repetitions.", python="n_seeds", type=int, default=5, least=1),
        Option("--goal GOAL", "Goal of the schemes that have one: order, top-5 or best."),
        Option("--choose", "Schemes may choose whom to ask.", python="chosen"),
        Option("--method -m NAME",
               "Method whose consensus is measured; mean_gain or latent_score by default.",
               python="aggregator", complete="auto aggregator"),
        Option("--metrics LIST", "Such as gain_error,log_loss,accuracy,tau.", python="measures", reads="list"),
        Option("--picture FILE", "Draw the first metric (.png, .pdf, .svg)."),
        "Output",
        Option("--quality FILE", "Write the true quality of each annotator."),
        *_TABLE, _QUIET,
    ),
    "study": _page(
        Option("[NAME]", "A study.", complete="study"),
        Option("--quick", "Only check that the study runs; takes up to some minutes."),
        Option("--full", "The paper's whole grid, which may take hours."),
        Option("--seeds N", "Number of repetitions, in place of the study's own.", python="n_seeds", type=int),
        "Output",
        Option("--out -o DIR",
               "Write numbers, pictures and protocol there; a run that was stopped goes on from there."),
        _DIGITS, _SAFE_CSV,
        "Options",
        _FOLDER,
        Option("--pages FOLDER", "For visual-clutter: render these pages in place of its data."),
        _FORMAT, _QUIET,
    ),
    "methods": _page(
        Option("[NAME]", "A method.", complete="any"),
        Option("--paper NAME", "Methods of a paper: wu, kumar, gupta, niu or yang."),
        *_TABLE,
    ),
    "datasets": _page(
        Option("[NAME]", "A data set."),
        _FOLDER,
        *_TABLE,
    ),
    "demo": _page(
        Option("--save FILE", "Write the votes there and do nothing else."),
        _DIGITS, _SAFE_CSV, _QUIET,
    ),
    "inspect": _page(
        Option("FILE...", "Files of judgments, of any tool.", python="files", many=True, default=...),
        *READING,
        "Output",
        Option("--format text|json", "Text for people, or JSON.", default="text"),
    ),
    "export": _page(
        Option("RESULT", "What crowdrank aggregate wrote.", default=...),
        Option("--to NAME",
               "label-studio, argilla, pairs, qrels, quepid, rre, run or letor.", default=...),
        Option("--votes FILE", "The tool's export that the votes were read from."),
        Option("--answer NAME", "Which question of that export, where it has several."),
        Option("--column WORD=NAME",
               "Columns that the votes were read with, such as left=data.x; repeatable.",
               python="columns", many=True, reads="columns"),
        Option("--texts FILE", "Item and text [, query], to write texts for ids in pairs."),
        Option("--min-confidence P", "Least probability that the chosen item is better.", type=float, default=0.9),
        Option("--pairs-per-query N", "Most pairs of a query, the largest margin first.", type=int, default=1),
        Option("--threshold X", "Write grade 1 from this score on, and 0 below.", type=float),
        Option("--grades whole|expected", "Chosen grades, or those of the expected gains.", default="whole"),
        Option("--queries FILE", "Query and text, for Quepid and RRE."),
        Option("--features FILE", "Features of the items, for letor."),
        "Output",
        Option("--confidence FILE", "Write query, item, grade and confidence too."),
        Option("--out -o FILE", "Write there and not to standard output."),
        _DIGITS, _SAFE_CSV, _QUIET,
    ),
    "pack": _page(
        Option("VOTES...", "Files of one kind of judgment.", many=True, default=...),
        Option("--out -o DIR", "Folder to write.", default=...),
        Option("--by query|annotator",
               "Keep each query, or each annotator, in one part; use annotator for one large query.", default="query"),
        Option("--append", "Add to the judgments that the folder holds."),
        Option("--part N", "Rows of a part; 1000000 by default.", type=int, least=1),
        Option("--control a,b", "Covariates of preferences to keep, such as length."),
        *READING,
        _QUIET,
    ),
    "serve": _page(
        Option("[CAMPAIGN.toml]...", "What to ask, of whom; several are served together.", python="campaign",
               many=True),
        Option("--demo", "A small campaign of made-up items."),
        Option("--db FILE|URL", "SQLite file (by default beside the campaign) or postgresql://..."),
        Option("--host ADDRESS", "Address to listen on.", default="127.0.0.1"),
        Option("--port N", "Port to listen on.", type=int, default=8000, least=1, most=65535),
        Option("--public-url URL", "The address that browsers show, if it is another.", default=""),
        Option("--behind-proxy", "Take the caller's address from X-Forwarded-For."),
        Option("--login-header NAME", "Header in which a proxy says who is logged in to run campaigns.", default=""),
        Option("--workers N", "Processes; more than one needs PostgreSQL.", type=int, default=1, least=1, most=64),
        Option("--token-file FILE", "Write the owner's token there."),
        Option("--new-token", "Make a new owner's token; the old one stops working."),
        Option("--check", "Check all totals by counting again, and exit."),
        Option("--copy-to URL", "Copy a paused or closed campaign there and exit."),
        Option("--backup FILE", "Write everything to a new file, also while the service runs, and exit."),
        Option("--restore FILE", "Put what --backup wrote into an empty database and exit."),
        _QUIET,
    ),
    "mcp": _page(
        Option("FOLDER", "Folder whose files an agent may read.", default=...),
        Option("--write", "Let it write new CSV files there too."),
    ),
    "judge": _page(
        Option("ANSWERS", "Table of item, content [, query, query_content], or a folder of files.", default=...),
        *_MODELS,
        Option("--rubric FILE", "What to go by; or, if it ends in .j2, the whole prompt as a Jinja2 template."),
        Option("--question TEXT", "What is asked; by default which answer is better."),
        Option("--kind preference|grade|ranking", "What a model is asked for.", default="preference"),
        Option("--levels A,B,C", "Of grades: the levels from worst to best; 1 to 5 by default.", reads="list"),
        Option("--set-size N", "Answers of one ranking.", type=int, default=4, least=2, most=20),
        "Choice",
        Option("--goal -g order|top-3|best", "What should be sure.", default="order"),
        *_LIMITS,
        Option("--orders both|random", "Show each pair in both orders, or in one at random.", default="both"),
        Option("--scheme information|k-overlap", "What is asked next; k-overlap takes all pairs in turn.",
               default="information"),
        Option("--per-query", "Rank within each query, though items are in several."),
        "People",
        Option("--people FILE", "Judgments of people, which are trusted."),
        Option("--campaign TOML",
               "Write doubtful cases there for crowdrank serve; if it was served, go on with what people said."),
        Option("--people-share SHARE", "Random share of the other cases for people, for the audit.",
               type=float, default=0.1),
        "Calls",
        *_CALLING,
        Option("--max-tokens N", "Most tokens of a reply.", type=int, default=256, least=1),
        Option("--temperature X", "How random replies are.", type=float, default=0.0),
        Option("--timeout SECONDS", "How long a reply may take.", type=float, default=120.0),
        Option("--dry-run", "Show the first three prompts and the most it can cost, and ask nothing."),
        "Output",
        *_JUDGED,
        Option("--report FILE", "Write a page for browsers."),
        _DIGITS, _SAFE_CSV, _FORMAT, _QUIET,
    ),
    "sort": _page(
        Option("THINGS", "Table of text [, item], or a text file with a thing on each line.", default=...),
        Option("--ask QUESTION", "What to order by, such as 'Which is more urgent?'.", default=...),
        *_MODELS,
        "Choice",
        Option("--goal -g top-10|best|order", "What should be sure.", default="top-10"),
        *_LIMITS,
        Option("--orders both|random", "Show each pair in both orders, or in one at random.", default="random"),
        "Calls",
        *_CALLING,
        "Output",
        *_JUDGED,
        _DIGITS, _SAFE_CSV, _FORMAT, _QUIET,
    ),
}
# fmt: on

BY_NAME: dict[str, Option] = {}
"""Options by what Python calls them; the first page that has one says how it is typed."""
for _options in (READING, *COMMANDS.values()):
    for _option in _options:
        if _option.flags:
            BY_NAME.setdefault(_option.name, _option)


def typed_words(options: tuple[Option, ...], given: Mapping[str, Any]) -> list[str]:
    """Return options with what was typed behind them as words of a command.

    Examples
    --------
    >>> typed_words(READING, {"columns": ["item=id"], "nominal": True, "small_is_good": False})
    ['--column', 'item=id', '--nominal', '--large-is-good']
    """
    words: list[str] = []
    for option in options:
        value = given.get(option.name)
        yes, _, no = option.flags[0].partition("/")
        if value is True or (value is False and no):
            words.append(yes if value else no)
        elif value is not None and value is not False:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [yes, str(one)]
    return words
