"""Which names may become files below a directory, and why the others may not."""

from __future__ import annotations

import re

from podferry.contract.errors import Problem

LONGEST_PART = 255
"""Bytes of one path component: NAME_MAX of Linux and macOS."""
PLAIN = re.compile(r"(?:(?!\.\.?/)[ -.0-~]+/)*(?!\.\.?\Z)[ -.0-~]+")
"""Names that nothing is wrong with, as most are: there may be millions, and each is looked at twice."""


def name_problem(name: str) -> Problem | None:
    """Why a relative name must not become a path below a directory, or None where it may.

    A name from a store or a document is data of somebody else: it must neither leave the directory nor
    hide what it is.
    """
    if len(name) <= LONGEST_PART and PLAIN.fullmatch(name):
        return None
    parts = name.split("/")
    if name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        reason = "the name is no plain relative path"
    elif any(0xD800 <= ord(character) < 0xE000 for character in name):
        reason = "the name is not UTF-8"  # bytes of a file system that Python could not decode
    elif not _is_text(name):
        reason = "the name is no UTF-8"
    elif any(ord(character) < 32 or ord(character) == 127 for character in name):
        reason = "the name holds control characters"
    elif any(len(part.encode()) > LONGEST_PART for part in parts):
        reason = f"a part of the name is longer than {LONGEST_PART} bytes"
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


def clashes(names: list[str]) -> list[Problem]:
    """Names that need the same path to be a file and a directory."""
    taken = set(names)
    parents = {
        name[:cut]
        for name in names
        for cut, character in enumerate(name)
        if character == "/" and name[:cut] in taken
    }
    remedy = "Rename one of them at its source"
    return [Problem("a name is both a file and a directory", repr(name), remedy) for name in sorted(parents)]
