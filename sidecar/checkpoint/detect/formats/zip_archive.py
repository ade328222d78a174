"""Zip archives of no particular writer: whole, but perhaps without their last members.

`with ZipFile(…)` and NumPy's `savez` write the directory also when an exception ends them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from podferry.sidecar.checkpoint.detect.formats.verdict import (
    INCONCLUSIVE,
    FormatVerdict,
    Members,
    incomplete,
    unproven,
)
from podferry.sidecar.checkpoint.detect.formats.zip_directory import ZipMember, read_members, starts_like_zip


def zip_verdict(path: Path) -> FormatVerdict:
    """For suffixes that mean a zip archive; an empty file is one whose writing has just begun."""
    return maybe_zip_verdict(path) if path.stat().st_size else incomplete("it is empty")


def maybe_zip_verdict(path: Path) -> FormatVerdict:
    """For suffixes of many formats: a zip archive must be whole, any other format is inconclusive."""
    with path.open("rb") as file:
        if not path.stat().st_size or not starts_like_zip(file):
            return INCONCLUSIVE
        return unproven(names_and_sizes(read_members(file)))


def names_and_sizes(members: Iterable[ZipMember], whole: Collection[str] = ()) -> Members:
    """What a verdict says about an archive, of which some members are whole for certain."""
    return tuple((member.name, 0 if member.name in whole else member.size) for member in members)
