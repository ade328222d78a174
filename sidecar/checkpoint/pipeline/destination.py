"""One agent's connection to the destination of its checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podferry.contract.spec import CheckpointSpec
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.config.store_access import store_config
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig


@dataclass(frozen=True, slots=True)
class Destination:
    """What reads and writes one lineage.

    Attributes:
        committer: Writes commits; its reader reads them.
        handover: The notes between an agent and the next one.
        access: The configuration of its store.
        gang: Joins the parts of several ranks; None if one pod writes all.
    """

    committer: Committer
    handover: Handover
    access: StoreConfig
    gang: GangCoordinator | None

    async def close(self) -> None:
        """Close the connections."""
        await self.committer.reader.store.destination.close()


def open_destination(
    spec: CheckpointSpec, lineage: str, identity: AgentIdentity, secret_dir: Path | None, attempts: int
) -> Destination:
    """Open the store; nothing is sent yet.

    Raises:
        CredentialsMissing, UnknownScheme, InvalidSpec: The destination cannot be opened.
    """
    access = store_config(spec.access, secret_dir)
    store = LineageStore(open_store(spec.parsed, access), lineage)
    committer = Committer(CommitReader(store), identity, _now, attempts)
    gang = GangCoordinator(committer, time.time) if identity.world > 1 else None
    return Destination(committer, Handover(store, identity, _now), access, gang)


def _now() -> datetime:
    return datetime.now(UTC)
