"""Reads the index pages that nginx generates, by one expression: most are, and `html.parser` takes long.

It takes 10 ms for 1,000 files, and 4 to import. A page with anything else is parsed as any other
(`podferry.storage.web.markup`).
"""

from __future__ import annotations

from typing import NamedTuple

from podferry.contract.lazy_pattern import lazy_pattern

LINK = r"<a href=\"(?:[A-Za-z0-9._~!$'()*+,;=@-]|%[0-9A-F]{2})++/?\">[^<]*+</a>[^<]*+"
"""A line: name, time and size. The text of the link may be cut, and has entities then."""
PAGE = lazy_pattern(
    r"<html>\r?\n<head><title>(?P<title>[^<&]{0,2000})</title></head>\r?\n<body(?: bgcolor=\"white\")?>\r?\n"
    rf"<h1>(?P<heading>[^<&]{{0,2000}})</h1><hr><pre><a href=\"\.\./\">\.\./</a>\r?\n(?P<links>(?:{LINK})*+)"
    r"</pre><hr></body>\r?\n</html>\s*"
)
"""Source: nginx, `src/http/modules/ngx_http_autoindex_module.c`."""
TARGET = lazy_pattern(r"<a href=\"([^\"]*)")


class NginxMarkup(NamedTuple):
    """A generated page, with the attributes of `WebMarkup`."""

    links: list[str]
    headings: list[str]
    base: str = ""
    next_page: str = ""
    frames: tuple[str, ...] = ()
    more_labels: tuple[str, ...] = ()
    has_login: bool = False
    has_script: bool = False
    has_form: bool = False
    is_bare: bool = False


def nginx_markup(text: str) -> NginxMarkup | None:
    """What a page says, or None if nginx has not generated it."""
    found = PAGE.fullmatch(text)
    if found is None:
        return None
    return NginxMarkup(["../", *TARGET.findall(found["links"])], [found["title"], found["heading"]])
