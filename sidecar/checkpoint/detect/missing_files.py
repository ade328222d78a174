"""Which files a checkpoint still lacks by the framework rules. Pure, over names and times."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, KNOWN_NAMES, FrameworkRule
from podferry.sidecar.runtime.file_identity import FileIdentity

SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>.*)")
PREFIX = re.compile("…|<.*>")


@dataclass(frozen=True, slots=True)
class MissingFile:
    """What a framework rule still waits for.

    Attributes:
        reason: What is missing, for people.
        blocking: The checkpoint is incomplete without it; otherwise it is complete after the long pause.
        sticky_name: Name of the missing file if its rule is sticky, else empty.
    """

    reason: str
    blocking: bool
    sticky_name: str = ""


def missing_files(files: Mapping[str, FileIdentity], *, gang: bool) -> list[MissingFile]:
    """What a checkpoint still lacks by all framework rules.

    Args:
        files: Its files, by relative name.
        gang: This pod has only its part, and is not the coordinator's.
    """
    known = {name: file for name, file in files.items() if KNOWN_NAMES.fullmatch(name.rpartition("/")[2])}
    return [missing for rule in FRAMEWORK_RULES for missing in _missing(rule, known, gang=gang)]


def _missing(rule: FrameworkRule, files: Mapping[str, FileIdentity], *, gang: bool) -> Iterator[MissingFile]:
    recognised_by, written_last = rule.compiled
    last_files = _by_prefix(written_last, files)
    for prefix, names in _by_prefix(recognised_by, files).items():
        if rule.numbered_shards and not gang:
            yield from _missing_shards(names)
        newest = max(names, key=lambda name: files[name].mtime_ns)
        if prefix not in last_files:
            yield _missing_last(rule, prefix, newest, elsewhere=gang and not _from_rank_0(names))
        elif rule.last_is_newest:
            last = max(last_files[prefix], key=lambda name: files[name].mtime_ns)
            if files[last].mtime_ns < files[newest].mtime_ns:
                yield MissingFile(f"{last} is older than {newest}", blocking=True)


def confirmed_files(files: Mapping[str, FileIdentity]) -> set[str]:
    """The files that were written before the file that their framework writes last."""
    confirmed: set[str] = set()
    for rule in FRAMEWORK_RULES:
        if rule.confirms_others:
            for prefix, names in _by_prefix(rule.compiled[1], files).items():
                newest = max(files[name].mtime_ns for name in names)
                before = {name for name, identity in files.items() if identity.mtime_ns <= newest}
                starts = (f"{prefix}/", f"{prefix}.") if prefix else ("",)
                confirmed |= {name for name in before if name.startswith(starts)}
    return confirmed


def _by_prefix(
    patterns: tuple[re.Pattern[str], ...], files: Mapping[str, FileIdentity]
) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in files:
        match = next(filter(None, (pattern.fullmatch(name) for pattern in patterns)), None)
        if match is not None:
            found[match[1] or ""].append(name)
    return found


def _missing_last(rule: FrameworkRule, prefix: str, newest: str, *, elsewhere: bool) -> MissingFile:
    """`elsewhere`: another pod may have it."""
    if not rule.written_last:
        return MissingFile(f"{newest}: {rule.notes}", blocking=False)
    name = PREFIX.sub(lambda _: prefix, rule.written_last[0]).lstrip("/")
    blocking = rule.blocking and not (rule.coordinator_only and elsewhere)
    return MissingFile(f"{newest} exists, {name} does not yet", blocking, name if rule.sticky else "")


def _from_rank_0(names: list[str]) -> bool:
    """Whether the shards are those of rank 0, the coordinator by default: its pod gets the last file."""
    return any(name.rpartition("/")[2].startswith("__0_") for name in names)


def _missing_shards(names: list[str]) -> Iterator[MissingFile]:
    sets = defaultdict(set)
    for match in filter(None, map(SHARD.fullmatch, names)):
        sets[match["stem"], match["count"], match["suffix"]].add(match["number"])
    for (stem, count, suffix), numbers in sets.items():
        if len(numbers) < int(count):
            pattern = f"{stem}-*-of-{count}{suffix}"
            yield MissingFile(f"{len(numbers)} of {int(count)} shards {pattern} exist", blocking=True)
