"""Finds what runs that were killed have left on this machine, and says what of it is not durable.

Only what belongs to this user is opened: the directories of others are private. Nothing of a run in which a
process lives, or which such a run uses as well, is ever a leftover.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from podferry.contract.errors import FerryError, Problem, Refused
from podferry.sidecar.checkpoint.detect.trainer_processes import trainer_of
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.launch.leftover_contents import (
    Leftover,
    all_paths,
    leftover_of_run,
    leftover_of_unknown,
)
from podferry.sidecar.launch.local_directories import PREFIX, found_below, memory_root, run_roots
from podferry.sidecar.launch.run_record import RunRecord, read_record
from podferry.sidecar.runtime.file_lock import holders, is_locked, release, try_acquire

NEW_SECONDS = 60.0
"""A directory without a record that is younger may be of a run that is just starting."""


class Found(msgspec.Struct, frozen=True):
    """This user's leftovers, oldest first; the runs in use, and how many directories others have."""

    leftovers: tuple[Leftover, ...]
    in_use: tuple[RunDirectory, ...]
    others: int


def find_leftovers() -> Found:
    """Look in every place where a run may have left something."""
    own, others = _directories()
    records = {path: record for path in own if (record := _record(path)) is not None}
    data = {Path(record.data) for record in records.values()}
    used, left = _split(records)
    found = [leftover_of_run(path, record) for path, record in left.items()]
    # Of a run in another container, or before a restart of the machine, only the record may be seen here.
    found = [one for one in found if not _is_record_alone(one)]
    rest: dict[str, list[Path]] = {}
    for path in own:
        if path not in records and path not in data:
            rest.setdefault(RunDirectory(path).id, []).append(path)
    found += [leftover_of_unknown(paths) for paths in rest.values() if not any(map(_may_be_in_use, paths))]
    found.sort(key=lambda one: one.started_at)
    return Found(tuple(found), tuple(map(RunDirectory, used)), len(others))


def leftovers_of(destination: str, lineage: str | None) -> list[Leftover]:
    """Leftovers of a lineage that may not be durable: a new run would not resume from them."""
    left = {path: record for path, record in _unused_records().items() if destination in record.spec}
    found = [leftover_of_run(path, record) for path, record in left.items()]
    wanted = (destination, lineage)
    return [one for one in found if (one.destination, one.lineage) == wanted and one.not_durable]


def supersede(new: RunRecord) -> None:
    """Forget runs whose named checkpoint directory is that of a new run, whose agent takes over."""
    for path, record in _unused_records().items():
        own = record.checkpoints is not None and Path(record.checkpoints).is_relative_to(record.data)
        same = not own and record.checkpoints == new.checkpoints and record.outputs in {None, new.outputs}
        if record.checkpoints is not None and same and (lock := try_acquire(path)) is not None:
            for directory in (record.data, path):
                shutil.rmtree(directory, ignore_errors=True)
            release(lock)


def remove_empty_records() -> None:
    """Remove runs whose directories have been removed: nothing can be uploaded from them."""
    for path, record in _unused_records().items():
        if not any(Path(name).exists() for name in record.temporary) and record.view.is_present():
            with suppress(FerryError):
                found = leftover_of_run(path, record)
                if _is_record_alone(found) and not found.problem:
                    remove(found)


def _is_record_alone(leftover: Leftover) -> bool:
    return len(leftover.paths) == 1 and not leftover.not_durable


def use_problem(run: RunDirectory) -> Problem:
    """Who uses the directory of a run, and what to do for its end."""
    locks = {"command": run.path, "training process": run.trainer_lock, "agent": run.agent_lock}
    users = {who: holders(lock) for who, lock in locks.items() if is_locked(lock)}
    words = [f"its {who} is process {', '.join(map(str, pids)) or 'unknown'}" for who, pids in users.items()]
    pids = next((pids for who, pids in users.items() if who != "agent" and pids), [])
    stop = f"Stop it first: kill {pids[0]}" if pids else "Wait until its agent has ended"
    return Problem(f"{run.id} is in use: that run is not over", "; ".join(words), stop)


