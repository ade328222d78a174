"""Globs of locations and endpoints: whether a policy's list allows one.

Scheme, host and path are matched apart, so that no wildcard reaches across their ends: `https://*.lab/` must
not match `https://elsewhere/x.lab/`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from podferry.contract.lazy_pattern import lazy_pattern

ANY = "*"
SEPARATORS = lazy_pattern(r"[/\\]")
"""Between the parts of a path; servers on Windows take both."""
IPV6_ADDRESS = re.compile(r"\[(?=[^\]]*:[^\]]*:)([0-9A-Fa-f:.%]+)\]")
"""In brackets; in a glob these would be a set of characters."""
BRACKETED_HOST = lazy_pattern(r"\[[^\[\]]*\](:\d*)?")
"""An address of IPv6, and a port."""
Globs = Sequence[str]


class _Parts(NamedTuple):
    """Parts of a location or of a glob; the scheme is empty without one, the user as well.

    Attributes:
        scheme: What is before `://`.
        authority: User and host.
        user: Or Azure's container.
        host: With its port; or a bucket.
        path: With its first slash; empty without one.
    """

    scheme: str
    authority: str
    user: str
    host: str
    path: str


def allows(globs: Globs, location: str) -> bool:
    """Whether one of the globs matches; a location with `..` is matched only by `*`.

    A `*` matches within the host (or bucket), or within the path, where it matches slashes too. A glob that
    ends with `/` matches everything below it; one that ends with `*` in the host, any path of these hosts.
    What is before an `@`, a user or Azure's container, is also matched apart: `sftp://nas*` must not match
    `sftp://nas@elsewhere`. An address without a scheme is matched by host and port; a glob without one
    matches nothing.
    """
    if ANY in globs:
        return True
    if ".." in SEPARATORS.split(location):
        return False
    parts = _parts(location)
    if is_misbracketed(parts.host):
        return False
    return any(_matches(parts, glob) for glob in globs)


def is_misbracketed(host: str) -> bool:
    """Whether only a part of a host is in brackets.

    Python connects to the address in `[ADDRESS].example.com`, which `*.example.com` must not match.
    """
    return ("[" in host or "]" in host) and BRACKETED_HOST.fullmatch(host) is None


def _matches(location: _Parts, text: str) -> bool:
    glob = _parts(IPV6_ADDRESS.sub(r"[[]\1]", text))
    return (
        bool(glob.scheme)
        and (not location.scheme or fnmatchcase(location.scheme, glob.scheme))
        and fnmatchcase(location.authority, glob.authority)
        and (not location.user or _matches_user(location, glob))
        and _matches_path(location.path, glob)
    )


def _matches_user(location: _Parts, glob: _Parts) -> bool:
    return fnmatchcase(location.host, glob.host) and fnmatchcase(location.user, glob.user or ANY)


def _matches_path(path: str, glob: _Parts) -> bool:
    if not glob.path:
        return path in {"", "/"} or glob.host.endswith(ANY)
    below = glob.path.endswith("/") and fnmatchcase(f"{path}/", f"{glob.path}*")
    return below or fnmatchcase(path, glob.path)


def _parts(text: str) -> _Parts:
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    return _Parts(scheme, authority, user, host, slash + path)
