"""Stages a dataset as the agent does: listed, planned, fetched by pools, and read back."""

from __future__ import annotations

from pathlib import Path

from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig

SETTINGS = PrefetchSettings(in_flight=4, attempts=4)


async def staged(
    uri: str, config: StoreConfig, folder: Path, counters: TransferCounters | None = None
) -> dict[str, bytes]:
    """The staged files: content by name. `folder` gets the stage."""
    root = folder / "stage"
    root.mkdir()
    dataset = await open_dataset(parse_uri(uri), config)
    stage = StagingDir(root, folder / "claims")
    try:
        plan = plan_fetch(dataset.manifest, stage.claim(dataset.manifest), SETTINGS)
        await Fetcher(plan, FetchSource(dataset.store), stage, SETTINGS, counters=counters).run()
    finally:
        stage.close()
        await dataset.store.close()
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
