"""Runs the step `cache`: computes the memory sum of a training pod, and checks that it fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from podferry.components.data.dataset.runner import list_frozen, volume_problems
from podferry.components.log_tables import print_line, print_memory
from podferry.components.reports.memory_page import memory_page
from podferry.components.reports.render import html, write
from podferry.components.store_access import step_store_config
from podferry.contract.annotations import read_annotations
from podferry.contract.dataset_reference import parse_reference, reference_to
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import InvalidSpec, Problem, Refused
from podferry.contract.manifest import Manifest
from podferry.contract.memory_sum import MemorySum, Row, memory_sum
from podferry.contract.quantity import count_of, format_bytes, parse_bytes, quantity_at_least
from podferry.contract.spec import PREFIX, FerrySpec, Shard
from podferry.contract.tmpfs_cost import MIB, charged_bytes
from podferry.contract.variable_substitution import escape_variables
from podferry.sidecar.dataset.selection import Selection, shard_manifest

DESTINATION = "memory://plan/checkpoints"
"""Placeholder for the destination: the sum does not depend on it, and it is never opened."""


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """The inputs of the step; sizes are Kubernetes quantities, empty if not set.

    Attributes:
        reference: URI or reference of the dataset.
        dataset_size: Memory to reserve for the data.
        checkpoint_size: Bytes of one checkpoint.
        keep_local: Durable checkpoints to keep in memory.
        shm_size: Size of the trainer's `/dev/shm`.
        train_memory: Memory of the training itself, without `/dev/shm` and checkpoints.
        pod_memory: Limit for the entire pod.
        include, exclude: Globs of the files to include and to exclude.
        unpack: Which archives to unpack: `auto`, `never`, `always`.
        medium: Where the data is stored: `memory`, `disk`.
        shards: Number of pods that share the dataset, one part each.
    """

    reference: str
    dataset_size: str = ""
    checkpoint_size: str = ""
    keep_local: int = 1
    shm_size: str = ""
    train_memory: str = ""
    pod_memory: str = ""
    include: str = ""
    exclude: str = ""
    unpack: str = ""
    medium: str = ""
    shards: int = 1

    def annotations(self) -> dict[str, str]:
        """The request as annotations, with the reference's selection; the listed sizes count, not its own."""
        reference = replace(parse_reference(self.reference), digest=None, bytes=None, files=None)
        settings = {
            "dataset": escape_variables(str(reference)),
            "dataset-size": self.dataset_size,
            "include": self.include,
            "exclude": self.exclude,
            "unpack": self.unpack,
            "medium": self.medium,
            "shm-size": self.shm_size,
            "checkpoints": DESTINATION if self.checkpoint_size else "",
            "checkpoint-size": self.checkpoint_size,
            "keep-local": str(self.keep_local) if self.checkpoint_size else "",
        }
        return {PREFIX + name: text for name, text in settings.items() if text}


class CachePlan(NamedTuple):
    """The outputs of the step.

    Attributes:
        reference: The dataset, frozen.
        dataset_size, sidecar_memory, pod_memory: Kubernetes quantities: the data volume, the sidecar, the
            entire pod.
        process_memory: The training process and its `/dev/shm`, whose contents count towards the container's
            limit; empty if `train_memory` is. The webhook adds the checkpoints and outputs.
    """

    reference: str
    dataset_size: str
    sidecar_memory: str
    process_memory: str
    pod_memory: str


