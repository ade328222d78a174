"""Moves away what an earlier run left in the checkpoint directory and what would be in this run's way.

That is another version of a file to be restored, and a checkpoint that is proven incomplete: it would be
reported as not durable at the end of every later run. Nothing is deleted: it is renamed, to

    <checkpoints>.podferry-leftovers/<UTC time>/<name>     next to the checkpoint directory, or
    <checkpoints>/.podferry-leftovers/<UTC time>/<name>    in it, if that fails, as on a mount of its own

What is whole stays: an earlier run's last checkpoint that did not become durable is still uploaded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit, step_of
from podferry.contract.errors import Refused
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.format_checks import check_format, missing_shards
from podferry.sidecar.checkpoint.detect.missing_files import missing_files
from podferry.sidecar.checkpoint.detect.unfinished_names import is_unfinished

log = structlog.get_logger(__name__)

SUFFIX = ".podferry-leftovers"
MAX_SHOWN = 50
"""Leftovers that are listed one by one; the log has all of them."""


class Leftovers:
    """What was moved out of one checkpoint directory, before training starts.

    Attributes:
        moved: Where it is now, in order: the first `MAX_SHOWN`.
    """

    def __init__(self, root: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.moved: list[str] = []
        self._root, self._time = root, now().strftime("%Y%m%dT%H%M%SZ")

    def move_away(self, top: str, reason: str) -> None:
        """Move a name at the top of the directory away; raises `Refused` if it cannot be moved."""
        errors = []
        for parent in (self._root.with_name(self._root.name + SUFFIX), self._root / SUFFIX):
            try:
                target = _free_name(parent / self._time, top)
                (self._root / top).rename(target)
            except OSError as error:  # a mount of its own, or the parent directory is not writable
                errors.append(str(error))
                continue
            log.warning(
                "a leftover of an earlier run was moved away", name=top, to=str(target), reason=reason
            )
            self.moved = [*self.moved, str(target)][:MAX_SHOWN]
            return
        remedy = "Move it away yourself, or check the permissions of the directory and its parent"
        raise Refused.of(f"{self._root / top} is a leftover and cannot be moved", "; ".join(errors), remedy)

    def move_torn(self, restored: Commit | None, *, gang: bool) -> None:
        """Move away the checkpoints that are proven incomplete, unless they are older than what was restored.

        Older ones are ignored anyway. `gang`: as in `missing_files`. Raises `Refused` if one cannot be moved.
        """
        _, present = scan_checkpoints(self._root)
        for candidate in present.values():
            files = dict(candidate.files)
            if restored is not None and _is_settled(candidate, restored):
                continue
            reason = _torn(self._root, candidate, gang=gang)
            if reason is not None:
                for top in sorted({name.partition("/")[0] for name in files}):
                    self.move_away(top, reason)


def _free_name(directory: Path, top: str) -> Path:
    """A path in a directory, which is created, that does not exist yet."""
    directory.mkdir(parents=True, exist_ok=True)
    names = (directory / (f"{top}~{number}" if number else top) for number in range(1000))
    return next(path for path in names if not path.is_symlink() and not path.exists())


def _is_settled(candidate: Candidate, restored: Commit) -> bool:
    """Whether a checkpoint was restored, or is older."""
    if {file.name for file in restored.files}.intersection(dict(candidate.files)):
        return True
    later = (step_of(candidate.name) or 0) > (restored.step or 0)
    return not later and candidate.changed_ns / 1e9 < restored.created.timestamp()


def _torn(root: Path, candidate: Candidate, *, gang: bool) -> str | None:
    """Why a checkpoint is proven incomplete by its names or formats, or None."""
    files = dict(candidate.files)
    for name in files:
        if is_unfinished(name):
            return f"{name} is named like an unfinished file"
    if missing := next(missing_files(files, gang=gang), None):
        return missing
    for name in files:
        defect = check_format(root / name).defect
        if defect is not None:
            return f"{name}: {defect}"
    return missing_shards(root, list(files))
