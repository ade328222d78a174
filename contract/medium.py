"""Resolves `medium: auto`: memory if the sidecar stays within a bound, else the node's disk."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from podferry.contract.dataset_volume import dataset_volume_of
from podferry.contract.footprint import Footprint
from podferry.contract.memory_sum import memory_sum, unknown_size_problems
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, DatasetSpec, FerrySpec, Medium


class ResolvedMedium(NamedTuple):
    """A spec without `auto`, and the reason for each medium that was `auto`."""

    spec: FerrySpec
    reasons: tuple[str, ...] = ()


def resolve_medium(spec: FerrySpec, bound: int, footprint: Footprint | None = None) -> ResolvedMedium:
    """Replace `auto`: memory if the sidecar fits in `bound` bytes, else the largest on disk until it does.

    A spec with an unknown size is returned unchanged: `memory_sum` reports that size.
    """
    undecided = [dataset for dataset in spec.datasets if dataset.medium is Medium.AUTO]
    if not undecided or any(unknown_size_problems(spec)):
        return ResolvedMedium(spec)
    largest = sorted(undecided, key=lambda one: (-dataset_volume_of(one, None, footprint).bytes, one.name))
    reasons, allowed = {}, f"{format_bytes(bound)} are allowed"
    for count in range(len(largest) + 1):
        on_disk = frozenset(dataset.name for dataset in largest[:count])
        found = _with(spec, on_disk)
        need = memory_sum(found, footprint=footprint).sidecar
        if need <= bound:
            break
        if count < len(largest):
            too_much = f"in memory, the sidecar needs {format_bytes(need)}; {allowed}"
            reasons[largest[count].name] = f"disk: {too_much}"
    fits = f"memory: the sidecar needs {format_bytes(need)}; {allowed}"
    sentences = (f"{PREFIX}{one.key('medium')}: {reasons.get(one.name, fits)}" for one in undecided)
    return ResolvedMedium(found, tuple(sentences))


def _with(spec: FerrySpec, on_disk: frozenset[str]) -> FerrySpec:
    def resolved(one: DatasetSpec) -> DatasetSpec:
        medium = Medium.DISK if one.name in on_disk else Medium.MEMORY
        return msgspec.structs.replace(one, medium=medium) if one.medium is Medium.AUTO else one

    return msgspec.structs.replace(spec, datasets=tuple(map(resolved, spec.datasets)))
