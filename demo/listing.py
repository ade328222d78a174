"""The pages of a bucket's listing. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """Names in their order; `token` is where the next page begins, empty at the end."""

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]
    token: str


def page_of(keys: Iterable[str], prefix: str, delimiter: str, after: str, most: int) -> Page:
    """What follows `after` below a prefix: keys, and what they have in common up to a delimiter.

    Source: S3's API reference, ListObjectsV2.
    """
    found: dict[str, bool] = {}
    for key in sorted(keys, key=str.encode):
        if not key.startswith(prefix) or key.encode() <= after.encode() or _is_passed(key, after, delimiter):
            continue
        head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        name = prefix + head + cut if cut else key
        if name not in found and len(found) == most:
            return _page(found, next(reversed(found)))
        found[name] = bool(cut)
    return _page(found, "")


def _is_passed(key: str, after: str, delimiter: str) -> bool:
    """Whether a common prefix that ended a page holds the key."""
    return bool(delimiter) and after.endswith(delimiter) and key.startswith(after)


def _page(found: dict[str, bool], token: str) -> Page:
    keys = tuple(name for name, common in found.items() if not common)
    return Page(keys, tuple(name for name, common in found.items() if common), token)