def left_by(run: RunDirectory) -> Problem | None:
    """What a run that has ended leaves that is not durable; what has no value is removed."""
    with suppress(FerryError, OSError):
        found = leftover_of_run(run.path, read_record(run.record))
        if found.checkpoints and (living := trainer_of(found.checkpoints).look()):
            who = f"process {', '.join(map(str, living))} of the command still runs"
            remedy = f"Once it has ended, run `podferry leftovers upload {found.id}`"
            return Problem(f"{found.checkpoints} is kept", who, remedy)
        if found.not_durable or found.problem:
            where = " and ".join(filter(None, (found.checkpoints, found.outputs)))
            remedy = f"Run `podferry leftovers upload {found.id}` to upload it"
            return Problem(f"what is not durable is left in {where}", ", ".join(found.not_durable), remedy)
        remove(found)
    return None


def not_durable_of(run: RunDirectory) -> tuple[str, ...]:
    """What is not known to be durable of a run, whose agent may live."""
    with suppress(FerryError, OSError):
        return leftover_of_run(run.path, read_record(run.record)).not_durable
    return ()


def _unused_records() -> dict[Path, RunRecord]:
    return _split({path: record for path in _directories()[0] if (record := _record(path)) is not None})[1]


def _directories() -> tuple[list[Path], set[str]]:
    """The directories of this user's runs, and the names of those of other users."""
    uid, own, others = os.getuid(), [], set[str]()
    for path in found_below([*run_roots(), memory_root()]):
        with suppress(OSError):
            if path.name.startswith(f"{PREFIX}{uid}-") and path.lstat().st_uid == uid:
                own.append(path)
            elif path.name.split("-")[1].isdecimal():
                others.add(path.name)
    return own, others


def _split(records: Mapping[Path, RunRecord]) -> tuple[list[Path], dict[Path, RunRecord]]:
    """The runs in use, and those that are not and share no directory with them."""
    used = [path for path in records if RunDirectory(path).in_use()]
    used_paths = {name for path in used for name in all_paths(path, records[path])}
    left = {path: record for path, record in records.items() if path not in used}
    return used, {
        path: record for path, record in left.items() if not used_paths & set(all_paths(path, record))
    }


def claim(leftover: Leftover) -> int:
    """Lock a leftover, for `release`; raises `Refused` if a process uses it by now, or has removed it."""
    run = RunDirectory(Path(leftover.paths[-1]))
    lock = try_acquire(run.path)
    if lock is None and not run.path.exists():
        raise Refused.of(f"{run.id} is gone", str(run.path), "Another process has removed it")
    if lock is None or is_locked(run.trainer_lock) or is_locked(run.agent_lock):
        if lock is not None:
            release(lock)
        raise Refused(use_problem(run))
    return lock


def remove(leftover: Leftover) -> None:
    """Remove a leftover; raises `Refused` if a process uses it by now, or some of it cannot be removed."""
    lock = claim(leftover)
    try:
        for path in leftover.paths:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        release(lock)
    left = [path for path in leftover.paths if Path(path).exists()]
    if left:
        what, remedy = f"{leftover.id} cannot be removed completely", "Remove it as the owner of its files"
        raise Refused.of(what, f"left: {', '.join(left)}", remedy)


def _record(path: Path) -> RunRecord | None:
    with suppress(OSError, FerryError):
        return read_record(RunDirectory(path).record)
    return None


def _may_be_in_use(path: Path) -> bool:
    """Whether a directory without a record is of a run that starts, or of a process that names it."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < NEW_SECONDS:
            return True
        return any(str(path).encode() in words for words in _command_lines())
    return True


def _command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (process / "cmdline").read_bytes()
