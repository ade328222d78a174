"""Parses the HTML of an index page: its links, its headings, and what else may have names of files."""

from __future__ import annotations

import re
from html.parser import HTMLParser

MAX_HEADING = 5000
"""Characters, a little more than the longest path: a heading that is never closed contains the page."""
REFRESH = re.compile(r"\s*[\d.]+\s*[;,]\s*(?:url\s*=)?\s*[\"']?([^\"']+)", re.IGNORECASE)
"""The `content` of a page that redirects to another. Source: HTML, section 4.2.5.3."""
MORE_LABEL = re.compile(r"(next|next page|load more|show more|more|older)[\s.…>»→]*", re.IGNORECASE)
"""Labels of what shows the rest of a list."""
MAX_LABEL = 100
"""Characters; the longest of those labels is far shorter."""


class WebMarkup(HTMLParser):
    """Collects what `podferry.storage.web.index` needs.

    Attributes:
        links: Targets of links.
        base: The address that they are relative to, if the page has one.
        headings: Its title and first headings.
        has_login: Whether there is a field for a password.
        next_page: The target of a link to the next page (`rel="next"`), or empty.
        frames: Addresses of pages that are shown within it, or instead of it after a time.
        more_labels: Labels of buttons, and of links without an address, that may show more names.
        has_script: Whether it has a script.
        has_form: Whether it has a form, or a field without one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.base = ""
        self.headings: list[str] = []
        self.next_page = ""
        self.frames: list[str] = []
        self.more_labels: list[str] = []
        self._label: str | None = None
        self.has_login = self.has_script = self.has_form = False
        self._has_list = self._in_heading = self._has_text = False

    @property
    def is_bare(self) -> bool:
        """Whether this is an empty list without a word: Go's file server writes that."""
        return self._has_list and not self.has_script and not self._has_text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        self._has_list |= tag == "pre"
        self.has_script |= tag == "script"
        self.has_form |= tag in {"form", "input"}
        if tag in {"title", "h1"}:
            self._in_heading = True
            self.headings.append("")
        values = {name: (value or "").strip() for name, value in reversed(attrs)}  # the first one counts
        if tag in {"iframe", "frame"} and values.get("src"):
            self.frames.append(values["src"])
        elif tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self._add_refresh(values.get("content", ""))
        self._handle_link(tag, values)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "base" and not self.base:  # the first one counts: HTML, section 4.2.3
            self.base = values.get("href", "")
        elif tag == "input" and values.get("type", "").lower() == "password":
            self.has_login = True

    def _add_refresh(self, content: str) -> None:
        found = REFRESH.match(content)
        if found:
            self.frames.append(found[1].strip())

    def _handle_link(self, tag: str, values: dict[str, str]) -> None:
        link = values.get("href", "")
        if tag in {"a", "link"} and link and "next" in values.get("rel", "").lower().split():
            self.next_page = self.next_page or link
        if tag == "button" or (tag == "a" and (not link or link.lower().startswith(("#", "javascript:")))):
            self._label = ""

    def handle_endtag(self, tag: str) -> None:
        """See `HTMLParser`."""
        if tag in {"a", "button"} and self._label is not None:
            label, self._label = " ".join(self._label.split()), None
            if MORE_LABEL.fullmatch(label):
                self.more_labels.append(label)
        self._in_heading &= tag not in {"title", "h1"}

    def handle_data(self, data: str) -> None:
        """See `HTMLParser`."""
        if self._label is not None and len(self._label) < MAX_LABEL:
            self._label += data
        self._has_text |= bool(data.strip())
        if self._in_heading and len(self.headings[-1]) < MAX_HEADING:
            self.headings[-1] += data
