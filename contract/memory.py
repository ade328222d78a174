"""The memory sum: what a pod's volumes and containers need, and why.

Pages of a memory volume are charged to the container that wrote them, and always to the pod; reading is
free. So the sidecar's limit holds the dataset and a restored checkpoint, the trainer's what it writes.
Each volume's sizeLimit is below its writer's limit: a full volume is then an error that says so, never an
out-of-memory kill.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podferry.contract.errors import InvalidWish, Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, CheckpointSpec, DatasetSpec, FerrySpec

MIB = 1024**2
PAGE = 4096
"""Bytes that tmpfs allocates at a time on x86-64 and, in most kernels, on arm64."""
FILE = 1024
"""Kernel memory of one tmpfs file: inode, dentry, tree. Measured: 100,000 files of 1 KB are charged
482 MiB, 390.6 in pages and 958 bytes a file."""
SLACK_PERCENT = 5
SLACK_LEAST = 16 * MIB
"""Room in the data volume for directories, names under which files arrive, and the volume's own pages."""


class Footprint(msgspec.Struct, frozen=True):
    """What the agent itself needs.

    Attributes:
        range_bytes: Bytes that one transfer holds at a time: a range of 8 MiB in chunks, and joined.
        concurrency: Transfers at a time.
        outputs: Bytes that an upload of outputs holds, which goes beside one of a checkpoint. Measured with
            S3: 72 MiB for one file of 600 MiB, 12 MiB for 200 of 1 MiB.
        resident: The agent's process: interpreter, libraries, connections.
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
        data_volume: sizeLimit of the data volume.
        checkpoint_volume: sizeLimit of the checkpoint volume.
        output_volume: sizeLimit of the output volume.
        shm_volume: sizeLimit of the trainer's `/dev/shm`; what it writes there is its own.
        restored: One checkpoint that the sidecar brings back.
        files: What the kernel and the agent remember of the dataset's files.
        buffers: Transfer buffers.
        resident: The agent's process.
        reasons: Why, by field.
    """

    data_volume: int
    checkpoint_volume: int
    output_volume: int
    shm_volume: int
    restored: int
    files: int
    buffers: int
    resident: int
    reasons: dict[str, str] = {}

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

    def rows(self) -> tuple[Row, ...]:
        """The sum for a table, parts before totals; what is 0 is left out."""
        why = self.reasons.get
        rows = (
            Row("data volume", self.data_volume, why("data_volume", "")),
            Row("restored checkpoint", self.restored, why("restored", "")),
            Row("files", self.files, why("files", "")),
            Row("buffers", self.buffers, why("buffers", "")),
            Row("resident", self.resident, why("resident", "")),
            Row("sidecar", self.sidecar, "its request and limit: the rows above"),
            Row("checkpoint volume", self.checkpoint_volume, why("checkpoint_volume", "")),
            Row("output volume", self.output_volume, why("output_volume", "")),
            Row("trainer, added", self.trainer, why("trainer", "")),
            Row("shared memory", self.shm_volume, why("shm_volume", "")),
            Row("pod, added", self.pod, "sidecar, trainer and shared memory"),
        )
        return tuple(row for row in rows if row.bytes)


