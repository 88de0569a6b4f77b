"""The documentation runs, is complete, and is up to date."""

import doctest
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import crowdrank
from crowdrank.protocols import method_name
from crowdrank.registry import FAMILIES, card, method_class, names
from crowdrank_studies import STUDIES

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "examples")]


def blocks(path, language):
    """Fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def files(path):
    """Files that a page shows: a block behind a comment that names it."""
    return dict(re.findall(r"<!-- file: (\S+) -->\n+```\w*\n(.*?)```", path.read_text(), flags=re.DOTALL))


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A folder with the files that a page shows, as the working directory."""

    def enter(page):
        for name, text in files(page).items():
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return enter


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_on_the_page_gives_what_it_says(page, in_folder):
    in_folder(page)
    text = "\n".join(blocks(page, "python"))
    if ">>>" not in text:
        pytest.skip("no Python on this page")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.failures == 0


def without_progress(talk):
    """What was said, without the lines that only a slow machine shows."""
    return re.sub(r"^[a-z ]+ \.\.\.\n", "", talk, flags=re.MULTILINE)


def words(text):
    """Words of what was printed, without the last digits of numbers, which differ from one processor to another."""
    return re.sub(r"\d+\.\d{12,}", lambda number: f"{float(number[0]):.11g}", text).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_on_the_page_give_what_they_say(page, in_folder):
    sessions = blocks(page, "console")
    if not sessions:
        pytest.skip("no commands on this page")
    folder = in_folder(page)
    for session in sessions:
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = run(command, folder)
            assert done.returncode == 0, done.stderr
            shown = words(without_progress(done.stderr) + done.stdout)
            assert shown == words(expected), f"{command} printed:\n{done.stderr}{done.stdout}"


def run(command, folder):
    """Run a crowdrank command of the page with this interpreter."""
    words = command.replace("crowdrank", f"{sys.executable} -m crowdrank", 1)
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}
    return subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, env=environment, timeout=120)


def written_commands(page):
    """Commands that a page shows without their output, word by word: in blocks of a shell, indented, or in a line."""
    text = page.read_text().replace("\\\n", " ")
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
    lines += re.findall(r"^    (crowdrank .*)$", text, re.M)
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    lines += re.findall(r"`(crowdrank [^`]+)`", plain)
    for line in lines:
        # what another program is given, or what stands for something else
        line = re.split(r" (?:\||&&|>) ", " ".join(line.split()))[0].replace("\\|", "|")
        if line.startswith("crowdrank ") and not re.search(r"\.\.\.|\[|…|COMMAND|VERB", line):
            yield shlex.split(line, comments=True)[1:]


def test_commands_without_output_exist_with_their_options():
    from typer.main import get_command

    from crowdrank.cli.app import VERBS, app

    pages, n_commands = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], 0
    for page in pages:
        for words in written_commands(page):
            verb = next((word for word in words if not word.startswith("-")), None)
            if verb is None:
                continue
            assert verb in VERBS, f"{page.name}: crowdrank {' '.join(words)}"
            command, given = get_command(app).commands[verb], words[words.index(verb) + 1 :]
            named = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
            options = [word.partition("=")[0] for word in given if re.match(r"--?[a-zA-Z]", word)]
            wrong = [option for option in options if option not in (*named, "--help", "-h")]
            assert not wrong, f"{page.name}: crowdrank {' '.join(words)} has no {wrong}"
            n_commands += 1
    assert n_commands > 100


def program(name):
    """A program of the documentation, such as the one that makes pages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_generated_pages_are_up_to_date():
    made = program("make").pages()
    pages = {path for path in made if path.parent.name == "methods"}
    assert pages == set((ROOT / "docs" / "methods").glob("*.md")), "a page is left of a method that is gone"
    for path, text in made.items():
        assert path.read_text() == text, f"{path.name} is not up to date; run python docs/make.py"


def test_every_method_answers_a_question_and_says_when_to_use_it():
    questions = program("make").QUESTIONS.values()
    answering = {(family, name) for family, members in questions for name in members.split()}
    assert answering == {(family, name) for family in FAMILIES for name in names(family)}
    for family, name in sorted(answering):
        assert card(family, name).when, f"{name} does not say when to use it"
        assert card(family, name).model, f"{name} does not say its model"


def test_no_page_shows_markup_that_it_does_not_render():
    for page in [*(ROOT / "docs" / "methods").glob("*.md"), ROOT / "docs" / "methods.md"]:
        assert not re.search(r"\.\. math::|:\w+:`|\]_", page.read_text()), page.name


def test_every_paper_that_is_cited_is_listed():
    listed = set(re.findall(r"\*\*(\w+)\*\*", (ROOT / "docs" / "references.md").read_text()))
    cited = {key for path in SOURCES for key in re.findall(r"\[([A-Z]\w+\d\d)\]_", path.read_text())}
    assert cited <= listed, cited - listed


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in FAMILIES for name in names(family)])
def test_every_method_is_described(family, name):
    found = card(family, name)
    assert found.summary.endswith(".")
    assert found.kinds
    for parameter in found.parameters:
        assert parameter.description, f"{name} does not say what {parameter.name} means"


def test_every_public_name_has_an_example():
    for name in crowdrank.__all__:
        value = getattr(crowdrank, name)
        if callable(value):
            assert ">>> " in (inspect.getdoc(value) or ""), f"crowdrank.{name} has no example"


def test_examples_of_the_gallery_are_short():
    for path in sorted((ROOT / "docs" / "gallery").glob("*.py")):
        assert len(path.read_text().splitlines()) <= 40, path.name


def test_a_method_has_its_name_in_snake_case():
    for family, table in FAMILIES.items():
        for name, home in table.items():
            assert method_name(object.__new__(method_class(family, name))) == name, home


def test_every_study_is_on_the_page_with_its_pictures():
    text = (ROOT / "docs" / "studies.md").read_text()
    for name in STUDIES:
        assert f"\n## {name}\n" in text, f"{name} is missing; run docs/make_studies.py with the files of all studies"
    shown = set(re.findall(r"\]\(images/studies/([^)]+)\)", text))
    assert shown == {path.name for path in (ROOT / "docs" / "images" / "studies").iterdir()}


def test_pictures_of_displays_are_up_to_date(tmp_path):
    pictures = program("pictures")
    for path in pictures.draw_displays(*pictures.demo(), tmp_path):
        pictures.shrink(path)
        with Image.open(path) as drawn, Image.open(pictures.IMAGES / path.name) as kept:
            if drawn.info["Software"] != kept.info["Software"]:
                pytest.skip(f"the pictures were drawn by {kept.info['Software']}")
            fresh, former = ([*image.convert("L").resize((48, 48)).tobytes()] for image in (drawn, kept))
        worst = max(abs(a - b) for a, b in zip(fresh, former, strict=True))
        assert worst <= 8, f"{path.name} looks different now; run docs/pictures.py"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            made = target == "examples/index"  # by the gallery, when the site is built
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_and_sources_name_no_machine():
    home = str(Path.home()) + os.sep
    for path in [*PAGES, *SOURCES]:
        text = path.read_text()
        assert str(ROOT) not in text, path
        assert home not in text or len(home) < 3, path
