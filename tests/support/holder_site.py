"""A holder in this process, and a source in memory for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.holder_stage import HolderStage, MakeJob
from podferry.cache.peers.peers import Peers
from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.shared_stage import SharedStage
from podferry.contract.cache_api import Holder
from podferry.contract.spec import DatasetSpec, Unpack
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.sidecar.runtime.file_lock import release

PREFETCH = PrefetchSettings()


class RunningHolder(NamedTuple):
    stage: HolderStage
    holder: Holder


def holder_stage(
    uri: object,
    root: Path,
    peers: Peers | None = None,
    settings: PrefetchSettings = PREFETCH,
    limit: RateLimit | None = None,
    size_limit: int | None = None,
    **more: Any,
) -> HolderStage:
    """The stage of a holder in a directory, which is created."""
    root.mkdir(exist_ok=True)
    private = root.with_name(f"{root.name}.podferry")
    return HolderStage(str(uri), job_maker(uri, settings, limit, size_limit), root, private, peers, **more)


def job_maker(
    uri: object,
    settings: PrefetchSettings = PREFETCH,
    limit: RateLimit | None = None,
    size_limit: int | None = None,
) -> MakeJob:
    """What makes the jobs of a stage."""

    def job(root: Path, private: Path) -> DatasetJob:
        spec = DatasetSpec(str(uri), str(root), unpack=Unpack.NEVER)
        return DatasetJob(spec, DatasetPlacement(root, private, size_limit=size_limit), settings, limit=limit)

    return job


def shared_stage(
    uri: object, root: Path, *, digest: str = "", size_limit: int | None = None, **settings: Any
) -> SharedStage:
    """A stage that readers share in a directory, which is created; without its mounts.

    Args:
        uri: Of the dataset.
        root: The directory.
        digest: Of a frozen reference; empty for none.
        size_limit: Of the volume, bytes.
        settings: As of `SharedStage`.
    """
    place = SharedPlace(root, root)
    release(place.claim())
    reference = f"{uri}#sha256={digest}" if digest else uri
    return SharedStage(str(uri), job_maker(reference, size_limit=size_limit), place, **settings)


@asynccontextmanager
async def running_holder(uri: object, root: Path) -> AsyncIterator[RunningHolder]:
    """A holder that serves; its dataset may not be complete yet."""
    stage = holder_stage(uri, root)
    listener = socket.create_server(("127.0.0.1", 0))
    running = asyncio.create_task(run_holder([stage], listener, "this machine"))
    await asyncio.sleep(0)
    try:
        yield RunningHolder(stage, Holder(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
