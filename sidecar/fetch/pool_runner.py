"""Runs jobs with connection pools: one in this process, and one in each worker process if that is faster."""

from __future__ import annotations

from collections.abc import Callable

from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.bundles import failed_name
from podferry.sidecar.fetch.job_queue import JobQueue
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.fetch.sinks import ChunkSink
from podferry.sidecar.fetch.workers.handle import WorkerHandle
from podferry.sidecar.fetch.workers.processes import MAX_WORKERS, idle_count
from podferry.sidecar.runtime.concurrency import gather_all
from podferry.sidecar.runtime.cpu_limit import cores
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.buffer_pool import BUFFER_BYTES
from podferry.storage.http.pool import ConnectionPool

MAX_CONNECTIONS = 512
"""With 20 ms to the first byte they fetch 25,000 objects per second, more than a process can handle."""
MIN_CONNECTION_BYTES = 16 * 1024
"""How much of its buffer a connection touches for a small object, including the head."""
JOB_SECONDS = 140e-6
"""Processor time of one request, including signing and writing. Measured in one process on a 2.5 GHz core:
10,000 objects of 33 KB took 1.70 s, 1 GiB in ranges of 8 MiB 0.95 s."""
BYTE_SECONDS = 0.9e-9
"""Processor time of one byte, from the kernel to a buffer and from there to a file; from the same two."""
WORKER_SECONDS = 0.25
"""How much work justifies a new worker process: as long as one takes to start, measured 0.23 s."""
IDLE_WORKER_SECONDS = 0.1
"""How much work justifies one that was forked at the start and waits: far more than its connections take."""


def worker_count(jobs: int, count: int, max_processes: int | None, idle: int = 0) -> int:
    """How many worker processes to use.

    Args:
        jobs: Number of requests.
        count: Their bytes.
        max_processes: Including this one; None for one per core.
        idle: Workers that have already started.
    """
    seconds = jobs * JOB_SECONDS + count * BYTE_SECONDS
    worth = max(int(seconds / WORKER_SECONDS), min(idle, int(seconds / IDLE_WORKER_SECONDS)))
    return max(0, min((max_processes or cores()) - 1, MAX_WORKERS, worth))


class PoolRunner:
    """Runs the jobs of one plan.

    Args:
        plan, settings: Determine how many workers and connections to use.
        sink: Where the jobs write.
        counters: Updated as bytes arrive.
        bundles: Whether small files may arrive in bundles.
    """

    def __init__(
        self,
        plan: FetchPlan,
        sink: ChunkSink,
        settings: PrefetchSettings,
        counters: TransferCounters,
        *,
        bundles: bool = False,
    ) -> None:
        self._plan, self._sink, self._settings, self._counters = plan, sink, settings, counters
        largest = max((file.size for file in plan.files), default=0)
        touched = min(BUFFER_BYTES, max(largest, MIN_CONNECTION_BYTES))
        connection_bytes = BUFFER_BYTES if bundles else touched  # a bundle nearly fills the buffer
        # Half of the bytes in flight: the other half is the fallback's.
        self._max_connections = min(MAX_CONNECTIONS, max(1, settings.buffer_bytes // 2 // connection_bytes))

    async def run(self, make_queue: Callable[[], JobQueue]) -> None:
        """Run all jobs, shared between this process and its workers, each with a queue of its own."""
        total_bytes = sum(file.size for file in self._plan.files)
        work = sum(self._plan.range_counts), total_bytes
        workers = worker_count(*work, self._settings.processes, idle_count())
        share = max(1, self._max_connections // (1 + workers))
        handles = [WorkerHandle(make_queue(), self._sink, share, self._counters) for _ in range(workers)]
        ours = self.run_here(make_queue(), share)
        await gather_all([ours, *(self._run_worker(handle) for handle in handles)])

    async def run_here(self, queue: JobQueue, max_connections: int | None = None) -> None:
        """Run jobs in this process alone."""
        pool = ConnectionPool(queue, max_connections or self._max_connections, self._counters)
        try:
            await pool.run()
        except OSError as error:
            raise self._sink.stage.write_error(failed_name(pool.failed_job) or "a file", error) from error

    async def _run_worker(self, handle: WorkerHandle) -> None:
        try:
            await handle.run()
        except OSError as error:
            raise self._sink.stage.write_error(error.filename or "a file", error) from error
