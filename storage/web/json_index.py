"""Reads the index of a directory in JSON, as nginx writes it with `autoindex_format json`.

Source: ngx_http_autoindex_module, "autoindex_format".
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from podferry.storage.web.index import WebIndex


class _Member(msgspec.Struct):
    """A member of a directory; its size comes from the file's own response, with the tag."""

    name: str
    type: str


def read_json_index(text: str) -> WebIndex:
    """The names of a listing, encoded as in links.

    Raises:
        ValueError: It is JSON of another kind.
    """
    members = msgspec.json.decode(text, type=list[_Member])
    if not members and "\n" not in text:  # nginx writes an empty directory in three lines
        raise ValueError("an empty list, which any program may send")
    names = frozenset(f"{quote(each.name)}{'/' if each.type == 'directory' else ''}" for each in members)
    return WebIndex(names, skipped=(), next_page="", is_listing=True, has_login=False)
