"""Which names may become files below a directory, and why the others may not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

from podferry.contract.errors import Problem

MAX_COMPONENT_BYTES = 255
"""Bytes of one path component: NAME_MAX of Linux and macOS."""
MAX_NAME_BYTES = 3840
"""Bytes of a whole name: PATH_MAX of Linux is 4096, and the directory that it lies in needs its part."""
PLAIN_NAME = re.compile(r"(?:(?!\.\.?/)[ -.0-~]+/)*(?!\.\.?\Z)[ -.0-~]+")
"""Names that nothing is wrong with, as most are: there may be millions, and each is looked at twice."""


def name_problem(name: str) -> Problem | None:
    """Why a relative name must not become a path below a directory, or None where it may.

    A name from a store or a document is data of somebody else: it must neither leave the directory nor
    hide what it is.
    """
    if len(name) <= MAX_COMPONENT_BYTES and PLAIN_NAME.fullmatch(name):
        return None
    parts = name.split("/")
    if name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        reason = "the name is no plain relative path"
    elif not _is_text(name):
        reason = "the name is not UTF-8"
    elif any(ord(character) < 32 or 127 <= ord(character) < 160 for character in name):
        reason = "the name holds control characters"
    elif any(len(part.encode()) > MAX_COMPONENT_BYTES for part in parts):
        reason = f"a part of the name is longer than {MAX_COMPONENT_BYTES} bytes"
    elif len(name.encode()) > MAX_NAME_BYTES:
        reason = f"the name is longer than {MAX_NAME_BYTES:,} bytes"
    else:
        return None
    return Problem(reason, ascii(name)[:200], "Exclude it or rename it at its source")


def _is_text(name: str) -> bool:
    """Local file names are bytes; Python stands half a surrogate pair in for each that is no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def clashes(names: Collection[str]) -> list[Problem]:
    """Names that need the same path to be a file and a directory.

    There may be millions: a set of the directories is small beside one of the names.
    """
    parents = set[str]()
    for name in names:
        parent = name.rpartition("/")[0]
        while parent and parent not in parents:
            parents.add(parent)
            parent = parent.rpartition("/")[0]
    remedy = "Rename one of them at its source"
    both = sorted({name for name in names if name in parents})
    return [Problem("a name is both a file and a directory", ascii(name)[:200], remedy) for name in both]


def case_clashes(names: Iterable[str]) -> list[Problem]:
    """Names that are one file where a file system takes letters of either case for the same.

    Such file systems (macOS, vfat, shares of Windows) hold different Unicode forms of a letter for the same,
    too. A file that is renamed in would silently replace the other.
    """
    same: dict[str, list[str]] = {}
    for name in names:
        plain = unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
        same.setdefault(plain, []).append(name)
    what = "names that differ in case alone are one file on the stage's file system"
    remedy = "Choose a dataset path on another file system, or rename one of them at its source"
    groups = (sorted(group) for group in same.values() if len(group) > 1)
    return [Problem(what, ", ".join(map(ascii, group))[:200], remedy) for group in groups] + clashes(same)
