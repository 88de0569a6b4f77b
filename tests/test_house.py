"""The house stays readable: names, and how many files one opens to read a method."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crowdrank"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_FOLDERS_OF_A_NAME = 3
MOST_NUMBERS_OF_A_CONSTANT = 3

ALLOWED_PARTICIPLES = 2
ALLOWED_EMPTY_NAMES = 8
"""What there was when this was written; lower them when you put one right."""

STEPS = ("kernels/", "rankers/", "fitting", "pair_counts", "covariate_design", "standard_errors")
"""Shared parts that hold steps of methods; data, quality, wording and errors serve all methods alike."""

MOST_FILES = {
    "models/pairs/crowd_bt": 9,
    "models/classes/dawid_skene": 8,
    "models/latent_score/latent_score": 12,
    "models/joint_annotators/joint_annotators": 9,
    "models/crowd_agg/crowd_agg": 6,
}

FRAME = "models/classes/class_method"
"""What every class method does with grades before and after its own steps."""

MOST_FILES_OF_STEPS = 6

PARTICIPLE = re.compile(
    r"[a-z]+[^e]ed|found|told|bought|sold|kept|held|left|made|drawn|given|taken|seen|known|spent|paid|built|rebuilt|sent"
    r"|chosen|written|shown|thrown|lost|won|met|laid|led|fed|torn|begun|swept|caught|taught|thought|brought|sought|dealt"
    r"|bent|gone|done|heard|shrunk|grown|frozen|broken|hidden|driven|risen|fallen"
)
NO_PARTICIPLES = ("embed", "ohsumed")

EMPTY_NAMES = {"found", "told", "heard", "gone"}
"""Variables that say how something came about, not what it is."""


@pytest.fixture(scope="module", autouse=True)
def let_go():
    """Millions of nodes would slow down whatever this process tests next."""
    yield
    for kept in (nodes_of, functions, imports):
        kept.cache_clear()


@cache
def nodes_of(path):
    """All nodes of a file."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def functions(path):
    """Functions and methods of a file."""
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def is_participle(node):
    """Whether the name of a function is one lone participle; a property is an attribute, which may have one."""
    name = node.name.strip("_")
    if name in NO_PARTICIPLES or PARTICIPLE.fullmatch(name) is None:
        return False
    return not any("property" in ast.unparse(one) for one in node.decorator_list)


@cache
def imports(path):
    """Files of the package that a file imports, at its top or within a function, for types alone not counted."""
    found = set()

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.ImportFrom) and child.level:
                folder = path.parents[child.level - 1].joinpath(*(child.module or "").split("."))
                found.update({folder.with_suffix(".py"), *(folder / f"{one.name}.py" for one in child.names)})
            visit(child)

    visit(nodes_of(path)[0])
    return {one for one in found if one.exists()}


def files_to_open(method, frame=None):
    """Files of the room that a method reaches, its passes over parts left out, and the shared parts with its steps.

    A frame is not opened, nor what only the frame reaches.
    """
    room = (PACKAGE / method).parent
    todo, reached, shared = [PACKAGE / f"{method}.py"], set(), set()
    while todo:
        path = todo.pop()
        reached.add(path)
        for one in imports(path):
            if frame is not None and one == PACKAGE / f"{frame}.py":
                continue
            if room in one.parents:
                todo += [one] if one not in reached and not one.stem.endswith("_passes") else []
            elif str(one.relative_to(PACKAGE)).startswith(STEPS) and one.stem != "threads":
                shared.add(one)
    return reached | shared


def test_names_of_files_are_not_used_everywhere():
    folders = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert not {name for name, number in folders.items() if number > MOST_FOLDERS_OF_A_NAME}


def test_functions_are_verbs_or_what_they_return():
    lone = [
        f"{path.relative_to(PACKAGE)}:{node.name}" for path in FILES for node in functions(path) if is_participle(node)
    ]
    assert len(lone) <= ALLOWED_PARTICIPLES, lone


def test_variables_say_what_they_hold():
    names = [node for path in FILES for node in nodes_of(path) if isinstance(node, ast.Name)]
    empty = [node.id for node in names if isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES]
    assert len(empty) <= ALLOWED_EMPTY_NAMES, Counter(empty)


def test_one_word_constants_do_not_mean_many_numbers():
    numbers = {}
    for path in FILES:
        for node in nodes_of(path)[0].body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                if re.fullmatch("_?[A-Z]+", name) and isinstance(value, ast.Constant):
                    numbers.setdefault(name, set()).add(value.value)
    several = {name: values for name, values in numbers.items() if all(isinstance(one, int | float) for one in values)}
    assert not {name: values for name, values in several.items() if len(values) > MOST_NUMBERS_OF_A_CONSTANT}


@pytest.mark.parametrize("method", MOST_FILES)
def test_a_method_is_read_in_few_files(method):
    files = files_to_open(method)
    assert len(files) <= MOST_FILES[method], sorted(str(path.relative_to(PACKAGE)) for path in files)


def test_the_steps_of_dawid_skene_are_named_and_stand_together():
    files = files_to_open("models/classes/dawid_skene", FRAME)
    assert len(files) <= MOST_FILES_OF_STEPS, sorted(str(path.relative_to(PACKAGE)) for path in files)
    steps = [path.stem for path in files for node in functions(path) if node.name in ("_e_step", "_m_step")]
    assert steps == ["dawid_skene"] * 2


def test_files_that_the_guide_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Thresholds")[0]
    named = re.findall(r"`((?:api|cli|cluster|data|io|models|rankers|report|review|schemes|validation)/[\w/]+)`", text)
    assert len(named) > 40
    assert [name for name in named if not ((PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists())] == []
