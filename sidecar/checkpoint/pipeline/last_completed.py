"""When the last version that earlier workers knew was completed."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.state.journal import CheckpointRecord


def last_completed(record: CheckpointRecord, held: Iterable[HeldCheckpoint]) -> float:
    """When the last version that earlier workers knew was completed, seconds since the epoch; 0 for none.

    Versions are ordered by these times: a clock that was set back must not make an old one newer.
    """
    times = [hold.completed_at for hold in held]
    times += [done.completed_at for done in record.durable]
    times += [part.completed_at for part in record.published.values()]
    return max(times, default=0.0)
