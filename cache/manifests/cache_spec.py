"""What a cache is asked to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.annotation_values import parse_size
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Access, DatasetSpec, FerrySpec, Medium, Unpack

NO_LABELS: Mapping[str, str] = {}
NO_AFFINITY: Mapping[str, Any] = {}
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
"""As a dataset's name in annotations, with room for `podferry-cache-` and the pods' numbers."""
MIN_RATE = 1 << 20
"""Bytes a second that holders take together: a range of 8 MiB takes 8 s then."""

READERS = re.compile(r"[a-z0-9*?\[\]!-]{1,63}")
"""Of a namespace's name, with what globs have."""
IMAGE = re.compile(r"\S+")
"""Registries have rules of their own; no image has blanks."""
LABEL = re.compile(r"([^=\s]+)=([^=\s]*)")


def parse_cache_name(text: str) -> str:
    """Parse the name of a cache."""
    if not NAME.fullmatch(text):
        remedy = "Write lower-case letters, digits and hyphens, 32 at most"
        raise InvalidSpec.of("not a name of a cache", repr(text), remedy)
    return text


def parse_readers(text: str) -> str:
    """Parse a glob over namespaces."""
    if not READERS.fullmatch(text):
        remedy = "Write one such as team-a or team-*, and --readers again for each further one"
        raise InvalidSpec.of("not a namespace or a pattern of some", repr(text), remedy)
    return text


def parse_label(text: str) -> tuple[str, str]:
    """Parse a label of nodes, `KEY=VALUE`."""
    match = LABEL.fullmatch(text)
    if match is None:
        raise InvalidSpec.of("not a label of a node", repr(text), "Write KEY=VALUE")
    return match[1], match[2]


def parse_image(text: str) -> str:
    """Parse the name of an image."""
    if not IMAGE.fullmatch(text):
        raise InvalidSpec.of("not a name of an image", repr(text), "Write one such as podferry:0.1.0")
    return text


def parse_node_directory(text: str) -> str:
    """Parse a directory of the nodes: absolute, without a slash at its end."""
    if not text.startswith("/") or not text.strip("/") or ".." in text.split("/"):
        raise InvalidSpec.of(
            "not an absolute directory below /", repr(text), "Write one such as /var/lib/podferry"
        )
    return text.rstrip("/")


def parse_rate(text: str) -> int:
    """Parse bytes a second, such as `200Mi`; at least `MIN_RATE`."""
    rate = parse_size(text)
    if rate < MIN_RATE:
        raise InvalidSpec.of("too few bytes a second", repr(text), "Write 1Mi or more")
    return rate


class CacheSpec(msgspec.Struct, frozen=True):
    """A cache: which dataset, where, for whom.

    Attributes:
        name: Of the cache, and of its objects after `podferry-cache-`.
        namespace: Where its holders run; pods of this namespace and of `readers` may read.
        source: A reference to the dataset.
        size: Bytes to reserve for its files; None for the size that a frozen reference names.
        image: Of the holders.
        nodes: On how many nodes a holder runs.
        selector: Labels of the nodes.
        node_affinity: More about the nodes, as in a pod's `nodeAffinity`.
        tolerations: Of the holders' pods.
        readers: Globs over namespaces whose pods may read.
        access: How to reach the source.
        medium: Memory or disk.
        shared: A directory of the nodes with the mounts `stage` and `read`, for readers without a copy; empty
            to keep the dataset in the holders' own volumes.
        max_rate: Bytes a second that all holders together take from the source; None for as many as arrive.
        refresh: Seconds after which holders list the source again; None for when they are asked to.
    """

    name: str
    namespace: str
    source: str
    size: int | None
    image: str
    nodes: int = 1
    selector: Mapping[str, str] = NO_LABELS
    node_affinity: Mapping[str, Any] = NO_AFFINITY
    tolerations: tuple[Mapping[str, Any], ...] = ()
    readers: tuple[str, ...] = ()
    access: Access = Access()
    medium: Medium = Medium.MEMORY
    shared: str = ""
    max_rate: int | None = None
    refresh: int | None = None

    @property
    def object_name(self) -> str:
        """The name of its objects."""
        return f"podferry-cache-{self.name}"

    @property
    def dataset(self) -> DatasetSpec:
        """What a holder stages."""
        return DatasetSpec(
            self.source, size=self.size, access=self.access, unpack=Unpack.NEVER, medium=self.medium
        )

    @property
    def ferry(self) -> FerrySpec:
        """The same as the spec of an agent without checkpoints, for the memory sum."""
        return FerrySpec(datasets=(self.dataset,))
