"""Renders a document with Jinja, which escapes every value in HTML; in Markdown its own backslash does."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from podferry.components.reports.document import Document

MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]#|~<>&!])")
"""Source: CommonMark 0.31, "Backslash escapes"; `|` divides the cells of a table."""
BACKTICKS = re.compile(r"`+")


def html(document: Document) -> str:
    """A page of HTML that needs nothing else."""
    return _environment().get_template("page.html").render(page=document)


def markdown(document: Document) -> str:
    """The same as Markdown."""
    return _environment().get_template("page.md.html").render(page=document)


def write(path: str, text: str) -> None:
    """Write a page to an artifact's path, whose folder may not exist under KFP's local runner."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def in_line(text: str) -> Markup:
    """A text as one line of Markdown."""
    return Markup(MARKDOWN_SIGNS.sub(r"\\\1", " ".join(text.split())))  # noqa: S704 - escaped here


def block(text: str) -> Markup:
    """A text as a block of code: its fence is longer than any that the text contains."""
    longest = max(map(len, BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}\n{text}\n{fence}")  # noqa: S704 - nothing in a block of code is markup


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(in_line=in_line, block=block)
    return environment
