"""Says at the end of a training that its last checkpoint is doubtful, and what can be done."""

from __future__ import annotations

from podferry.contract.errors import Problem, Unavailable
from podferry.contract.http_api import Durability
from podferry.sidecar.control.http_client import AgentClient

NEXT_TIME = "next time rename it into place, or mark it: podferry checkpoint done"


def doubt_report(durability: Durability, client: AgentClient) -> Problem | None:
    """The problem if the newest durable checkpoint is doubtful, else None.

    Args:
        durability: As the agent reported it at the end.
        client: The agent's, which knows the destination.
    """
    last = durability.last
    if last is None or not last.doubts:
        return None
    confirm = f"podferry checkpoints confirm {_place(client)} {last.name}"
    what = f"the last checkpoint, {last.name}, is doubtful: it is uploaded, and not proven complete"
    return Problem(what, "; ".join(last.doubts), f"If it is complete: {confirm}; {NEXT_TIME}")


def _place(client: AgentClient) -> str:
    """Destination and lineage, as words of a command."""
    try:
        status = client.status().checkpoints
    except Unavailable:  # it has ended
        status = None
    return f"{status.uri} {status.lineage}" if status is not None else "URI LINEAGE"
