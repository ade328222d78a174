"""The ferry spec: a pod's resolved settings, as the webhook passes them to the agent.

It is passed as one line of JSON in an environment variable, so locations are text, in the canonical form of
`str(parse_reference(...))` and `str(parse_uri(...))`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from podferry.contract.dataset_reference import Reference, parse_reference
from podferry.contract.spec_mixins import Destination, NamedDataset

FORMAT = 2
"""Format 1 had at most one dataset, under the key `dataset`: an old agent must not overlook several."""
PREFIX = "podferry.io/"
"""Prefix of all podferry annotations."""
SHM = "/dev/shm"  # noqa: S108 - volumes are mounted below it
DATASET_PATH = f"{SHM}/dataset"
CHECKPOINT_PATH = f"{SHM}/checkpoints"
OUTPUT_PATH = f"{SHM}/outputs"
"""The documented defaults, each a volume of its own."""
FILE_MODE = 0o644
MAX_DATASET_NAME_LENGTH = 32
"""Characters of a dataset's name: volumes and annotations named after it may have 63."""
DATASET_NAME = r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
"""A DNS-1123 label of at most `MAX_DATASET_NAME_LENGTH` characters."""

Bytes = Annotated[int, msgspec.Meta(gt=0)]
Seconds = Annotated[int, msgspec.Meta(gt=0)]
FileMode = Annotated[int, msgspec.Meta(ge=0o400, le=0o777)]
DatasetName = Annotated[str, msgspec.Meta(pattern=rf"^({DATASET_NAME})?\Z")]


class Access(msgspec.Struct, frozen=True):
    """How to access a store.

    Attributes:
        secret: Name of a Secret in the pod's namespace; None for the pod's own identity.
        endpoint: `https://host:port` of the service; None for the vendor's own.
        region: The vendor's name for it; None for the store's default.
    """

    secret: str | None = None
    endpoint: str | None = None
    region: str | None = None


class Unpack(StrEnum):
    """Which archives are unpacked."""

    AUTO = "auto"
    """Only packs made by `podferry dataset pack`: a WebDataset needs its tars as they are."""
    NEVER = "never"
    ALWAYS = "always"
    """Every .tar, .tar.gz, .tgz, .tar.zst and .zip."""


class Medium(StrEnum):
    """Where a dataset's volume is."""

    MEMORY = "memory"
    DISK = "disk"
    """The node's disk: for datasets that are larger than memory."""
    AUTO = "auto"
    """Memory if the memory sum allows it, else disk. A resolved spec has one of the two."""


class DatasetMode(StrEnum):
    """How a dataset reaches the trainer."""

    COPY = "copy"
    """The agent fetches it into a volume of the pod."""
    SHARE = "share"
    """A claim of the pod's namespace is mounted read-only: `pvc://CLAIM/PATH`."""
    IMAGE = "image"
    """An image is mounted read-only: `image://REGISTRY/NAME:TAG`."""


class Shard(msgspec.Struct, frozen=True):
    """One pod's part of a dataset.

    Attributes:
        rank: The part's number, from 0.
        count: Number of parts.
    """

    rank: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1)]

    def __post_init__(self) -> None:
        if self.rank >= self.count:
            raise ValueError(f"rank {self.rank} of {self.count} shards, which count from 0")

    def __str__(self) -> str:
        return f"{self.rank}/{self.count}"


class DatasetSpec(NamedDataset, msgspec.Struct, frozen=True):
    """One dataset to stage before training.

    Attributes:
        reference: URI, with `#sha256=…&bytes=…&files=…` if it is frozen.
        path: Absolute directory where the trainer reads it.
        size: Bytes to reserve; None to use the reference's or the policy's.
        access: How to access it.
        name: The NAME of `dataset.NAME`; empty for the unnamed dataset.
        include: Globs over relative names, one of which must match; empty for all files.
        exclude: Globs over relative names, none of which may match.
        file_mode: Permission bits of each file.
        unpack: Which archives to unpack.
        shard: This pod's part of the selection; None for all of it.
        medium: Where its volume is.
    """

    reference: str
    path: str = DATASET_PATH
    size: Bytes | None = None
    access: Access = Access()
    name: DatasetName = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    file_mode: FileMode = FILE_MODE
    unpack: Unpack = Unpack.AUTO
    shard: Shard | None = None
    medium: Medium = Medium.MEMORY


