"""The work of the step `cache`: the memory sum of a training pod, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podferry.components.dataset.runner import list_frozen, volume_problems
from podferry.components.log_tables import say, show_memory
from podferry.components.store_access import step_store_config
from podferry.contract.annotations import read_annotations
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import InvalidSpec, Problem, Refused
from podferry.contract.manifest import Manifest
from podferry.contract.memory import MemorySum, Row, memory_sum
from podferry.contract.quantity import format_bytes, parse_bytes, quantity_at_least
from podferry.contract.reference import reference_to
from podferry.contract.spec import PREFIX, FerrySpec, Shard
from podferry.contract.substitution import escape_variables
from podferry.contract.tmpfs_cost import charged_bytes
from podferry.sidecar.dataset.selection import Selection, part_of

DESTINATION = "memory://plan/checkpoints"
"""Stands for the destination, which the sum does not depend on; nothing is opened there."""


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """What the step is asked for; sizes are Kubernetes quantities, empty where nothing is asked.

    Attributes:
        reference: URI or reference of the dataset.
        dataset_size: Memory reserved for the data.
        checkpoint_size: Bytes of one checkpoint.
        keep_local: Durable checkpoints that stay in memory.
        shm_size: Size of the trainer's `/dev/shm`.
        train_memory: What the training itself needs.
        pod_memory: What the whole pod may have.
        include, exclude: Globs of the files to bring and to leave out.
        unpack: Which archives are unpacked: `auto`, `never`, `always`.
        medium: What the data lies on: `memory`, `disk`.
        shards: How many pods share the dataset, a part each.
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
        """The wishes as a pod's annotations. The data counts as it is listed, not as a reference says."""
        given = {
            "dataset": escape_variables(self.reference.partition("#")[0]),
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
        return {PREFIX + name: text for name, text in given.items() if text}


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What the step hands on.

    Attributes:
        reference: The dataset, frozen.
        dataset_size, sidecar_memory, trainer_memory, pod_memory: Kubernetes quantities: the data volume,
            the sidecar, the training container with its checkpoints, all of the pod.
    """

    reference: str
    dataset_size: str
    sidecar_memory: str
    trainer_memory: str
    pod_memory: str


def plan_cache(wish: CacheRequest, endpoint: str = "", region: str = "") -> CachePlan:
    """Plan, print the memory sum, and refuse what cannot fit.

    Raises:
        Refused: It cannot fit, each limit with its numbers and remedy.
        InvalidWish, EmptyDataset, Changed and the store's errors: It cannot be planned.
    """
    spec, train, limit = read_request(wish)
    [dataset] = spec.datasets
    selection = Selection(dataset.include, dataset.exclude)
    named, manifest = list_frozen(
        wish.reference, selection, step_store_config(endpoint, region), dataset.unpack
    )
    part = largest_part(manifest, wish.shards)
    needed = memory_sum(spec, {"": ListedSize(part.bytes, part.files)})
    show_memory(_counted(manifest, part, wish.shards), _rows(needed, train))
    Refused.raise_any(fit(part, needed, train, limit))
    say(f"fits: the pod needs {format_bytes(needed.pod + train)}")
    [volume] = needed.data
    return CachePlan(
        reference=str(reference_to(named)),
        dataset_size=wish.dataset_size or quantity_at_least(volume.bytes),
        sidecar_memory=quantity_at_least(needed.sidecar),
        trainer_memory=quantity_at_least(needed.trainer + train),
        pod_memory=quantity_at_least(needed.pod + train),
    )


def largest_part(manifest: Manifest, shards: int) -> Manifest:
    """What the pod that has most of a dataset has of it.

    Raises:
        Refused: There are fewer files than pods.
    """
    parts = (part_of(manifest, Shard(rank, shards)) for rank in range(shards)) if shards > 1 else [manifest]
    return max(parts, key=lambda part: charged_bytes(entry.size for entry in part.entries))


def _counted(manifest: Manifest, part: Manifest, shards: int) -> str:
    whole = f"{manifest.files:,} files of {format_bytes(manifest.bytes)}"
    if shards == 1:
        return whole
    return f"{part.files:,} files of {format_bytes(part.bytes)}, the largest of {shards} parts of {whole}"


def read_request(wish: CacheRequest) -> tuple[FerrySpec, int, int | None]:
    """The wishes as values: a spec, the training's own memory and the pod's limit in bytes.

    Raises:
        InvalidSpec: Everything that is wrong.
    """
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    if wish.shards < 1:
        problems.append(Problem("shards: no whole number of 1 or more", str(wish.shards), "Write 1 or more"))
    for name, parse in (("train_memory", parse_bytes), ("pod_memory", parse_bytes)):
        text = getattr(wish, name)
        try:
            values[name] = parse(text) if text else None
        except InvalidSpec as error:
            problems += (Problem(f"{name}: {one.what}", one.measured, one.remedy) for one in error.problems)
    try:
        spec = read_annotations(wish.annotations())
    except InvalidSpec as error:
        spec, problems = None, [*error.problems, *problems]
    InvalidSpec.raise_any(problems)
    assert spec is not None  # noqa: S101 - a wish always names a dataset, so the pod opts in
    return spec, values["train_memory"] or 0, values["pod_memory"]


def fit(manifest: Manifest, needed: MemorySum, train: int, limit: int | None) -> Iterator[Problem]:
    """Why a plan cannot fit; nothing where it does.

    Args:
        manifest: What the pod has of the dataset.
        needed: The memory sum of the pod.
        train: Bytes that the training itself needs.
        limit: Bytes that the pod may have, None to check none.
    """
    yield from volume_problems(manifest, needed.data[0].bytes)
    total = needed.pod + train
    if limit is not None and total > limit:
        over = format_bytes(total - limit)
        yield Problem(
            "the pod is larger than its memory",
            f"it needs {format_bytes(total)}, {over} more than the {format_bytes(limit)} of pod_memory",
            f"Use nodes that give a pod {quantity_at_least(total)}, a smaller dataset, or smaller or fewer "
            "checkpoints in memory",
        )


def _rows(needed: MemorySum, train: int) -> tuple[Row, ...]:
    if not train:
        return needed.rows()
    total = Row("pod", needed.pod + train, "what podferry adds, and the training itself")
    return (*needed.rows(), Row("training", train, "train_memory"), total)
