"""The memory sum: what a pod's volumes and containers need, and why.

Pages of a memory volume are charged to the container that wrote them, and always to the pod; reading is
free. So the sidecar's limit holds the dataset and a restored checkpoint, the trainer's what it writes.
Each volume's sizeLimit is below its writer's limit: a full volume is then an error that says so, never an
out-of-memory kill. A dataset on the node's disk costs no memory but what is remembered of its files: its
pages are the kernel's to take back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from podferry.contract.dataset_volume import DatasetVolume, ListedSize, known_size, unknown_size
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, CheckpointSpec, DatasetSpec, FerrySpec, Medium
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE, max_charged_bytes

MIB = 1024**2
NONE_LISTED: Mapping[str, ListedSize] = MappingProxyType({})
SLACK_PERCENT = 5
MIN_SLACK_BYTES = 16 * MIB
"""Room in the data volume for directories, names under which files arrive, and the volume's own pages."""


class Footprint(msgspec.Struct, frozen=True):
    """What the agent itself needs.

    Attributes:
        range_bytes: Bytes that one transfer holds at a time: a range of 8 MiB in chunks, and joined.
        concurrency: Transfers at a time.
        outputs: Bytes that an upload of outputs holds, which goes beside one of a checkpoint. Measured with
            S3: 72 MiB for one file of 600 MiB, 12 MiB for 200 of 1 MiB.
        resident: The agent's processes: interpreter, libraries, connections. Measured: 12 MiB the supervisor,
            59 the worker, 30 each that helps it to fetch, two at most.
        entry: What it remembers of one file: name, size, tag, its line in the plan.
        typical_file: Bytes of a file where nothing says how many there are: half of the photographs that
            image training reads, so that the guess errs on the safe side.
    """

    range_bytes: int = 16 * MIB
    concurrency: int = 8
    outputs: int = 80 * MIB
    resident: int = 160 * MIB
    entry: int = 512
    typical_file: int = 64 * 1024

    @property
    def buffers(self) -> int:
        """Bytes of all transfer buffers."""
        return self.range_bytes * self.concurrency


class Row(msgspec.Struct, frozen=True):
    """One line of the printed sum.

    Attributes:
        what: A volume, a container, or a part of one.
        bytes: How much.
        why: Where the figure comes from.
    """

    what: str
    bytes: int
    why: str


