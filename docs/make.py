"""Make the pages that follow from the code: methods and their index, the reference, the command line.

``python docs/make.py`` writes them; ``python docs/make.py --check`` exits 1 when one is not up to date.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from typer.main import get_command

import crowdrank
from crowdrank.api.method_listing import METHODS, list_methods
from crowdrank.cli.app import app
from crowdrank.metrics.measures import MEASURES
from crowdrank.registry import FAMILIES, TITLES, Card, card, names
from crowdrank.simulate import NOISES

DOCS = Path(__file__).parent
EVIDENCE = DOCS / "evidence"
COSTS = EVIDENCE / "costs.csv"
"""Seconds of each method by number of judgments, written by ``python -m benchmarks.costs``."""

NAMESPACES = {"aggregator": "aggregators", "ranker": "rankers", "joint": "joint", "scheme": "schemes"}
"""Family -> where users import its classes from."""

QUESTIONS = {
    "Who or what is best?": (
        "aggregator",
        "latent_score bradley_terry crowd_bt plackett_luce mallows mean_grade location_scale trimmed_mean "
        "borda crowd_agg rank_centrality "
        "median_rank multinomial_preference singular_vector nuclear_norm condorcet greedy_order majority_preference "
        "elo em_elo mean_gain highest_grade single",
    ),
    "Which label is right?": ("aggregator", "ensemble dawid_skene naive_bayes glad mace majority_vote"),
    "Who guesses, spams or answers in reverse?": (
        "aggregator",
        "latent_score crowd_bt dawid_skene naive_bayes mace glad mallows plackett_luce multinomial_preference "
        "crowd_agg em_elo",
    ),
    "How good are items nobody judged?": (
        "joint", "two_stage latent_score joint_annotators ltrma independent_annotators"
    ),
    "Which ranker should learn from the labels?": ("ranker", "auto list_mle list_net lambda_mart rank_svm lambda_rank"),
    "What should be asked next?": (
        "scheme", "information k_overlap if_good_k good_till_bad agreement pilot uncertainty chained"
    ),
}  # fmt: skip
"""Question -> family and names of the methods that answer it, the usual choice first."""


def methods_table(cards: list[Card]) -> str:
    """A line for each method, on the page that has them all."""
    folder = "methods/"
    lines = ["| Method | Takes | Gives |", "|---|---|---|"]
    lines += [
        f"| [`{c.name}`]({folder}{page_name(c)}) | {c.takes} | {plain(c.summary, folder).rstrip('.')} |" for c in cards
    ]
    return "\n".join(lines)


METHOD_PAGES = {
    "grades": "Methods for grades and classes",
    "preferences": "Methods for preferences",
    "rankings": "Methods for rankings, and for all kinds",
    "joint": "Methods that learn from judgments and features",
    "rankers": "Rankers",
    "schemes": "What to ask next",
}
"""Page of methods -> its title."""


def page_of(c: Card) -> str:
    """Page that a method is on, in ``docs/methods``."""
    if c.family != "aggregator":
        return NAMESPACES[c.family]
    return {("grade",): "grades", ("preference",): "preferences"}.get(tuple(c.kinds), "rankings")


def page_name(c: Card) -> str:
    """Where a method is described, from the folder ``docs/methods``."""
    return f"{page_of(c)}.md#{c.name}"


def index_page(families: dict[str, list[Card]]) -> str:
    """Every method, by question and by family."""
    cards = {(family, c.name): c for family, members in families.items() for c in members}
    parts = [
        "# Methods",
        "Of each method the model, when to use it, parameters, notes, an example, its cost and what was measured. "
        "Made from the code by `docs/make.py`; `crowdrank methods NAME` shows the same in a terminal.",
    ]
    for question, (family, members) in QUESTIONS.items():
        listed = ", ".join(f"[`{name}`](methods/{page_name(cards[family, name])})" for name in members.split())
        parts.append(f"**{question}** {listed}.")
    parts.append('The usual choice comes first; `method="auto"` picks by the data and says why.')
    for family, members in families.items():
        parts += [f"## {TITLES[family]}", methods_table(members)]
    parts.append(toctree(*(f"methods/{page}" for page in METHOD_PAGES)))
    return "\n\n".join(parts) + "\n"


def toctree(*entries: str) -> str:
    """The pages below a page, for the menus of the site."""
    return "\n".join(["```{toctree}", ":hidden:", ":glob:", "", *entries, "```"])


def table_page(title: str, about: str, heads: list[str], rows: list[list[str]]) -> str:
    """A page that is a table."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    lines.insert(1, "|" + "---|" * len(heads))
    return "\n\n".join([f"# {title}", f"{about} Made from the code by `docs/make.py`.", "\n".join(lines)]) + "\n"


