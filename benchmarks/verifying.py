"""Stages a dataset with or without comparing checksums: `verifying.py on|off ENDPOINT URI TARGET`.

A program of its own, since no user is offered to leave the comparison out.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from podferry.contract.spec import Access, DatasetSpec
from podferry.sidecar.config.local_path import sibling_dir
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement


async def stage(verify: bool, endpoint: str, uri: str, target: Path) -> None:
    """As `podferry dataset get` does."""
    target.mkdir()
    spec = DatasetSpec(uri, path=str(target), access=Access(endpoint=endpoint))
    work = DatasetJob(spec, DatasetPlacement(target, sibling_dir(target)), PrefetchSettings(verify=verify))
    try:
        planned = await work.plan()
        await planned.fetch(log_progress=False)
    finally:
        await work.close()


if __name__ == "__main__":
    wanted, endpoint, uri, target = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(stage(wanted == "on", endpoint, uri, Path(target)))
