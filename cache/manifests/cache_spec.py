"""What a cache is asked to be."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podferry.contract.spec import Access, DatasetSpec, FerrySpec, Medium, Unpack

NO_LABELS: Mapping[str, str] = {}


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
        readers: Globs over namespaces whose pods may read.
        access: How to reach the source.
        medium: Memory or disk.
    """

    name: str
    namespace: str
    source: str
    size: int | None
    image: str
    nodes: int = 1
    selector: Mapping[str, str] = NO_LABELS
    readers: tuple[str, ...] = ()
    access: Access = Access()
    medium: Medium = Medium.MEMORY

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
