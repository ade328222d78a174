"""The outputs' part of an agent: a directory is uploaded at intervals and at the end, however training ends.

Unlike a checkpoint, outputs are no whole: each file stands for itself, and a newer version replaces the older
one. What the trainer deletes stays at the destination.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from datetime import UTC, datetime

import msgspec
import structlog

from podferry.contract.api import Durability
from podferry.contract.errors import FerryError, Problem, Refused
from podferry.contract.output_record import FORMAT, OutputRecord, encode_record, record_name
from podferry.contract.spec import PREFIX, OutputSpec
from podferry.contract.status import OutputStatus
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.outputs.scan import TICK_NS, naming
from podferry.sidecar.outputs.sync import OutputSync, SyncRound
from podferry.sidecar.state.agent_state import AgentState
from podferry.storage.factory import open_store
from podferry.storage.limits import LIMITS
from podferry.storage.store import Store

log = structlog.get_logger(__name__)

PAUSE = 0.5
"""Seconds between two rounds at the end, while files still change or the store does not answer."""
GENTLE = msgspec.structs.replace(LIMITS, concurrent_parts=1)
"""Outputs go out beside checkpoints, which come first, and within the memory that the sum has for them."""
TICK = 1.2 * TICK_NS / 1e9
"""Seconds before the first of them. What was written before is certain then, and not sent once more."""
LAST_WORDS = 2.0
"""Seconds of the grace that are kept for the record, at most a tenth of it."""


def _shown(names: Collection[str]) -> str:
    return f"outputs ({len(names):,} file{'s' if len(names) != 1 else ''})" if names else "outputs"


class OutputJob:
    """Uploads one directory.

    Args:
        spec: What is wished.
        config: The agent's task.
        state: Whose `status.outputs` is kept up to date.
        writer: Names the agent at the destination.
    """

    def __init__(self, spec: OutputSpec, config: AgentConfig, state: AgentState, writer: str) -> None:
        root, lineage = config.directories.outputs, config.spec.lineage
        # The entry point resolves both wherever there are outputs.
        assert root is not None and lineage is not None  # noqa: PT018, S101
        self._spec, self._config, self._state = spec, config, state
        self._root, self._lineage, self._writer = root, lineage, writer
        self._store: Store | None = None
        self._uploader = OutputSync(root, self._connect, config.tuning.checkpoint.attempts)
        self._flushing: asyncio.Task[None] | None = None
        self._exit_code: int | None = None
        self.status = OutputStatus(uri=spec.uri, path=spec.path)
        state.status.outputs = self.status

    async def plan(self) -> None:
        """Find out that the directory is there and that the destination takes writes.

        Raises:
            Refused and the store's errors: Why it will not work.
        """
        if not self._root.is_dir():
            what = f"the output directory {self._root} does not exist"
            raise Refused.of(what, remedy=f"Create it with `mkdir -p {self._root}`, or correct the path")
        await self._record(None)

    async def run(self) -> None:
        """Upload at every interval until cancelled; returns at once where there is none."""
        while self._spec.every is not None:
            await asyncio.sleep(self._spec.every)
            await self._round()

    @property
    def left_behind(self) -> bool:
        """Whether the directory holds what the destination does not have, or may."""
        flush, last = self._flushing, self._uploader.last
        given_up = flush is not None and (not flush.done() or flush.cancelled())
        return given_up or bool(last.failed) or len(self._uploader.there()) < len(last.seen.files)

    async def flush(self, seconds: float, exit_code: int | None = None) -> Durability:
        """Upload everything as it is now, and say after at most `seconds` whether it is there.

        The upload goes on after that: ask again. It is hopeless where it has ended and waiting does not help.

        Args:
            seconds: How long to wait.
            exit_code: What the trainer ended with, where it is known.
        """
        self._exit_code = self._exit_code if exit_code is None else exit_code
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        await asyncio.wait([self._flushing], timeout=max(seconds, 0.0))
        if not self._flushing.done():
            return self._unended()
        self._flushing.result()
        failed = self._uploader.last.failed
        if not failed:
            return Durability(durable=True)
        return Durability(False, (_shown(failed),), self._uploader.last.failures(), hopeless=True)

    async def finish(self, deadline: float, exit_code: int | None = None) -> Durability:
        """The last upload, which ends at a deadline, and its record.

        Args:
            deadline: On the monotonic clock, seconds.
            exit_code: As in `flush`.
        """
        left = max(deadline - time.monotonic(), 0.0)
        last = deadline - min(LAST_WORDS, left / 10)
        if self._flushing is not None:  # begun when the pod's end was told, while the trainer still wrote
            await asyncio.wait([self._flushing], timeout=max(last - time.monotonic(), 0.0))
        answer = await self.flush(last - time.monotonic(), exit_code)
        if self._flushing is not None and not self._flushing.done():
            await self._give_up()
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0.0)):
                    await self._last_record(answer.problems)
            except TimeoutError:
                log.warning("the record of the outputs is not written", reason="the grace is over")
        return answer

    def summary(self) -> str:
        """One line for people."""
        often = "" if self._spec.every is None else f"every {self._spec.every} s and "
        return f"outputs: from {self._spec.path} to {self._spec.uri}, {often}at the end"

    async def close(self) -> None:
        """Give back the connections; an upload that is under way is given up."""
        await self._give_up()
        if self._store is not None:
            await self._store.close()

    def _connect(self) -> Store:
        if self._store is None:
            access = store_config(self._spec.access, self._config.output_secret)
            self._store = open_store(self._spec.parsed, access, GENTLE)
        return self._store

    async def _give_up(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)

    async def _flush(self) -> None:
        """Rounds until nothing is left that another one could mend, then the record."""
        await asyncio.sleep(TICK)
        while True:
            last = await self._round()
            if not last.unsettled:
                break
            await asyncio.sleep(PAUSE)
        await self._last_record(last.failures())

    async def _round(self) -> SyncRound:
        """One round, and the status brought up to date."""
        last = await self._uploader.round()
        there, problems = self._uploader.there(), [*last.failures(), *last.seen.problems]
        self.status.files, self.status.bytes = len(there), sum(there.values())
        if not last.failed and not last.changed:
            self.status.uploaded_at = time.time()
        if last.sent:
            log.info("outputs uploaded", sent=last.sent, files=len(there), bytes=self.status.bytes)
        if problems and problems != self.status.problems:
            log.warning("outputs left behind", problems=[str(problem) for problem in problems])
        self.status.problems = problems
        self._state.notify()
        return last

    def _unended(self) -> Durability:
        """What is not there while the last upload is under way."""
        last, there = self._uploader.last, self._uploader.there()
        left = [name for name in last.seen.files if name not in there]
        remedy = f"Raise {PREFIX}grace" if self._config.in_pod else "Raise --durable-timeout"
        named = f"{len(left)} of {len(last.seen.files)} files: {naming(left)}" if left else ""
        problem = Problem("the last upload of the outputs has not ended", named, remedy)
        return Durability(False, (_shown(left),), (problem, *last.failures()))

    async def _last_record(self, problems: tuple[Problem, ...]) -> None:
        """What was uploaded counts without its record."""
        try:
            await self._record(datetime.now(UTC), problems)
        except FerryError as error:
            log.warning("the record of the outputs is not written", reason=str(error))

    async def _record(self, ended: datetime | None, problems: tuple[Problem, ...] = ()) -> None:
        spec = self._config.spec
        there = self._uploader.there()
        record = OutputRecord(
            format=FORMAT,
            lineage=self._lineage,
            writer=self._writer,
            run=self._config.run_id,
            rank=spec.rank,
            files=len(there),
            bytes=sum(there.values()),
            ended_at=ended,
            exit_code=self._exit_code,
            problems=(*problems, *self._uploader.last.seen.problems),
        )
        await self._connect().write(record_name(spec.world, spec.rank), encode_record(record))
