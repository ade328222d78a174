"""Sums up what the holders of a cache say. The columns are those of Paddle Operator's SampleSet."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from podferry.contract.cache_api import CACHE_LABEL, SOURCE_ANNOTATION, HolderStatus
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec
from podferry.contract.status import DatasetStatus


class Phase(StrEnum):
    """What a reader can expect."""

    EMPTY = "Empty"
    """It has been cleared, and no holder runs. Readers take the source."""
    PENDING = "Pending"
    """No holder responds, yet."""
    FILLING = "Filling"
    """Readers wait."""
    PARTIAL = "PartialReady"
    """Some holders have the dataset, and serve the readers of the others."""
    READY = "Ready"
    REFRESHING = "Refreshing"
    """As `READY`; the source is listed again, or what has changed there is fetched. The sizes are of that."""
    FAILED = "Failed"
    """No holder can run, or fetch it; `problems` say why. Readers take the source."""


SERVING = frozenset((Phase.READY, Phase.REFRESHING))


class HolderReport(msgspec.Struct, frozen=True):
    """One holder.

    Attributes:
        pod: Its name.
        node: Where it runs; empty if it is not scheduled.
        status: What it says, or None if it does not respond.
        problem: Why it does not respond, or serves nothing of the cache.
        is_outdated: Whether it keeps another dataset than the cache has by now: its pod is to be replaced.
        has_failed: Whether Kubernetes cannot run its pod.
        refused: When its program ended because another try cannot help; empty if it has not.
    """

    pod: str
    node: str
    status: HolderStatus | None = None
    problem: str = ""
    has_failed: bool = False
    refused: str = ""
    is_outdated: bool = False

    @property
    def _datasets(self) -> tuple[DatasetStatus, ...]:
        return self.status.datasets if self.status and not self.is_outdated else ()

    @property
    def total_bytes(self) -> int:
        """The dataset's size, 0 if it is not known."""
        return sum(one.bytes for one in self._datasets)

    @property
    def cached_bytes(self) -> int:
        """What it has of it."""
        return sum(one.bytes_done for one in self._datasets)

    @property
    def free_bytes(self) -> int:
        """Free space in its volume, and in the cache's size."""
        return max(map(_free, self.status.datasets), default=0) if self.status else 0

    @property
    def phase(self) -> Phase:
        """Of this holder alone."""
        if self.status is None or self.is_outdated:
            return Phase.FAILED if self.has_failed else Phase.PENDING
        if self.status.complete:
            return Phase.REFRESHING if self.status.refreshing else Phase.READY
        return Phase.FAILED if self.status.problems else Phase.FILLING


def _free(dataset: DatasetStatus) -> int:
    """On a disk, the volume is the whole file system of the node: `--size` may leave less."""
    if dataset.size_limit is None:
        return dataset.volume_free
    return min(dataset.volume_free, max(0, dataset.size_limit - dataset.bytes_done))


