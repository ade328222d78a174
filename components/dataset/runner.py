"""The work of the step `dataset`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podferry.components.reach import reach
from podferry.components.tables import say, show_memory
from podferry.contract.errors import Problem
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.manifest import Manifest
from podferry.contract.memory import memory_sum
from podferry.contract.quantity import format_bytes, parse_bytes, quantity_at_least
from podferry.contract.reference import parse_reference, reference_to
from podferry.contract.spec import DatasetSpec, FerrySpec
from podferry.sidecar.capacity import Capacity
from podferry.sidecar.plan import fit_problems, plan_prefetch
from podferry.sidecar.settings import PrefetchSettings
from podferry.storage.listing import check_frozen, open_dataset
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


def freeze_dataset(uri: str, endpoint: str = "", region: str = "", volume_size: str = "") -> FrozenDataset:
    """List a dataset, freeze it, say what it needs and whether that fits.

    Args:
        uri: A prefix or an object, or a reference that is to be compared with what is there.
        endpoint: Address of the service; empty for the vendor's own.
        region: The vendor's name of the region; empty for its default.
        volume_size: Memory reserved for it; empty to take what it needs.

    Raises:
        EmptyDataset, Changed, InvalidWish and the store's errors: Why it cannot be frozen.
    """
    reserved = parse_bytes(volume_size) if volume_size else None
    manifest = list_frozen(uri, reach(endpoint, region))
    reference = str(reference_to(manifest))
    spec = FerrySpec(dataset=DatasetSpec(reference, size=reserved))
    needed = memory_sum(spec, manifest.bytes, manifest.files)
    size = volume_size or quantity_at_least(needed.data_volume)
    show_memory(reference, needed.rows())
    problems = volume_problems(manifest, parse_bytes(size))
    for problem in problems:
        say(f"does not fit: {problem}")
    if not problems:
        say(f"fits: {manifest.files:,} files of {format_bytes(manifest.bytes)} in a data volume of {size}")
    document = Document(reference, manifest.uri, manifest.digest, manifest.bytes, manifest.files)
    return FrozenDataset(document, size, not problems)


def list_frozen(text: str, config: StoreConfig) -> Manifest:
    """The manifest of a URI or reference.

    Raises:
        Changed: The reference is frozen and what is there is another version.
        EmptyDataset, InvalidWish and the store's errors: It cannot be listed.
    """
    reference = parse_reference(text)

    async def listed() -> Manifest:
        found = await open_dataset(reference.uri, config)
        await found.store.close()
        return found.manifest

    manifest = asyncio.run(listed())
    check_frozen(reference, manifest)
    return manifest


def volume_problems(manifest: Manifest, volume: int) -> list[Problem]:
    """Why a dataset does not fit into a memory volume of that many bytes; empty where it does."""
    plan = plan_prefetch(manifest, frozenset(), PrefetchSettings())
    return fit_problems(plan, Capacity(volume_bytes=volume), in_pod=True)
