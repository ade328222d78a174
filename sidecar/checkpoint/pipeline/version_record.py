"""Versions of checkpoints: written to the journal, read by a restarted worker, or left by an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import (
    DURABLE,
    CheckpointVersion,
    VersionState,
)
from podferry.sidecar.checkpoint.pipeline.doubt_ledger import DoubtLedger
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.state.journal import CheckpointRecord

EARLIER_RUN = Doubt(DoubtKind.LEFT_OUT, "it is an earlier run's, and is not uploaded")


def read_versions(
    record: CheckpointRecord, held: Iterable[HeldCheckpoint], doubts: DoubtLedger
) -> Iterator[CheckpointVersion]:
    """What earlier workers knew, oldest first; `held` is what they held."""
    for name, files in record.ignored.items():
        yield ignored(Candidate(name, files))
    committed = {one.name for one in record.durable}
    for name, files in record.settled.items():
        state = VersionState.COMMITTED if name in committed else VersionState.RESTORED
        yield CheckpointVersion(Candidate(name, files, doubts.doubts(name, files)), state)
    for name, part in record.published.items():
        candidate = Candidate(name, part.files, part.doubts)
        yield CheckpointVersion(candidate, VersionState.PUBLISHED, part=part)
    for hold in held:
        yield CheckpointVersion(hold.candidate, VersionState.HELD, hold)


def write_versions(record: CheckpointRecord, versions: Sequence[CheckpointVersion]) -> None:
    """Record what must outlive this worker; holds are files and need no record."""

    def of(*states: VersionState) -> dict[str, CheckpointVersion]:
        return {version.name: version for version in versions if version.state in states}

    record.ignored = {name: one.candidate.files for name, one in of(VersionState.IGNORED).items()}
    record.settled = {name: one.candidate.files for name, one in of(*DURABLE).items()}
    known = record.fingerprints
    record.fingerprints = {name: known[name] for name in record.settled if name in known}
    parts = {name: version.part for name, version in of(VersionState.PUBLISHED).items()}
    # In the order of publication: a restarted worker publishes them again in this order.
    names = dict.fromkeys([*record.published, *parts])
    record.published = {name: parts[name] for name in names if name in parts}


def ignored(candidate: Candidate) -> CheckpointVersion:
    """A version of an earlier run that is never uploaded: whether that run finished it, nobody knows."""
    return CheckpointVersion(replace(candidate, doubts=(EARLIER_RUN,)), VersionState.IGNORED)
