"""One life of a checkpoint job."""

from __future__ import annotations

import asyncio

from podferry.sidecar.state.durations import Durations
from tests.support.patience import PATIENCE


async def life(work, rig, *names):
    """Plan, restore, and run until all that the trainer writes is durable; returns what it resumed from."""
    await work.restore(await work.plan())
    pipeline = await work.start(Durations())
    task = asyncio.create_task(pipeline.run())
    for name in names:
        rig.write(name, name.encode() * 2000)
    assert (await pipeline.flush(PATIENCE, final=True, succeeded=True)).durable
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    pipeline._detector._watch.close()
    return work.restored and work.restored.name
