"""A worker is killed at each of its requests, in a drain that sends the newest first: nothing is lost."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress

import pytest

from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

BIG = 3 * 1024
COUNT = 3


class Death(BaseException):
    """Ends a worker as if killed."""


async def life(rig, dead, *, first):
    """Write what is not written yet, and drain; returns the answer, or None if killed before."""
    async with rig.running() as pipeline:
        if first:
            rig.store.gated = "step-1.bin"
            for step in range(1, COUNT + 1):
                rig.replace(f"step-{step}.bin", b"%d" % step * BIG)
                await rig.until(lambda step=step: dead() or len(pipeline._queue.versions()) == step)
            await rig.until(lambda: dead() or rig.store.reached.is_set())
        ending = asyncio.create_task(pipeline.flush(PATIENCE, ending=True, final=True))
        await asyncio.sleep(0)
        rig.store.gated = ""
        rig.store.go.set()
        await rig.until(lambda: dead() or ending.done())
        ending.cancel()
        await asyncio.sleep(0)
        return ending.result() if ending.done() and not ending.cancelled() else None


def forget_all(rig):
    """Start over, as in another lineage."""
    rig.content.objects.clear()
    rig.content.uploads.clear()
    rig.content.calls.clear()
    rig.faults.clear()
    rig.store.reached.clear()
    rig.store.go.clear()
    for folder in (rig.root, rig.holds, rig.control, rig.holds.with_name("pins-notes")):
        shutil.rmtree(folder, ignore_errors=True)
    rig.root.mkdir()


async def killed_at(rig, request, *, after):
    """A life that ends at that request, and one that continues; returns False if there is no such request."""
    forget_all(rig)
    rig.faults.append(Fault(skip=request, error=Death(), after=after))
    rig.faults.append(Fault(skip=request, times=10**6, error=Death()))
    answer = None
    with suppress(BaseExceptionGroup, Death):
        answer = await life(rig, lambda: len(rig.content.calls) > request, first=True)
    ended = len(rig.content.calls) <= request
    committed = {commit.step for commit in rig.store.commits()}
    if answer is not None and answer.durable:
        assert committed == set(range(1, COUNT + 1)), "called durable"
    rig.faults.clear()
    for step in range(1, COUNT + 1):  # what the kill came before
        if not (rig.root / f"step-{step}.bin").exists():
            rig.replace(f"step-{step}.bin", b"%d" % step * BIG)
    assert (await life(rig, lambda: False, first=False)).durable
    commits = rig.store.commits()
    assert [commit.step for commit in commits] == list(range(1, COUNT + 1)), request
    assert [rig.store.bytes_of(commit) for commit in commits] == [
        {f"step-{step}.bin": b"%d" % step * BIG} for step in range(1, COUNT + 1)
    ]
    # One that was begun while the answer was lost nobody can name: the bucket's own rules end it.
    assert after or rig.content.uploads == {}
    return not ended


@pytest.mark.parametrize("after", [False, True])
async def test_a_kill_at_any_request_loses_nothing_and_keeps_the_order(rig, after):
    request = 0
    while await killed_at(rig, request, after=after):
        request += 1
    assert request > 20
