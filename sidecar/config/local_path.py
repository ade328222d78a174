"""Distinguishes paths of this machine from URIs: a location of `podferry run` or `ferry` may be either."""

from __future__ import annotations

from pathlib import Path

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import BUCKET_PATH, corrected_uri


def is_local_path(text: str) -> bool:
    """Whether a location is a path; anything else is for `parse_uri` to read, or to refuse with a remedy.

    `s3:/x` and `bucket/x` are not paths, unless there is a directory of that name: a checkpoint would end in
    a new local directory, in silence.
    """
    if "://" in text or corrected_uri(text):
        return False
    return BUCKET_PATH.fullmatch(text) is None or Path(text.partition("/")[0]).exists()


def parse_directory(text: str) -> Path:
    """The directory that an option names; raises `InvalidSpec` without one.

    Otherwise an unset variable in a script would be the current directory.
    """
    if not text.strip():
        raise InvalidSpec.of("it names no directory", repr(text), "Give a path, or leave it out")
    return Path(text).expanduser()
