"""Plans which checkpoint to restore before training starts, and restores it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.status import RestoredStatus
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.restore.downloader import bytes_to_restore
from podferry.sidecar.checkpoint.restore.restore import RestoreSource, restore, restored_status
from podferry.sidecar.staging.volume_capacity import measure

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Restored:
    """What training resumes from: a checkpoint and, if this worker downloaded it, its files' names."""

    status: RestoredStatus | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A possible restore from `source`, which is None for nothing, into the checkpoint directory `root`.

    `partial`, on the same file system, is for files not verified yet. `gang` is None if one pod writes all.
    """

    handover: Handover
    gang: GangCoordinator | None
    source: RestoreSource | None
    root: Path
    partial: Path
    rank: int | None

    async def check(self) -> None:
        """Check that a required checkpoint exists and that the newest one fits.

        Raises:
            Refused, NotFound, FormatTooNew and the store's errors: It does not.
        """
        commits = await self.source.commits() if self.source else []
        if commits:
            self._check_size(commits[0])

    def _check_size(self, commit: Commit) -> None:
        free = measure(self.root).volume_bytes
        if bytes_to_restore(commit, self.root, self.partial, self.rank) > free:
            measured = f"{commit.name} has {format_bytes(commit.bytes)}, {format_bytes(free)} are free"
            remedy = "Raise checkpoint-size, or set restore to never"
            raise Refused.of("the checkpoint to restore is larger than its volume", measured, remedy)

    async def run(self) -> Restored:
        """Wait for an earlier agent that still drains, then download what training resumes from.

        Raises:
            Refused, NotFound, TemporaryError: See `podferry.sidecar.checkpoint.restore.restore.restore`.
        """
        await self.handover.wait()
        if self.gang is not None:
            await self.gang.commit_before_start()
            await self.gang.announce()
        found = await restore(self.source, self.root, self.partial, self.rank) if self.source else None
        if found is None:
            return Restored()
        commit, seconds = found
        log.info("restored", name=commit.name, sequence=commit.sequence, bytes=commit.bytes)
        return Restored(restored_status(commit, seconds), tuple(file.name for file in commit.files))
