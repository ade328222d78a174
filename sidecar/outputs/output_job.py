"""Uploads the outputs directory at intervals and at the end, even if training fails.

Unlike the files of a checkpoint, outputs are independent: a newer version of a file replaces the older one.
Files that the trainer deletes stay at the destination.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from podferry.contract.destination.output_record import FORMAT, OutputRecord, record_name
from podferry.contract.errors import FerryError, Problem, Refused
from podferry.contract.http_api import Durability
from podferry.contract.spec import PREFIX, OutputSpec
from podferry.contract.status import OutputStatus
from podferry.contract.versioned_json import encode_document
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.outputs.scan import CLOCK_TICK_NS, sample_names
from podferry.sidecar.outputs.sync import OutputSync, SyncRound
from podferry.sidecar.state.agent_state import AgentState
from podferry.storage.factory import open_store
from podferry.storage.store import Store
from podferry.storage.timeouts_and_limits import LIMITS

log = structlog.get_logger(__name__)

ROUND_PAUSE_SECONDS = 0.5
"""Between two rounds at the end, while files still change or the store does not answer."""
OUTPUT_LIMITS = msgspec.structs.replace(LIMITS, concurrent_parts=1)
"""Uploads run in parallel with checkpoints, which come first, within the outputs' part of the memory sum."""
TICK_SECONDS = 1.2 * CLOCK_TICK_NS / 1e9
"""Before the first round of a flush, so that earlier writes are conclusive and not sent again."""
REREAD_SECONDS = 10.0
"""For reading again what was sent before: 2 GiB in memory took 0.6 s. At most half of the time left."""
RECORD_SECONDS = 2.0
"""Reserved for the record at the end of the grace period, at most a tenth of it."""