def plan_cache(request: CacheRequest, endpoint: str = "", region: str = "", report: str = "") -> CachePlan:
    """Compute and print the memory sum; `report` is the path of a page about it for KFP's UI, if given.

    Raises:
        Refused: It does not fit; each limit with its numbers and remedy.
        InvalidSpec, EmptyDataset, Changed and the store's errors: It cannot be planned.
    """
    spec, train_bytes, limit_bytes = _read_request(request)
    [dataset] = spec.datasets
    selection = Selection(dataset.include, dataset.exclude)
    frozen, manifest = list_frozen(
        request.reference, selection, step_store_config(endpoint, region), dataset.unpack
    )
    part = _largest_part(manifest, request.shards)
    needed = memory_sum(spec, {"": ListedSize.of(part)})
    described, rows = _describe(manifest, part, request.shards), _rows(needed, train_bytes)
    print_memory(described, rows)
    problems = list(_fit_problems(part, needed, train_bytes, limit_bytes))
    verdict = f"fits: the pod needs {format_bytes(needed.pod + train_bytes)}"
    if report:
        write(report, html(memory_page(f"Memory of a pod for {described}", frozen, rows, verdict, problems)))
    Refused.raise_any(problems)
    print_line(verdict)
    [volume] = needed.data
    return CachePlan(
        reference=str(reference_to(frozen, selection.include, selection.exclude)),
        dataset_size=request.dataset_size or _mebibytes(volume.bytes),
        sidecar_memory=_mebibytes(needed.sidecar),
        process_memory=_mebibytes(train_bytes + needed.shm_volume) if train_bytes else "",
        pod_memory=_mebibytes(needed.pod + train_bytes),
    )


def _mebibytes(count: int) -> str:
    """A quantity in MiB, as the webhook sets it: rounded further, the plan would not be that of the pod."""
    return f"{-(-count // MIB)}Mi"


def _largest_part(manifest: Manifest, shards: int) -> Manifest:
    """The largest of the parts that the pods get. Raises `Refused` for fewer files than pods."""
    if shards == 1:
        return manifest
    parts = (shard_manifest(manifest, Shard(rank, shards)) for rank in range(shards))
    return max(parts, key=lambda part: charged_bytes(entry.size for entry in part.entries))


def _describe(manifest: Manifest, part: Manifest, shards: int) -> str:
    dataset = f"{count_of(manifest.files, 'file')} of {format_bytes(manifest.bytes)}"
    if shards == 1:
        return dataset
    largest = f"{count_of(part.files, 'file')} of {format_bytes(part.bytes)}"
    return f"{largest}, the largest of {shards} parts of {dataset}"


def _read_request(request: CacheRequest) -> tuple[FerrySpec, int, int | None]:
    """The spec, the training's own memory and the pod's limit in bytes. Raises `InvalidSpec`."""
    problems: list[Problem] = []
    sizes: dict[str, int | None] = {}
    if request.shards < 1:
        measured = str(request.shards)
        problems.append(Problem("shards: not an integer of 1 or more", measured, "Write 1 or more"))
    for name, text in (("train_memory", request.train_memory), ("pod_memory", request.pod_memory)):
        try:
            sizes[name] = parse_bytes(text) if text else None
        except InvalidSpec as error:
            problems += (Problem(f"{name}: {one.what}", one.measured, one.remedy) for one in error.problems)
    try:
        spec = read_annotations(request.annotations())
    except InvalidSpec as error:
        raise InvalidSpec(*error.problems, *problems) from error
    InvalidSpec.raise_any(problems)
    assert spec is not None  # noqa: S101 - a request always names a dataset, so the pod opts in
    return spec, sizes["train_memory"] or 0, sizes["pod_memory"]


def _fit_problems(
    manifest: Manifest, needed: MemorySum, train_bytes: int, limit_bytes: int | None
) -> Iterator[Problem]:
    """Why a plan does not fit; empty if it does."""
    yield from volume_problems(manifest, needed.data[0].bytes, "dataset_size")
    total = needed.pod + train_bytes
    if limit_bytes is not None and total > limit_bytes:
        over = format_bytes(total - limit_bytes)
        yield Problem(
            "the pod is larger than its memory",
            f"it needs {format_bytes(total)}, {over} more than the {format_bytes(limit_bytes)} of pod_memory",
            f"Use nodes that give a pod {quantity_at_least(total)}, a smaller dataset, or smaller or fewer "
            "checkpoints in memory",
        )


def _rows(needed: MemorySum, train_bytes: int) -> tuple[Row, ...]:
    if not train_bytes:
        return needed.rows()
    total = Row("pod", needed.pod + train_bytes, "what podferry adds, and the training itself")
    return (*needed.rows(), Row("training", train_bytes, "train_memory"), total)
