"""The ferry spec: a pod's resolved wishes, as the webhook hands them to the agent.

It travels as one line of JSON in an environment variable, so places stand in it as text, in the canonical
form that `str(parse_reference(...))` and `str(parse_uri(...))` give.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from podferry.contract.documents import decode_document
from podferry.contract.errors import Corrupt, InvalidWish, Problem
from podferry.contract.reference import Reference, parse_reference
from podferry.contract.uri import Uri, parse_uri

FORMAT = 1
PREFIX = "podferry.io/"
"""What the keys of all our annotations begin with."""
DATASET_PATH = "/dev/shm/dataset"  # noqa: S108 - the documented default, a volume of its own
CHECKPOINT_PATH = "/dev/shm/checkpoints"  # noqa: S108 - as above
OUTPUT_PATH = "/dev/shm/outputs"  # noqa: S108 - as above

Bytes = Annotated[int, msgspec.Meta(gt=0)]
Seconds = Annotated[int, msgspec.Meta(gt=0)]


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


class DatasetSpec(msgspec.Struct, frozen=True):
    """The dataset to bring before training.

    Attributes:
        reference: URI, with `#sha256=…&bytes=…&files=…` where it is frozen.
        path: Absolute directory in which the trainer reads it.
        size: Bytes to reserve; None where the reference or the policy says.
        access: How to reach it.
    """

    reference: str
    path: str = DATASET_PATH
    size: Bytes | None = None
    access: Access = Access()

    @property
    def parsed(self) -> Reference:
        """The reference as a value.

        Raises:
            InvalidWish: The text is no reference. `decode_spec` and `read_annotations` let none through.
        """
        return parse_reference(self.reference)


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
            InvalidWish: The text is no URI. `decode_spec` and `read_annotations` let none through.
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
            InvalidWish: The text is no URI. `decode_spec` and `read_annotations` let none through.
        """
        return parse_uri(self.uri)


class FerrySpec(msgspec.Struct, frozen=True):
    """All that one pod wishes.

    Attributes:
        dataset: What to bring, if anything.
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

    dataset: DatasetSpec | None = None
    checkpoints: CheckpointSpec | None = None
    lineage: str | None = None
    world: Annotated[int, msgspec.Meta(ge=1)] = 1
    shm_size: Bytes | None = None
    grace: Seconds | None = None
    container: str | None = None
    outputs: OutputSpec | None = None
    rank: Annotated[int, msgspec.Meta(ge=0)] | None = None
    format: int = FORMAT


def encode_spec(spec: FerrySpec) -> bytes:
    """The spec as JSON, one line."""
    return msgspec.json.encode(spec)


def decode_spec(data: bytes, source: str = "ferry spec") -> FerrySpec:
    """Read a spec.

    Args:
        data: The document.
        source: Where it came from, for messages.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No spec, or one whose places are none.
    """
    spec = decode_document(data, FerrySpec, FORMAT, source)
    parts = (spec.dataset, spec.checkpoints, spec.outputs)
    Corrupt.raise_any([problem for part in parts for problem in _unreadable(part)])
    return spec


def _unreadable(part: DatasetSpec | CheckpointSpec | OutputSpec | None) -> tuple[Problem, ...]:
    try:
        _ = part and part.parsed
    except InvalidWish as error:
        return error.problems
    return ()