class MountedDataset(NamedDataset, msgspec.Struct, frozen=True):
    """A dataset that the kubelet mounts: nothing is copied.

    The agent knows nothing of it, unless it is a cache's: then it waits until its holder has all of it.

    Attributes:
        reference: `pvc://CLAIM/PATH`, or `image://REGISTRY/NAME:TAG`.
        mode: `SHARE` or `IMAGE`.
        path: Absolute directory where the trainer reads it.
        name: The NAME of `dataset.NAME`; empty for the unnamed dataset.
        source: A reference to the dataset that a cache shares through this claim; empty for other claims.
    """

    reference: str
    mode: DatasetMode
    path: str = DATASET_PATH
    name: DatasetName = ""
    source: str = ""

    @property
    def origin(self) -> Reference:
        """See `NamedDataset`."""
        return parse_reference(self.source or self.reference)


def default_path(name: str) -> str:
    """The default path of a dataset; its name is empty for the unnamed one."""
    return f"{SHM}/{name}" if name else DATASET_PATH


class Completion(StrEnum):
    """When a checkpoint counts as complete."""

    AUTO = "auto"
    """By the rules of its framework, else once it is closed and quiet."""
    MARKED = "marked"
    """When the trainer marks it (`podferry checkpoint done`), never before."""


class CheckpointSpec(Destination, msgspec.Struct, frozen=True):
    """Where checkpoints are uploaded to and restored from.

    Attributes:
        uri: Destination; each lineage is a directory below it.
        path: Absolute directory where the trainer writes and finds them.
        size: Bytes of one; None to use the policy's.
        keep_local: Durable checkpoints to keep in memory.
        keep_remote: Commits to keep at the destination; None for all.
        restore: `auto`, `latest`, `never`, a checkpoint's name, or the URI of one.
        complete: When one counts as complete.
        upload_limit: Maximum bytes per second of uploads; None for no limit.
        access: How to access the destination.
        read_only: Whether another pod writes them: this one restores, and uploads nothing.
    """

    uri: str
    path: str = CHECKPOINT_PATH
    size: Bytes | None = None
    keep_local: Annotated[int, msgspec.Meta(ge=0)] = 1
    restore: str = "auto"
    access: Access = Access()
    keep_remote: Annotated[int, msgspec.Meta(ge=1)] | None = None
    complete: Completion = Completion.AUTO
    upload_limit: Bytes | None = None
    read_only: bool = False


class OutputSpec(Destination, msgspec.Struct, frozen=True):
    """A directory of results that is uploaded unchanged.

    Attributes:
        uri: Destination of the directory's files.
        path: Absolute directory where the trainer writes them.
        size: Bytes of all; None to use the policy's.
        every: Seconds between uploads; None for one at the end.
        access: How to access the destination.
    """

    uri: str
    path: str = OUTPUT_PATH
    size: Bytes | None = None
    every: Seconds | None = None
    access: Access = Access()


class FerrySpec(msgspec.Struct, frozen=True):
    """All settings of one pod.

    Attributes:
        datasets: Datasets to stage: the unnamed one first, then by name.
        checkpoints: Checkpoints to upload and restore, if any.
        outputs: Outputs to upload, if any.
        lineage: The user's lineage; None to compute it (`podferry.contract.lineage`).
        world: Number of pods that write a checkpoint together.
        rank: This pod's number in its training run; None if unknown.
        shm_size: Bytes of the trainer's `/dev/shm`; None for the policy's default.
        grace: Seconds between the pod's deletion and its end; None to compute it.
        container: Name of the training container; None to detect it.
        mounted: Datasets that are mounted instead of staged, in the same order.
        format: Version of this document.
    """

    datasets: tuple[DatasetSpec, ...] = ()
    checkpoints: CheckpointSpec | None = None
    lineage: str | None = None
    world: Annotated[int, msgspec.Meta(ge=1)] = 1
    shm_size: Bytes | None = None
    grace: Seconds | None = None
    container: str | None = None
    outputs: OutputSpec | None = None
    rank: Annotated[int, msgspec.Meta(ge=0)] | None = None
    mounted: tuple[MountedDataset, ...] = ()
    format: int = FORMAT

    @property
    def all_datasets(self) -> tuple[DatasetSpec | MountedDataset, ...]:
        """Those that are staged, and those that are mounted."""
        return (*self.datasets, *self.mounted)

    @property
    def shared(self) -> tuple[MountedDataset, ...]:
        """Those that holders share with the pod."""
        return tuple(one for one in self.mounted if one.source)

    @property
    def has_destination(self) -> bool:
        """Whether there are checkpoints or outputs, and so a lineage."""
        return bool(self.checkpoints or self.outputs)

    @property
    def fetches(self) -> bool:
        """Whether anything is fetched: a dataset, or a checkpoint that may be restored."""
        return bool(self.datasets) or self.checkpoints is not None

    @property
    def needs_agent(self) -> bool:
        """Whether there is anything to stage, upload or restore."""
        return bool(self.datasets or self.shared) or self.has_destination
