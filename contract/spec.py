"""The ferry spec: a pod's resolved wishes, as the webhook hands them to the agent.

It travels as one line of JSON in an environment variable, so places stand in it as text, in the canonical
form that `str(parse_reference(...))` and `str(parse_uri(...))` give.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from podferry.contract.api import DATASET_VARIABLE
from podferry.contract.reference import Reference, parse_reference
from podferry.contract.uri import Uri, parse_uri

FORMAT = 2
"""1 had one dataset at most, under the key `dataset`: an agent of that time must not overlook several."""
PREFIX = "podferry.io/"
"""What the keys of all our annotations begin with."""
SHM = "/dev/shm"  # noqa: S108 - the place that our volumes lie in
DATASET_PATH = f"{SHM}/dataset"
CHECKPOINT_PATH = f"{SHM}/checkpoints"
OUTPUT_PATH = f"{SHM}/outputs"
"""The documented defaults, each a volume of its own."""
FILE_MODE = 0o644
MAX_DATASET_NAME_LENGTH = 32
"""Characters of a dataset's name: the volumes and annotations that are named after it have 63 at most."""
DATASET_NAME = r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
"""A DNS-1123 label of at most `MAX_DATASET_NAME_LENGTH` characters."""

Bytes = Annotated[int, msgspec.Meta(gt=0)]
Seconds = Annotated[int, msgspec.Meta(gt=0)]
FileMode = Annotated[int, msgspec.Meta(ge=0o400, le=0o777)]
DatasetName = Annotated[str, msgspec.Meta(pattern=rf"^({DATASET_NAME})?\Z")]


class Access(msgspec.Struct, frozen=True):
    """How to reach a store, as far as the user says.

    Attributes:
        secret: Name of a Secret in the pod's namespace; None for the pod's own identity.
        endpoint: `https://host:port` of the service; None for the vendor's own.
        region: As the vendor names it; None for the store's default.
    """

    secret: str | None = None
    endpoint: str | None = None
    region: str | None = None


class Unpack(StrEnum):
    """Which archives become the files that they hold."""

    AUTO = "auto"
    """Only what `podferry dataset pack` made: a WebDataset wants its tars as they are."""
    NEVER = "never"
    ALWAYS = "always"
    """Every .tar, .tar.gz, .tgz, .tar.zst and .zip."""


class Medium(StrEnum):
    """What a dataset's volume lies on."""

    MEMORY = "memory"
    DISK = "disk"
    """The node's: for sets that are larger than memory."""
    AUTO = "auto"
    """Memory where the sum allows it, else disk. A resolved spec says which of the two."""


class Shard(msgspec.Struct, frozen=True):
    """One pod's part of a dataset.

    Attributes:
        rank: Which of them, from 0.
        count: How many parts there are.
    """

    rank: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1)]

    def __post_init__(self) -> None:
        if self.rank >= self.count:
            raise ValueError(f"rank {self.rank} of {self.count} parts, which count from 0")

    def __str__(self) -> str:
        return f"{self.rank}/{self.count}"


class DatasetSpec(msgspec.Struct, frozen=True):
    """One dataset to bring before training.

    Attributes:
        reference: URI, with `#sha256=…&bytes=…&files=…` where it is frozen.
        path: Absolute directory in which the trainer reads it.
        size: Bytes to reserve; None where the reference or the policy says.
        access: How to reach it.
        name: That of `dataset.NAME`; empty for the dataset that has none.
        include: Globs over relative names, of which one must match; none for all files.
        exclude: Globs over relative names, of which none may match.
        file_mode: Permission bits of each file.
        unpack: Which archives become the files that they hold.
        shard: The part of the selection that this pod has; None for the whole.
        medium: What its volume lies on.
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

    @property
    def parsed(self) -> Reference:
        """The reference as a value.

        Raises:
            InvalidSpec: The text is no reference. `decode_spec` and `read_annotations` let none through.
        """
        return parse_reference(self.reference)

    @property
    def variable(self) -> str:
        """The variable in which the trainer finds its path: `PODFERRY_DATASET` or `PODFERRY_DATASET_NAME`."""
        return "_".join(filter(None, (DATASET_VARIABLE, self.name.upper().replace("-", "_"))))

    def key(self, key: str) -> str:
        """An annotation's key of this dataset, without the prefix: `dataset-size` as `dataset-size.NAME`."""
        return f"{key}.{self.name}" if self.name else key


def default_path(name: str) -> str:
    """Where the trainer reads a dataset that has no path of its own; the empty name is the unnamed one's."""
    return f"{SHM}/{name}" if name else DATASET_PATH


class Completion(StrEnum):
    """When a checkpoint counts as whole."""

    AUTO = "auto"
    """By the rules of its writer, else when it has been closed and quiet."""
    MARKED = "marked"
    """When the trainer says so (`podferry checkpoint done`), never before."""


class CheckpointSpec(msgspec.Struct, frozen=True):
    """Where checkpoints go and come from.

    Attributes:
        uri: Destination; lineages lie below it.
        path: Absolute directory in which the trainer writes and finds them.
        size: Bytes of one; None where the policy says.
        keep_local: How many durable ones stay in memory.
        keep_remote: How many commits stay at the destination; None for all.
        restore: `auto`, `latest`, `never`, a checkpoint's name, or the URI of one.
        complete: When one counts as whole.
        upload_limit: Bytes a second that uploads may take; None for as many as there are.
        access: How to reach the destination.
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

    @property
    def parsed(self) -> Uri:
        """The destination as a value.

        Raises:
            InvalidSpec: The text is no URI. `decode_spec` and `read_annotations` let none through.
        """
        return parse_uri(self.uri)


class OutputSpec(msgspec.Struct, frozen=True):
    """A directory of results that is uploaded as it is.

    Attributes:
        uri: Destination; the directory's names lie below it.
        path: Absolute directory in which the trainer writes them.
        size: Bytes of all; None where the policy says.
        every: Seconds between uploads; None for one at the end.
        access: How to reach the destination.
    """

    uri: str
    path: str = OUTPUT_PATH
    size: Bytes | None = None
    every: Seconds | None = None
    access: Access = Access()

    @property
    def parsed(self) -> Uri:
        """The destination as a value.

        Raises:
            InvalidSpec: The text is no URI. `decode_spec` and `read_annotations` let none through.
        """
        return parse_uri(self.uri)


class FerrySpec(msgspec.Struct, frozen=True):
    """All that one pod wishes.

    Attributes:
        datasets: What to bring, if anything: the one without a name first, then by name.
        checkpoints: What to keep, if anything.
        outputs: What to upload besides, if anything.
        lineage: The lineage that the user asks for; None to compute it (`podferry.contract.lineage`).
        world: Number of pods that write a checkpoint together.
        rank: This pod's number in its training; None where nothing says.
        shm_size: Bytes of the trainer's `/dev/shm`; None for the policy's default.
        grace: Seconds between the pod's deletion and its end; None to compute it.
        container: Name of the training container; None to find it.
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
    format: int = FORMAT
