"""Which files a checkpoint still lacks by the framework rules. Pure, over names and times."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from podferry.contract.destination.series import SHARD_NUMBER
from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, KNOWN_NAMES, FrameworkRule
from podferry.sidecar.runtime.file_identity import FileIdentity

SHARD = re.compile(r"(?P<stem>.*?)(?P<number>\d+)(?P<of>[-_]?of[-_]?)(?P<count>\d+)(?P<suffix>.*)")
PREFIX = re.compile("…|<.*>")


def missing_files(files: Mapping[str, FileIdentity], *, gang: bool) -> Iterator[str]:
    """Why a checkpoint is certainly incomplete by the framework rules: what each of them still waits for.

    Args:
        files: Its files, by relative name.
        gang: This pod has only its part, and is not the coordinator's.
    """
    known = {name: file for name, file in files.items() if KNOWN_NAMES.fullmatch(name.rpartition("/")[2])}
    found = (reason for rule in FRAMEWORK_RULES for reason in _missing(rule, known, gang=gang))
    yield from dict.fromkeys(found)  # shards of two rules


def _missing(rule: FrameworkRule, files: Mapping[str, FileIdentity], *, gang: bool) -> Iterator[str]:
    recognised_by, written_last = rule.compiled
    last_files = _by_prefix(written_last, files)
    for prefix, names in _by_prefix(recognised_by, files).items():
        if rule.numbered_shards and not gang:
            yield from _missing_shards(names)
        newest = max(names, key=lambda name: files[name].mtime_ns)
        if prefix in last_files:
            last = max(last_files[prefix], key=lambda name: files[name].mtime_ns)
            if rule.last_is_newest and files[last].mtime_ns < files[newest].mtime_ns:
                yield f"{last} is older than {newest}"
        # Another pod may have it.
        elif rule.blocking and not (rule.coordinator_only and gang and not _from_rank_0(names)):
            name = prefix.join(PREFIX.split(rule.written_last[0])).lstrip("/")
            yield f"{newest} exists, {name} does not yet"


def is_proven_by_framework(name: str, files: Mapping[str, FileIdentity]) -> bool:
    """Whether the file that a framework writes after all others exists and is the newest of the checkpoint.

    Args:
        name: The checkpoint's name.
        files: Its files, by relative name.
    """
    newest = max((identity.mtime_ns for identity in files.values()), default=0)
    for rule in FRAMEWORK_RULES:
        proves, unless = rule.compiled_proof
        last_files = _by_prefix(proves, files).get(name, [])
        recognised = name in _by_prefix(rule.compiled[0], files)
        if recognised and last_files and name not in _by_prefix(unless, files):
            return any(files[last].mtime_ns == newest for last in last_files)
    return False


def _by_prefix(
    patterns: tuple[re.Pattern[str], ...], files: Mapping[str, FileIdentity]
) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in files:
        match = next(filter(None, (pattern.fullmatch(name) for pattern in patterns)), None)
        if match is not None:
            found[match[1] or ""].append(name)
    return found


def _from_rank_0(names: list[str]) -> bool:
    """Whether the shards are those of rank 0, the coordinator by default: its pod gets the last file."""
    return any(name.rpartition("/")[2].startswith("__0_") for name in names)


def _missing_shards(names: list[str]) -> Iterator[str]:
    sets = defaultdict(set)
    shards = (name for name in names if SHARD_NUMBER.search(name.rpartition("/")[2]))
    for match in filter(None, map(SHARD.fullmatch, shards)):
        sets[match["stem"], match["of"], match["count"], match["suffix"]].add(match["number"])
    for (stem, of, count, suffix), numbers in sets.items():
        if len(numbers) < int(count):
            pattern = f"{stem}*{of}{count}{suffix}"
            yield f"{len(numbers)} of {int(count)} shards {pattern} exist"
