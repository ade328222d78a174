"""The page about a training: what was staged and how fast, and when its checkpoints were durable."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.components.reports.document import Document, Table
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.status import (
    CheckpointStatus,
    DatasetStatus,
    DurableCheckpoint,
    Status,
    newest_durable,
)

DATASETS = ("dataset", "files", "size", "kept", "seconds", "rate", "each further read of the store")
FURTHER = (
    "Measured: files, size, seconds, rate. Computed: what one further read of all files from the store would "
    "take, as their size divided by the measured rate; reading them in place takes no request."
)
CHECKPOINTS = ("checkpoint", "step", "size", "complete after", "durable after", "confidence")
TIMES = "Measured, in seconds: since the agent's start until it was complete, then until it was committed."


def training_page(status: Status, agent: str) -> Document:
    """The page for an agent's status; `agent` says whose it is."""
    saved = status.checkpoints
    tables = tuple(_tables(status))
    notes = (f"Agent: {agent}", *map(str, saved.problems if saved else ()))
    return Document("Training", _verdict(saved), _good(saved), tables, notes=notes)


def _tables(status: Status) -> Iterator[Table]:
    if status.datasets:
        yield Table("Staged", DATASETS, tuple(map(_dataset, status.datasets)), FURTHER)
    if (saved := status.checkpoints) is None:
        return
    if saved.restored is not None:
        one = saved.restored
        row = (one.name, _step(one.step), format_bytes(one.bytes), f"{one.seconds:.1f} s", one.lineage)
        yield Table("Resumed from", ("checkpoint", "step", "size", "restored in", "lineage"), (row,))
    rows = tuple(_checkpoint(one, status.started_at) for one in saved.durable)
    if rows:
        left_out = saved.durable_count - len(rows)
        note = f"{TIMES} The first {left_out} are left out." if left_out else TIMES
        yield Table(f"Checkpoints of {saved.lineage}", CHECKPOINTS, rows, note)
    if saved.passed_over:
        passed = tuple((one.name, str(one.sequence), one.reason) for one in saved.passed_over)
        yield Table("Passed over when it resumed", ("checkpoint", "commit", "why"), passed)


def _dataset(one: DatasetStatus) -> tuple[str, ...]:
    rate = one.rate or (one.bytes / one.seconds if one.seconds else 0.0)
    fetched = one.files > one.files_kept and rate > 0
    further = f"{one.bytes / rate:.1f} s" if fetched else "unknown: nothing was fetched"
    speed = f"{format_bytes(int(rate))}/s" if fetched else ""
    name = f"{one.name}: {one.uri}" if one.name else one.uri
    kept = f"{count_of(one.files_kept, 'file')} of an earlier start" if one.files_kept else "none"
    return (name, f"{one.files:,}", format_bytes(one.bytes), kept, f"{one.seconds:.1f}", speed, further)


def _checkpoint(one: DurableCheckpoint, started_at: float) -> tuple[str, ...]:
    confidence = f"doubtful: {'; '.join(one.doubts)}" if one.doubts else "sure"
    complete, durable = one.completed_at - started_at, one.durable_at - one.completed_at
    return (
        one.name,
        _step(one.step),
        format_bytes(one.bytes),
        f"{complete:.1f}",
        f"{durable:.1f}",
        confidence,
    )


def _step(step: int | None) -> str:
    return "" if step is None else str(step)


def _verdict(saved: CheckpointStatus | None) -> str:
    if saved is None:
        return "No destination for checkpoints was requested"
    verb = "is" if saved.durable_count == 1 else "are"
    count = f"{count_of(saved.durable_count, 'checkpoint')} {verb} durable at {saved.uri}"
    return f"{count}; not durable: {', '.join(saved.pending)}" if saved.pending else count


def _good(saved: CheckpointStatus | None) -> bool | None:
    if saved is None or not (saved.durable_count or saved.pending):
        return None
    last = newest_durable(saved.durable)
    return not saved.pending and not (last is not None and last.doubts)
