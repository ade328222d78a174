"""`medium: auto`: memory where the sidecar's memory stays within a bound, else the node's disk."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from podferry.contract.memory import Footprint, dataset_volume_of, memory_sum, unknown_size_problems
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, FerrySpec, Medium


class ResolvedMedium(NamedTuple):
    """A spec without `auto`, and why its datasets lie where they do, a sentence for each that said `auto`."""

    spec: FerrySpec
    reasons: tuple[str, ...] = ()


def resolve_medium(spec: FerrySpec, bound: int, footprint: Footprint | None = None) -> ResolvedMedium:
    """Decide on every `auto`: all in memory if the sum allows it, else the largest go to disk until it does.

    A spec of which a size is unknown is left as it is: `memory_sum` says which.

    Args:
        spec: A pod's wishes.
        bound: Bytes that the sidecar's memory may have.
        footprint: What the agent needs.
    """
    undecided = [dataset for dataset in spec.datasets if dataset.medium is Medium.AUTO]
    if not undecided or any(unknown_size_problems(spec)):
        return ResolvedMedium(spec)
    largest = sorted(
        undecided, key=lambda one: (-dataset_volume_of(one, footprint=footprint).bytes, one.name)
    )
    reasons, allowed = {}, f"allowed are {format_bytes(bound)}"
    for count in range(len(largest) + 1):
        on_disk = frozenset(dataset.name for dataset in largest[:count])
        found = _with(spec, on_disk)
        need = memory_sum(found, footprint=footprint).sidecar
        if need <= bound:
            break
        if count < len(largest):
            more = f"with it in memory the sidecar needs {format_bytes(need)}"
            reasons[largest[count].name] = f"disk: {more}, {allowed}"
    inside = f"memory: the sidecar needs {format_bytes(need)}, {allowed}"
    said = (f"{PREFIX}{one.key('medium')}: {reasons.get(one.name, inside)}" for one in undecided)
    return ResolvedMedium(found, tuple(said))


def _with(spec: FerrySpec, on_disk: frozenset[str]) -> FerrySpec:
    replace = msgspec.structs.replace
    datasets = tuple(
        replace(one, medium=Medium.DISK if one.name in on_disk else Medium.MEMORY)
        if one.medium is Medium.AUTO
        else one
        for one in spec.datasets
    )
    return replace(spec, datasets=datasets)
