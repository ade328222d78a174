from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.sidecar.fetch.workers import handle, processes
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.request_builder import Origin
from tests.support.object_server import FILES, RANGE, Rig


async def test_if_a_worker_dies_its_jobs_fall_back(stage, port, objects, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    started, acquire = [], processes.acquire

    def watched():
        started.append(acquire())
        return started[-1]

    monkeypatch.setattr(processes, "acquire", watched)
    killed = False

    async def gate(name, start):
        """Kills it while one of the small files is in flight."""
        nonlocal killed
        while not started:  # noqa: ASYNC110 - the process has no event for its start
            await asyncio.sleep(0.01)
        if not killed and name.startswith("d/small"):
            killed = True
            os.kill(started[0].pid, signal.SIGKILL)

    objects.gate = gate
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await rig.prefetch().run()
    assert killed
    assert rig.held() == FILES


def sleeping_worker():
    """A process that neither reads nor reports."""
    ours, theirs = socket.socketpair()
    with theirs:
        words = [sys.executable, "-c", "import time; time.sleep(60)"]
        process = subprocess.Popen(words, pass_fds=(theirs.fileno(),))
    return processes.WorkerProcess(process.pid, ours, process)


async def test_a_worker_is_ended_if_its_own_end_is_cancelled(monkeypatch):
    """As by another worker that fails at the same moment."""
    worker, asked = sleeping_worker(), asyncio.Event()

    async def next_batch():
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(processes, "acquire", lambda: worker)
    stage = SimpleNamespace(root="/stage", file_mode=0o644)
    sink = SimpleNamespace(stage=stage, verify=True, ranges_have_checksum=True, computes=False, holds=False)
    queue = SimpleNamespace(origin=Origin("127.0.0.1", 1, tls=False), next_batch=next_batch)
    running = asyncio.create_task(handle.WorkerHandle(queue, sink, 1, TransferCounters()).run())
    await asked.wait()
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert worker.spawned.returncode == -signal.SIGKILL


async def test_if_a_worker_with_a_full_queue_dies_its_jobs_fall_back(stage, port, monkeypatch):
    """No report frees its queue then: its jobs fall back."""
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    monkeypatch.setattr(handle, "MAX_PENDING_JOBS", 4)

    worker = sleeping_worker()
    monkeypatch.setattr(processes, "acquire", lambda: worker)
    asyncio.get_running_loop().call_later(1, worker.spawned.kill)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await asyncio.wait_for(rig.prefetch().run(), 60)
    assert rig.held() == FILES


async def test_if_no_worker_can_be_started_one_process_is_enough(stage, port, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)

    def acquire():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(processes, "acquire", acquire)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await rig.prefetch().run()
    assert rig.held() == FILES