MEASURES_NOTES = """
## What they count, and other programs' figures

- **Ties are averaged**: items of equal score count the mean over all their orders, which does not depend on the order
  of the file. trec_eval and gdeval put the last item id first; `--ties trec` and `--ties gdeval` (in Python `ties=`)
  do so too, and `trec` compares scores as 32-bit floats as trec_eval does. `--ties worst` gives nothing for not
  deciding.
- **Items without a grade** are left out unless `--unjudged zero`; trec_eval and gdeval count them as 0. Grades below
  0 are refused unless `(negative=zero)`, which is how both take them.
- **nDCG** has gains of 2^grade - 1 as in LETOR, LightGBM and gdeval; trec_eval has the grade itself:
  `ndcg@10(linear)`.
- **ERR** divides 2^grade - 1 by 2^(highest grade). Without `--max-grade` (or `err@20(max_grade=4)`) that is the
  highest grade in the truth, so values of two truths compare only with it; gdeval takes 4.
- **RBP** takes an item for relevant or not, from `relevant_from=1` on. Graded RBP, where an item counts its grade
  over the highest one, is `rbp@0.8(linear)`, with `--max-grade` as in ERR.

```sh
crowdrank evaluate bm25.run news.qrels --ties trec --unjudged zero --metrics "ndcg@10(linear),map,p@10,recall@100,rr"
crowdrank evaluate bm25.run news.qrels --ties gdeval --unjudged zero --max-grade 4 --metrics ndcg@20,err@20
```

give the figures of trec_eval and of gdeval to the digit.
"""


def measures_page() -> str:
    """Every measure."""
    about = "For `--metrics` and `metrics=`; a number stands after `@`, options in brackets, as in `ndcg@10(linear)`."
    rows = [[f"`{name}{'@' + one.at if one.at else ''}`", one.description] for name, one in MEASURES.items()]
    return table_page("Measures", about, ["Name", "Measures"], rows) + MEASURES_NOTES


THRESHOLD = re.compile(r"^# threshold \((equal|sample|refused)\): (.+)\n(\w+)(?:: [^=\n]+)? = (.+?)(?:  #.*)?$", re.M)
"""A constant beyond which something is done in another way, under the comment that says what."""


def thresholds() -> dict[str, tuple[str, str, str]]:
    """Constant, as "module:NAME" -> value, what is promised beyond it, and what it is about."""
    package = DOCS.parent / "src" / "crowdrank"
    return {
        f"{'.'.join(path.relative_to(package).with_suffix('').parts)}:{name}": (value, promise, what)
        for path in sorted(package.rglob("*.py"))
        for promise, what, name, value in THRESHOLD.findall(path.read_text())
    }


def thresholds_page() -> str:
    """Every threshold."""
    about = (
        "Beyond these sizes something is sampled, cut or computed in another way. What comes out beyond one is *equal* "
        "to what comes out below it (up to the accuracy of a method), a *sample* (finite, same items, a note where it "
        "matters), or it is *refused* in a sentence."
    )
    rows = [
        [what, value.replace("_", ","), promise, f"`{name}`"] for name, (value, promise, what) in thresholds().items()
    ]
    return table_page("Thresholds", about, ["What", "Value", "Beyond it", "Constant"], rows)


