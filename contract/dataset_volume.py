"""The volume of one dataset: size, medium, and the reason for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.footprint import Footprint
from podferry.contract.manifest import Manifest
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, DatasetSpec, Medium, Unpack
from podferry.contract.tmpfs_cost import (
    KERNEL_BYTES_PER_FILE,
    MIB,
    allocated_bytes,
    max_allocated_bytes,
    whole_mebibytes,
)

SLACK_PERCENT = 5
MIN_SLACK_BYTES = 16 * MIB
"""Slack in the data volume for directories, names of partial files, and the volume's own pages."""


class ListedSize(msgspec.Struct, frozen=True):
    """The size of this pod's part of a dataset, from a listing.

    Attributes:
        bytes: Of its files.
        files: How many.
        allocated: What they take of a volume, in whole pages.
    """

    bytes: int
    files: int
    allocated: int

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """That of the files of a manifest."""
        allocated = allocated_bytes(entry.size for entry in manifest.entries)
        return cls(manifest.bytes, manifest.files, allocated)


class DatasetVolume(msgspec.Struct, frozen=True):
    """The volume of one dataset.

    Attributes:
        name: The dataset's; empty for the unnamed one.
        medium: Memory or disk.
        bytes: The volume's sizeLimit.
        files: Bytes of kernel and agent memory for the metadata of its files.
        pages: Bytes that its files take; None if they were not listed.
        why: Where the size comes from.
    """

    name: str
    medium: Medium
    bytes: int
    files: int
    why: str
    pages: int | None = None

    @property
    def what(self) -> str:
        """Its label in a table."""
        return " ".join(filter(None, ("data volume", self.name)))


def known_size(dataset: DatasetSpec, listed: ListedSize | None) -> tuple[int | None, int | None]:
    """Bytes and files of this pod's part, each None if unknown.

    A reference gives the size of the complete selection. How even its shards are depends on the largest file,
    which it does not give: the agent counts before it fetches a byte, and refuses with numbers.
    """
    if listed is not None:
        return listed.bytes, listed.files
    reference, shards = dataset.parsed, _shards(dataset)
    size = None if reference.bytes is None else -(-reference.bytes // shards)
    files = None if reference.files is None else -(-reference.files // shards)
    return size, files


def described_size(dataset: DatasetSpec, listed: ListedSize | None) -> str:
    """What `known_size` returns, for people."""
    size, files = known_size(dataset, listed)
    described = f"{format_bytes(size or 0)} in {files or 0:,} files"
    is_even_part = listed is None and _shards(dataset) > 1 and size is not None
    return f"an even shard of {_shards(dataset)}, {described}," if is_even_part else described


def _shards(dataset: DatasetSpec) -> int:
    return dataset.shard.count if dataset.shard else 1


def unknown_size(dataset: DatasetSpec, listed: ListedSize | None = None) -> Iterator[Problem]:
    """Why the size of a dataset's volume is unknown, if it is."""
    if dataset.size is not None:
        return
    key = PREFIX + dataset.key("dataset-size")
    if dataset.unpack is Unpack.ALWAYS:
        what = f"{PREFIX}{dataset.key('unpack')} is always, but the unpacked size is unknown"
        measured = f"{dataset.reference} gives at most the packed size"
        yield Problem(what, measured, f"Set {key} to the bytes of the unpacked files")
    elif listed is None and dataset.parsed.bytes is None:
        remedy = f"Set {key}, or use the reference that `podferry dataset freeze` prints"
        yield Problem("the size of the dataset is unknown", dataset.reference, remedy)


def dataset_volume_of(
    dataset: DatasetSpec, listed: ListedSize | None = None, footprint: Footprint | None = None
) -> DatasetVolume:
    """The volume of one dataset whose size is known: `unknown_size` yields nothing."""
    agent = footprint or Footprint()
    size, count = known_size(dataset, listed)
    if count is None:
        count = -(-(size if size is not None else dataset.size or 0) // agent.typical_file)
    files = count * (agent.entry + (0 if dataset.medium is Medium.DISK else KERNEL_BYTES_PER_FILE))
    pages = None if listed is None else listed.allocated
    if dataset.size is not None:
        why = PREFIX + dataset.key("dataset-size")
        if pages is not None and pages > dataset.size:
            why += f", too small: {described_size(dataset, listed)} take {format_bytes(pages)} in whole pages"
        return DatasetVolume(dataset.name, dataset.medium, whole_mebibytes(dataset.size), files, why, pages)
    need = max_allocated_bytes(size or 0, count) if listed is None else listed.allocated
    slack = max(-(-need * SLACK_PERCENT // 100), MIN_SLACK_BYTES)
    taken = f"{'up to ' if listed is None else ''}{format_bytes(need)} in whole pages"
    why = f"{described_size(dataset, listed)} take {taken}; {format_bytes(slack)} of slack"
    return DatasetVolume(dataset.name, dataset.medium, whole_mebibytes(need + slack), files, why, pages)