class MemorySum(msgspec.Struct, frozen=True):
    """What one pod needs, in bytes. A volume that the pod does not have counts 0.

    Attributes:
        data: The volumes of the datasets.
        checkpoint_volume: sizeLimit of the checkpoint volume.
        output_volume: sizeLimit of the output volume.
        shm_volume: sizeLimit of the trainer's `/dev/shm`; what it writes there is its own.
        restored: One checkpoint that the sidecar brings back.
        buffers: Transfer buffers.
        resident: The agent's process.
        reasons: Why, by field.
    """

    data: tuple[DatasetVolume, ...]
    checkpoint_volume: int
    output_volume: int
    shm_volume: int
    restored: int
    buffers: int
    resident: int
    reasons: dict[str, str] = {}

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
        """What the kernel and the agent remember of the datasets' files."""
        return sum(volume.files for volume in self.data)

    @property
    def sidecar(self) -> int:
        """Memory request and limit of the sidecar."""
        return self.data_volume + self.restored + self.files + self.buffers + self.resident

    @property
    def trainer(self) -> int:
        """What to add to the trainer's memory for the checkpoints and outputs that it writes."""
        return self.checkpoint_volume + self.output_volume

    @property
    def pod(self) -> int:
        """What podferry adds to the pod, `/dev/shm` included."""
        return self.sidecar + self.trainer + self.shm_volume

    def sidecar_rows(self) -> tuple[Row, ...]:
        """What the sidecar's memory is made of; what is 0 is left out."""
        why = self.reasons.get
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
        """The sum for a table, parts before totals, disk last; what is 0 is left out."""
        why = self.reasons.get
        on_disk = (volume for volume in self.data if volume.medium is Medium.DISK)
        rows = (
            *self.sidecar_rows(),
            Row("sidecar", self.sidecar, "its request and limit: the rows above"),
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
    """What a pod with this spec needs.

    Args:
        spec: Its wishes.
        listed: What listings have found, by the datasets' names; where one is missing, its reference tells.
        footprint: What the agent needs.

    Raises:
        InvalidSpec: A size that nobody says, all of them at once.
    """
    agent = footprint or Footprint()
    InvalidSpec.raise_any([*unknown_size_problems(spec, listed)])
    checkpoint = _round(spec.checkpoints.size or 0) if spec.checkpoints else 0
    kept = spec.checkpoints.keep_local + 2 if spec.checkpoints else 0
    filled = [f"{name} volume" for name in ("checkpoint", "output") if getattr(spec, f"{name}s")]
    busy = bool(spec.datasets or filled)
    beside = agent.outputs if len(filled) > 1 else 0
    return MemorySum(
        data=tuple(dataset_volume_of(dataset, listed.get(dataset.name), agent) for dataset in spec.datasets),
        checkpoint_volume=kept * checkpoint,
        output_volume=_round(spec.outputs.size or 0) if spec.outputs else 0,
        shm_volume=spec.shm_size or 0,
        restored=checkpoint if _restores(spec.checkpoints) else 0,
        buffers=agent.buffers + beside if busy else 0,
        resident=agent.resident if busy else 0,
        reasons={
            "checkpoint_volume": f"{kept} times {format_bytes(checkpoint)}: {kept - 2} kept, "
            "one being written, one on its way",
            "output_volume": f"{PREFIX}output-size: they stay until the end",
            "trainer": f"the {' and the '.join(filled)}, which the trainer fills",
            "shm_volume": "shm-size; what the trainer writes there is its own",
            "restored": "one checkpoint, written by the sidecar into the checkpoint volume",
            "files": f"{KERNEL_BYTES_PER_FILE} B of kernel and {agent.entry} B of agent memory a file, "
            "outside the volume's limit",
            "buffers": f"{agent.concurrency} transfers of {format_bytes(agent.range_bytes)}"
            + (f", {format_bytes(beside)} for outputs beside checkpoints" if beside else ""),
            "resident": "the agent's process",
        },
    )


def unknown_size_problems(
    spec: FerrySpec, listed: Mapping[str, ListedSize] = NONE_LISTED
) -> Iterable[Problem]:
    """Sizes that nobody says and the sum needs."""
    for dataset in spec.datasets:
        yield from unknown_size(dataset, listed.get(dataset.name))
    if spec.checkpoints and spec.checkpoints.size is None:
        remedy = f"Write {PREFIX}checkpoint-size: the bytes of one checkpoint"
        yield Problem("nothing says how large a checkpoint is", spec.checkpoints.uri, remedy)
    if spec.outputs and spec.outputs.size is None:
        remedy = f"Write {PREFIX}output-size: the bytes of all outputs of one training"
        yield Problem("nothing says how large the outputs are", spec.outputs.uri, remedy)


def dataset_volume_of(
    dataset: DatasetSpec, listed: ListedSize | None = None, footprint: Footprint | None = None
) -> DatasetVolume:
    """The volume of one dataset, which something sizes: `unknown_size` says nothing of it.

    Args:
        dataset: Its wishes.
        listed: What a listing has found of this pod's part.
        footprint: What the agent needs.
    """
    agent = footprint or Footprint()
    known, count, told = known_size(dataset, listed)
    if count is None:
        assumed = known if known is not None else dataset.size or 0
        count = -(-assumed // agent.typical_file)
    files = count * (agent.entry + (0 if dataset.medium is Medium.DISK else KERNEL_BYTES_PER_FILE))
    if dataset.size is not None:
        why = PREFIX + dataset.key("dataset-size")
        return DatasetVolume(dataset.name, dataset.medium, _round(dataset.size), files, why)
    need = max_charged_bytes(known or 0, count)
    slack = max(-(-need * SLACK_PERCENT // 100), MIN_SLACK_BYTES)
    why = f"{told} are charged up to {format_bytes(need)}; {format_bytes(slack)} of slack"
    return DatasetVolume(dataset.name, dataset.medium, _round(need + slack), files, why)


def _round(count: int) -> int:
    """Up to whole MiB: readable quantities, and whole pages."""
    return -(-count // MIB) * MIB


def _restores(checkpoints: CheckpointSpec | None) -> bool:
    return checkpoints is not None and checkpoints.restore != "never"
