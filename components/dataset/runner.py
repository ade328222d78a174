"""The work of the step `dataset`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podferry.components.log_tables import say, show_memory
from podferry.components.store_access import step_store_config
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import Problem
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.manifest import Manifest
from podferry.contract.memory import memory_sum
from podferry.contract.quantity import format_bytes, parse_bytes, quantity_at_least
from podferry.contract.reference import parse_reference, reference_to
from podferry.contract.selection import parse_globs
from podferry.contract.spec import DatasetSpec, FerrySpec, Unpack
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.fit_check import PlannedDataset, fit_problems
from podferry.sidecar.dataset.selection import SelectedDataset, Selection, open_selected
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

FORMAT = 1


class Document(msgspec.Struct, frozen=True):
    """What the artifact holds: small, since KFP copies it to the pod of every step that takes it.

    Attributes:
        reference, uri, digest, bytes, files: As in the manifest; `files` is their number.
        format: Version of this document.
    """

    reference: str
    uri: str
    digest: str
    bytes: int
    files: int
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class FrozenDataset:
    """What the step hands on.

    Attributes:
        document: What the artifact holds.
        size: Kubernetes quantity of memory to reserve for the data.
        fits: Whether the data fits into that.
    """

    document: Document
    size: str
    fits: bool

    @property
    def reference(self) -> str:
        """URI with digest, bytes and files."""
        return self.document.reference

    @property
    def files(self) -> int:
        """How many files."""
        return self.document.files

    @property
    def metadata(self) -> dict[str, object]:
        """The artifact's metadata: `$(inputs.NAME)` in an annotation resolves to its reference."""
        return {REFERENCE_KEY: self.reference, "bytes": self.document.bytes, "files": self.files}

    def write(self, path: str) -> None:
        """Write the document as JSON."""
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(self.document), indent=1) + b"\n")


def freeze_dataset(
    uri: str,
    endpoint: str = "",
    region: str = "",
    volume_size: str = "",
    include: str = "",
    exclude: str = "",
) -> FrozenDataset:
    """List a dataset, freeze it, say what it needs and whether that fits.

    Args:
        uri: A prefix or an object, or a reference that is to be compared with what is there.
        endpoint: Address of the service; empty for the vendor's own.
        region: The vendor's name of the region; empty for its default.
        volume_size: Memory reserved for it; empty to take what it needs.
        include: Globs of the files to bring, separated by commas, spaces or lines; empty for all.
        exclude: Globs of the files to leave out; empty for none.

    Raises:
        EmptyDataset, Changed, InvalidWish and the store's errors: Why it cannot be frozen.
    """
    reserved = parse_bytes(volume_size) if volume_size else None
    selection = selection_of(include, exclude)
    named, manifest = list_frozen(uri, selection, step_store_config(endpoint, region))
    reference = str(reference_to(named))
    dataset = DatasetSpec(reference, size=reserved, include=selection.include, exclude=selection.exclude)
    needed = memory_sum(FerrySpec((dataset,)), {"": ListedSize(manifest.bytes, manifest.files)})
    size = volume_size or quantity_at_least(needed.data_volume)
    show_memory(reference, needed.rows())
    problems = volume_problems(manifest, parse_bytes(size))
    for problem in problems:
        say(f"does not fit: {problem}")
    if not problems:
        say(f"fits: {manifest.files:,} files of {format_bytes(manifest.bytes)} in a data volume of {size}")
    document = Document(reference, named.uri, named.digest, named.bytes, named.files)
    return FrozenDataset(document, size, not problems)


def selection_of(include: str, exclude: str) -> Selection:
    """Two lists of globs as a value; empty texts select everything.

    Raises:
        InvalidWish: Globs that mean something else than they seem to.
    """
    return Selection(*(parse_globs(text) if text else () for text in (include, exclude)))


def list_frozen(
    text: str, selection: Selection, config: StoreConfig, unpack: Unpack = Unpack.AUTO
) -> tuple[Manifest, Manifest]:
    """What a reference to the selection of a dataset names, and the files that a pod gets.

    They differ where the dataset is a pack.

    Raises:
        Changed: The reference is frozen and what is there is another version.
        EmptyDataset, InvalidWish and the store's errors: It cannot be listed.
    """
    reference = parse_reference(text)

    async def listed() -> SelectedDataset:
        found = await open_selected(reference.uri, selection, config, unpack)
        await found.store.close()
        return found

    found = asyncio.run(listed())
    check_frozen(reference, found.named)
    return found.named, found.manifest


def volume_problems(manifest: Manifest, volume: int) -> list[Problem]:
    """Why a dataset does not fit into a memory volume of that many bytes; empty where it does."""
    plan = plan_fetch(manifest, frozenset(), PrefetchSettings())
    return fit_problems([PlannedDataset(plan, Capacity(volume_bytes=volume))], in_pod=True)