def noise_table() -> str:
    """Every noise model."""
    about = "For `crowdrank simulate --noise` and `cr.simulate.simulate(noise=...)`."
    rows = [[f"`{m.signature}`", ", ".join(f"{kind}s" for kind in m.kinds), m.description] for m in NOISES.values()]
    return table_page("Noise models", about, ["Noise", "For", "Means"], rows).replace("# Noise", "## Noise", 1)


def methods_page(page: str, cards: list[Card], costs: dict[tuple[str, str], str]) -> str:
    """The methods of a page."""
    return "\n\n".join([f"# {METHOD_PAGES[page]}", *(method_section(c, costs) for c in cards)]) + "\n"


def method_section(c: Card, costs: dict[tuple[str, str], str]) -> str:
    """One method: the model, when to use it, parameters, notes, an example, its cost, what was measured."""
    facts = [f"Takes {c.takes}{', nominal grades too' if c.nominal else ''}."]
    if c.aliases:
        facts.append("Also called " + ", ".join(f"`{alias}`{c.settings(alias)}" for alias in c.aliases) + ".")
    if c.references:
        facts.append("Papers: " + ", ".join(f"[{key}](../references.md)" for key in c.references) + ".")
    parts = [f"## `{c.name}`", " ".join([plain(c.summary), *facts]), page_text(c.model)]
    parts.append(f"**When.** {page_text(c.when)}")
    if c.parameters:
        rows = ["| Parameter | Takes | Default | Means |", "|---|---|---|---|"]
        rows += [f"| `{p.name}` | {p.type} | `{p.default!r}` | {cell(plain(p.description))} |" for p in c.parameters]
        parts.append("\n".join(rows))
    if c.notes:
        parts.append(f"**Notes.** {page_text(c.notes)}")
    if c.examples:
        parts.append(f"```python\n{example(c)}\n\n```")
    shown = [page for page in sorted(EVIDENCE.glob("*.md")) if re.search(rf"\b{c.name}\b", page.read_text())]
    links = ", ".join(
        f"[{page.read_text().splitlines()[0].removeprefix('# ')}](../evidence/{page.name})" for page in shown
    )
    last = [costs.get((c.family, c.name), ""), f"Measured: {links}." if shown else ""]
    return "\n\n".join([*parts, *filter(None, [" ".join(filter(None, last))])])


def example(c: Card) -> str:
    """The example of a method's docstring, with the imports that it takes from its module."""
    home, _, own = FAMILIES[c.family][c.name].partition(":")
    known = vars(sys.modules[home])
    code = " ".join(re.findall(r"^(?:>>>|\.\.\.) (.*)", c.examples, flags=re.MULTILINE))
    brought = {name.strip() for line in re.findall(r"\bimport ([\w, ]*)", c.examples) for name in line.split(",")}
    lines = [f">>> from crowdrank.{NAMESPACES[c.family]} import {own}"]
    used = {word for word in re.findall(r"(?<![\w.\"'])[A-Za-z]\w+", code) if word in known}
    for name in sorted(used - {own} - brought):
        public = "crowdrank" if name in crowdrank.__all__ else getattr(known[name], "__module__", "")
        lines.append(">>> import numpy as np" if name == "np" else f">>> from {public} import {name}")
    return "\n".join([*lines, c.examples])


def measured_costs() -> dict[tuple[str, str], str]:
    """A sentence on the time of each method, from the file of a run."""
    if not COSTS.exists():
        return {}
    frame = pl.read_csv(COSTS)
    sentences = {}
    for (family, name), rows in frame.sort("n").group_by(["family", "method"], maintain_order=True):
        times = ", ".join(f"{seconds:.2g} s for {n:,}" for n, seconds in rows.select("n", "seconds").iter_rows())
        sentences[str(family), str(name)] = f"{times} {rows['unit'][0]} (two cores; `python -m benchmarks.costs`)."
    return sentences


def commands_page() -> str:
    """Every command with its help, arguments and options."""
    group: Any = get_command(app)
    parts = [
        "# Command line",
        "Made from the code by `docs/make.py`; `crowdrank COMMAND --help` shows the same.",
        words(group.help),
    ]
    commands = group.commands
    parts.append(
        "\n".join(f"- [`crowdrank {name}`](#crowdrank-{name}): {first_line(commands[name])}" for name in commands)
    )
    parts += [command_section(name, command) for name, command in commands.items()]
    return "\n\n".join(parts) + "\n"


