"""Errors for listings that are not what was asked for, break off, or have no end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podferry.contract.errors import Corrupt, Unavailable
from podferry.contract.uri import Uri


def check_prefix(uri: Uri, keys: Iterable[str], prefix: str) -> None:
    """Raise `Corrupt` if a key in the listing of a location does not begin with its prefix."""
    other = next((key for key in keys if not key.startswith(prefix)), None)
    if other is not None:
        what = f"the store lists what is not below {uri}"
        remedy = "Check the endpoint and what is between: the prefix of the request is ignored"
        raise Corrupt.of(what, f"the key {other[:200]!a}", remedy)


def check_delimiter(uri: Uri, delimiter: str, directories: Sequence[str]) -> None:
    """Raise `Corrupt` if a listing without a delimiter has one, or has directories."""
    if delimiter or directories:
        found = (
            f"the directory {directories[0][:200]!a}" if directories else f"the delimiter {delimiter[:40]!a}"
        )
        what = f"the store lists directories of {uri} in the place of their objects"
        remedy = "Check the endpoint and what is between: the request has no delimiter"
        raise Corrupt.of(what, found, remedy)


def endless_listing(uri: Uri, listed: int, measured: str) -> Corrupt:
    """The error for a listing without end, after this many objects."""
    what = f"the listing of {uri} has no end"
    remedy = "Check the endpoint and what is between: a page comes again"
    return Corrupt.of(what, f"{listed:,} objects; {measured}", remedy)


def incomplete_listing(uri: Uri, listed: int, why: str = "") -> Corrupt:
    """The error for a listing with more behind its last name, and no way to it; `why`, if it is known."""
    what = f"the store does not list all of {uri}"
    measured = f"no way behind {listed:,} names{': ' if why else ''}{why}"
    return Corrupt.of(what, measured, "Use a store that supports ListObjectsV2")


def missing_page(uri: Uri, listed: int) -> Unavailable:
    """The error for a page that is not found behind others: what has been listed in part exists."""
    what = f"the listing of {uri} breaks off"
    remedy = "Check the endpoint and what is between, or try again later"
    return Unavailable.of(what, f"the page behind {listed:,} names is not found", remedy)
