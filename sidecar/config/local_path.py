"""Paths of this machine: distinguished from URIs, and made if they are missing."""

from __future__ import annotations

import os
from pathlib import Path

from podferry.contract.corrected_uri import MISSPELLED_URI, corrected_uri
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.uri import BUCKET_PATH


def is_local_path(text: str) -> bool:
    """Whether a location is a path; anything else is for `parse_uri` to read, or to refuse with a remedy.

    `s3:/x` is no path; `bucket/x` and `user@host:/x` are none, unless there is a directory of that name: a
    checkpoint would end in a new local directory, in silence.
    """
    if "://" in text:
        return False
    if corrected_uri(text) is None and BUCKET_PATH.fullmatch(text) is None:
        return True
    return MISSPELLED_URI.fullmatch(text) is None and Path(text.partition("/")[0]).exists()


def parse_directory(text: str) -> Path:
    """The directory that an option names; raises `InvalidSpec` without one.

    Otherwise an unset variable in a script would be the current directory.
    """
    if not text.strip():
        raise InvalidSpec.of("it names no directory", repr(text), "Give a path, or leave it out")
    return Path(text).expanduser()


def sibling_dir(directory: Path) -> Path:
    """Podferry's own files for a user's directory: next to it, since a trainer lists what is in it."""
    return directory.with_name(directory.name + ".podferry")


def ensure_dir(path: Path) -> Problem | None:
    """Create a directory unless it exists; the problem if it cannot be created or written."""
    what = f"the directory {path} cannot be created"
    if not path.parent.is_dir():
        nearest = next(parent for parent in path.parents if parent.is_dir())
        return Problem(what, f"{nearest} is the nearest that exists", f"Run `mkdir -p {path}`")
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError as error:
        return Problem(what, str(error.strerror), "Choose another name, or move the file away")
    except OSError as error:
        return Problem(what, str(error.strerror), "Choose a writable place")
    if not os.access(path, os.W_OK | os.X_OK):
        return Problem(f"the directory {path} is not writable", remedy="Choose another, or change its mode")
    return None
