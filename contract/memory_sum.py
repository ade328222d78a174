"""The memory sum: what a pod's volumes and containers need, and why.

Pages of a memory volume are charged to the container that wrote them, and always to the pod; reading is
free. So the sidecar's limit covers the dataset and a restored checkpoint, the trainer's what it writes.
Each volume's sizeLimit is below its writer's limit: a full volume is a clear error, never an out-of-memory
kill. A dataset on disk costs only the memory of its files' metadata: the kernel can reclaim its pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from podferry.contract.dataset_volume import DatasetVolume, ListedSize, dataset_volume_of, unknown_size
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.footprint import Footprint
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, FerrySpec, Medium
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE, whole_mebibytes

NONE_LISTED: Mapping[str, ListedSize] = MappingProxyType({})


class Row(msgspec.Struct, frozen=True):
    """One line of the printed sum.

    Attributes:
        what: A volume, a container, or a part of one.
        bytes: Its size.
        why: Where the size comes from.
    """

    what: str
    bytes: int
    why: str


class MemorySum(msgspec.Struct, frozen=True):
    """Memory of one pod, in bytes; 0 for a volume that it does not have.

    Attributes:
        data: The volumes of the datasets.
        checkpoint_volume: sizeLimit of the checkpoint volume.
        output_volume: sizeLimit of the output volume.
        shm_volume: sizeLimit of the trainer's `/dev/shm`, which counts towards the trainer's own limit.
        restored: One checkpoint that the sidecar restores.
        buffers: Transfer buffers.
        resident: The agent's processes.
        spec: What the sizes are for.
        agent: What the agent itself needs.
    """

    data: tuple[DatasetVolume, ...]
    checkpoint_volume: int
    output_volume: int
    shm_volume: int
    restored: int
    buffers: int
    resident: int
    spec: FerrySpec
    agent: Footprint

    @property
    def data_volume(self) -> int:
        """Bytes of the data volumes in memory, their sizeLimits."""
        return sum(volume.bytes for volume in self.data if volume.medium is not Medium.DISK)

    @property
    def disk(self) -> int:
        """Bytes of the data volumes on the node's disk, their sizeLimits."""
        return sum(volume.bytes for volume in self.data if volume.medium is Medium.DISK)

    @property
    def files(self) -> int:
        """Kernel and agent memory for the metadata of the datasets' files."""
        return sum(volume.files for volume in self.data)

    @property
    def sidecar(self) -> int:
        """Memory request and limit of the sidecar."""
        return self.data_volume + self.restored + self.files + self.buffers + self.resident

    @property
    def in_use(self) -> int | None:
        """What of that is usually in use once the datasets are complete; None unless all have been listed."""
        if not self.data or any(volume.pages is None for volume in self.data):
            return None
        in_memory = (volume for volume in self.data if volume.medium is not Medium.DISK)
        pages = sum(min(volume.pages or 0, volume.bytes) for volume in in_memory)
        return pages + self.restored + self.files + self.agent.typical

    @property
    def trainer(self) -> int:
        """Memory to add to the trainer for the checkpoints and outputs that it writes."""
        return self.checkpoint_volume + self.output_volume

    @property
    def pod(self) -> int:
        """Memory that podferry adds to the pod, including `/dev/shm`."""
        return self.sidecar + self.trainer + self.shm_volume

    def sidecar_rows(self) -> tuple[Row, ...]:
        """The parts of the sidecar's memory, without those of 0 bytes."""
        why = _reasons(self.spec, self.agent).get
        in_memory = (volume for volume in self.data if volume.medium is not Medium.DISK)
        rows = (
            *(Row(volume.what, volume.bytes, volume.why) for volume in in_memory),
            Row("restored checkpoint", self.restored, why("restored", "")),
            Row("files", self.files, why("files", "")),
            Row("buffers", self.buffers, why("buffers", "")),
            Row("resident", self.resident, why("resident", "")),
        )
        return tuple(row for row in rows if row.bytes)

    def rows(self) -> tuple[Row, ...]:
        """The sum as a table: parts before totals, disk last, without rows of 0 bytes."""
        why = _reasons(self.spec, self.agent).get
        on_disk = (volume for volume in self.data if volume.medium is Medium.DISK)
        rows = (
            *self.sidecar_rows(),
            Row("sidecar", self.sidecar, "its request and limit: the rows above"),
            Row("of which in use", self.in_use or 0, why("in_use", "")),
            Row("checkpoint volume", self.checkpoint_volume, why("checkpoint_volume", "")),
            Row("output volume", self.output_volume, why("output_volume", "")),
            Row("trainer, added", self.trainer, why("trainer", "")),
            Row("shared memory", self.shm_volume, why("shm_volume", "")),
            Row("pod, added", self.pod, "sidecar, trainer and shared memory"),
            *(Row(f"{volume.what}, on disk", volume.bytes, volume.why) for volume in on_disk),
        )
        return tuple(row for row in rows if row.bytes)