def charged(sizes: Iterable[int]) -> int:
    """What files of these sizes are charged in a memory volume, file by file."""
    return sum(-(-size // PAGE) * PAGE + FILE for size in sizes)


def in_pages(sizes: Iterable[int]) -> int:
    """What files of these sizes take of their volume: whole pages, without the kernel's own memory."""
    return sum(-(-size // PAGE) * PAGE for size in sizes)


def charged_at_most(total: int, files: int) -> int:
    """The most that `files` files of `total` bytes together can be charged: each ends in a started page."""
    count = max(files, 1) if total else files
    return total + count * (PAGE - 1 + FILE)


def memory_sum(
    spec: FerrySpec,
    dataset_bytes: int | None = None,
    dataset_files: int | None = None,
    footprint: Footprint | None = None,
) -> MemorySum:
    """What a pod with this spec needs.

    Args:
        spec: Its wishes.
        dataset_bytes: Sum of the files' sizes; None to take the reference's.
        dataset_files: How many; None to take the reference's, or to assume typical ones.
        footprint: What the agent needs.

    Raises:
        InvalidWish: A size that nobody says, all of them at once.
    """
    agent = footprint or Footprint()
    InvalidWish.raise_any([*_unsized(spec, dataset_bytes)])
    data, files, why_data = _data(spec.dataset, dataset_bytes, dataset_files, agent)
    checkpoint = _round(spec.checkpoints.size or 0) if spec.checkpoints else 0
    kept = spec.checkpoints.keep_local + 2 if spec.checkpoints else 0
    filled = [f"{name} volume" for name in ("checkpoint", "output") if getattr(spec, f"{name}s")]
    busy = bool(spec.dataset or filled)
    beside = agent.outputs if len(filled) > 1 else 0
    return MemorySum(
        data_volume=data,
        checkpoint_volume=kept * checkpoint,
        output_volume=_round(spec.outputs.size or 0) if spec.outputs else 0,
        shm_volume=spec.shm_size or 0,
        restored=checkpoint if _restores(spec.checkpoints) else 0,
        files=files,
        buffers=agent.buffers + beside if busy else 0,
        resident=agent.resident if busy else 0,
        reasons={
            "data_volume": why_data,
            "checkpoint_volume": f"{kept} times {format_bytes(checkpoint)}: {kept - 2} kept, "
            "one being written, one on its way",
            "output_volume": f"{PREFIX}output-size: they stay until the end",
            "trainer": f"the {' and the '.join(filled)}, which the trainer fills",
            "shm_volume": "shm-size; what the trainer writes there is its own",
            "restored": "one checkpoint, written by the sidecar into the checkpoint volume",
            "files": f"{FILE} B of kernel and {agent.entry} B of agent memory a file, "
            "outside the volume's limit",
            "buffers": f"{agent.concurrency} transfers of {format_bytes(agent.range_bytes)}"
            + (f", {format_bytes(beside)} for outputs beside checkpoints" if beside else ""),
            "resident": "the agent's process",
        },
    )


def _data(
    dataset: DatasetSpec | None, total: int | None, files: int | None, agent: Footprint
) -> tuple[int, int, str]:
    """Data volume, memory for what is remembered of its files, and the volume's reason."""
    if dataset is None:
        return 0, 0, ""
    reference = dataset.parsed
    known = reference.bytes if total is None else total
    count = reference.files if files is None else files
    if count is None:
        assumed = known if known is not None else dataset.size or 0
        count = -(-assumed // agent.typical_file)
    if dataset.size is not None:
        return _round(dataset.size), count * (FILE + agent.entry), f"{PREFIX}dataset-size"
    need = charged_at_most(known or 0, count)
    slack = max(-(-need * SLACK_PERCENT // 100), SLACK_LEAST)
    why = (
        f"{format_bytes(known or 0)} in {count:,} files are charged up to {format_bytes(need)}; "
        f"{format_bytes(slack)} of slack"
    )
    return _round(need + slack), count * (FILE + agent.entry), why


def _round(count: int) -> int:
    """Up to whole MiB: readable quantities, and whole pages."""
    return -(-count // MIB) * MIB


def _restores(checkpoints: CheckpointSpec | None) -> bool:
    return checkpoints is not None and checkpoints.restore != "never"


def _unsized(spec: FerrySpec, dataset_bytes: int | None) -> Iterable[Problem]:
    dataset, checkpoints = spec.dataset, spec.checkpoints
    if dataset and dataset.size is None and dataset_bytes is None and dataset.parsed.bytes is None:
        remedy = f"Write {PREFIX}dataset-size, or a reference as `podferry dataset freeze` prints it"
        yield Problem("nothing says how large the dataset is", dataset.reference, remedy)
    if checkpoints and checkpoints.size is None:
        remedy = f"Write {PREFIX}checkpoint-size: the bytes of one checkpoint"
        yield Problem("nothing says how large a checkpoint is", checkpoints.uri, remedy)
    if spec.outputs and spec.outputs.size is None:
        remedy = f"Write {PREFIX}output-size: the bytes of all outputs of one training"
        yield Problem("nothing says how large the outputs are", spec.outputs.uri, remedy)
