"""Checks which names may become files below a directory."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from podferry.contract.errors import Problem

MAX_COMPONENT_BYTES = 255
"""Bytes of one path component: NAME_MAX of Linux and macOS."""
MAX_NAME_BYTES = 3840
"""Bytes of a full name: PATH_MAX of Linux is 4096, and the directory above it needs its share."""
MAX_QUOTED = 200
"""Characters of a name in a message."""
PLAIN_NAME = re.compile(r"(?:(?!\.\.?/)[ -.0-~]+/)*(?!\.\.?\Z)[ -.0-~]+")
"""Fast path for valid names, which most are: there may be millions, and each is checked twice."""


def name_problem(name: str) -> Problem | None:
    """Why a relative name must not become a path below a directory, or None if it may.

    Names from stores and documents are untrusted: they must not leave the directory or hide what they are.
    """
    if len(name) <= MAX_COMPONENT_BYTES and PLAIN_NAME.fullmatch(name):
        return None
    parts = name.split("/")
    if name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        reason = "the name is not a plain relative path"
    elif not _is_text(name):
        reason = "the name is not UTF-8"
    elif any(ord(character) < 32 or 127 <= ord(character) < 160 for character in name):
        reason = "the name contains control characters"
    elif any(len(part.encode()) > MAX_COMPONENT_BYTES for part in parts):
        reason = f"a component of the name is longer than {MAX_COMPONENT_BYTES} bytes"
    elif len(name.encode()) > MAX_NAME_BYTES:
        reason = f"the name is longer than {MAX_NAME_BYTES:,} bytes"
    else:
        return None
    return Problem(reason, quoted(name), "Exclude it or rename it at its source")


def _is_text(name: str) -> bool:
    """Local file names are bytes; Python decodes each byte that is not UTF-8 to half a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def duplicates(names: Sequence[str]) -> list[str]:
    """Names that a sorted list has more than once."""
    return sorted({name for name, following in pairwise(names) if name == following})


def clashes(names: Collection[str]) -> list[Problem]:
    """Names that need the same path to be both a file and a directory.

    There may be millions: a set of the directories is much smaller than one of the names.
    """
    parents = set[str]()
    for name in names:
        parent = name.rpartition("/")[0]
        while parent and parent not in parents:
            parents.add(parent)
            parent = parent.rpartition("/")[0]
    remedy = "Rename one of them at its source"
    both = sorted({name for name in names if name in parents})
    return [Problem("a name is both a file and a directory", quoted(name), remedy) for name in both]


def quoted(name: str) -> str:
    """A name for a message: what would steer a terminal, or is no text, is escaped."""
    return repr(name)[:MAX_QUOTED]


def caseless(name: str) -> str:
    """Equal for names that are one file on a case-insensitive file system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def case_clashes(names: Iterable[str]) -> list[Problem]:
    """Names that are one file on a case-insensitive file system.

    Such file systems (macOS, vfat, Windows shares) also treat different Unicode forms of a letter as equal. A
    file that is renamed in would silently replace the other.
    """
    same: dict[str, list[str]] = {}
    for name in names:
        same.setdefault(caseless(name), []).append(name)
    what = "names that differ only in case are one file on the file system of the dataset path"
    remedy = "Choose a dataset path on another file system, or rename one of them at its source"
    groups = (sorted(group) for group in same.values() if len(group) > 1)
    return [Problem(what, ", ".join(map(ascii, group))[:200], remedy) for group in groups] + clashes(same)
