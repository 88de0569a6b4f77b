"""The house stays readable: its weight, no import in a circle, and how a method is read."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crowdrank"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_CODE_LINES = 61_600
"""A commit may raise it, saying why; lower it when the house got lighter."""

NOT_READ = ("data/", "errors.py", "wording.py", "options.py", "protocols.py")
"""What serves all methods alike, which a reader of one need not open."""

STEPS = {
    "models/classes/dawid_skene": ("_e_step", "_m_step"),
    "models/pairs/bradley_terry": ("fit", "solve"),
    "models/pairs/crowd_bt": ("evaluate", "curvature"),
    "models/pairs/em_elo": ("over_blocks",),
    "models/crowd_agg/crowd_agg": ("over_blocks",),
    "models/joint_annotators/joint_annotators": ("over_blocks",),
    "models/rankings/ltrma": ("fit",),
}
"""Functions that a reader looks for in the file of a method."""

PARTICIPLE = re.compile(
    r"[a-z]+[^e]ed|found|told|bought|sold|kept|held|left|made|drawn|given|taken|seen|known|spent|paid|built|rebuilt|sent"
    r"|chosen|written|shown|thrown|lost|won|met|laid|led|fed|torn|begun|swept|caught|taught|thought|brought|sought|dealt"
    r"|bent|gone|done|heard|shrunk|grown|frozen|broken|hidden|driven|risen|fallen"
)
PLAIN_NAMES = {"changed", "embed", "ohsumed", "weighted", "counted"}
"""Names of data sets and public functions that look like a participle."""


@pytest.fixture(scope="module", autouse=True)
def let_go():
    """Millions of nodes would slow down whatever this process tests next."""
    yield
    parsed.cache_clear()
    imports.cache_clear()


@cache
def parsed(path):
    return ast.parse(path.read_text())


def functions(path):
    """Functions and methods of a file."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def code_lines(path):
    """Lines with code: no blank line, comment or docstring."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, described) and ast.get_docstring(node, clean=False) is not None:
            texts.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    lines = {line for one in tokens if one.type not in empty for line in range(one.start[0], one.end[0] + 1)}
    return len(lines - texts)


@cache
def imports(path):
    """Files of the package that a file imports, at its top or within a function, for types alone not counted."""
    reached = set()

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.ImportFrom) and child.level:
                folder = path.parents[child.level - 1].joinpath(*(child.module or "").split("."))
                reached.update({folder.with_suffix(".py"), *(folder / f"{one.name}.py" for one in child.names)})
            visit(child)

    visit(parsed(path))
    return {one for one in reached if one.exists() and one != path}


def files_to_open(start):
    """Files that a reader of one reaches by any import."""
    todo, reached = [start], set()
    while todo:
        path = todo.pop()
        if path in reached or str(path.relative_to(PACKAGE)).startswith(NOT_READ) or path.name == "__init__.py":
            continue
        reached.add(path)
        todo += imports(path)
    return {str(path.relative_to(PACKAGE).with_suffix("")) for path in reached}


def reading_orders():
    """Rows of the guide: what is read, and the files in their order."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("### Where to read a method")[1].split("###")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "`" in line]
    return {row[0]: re.findall(r"`([\w/]+)`", " ".join(row[1:])) for row in rows}


ORDERS = reading_orders()


def test_the_house_does_not_grow_unsaid():
    assert sum(map(code_lines, FILES)) <= MOST_CODE_LINES


def test_no_file_imports_itself_in_a_circle():
    """By any way, within functions too."""

    def below(path):
        todo, reached = list(imports(path)), set()
        while todo:
            one = todo.pop()
            if one not in reached:
                reached.add(one)
                todo += imports(one)
        return reached

    assert [str(path.relative_to(PACKAGE)) for path in FILES if path in below(path)] == []


def test_the_guide_has_nine_reading_orders():
    assert len(ORDERS) == 9


@pytest.mark.parametrize("title", ORDERS)
def test_a_reading_order_names_what_is_reached(title):
    order = ORDERS[title]
    assert sorted(order) == sorted(files_to_open(PACKAGE / f"{order[0]}.py"))


@pytest.mark.parametrize("method", STEPS)
def test_the_steps_of_a_method_stand_in_its_file(method):
    names = {node.name for node in functions(PACKAGE / f"{method}.py")}
    assert set(STEPS[method]) <= names


def test_functions_are_verbs_or_what_they_return():
    """A property is an attribute, which may be a participle."""
    lone = [
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path in FILES
        for node in functions(path)
        if PARTICIPLE.fullmatch(node.name.strip("_")) and node.name.strip("_") not in PLAIN_NAMES
        if not any("property" in ast.unparse(one) for one in node.decorator_list)
    ]
    assert lone == []


def test_files_that_the_guide_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(
        r"`((?:api|cli|cluster|data|io|models|rankers|report|review|schemes|validation|web)/[\w/]+)`", text
    )
    assert len(named) > 40
    assert [name for name in named if not ((PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists())] == []
