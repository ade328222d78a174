"""What a commit says of a checkpoint, whichever number it gets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    FORMAT,
    Commit,
    CommittedFile,
    Confidence,
    Doubt,
    step_of,
)
from podferry.contract.destination.provenance import DatasetVersion
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity


@dataclass(frozen=True, slots=True)
class CommitContent:
    """A checkpoint whose files have all been uploaded.

    Attributes:
        name: The trainer's name for it.
        folder: The name and the hash of its content.
        files: All of them, sorted by name.
        doubts: Why it may be incomplete; a sure one has none.
        datasets: What it was trained on; None if that is unknown.
        late: It is older than a commit of another name.
    """

    name: str
    folder: str
    files: tuple[CommittedFile, ...]
    doubts: tuple[Doubt, ...] = ()
    datasets: tuple[DatasetVersion, ...] | None = None
    late: bool = False

    def commit(
        self, lineage: str, number: int, reserved: int, created: datetime, identity: AgentIdentity
    ) -> Commit:
        """The commit of this number; `reserved` free numbers are directly below it."""
        return Commit(
            format=DOUBTFUL_FORMAT if self.doubts else FORMAT,
            sequence=number,
            lineage=lineage,
            checkpoint=self.folder,
            name=self.name,
            step=step_of(self.name),
            created=created,
            files=self.files,
            agent_id=identity.agent_id,
            world=identity.world,
            run=identity.run,
            rank=identity.rank,
            reserved=reserved,
            confidence=Confidence.DOUBTFUL if self.doubts else Confidence.SURE,
            doubts=self.doubts,
            datasets=self.datasets,
            origin=identity.origin,
            code=identity.code,
            late=self.late,
        )
