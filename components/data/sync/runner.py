"""Runs the step `sync`."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from podferry.components.data.dataset.runner import list_frozen
from podferry.components.log_tables import print_line
from podferry.components.parsers import refuse_invalid
from podferry.components.secret_dir import DESTINATION_SECRET_DIR, SOURCE_SECRET_DIR
from podferry.components.store_access import step_store_config
from podferry.contract.dataset_reference import parse_reference, reference_to
from podferry.contract.dataset_selection import selection_of
from podferry.contract.errors import Refused
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.selection import parse_globs
from podferry.contract.spec import Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.sync.comparison import SyncOptions
from podferry.sidecar.sync.sync import Sync, SyncResult


@dataclass(frozen=True, slots=True)
class Place:
    """A URI, and how to reach it; an empty text means the vendor's default."""

    uri: str
    endpoint: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class Synced:
    """The outputs of the step.

    Attributes:
        reference: The destination, frozen.
        moved, kept, removed: Numbers of files.
        bytes: Read from the source.
    """

    reference: str
    moved: int
    bytes: int
    kept: int
    removed: int


def sync_dataset(
    source: Place,
    destination: Place,
    include: str = "",
    exclude: str = "",
    *,
    delete: bool = False,
    unpack: bool = False,
    size_only: bool = False,
) -> Synced:
    """Sync, print what was done, and freeze the destination.

    Commas, spaces or lines separate globs.

    Raises:
        Refused: Files could not be moved, each with its reason.
        FerryError: A place cannot be used, or a store did not respond.
    """
    given = {"source": source.uri, "destination": destination.uri, "include": include, "exclude": exclude}
    given |= {"source_endpoint": source.endpoint, "destination_endpoint": destination.endpoint}
    refuse_invalid(**given, source_region=source.region, destination_region=destination.region)
    started_at = time.monotonic()
    reference, target = parse_reference(source.uri), parse_uri(destination.uri)
    configs = (
        step_store_config(source.endpoint, source.region, SOURCE_SECRET_DIR),
        step_store_config(destination.endpoint, destination.region, DESTINATION_SECRET_DIR),
    )
    globs = (parse_globs(text) if text else () for text in (include, exclude))
    selection = Selection(*selection_of(reference, *globs))
    options = SyncOptions(selection, delete, unpack, size_only)
    result = asyncio.run(Sync(reference, target, *configs, options).run())
    _print(result, time.monotonic() - started_at)
    Refused.raise_any(result.problems)
    # The globs are those of archives, not of their members.
    kept = Selection() if unpack else selection
    frozen, _ = list_frozen(str(target), kept, configs[1], Unpack.NEVER)
    at_target = str(reference_to(frozen, kept.include, kept.exclude))
    return Synced(at_target, len(result.moved), result.bytes, result.kept, len(result.removed))


def _print(result: SyncResult, seconds: float) -> None:
    moved = f"{count_of(len(result.moved), 'file')} moved, {format_bytes(result.bytes)} in {seconds:.1f} s"
    print_line(f"{moved}; {result.kept:,} equal; {len(result.removed):,} removed")
