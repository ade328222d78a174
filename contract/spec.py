"""The ferry spec: a pod's resolved wishes, as the webhook hands them to the agent.

It travels as one line of JSON in an environment variable, so places stand in it as text, in the canonical
form that `str(parse_reference(...))` and `str(parse_uri(...))` give.
"""

from __future__ import annotations

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


class CheckpointSpec(msgspec.Struct, frozen=True):
    """Where checkpoints go and come from.

    Attributes:
        uri: Destination; lineages lie below it.
        path: Absolute directory in which the trainer writes and finds them.
        size: Bytes of one; None where the policy says.
        keep_local: How many durable ones stay in memory.
        restore: `auto`, `latest`, `never`, a checkpoint's name, or the URI of one.
        access: How to reach the destination.
    """

    uri: str
    path: str = CHECKPOINT_PATH
    size: Bytes | None = None
    keep_local: Annotated[int, msgspec.Meta(ge=0)] = 1
    restore: str = "auto"
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
        lineage: The lineage that the user asks for; None to compute it (`podferry.contract.lineage`).
        world: Number of pods of the training.
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
    Corrupt.raise_any([*_unreadable(spec.dataset), *_unreadable(spec.checkpoints)])
    return spec


def _unreadable(part: DatasetSpec | CheckpointSpec | None) -> tuple[Problem, ...]:
    try:
        _ = part and part.parsed
    except InvalidWish as error:
        return error.problems
    return ()