def memory_sum(
    spec: FerrySpec, listed: Mapping[str, ListedSize] = NONE_LISTED, footprint: Footprint | None = None
) -> MemorySum:
    """Compute a pod's memory; `listed` has sizes by dataset name, else the reference counts.

    Raises:
        InvalidSpec: All sizes that are unknown.
    """
    agent = footprint or Footprint()
    InvalidSpec.raise_any([*unknown_size_problems(spec, listed)])
    checkpoint = _checkpoint(spec)
    output_buffers = agent.outputs if spec.checkpoints and spec.outputs else 0
    return MemorySum(
        data=tuple(dataset_volume_of(dataset, listed.get(dataset.name), agent) for dataset in spec.datasets),
        checkpoint_volume=_held(spec) * checkpoint,
        output_volume=whole_mebibytes(spec.outputs.size or 0) if spec.outputs else 0,
        shm_volume=spec.shm_size or 0,
        restored=checkpoint if spec.checkpoints and spec.checkpoints.restore != "never" else 0,
        buffers=agent.buffers + output_buffers if spec.needs_agent else 0,
        resident=agent.resident if spec.needs_agent else 0,
        spec=spec,
        agent=agent,
    )


def _checkpoint(spec: FerrySpec) -> int:
    """Bytes of one checkpoint."""
    return whole_mebibytes(spec.checkpoints.size or 0) if spec.checkpoints else 0


def _held(spec: FerrySpec) -> int:
    """Checkpoints in the volume: those that are kept, one being written, one being uploaded."""
    return spec.checkpoints.keep_local + 2 if spec.checkpoints else 0


def _reasons(spec: FerrySpec, agent: Footprint) -> dict[str, str]:
    filled = [f"the {name} volume" for name in ("checkpoint", "output") if getattr(spec, f"{name}s")]
    held, output_buffers = _held(spec), agent.outputs if len(filled) > 1 else 0
    return {
        "checkpoint_volume": f"{held} times {format_bytes(_checkpoint(spec))}: {held - 2} kept, "
        "one being written, one being uploaded",
        "output_volume": f"{PREFIX}output-size: outputs stay until the end",
        "trainer": f"{' and '.join(filled)}, which the trainer fills",
        "shm_volume": "shm-size; its contents count towards the trainer's own limit",
        "restored": "one checkpoint, written by the sidecar into the checkpoint volume",
        "files": f"{KERNEL_BYTES_PER_FILE} B of kernel and {agent.entry} B of agent memory a file, "
        "outside the volume's limit",
        "buffers": f"{agent.concurrency} transfers of {format_bytes(agent.range_bytes)}"
        + (f", {format_bytes(output_buffers)} for outputs in parallel" if output_buffers else ""),
        "resident": "the agent's processes",
        "in_use": "usually: the data without slack, and "
        f"{format_bytes(agent.typical)} of processes and buffers",
    }


def unknown_size_problems(
    spec: FerrySpec, listed: Mapping[str, ListedSize] = NONE_LISTED
) -> Iterable[Problem]:
    """Sizes that the sum needs and that are unknown."""
    for dataset in spec.datasets:
        yield from unknown_size(dataset, listed.get(dataset.name))
    if spec.checkpoints and spec.checkpoints.size is None:
        remedy = f"Set {PREFIX}checkpoint-size to the bytes of one checkpoint"
        yield Problem("the size of a checkpoint is unknown", spec.checkpoints.uri, remedy)
    if spec.outputs and spec.outputs.size is None:
        remedy = f"Set {PREFIX}output-size to the bytes of all outputs of one training run"
        yield Problem("the size of the outputs is unknown", spec.outputs.uri, remedy)
