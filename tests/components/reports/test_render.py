"""Pages escape everything that comes from outside."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from podferry.components.reports.document import Document, Section, Table
from podferry.components.reports.render import block, html, in_line, markdown, write

HOSTILE = "<script>alert(1)</script> | `x` *y* [z](http://z) & ``` \n# h"
PAGE = Document(
    title=HOSTILE,
    verdict=HOSTILE,
    good=False,
    tables=(Table(HOSTILE, ("a", HOSTILE), ((HOSTILE, "1"),), HOSTILE),),
    sections=(Section(HOSTILE, (HOSTILE,), HOSTILE),),
    notes=(HOSTILE,),
)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_shows_a_value_as_text() -> None:
    reader = Reader()
    reader.feed(html(PAGE))
    assert "script" not in reader.tags
    assert reader.tags.count("td") == 2
    assert sum(HOSTILE in text for text in reader.texts) == 11
    assert 'class="bad"' in html(PAGE)


def test_markdown_has_no_html_and_no_more_headings_or_cells_than_the_page() -> None:
    lines = markdown(PAGE).splitlines()
    (row,) = [line for line in lines if line.endswith("| 1 |")]
    assert row.replace(r"\|", "").count("|") == 3
    fences = [line for line in lines if set(line) == {"`"}]
    assert fences == ["````", "````"]
    start = lines.index("````")
    outside = [*lines[:start], *lines[lines.index("````", start + 1) :]]
    assert len([line for line in outside if line.startswith("#")]) == 3
    assert "".join(outside).replace(r"\<", "").count("<") == 0


@given(st.text())
def test_a_text_stays_in_its_line_and_its_block(text: str) -> None:
    assert len(in_line(text).splitlines()) <= 1
    fence, *_, last = block(text).split("\n")
    assert fence == last
    assert set(fence) == {"`"}
    assert fence not in text


def test_the_folder_of_an_artifact_is_made(tmp_path: Path) -> None:
    write(str(tmp_path / "run/task/report"), "ä")
    assert (tmp_path / "run/task/report").read_text(encoding="utf-8") == "ä"
