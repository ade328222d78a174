"""The order in which held versions are sent: oldest first, or newest first once the pod is ending."""

from __future__ import annotations

import asyncio

from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint


class UploadQueue:
    """A view of the registry's held versions; a hold's number is its age.

    Call order: `take`, then `done`. If `newest_first`, the newest goes next: a pod that ends
    has no time for all of them.
    """

    def __init__(self, registry: VersionRegistry, *, newest_first: bool = False) -> None:
        self.newest_first = newest_first
        self._registry = registry
        self._taken: CheckpointVersion | None = None
        self._filled = asyncio.Event()

    def versions(self) -> list[CheckpointVersion]:
        """The one that was taken, then those that wait, in the order in which they will be sent."""
        waiting = self._waiting()
        return [*([self._taken] if self._taken else []), *(waiting[::-1] if self.newest_first else waiting)]

    def add(self, version: CheckpointVersion, hold: HeldCheckpoint) -> list[CheckpointVersion]:
        """Queue the newest version; returns the waiting older versions of its name, which it replaces."""
        replaced = self._registry.hold(version, hold)
        self._filled.set()
        return replaced

    async def take(self) -> CheckpointVersion:
        """The next version to send."""
        while not (waiting := self._waiting()):
            self._filled.clear()
            await self._filled.wait()
        self._taken = waiting[-1 if self.newest_first else 0]
        self._registry.move(self._taken, VersionState.SENDING)
        return self._taken

    def done(self) -> None:
        """What was taken is committed, published, given up, or held again to be retried."""
        self._taken = None

    def is_overtaken(self) -> bool:
        """Whether what is being sent should let a newer version go first."""
        taken = self._taken
        if not self.newest_first or taken is None or taken.state is not VersionState.SENDING:
            return False
        return any(version.number > taken.number for version in self._waiting())

    def count_older(self, than: CheckpointVersion) -> int:
        """How many waiting versions are older."""
        return sum(version.number < than.number for version in self._waiting())

    def _waiting(self) -> list[CheckpointVersion]:
        return sorted(self._registry.in_state(VersionState.HELD), key=lambda version: version.number)