class CacheReport(msgspec.Struct, frozen=True):
    """One cache.

    Attributes:
        name, namespace, source: As it was created.
        wanted: How many holders there should be.
        holders: Those that there are.
        created: Unix time in seconds.
        problem: What is wrong with its objects, such as why there are fewer pods than there should be.
        is_replacing: Whether pods are still to be replaced because the cache has been changed.
    """

    name: str
    namespace: str
    source: str
    wanted: int
    holders: tuple[HolderReport, ...]
    created: float = 0.0
    problem: str = ""
    is_replacing: bool = False

    @property
    def ready(self) -> int:
        """Holders that serve."""
        return sum(one.phase in SERVING for one in self.holders)

    @property
    def total_bytes(self) -> int:
        """The dataset's size, 0 if no holder knows it."""
        return max((one.total_bytes for one in self.holders), default=0)

    @property
    def cached_bytes(self) -> int:
        """Of the holder that has most: each of them is to have everything."""
        return max((one.cached_bytes for one in self.holders), default=0)

    @property
    def free_bytes(self) -> int:
        """Of the holder that has least free space."""
        return min((one.free_bytes for one in self.holders if one.status), default=0)

    @property
    def readers(self) -> tuple[str, ...]:
        """Who reads from a holder at this moment, other holders left out."""
        found = {name for one in self.holders if one.status for name in one.status.readers}
        return tuple(sorted(found - {f"{self.namespace}/{one.pod}" for one in self.holders}))

    @property
    def phase(self) -> Phase:
        """Of all holders together."""
        if not self.holders and (self.problem or not self.wanted):
            return Phase.FAILED if self.problem else Phase.EMPTY
        phases = {one.phase for one in self.holders}
        if phases and phases <= SERVING and self.ready >= self.wanted:
            return Phase.REFRESHING if Phase.REFRESHING in phases else Phase.READY
        if phases & SERVING:
            return Phase.PARTIAL
        return next((one for one in (Phase.FILLING, Phase.FAILED) if one in phases), Phase.PENDING)

    @property
    def cannot_fetch(self) -> bool:
        """Whether no holder can fetch the dataset, as they say. A pod that cannot run may run later."""
        refused = any(one.status and one.status.problems for one in self.holders)
        return self.phase is Phase.FAILED and refused

    @property
    def refusals(self) -> frozenset[tuple[str, str]]:
        """The pods whose program has ended because another try cannot help, and when."""
        return frozenset((one.pod, one.refused) for one in self.holders if one.refused)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why holders do not serve, each once."""
        found = [one for one in (self.problem, *(holder.problem for holder in self.holders)) if one]
        for one in self.holders:
            found += map(str, one.status.problems if one.status else ())
        return tuple(dict.fromkeys(found))


def cache_report(
    service: Mapping[str, Any], workload: Mapping[str, Any], holders: tuple[HolderReport, ...], created: float
) -> CacheReport:
    """The report of a cache, from its Service, its StatefulSet and what its holders say."""
    metadata, source = service["metadata"], source_of(service)
    return CacheReport(
        metadata["labels"][CACHE_LABEL],
        metadata["namespace"],
        source,
        (workload.get("spec") or {}).get("replicas", 0),
        tuple(_of_source(one, source) for one in holders),
        created,
        "" if workload else "it has no StatefulSet. Create it again",
        _is_replacing(workload),
    )


def _of_source(holder: HolderReport, source: str) -> HolderReport:
    """The report of a holder; of one that keeps another dataset than the cache has, it says so."""
    kept = [one.uri for one in holder.status.datasets] if holder.status else []
    wanted = _version(source)
    if not kept or not source or any(_version(one) == wanted for one in kept):
        return holder
    what = f"{holder.pod} keeps {', '.join(kept)}, and is replaced when the other holders run"
    return msgspec.structs.replace(holder, is_outdated=True, problem=what)


def _version(reference: str) -> tuple[str, str | None]:
    """The dataset that a reference names, and the digest that it is frozen to."""
    try:
        parsed = parse_reference(reference)
    except InvalidSpec:  # whoever edits a Service may write anything
        return reference, None
    return str(parsed.uri), parsed.digest


def _is_replacing(workload: Mapping[str, Any]) -> bool:
    """Whether its controller has not seen the newest template, or has pods of the one before."""
    status, metadata = workload.get("status") or {}, workload.get("metadata") or {}
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return True
    revisions = {status.get(f"{which}Revision") for which in ("current", "update")}
    updated = status.get("updatedReplicas", 0) >= (workload.get("spec") or {}).get("replicas", 0)
    return len(revisions) > 1 and not updated


def source_of(service: Mapping[str, Any]) -> str:
    """The dataset of a cache, by its Service; empty if that does not say."""
    return str((service["metadata"].get("annotations") or {}).get(SOURCE_ANNOTATION, ""))
