"""Writes the members of one archive to the destination while the archive streams."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from podferry.contract.manifest import Entry
from podferry.sidecar.archive.member_writer import MemberReceiver
from podferry.sidecar.archive.unpack_rules import Archive, NameRegistry, SpaceBudget
from podferry.sidecar.config.tuning import MIB
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.staging.volume_capacity import UNLIMITED, Capacity
from podferry.sidecar.sync.file_mover import written
from podferry.storage.store import Body, Store

SMALL_BYTES = MIB
"""Members up to this size are held in memory: they can be sent again, and several at once."""
SMALL_IN_FLIGHT = 16
"""Small members of one archive; latency bounds them."""


class MemberUploader(MemberReceiver):
    """Uploads members, each whole. A member is there before the archive is read completely.

    Create it on the event loop; `write` runs in another thread, then `finish` on the loop.

    Args:
        target: The destination.
        names: All names that it gets, registered on the loop.
        attempts: For each small member; a larger one cannot be read again.
    """

    def __init__(self, archive: Archive, target: Store, names: NameRegistry, attempts: int) -> None:
        super().__init__(archive, SpaceBudget(Capacity(volume_bytes=UNLIMITED)))
        self._target, self._names, self._attempts = target, names, attempts
        self._loop = asyncio.get_running_loop()
        self._pending: deque[Future[Entry]] = deque()

    def write(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """See `MemberReceiver.write`; raises the store's errors of this member or an earlier one."""
        pieces = self.pieces(name, size, read)
        small = size <= SMALL_BYTES
        work = self._put(self.archive.staged_name(name), size, b"".join(pieces) if small else pieces)
        self._pending.append(asyncio.run_coroutine_threadsafe(work, self._loop))
        while len(self._pending) > (SMALL_IN_FLIGHT if small else 0):
            self.members.append(self._pending.popleft().result())

    async def finish(self) -> None:
        """Wait for the members in flight; raises what `write` does."""
        while self._pending:
            self.members.append(await asyncio.wrap_future(self._pending.popleft()))

    async def abandon(self) -> None:
        """Cancel the members in flight."""
        for future in self._pending:
            future.cancel()
        waiting = [asyncio.wrap_future(future) for future in self._pending]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _put(self, name: str, size: int, body: Body) -> Entry:
        self._names.register(self.archive, [name])
        await retry(self._attempts if isinstance(body, bytes) else 1, lambda: self._target.write(name, body))
        return await written(self._target, name, size, self._attempts)
