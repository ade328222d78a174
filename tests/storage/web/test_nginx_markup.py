"""Pages of nginx: the expression finds in them what the parser finds, and takes no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.web.markup import WebMarkup
from podferry.storage.web.nginx_markup import NginxMarkup, nginx_markup

LINES = {
    "a.bin": "a.bin",
    "b%20c%23.bin": "b c#.bin",
    "train/": "train/",
    "%E2%82%AC.txt": "€.txt",
    "it's~(1)+@,;=$!*.txt": "it's",
    "long-name": "a-name-of-more-than-fifty-characters-is-cut-lik..&gt;",
}


def line(target: str, text: str) -> str:
    return f'<a href="{target}">{text}</a>    24-Nov-2026 03:57    30000\r\n'


def page_of(lines: str, title: str = "Index of /set/", body: str = "<body>") -> str:
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n{body}\r\n<h1>{title}</h1><hr>"
        f'<pre><a href="../">../</a>\r\n{lines}</pre><hr></body>\r\n</html>\r\n'
    )


def parsed(text: str) -> NginxMarkup:
    """What the parser of other pages finds."""
    page = WebMarkup()
    page.feed(text)
    page.close()
    return NginxMarkup(
        *(page.links, page.headings, page.base, page.next_page, tuple(page.frames)),
        *(tuple(page.more_labels), page.has_login, page.has_script, page.has_form, page.is_bare),
    )


ALL = "".join(line(*each) for each in LINES.items())


@pytest.mark.parametrize(
    "text",
    [page_of(ALL), page_of(""), page_of(ALL).replace("\r", ""), page_of(ALL, body='<body bgcolor="white">')],
)
def test_a_page_of_nginx_is_read_as_the_parser_reads_it(text: str) -> None:
    assert nginx_markup(text) == parsed(text)


PARTS = ['<a href="', '">', "</a>", "\r\n", " ", "x", "%41", "/", "#", "&gt;", "&", "<!--", "-->", "<"]


@given(st.lists(st.sampled_from([*PARTS, ALL]), max_size=12))
def test_whatever_is_taken_is_read_as_the_parser_reads_it(parts: list[str]) -> None:
    text = page_of("".join(parts))
    assert nginx_markup(text) in (None, parsed(text))


@pytest.mark.parametrize(
    "text",
    [
        page_of("<!--" + ALL + "-->"),
        page_of("<script>" + ALL + "</script>"),
        page_of(line("javascript:x()", "more")),
        page_of(line("#more", "more")),
        page_of(line("a?page=2", "next")),
        page_of(line("a&amp;b", "a&b")),
        page_of('<a href="a" rel="next">a</a>\r\n'),
        page_of(ALL, title="Index of /a&amp;b/"),
        page_of(ALL).replace("<pre>", "<form><pre>"),
        page_of(ALL) + '<a href="c">c</a>',
        page_of(ALL)[:-30],
        "",
    ],
)
def test_other_pages_are_left_to_the_parser(text: str) -> None:
    assert nginx_markup(text) is None
