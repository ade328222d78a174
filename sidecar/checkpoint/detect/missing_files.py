"""What the rules of the table of writers still miss in a checkpoint. Pure, over names and times."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, KNOWN, FrameworkRule, Without
from podferry.sidecar.runtime.file_identity import FileIdentity

SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>.*)")
PLACE = re.compile("…|<.*>")


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """What a writer's rule still waits for.

    Attributes:
        reason: What is missing, for people.
        without: Whether it may be whole all the same, after the long pause.
        kept: The name that is missing, where its writer keeps to it within a series; else empty.
    """

    reason: str
    without: Without
    kept: str = ""


def missing_files(files: Mapping[str, FileIdentity], *, gang: bool) -> list[MissingFiles]:
    """What the rules of all writers still miss in a checkpoint.

    Args:
        files: Its files, by relative name.
        gang: This pod has only its part, and is not the coordinator's.
    """
    known = {name: seen for name, seen in files.items() if KNOWN.fullmatch(name.rpartition("/")[2])}
    return [lack for writer in FRAMEWORK_RULES for lack in _lacks(writer, known, gang=gang)]


def _lacks(writer: FrameworkRule, files: Mapping[str, FileIdentity], *, gang: bool) -> Iterator[MissingFiles]:
    signs, marks = writer.patterns
    lasts = _places(marks, files)
    for place, names in _places(signs, files).items():
        if writer.counted and not gang:
            yield from _missing(names)
        newest = max(names, key=lambda name: files[name].mtime_ns)
        if place not in lasts:
            yield _absent(writer, place, newest, alone=gang and not _leads(names))
        elif writer.ordered:
            mark = max(lasts[place], key=lambda name: files[name].mtime_ns)
            if files[mark].mtime_ns < files[newest].mtime_ns:
                yield MissingFiles(f"{mark} is older than {newest}", Without.NEVER)


def ended(files: Mapping[str, FileIdentity]) -> set[str]:
    """The files that were written before what their writer leaves last."""
    found: set[str] = set()
    for writer in FRAMEWORK_RULES:
        if writer.ends:
            marks = _places(writer.patterns[1], files)
            for place, names in marks.items():
                newest = max(files[name].mtime_ns for name in names)
                found |= {
                    name
                    for name, seen in files.items()
                    if (not place or name.startswith((f"{place}/", f"{place}."))) and seen.mtime_ns <= newest
                }
    return found


def _places(patterns: tuple[re.Pattern[str], ...], files: Mapping[str, FileIdentity]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in files:
        match = next(filter(None, (pattern.fullmatch(name) for pattern in patterns)), None)
        if match is not None:
            found[match[1] or ""].append(name)
    return found


def _absent(writer: FrameworkRule, place: str, sign: str, *, alone: bool) -> MissingFiles:
    if not writer.last:
        return MissingFiles(f"{sign}: {writer.besides}", Without.PAUSE)
    name = PLACE.sub(lambda _: place, writer.last[0]).lstrip("/")
    without = Without.PAUSE if writer.led and alone else writer.without
    return MissingFiles(f"{sign} is there, {name} is not yet", without, name if writer.kept else "")


def _leads(names: list[str]) -> bool:
    """Whether the shards are rank 0's, which coordinates by default: its pod gets what comes last."""
    return any(name.rpartition("/")[2].startswith("__0_") for name in names)


def _missing(names: list[str]) -> Iterator[MissingFiles]:
    """Sets of shards of which some are not there."""
    sets = defaultdict(set)
    for match in filter(None, map(SHARD.fullmatch, names)):
        sets[match["stem"], match["count"], match["suffix"]].add(match["number"])
    for (stem, count, suffix), numbers in sets.items():
        if len(numbers) < int(count):
            of = f"{stem}-*-of-{count}{suffix}"
            yield MissingFiles(f"{len(numbers)} of {int(count)} shards {of} are there", Without.NEVER)