REFERENCE = {
    "verbs": ("Verbs", "What is done with judgments and results: each takes objects, frames or paths."),
    "reading": ("Reading and writing", "Files in and out."),
    "judgments": ("Judgments, features, truth", "What goes in: frozen, and checked once."),
    "results": ("Results", "What comes out. A result holds data; what is made of it later is asked of a verb."),
}
"""Page of the reference -> its title and what is on it."""

LISTED_NAMESPACES = {
    "metrics": "Measures in Python",
    "simulate": "Simulation",
    "report": "Pictures and the report",
    "datasets": "Public data sets",
    "features": "Raw items to features",
    "errors": "Errors and warnings",
    "client": "Client of the collection service",
}
"""Module whose public names have a page -> title of the page."""


def reference_pages() -> dict[Path, str]:
    """The API, a page for each group of names, rendered from docstrings when the site is built."""
    folder = DOCS / "reference"
    groups: dict[str, list[str]] = {group: [] for group in REFERENCE}
    for name in crowdrank.__all__:
        if not isinstance(getattr(crowdrank, name), ModuleType):
            groups[reference_group(name)].append(name)
    made = {folder / f"{group}.md": reference_page(*REFERENCE[group], "crowdrank", groups[group]) for group in groups}
    for module, title in LISTED_NAMESPACES.items():
        home = import_module(f"crowdrank.{module}")
        about = (home.__doc__ or "").strip().splitlines()[0]
        made[folder / f"{module}.md"] = reference_page(title, about, home.__name__, public_names(home))
    made[folder / "simulate.md"] += f"\n{noise_table()}"
    order = [*REFERENCE, *LISTED_NAMESPACES]
    titles = {**{group: title for group, (title, _) in REFERENCE.items()}, **LISTED_NAMESPACES}
    lines = [
        "# Reference",
        "Every public name, made from the code by `docs/make.py`. The classes of methods (`cr.aggregators`, "
        "`cr.rankers`, `cr.joint`, `cr.schemes`) are on [pages of their own](../methods.md); "
        "[the stability promise](../stability.md) says what may change.",
        "\n".join(f"- [{titles[page]}]({page}.md)" for page in order)
        + "\n- [The service's API](service.md)\n- [Command line](../cli.md)"
        + "\n- [Measures](../measures.md)\n- [Thresholds](../thresholds.md)",
        toctree(*order, "service", "../cli", "../measures", "../thresholds"),
    ]
    made[folder / "index.md"] = "\n\n".join(lines) + "\n"
    return made


def reference_group(name: str) -> str:
    """The page of the reference that a name of ``crowdrank`` is on."""
    value = getattr(crowdrank, name)
    if not isinstance(value, type):
        return "reading" if re.match(r"read_|load_|scan_|inspect|export", name) else "verbs"
    taken = ("Grades", "Preferences", "Rankings", "Mixed", "Features", "Truth")
    return "judgments" if name in taken else "results"


def public_names(module: ModuleType) -> list[str]:
    """Classes and functions that a module says are public, without those that ``crowdrank`` itself has."""
    listed = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]  # fmt: skip
    known = {id(getattr(crowdrank, name)) for name in crowdrank.__all__}
    values = {name: getattr(module, name) for name in listed if name not in crowdrank.__all__}
    return [name for name, value in values.items() if callable(value) and id(value) not in known]


def reference_page(title: str, about: str, module: str, members: list[str]) -> str:
    """A page of names, each shown from its docstring."""
    parts = [f"# {title}", about]
    for name in members:
        value = getattr(import_module(module), name)
        kind, options = ("autoclass", "\n   :members:") if isinstance(value, type) else ("autofunction", "")
        target = f"{value.__module__}.{value.__qualname__}"
        shown = f"cr.{name}" if module == "crowdrank" else f"cr.{module.removeprefix('crowdrank.')}.{name}"
        parts += [f"## {shown}", f"```{{eval-rst}}\n.. {kind}:: {target}{options}\n```"]
    return "\n\n".join(parts) + "\n"


