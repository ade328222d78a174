"""When an agent drains, with real locks, signals and pipes."""

import asyncio
import os
import signal
from contextlib import contextmanager

import pytest

from podferry.sidecar.agent import end_request
from podferry.sidecar.agent.end_request import EndRequest
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.runtime.file_lock import acquire, release
from tests.support.patience import PATIENCE


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(end_request, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(end_request, "ORPHAN_SECONDS", 0.05)


@pytest.fixture
def run(tmp_path):
    return RunDirectory(tmp_path)


@contextmanager
def pipe():
    """The end that an agent watches, and what closes the supervisor's."""
    parent, supervisor = os.pipe()
    closed = []

    def close():
        if not closed:
            closed.append(os.close(supervisor))

    try:
        yield parent, close
    finally:
        close()
        os.close(parent)


async def is_pending(task):
    return not (await asyncio.wait([task], timeout=0.2))[0]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, "pipe"])
async def test_in_a_pod_it_drains_at_once(how):
    with pipe() as (parent, close):
        waiting = asyncio.create_task(EndRequest(None, parent).wait())
        assert await is_pending(waiting)
        close() if how == "pipe" else os.kill(os.getpid(), how)
        assert await asyncio.wait_for(waiting, PATIENCE)


async def test_in_a_local_run_it_waits_for_the_trainer(run):
    command, trainer = acquire(run.path), acquire(run.trainer_lock)
    with pipe() as (parent, _):
        waiting = asyncio.create_task(EndRequest(run, parent).wait())
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await is_pending(waiting)
        release(command)
        assert await is_pending(waiting), "the trainer may be saving"
        release(trainer)
        assert await asyncio.wait_for(waiting, PATIENCE)


async def test_an_orphan_gives_way_if_the_command_lives(run):
    command = acquire(run.path)
    with pipe() as (parent, close):
        waiting = asyncio.create_task(EndRequest(run, parent).wait())
        close()
        assert not await asyncio.wait_for(waiting, PATIENCE)
    release(command)


async def test_an_orphan_stays_if_only_the_trainer_lives(run):
    trainer = acquire(run.trainer_lock)
    with pipe() as (parent, close):
        waiting = asyncio.create_task(EndRequest(run, parent).wait())
        close()
        assert await is_pending(waiting)
        release(trainer)
        assert await asyncio.wait_for(waiting, PATIENCE)
