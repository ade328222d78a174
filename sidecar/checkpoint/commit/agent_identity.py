"""Which agent commits, and how it announces itself to a lineage."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from podferry.contract.code_version import CodeVersion
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.provenance import RunOrigin
from podferry.contract.errors import Corrupt

AGENTS_PREFIX = f"{PRIVATE}/writers"
ANNOUNCEMENT = f"{PRIVATE}/writer.json"
"""The agent that started last in a lineage: its `Announcement`."""


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """The agent that commits.

    Attributes:
        agent_id: Unique to one life of a pod; it survives restarts of the pod's worker.
        world: How many pods write a checkpoint together.
        run: KFP's run id, None outside KFP.
        rank: The pod's number in its training run, None if unknown.
        origin: The program that it runs for, outside Kubernetes.
        code: What that runs, as far as it is known.
    """

    agent_id: str
    world: int = 1
    run: str | None = None
    rank: int | None = None
    origin: RunOrigin | None = None
    code: CodeVersion | None = None


class Announcement(msgspec.Struct, frozen=True):
    """The agent that started last in a lineage, and when, by its clock.

    Attributes:
        agent_id: Its id.
        since: The time, as text.
        run: KFP's run id, None outside KFP.
        rank: The pod's number in its training run, None if unknown.
        origin: The program that it runs for, outside Kubernetes.
    """

    agent_id: str = msgspec.field(name="writer")
    since: str = "an unknown time"
    run: str | None = None
    rank: int | None = None
    origin: RunOrigin | None = None

    def __str__(self) -> str:
        run = f" of run {self.run}" if self.run else ""
        by = f" for {self.origin}" if self.origin else ""
        return f"agent {self.agent_id}{run}, started at {self.since}{by}"


def decode_announcement(data: bytes, source: str) -> Announcement:
    """Read an announcement; raises `Corrupt` if it is not one."""
    try:
        return msgspec.json.decode(data, type=Announcement)
    except msgspec.MsgspecError as error:
        raise Corrupt.of(f"{source} is not an announcement", str(error)) from error
