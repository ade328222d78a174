"""Which agent commits."""

from __future__ import annotations

from dataclasses import dataclass

from podferry.contract.commit import (
    PRIVATE,
)

AGENTS_PREFIX = f"{PRIVATE}/writers"


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Who commits.

    Attributes:
        writer: Unique to one life of a pod; its worker may start again and again in it.
        world: How many pods write a checkpoint together.
        run: KFP's run id, None outside KFP.
        rank: The pod's number in its training, None where nothing says.
    """

    writer: str
    world: int = 1
    run: str | None = None
    rank: int | None = None
