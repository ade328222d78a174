"""The volume of one dataset: how large, on what, and why."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, DatasetSpec, Medium, Unpack


class ListedSize(msgspec.Struct, frozen=True):
    """What is known of a dataset's files from a listing: of the part that this pod has.

    Attributes:
        bytes: Sum of the sizes.
        files: How many.
    """

    bytes: int
    files: int


class DatasetVolume(msgspec.Struct, frozen=True):
    """What a dataset takes.

    Attributes:
        name: The dataset's, empty for the one without a name.
        medium: Memory or disk.
        bytes: The volume's sizeLimit.
        files: Memory of the kernel and the agent for what they remember of its files.
        why: Where the figure comes from.
    """

    name: str
    medium: Medium
    bytes: int
    files: int
    why: str

    @property
    def what(self) -> str:
        """What a table calls it."""
        return " ".join(filter(None, ("data volume", self.name)))


def known_size(dataset: DatasetSpec, listed: ListedSize | None) -> tuple[int | None, int | None, str]:
    """Bytes and files of a pod's part as far as anything says, and how that is said.

    A reference tells of the whole selection. How even its parts are depends on the largest file, which it
    does not tell: the agent counts before a byte moves, and refuses with numbers.
    """
    if listed is not None:
        return listed.bytes, listed.files, _told(listed.bytes, listed.files)
    reference, parts = dataset.parsed, dataset.shard.count if dataset.shard else 1
    size = None if reference.bytes is None else -(-reference.bytes // parts)
    files = None if reference.files is None else -(-reference.files // parts)
    told = _told(size or 0, files)
    if parts > 1 and reference.bytes is not None:
        told = f"an even part of {parts}, {told},"
    return size, files, told


def _told(size: int, files: int | None) -> str:
    return f"{format_bytes(size)} in {files or 0:,} files"


def unknown_size(dataset: DatasetSpec, listed: ListedSize | None = None) -> Iterator[Problem]:
    """Why nobody can say how much a dataset takes."""
    if dataset.size is not None:
        return
    key = PREFIX + dataset.key("dataset-size")
    if dataset.unpack is Unpack.ALWAYS:
        what = f"{PREFIX}{dataset.key('unpack')} is always, and nothing says how large the files are"
        measured = f"{dataset.reference} tells of archives as they are packed"
        yield Problem(what, measured, f"Write {key}: the bytes of the files that are in them")
    elif listed is None and dataset.parsed.bytes is None:
        remedy = f"Write {key}, or a reference as `podferry dataset freeze` prints it"
        yield Problem("nothing says how large the dataset is", dataset.reference, remedy)