def first_line(command: Any) -> str:
    """The one line that says what a command does."""
    return words(command.help).split("\n", 1)[0]


def command_section(name: str, command: Any) -> str:
    """One command: its help, then a table of what it takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([f"crowdrank {name}", "[OPTIONS]", *(shown_argument(p) for p in arguments)])
    lines = [f"## `crowdrank {name}`", f"    {usage}", words(command.help)]
    rows = [f"| `{cell(shown_argument(p))}` | {cell(getattr(p, 'help', ''))} |" for p in arguments]
    rows += [f"| `{cell(shown_option(p))}` | {cell(p.help)} |" for p in options]
    if rows:
        lines.append("\n".join(["| Takes | Means |", "|---|---|", *rows]))
    if command.epilog:
        lines.append(f"```sh\n{command.epilog}\n```")
    return "\n\n".join(lines)


def shown_argument(parameter: Any) -> str:
    """An argument as it stands in the usage line."""
    name = (parameter.metavar or parameter.name or "").upper()
    return name + ("..." if parameter.nargs == -1 and not name.endswith("...") else "")


def shown_option(parameter: Any) -> str:
    """An option with what goes behind it."""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {(parameter.metavar or parameter.type.name).upper()}"


def words(text: str | None) -> str:
    """Help text as paragraphs, without the marks that only the terminal needs."""
    paragraphs = re.split(r"\n\s*\n", (text or "").replace("\f", "").replace("\b", "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def cell(text: str | None) -> str:
    """Text that fits into one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def plain(text: str, folder: str = "") -> str:
    """Docstring markup as Markdown on one of the pages of methods, or on one that ``folder`` leads to them from."""
    up = "../" if not folder else folder.removesuffix("methods/")
    text = re.sub(r":math:`([^`]*)`", lambda m: f"${m.group(1)}$", text)
    text = re.sub(r":\w+:`~?([^`<]*)`", lambda m: reference(m.group(1), folder), text)
    text = re.sub(r"\[(\w+)\]_", rf"[\1]({up}references.md)", text)
    return text.replace("``", "`")


def reference(target: str, folder: str) -> str:
    """A name in the code: a link where it is a method's class."""
    for family, table in FAMILIES.items():
        for name, home in table.items():
            if target.rpartition(".")[2] == home.partition(":")[2]:
                return f"[`{name}`]({folder}{page_name(card(family, name))})"
    return f"`{target.removeprefix('crowdrank.')}`"


def page_text(text: str) -> str:
    """Paragraphs of a docstring as Markdown, displayed formulas among them."""
    blocks = re.split(r"^\.\. math:: ", text, flags=re.MULTILINE)
    parts = [plain(blocks[0].strip())]
    for block in blocks[1:]:
        formula, _, rest = block.partition("\n\n")
        parts += [f"$$\n{' '.join(formula.split())}\n$$", plain(rest.strip())]
    return "\n\n".join(part for part in parts if part)


def pages() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    families = {family: [card(family, name) for name in names(family)] for family in FAMILIES}
    cards = [c for family in families.values() for c in family]
    costs = measured_costs()
    # this file may have been loaded from anywhere
    sys.path.insert(0, str(DOCS))
    from make_papers import papers_page

    return {
        DOCS / "methods.md": index_page(families),
        DOCS / "measures.md": measures_page(),
        DOCS / "thresholds.md": thresholds_page(),
        DOCS / "papers.md": papers_page(),
        **{
            DOCS / "methods" / f"{page}.md": methods_page(page, [c for c in cards if page_of(c) == page], costs)
            for page in METHOD_PAGES
        },
        DOCS / "cli.md": commands_page(),
        METHODS: list_methods().write_csv(),
        **reference_pages(),
    }


def main() -> int:
    """Write or check the pages."""
    made = pages()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            sys.stderr.write(f"{path.name} is not up to date; run python docs/make.py\n")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path])
        sys.stderr.write(f"wrote {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