class OutputJob:
    """Uploads one directory.

    1. `plan`, again while the store does not answer.
    2. `run` while training runs, with `flush` on request.
    3. `finish` when the pod ends.
    4. `close`, in any case.

    Args:
        spec: The destination and the interval.
        root: The directory.
        config: The agent's configuration.
        state: Its `status.outputs` is kept current.
        lineage, writer: Identify the run and the agent at the destination.
    """

    def __init__(
        self, spec: OutputSpec, root: Path, config: AgentConfig, state: AgentState, lineage: str, writer: str
    ) -> None:
        self._spec, self._root, self._config, self._state = spec, root, config, state
        self._lineage, self._writer = lineage, writer
        self._store: Store | None = None
        self._sync = OutputSync(self._root, self._connect, config.tuning.checkpoint.attempts)
        self._flush_task: asyncio.Task[SyncRound] | None = None
        self._exit_code: int | None = None
        self._trainer_ended_at: float | None = None
        self._upload_deadline = math.inf
        self.status = OutputStatus(uri=self._spec.uri, path=self._spec.path)
        state.status.outputs = self.status

    async def plan(self) -> None:
        """Check the directory, and write a first record; `Refused` or the store's error if this fails."""
        if not self._root.is_dir():
            what = f"the output directory {self._root} does not exist"
            raise Refused.of(what, remedy=f"Create it with `mkdir -p {self._root}`, or correct the path")
        await self._write_record(None)

    async def run(self) -> None:
        """Upload at each interval until cancelled; return at once if there is no interval."""
        while self._spec.every is not None:
            await asyncio.sleep(self._spec.every)
            await self._round()

    @property
    def incomplete(self) -> bool:
        """Whether the directory has, or may have, files that the destination does not have."""
        flush, last = self._flush_task, self._sync.last
        given_up = flush is not None and (not flush.done() or flush.cancelled())
        return given_up or bool(last.failed) or len(self._sync.uploaded()) < len(last.scan.files)

    async def flush(self, seconds: float, exit_code: int | None = None) -> Durability:
        """Upload everything; the result after at most `seconds`.

        The upload continues after that: call again. The result is hopeless if the upload has ended and
        waiting does not help.

        Args:
            seconds: How long to wait.
            exit_code: Of the trainer, if known.
        """
        if exit_code is not None and self._exit_code is None:
            self._trainer_ended_at = time.monotonic()
        self._exit_code = self._exit_code if exit_code is None else exit_code
        task = self._flush_task
        if task is None or task.done():
            task = self._flush_task = asyncio.create_task(self._flush())
        await asyncio.wait([task], timeout=max(seconds, 0.0))
        if not task.done():
            return self._unfinished()
        last = task.result()  # not the round of an interval that may have begun since
        if not last.failed:
            return Durability(durable=True)
        return Durability(False, (_label(last.failed),), last.failures(), hopeless=True)

    async def finish(self, deadline: float, exit_code: int | None = None) -> Durability:
        """The last upload and its record, until `deadline` (monotonic seconds); `exit_code` as in `flush`."""
        left = max(deadline - time.monotonic(), 0.0)
        self._upload_deadline = upload_deadline = deadline - min(RECORD_SECONDS, left / 10)
        if self._flush_task is not None:  # started when the pod began to end, while the trainer still wrote
            await asyncio.wait([self._flush_task], timeout=max(upload_deadline - time.monotonic(), 0.0))
        answer = await self.flush(upload_deadline - time.monotonic(), exit_code)
        if self._flush_task is not None and not self._flush_task.done():
            await self._cancel_flush()
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0.0)):
                    await self._write_last_record(answer.problems)
            except TimeoutError:
                log.warning("the record of the outputs was not written", reason="the grace period is over")
        return answer

    def summary(self) -> str:
        """One line for the user."""
        interval = "" if self._spec.every is None else f"every {self._spec.every} s and "
        return f"outputs: from {self._spec.path} to {self._spec.uri}, {interval}at the end"

    async def close(self) -> None:
        """Release the connections; cancel a running upload."""
        await self._cancel_flush()
        if self._store is not None:
            await self._store.close()

    def _connect(self) -> Store:
        if self._store is None:
            config = self._config
            access = store_config(self._spec.access, config.output_secret, config.guards)
            self._store = open_store(self._spec.parsed, access, OUTPUT_LIMITS)
        return self._store

    async def _cancel_flush(self) -> None:
        if self._flush_task is not None:
            self._flush_task.cancel()
            await asyncio.gather(self._flush_task, return_exceptions=True)

    async def _flush(self) -> SyncRound:
        """Upload, read again what was sent before, upload what differs, write the record; the last round."""
        await asyncio.sleep(TICK_SECONDS)
        since = time.monotonic() if self._trainer_ended_at is None else self._trainer_ended_at
        last = await self._rounds()
        if await self._reread(since):
            last = await self._rounds()
        await self._write_last_record(last.failures())
        return last

    async def _rounds(self) -> SyncRound:
        """Run rounds until another one cannot help; the last one."""
        while True:
            last = await self._round()
            if not last.retryable:
                return last
            await asyncio.sleep(ROUND_PAUSE_SECONDS)

    async def _reread(self, since: float) -> bool:
        """Whether a file that was last read before `since` has other content under its old identity."""
        now = time.monotonic()
        found = await self._sync.reread(since, now + min(REREAD_SECONDS, (self._upload_deadline - now) / 2))
        if found.changed:
            log.info("new content under an old identity", files=sample_names(found.changed))
        if found.left:
            log.info("outputs not read again: time is up", files=sample_names(found.left))
        return bool(found.changed)

    async def _round(self) -> SyncRound:
        """Run one round and update the status."""
        last = await self._sync.round()
        uploaded, problems = self._sync.uploaded(), [*last.failures(), *last.scan.problems]
        self.status.files, self.status.bytes = len(uploaded), sum(uploaded.values())
        if not last.failed and not last.changed:
            self.status.uploaded_at = time.time()
        if last.sent:
            log.info("outputs uploaded", sent=last.sent, files=len(uploaded), bytes=self.status.bytes)
        if problems and problems != self.status.problems:
            log.warning("outputs not uploaded", problems=[str(problem) for problem in problems])
        self.status.problems = problems
        self._state.notify()
        return last

    def _unfinished(self) -> Durability:
        """The result while the last upload is running."""
        last, uploaded = self._sync.last, self._sync.uploaded()
        left = [name for name in last.scan.files if name not in uploaded]
        remedy = f"Raise {PREFIX}grace" if self._config.in_pod else "Raise --durable-timeout"
        measured = f"{len(left)} of {len(last.scan.files)} files: {sample_names(left)}" if left else ""
        problem = Problem("the last upload of the outputs has not ended", measured, remedy)
        return Durability(False, (_label(left),), (*self._sync.failures(), problem))

    async def _write_last_record(self, problems: tuple[Problem, ...]) -> None:
        """A failure is only logged: the uploaded files count without their record."""
        try:
            await self._write_record(datetime.now(UTC), problems)
        except FerryError as error:
            log.warning("the record of the outputs was not written", reason=str(error))

    async def _write_record(self, ended_at: datetime | None, problems: tuple[Problem, ...] = ()) -> None:
        spec = self._config.spec
        uploaded = self._sync.uploaded()
        record = OutputRecord(
            format=FORMAT,
            lineage=self._lineage,
            writer=self._writer,
            run=self._config.run_id,
            rank=spec.rank,
            files=len(uploaded),
            bytes=sum(uploaded.values()),
            ended_at=ended_at,
            exit_code=self._exit_code,
            problems=(*problems, *self._sync.last.scan.problems),
        )
        await self._connect().write(record_name(spec.world, spec.rank), encode_document(record))


def _label(names: Collection[str]) -> str:
    return f"outputs ({len(names):,} file{'s' if len(names) != 1 else ''})" if names else "outputs"
