"""Responses that do not come from the service: a web server listens at the endpoint, or is between."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from podferry.storage.http.page_detection import is_html
from podferry.storage.http.store_client import StoreResponse

PAGE_STATUSES = (404, 405)
"""With a page, they come from a web server. Those of other errors may be a gateway's."""
EXCERPT_CHARACTERS = 60
"""Enough to recognize a page by."""
MAYBE_SECRET = re.compile(r"[A-Za-z0-9+=_-]{20,}")
"""A page may repeat the headers of the request, with a session token in them."""


def is_foreign_page(response: StoreResponse) -> bool:
    """Whether a web server says that it does not have a path, where a service has an error of its own.

    There has to be a page: a response to HEAD has none, and moto gives it the type of one.
    """
    has_page = bool(response.text) and is_html(response.headers.get("Content-Type", ""))
    return response.status in PAGE_STATUSES and has_page


def excerpt(response: StoreResponse) -> str:
    """What identifies a response to a reader: its type and first characters, or where it leads."""
    if location := response.headers.get("Location"):
        target = urlsplit(location)._replace(query="", fragment="")  # which may have a token
        shown = target._replace(netloc=target.netloc.rpartition("@")[2]).geturl()
        return f"Location {shown[:200]!a}"
    kind = response.headers.get("Content-Type", "no content type")
    if encoding := response.headers.get("Content-Encoding"):
        return f"{kind[:EXCERPT_CHARACTERS]}: Content-Encoding {encoding[:20]}, which was not requested"
    text = MAYBE_SECRET.sub("…", response.text[:4096]).strip()
    said = f"{text[:EXCERPT_CHARACTERS]!a}" if text else "an empty body"
    return f"{kind[:EXCERPT_CHARACTERS]}: {said}"
