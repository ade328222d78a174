"""The path of an address."""

from __future__ import annotations

from urllib.parse import urlsplit


def address_path(url: str) -> str:
    """The path of a URL, encoded; an empty one is that of the root. Source: RFC 3986, section 6.2.3."""
    return urlsplit(url).path or "/"


def is_directory_address(url: str) -> bool:
    """Whether a URL is that of a directory: its path ends with a slash."""
    return address_path(url).endswith("/")
