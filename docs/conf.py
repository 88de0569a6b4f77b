"""How Sphinx builds the site: ``python -m sphinx -W -b html docs build/site``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from pygments.lexers.special import TextLexer

import crowdrank

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

project = "crowdrank"
author = "The crowdrank authors"
project_copyright = "The crowdrank authors, Apache-2.0"
release = version = crowdrank.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["myst.header"]
html_math_renderer = "mathml"
add_module_names = False
toc_object_entries = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "min_reported_time": 3600,
    "nested_sections": False,
}
exclude_patterns = ["gallery"]

html_theme = "pydata_sphinx_theme"
html_title = "crowdrank"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_sidebars = {"start": []}  # it has no pages below it
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    # pages of wide tables need the room
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{
            page: []
            for page in ("papers", "peers", *(f"evidence/{one.stem}" for one in (DOCS / "evidence").glob("*.md")))
        },
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
}


def mathml(tex: str, display: str) -> str:
    """A formula as MathML, which browsers draw by themselves: no script, no font, no network."""
    return convert(tex.strip(), display=display)


def inline_math(translator: Any, node: Any) -> None:
    """Write a formula within a line."""
    from docutils import nodes

    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block_math(translator: Any, node: Any) -> None:
    """Write a formula of its own."""
    from docutils import nodes

    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def link_papers(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the papers that a docstring cites into words; the page of references lists them."""
    lines[:] = [re.sub(r"\[([A-Z]\w+\d\d)\]_", r":doc:`\1 </references>`", line) for line in lines]


def setup(app: Any) -> None:
    """Tell Sphinx about formulas and papers."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-docstring", link_papers)
