"""The order in which held versions are sent: oldest first, or newest first once the pod is ending.

A version that was refused for good is set apart: others go before it, and it is tried again when it is due
and nothing else waits. It is due after a pause, and whenever somebody asks at the end for durability.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint


class UploadQueue:
    """A view of the registry's versions that are held or set apart; a hold's number is its age.

    Call order: `take`, then `done`. If `newest_first`, the newest goes next: a pod that ends
    has no time for all of them. `monotonic` is a clock in seconds.
    """

    def __init__(
        self,
        registry: VersionRegistry,
        *,
        newest_first: bool = False,
        set_apart_seconds: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.newest_first = newest_first
        self._registry, self._set_apart_seconds, self._monotonic = registry, set_apart_seconds, monotonic
        self._taken: CheckpointVersion | None = None
        self._due: dict[int, float] = {}
        self._filled = asyncio.Event()

    def versions(self) -> list[CheckpointVersion]:
        """The one that was taken, then those that wait, in the order in which they will be sent."""
        return [*([self._taken] if self._taken else []), *self._ordered(self._held())]

    def set_apart(self) -> list[CheckpointVersion]:
        """Those that were refused for good and are not being tried now, oldest first."""
        return _by_age(self._registry.in_state(VersionState.SET_APART))

    def add(self, version: CheckpointVersion, hold: HeldCheckpoint) -> list[CheckpointVersion]:
        """Queue the newest version; returns the waiting older versions of its name, which it replaces."""
        replaced = self._registry.hold(version, hold)
        self._filled.set()
        return replaced

    async def take(self) -> CheckpointVersion:
        """The next version to send."""
        while not (ready := self._ready()):
            self._filled.clear()
            try:
                async with asyncio.timeout(self._seconds_until_due()):
                    await self._filled.wait()
            except TimeoutError:
                continue
        self._taken = ready[0]
        self._registry.move(self._taken, VersionState.SENDING)
        return self._taken

    def done(self, to: VersionState | None = None) -> None:
        """What was taken is finished, or moves back to be retried: to held, or set apart until it is due."""
        if self._taken is not None and to is not None:
            self._registry.move(self._taken, to)
            self._due[self._taken.number] = self._monotonic() + self._set_apart_seconds
        self._taken = None

    def retry_set_apart(self) -> None:
        """Try each version that is set apart once more, as soon as nothing else waits."""
        self._due = dict.fromkeys((version.number for version in self.set_apart()), self._monotonic())
        self._filled.set()

    def is_due(self, version: CheckpointVersion) -> bool:
        """Whether a version that is set apart is going to be tried again now."""
        return self._due.get(version.number, 0.0) <= self._monotonic()

    def is_overtaken(self) -> bool:
        """Whether what is being sent should let a newer version go first."""
        taken = self._taken
        if not self.newest_first or taken is None or taken.state is not VersionState.SENDING:
            return False
        return any(version.number > taken.number for version in self._held())

    def count_older(self, than: CheckpointVersion) -> int:
        """How many waiting versions are older; one that is set apart holds up nothing."""
        return sum(version.number < than.number for version in self._held())

    def _ready(self) -> list[CheckpointVersion]:
        """What can be sent now, in order; nothing older than what may be committed already."""
        due = [version for version in self.set_apart() if self.is_due(version)]
        ordered, unsettled = [*self._ordered(self._held()), *self._ordered(due)], self._registry.unsettled
        return [version for version in ordered if version.number >= unsettled]

    def _seconds_until_due(self) -> float | None:
        due = (self._due.get(version.number, 0.0) for version in self.set_apart())
        first = min(due, default=None)
        return None if first is None else max(first - self._monotonic(), 0.0)

    def _held(self) -> list[CheckpointVersion]:
        return _by_age(self._registry.in_state(VersionState.HELD))

    def _ordered(self, oldest_first: list[CheckpointVersion]) -> list[CheckpointVersion]:
        return oldest_first[::-1] if self.newest_first else oldest_first


def _by_age(versions: Sequence[CheckpointVersion]) -> list[CheckpointVersion]:
    return sorted(versions, key=lambda version: version.number)
